package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/internal/clock"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/schemas"
)

// base is what every role stands on. Parts are opened when first asked for and
// closed together.
type base struct {
	Settings
	log     *slog.Logger
	metrics *prometheus.Registry
	group   *errgroup.Group
	ctx     context.Context //nolint:containedctx // of the group that owns the parts

	keys  *secret.Keys
	clock *clock.Clock
	space *kafka.Topology
	codec *schemas.Codec
	pool  *pgxpool.Pool
	reg   *registry.Registry

	mu    sync.Mutex
	ready map[string]func() error
	close []func()
}

// newBase checks what every role needs: the broker's topics, the schemas, and in
// developer mode the clock.
func newBase(cmd *cobra.Command, s Settings) (*base, error) {
	log, err := s.logger(cmd)
	if err != nil {
		return nil, err
	}
	if err := s.locate(); err != nil {
		return nil, err
	}
	return openBase(cmd.Context(), s, log)
}

func openBase(ctx context.Context, s Settings, log *slog.Logger) (*base, error) {
	if err := s.need("kafka", "schema-registry"); err != nil {
		return nil, err
	}
	s.print(log)
	group, ctx := errgroup.WithContext(ctx)
	b := &base{Settings: s, log: log, metrics: prometheus.NewRegistry(), group: group, ctx: ctx, clock: clock.System(), ready: map[string]func() error{}}
	b.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := b.open(ctx); err != nil {
		b.shut()
		return nil, err
	}
	return b, nil
}

func (b *base) open(ctx context.Context) error {
	cl, err := b.kafkaConfig().Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := b.loadTopics(ctx, cl); err != nil {
		return err
	}
	reg, err := schemas.NewClient(b.SchemaRegistry)
	if err != nil {
		return err
	}
	if b.codec, err = schemas.NewCodec(ctx, reg, false); err != nil {
		return err
	}
	if err := kafka.CheckKeys(ctx, b.kafkaConfig(), b.space, b.codec); err != nil {
		return err
	}
	if !b.Developer {
		return nil
	}
	if err := b.openPostgres(); err != nil {
		return err
	}
	if b.clock, err = clock.Follow(ctx, b.pool, b.log); err != nil {
		return err
	}
	b.run("clock", b.clock.Run)
	return nil
}

// loadTopics waits a minute for a broker that is away: roles are started beside
// it, and after a power cut all at once.
func (b *base) loadTopics(ctx context.Context, cl *kgo.Client) (err error) {
	patience := time.Now().Add(time.Minute)
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		b.space, err = kafka.Load(try, b.kafkaConfig(), cl)
		cancel()
		if err == nil || errors.Is(err, kafka.ErrTopics) || ctx.Err() != nil || time.Now().After(patience) {
			return err
		}
		b.log.Warn("waiting for Kafka", slog.Any("error", err))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// openPostgres opens the pool, once, and refuses a database that waits for
// migrations.
func (b *base) openPostgres() error {
	if b.pool != nil {
		return nil
	}
	if err := b.need("postgres"); err != nil {
		return err
	}
	pool, err := postgres.Open(b.ctx, b.Postgres)
	if err != nil {
		return err
	}
	b.pool = pool
	b.close = append(b.close, pool.Close)
	n, err := postgres.Pending(b.ctx, pool)
	if err != nil {
		return err
	}
	if n > 0 {
		return fmt.Errorf("%d migrations are pending in Postgres; run `quittance migrate`", n)
	}
	return nil
}

// openRegistry opens the configuration, once, and keeps it current.
func (b *base) openRegistry() error {
	if b.reg != nil {
		return nil
	}
	if err := b.openPostgres(); err != nil {
		return err
	}
	if err := b.openKeys(); err != nil {
		return err
	}
	cfg := registry.Config{Pool: b.pool, Keys: b.keys, Log: b.log, Now: b.now, Metrics: b.metrics}
	if b.Developer {
		cfg.Simulators = b.SimulatorURL
	}
	reg, err := registry.Open(b.ctx, cfg)
	if err != nil {
		return err
	}
	b.reg = reg
	b.run("registry", reg.Run)
	return nil
}

func (b *base) openKeys() (err error) {
	if b.keys == nil {
		b.keys, err = b.masterKeys()
	}
	return err
}

func (b *base) now() time.Time { return b.clock.Now() }

// run adds a part that runs until ctx ends. Its error ends the role.
func (b *base) run(name string, part func(context.Context) error) {
	b.group.Go(func() error {
		if err := part(b.ctx); err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// readyWhen adds a condition of /readyz.
func (b *base) readyWhen(name string, check func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[name] = check
}

// unready says which conditions of /readyz do not hold.
func (b *base) unready() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for name, check := range b.ready {
		if err := check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// serve answers HTTP on addr until the role ends; requests under way are
// finished.
func (b *base) serve(name, addr string, h http.Handler) error {
	l, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%s cannot listen on %s (is another instance running?): %w", name, addr, err)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
	}
	b.group.Go(func() error {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	b.group.Go(func() error {
		<-b.ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), 5*time.Second)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // streams that do not end by themselves
		}
		return nil
	})
	return nil
}

// serveHealth answers /healthz, /readyz and /metrics, and profiles in developer
// mode.
func (b *base) serveHealth() error {
	if b.Health == "" {
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := b.unready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(b.metrics, promhttp.HandlerOpts{}))
	if b.Developer {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	return b.serve("health", b.Health, mux)
}

// wait runs the role until it is stopped or a part fails.
func (b *base) wait() error {
	err := b.group.Wait()
	b.shut()
	return err
}

func (b *base) shut() {
	for i := len(b.close) - 1; i >= 0; i-- {
		b.close[i]()
	}
	b.close = nil
}
