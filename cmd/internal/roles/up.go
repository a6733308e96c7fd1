package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"quittance/dev/shop"
	"quittance/dev/stack"
	"quittance/dev/stack/chdb"
)

// Ports of developer mode, from the service's (stack.md, "Three ways to run").
const (
	defaultPort        = 8080
	portSimulators     = 1
	portBroker         = 2
	portController     = 3
	portPostgres       = 4
	portClickHouse     = 5
	portSchemaRegistry = 6
	portHealth         = 7
	portShop           = 8
)

// Values of --broker that are no address.
const (
	brokerEmbedded = "embedded"
	brokerKafka    = "kafka"
)

func up() *cobra.Command {
	s := &Settings{}
	var broker, registryFile string
	cmd := command("up", "Run everything in one process: developer mode", s, func(cmd *cobra.Command, _ []string) error {
		log, err := s.logger(cmd)
		if err != nil {
			return err
		}
		if s.Port == 0 {
			s.Port = defaultPort
		}
		u := &developer{Settings: *s, broker: broker, registry: registryFile, log: log, begun: time.Now()}
		return u.run(cmd.Context(), cmd.OutOrStdout())
	})
	f := cmd.Flags()
	f.StringVar(&broker, "broker", brokerEmbedded, "embedded, kafka (the real one, on a JVM), or HOST:PORT of one that runs")
	f.StringVar(&registryFile, "registry", "deploy/dev/registry.yaml", "registry file to seed at start")
	return cmd
}

// developer is an `up`: the parts it started and the roles on top.
type developer struct {
	Settings
	broker   string
	registry string
	log      *slog.Logger
	begun    time.Time
	stop     []func(context.Context) error
}

func (u *developer) run(ctx context.Context, out io.Writer) (err error) {
	if _, err := os.Stat(u.registry); err != nil {
		return fmt.Errorf("the registry file cannot be read: %w; name one with --registry", err)
	}
	if u.Data, err = filepath.Abs(u.Data); err != nil {
		return fmt.Errorf("finding the data folder: %w", err)
	}
	if err := os.MkdirAll(u.Data, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return fmt.Errorf("making the data folder: %w", err)
	}
	u.Developer = true
	defer func() { err = errors.Join(err, u.shut()) }()
	if err := u.parts(ctx); err != nil {
		return err
	}
	if err := u.migrate(ctx, u.log); err != nil {
		return err
	}
	if _, err := u.seed(ctx, u.registry); err != nil {
		return err
	}
	remove, err := locator{
		Data: u.Data, Kafka: u.Kafka, Postgres: u.Postgres, ClickHouse: u.ClickHouse, SchemaRegistry: u.SchemaRegistry, SimulatorURL: u.SimulatorURL,
	}.write(u.Port)
	if err != nil {
		return err
	}
	defer remove()

	b, err := u.roles(ctx)
	if err != nil {
		return err
	}
	b.group.Go(func() error { return u.announce(b, out) })
	return b.wait()
}

// parts starts broker, databases and the registry of schemas, all at once.
func (u *developer) parts(ctx context.Context) error {
	u.SimulatorURL = "http://" + local(u.Port+portSimulators)
	started := make(chan func(context.Context) error, 8)
	g, ctx := errgroup.WithContext(ctx)
	start := func(name string, what func() (func(context.Context) error, error)) {
		g.Go(func() error {
			begun := time.Now()
			stop, err := what()
			if err != nil {
				return fmt.Errorf("starting %s: %w", name, err)
			}
			u.log.Info("part is up", slog.String("part", name), slog.Duration("after", time.Since(begun).Round(time.Millisecond)))
			started <- stop
			return nil
		})
	}
	start("broker", func() (func(context.Context) error, error) { return u.startBroker(ctx) })
	start("postgres", func() (func(context.Context) error, error) {
		pg, err := stack.StartPostgres(ctx, stack.PostgresConfig{Dir: filepath.Join(u.Data, "postgres"), Port: u.Port + portPostgres, Log: u.log})
		if err != nil {
			return nil, err
		}
		u.Postgres = pg.DSN("quittance")
		return pg.Stop, nil
	})
	start("clickhouse", func() (func(context.Context) error, error) {
		ch, err := chdb.Start(ctx, chdb.Config{Dir: filepath.Join(u.Data, "clickhouse"), Addr: local(u.Port + portClickHouse), Log: u.log})
		if err != nil {
			return nil, err
		}
		u.ClickHouse = "http://" + ch.Addr() + "/quittance"
		return ch.Stop, nil
	})
	start("schema registry", func() (func(context.Context) error, error) {
		sr, err := stack.StartSchemaRegistry(ctx, stack.SchemaRegistryConfig{Dir: filepath.Join(u.Data, "schemas"), Port: u.Port + portSchemaRegistry, Log: u.log})
		if err != nil {
			return nil, err
		}
		u.SchemaRegistry = sr.URL()
		return sr.Stop, nil
	})
	err := g.Wait()
	close(started)
	for stop := range started {
		u.stop = append(u.stop, stop)
	}
	return err
}

