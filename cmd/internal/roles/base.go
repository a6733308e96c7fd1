package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/internal/build"
	"quittance/internal/citizens"
	"quittance/internal/clickhouse"
	"quittance/internal/clock"
	"quittance/internal/commands"
	"quittance/internal/connector/all"
	"quittance/internal/erp"
	"quittance/internal/erpquery"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/notify"
	"quittance/internal/personal"
	"quittance/internal/postgres"
	"quittance/internal/pulse"
	"quittance/internal/receipts"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/sessions"
	"quittance/reconciliation"
	"quittance/schemas"
)

// Base has what the roles of a process share. Open makes it. A part that not every
// role needs is opened by its first user. Wait closes all parts.
type Base struct {
	Settings
	Log        *slog.Logger
	Metrics    *prometheus.Registry
	Topology   *kafka.Topology
	Codec      *schemas.Codec
	Pool       *postgres.Pool       // after OpenPostgres
	Keys       *secret.Keys         // in roles that need master keys, and after OpenRegistry
	Registry   *registry.Registry   // after OpenRegistry
	Identities *identity.Identities // after OpenRegistry
	Personal   *personal.Store      // after OpenRegistry
	// References is the key of references and ids, in roles that need it.
	References *secret.ReferenceKey
	// Now is the time of the service.
	Now func() time.Time
	// Machine returns the machine's time, which records have, at a time of the service.
	Machine MachineTime

	opened struct { // each by the method of Base that returns it
		commands once[*commands.Checkout]
		batches  once[*commands.Disbursement]
		queries  once[*erpquery.Client]
		dues     once[*erp.Dues]
		sessions once[*sessions.Reader]
		messages once[*notify.Sender]
		receipts once[*receipts.Store]
		accounts once[*citizens.Store]
		edge     once[*edge]
		measure  once[func(http.Handler) http.Handler] // requests of all hosts of the process
	}

	served servedMetrics
	lags   *lags
	group  *errgroup.Group
	ctx    context.Context //nolint:containedctx // the context of group: it ends after the servers
	stop   context.CancelFunc
	ending *ending
	pulse  pulse.Monitor
	// patient is true for a role that runs for itself: it waits for what it needs. awaited is what
	// it waits for; nil when it has started.
	patient bool
	awaited atomic.Pointer[string]
	clock   *skew // once a role with Postgres has started

	mu      sync.Mutex
	ready   map[string]func() error
	servers []*http.Server
	close   []func()
}

// Open opens what every role needs: the topics, the schemas and the clock.
func Open(ctx context.Context, s Settings, log *slog.Logger) (*Base, error) {
	if err := s.Need("kafka", "schema-registry"); err != nil {
		return nil, err
	}
	s.print(log)
	b := newBase(ctx, s, log)
	if err := b.open(b.ctx); err != nil {
		b.stop()
		_ = b.Wait() // the parts that ran meanwhile
		return nil, err
	}
	return b, nil
}

// newBase makes a base whose parts run until ctx has ended and the servers are drained.
func newBase(ctx context.Context, s Settings, log *slog.Logger) *Base {
	parts, stop := context.WithCancel(context.WithoutCancel(ctx))
	group, running := errgroup.WithContext(parts)
	b := &Base{
		Settings: s, Log: log, Metrics: prometheus.NewRegistry(), Now: clock.Now, Machine: sameTime,
		group: group, ctx: running, stop: stop, ending: newEnding(), ready: map[string]func() error{},
	}
	b.Metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	b.served, b.lags = newServedMetrics(b.Metrics), newLags(b.Metrics)
	is := build.Read()
	promauto.With(b.Metrics).NewGauge(prometheus.GaugeOpts{
		Name: "quittance_build_info", Help: "Always 1; the labels say which program runs.", ConstLabels: prometheus.Labels{"release": is.Release, "version": is.Version(), "go": is.Go},
	}).Set(1)
	group.Go(func() error {
		defer stop()
		select {
		case <-ctx.Done():
			b.drain()
		case <-running.Done():
		}
		return nil
	})
	return b
}

func (b *Base) open(ctx context.Context) error {
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := b.await("Kafka", func() error { return b.loadTopics(ctx, cl) }); err != nil {
		return err
	}
	err = b.await("the schema registry", func() (err error) {
		b.Codec, err = b.OpenSchemas(ctx, false)
		return err
	})
	if err != nil {
		return err
	}
	if err := b.await("Kafka", func() error { return kafka.CheckKeys(ctx, b.KafkaConfig(), b.Topology, b.Codec) }); err != nil {
		return err
	}
	if b.Options.Clock == nil {
		return nil
	}
	if err := b.OpenPostgres(); err != nil {
		return err
	}
	moved, err := b.Options.Clock(ctx, b.Pool, b.Log)
	if err != nil {
		return err
	}
	b.Now, b.Machine = moved.Now, moved.Machine
	b.Run("clock", moved.Run)
	return nil
}

