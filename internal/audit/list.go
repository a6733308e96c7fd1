package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/keyset"
	"quittance/internal/operation"
)

// Filter selects rows of the audit table. The zero value selects all; conditions that are set must all
// hold.
type Filter struct {
	// AgencyID is the agency that operations are about. Rows of before 2026-11-29 have none.
	AgencyID string
	// Who is the name or the id of an actor; a member of staff has both.
	Who string
	// Since (inclusive) and Until (exclusive) bound the time, by the service's clock. Zero: no bound.
	Since, Until time.Time
	// Subject is the id of what was changed.
	Subject string
	// Action is an action, such as case.approve, or the noun of several, such as case.
	Action string
	// After goes on after a row: Filter.Cursor; empty for the first page. It has the Since and Until of the first page,
	// which count, so that a bound such as "two hours ago" stays what it was.
	After string
	Limit int // 1000 when zero
}

const defaultLimit = 1000

// Recorded is a row of the audit table.
type Recorded struct {
	ID       int64
	At       time.Time // UTC, by the service's clock
	Actor    operation.Actor
	Person   string // name of the member of staff whose id Actor.Name is; else empty
	AgencyID string // empty for none, several, and rows of before 2026-11-29
	Action   string
	Subject  string
	Detail   json.RawMessage // a JSON object
}

// list is the list of the filter.
func (f Filter) list() keyset.List {
	f.After, f.Limit, f.Since, f.Until = "", 0, time.Time{}, time.Time{} // the times are in the cursor
	return keyset.Of("audit", f)
}

// cursorParts are the time and the id of the last row, and the bounds of the list.
const cursorParts = 4

// Cursor returns the After of the list that goes on after a row.
func (f Filter) Cursor(last Recorded) string {
	// After the first page the bounds are those of its cursor.
	if key, err := f.list().Key(f.After, cursorParts); err == nil && key != nil {
		return f.list().Cursor(last.At.UTC().Format(time.RFC3339Nano), strconv.FormatInt(last.ID, 10), key[2], key[3])
	}
	return f.list().Cursor(last.At.UTC().Format(time.RFC3339Nano), strconv.FormatInt(last.ID, 10), f.Since.UTC().Format(time.RFC3339Nano), f.Until.UTC().Format(time.RFC3339Nano))
}

// List returns rows of the audit table, the newest first by the service's clock. An *operation.Error
// refuses a cursor of another list (keyset.List.Key).
func List(ctx context.Context, pool *pgxpool.Pool, f Filter) ([]Recorded, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	key, err := f.list().Key(f.After, cursorParts)
	if err != nil {
		return nil, err
	}
	var after *place
	if key != nil {
		at, wrongTime := time.Parse(time.RFC3339Nano, key[0])
		id, wrongID := strconv.ParseInt(key[1], 10, 64)
		since, wrongSince := time.Parse(time.RFC3339Nano, key[2])
		until, wrongUntil := time.Parse(time.RFC3339Nano, key[3])
		if errors.Join(wrongTime, wrongID, wrongSince, wrongUntil) != nil {
			return nil, keyset.Malformed()
		}
		after, f.Since, f.Until = &place{at, id}, since, until
	}
	q := f.query(after)
	rows, _ := pool.Query(ctx, q.sql, q.args...)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Recorded, err error) {
		var kind string
		err = row.Scan(&r.ID, &r.At, &kind, &r.Actor.Name, &r.Actor.Origin, &r.Person, &r.AgencyID, &r.Action, &r.Subject, &r.Detail)
		r.At, r.Actor.Kind = r.At.UTC(), operation.ActorKind(kind)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the audit table: %w", err)
	}
	return out, nil
}

// place is the time and the id of a row.
type place struct {
	at time.Time
	id int64
}

// query is SQL with its arguments.
type query struct {
	sql  string
	args []any
}

// valid returns a text that Postgres takes. It has none with a zero byte, so one selects nothing.
func valid(text string) string {
	if strings.Contains(text, "\x00") {
		return "\uFFFD"
	}
	return text
}

// arg adds an argument and returns its name.
func (q *query) arg(value any) string {
	if text, ok := value.(string); ok {
		value = valid(text)
	}
	q.args = append(q.args, value)
	return fmt.Sprintf("$%d", len(q.args))
}

// alternatives are queries of the actors that a name may mean, and of the actions of a noun. Each has
// its own index, from which the list takes its newest rows.
const (
	actors = `SELECT %[1]s AS actor UNION SELECT id::text FROM staff WHERE lower(name) = lower(%[1]s)`
	// The actions of the table are few: each is one look into the index.
	actions = `WITH RECURSIVE every AS (
			(SELECT action FROM audit ORDER BY action LIMIT 1)
			UNION ALL SELECT (SELECT a.action FROM audit a WHERE a.action > e.action ORDER BY a.action LIMIT 1) FROM every e WHERE e.action IS NOT NULL)
		SELECT action FROM every WHERE action = %[1]s OR starts_with(action, %[1]s || '.')`
)

// query returns the query of the rows after a place. It has the conditions that are set only, so that
// Postgres finds the index of each.
func (f Filter) query(after *place) *query {
	q := &query{}
	from, where := "", []string{"true"}
	if f.Who != "" {
		from += "(" + fmt.Sprintf(actors, q.arg(f.Who)+"::text") + ") AS w, "
		where = append(where, "a.actor = w.actor")
	}
	if f.Action != "" {
		from += "(" + fmt.Sprintf(actions, q.arg(f.Action)+"::text") + ") AS v, "
		where = append(where, "a.action = v.action")
	}
	switch {
	case f.AgencyID == "":
	case f.Subject != "": // the rows of a subject are few: no index of the agency may take its place
		where = append(where, "a.agency_id || '' = "+q.arg(f.AgencyID))
	default:
		where = append(where, "a.agency_id = "+q.arg(f.AgencyID))
	}
	if f.Subject != "" {
		where = append(where, "a.subject = "+q.arg(f.Subject))
	}
	if !f.Since.IsZero() {
		where = append(where, "a.at >= "+q.arg(f.Since))
	}
	if !f.Until.IsZero() {
		where = append(where, "a.at < "+q.arg(f.Until))
	}
	if after != nil {
		where = append(where, fmt.Sprintf("(a.at, a.id) < (%s, %s)", q.arg(after.at), q.arg(after.id)))
	}
	q.sql = fmt.Sprintf(`
		SELECT a.id, a.at, a.actor_kind, a.actor, a.origin, coalesce((SELECT s.name FROM staff s WHERE s.id::text = a.actor), ''), coalesce(a.agency_id, ''), a.action, a.subject, a.detail
		FROM (SELECT l.* FROM %sLATERAL (SELECT * FROM audit a WHERE %s ORDER BY a.at DESC, a.id DESC LIMIT %[3]d) AS l ORDER BY l.at DESC, l.id DESC LIMIT %[3]d) AS a
		ORDER BY a.at DESC, a.id DESC`, from, strings.Join(where, " AND "), f.Limit)
	return q
}
