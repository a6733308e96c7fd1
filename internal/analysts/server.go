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
	objects  []object        // tables and views of the database
	definer  map[string]bool // views that do not read with the rights of their reader
	made     []made
	fixed    []fixed
}

// made is a view in the database of an analyst.
type made struct {
	Database string `ch:"database"`
	Name     string `ch:"name"`
	Comment  string `ch:"comment"`
	Defined  bool   `ch:"defined"` // with the rights of the definer
}

// fixed is a setting that a user cannot change.
type fixed struct {
	User    string `ch:"user"`
	Setting string `ch:"setting"`
	Value   string `ch:"value"`
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

// grant is the right of a user to read. An empty table means the whole database, an empty
// database all.
type grant struct {
	User     string `ch:"user"`
	Database string `ch:"of_database"`
	Table    string `ch:"granted"`
}

// look reads what ClickHouse holds.
func look(ctx context.Context, conn chouse.Conn) (*server, error) {
	s := &server{definer: map[string]bool{}}
	if err := conn.QueryRow(ctx, "SELECT currentUser(), currentDatabase()").Scan(&s.user, &s.database); err != nil {
		return nil, fmt.Errorf("reading ClickHouse's user: %w", err)
	}
	if err := conn.QueryRow(ctx, "SELECT count() > 0 FROM system.user_directories WHERE type NOT IN ('users_xml', 'ldap')").Scan(&s.stores); err != nil {
		return nil, fmt.Errorf("reading ClickHouse's user directories: %w", s.refused(err))
	}
	if !s.stores {
		return s, s.readObjects(ctx, conn)
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
			return conn.Select(ctx, &s.grantsOf, `SELECT ifNull(user_name, '') AS user, ifNull(database, '') AS of_database, ifNull(table, '') AS granted
				FROM system.grants WHERE access_type IN ('SELECT', 'ALL') AND (database IS NULL OR database = currentDatabase() OR startsWith(database, ?))`, prefix)
		},
		"tables": func() error { return s.readObjects(ctx, conn) },
		"views of analysts": func() error {
			return conn.Select(ctx, &s.made, `SELECT database, name, comment, position(create_table_query, concat('DEFINER = ', database, ' SQL SECURITY DEFINER')) > 0
				OR position(create_table_query, concat('DEFINER = `+"`', database, '`"+` SQL SECURITY DEFINER')) > 0 AS defined FROM system.tables WHERE startsWith(database, ?)`, prefix)
		},
		"settings": func() error {
			return conn.Select(ctx, &s.fixed, `SELECT ifNull(user_name, '') AS user, ifNull(setting_name, '') AS setting, ifNull(value, '') AS value
				FROM system.settings_profile_elements WHERE user_name IS NOT NULL AND toString(writability) = 'CONST'`)
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

// readObjects reads the tables and views of the database with their columns.
func (s *server) readObjects(ctx context.Context, conn chouse.Conn) error {
	rows, err := conn.Query(ctx, `SELECT name, engine, comment, arrayMap(p -> p.1, parameterized_view_parameters), engine = 'View' AND position(create_table_query, 'SQL SECURITY INVOKER') = 0
		FROM system.tables WHERE database = currentDatabase() ORDER BY name`)
	if err := collect(rows, err, func(rows driver.Rows) error {
		var o object
		var definer bool
		err := rows.Scan(&o.name, &o.engine, &o.comment, &o.parameters, &definer)
		s.objects, s.definer[o.name] = append(s.objects, o), definer
		return err
	}); err != nil {
		return err
	}
	var columns []column
	if err := conn.Select(ctx, &columns, `SELECT table AS object, name, type, comment FROM system.columns
		WHERE database = currentDatabase() AND default_kind NOT IN ('ALIAS', 'MATERIALIZED', 'EPHEMERAL') ORDER BY table, position`); err != nil {
		return err
	}
	for _, c := range columns {
		if i := slices.IndexFunc(s.objects, func(o object) bool { return o.name == c.Object }); i >= 0 {
			s.objects[i].columns = append(s.objects[i].columns, c)
		}
	}
	return nil
}

// shared returns the tables and views that analysts read.
func (s *server) shared() (list []object) {
	for _, o := range s.objects {
		if slices.Contains(Tables(), o.name) || slices.Contains(Views(), o.name) {
			list = append(list, o)
		}
	}
	return list
}

// outdated returns the tables and views that are missing, and views that read with other
// rights than those of their reader.
func (s *server) outdated() (names []string) {
	for _, name := range slices.Concat(Tables(), Views()) {
		if s.definer[name] || !slices.ContainsFunc(s.objects, func(o object) bool { return o.name == name }) {
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

// unprotected returns the tables without a policy that restricts the analyst, and the user that
// defines its views, to an agency.
func (s *server) unprotected(analyst, agencyID string) (tables []string) {
	for _, table := range Tables() {
		if !slices.ContainsFunc(s.policies, func(p policy) bool { return p.Table == table && p.restricts(analyst, agencyID) }) {
			tables = append(tables, table)
		}
	}
	return tables
}

// restricts reports whether the policy hides the rows of other agencies from the analyst and
// its views.
func (p policy) restricts(analyst, agencyID string) bool {
	return p.Name == prefix+analyst && p.Restrictive && p.Filter == Filter(agencyID) && slices.Contains(p.To, Database(analyst)) && slices.Contains(p.To, analyst)
}

// reads reports whether the user may read the object of the database.
func (s *server) reads(user, database, object string) bool {
	return slices.ContainsFunc(s.grantsOf, func(g grant) bool {
		return g.User == user && (g.Database == "" || g.Database == database) && (g.Table == "" || g.Table == object)
	})
}

// views reports whether the analyst has its view of the object, as this release makes it, and
// may read it.
func (s *server) views(analyst string, o object) bool {
	return s.reads(analyst, Database(analyst), o.name) && s.reads(Database(analyst), s.database, o.name) && slices.ContainsFunc(s.made, func(v made) bool {
		return v.Database == Database(analyst) && v.Name == o.name && v.Defined && strings.HasSuffix(v.Comment, s.marked(analyst, o))
	})
}

// loose returns the settings that the analyst can change and must not.
func (s *server) loose(analyst string) (names []string) {
	for _, f := range FixedSettings() {
		if !slices.Contains(s.fixed, fixed{User: analyst, Setting: f.Setting, Value: fmt.Sprint(f.Value)}) {
			names = append(names, f.Setting)
		}
	}
	return names
}

var agencyFilter = regexp.MustCompile(`^tenant_id = '([0-9a-f-]{36})'$`)

// analysts returns the analysts, by name. The names of their policies tell them.
func (s *server) analysts() (list []Analyst) {
	for _, p := range s.policies {
		name, ok := strings.CutPrefix(p.Name, prefix)
		if !ok || slices.ContainsFunc(list, func(a Analyst) bool { return a.Name == name }) {
			continue
		}
		a := Analyst{Name: name, user: slices.Contains(s.users, name)}
		if m := agencyFilter.FindStringSubmatch(p.Filter); m != nil {
			a.AgencyID = m[1]
		}
		open := s.unprotected(name, a.AgencyID)
		for _, o := range s.shared() {
			if !s.views(name, o) {
				a.Lacking = append(a.Lacking, o.name)
			}
			if s.reads(name, s.database, o.name) || s.reads(Database(name), s.database, o.name) && slices.Contains(open, o.name) {
				a.Unprotected = append(a.Unprotected, o.name)
			}
		}
		a.Loose = s.loose(name)
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
