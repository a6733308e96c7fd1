package deliveries

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/kafka/consume"
	"quittance/internal/registry"
	"quittance/schemas/record"
)

// States of a delivery with at least one outcome. A delivery without an outcome
// has no row: it is only on its topic.
const (
	StateWaiting       = "waiting" // for its next attempt
	StateQueued        = "queued"  // on its topic
	StateDelivered     = "delivered"
	StateNeedsOperator = "needs_operator"
	StateExhausted     = "exhausted"
	StateSuperseded    = "superseded" // by a later event of its session; it is never sent again
)

// States lists all states.
var States = []string{StateWaiting, StateQueued, StateDelivered, StateNeedsOperator, StateExhausted, StateSuperseded}

// Retryable are the states from which an operator can have a delivery sent again.
var Retryable = []string{StateWaiting, StateNeedsOperator, StateExhausted}

// stateOf is the state of a delivery after an outcome.
var stateOf = map[Outcome]string{
	OutcomeDelivered:     StateDelivered,
	OutcomeFailed:        StateWaiting,
	OutcomeDeferred:      StateWaiting,
	OutcomeNeedsOperator: StateNeedsOperator,
	OutcomeExhausted:     StateExhausted,
	OutcomeSuperseded:    StateSuperseded,
}

// Known reports whether the outcome is one of Outcomes.
func (o Outcome) Known() bool { return stateOf[o] != "" }

// Store is the tables of deliveries in Postgres. Safe for concurrent use; several
// processes may use the same tables.
type Store struct {
	pool  *pgxpool.Pool
	kinds Kinds
	// configured are the destinations of a store of Configured; nil for another.
	configured map[destinationKey]bool

	days sync.Map // the suffixes of days whose tables are known to exist
}

// NewStore makes a store over the pool, which the caller closes.
func NewStore(pool *pgxpool.Pool, kinds Kinds) *Store {
	return &Store{pool: pool, kinds: kinds}
}

// destinationKey names a destination of any kind.
type destinationKey struct {
	kind Kind
	id   string
}

// Configured returns a store over the same pool that sends nothing again to a destination that the configuration does not have. It
// is for commands, whose kinds have no Directory.
func (s *Store) Configured(dir registry.Directory) *Store {
	out := NewStore(s.pool, s.kinds)
	out.configured = map[destinationKey]bool{}
	for _, e := range s.kinds.Entries(dir) {
		if e.RemovedAt.IsZero() {
			out.configured[destinationKey{e.Kind, e.ID}] = true
		}
	}
	return out
}

// Kinds returns the kinds that the store was made with.
func (s *Store) Kinds() Kinds { return s.kinds }

// tx runs do in a transaction. doing is the beginning of the error's text.
func (s *Store) tx(ctx context.Context, doing string, do func(pgx.Tx) error) error {
	err := pgx.BeginFunc(ctx, s.pool, do)
	if err != nil {
		s.days.Clear() // the database may be one that was restored from a backup, without the tables of today
	}
	return failed(doing, err)
}

// failed returns err behind the text of what was being done. It returns nil for nil.
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

// collect returns the rows of a query as structs. The fields of T are in the order of
// the columns.
func collect[T any](ctx context.Context, q querier, doing, sql string, args ...any) ([]T, error) {
	rows, _ := q.Query(ctx, sql, args...) // the rows carry its error
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	return out, failed(doing, err)
}

// collectMap returns the rows of a query with two columns, key and value.
func collectMap[K comparable, V any](ctx context.Context, q querier, doing, sql string, args ...any) (map[K]V, error) {
	rows, _ := q.Query(ctx, sql, args...) // the rows carry its error
	out := map[K]V{}
	var k K
	var v V
	_, err := pgx.ForEachRow(rows, []any{&k, &v}, func() error { out[k] = v; return nil })
	return out, failed(doing, err)
}

// day returns the UTC day of an event. A delivery is in the table of that day.
func day(occurredAt time.Time) time.Time {
	return occurredAt.UTC().Truncate(24 * time.Hour)
}

func suffix(day time.Time) string { return day.Format("20060102") }

// ensureDays makes the missing daily tables for the deliveries of outcomes.
func (s *Store) ensureDays(ctx context.Context, outcomes []*record.Attempt) error {
	missing := map[string]time.Time{}
	for _, a := range outcomes {
		d := day(a.Delivery.OccurredAt)
		if _, known := s.days.Load(suffix(d)); !known {
			missing[suffix(d)] = d
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err := s.tx(ctx, "making daily tables of deliveries", func(tx pgx.Tx) error {
		for _, d := range missing {
			if _, err := tx.Exec(ctx, `SELECT make_delivery_day($1)`, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range missing {
		s.days.Store(name, true)
	}
	return nil
}

// dropDay drops the tables of a day unless a delivery in them is still open.
func (s *Store) dropDay(ctx context.Context, d time.Time) error {
	var dropped bool
	err := s.tx(ctx, "dropping the deliveries of "+d.Format(time.DateOnly), func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT drop_delivery_day($1)`, d).Scan(&dropped)
	})
	if err == nil && dropped {
		s.days.Delete(suffix(d))
	}
	return err
}

// Positions returns, by partition, the offset of the next outcome to apply. The map
// lacks partitions of which nothing was applied.
func (s *Store) Positions(ctx context.Context, topic string) (map[int32]int64, error) {
	return positions.Read(ctx, s.pool, topic)
}

var positions = consume.Positions{Table: "delivery_positions", Next: "next_offset"}

// lockDestinations locks the rows of destinations (kind and id), which may repeat.
// It comes before any change of their deliveries. It is a statement of its own, so
// that the next statement sees what others committed while it waited. All
// transactions lock destinations in one order, and change deliveries only under
// their destination's lock, so no two of them deadlock.
func lockDestinations(ctx context.Context, tx pgx.Tx, destinations [][]any) error {
	_, err := tx.Exec(ctx, `
		SELECT FROM delivery_destinations
		WHERE (kind, destination_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY kind COLLATE "C", destination_id COLLATE "C" FOR UPDATE`, byColumn(destinations)...)
	return failed("locking destinations", err)
}

// destinationsOf returns the destinations (kind and id) that a query selects.
func destinationsOf(ctx context.Context, q querier, sql string, args ...any) ([][]any, error) {
	rows, _ := q.Query(ctx, sql, args...) // the rows carry its error
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
}

// byColumn transposes rows, of which there is at least one: it returns one array for
// each column, as unnest takes them.
func byColumn(rows [][]any) []any {
	columns := make([]any, len(rows[0]))
	for i := range columns {
		column := make([]any, len(rows))
		for n, row := range rows {
			column[n] = row[i]
		}
		columns[i] = column
	}
	return columns
}