// loadTopics waits up to a minute for a broker that does not answer. Commands and broker
// may start at the same time, for example after a power cut.
func (b *Base) loadTopics(ctx context.Context, cl *kgo.Client) (err error) {
	patience := time.Now().Add(time.Minute)
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		b.Topology, err = kafka.Load(try, b.KafkaConfig(), cl)
		cancel()
		if refused := b.KafkaConfig().Security.Refused(err); refused != nil {
			return refused
		}
		if err == nil || errors.Is(err, kafka.ErrTopics) || kafka.IsDenied(err) || b.patient || ctx.Err() != nil || time.Now().After(patience) {
			return err
		}
		b.Log.Warn("waiting for Kafka", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// checkTopics refuses topics that may lose payments. Developers' installations may have
// them.
func (b *Base) checkTopics() error {
	if b.Developer() {
		return nil
	}
	cl, err := b.KafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	_, err = kafka.CheckDurability(ctx, b.KafkaConfig(), cl, b.AcceptsOneReplica())
	return err
}

// OpenPostgres opens the pool unless it is open. A database with pending migrations is
// an error.
func (b *Base) OpenPostgres() (err error) {
	if b.Pool != nil {
		return nil
	}
	err = b.await("Postgres", func() (err error) {
		b.Pool, err = b.Settings.OpenPostgres(b.ctx)
		return err
	})
	if err == nil {
		b.close = append(b.close, b.Pool.Close)
	}
	return err
}

// OpenRegistry opens the master keys, the configuration and the identities unless they
// are open, and keeps configuration and identities current.
func (b *Base) OpenRegistry() error {
	if b.Registry != nil {
		return nil
	}
	if err := b.OpenPostgres(); err != nil {
		return err
	}
	if err := b.openKeys(); err != nil {
		return err
	}
	cfg := registry.Config{Pool: b.Pool, Keys: b.Keys, Log: b.Log, Now: b.Now, Metrics: b.Metrics, Operators: all.Operators()}
	if b.Simulators {
		cfg.Simulators = b.SimulatorURL
	}
	reg, err := registry.Open(b.ctx, cfg)
	if err != nil {
		return err
	}
	ids, err := identity.Open(b.ctx, identity.Config{Registry: reg, Pool: b.Pool, Keys: b.Keys, Log: b.Log, Now: b.Now, Demo: b.PlainSecrets})
	if err != nil {
		return err
	}
	if b.Personal, err = personal.New(personal.Config{Pool: b.Pool, Keys: b.Keys, Now: b.Now}); err != nil {
		return err
	}
	if err := b.refuseDemoSecrets(reg, ids); err != nil {
		return err
	}
	b.Registry, b.Identities = reg, ids
	b.Run("registry", reg.Run)
	return nil
}

// openKeys opens the master keys unless they are open.
func (b *Base) openKeys() (err error) {
	if b.Keys == nil {
		b.Keys, err = b.OpenKeys()
	}
	return err
}

// openReferenceKey opens the reference key unless it is open.
func (b *Base) openReferenceKey() (err error) {
	if b.References == nil {
		b.References, err = b.OpenReferenceKey()
	}
	return err
}

// once holds a part that its first user opens.
type once[T any] struct {
	part T
	is   bool
}

// open returns the part. It is opened again after an error.
func (o *once[T]) open(open func() (T, error)) (T, error) {
	if o.is {
		return o.part, nil
	}
	part, err := open()
	if err == nil {
		o.part, o.is = part, true
	}
	return part, err
}

// commands returns the client of the processor of checkout sessions, which signs as a role. All roles of
// the process share its connections. It needs the master keys.
func (b *Base) commands(r Role) (*commands.Checkout, error) {
	return clientOf(b, r, &b.opened.commands, "commands", schemas.Checkout, commands.CheckoutProtocol(b.Codec, b.Topology))
}

// disbursements returns the client of the processor of disbursement batches, like commands.
func (b *Base) disbursements(r Role) (*commands.Disbursement, error) {
	return clientOf(b, r, &b.opened.batches, "commands of batches", schemas.Disbursement, commands.DisbursementProtocol(b.Codec, b.Topology))
}

// OfficeBatches returns what sends commands about batches as the pages of staff do, after the role office has started. Demo
// people of developer mode are enrolled by it.
func (b *Base) OfficeBatches() (*commands.Disbursement, error) { return b.disbursements(officeRole()) }

// clientOf returns the client of a processor, which runs under a name and signs as a role.
func clientOf[C, A any](b *Base, r Role, opened *once[*commands.Client[C, A]], name string, f schemas.Family, p commands.Protocol[C, A]) (*commands.Client[C, A], error) {
	signer, err := commands.NewSigner(b.Keys, r.Name)
	if err != nil {
		return nil, err
	}
	shared, err := opened.open(func() (*commands.Client[C, A], error) {
		c, err := commands.New(b.ctx, commands.Config[C, A]{
			Kafka: b.KafkaConfig(), Topology: b.Topology, Family: f, Signer: signer, Protocol: p, Log: b.Log, Metrics: b.Metrics,
		})
		if err == nil {
			b.Run(name, c.Run)
		}
		return c, err
	})
	if err != nil {
		return nil, err
	}
	return shared.As(signer), nil
}

// sessionReader starts the reads of sessions, which all roles of the process share.
func (b *Base) sessionReader() (*sessions.Reader, error) {
	return b.opened.sessions.open(func() (*sessions.Reader, error) {
		r, err := sessions.New(sessions.Config{Pool: b.Pool, Kafka: b.KafkaConfig(), Topology: b.Topology, Codec: b.Codec, Log: b.Log, Metrics: b.Metrics})
		if err == nil {
			b.Run("read model", r.Run)
		}
		return r, err
	})
}

// OpenClickHouse opens a connection. Wait closes it. A schema that is not up to date is
// an error.
func (b *Base) OpenClickHouse() (clickhouse.Conn, error) {
	return b.openClickHouse(func(clickhouse.Conn) error { return nil })
}

// openJournal is OpenClickHouse for a role. Rights that it lacks or, in production, must not have, are an error.
func (b *Base) openJournal(role string) (clickhouse.Conn, error) {
	return b.openClickHouse(func(conn clickhouse.Conn) error { return b.CheckJournal(b.ctx, conn, role) })
}

func (b *Base) openClickHouse(check func(clickhouse.Conn) error) (clickhouse.Conn, error) {
	if err := b.Need("clickhouse"); err != nil {
		return nil, err
	}
	var conn clickhouse.Conn
	err := b.await("ClickHouse", func() (err error) {
		if conn, err = clickhouse.Open(b.ctx, b.ClickHouse); err != nil {
			return err
		}
		if err = reconciliation.Check(b.ctx, conn); err != nil {
			_ = conn.Close()
			return fmt.Errorf("%w; run `%s migrate`", err, b.Program)
		}
		if err = check(conn); err != nil {
			_ = conn.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	b.close = append(b.close, func() { _ = conn.Close() })
	return conn, nil
}

// Start starts roles. When one of them cannot start, all roles end and Wait returns the
// error.
func (b *Base) Start(roles ...func(*Base) error) {
	for _, start := range roles {
		if err := start(b); err != nil {
			if b.ending.begun.Load() && b.ctx.Err() != nil {
				return // it was stopped while it started
			}
			b.group.Go(func() error { return err })
			return
		}
	}
}

// Run runs a part until the roles end. An error of the part ends them.
func (b *Base) Run(name string, part func(context.Context) error) {
	b.group.Go(func() error {
		if err := part(b.pulse.In(b.ctx)); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// add makes a part of a role and runs it.
func add[C any, P interface {
	Run(ctx context.Context) error
}](b *Base, name string, make func(C) (P, error), cfg C) error {
	part, err := make(cfg)
	if err == nil {
		b.Run(name, part.Run)
	}
	return err
}

// readyWhen adds a condition of /readyz.
func (b *Base) readyWhen(name string, check func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[name] = check
}

// turnsWithin is how long a loop may take for a turn.
const turnsWithin = 2 * time.Minute

// unhealthy returns an error that names the loops that hang, or nil. Only a restart helps then.
func (b *Base) unhealthy() error { return b.pulse.Stuck(turnsWithin) }

// Unready returns an error that names the conditions of /readyz that are not met, or nil.
func (b *Base) Unready() error {
	if b.ending.begun.Load() {
		return errStopping
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := []error{b.pulse.Unready()}
	for name, check := range b.ready {
		if err := check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// ServeHealth answers /healthz, /readyz and /metrics, and profiles if the program
// allows them.
func (b *Base) ServeHealth() error {
	if b.Health == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := b.unhealthy(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := b.Unready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(b.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true})) // with exemplars, for those who ask for it
	if b.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	_, err := b.listen("health", b.Health, mux, Limits{Connections: healthConnections, Write: writeTimeout})
	return err
}

// Wait waits until the roles are stopped or a part fails, then closes all parts.
func (b *Base) Wait() error {
	err := b.group.Wait()
	b.shut()
	return err
}

func (b *Base) shut() {
	for i := len(b.close) - 1; i >= 0; i-- {
		b.close[i]()
	}
	b.close = nil
}
