package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Querier is a connection of Postgres, or a pool of them.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Filter selects rows of the audit table. The zero value selects all.
type Filter struct {
	// Who is the name or the id of an actor; a member of staff has both.
	Who string
	// Since is the earliest time, by the service's clock.
	Since time.Time
	// Subject is the id of what was changed.
	Subject string
	// Action is an action, such as case.approve, or the noun of several, such as case.
	Action string
	Limit  int // 1000 when zero
}

const defaultLimit = 1000

// Recorded is a row of the audit table.
type Recorded struct {
	ID      int64
	At      time.Time // UTC, by the service's clock
	Actor   Actor
	Person  string // name of the member of staff whose id Actor.Name is; else empty
	Action  string
	Subject string
	Detail  json.RawMessage // a JSON object
}

// List returns rows of the audit table, the newest first.
func List(ctx context.Context, db Querier, f Filter) ([]Recorded, error) {
	if f.Limit == 0 {
		f.Limit = defaultLimit
	}
	rows, _ := db.Query(ctx, `
		SELECT a.id, a.at, a.actor_kind, a.actor, a.origin, coalesce(s.name, ''), a.action, a.subject, a.detail
		FROM audit a LEFT JOIN staff s ON s.id::text = a.actor
		WHERE ($1 = '' OR a.actor = $1 OR lower(s.name) = lower($1)) AND a.at >= $2 AND ($3 = '' OR a.subject = $3) AND ($4 = '' OR a.action = $4 OR starts_with(a.action, $4 || '.'))
		ORDER BY a.id DESC LIMIT $5`, f.Who, f.Since, f.Subject, f.Action, f.Limit)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Recorded, err error) {
		var kind string
		err = row.Scan(&r.ID, &r.At, &kind, &r.Actor.Name, &r.Actor.Origin, &r.Person, &r.Action, &r.Subject, &r.Detail)
		r.At, r.Actor.Kind = r.At.UTC(), ActorKind(kind)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the audit table: %w", err)
	}
	return out, nil
}
