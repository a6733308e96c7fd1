package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
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

// ErrBehind says that the read model cannot show now what has been acknowledged.
var ErrBehind = barrier.ErrBehind

// ErrNotFound says that there is no such session for the caller.
var ErrNotFound = errors.New("no such session")

const defaultPageSize = 20

// queryTimeout bounds the reading of rows: a Postgres that hangs is one that is
// away.
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
	// Timeout is how long a read waits for what has been acknowledged; 2 s when
	// zero.
	Timeout time.Duration
}

// Reader reads sessions. Session, ByID and List show everything that was
// acknowledged to anybody before the call (the barrier), and answer ErrBehind
// when they cannot, which is also what they answer while Run does not run. It is
// safe for concurrent use.
type Reader struct {
	cfg     Config
	client  *kgo.Client
	barrier *barrier.Barrier
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
		cfg: cfg, client: client,
		barrier: barrier.New(barrier.Config{
			Client: client, Topic: cfg.Topology.Name(schemas.TopicEvents), Partitions: cfg.Topology.Count(schemas.TopicEvents),
			Positions: NewStore(cfg.Pool).Positions, Timeout: cfg.Timeout, Metrics: cfg.Metrics,
		}),
	}, nil
}

// Run asks on behalf of the reads until ctx ends; it returns nil then and the
// reader is of no more use.
func (r *Reader) Run(ctx context.Context) error {
	defer r.client.Close()
	return r.barrier.Run(ctx)
}

// Query names one session and who asks for it.
type Query struct {
	ID             string
	ApplicationIDs []string // whose sessions the caller may see
	Live           bool
}

// Session is one session that the caller may see. Errors are ErrNotFound,
// ErrBehind and those of ctx.
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

// ByID is a session for who holds its id: the citizen's pages. Errors are those
// of Session.
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
	case reached < marks[partition]:
		return checkout.Session{}, errRebuilt
	case value == nil:
		return checkout.Session{}, ErrNotFound
	}
	return r.decode(value)
}

// errRebuilt says that the read model has been emptied, or restored, since the
// barrier was passed.
var errRebuilt = fmt.Errorf("%w: it is being built again", ErrBehind)

// Statuses returns the sessions that Postgres holds, by id, for pages that watch:
// without the barrier, in one query. They are never older than an earlier answer of
// Session, ByID or List, except while the read model is rebuilt: then a session may be
// missing or older, and pages ask again.
func (r *Reader) Statuses(ctx context.Context, ids []string) (map[string]checkout.Session, error) {
	var values [][]byte
	err := r.query(ctx, func(ctx context.Context) error {
		rows, err := r.cfg.Pool.Query(ctx, `SELECT snapshot FROM sessions WHERE id = ANY($1)`, ids)
		if err == nil {
			values, err = pgx.CollectRows(rows, pgx.RowTo[[]byte])
		}
		return err
	})
	if err != nil {
		return nil, err
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

// Filter selects sessions. Empty fields select everything; filters are exact
// (contract decisions § 9).
type Filter struct {
	// TenantIDs are the agencies of ApplicationIDs. List waits for everything that
	// was acknowledged for them.
	TenantIDs []string
	// ApplicationIDs own the sessions that the caller may see; none selects nothing.
	ApplicationIDs []string
	Live           bool
	OrderID        string
	Status         checkout.Status
	CustomerID     string
	PaymentRef     string
	Page           int // from 1, which 0 means as well
	PageSize       int // 20 when 0
}

// List is a page of sessions, newest first by id, and how many there are on all
// pages. Errors are ErrBehind and those of ctx.
func (r *Reader) List(ctx context.Context, f Filter) (items []checkout.Session, total int64, err error) {
	if len(f.ApplicationIDs) == 0 {
		return nil, 0, nil
	}
	if len(f.TenantIDs) == 0 {
		return nil, 0, errors.New("listing sessions: the filter names applications without their agencies")
	}
	var partitions []int32
	for _, id := range f.TenantIDs {
		if p := r.cfg.Topology.Partition(schemas.TopicEvents, id); !slices.Contains(partitions, p) {
			partitions = append(partitions, p)
		}
	}
	marks, err := r.barrier.Wait(ctx, partitions...)
	if err != nil {
		return nil, 0, err
	}
	where, args := f.where()
	var values [][]byte
	reached := map[int32]int64{}
	err = r.query(ctx, func(ctx context.Context) error {
		// One snapshot of the database, so that the total is that of the page and the
		// positions are those of the rows.
		return pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			batch := &pgx.Batch{}
			batch.Queue(positions.Select(), r.cfg.Topology.Name(schemas.TopicEvents)).Query(func(found pgx.Rows) (err error) {
				reached, err = positions.Collect(found)
				return err
			})
			batch.Queue("SELECT count(*) FROM sessions"+where, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&total) })
			size := int64(cmp.Or(f.PageSize, defaultPageSize))
			page := append(slices.Clone(args), size, int64(max(f.Page, 1)-1)*size)
			batch.Queue(fmt.Sprintf("SELECT snapshot FROM sessions%s ORDER BY id DESC LIMIT $%d OFFSET $%d", where, len(page)-1, len(page)), page...).
				Query(func(found pgx.Rows) (err error) {
					values, err = pgx.CollectRows(found, pgx.RowTo[[]byte])
					return err
				})
			return tx.SendBatch(ctx, batch).Close()
		})
	})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range partitions {
		if reached[p] < marks[p] {
			return nil, 0, errRebuilt
		}
	}
	items = make([]checkout.Session, len(values))
	for i, value := range values {
		if items[i], err = r.decode(value); err != nil {
			return nil, 0, err
		}
	}
	return items, total, nil
}

// decode is the session of a stored snapshot.
func (r *Reader) decode(value []byte) (checkout.Session, error) {
	_, s, err := Read(r.cfg.Codec, value)
	switch {
	case errors.Is(err, schemas.ErrUndecodable):
		return checkout.Session{}, fmt.Errorf("reading a stored session: %w", err)
	case err != nil: // a schema registry that is away
		return checkout.Session{}, fmt.Errorf("reading a stored session: %w: %w", ErrBehind, err)
	}
	return s.Session, nil
}

// where is the condition with its arguments. Only what is asked for stands in
// it, so that Postgres finds the index for it.
func (f Filter) where() (string, []any) {
	var conditions []string
	var args []any
	is := func(column string, value any) {
		args = append(args, value)
		conditions = append(conditions, fmt.Sprintf("%s = $%d", column, len(args)))
	}
	if len(f.ApplicationIDs) == 1 {
		is("application_id", f.ApplicationIDs[0])
	} else {
		args = append(args, f.ApplicationIDs)
		conditions = append(conditions, "application_id = ANY($1)")
	}
	is("livemode", f.Live)
	for _, c := range []struct{ column, value string }{
		{"order_id", f.OrderID}, {"status", string(f.Status)}, {"customer_id", f.CustomerID}, {"payment_ref", f.PaymentRef},
	} {
		if c.value != "" {
			is(c.column, c.value)
		}
	}
	return " WHERE " + strings.Join(conditions, " AND "), args
}

// query runs one reading of rows. A Postgres that is away makes the read model
// ErrBehind.
func (r *Reader) query(ctx context.Context, read func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	err := read(bounded)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("reading sessions: %w", ctx.Err())
	}
	return fmt.Errorf("reading sessions: %w: %w", ErrBehind, err)
}
