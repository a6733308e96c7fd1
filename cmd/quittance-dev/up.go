package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/setup"
	"quittance/cmd/internal/roles"
	"quittance/dev/partner"
	"quittance/dev/shop"
	"quittance/dev/stack"
	"quittance/dev/stack/chdb"
	"quittance/dev/staff"
	office "quittance/ingress/staff"
	"quittance/internal/disbursements"
	"quittance/internal/identity"
)

// Values of --broker other than an address.
const (
	brokerEmbedded = "embedded"
	brokerKafka    = "kafka"
)

func up() cli.Command {
	u := &installation{}
	return cli.Command{
		Use: "up", Short: "Run everything in one process, on this machine", Examples: []string{"up --port 9000 --data /srv/quittance --broker kafka"},
		Connection: cli.ConnectionParts,
		Flags: func(f *pflag.FlagSet, m *cli.Meta) {
			m.ProviderFlags(f)
			f.IntVar(&u.port, "port", defaultPort, "port of the service; its parts take the eleven ports after it")
			u.flags(f)
		},
		Run: func(ctx context.Context, m *cli.Meta) error {
			u.Settings, u.log, u.begun = m.Settings, m.Log, time.Now()
			return u.run(ctx, m.Out)
		},
	}
}

// flags declares the flags that `up` and `doctor up` share.
func (u *installation) flags(f *pflag.FlagSet) {
	f.StringVar(&u.broker, "broker", brokerEmbedded, "embedded, kafka (real Kafka on a JVM), or HOST:PORT of a running Kafka")
	f.StringVar(&u.registry, "registry", "deploy/dev/registry.yaml", "registry file to apply at start")
}

// installation runs `up`: the parts that it starts, and the roles.
type installation struct {
	roles.Settings
	port     int
	broker   string
	registry string
	log      *slog.Logger
	begun    time.Time

	mu   sync.Mutex
	stop []func(context.Context) error // of the parts that were started
	held map[int]net.Listener          // ports that are reserved, by their offset
	// hasPartner is true if the registry file has a partner of the deprecated cash-in API.
	hasPartner bool
	people     *staff.People // once the role office has started
}

func (u *installation) run(ctx context.Context, out io.Writer) (err error) {
	if _, err := os.Stat(u.registry); err != nil {
		return fmt.Errorf("the registry file cannot be read: %w; name one with --registry", err)
	}
	if u.Data, err = filepath.Abs(u.Data); err != nil {
		return fmt.Errorf("finding the data folder: %w", err)
	}
	if err := os.MkdirAll(u.Data, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return fmt.Errorf("making the data folder: %w", err)
	}
	if err := u.reserve(ctx); err != nil {
		return err
	}
	defer u.releaseAll()
	defer func() { err = errors.Join(err, u.shut()) }()
	if err := u.parts(ctx); err != nil {
		return err
	}
	if err := u.migrate(ctx); err != nil {
		return err
	}
	if _, err := setup.Seed(ctx, u.Settings, u.registry, false); err != nil {
		return err
	}
	remove, err := writeLocator(u.port, &u.Settings)
	if err != nil {
		return err
	}
	defer remove()

	return u.roles(ctx, out)
}

// poolOfAllRoles ends the address of the database. All roles share one pool here, whose default
// size is for one role: at 50 payments a second messages waited for a connection most of their
// time.
const poolOfAllRoles = "&pool_max_conns=40"

