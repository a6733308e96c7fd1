package deliveries

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// States of a delivery with at least one outcome. A delivery without an outcome
// has no row: it is only on its topic.
const (
	StateWaiting       = "waiting" // for its next attempt
	StateQueued        = "queued"  // on its topic
	StateDelivered     = "delivered"
	StateNeedsOperator = "needs_operator"
	StateExhausted     = "exhausted"
)

// States lists them all.
var States = []string{StateWaiting, StateQueued, StateDelivered, StateNeedsOperator, StateExhausted}

// Retryable are the states from which an operator can have a delivery sent again.
var Retryable = []string{StateWaiting, StateNeedsOperator, StateExhausted}

// stateOf is the state that an outcome leads to.
var stateOf = map[Outcome]string{
	OutcomeDelivered:     StateDelivered,
	OutcomeFailed:        StateWaiting,
	OutcomeDeferred:      StateWaiting,
	OutcomeNeedsOperator: StateNeedsOperator,
	OutcomeExhausted:     StateExhausted,
}

// Known says whether an outcome is one of Outcomes.
func (o Outcome) Known() bool { return stateOf[o] != "" }

// Store is the tables of deliveries in Postgres. Safe for concurrent use; several
// processes may use the same tables.
type Store struct {
	pool  *pgxpool.Pool
	kinds Kinds

	mu   sync.Mutex
	days map[string]bool // whose tables are known to exist
}

// NewStore makes a store over the pool, which the caller closes.
func NewStore(pool *pgxpool.Pool, kinds Kinds) *Store {
	return &Store{pool: pool, kinds: kinds, days: map[string]bool{}}
}

// Kinds are those that the store was made with.
func (s *Store) Kinds() Kinds { return s.kinds }

func (s *Store) tx(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, do)
}

// lockDays serialises the making and dropping of daily tables.
const lockDays = 0x71756974 // "quit"

// day is the UTC day that a delivery is kept under.
func day(occurredAt time.Time) time.Time {
	return occurredAt.UTC().Truncate(24 * time.Hour)
}

func suffix(day time.Time) string { return day.Format("20060102") }

// ensureDays makes the daily tables for events of these times, where they are
// missing.
func (s *Store) ensureDays(ctx context.Context, occurred []time.Time) error {
	missing := map[string]time.Time{}
	s.mu.Lock()
	for _, at := range occurred {
		d := day(at)
		if name := suffix(d); !s.days[name] {
			missing[name] = d
		}
	}
	s.mu.Unlock()
	if len(missing) == 0 {
		return nil
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockDays); err != nil {
			return err
		}
		for name, d := range missing {
			for _, table := range []string{"deliveries", "delivery_attempts"} {
				if _, err := tx.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s_%s PARTITION OF %s FOR VALUES FROM ('%s') TO ('%s')`,
					table, name, table, d.Format(time.DateOnly), d.AddDate(0, 0, 1).Format(time.DateOnly))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("making daily tables of deliveries: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range missing {
		s.days[name] = true
	}
	return nil
}

// dropDay drops the tables of a day unless something in them is still open.
func (s *Store) dropDay(ctx context.Context, name string) error {
	table, attempts := pgx.Identifier{"deliveries_" + name}.Sanitize(), pgx.Identifier{"delivery_attempts_" + name}.Sanitize()
	err := s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lockDays); err != nil {
			return err
		}
		var open bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+table+` WHERE state NOT IN ('delivered', 'exhausted'))`).Scan(&open); err != nil || open {
			return err
		}
		_, err := tx.Exec(ctx, `DROP TABLE `+table+`, `+attempts)
		return err
	})
	if err != nil {
		return fmt.Errorf("dropping the deliveries of %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.days, name)
	return nil
}

// Positions are the next offsets of a topic of outcomes to apply, by partition. A
// partition without any is missing.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	rows, err := s.pool.Query(ctx, `SELECT partition, next_offset FROM delivery_positions WHERE topic = $1`, topic)
	if err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	at := map[int32]int64{}
	var p int32
	var next int64
	if _, err := pgx.ForEachRow(rows, []any{&p, &next}, func() error { at[p] = next; return nil }); err != nil {
		return nil, fmt.Errorf("reading positions: %w", err)
	}
	return at, nil
}

// lockDestinations comes before any change of the destinations' deliveries. It is
// a statement of its own, so that the next statement sees what others committed
// while it waited. All transactions lock destinations in one order, and change
// deliveries only under their destination's lock, so no two of them deadlock.
// Pairs may repeat.
func lockDestinations(ctx context.Context, tx pgx.Tx, kinds, ids []string) error {
	if _, err := tx.Exec(ctx, `
		SELECT FROM delivery_destinations
		WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY kind COLLATE "C", destination_id COLLATE "C" FOR UPDATE`, kinds, ids); err != nil {
		return fmt.Errorf("locking destinations: %w", err)
	}
	return nil
}

// destinationsOf reads kinds and ids.
func destinationsOf(rows pgx.Rows) (kinds, ids []string, err error) {
	var kind, id string
	_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
		kinds, ids = append(kinds, kind), append(ids, id)
		return nil
	})
	return kinds, ids, err
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func nullOf[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
