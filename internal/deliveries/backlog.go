package deliveries

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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
	rows, err := s.pool.Query(ctx, `
		SELECT d.kind, d.state, x.suspended_at IS NOT NULL, count(*), min(d.occurred_at)
		FROM deliveries d LEFT JOIN delivery_destinations x USING (kind, destination_id)
		WHERE d.state IN ('waiting', 'queued', 'needs_operator') GROUP BY 1, 2, 3`)
	var out []Backlog
	if err == nil {
		out, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Backlog])
	}
	if err != nil {
		return nil, fmt.Errorf("counting deliveries: %w", err)
	}
	return out, nil
}

// CountSuspended is how many destinations of each kind are suspended. Kinds
// without any are missing.
func (s *Store) CountSuspended(ctx context.Context) (map[Kind]int64, error) {
	rows, err := s.pool.Query(ctx, `SELECT kind, count(*) FROM delivery_destinations WHERE suspended_at IS NOT NULL GROUP BY kind`)
	out := map[Kind]int64{}
	var kind Kind
	var n int64
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&kind, &n}, func() error { out[kind] = n; return nil })
	}
	if err != nil {
		return nil, fmt.Errorf("counting suspended destinations: %w", err)
	}
	return out, nil
}
