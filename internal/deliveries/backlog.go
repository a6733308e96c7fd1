package deliveries

import (
	"context"
	"fmt"
	"time"

	"quittance/internal/registry"
)

// Backlog is the number of deliveries of a kind in a state.
type Backlog struct {
	Kind  Kind
	State string // StateWaiting, StateQueued or StateNeedsOperator
	// Suspended is true for the deliveries to suspended destinations.
	Suspended bool
	Count     int64
	// Oldest is the time of the oldest event among them.
	Oldest time.Time
}

// backlogSQL reads open deliveries only. Each state has a partial index. With one condition
// on all three states Postgres reads all deliveries of 60 days, every ten seconds.
const backlogSQL = `
	SELECT d.kind, d.state, x.suspended_at IS NOT NULL, count(*), min(d.occurred_at)
	FROM (
		SELECT kind, destination_id, state, occurred_at FROM deliveries WHERE state = 'waiting'
		UNION ALL SELECT kind, destination_id, state, occurred_at FROM deliveries WHERE state = 'queued'
		UNION ALL SELECT kind, destination_id, state, occurred_at FROM deliveries WHERE state = 'needs_operator'
	) d LEFT JOIN delivery_destinations x USING (kind, destination_id)
	GROUP BY 1, 2, 3`

// Backlog counts the deliveries that are neither delivered nor exhausted. It omits
// combinations without deliveries.
func (s *Store) Backlog(ctx context.Context) ([]Backlog, error) {
	return collect[Backlog](ctx, s.pool, "counting deliveries", backlogSQL)
}

// ConfirmationsWaiting returns how many confirmations to an agency's ERP in a mode wait to be sent, or to be sent
// again.
func (s *Store) ConfirmationsWaiting(ctx context.Context, agencyID string, live bool) (n int64, err error) {
	var kinds []string
	for _, k := range s.kinds {
		if k.Confirms {
			kinds = append(kinds, string(k.Kind))
		}
	}
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM deliveries WHERE kind = ANY($1) AND destination_id = $2 AND state IN ('waiting', 'queued')`,
		kinds, agencyID+"/"+registry.Mode(live)).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("counting confirmations that wait: %w", err)
	}
	return n, nil
}

// CountSuspended returns the number of suspended destinations by kind. It omits kinds
// without any.
func (s *Store) CountSuspended(ctx context.Context) (map[Kind]int64, error) {
	return collectMap[Kind, int64](ctx, s.pool, "counting suspended destinations",
		`SELECT kind, count(*) FROM delivery_destinations WHERE suspended_at IS NOT NULL GROUP BY kind`)
}

// CountRefusing returns the number of destinations by kind that refuse our credentials. It omits
// kinds without any.
func (s *Store) CountRefusing(ctx context.Context) (map[Kind]int64, error) {
	return collectMap[Kind, int64](ctx, s.pool, "counting destinations that refuse our credentials",
		`SELECT kind, count(*) FROM delivery_destinations WHERE refused_since IS NOT NULL GROUP BY kind`)
}