// parts starts broker, databases and schema registry at the same time.
func (u *installation) parts(ctx context.Context) error {
	u.SimulatorURL = "http://" + local(u.port+portSimulators)
	if u.Mail == "" {
		u.Mail = simulatedMail(u.port)
	}
	u.release(portBroker, portController, portPostgres, portClickHouse, portSchemaRegistry)
	g, ctx := errgroup.WithContext(ctx)
	switch {
	case u.broker == brokerEmbedded:
		u.log.Warn("the broker runs in this process and is not crash-safe: never use it for real payments; --broker kafka shows what a crash does")
		start(ctx, u, g, "broker", stack.StartEmbeddedBroker, stack.EmbeddedBrokerConfig{Dir: filepath.Join(u.Data, "broker"), Port: u.port + portBroker, Log: u.log},
			func(b *stack.EmbeddedBroker) { u.Kafka = b.Addr() })
	case u.broker == brokerKafka:
		start(ctx, u, g, "broker", stack.StartKafka, stack.KafkaConfig{
			Dir: filepath.Join(u.Data, "kafka"), Port: u.port + portBroker, ControllerPort: u.port + portController, Log: u.log,
			// The second compiler takes more CPU time than it saves for the first minutes
			// (docs/benchmarks.md, "Receipts by e-mail").
			JVM: []string{"-XX:TieredStopAtLevel=1"},
		}, func(k *stack.Kafka) { u.Kafka = k.Addr() })
	case strings.Contains(u.broker, ":"):
		u.Kafka = u.broker
	default:
		return fmt.Errorf("--broker %q: must be embedded, kafka, or HOST:PORT", u.broker)
	}
	start(ctx, u, g, "postgres", stack.StartPostgres, stack.PostgresConfig{Dir: filepath.Join(u.Data, "postgres"), Port: u.port + portPostgres, Log: u.log},
		func(pg *stack.Postgres) { u.Postgres = pg.DSN("quittance") + poolOfAllRoles })
	start(ctx, u, g, "clickhouse", chdb.Start, chdb.Config{Dir: filepath.Join(u.Data, "clickhouse"), Addr: local(u.port + portClickHouse), Log: u.log},
		func(ch *chdb.Server) { u.ClickHouse = "http://" + ch.Addr() + "/quittance" })
	start(ctx, u, g, "schema registry", stack.StartSchemaRegistry, stack.SchemaRegistryConfig{Dir: filepath.Join(u.Data, "schemas"), Port: u.port + portSchemaRegistry, Log: u.log},
		func(sr *stack.SchemaRegistry) { u.SchemaRegistry = sr.URL() })
	return g.Wait()
}

// start starts a part in g. When it is up, start notes how to stop it and calls use.
func start[C any, P interface {
	Stop(ctx context.Context) error
}](ctx context.Context, u *installation, g *errgroup.Group, name string, launch func(context.Context, C) (P, error), cfg C, use func(P)) {
	g.Go(func() error {
		begun := time.Now()
		part, err := launch(ctx, cfg)
		if err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
		u.log.Info("part is up", slog.String("part", name), slog.Duration("after", time.Since(begun).Round(time.Millisecond)))
		u.mu.Lock()
		defer u.mu.Unlock()
		u.stop = append(u.stop, part.Stop)
		use(part)
		return nil
	})
}

// roles runs all roles in this process until it is stopped.
func (u *installation) roles(ctx context.Context, out io.Writer) error {
	s := u.Settings
	s.Instance = "0"
	if u.broker == brokerEmbedded {
		// The in-process broker accepts a transactional id again only after its open
		// transaction has timed out.
		s.Nonce = "-" + u.begun.UTC().Format("20060102T150405")
	}
	s.Listen = local(u.port)
	s.MaxConnections = roles.DefaultMaxConnections
	s.SignInSMSPerHour, s.SignInMailPerHour = roles.DefaultSignInSMSPerHour, roles.DefaultSignInMailPerHour
	// All callers of this machine are one client.
	s.KeylessPerClient, s.KeylessPerInstance = roles.DefaultKeylessPerInstance, roles.DefaultKeylessPerInstance
	s.Health = local(u.port + portHealth)
	// Browsers allow passkeys for the name only.
	s.OfficeListen, s.StaffURL = local(u.port+portOffice), fmt.Sprintf("http://localhost:%d", u.port+portOffice)
	s.DemoStaff = func(b *roles.Base, desk *identity.Desk) office.Demo {
		u.people = staff.NewPeople(staff.PeopleConfig{
			File: filepath.Join(u.Data, "staff.json"), Pool: b.Pool, Keys: b.Keys, Party: desk.Party(), URL: s.StaffURL, Now: b.Now, Issuer: u.SimulatorURL + "/idp/impots",
		})
		return u.people
	}
	s.CallbackURL = "http://" + s.Listen
	s.CheckoutURL = s.CallbackURL
	s.Origins = map[string]string{demoShop: "https://" + local(u.port+portShop), demoPartner: "http://" + local(u.port+portPartner)}
	d, err := readDemo(u.registry)
	if err != nil {
		return err
	}
	b, err := roles.Open(ctx, s, u.log)
	if err != nil {
		return err
	}
	all := []func(*roles.Base) error{func(b *roles.Base) error {
		u.release(portSimulators, portMail, portSwitch)
		return startSimulators(b, u.port, d.clerkKeys())
	}}
	for _, kind := range []roles.Kind{roles.KindProcessor, roles.KindSink, roles.KindOffice, roles.KindIngress} {
		for _, role := range roles.OfKind(kind) {
			all = append(all, func(b *roles.Base) error {
				switch role.Kind {
				case roles.KindIngress:
					u.release(portService)
				case roles.KindOffice:
					u.release(portOffice)
				case roles.KindProcessor, roles.KindSink:
				}
				return role.Start(b)
			})
		}
	}
	all = append(all, func(b *roles.Base) error { return u.shop(b, d.shopKey()) }, func(b *roles.Base) error { return u.partner(b, d.partner()) }, func(b *roles.Base) error {
		u.release(portHealth)
		return b.ServeHealth()
	})
	b.Start(all...)
	b.Run("announcement", func(ctx context.Context) error { return u.announce(ctx, b, out) })
	return b.Wait()
}

