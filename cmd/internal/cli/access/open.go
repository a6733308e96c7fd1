package access

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/roles"
	"quittance/internal/clickhouse"
	"quittance/internal/commands"
	"quittance/internal/deliveries"
	"quittance/internal/disbursements"
	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/reconciliation"
	"quittance/schemas"
)

// OpenJournal opens ClickHouse.
func OpenJournal(ctx context.Context, m *cli.Meta) (clickhouse.Conn, error) {
	if err := m.Need("clickhouse"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, journalPatience)
	defer cancel()
	conn, err := clickhouse.Open(ctx, m.ClickHouse)
	if err != nil {
		return nil, err
	}
	if err := reconciliation.Check(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// journalPatience is how long a caller waits for ClickHouse.
const journalPatience = 5 * time.Second

// OpenTopics reads how the topics are partitioned, and the schemas of their records.
func OpenTopics(ctx context.Context, m *cli.Meta) (*kafka.Topology, *schemas.Codec, error) {
	cl, err := m.KafkaConfig().Client()
	if err != nil {
		return nil, nil, err
	}
	defer cl.Close()
	topology, err := kafka.Load(ctx, m.KafkaConfig(), cl)
	if err != nil {
		return nil, nil, err
	}
	codec, err := m.OpenSchemas(ctx, false)
	return topology, codec, err
}

// ReadModel is the read model, and what else reads Kafka.
type ReadModel struct {
	log      *slog.Logger
	Topology *kafka.Topology
	Codec    *schemas.Codec
	Sessions *sessions.Reader
}

// WithReader opens the read model and calls do.
func WithReader(ctx context.Context, m *cli.Meta, do func(ctx context.Context, r *ReadModel) error) (err error) {
	r := &ReadModel{}
	if r.log, err = m.Logger(m.Err); err != nil {
		return err
	}
	if r.Topology, r.Codec, err = OpenTopics(ctx, m); err != nil {
		return err
	}
	if r.Sessions, err = sessions.New(sessions.Config{Pool: m.Pool, Kafka: m.KafkaConfig(), Topology: r.Topology, Codec: r.Codec, Log: r.log}); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return r.Sessions.Run(running) })
	defer func() { stop(); err = errors.Join(err, g.Wait()) }()
	return do(ctx, r)
}

// ErrBehind is the error of commands that need the read model.
var ErrBehind = errors.New("the sink readmodel has not applied all events, so that the session is not known; check that `quittance sink readmodel` runs, then try again")

// WithProcessor opens the processor of checkout sessions and the read model, and calls do.
func WithProcessor(ctx context.Context, m *cli.Meta, do func(ctx context.Context, processor *commands.Checkout, reader *sessions.Reader) error) error {
	return WithReader(ctx, m, func(ctx context.Context, r *ReadModel) error {
		return withClient(ctx, m, r.log, r.Topology, schemas.Checkout, commands.CheckoutProtocol(r.Codec, r.Topology), func(processor *commands.Checkout) error {
			return do(ctx, processor, r.Sessions)
		})
	})
}

// WithBatches opens the processor of disbursement batches and their read model, and calls do.
func WithBatches(ctx context.Context, m *cli.Meta, do func(processor *commands.Disbursement, topology *kafka.Topology, batches *disbursements.Store) error) error {
	log, err := m.Logger(m.Err)
	if err != nil {
		return err
	}
	topology, codec, err := OpenTopics(ctx, m)
	if err != nil {
		return err
	}
	return withClient(ctx, m, log, topology, schemas.Disbursement, commands.DisbursementProtocol(codec, topology), func(processor *commands.Disbursement) error {
		return do(processor, topology, disbursements.NewStore(m.Pool, codec))
	})
}

// withClient opens a processor, which knows the commands of operators, and calls do.
func withClient[C, A any](ctx context.Context, m *cli.Meta, log *slog.Logger, topology *kafka.Topology, f schemas.Family, p commands.Protocol[C, A], do func(*commands.Client[C, A]) error) error {
	keys, err := m.OpenKeys()
	if err != nil {
		return err
	}
	signer, err := commands.NewSigner(keys, roles.ClientOperator)
	if err != nil {
		return err
	}
	processor, err := commands.New(ctx, commands.Config[C, A]{
		Kafka: m.KafkaConfig(), Topology: topology, Family: f, Signer: signer, Protocol: p, Log: log, Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		return err
	}
	// An interruption ends what do does, not the connection: an import discards its batch by it.
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var g errgroup.Group
	g.Go(func() error { return processor.Run(running) })
	err = do(processor)
	stop()
	return errors.Join(err, g.Wait())
}

// Deliveries returns the deliveries in the database, for operations that need no
// destinations.
func Deliveries(m *cli.Meta) *deliveries.Store {
	return deliveries.NewStore(m.Pool, roles.DeliveryKinds(nil))
}
