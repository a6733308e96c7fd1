package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// scan finds the newest sessions of applications. Each application's are read from one index in
// its order, because ids of one application stand together there: a walk of all sessions by id
// would read those of everybody else, most of all for an application that has none.
type scan struct {
	applications int
	conditions   strings.Builder
	ids          strings.Builder // the conditions that bound the id
	args         []any
}

// newScan scans the sessions of applications in one mode.
func newScan(applicationIDs []string, live bool) *scan {
	apps := slices.Clone(applicationIDs)
	slices.Sort(apps)
	apps = slices.Compact(apps) // an application that occurs twice would have its sessions twice
	s := &scan{applications: len(apps), args: []any{apps, live}}
	s.conditions.WriteString("livemode = $2")
	s.ids.WriteString("true")
	return s
}

// bound adds a bound of the id: an operator and its value.
func (s *scan) bound(operator, id string) { fmt.Fprintf(&s.ids, " AND id %s $%d", operator, s.arg(id)) }

// and adds a condition: a column, an operator and its value.
func (s *scan) and(comparison string, value any) {
	fmt.Fprintf(&s.conditions, " AND %s $%d", comparison, s.arg(value))
}

// equal adds that columns have values. Empty values add nothing, so that Postgres finds the index of
// the others.
func (s *scan) equal(columns ...[2]string) {
	for _, c := range columns {
		if c[1] != "" {
			s.and(c[0]+" =", c[1])
		}
	}
}

func (s *scan) arg(value any) int {
	s.args = append(s.args, value)
	return len(s.args)
}

// of returns a query of each application's sessions, at which what is selected from s.
func (s *scan) of(selected, each string) string {
	return "SELECT " + selected + " FROM unnest($1::text[]) AS a (application), LATERAL (" + each + " FROM sessions WHERE application_id = a.application AND " + s.conditions.String() + " AND " + s.ids.String()
}

// headsAtMost is the number of ids that a scan reads in its first round. A page of 50 sessions of 300
// applications needs one round.
const headsAtMost = 20_000

// walkedAbove is the number of applications above which a scan tries a walk: for fewer, their own
// indexes have less to read.
const walkedAbove = 16

// walkedFor is the number of sessions that a walk reads for each one up to the page.
const walkedFor = 2

// page returns the ids of a page, the newest first, after skipped ones. For many applications it first
// tries a short walk of all sessions, which finds the page if most are of these applications. Else each
// application may have the whole page. For a far page that is too much, so the first round takes
// fewer ids of each application, and what it has is complete down to the newest last id of those that
// may have more. If that is not the page, the next round takes more.
func (s *scan) page(ctx context.Context, tx pgx.Tx, skip, size int64) (ids []string, err error) {
	most := skip + size
	each := most
	if s.applications > 1 {
		each = max(1, min(most, headsAtMost/int64(s.applications)))
	}
	if s.applications > walkedAbove {
		sql, args := s.walk(skip, size)
		// A prepared statement gets a plan for all limits, which sorts.
		if err := tx.QueryRow(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&ids); err != nil || int64(len(ids)) == size {
			return ids, err
		}
	}
	for {
		var complete bool
		sql, args := s.heads(each, skip, size)
		if err := tx.QueryRow(ctx, sql, args...).Scan(&ids, &complete); err != nil {
			return nil, err
		}
		if complete || each == most || int64(len(ids)) == size {
			return ids, nil
		}
		each = min(most, 4*each)
	}
}

// walk returns the query of the ids of a page among the newest sessions of everybody.
func (s *scan) walk(skip, size int64) (sql string, args []any) {
	own := scan{args: slices.Clone(s.args)}
	return fmt.Sprintf(`SELECT ARRAY(SELECT id FROM (SELECT * FROM sessions WHERE %s ORDER BY id DESC LIMIT $%d) AS w
		WHERE application_id = ANY($1) AND %s ORDER BY id DESC OFFSET $%d LIMIT $%d)`,
		s.ids.String(), own.arg(walkedFor*(skip+size)), s.conditions.String(), own.arg(skip), own.arg(size)), own.args
}

// heads returns the query of the ids of a page among the newest ids of each application, and whether
// none has more.
func (s *scan) heads(each, skip, size int64) (sql string, args []any) {
	own := scan{args: slices.Clone(s.args)}
	limit := own.arg(each)
	return `WITH heads AS MATERIALIZED (` + s.of("s.id, s.n", "SELECT id, row_number() OVER (ORDER BY id DESC) AS n") + fmt.Sprintf(` ORDER BY id DESC LIMIT $%[1]d) AS s),
			frontier AS (SELECT max(id) AS id FROM heads WHERE n = $%[1]d)
		SELECT ARRAY(SELECT id FROM heads WHERE id >= coalesce((SELECT id FROM frontier), '') ORDER BY id DESC OFFSET $%[2]d LIMIT $%[3]d),
			(SELECT id IS NULL FROM frontier)`, limit, own.arg(skip), own.arg(size)), own.args
}

// newest returns the query of a column of the newest sessions, at most some.
func (s *scan) newest(column string, most int) string {
	return fmt.Sprintf("SELECT %s FROM sessions WHERE id = ANY(ARRAY(%s ORDER BY id DESC LIMIT %[3]d) AS s ORDER BY s.id DESC LIMIT %[3]d))", column, s.of("s.id", "SELECT id"), most)
}

// total returns the query of the number of all sessions.
func (s *scan) total() string {
	return s.of("coalesce(sum(s.n), 0)::bigint", "SELECT count(*) AS n") + ") AS s"
}

// count returns the query of the number of sessions, which stops at one more than most.
func (s *scan) count(most int) string {
	return "SELECT count(*) FROM (" + s.of("", "SELECT") + fmt.Sprintf(" LIMIT %d) AS s LIMIT %d) AS c", most+1, most+1)
}