// shop runs the demo shop with a test key of the application whose sessions it may frame.
func (u *installation) shop(b *roles.Base, key string) error {
	s, err := shop.New(shop.Config{
		Listen: local(u.port + portShop), DataDir: filepath.Join(u.Data, "shop"), APIBase: b.CheckoutURL, CheckoutURL: b.CheckoutURL,
		Key: key, Log: b.Log,
	})
	if err != nil {
		return err
	}
	u.release(portShop)
	b.Run("demo shop", s.Run)
	return nil
}

// partner runs the simulated partner of the deprecated cash-in API, if the registry file has
// one.
func (u *installation) partner(b *roles.Base, pair demoPair) error {
	if pair.APIKey == "" {
		u.release(portPartner)
		return nil
	}
	p, err := partner.New(partner.Config{Listen: local(u.port + portPartner), APIBase: b.CheckoutURL, APIKey: pair.APIKey, SecretKey: pair.SecretKey, Log: b.Log})
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.hasPartner = true
	u.mu.Unlock()
	u.release(portPartner)
	b.Run("simulated partner", p.Run)
	return nil
}

// announce waits until a session can be created and paid and all pages of the banner are served, then prints the
// banner.
func (u *installation) announce(ctx context.Context, b *roles.Base, out io.Writer) error {
	for b.Unready() != nil || !u.answers(ctx) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(50 * time.Millisecond):
		}
	}
	signs, err := u.enrol(ctx, b)
	if err != nil {
		u.log.Warn("the demo people do not sign for batches; an empty data folder has them again", slog.Any("error", err))
	}
	u.log.Info("ready", slog.String("after", time.Since(u.begun).Round(100*time.Millisecond).String()))
	return u.banner(ctx, b, signs, out)
}

// enrol enrols the demo people who sign for batches. It returns nil when the registry file has not their agency.
func (u *installation) enrol(ctx context.Context, b *roles.Base) (*staff.Signatories, error) {
	for _, agency := range b.Registry.Agencies() {
		if agency.Slug != staff.DemoAgency {
			continue
		}
		processor, err := b.OfficeBatches()
		if err != nil {
			return nil, err
		}
		signs, err := u.people.Enrol(ctx, agency.ID, processor, disbursements.NewStore(b.Pool, b.Codec))
		if err != nil {
			return nil, err
		}
		return &signs, nil
	}
	return nil, nil //nolint:nilnil // there is no such agency
}

// answers reports whether each part listens on its port. A reserved port accepts connections, too, and serves nothing.
func (u *installation) answers(ctx context.Context) bool {
	u.mu.Lock()
	partnerRuns, reserved := u.hasPartner, len(u.held)
	u.mu.Unlock()
	if reserved > 0 {
		return false
	}
	for _, offset := range u.ports() {
		if offset == portPartner && !partnerRuns {
			continue
		}
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", local(u.port+offset))
		if err != nil {
			return false
		}
		_ = conn.Close()
	}
	return true
}

func (u *installation) shut() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	for _, stop := range u.stop {
		g.Go(func() error { return stop(ctx) })
	}
	return g.Wait()
}
