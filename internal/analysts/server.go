package analysts

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	chouse "quittance/internal/clickhouse"
)

// server is what ClickHouse holds now.
type server struct {
	statements
	user     string // of the connection
	stores   bool   // it can store users
	users    []string
	policies []policy
	grantsOf []grant
	// objects are the tables and views of the database; true for a table, and for a view that
	// reads with the rights of its reader.
	objects map[string]bool
}

// policy is a row policy on a table of the database.
type policy struct {
	Name        string   `ch:"short_name"`
	Table       string   `ch:"table"`
	Filter      string   `ch:"select_filter"`
	Restrictive bool     `ch:"restrictive"`
	ToAll       bool     `ch:"to_all"`
	To          []string `ch:"to_list"`
	Except      []string `ch:"to_except"`
}

// grant is the right of a user to read. An empty table means the whole database, or all.
type grant struct {
	User  string `ch:"user"`
	Table string `ch:"granted"`
}

// look reads what ClickHouse holds.
func look(ctx context.Context, conn chouse.Conn) (*server, error) {
	s := &server{objects: map[string]bool{}}
	if err := conn.QueryRow(ctx, "SELECT currentUser(), currentDatabase()").Scan(&s.user, &s.database); err != nil {
		return nil, fmt.Errorf("reading ClickHouse's user: %w", err)
	}
	if err := conn.QueryRow(ctx, "SELECT count() > 0 FROM system.user_directories WHERE type NOT IN ('users_xml', 'ldap')").Scan(&s.stores); err != nil {
		return nil, fmt.Errorf("reading ClickHouse's user directories: %w", s.refused(err))
	}
	if !s.stores {
		return s, nil
	}
	// Rights given by a role count for nothing here: analysts have none.
	for what, read := range map[string]func() error{
		"users": func() error {
			rows, err := conn.Query(ctx, "SELECT name FROM system.users")
			return collect(rows, err, func(rows driver.Rows) error {
				var name string
				defer func() { s.users = append(s.users, name) }()
				return rows.Scan(&name)
			})
		},
		"row policies": func() error {
			return conn.Select(ctx, &s.policies, `SELECT short_name, table, ifNull(select_filter, '') AS select_filter, is_restrictive = 1 AS restrictive,
				apply_to_all = 1 AS to_all, apply_to_list AS to_list, apply_to_except AS to_except
				FROM system.row_policies WHERE database = currentDatabase()`)
		},
		"rights": func() error {
			return conn.Select(ctx, &s.grantsOf, `SELECT ifNull(user_name, '') AS user, ifNull(table, '') AS granted
				FROM system.grants WHERE access_type IN ('SELECT', 'ALL') AND (database IS NULL OR database = currentDatabase())`)
		},
		"tables": func() error {
			rows, err := conn.Query(ctx, "SELECT name, engine != 'View' OR position(create_table_query, 'SQL SECURITY INVOKER') > 0 FROM system.tables WHERE database = currentDatabase()")
			return collect(rows, err, func(rows driver.Rows) error {
				var name string
				var well bool
				defer func() { s.objects[name] = well }()
				return rows.Scan(&name, &well)
			})
		},
	} {
		if err := read(); err != nil {
			return nil, fmt.Errorf("reading ClickHouse's %s: %w", what, s.refused(err))
		}
	}
	return s, nil
}

// collect calls take for each row.
func collect(rows driver.Rows, err error, take func(driver.Rows) error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// outdated returns the tables and views that are missing, and views that read with other
// rights than those of their reader.
func (s *server) outdated() (names []string) {
	for _, name := range slices.Concat(Tables(), Views()) {
		if !s.objects[name] {
			names = append(names, name)
		}
	}
	return names
}

// unshown returns the tables without the policy that shows all rows to everybody.
func (s *server) unshown() (tables []string) {
	for _, table := range Tables() {
		if !slices.ContainsFunc(s.policies, func(p policy) bool {
			return p.Table == table && p.Name == PolicyOfAll && p.Filter == "1" && !p.Restrictive && p.ToAll && len(p.Except) == 0
		}) {
			tables = append(tables, table)
		}
	}
	return tables
}

// unprotected returns the tables without a policy that restricts the analyst to an agency.
func (s *server) unprotected(analyst, agencyID string) (tables []string) {
	for _, table := range Tables() {
		if !slices.ContainsFunc(s.policies, func(p policy) bool { return p.Table == table && p.restricts(analyst, agencyID) }) {
			tables = append(tables, table)
		}
	}
	return tables
}

// restricts reports whether the policy hides the rows of other agencies from the analyst.
func (p policy) restricts(analyst, agencyID string) bool {
	return p.Name == policyPrefix+analyst && p.Restrictive && p.Filter == Filter(agencyID) && slices.Contains(p.To, analyst)
}

var agencyFilter = regexp.MustCompile(`^tenant_id = '([0-9a-f-]{36})'$`)

// analysts returns the analysts, by name. The names of their policies tell them.
func (s *server) analysts() (list []Analyst) {
	for _, p := range s.policies {
		name, ok := strings.CutPrefix(p.Name, policyPrefix)
		if !ok || slices.ContainsFunc(list, func(a Analyst) bool { return a.Name == name }) {
			continue
		}
		a := Analyst{Name: name, user: slices.Contains(s.users, name)}
		if m := agencyFilter.FindStringSubmatch(p.Filter); m != nil {
			a.AgencyID = m[1]
		}
		open := s.unprotected(name, a.AgencyID)
		for _, object := range slices.Concat(Tables(), Views()) {
			reads := slices.ContainsFunc(s.grantsOf, func(g grant) bool { return g.User == name && (g.Table == "" || g.Table == object) })
			switch {
			case !reads:
				a.Lacking = append(a.Lacking, object)
			case slices.Contains(open, object):
				a.Unprotected = append(a.Unprotected, object)
			}
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Analyst) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func (s *server) analyst(name string) (Analyst, bool) {
	for _, a := range s.analysts() {
		if a.Name == name {
			return a, true
		}
	}
	return Analyst{}, false
}
