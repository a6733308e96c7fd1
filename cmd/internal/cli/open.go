package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"quittance/checkout"
	"quittance/cmd/internal/roles"
	"quittance/internal/clickhouse"
	"quittance/internal/commands"
	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/sessions"
	"quittance/reconciliation"
	"quittance/schemas"
)

// openJournal opens ClickHouse.
func (m *Meta) openJournal(ctx context.Context) (clickhouse.Conn, error) {
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

// openTopics reads how the topics are partitioned, and the schemas of their records.
func (m *Meta) openTopics(ctx context.Context) (*kafka.Topology, *schemas.Codec, error) {
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

// readModel is the read model, and what else reads Kafka.
type readModel struct {
	log      *slog.Logger
	topology *kafka.Topology
	codec    *schemas.Codec
	sessions *sessions.Reader
}

// withReader opens the read model and calls do.
func (m *Meta) withReader(ctx context.Context, do func(ctx context.Context, r *readModel) error) (err error) {
	r := &readModel{}
	if r.log, err = m.Logger(m.Err); err != nil {
		return err
	}
	if r.topology, r.codec, err = m.openTopics(ctx); err != nil {
		return err
	}
	if r.sessions, err = sessions.New(sessions.Config{Pool: m.pool, Kafka: m.KafkaConfig(), Topology: r.topology, Codec: r.codec, Log: r.log}); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	var g errgroup.Group
	g.Go(func() error { return r.sessions.Run(running) })
	defer func() { stop(); err = errors.Join(err, g.Wait()) }()
	return do(ctx, r)
}

// errBehind is the error of commands that need the read model.
var errBehind = errors.New("the sink readmodel has not applied all events, so that the session is not known; check that `quittance sink readmodel` runs, then try again")

// withProcessor opens the processor of checkout sessions and the read model, and calls do.
func (m *Meta) withProcessor(ctx context.Context, do func(ctx context.Context, processor *commands.Checkout, reader *sessions.Reader) error) error {
	return m.withReader(ctx, func(ctx context.Context, r *readModel) (err error) {
		processor, err := commands.New(ctx, commands.Config[checkout.Command, checkout.Answer]{
			Kafka: m.KafkaConfig(), Topology: r.topology, Family: schemas.Checkout, Protocol: commands.CheckoutProtocol(r.codec, r.topology), Log: r.log, Metrics: prometheus.NewRegistry(),
		})
		if err != nil {
			return err
		}
		running, stop := context.WithCancel(ctx)
		var g errgroup.Group
		g.Go(func() error { return processor.Run(running) })
		defer func() { stop(); err = errors.Join(err, g.Wait()) }()
		return do(ctx, processor, r.sessions)
	})
}

// deliveries returns the deliveries in the database, for operations that need no
// destinations.
func (m *Meta) deliveries() *deliveries.Store {
	return deliveries.NewStore(m.pool, roles.DeliveryKinds(nil))
}
