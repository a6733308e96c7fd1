package deliveries

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/kafka/consume"
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

// tx runs do in a transaction. doing says what for, in the error.
func (s *Store) tx(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	return failed(doing, pgx.BeginFunc(ctx, s.pool, do))
}

// failed returns err with what was being done; nil when err is nil.
func failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect returns the rows of a query. A row is a struct T with its columns in their
// order.
func collect[T any](ctx context.Context, q querier, doing, sql string, args ...any) ([]T, error) {
	rows, _ := q.Query(ctx, sql, args...) // the rows carry its error
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	return out, failed(doing, err)
}

// collectMap returns the rows of a query that has two columns: key and value.
func collectMap[K comparable, V any](ctx context.Context, q querier, doing, sql string, args ...any) (map[K]V, error) {
	rows, _ := q.Query(ctx, sql, args...) // the rows carry its error
	out := map[K]V{}
	var k K
	var v V
	_, err := pgx.ForEachRow(rows, []any{&k, &v}, func() error { out[k] = v; return nil })
	return out, failed(doing, err)
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
	err := s.tx(ctx, "making daily tables of deliveries", func(tx pgx.Tx) error {
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
		return err
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
	err := s.tx(ctx, "dropping the deliveries of "+name, func(tx pgx.Tx) error {
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
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.days, name)
	return nil
}

// Positions are the next offsets of a topic of outcomes to apply, by partition. A
// partition without any is missing.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	return positions.Read(ctx, s.pool, topic)
}

var positions = consume.Positions{Table: "delivery_positions", Next: "next_offset"}

// lockDestinations comes before any change of the destinations' deliveries. It is
// a statement of its own, so that the next statement sees what others committed
// while it waited. All transactions lock destinations in one order, and change
// deliveries only under their destination's lock, so no two of them deadlock.
// Pairs may repeat.
func lockDestinations(ctx context.Context, tx pgx.Tx, kinds, ids []string) error {
	_, err := tx.Exec(ctx, `
		SELECT FROM delivery_destinations
		WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY kind COLLATE "C", destination_id COLLATE "C" FOR UPDATE`, kinds, ids)
	return failed("locking destinations", err)
}

// destinationsOf returns the kinds and ids of a query.
func destinationsOf(ctx context.Context, q querier, sql string, args ...any) (kinds, ids []string, err error) {
	rows, _ := q.Query(ctx, sql, args...) // the rows carry its error
	var kind, id string
	_, err = pgx.ForEachRow(rows, []any{&kind, &id}, func() error {
		kinds, ids = append(kinds, kind), append(ids, id)
		return nil
	})
	return kinds, ids, err
}
