package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/kafka/barrier"
	"quittance/schemas"
)

// ErrBehind says that the read model does not yet hold everything that was acknowledged.
var ErrBehind = barrier.ErrBehind

// ErrNotFound says that the caller can see no such session.
var ErrNotFound = errors.New("no such session")

const defaultPageSize = 20

// queryTimeout is the time-out of reading rows. After it Postgres counts as away.
const queryTimeout = 2 * time.Second

// Config of a Reader. Fields without a default are required.
type Config struct {
	Pool     *pgxpool.Pool
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	Log      *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Timeout is how long a read waits until the read model holds everything that was
	// acknowledged; 2 s when zero.
	Timeout time.Duration
}

// Reader reads sessions. Session, ByID and List show everything that was acknowledged to
// any caller before the call (the barrier). When they cannot, and while Run does not run,
// they return ErrBehind. It is safe for concurrent use.
type Reader struct {
	cfg     Config
	client  *kgo.Client
	barrier *barrier.Barrier
	// proven holds, for each partition, the mark of the last read that passed the barrier.
	// Positions below it mean that the read model was emptied or restored.
	proven []atomic.Int64
}

// New makes a reader. It connects when it runs.
func New(cfg Config) (*Reader, error) {
	if cfg.Pool == nil || len(cfg.Kafka.Brokers) == 0 || cfg.Topology == nil || cfg.Codec == nil || cfg.Log == nil {
		return nil, errors.New("read model: Pool, Kafka.Brokers, Topology, Codec and Log are required")
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	client, err := cfg.Kafka.Client()
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return &Reader{
		cfg: cfg, client: client, proven: make([]atomic.Int64, cfg.Topology.Count(schemas.TopicEvents)),
		barrier: barrier.New(barrier.Config{
			Client: client, Topic: cfg.Topology.Name(schemas.TopicEvents), Partitions: cfg.Topology.Count(schemas.TopicEvents),
			Positions: NewStore(cfg.Pool).Positions, Timeout: cfg.Timeout, Metrics: cfg.Metrics,
		}),
	}, nil
}

// Run serves the barrier of all reads until ctx ends, then returns nil. The reader cannot
// be used afterwards.
func (r *Reader) Run(ctx context.Context) error {
	defer r.client.Close()
	return r.barrier.Run(ctx)
}

// Query asks for one session on behalf of a caller.
type Query struct {
	ID             string
	ApplicationIDs []string // the caller may see the sessions of these applications
	Live           bool
}

// Session returns a session that the caller may see. Errors are ErrNotFound, ErrBehind
// and those of ctx.
func (r *Reader) Session(ctx context.Context, q Query) (checkout.Session, error) {
	s, err := r.ByID(ctx, q.ID)
	if err != nil {
		return checkout.Session{}, err
	}
	if s.Live != q.Live || !slices.Contains(q.ApplicationIDs, s.ApplicationID) {
		return checkout.Session{}, ErrNotFound
	}
	return s, nil
}

// ByID returns a session by its id alone, for the citizen's pages. Errors are those of
// Session.
func (r *Reader) ByID(ctx context.Context, id string) (checkout.Session, error) {
	partition, err := checkout.SessionPartition(id)
	if err != nil || partition >= r.cfg.Topology.Count(schemas.TopicEvents) {
		return checkout.Session{}, ErrNotFound
	}
	marks, err := r.barrier.Wait(ctx, partition)
	if err != nil {
		return checkout.Session{}, err
	}
	var reached int64
	var value []byte
	err = r.query(ctx, func(ctx context.Context) error {
		// One statement sees one snapshot of the database.
		return r.cfg.Pool.QueryRow(ctx, `SELECT
			coalesce((SELECT next FROM readmodel_positions WHERE topic = $1 AND partition = $2), 0),
			(SELECT snapshot FROM sessions WHERE id = $3)`, r.cfg.Topology.Name(schemas.TopicEvents), partition, id).Scan(&reached, &value)
	})
	switch {
	case err != nil:
		return checkout.Session{}, err
	case !r.prove(marks, map[int32]int64{partition: reached}, partition):
		return checkout.Session{}, errRebuilt
	case value == nil:
		return checkout.Session{}, ErrNotFound
	}
	return r.decode(value)
}

// errRebuilt says that the read model was emptied or restored after the barrier was
// passed.
var errRebuilt = fmt.Errorf("%w: it has lost rows that it had, so it was emptied or restored, and has not caught up", ErrBehind)

// prove reports whether positions of a snapshot have reached the marks that the barrier
// returned for the partitions. Only then may the rows of that snapshot be used.
func (r *Reader) prove(marks, reached map[int32]int64, partitions ...int32) bool {
	for _, p := range partitions {
		if reached[p] < marks[p] {
			r.barrier.Forget()
			return false
		}
	}
	for _, p := range partitions {
		r.proven[p].Store(marks[p])
	}
	return true
}

// Statuses returns sessions by id for pages that watch them, in one query and without
// waiting at the barrier. They are not older than an earlier result of Session, ByID or
// List: after the read model was emptied or restored, the error is ErrBehind until it has
// caught up. A session that is missing in the result may exist: only ByID proves that it
// does not.
func (r *Reader) Statuses(ctx context.Context, ids []string) (map[string]checkout.Session, error) {
	var values [][]byte
	var reached map[int32]int64
	err := r.query(ctx, func(ctx context.Context) error {
		return r.snapshot(ctx, &reached, func(batch *pgx.Batch) {
			batch.Queue(`SELECT snapshot FROM sessions WHERE id = ANY($1)`, ids).Query(collect(&values))
		}, nil)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		p, err := checkout.SessionPartition(id)
		if err == nil && int(p) < len(r.proven) && reached[p] < r.proven[p].Load() {
			r.barrier.Forget()
			return nil, errRebuilt
		}
	}
	out := make(map[string]checkout.Session, len(values))
	for _, value := range values {
		s, err := r.decode(value)
		if err != nil {
			return nil, err
		}
		out[s.ID] = s
	}
	return out, nil
}

// oneSnapshot begins a transaction that reads the table sessions and its positions in one
// snapshot. The lock comes before the snapshot: the TRUNCATE of Empty is seen by snapshots
// that are older than it, so a transaction that has read the positions could find an empty
// table. (A single statement locks its tables before it takes its snapshot.)
var oneSnapshot = pgx.TxOptions{BeginQuery: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE sessions IN ACCESS SHARE MODE`}

// snapshot reads the positions, runs the queries of fill and then, unless that is nil, in one
// snapshot of the database, so that they agree.
func (r *Reader) snapshot(ctx context.Context, reached *map[int32]int64, fill func(*pgx.Batch), then func(context.Context, pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.cfg.Pool, oneSnapshot, func(tx pgx.Tx) error {
		batch := &pgx.Batch{}
		batch.Queue(positions.Select(), r.cfg.Topology.Name(schemas.TopicEvents)).Query(func(found pgx.Rows) (err error) {
			*reached, err = positions.Collect(found)
			return err
		})
		fill(batch)
		if err := tx.SendBatch(ctx, batch).Close(); err != nil || then == nil {
			return err
		}
		return then(ctx, tx)
	})
}

// collect returns a function that puts the snapshots of a query into values.
func collect(values *[][]byte) func(pgx.Rows) error {
	return func(found pgx.Rows) (err error) {
		*values, err = pgx.CollectRows(found, pgx.RowTo[[]byte])
		return err
	}
}

// Filter selects sessions. An empty field selects all; others must be equal (contract
// docs/design/decisions.md § 9).
type Filter struct {
	// TenantIDs are the agencies of ApplicationIDs. List waits for everything that was
	// acknowledged for them.
	TenantIDs []string
	// ApplicationIDs are the owners of the sessions that the caller may see. An empty list
	// selects no session.
	ApplicationIDs []string
	Live           bool
	OrderID        string
	Status         checkout.Status
	CustomerID     string
	PaymentRef     string
	// CompletedFrom (inclusive) and CompletedTo (exclusive) bound the time at which sessions
	// were completed, and select completed ones only. Nil: no bound.
	CompletedFrom, CompletedTo *time.Time
	Page                       int // from 1; 0 means 1
	PageSize                   int // 20 when 0
}

// List returns a page of sessions, sorted by id with the newest first, and the total on
// all pages, which is exact and costs a look at each of them. People's pages use Page. Errors are ErrBehind and those of ctx.
func (r *Reader) List(ctx context.Context, f Filter) (items []checkout.Session, total int64, err error) {
	if len(f.ApplicationIDs) == 0 {
		return nil, 0, nil
	}
	if len(f.TenantIDs) == 0 {
		return nil, 0, errors.New("listing sessions: the filter names applications without their agencies")
	}
	found := f.scan()
	size := int64(cmp.Or(f.PageSize, defaultPageSize))
	skip := int64(max(f.Page, 1)-1) * size
	err = r.consistent(ctx, r.partitionsOf(f.TenantIDs), func(batch *pgx.Batch) {
		batch.Queue(found.total(), found.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
	}, func(ctx context.Context, tx pgx.Tx) (err error) {
		if skip < total {
			items, err = r.some(ctx, tx, found, skip, size)
		}
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return items, total, nil
}

// partitionsOf returns the partitions of agencies, each once.
func (r *Reader) partitionsOf(tenantIDs []string) (partitions []int32) {
	for _, id := range tenantIDs {
		if p := r.cfg.Topology.Partition(schemas.TopicEvents, id); !slices.Contains(partitions, p) {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// consistent runs the queries of fill, and then, in one snapshot of the database that has everything
// that was acknowledged in the partitions. then may be nil. When the error is not nil, what they have
// read must not be used.
func (r *Reader) consistent(ctx context.Context, partitions []int32, fill func(*pgx.Batch), then func(context.Context, pgx.Tx) error) error {
	marks, err := r.barrier.Wait(ctx, partitions...)
	if err != nil {
		return err
	}
	var reached map[int32]int64
	err = r.query(ctx, func(ctx context.Context) error { return r.snapshot(ctx, &reached, fill, then) })
	if err == nil && !r.prove(marks, reached, partitions...) {
		err = errRebuilt
	}
	return err
}

// decoded reads the sessions of stored snapshots.
func (r *Reader) decoded(values [][]byte) (items []checkout.Session, err error) {
	items = make([]checkout.Session, len(values))
	for i, value := range values {
		if items[i], err = r.decode(value); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// decode reads the session of a stored snapshot.
func (r *Reader) decode(value []byte) (checkout.Session, error) {
	_, s, err := read(r.cfg.Codec, value)
	switch {
	case errors.Is(err, schemas.ErrUndecodable):
		return checkout.Session{}, fmt.Errorf("reading a stored session: %w", err)
	case err != nil: // the schema registry is away
		return checkout.Session{}, fmt.Errorf("reading a stored session: %w: %w", ErrBehind, err)
	}
	return s.Session, nil
}

// scan returns the scan of the filter.
func (f Filter) scan() *scan {
	s := newScan(f.ApplicationIDs, f.Live)
	s.equal([2]string{"order_id", f.OrderID}, [2]string{"status", string(f.Status)}, [2]string{"customer_id", f.CustomerID}, [2]string{"payment_ref", f.PaymentRef})
	if f.CompletedFrom != nil {
		s.and("completed_at >=", *f.CompletedFrom)
	}
	if f.CompletedTo != nil {
		s.and("completed_at <", *f.CompletedTo)
	}
	return s
}

// query runs read with a time-out. While Postgres is away the error is ErrBehind.
func (r *Reader) query(ctx context.Context, read func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := read(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("reading sessions: %w", ctx.Err())
	case errors.Is(err, schemas.ErrUndecodable):
		return err // of a row: Postgres is there
	}
	return fmt.Errorf("reading sessions: %w: %w", ErrBehind, err)
}