func (u *developer) startBroker(ctx context.Context) (func(context.Context) error, error) {
	switch u.broker {
	case brokerEmbedded:
		u.log.Warn("the broker is in-process: it is not crash-safe, and never for real payments; use --broker kafka to see what a crash does")
		b, err := stack.StartEmbeddedBroker(ctx, stack.EmbeddedBrokerConfig{Dir: filepath.Join(u.Data, "broker"), Port: u.Port + portBroker, Log: u.log})
		if err != nil {
			return nil, err
		}
		u.Kafka = b.Addr()
		return b.Stop, nil
	case brokerKafka:
		k, err := stack.StartKafka(ctx, stack.KafkaConfig{
			Dir: filepath.Join(u.Data, "kafka"), Port: u.Port + portBroker, ControllerPort: u.Port + portController, Log: u.log,
		})
		if err != nil {
			return nil, err
		}
		u.Kafka = k.Addr()
		return k.Stop, nil
	}
	if !strings.Contains(u.broker, ":") {
		return nil, fmt.Errorf("--broker %q: want embedded, kafka, or HOST:PORT", u.broker)
	}
	u.Kafka = u.broker
	return func(context.Context) error { return nil }, nil
}

// roles runs all of them in this process.
func (u *developer) roles(ctx context.Context) (*base, error) {
	s := u.Settings
	s.Port = 0 // the parts are named
	s.Instance = "0"
	if u.broker == brokerEmbedded {
		// The in-process broker takes a transactional id again only when the
		// transaction it left open has timed out.
		s.Instance += "-" + u.begun.UTC().Format("20060102T150405")
		s.Store = filepath.Join(u.Data, "store-0")
	}
	s.Listen = local(u.Port)
	s.Health = local(u.Port + portHealth)
	s.CallbackURL = "http://" + s.Listen
	s.CheckoutURL = s.CallbackURL
	s.ShopURL = "https://" + local(u.Port+portShop)
	d, err := u.demo()
	if err != nil {
		return nil, err
	}
	b, err := openBase(ctx, s, u.log)
	if err != nil {
		return nil, err
	}
	start := []func(*base) error{
		func(b *base) error { return b.simulate(local(u.Port+portSimulators), d.clerkKeys()) },
		(*base).processor, (*base).readmodel, (*base).journal, (*base).collect, (*base).webhook, (*base).erp, (*base).schedule,
		(*base).ingress, func(b *base) error { return u.shop(b, d.shopKey()) }, (*base).serveHealth,
	}
	for _, role := range start {
		if err := role(b); err != nil {
			b.group.Go(func() error { return err })
			return nil, b.wait()
		}
	}
	return b, nil
}

// shop runs the demo shop, with a test key of the application whose sessions it
// may hold.
func (u *developer) shop(b *base, key string) error {
	s, err := shop.New(shop.Config{
		Listen: local(u.Port + portShop), DataDir: filepath.Join(u.Data, "shop"), APIBase: b.CheckoutURL, CheckoutURL: b.CheckoutURL,
		Key: key, Log: b.log,
	})
	if err != nil {
		return err
	}
	b.run("demo shop", s.Run)
	return nil
}

// announce waits until a session can be created and paid, and says so.
func (u *developer) announce(b *base, out io.Writer) error {
	for b.unready() != nil {
		select {
		case <-b.ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	u.log.Info("ready", slog.String("after", time.Since(u.begun).Round(100*time.Millisecond).String()))
	return u.banner(out)
}

func (u *developer) shut() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, stop := range u.stop {
		g.Go(func() error { return stop(ctx) })
	}
	return g.Wait()
}
