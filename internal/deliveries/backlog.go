package deliveries

import (
	"context"
	"time"
)

// Backlog is how many deliveries of a kind are in a state.
type Backlog struct {
	Kind  Kind
	State string // StateWaiting, StateQueued or StateNeedsOperator
	// Suspended: those of suspended destinations.
	Suspended bool
	Count     int64
	// Oldest is the time of the oldest event among them.
	Oldest time.Time
}

// Backlog is what is not delivered and not exhausted. Combinations without
// deliveries are missing.
func (s *Store) Backlog(ctx context.Context) ([]Backlog, error) {
	return collect[Backlog](ctx, s.pool, "counting deliveries", `
		SELECT d.kind, d.state, x.suspended_at IS NOT NULL, count(*), min(d.occurred_at)
		FROM deliveries d LEFT JOIN delivery_destinations x USING (kind, destination_id)
		WHERE d.state IN ('waiting', 'queued', 'needs_operator') GROUP BY 1, 2, 3`)
}

// CountSuspended is how many destinations of each kind are suspended. Kinds
// without any are missing.
func (s *Store) CountSuspended(ctx context.Context) (map[Kind]int64, error) {
	return collectMap[Kind, int64](ctx, s.pool, "counting suspended destinations",
		`SELECT kind, count(*) FROM delivery_destinations WHERE suspended_at IS NOT NULL GROUP BY kind`)
}
