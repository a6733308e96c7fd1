package acceptance_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	devstack "quittance/dev/stack"
	"quittance/dev/stack/chdb"
)

// prefix of the installation's topics and groups.
const prefix = "crash."

const (
	numAgencies     = 8
	appsPerAgency   = 4 // 32 applications in all
	database        = "quittance"
	starting        = 4 * time.Minute // bounds the start of servers and of roles
	simulatorInFile = "http://127.0.0.1:8081"
)

// stack is an installation: servers of its own, since the broker is killed, and
// the program's processes.
type stack struct {
	dir        string
	kafka      *devstack.Kafka
	database   devstack.PostgresConfig
	server     *devstack.Postgres // of that configuration, the one that runs now
	postgres   string
	pool       *pgxpool.Pool
	engine     *chdb.Server
	clickhouse string // host:port
	registry   string // of schemas
	simulator  string // URL
	ingress    []string
	program    *program
	outside    *process // the simulators: nobody kills the world outside
	fleet      []*process
	apps       []application
}

// application is one of the registry's, with its key.
type application struct {
	id, tenant, slug, key string
}

// shape is what a stack consists of.
type shape struct {
	// registry is the registry file; it fills the stack's apps.
	registry func(*stack) string
	// Numbers of instances; sinks is that of each sink.
	ingresses, processors, sinks int
	// only are the sinks that run; all when empty.
	only []string
	// program builds what runs; binary when nil.
	program func() (string, error)
}

// everyRole is every role twice.
var everyRole = shape{registry: (*stack).applications, ingresses: 2, processors: 2, sinks: 2}

// newStack starts everything: servers, migrations, the registry, the roles of the
// shape.
func newStack(t testing.TB, dir string, of shape) *stack {
	t.Helper()
	build := of.program
	if build == nil {
		build = binary
	}
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), starting)
	defer cancel()
	s := &stack{dir: dir, program: &program{path: path, logs: filepath.Join(dir, "output")}}
	if err := os.MkdirAll(s.program.logs, 0o755); err != nil {
		t.Fatal(err)
	}
	s.servers(ctx, t)
	s.configure(ctx, t, of.registry(s))
	s.start(ctx, t, of)
	return s
}

func (s *stack) servers(ctx context.Context, t testing.TB) {
	t.Helper()
	stop := func(what string, stop func(context.Context) error) {
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
			defer cancel()
			if err := stop(ctx); err != nil {
				t.Logf("stopping %s: %v", what, err)
			}
		})
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	p := ports(t, 3)
	var err error
	if s.kafka, err = devstack.StartKafka(ctx, devstack.KafkaConfig{Dir: filepath.Join(s.dir, "kafka"), Port: p[0], ControllerPort: p[1], Log: log}); err != nil {
		t.Fatal(err)
	}
	stop("Kafka", s.kafka.Stop)
	s.database = devstack.PostgresConfig{Dir: filepath.Join(s.dir, "postgres"), Port: p[2], Log: log}
	if s.server, err = devstack.StartPostgres(ctx, s.database); err != nil {
		t.Fatal(err)
	}
	stop("PostgreSQL", func(ctx context.Context) error { return s.server.Stop(ctx) })
	s.postgres = s.server.DSN(database)
	if s.engine, err = chdb.Start(ctx, chdb.Config{Dir: filepath.Join(s.dir, "clickhouse"), Log: log}); err != nil {
		t.Fatal(err)
	}
	stop("ClickHouse", s.engine.Stop)
	s.clickhouse = s.engine.Addr()
	schemas, err := devstack.StartSchemaRegistry(ctx, devstack.SchemaRegistryConfig{Dir: filepath.Join(s.dir, "schemas"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	stop("the schema registry", schemas.Stop)
	s.registry = schemas.URL()
	if s.pool, err = pgxpool.New(ctx, s.postgres); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
}

// configure migrates and seeds.
func (s *stack) configure(ctx context.Context, t testing.TB, registry string) {
	t.Helper()
	port := ports(t, 1)[0]
	s.simulator = "http://" + local(port)
	var key [32]byte
	_, _ = rand.Read(key[:])
	s.program.env = []string{
		"QUITTANCE_DEVELOPER=1", "QUITTANCE_LOG=info", "QUITTANCE_TOPIC_PREFIX=" + prefix,
		"QUITTANCE_KAFKA=" + s.kafka.Addr(), "QUITTANCE_POSTGRES=" + s.postgres,
		"QUITTANCE_CLICKHOUSE=http://" + s.clickhouse + "/" + database, "QUITTANCE_SCHEMA_REGISTRY=" + s.registry,
		"QUITTANCE_SIMULATOR_URL=" + s.simulator, "QUITTANCE_DATA=" + filepath.Join(s.dir, "data"),
		"QUITTANCE_MASTER_KEYS=1:" + base64.StdEncoding.EncodeToString(key[:]),
	}
	file := filepath.Join(s.dir, "registry.yaml")
	if err := os.WriteFile(file, []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"migrate"}, {"seed", file}} {
		if err := s.program.run(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	s.outside = s.program.process("simulate", local(ports(t, 1)[0]), "simulate", "--port", strconv.Itoa(port-1))
}

// applications makes the registry: agencies with an ERP each, applications with
// an endpoint each and quotas that the load does not reach.
func (s *stack) applications() string {
	var b strings.Builder
	b.WriteString("agencies:\n")
	for a := range numAgencies {
		tenant, slug := fmt.Sprintf("018f0000-0000-7000-8000-0000000001%02d", a), fmt.Sprintf("agency%d", a)
		fmt.Fprintf(&b, `  - id: %s
    slug: %s
    name: Agency %d
    services: [{code: tax, label: Tax}]
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 10, maximum: 5000}]
    erp: {test: {base_url: %s/erp/%s, auth: {type: bearer, token: CrashErpToken%020d}, conflict_is_done: true, networks: [127.0.0.0/8]}}
    applications:
`, tenant, slug, a, simulatorInFile, slug, a)
		for i := range appsPerAgency {
			n := a*appsPerAgency + i
			app := application{
				id: fmt.Sprintf("018f0000-0000-7000-8000-0000000002%02d", n), tenant: tenant, slug: slug, key: fmt.Sprintf("sk_test_CrashKey%020d", n),
			}
			s.apps = append(s.apps, app)
			fmt.Fprintf(&b, `      - id: %s
        name: Application %d
        offers: [momo]
        keys: [{secret: %s}]
        creations_per_minute: 1000000
        reads_per_minute: 1000000
        webhook_endpoints: [{url: %s/inbox/%s, secret: whsec_%s, events: [%s]}]
`, app.id, n, app.key, simulatorInFile, app.id,
				base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "crash test secret %06d", n)), strings.Join(webhookKinds, ", "))
		}
	}
	return b.String()
}

// start starts the roles and waits until all can work.
func (s *stack) start(ctx context.Context, t testing.TB, of shape) {
	t.Helper()
	t.Cleanup(s.stop)
	if err := s.outside.start(); err != nil {
		t.Fatal(err)
	}
	listen := ports(t, of.ingresses)
	for _, port := range listen {
		s.ingress = append(s.ingress, "http://"+local(port))
	}
	add := func(name string, args ...string) {
		s.fleet = append(s.fleet, s.program.process(name, local(ports(t, 1)[0]), args...))
	}
	for n := range of.ingresses {
		instance := strconv.Itoa(n)
		add("ingress-"+instance, "ingress", "--listen", local(listen[n]), "--instance", instance,
			"--checkout-url", s.ingress[0], "--callback-url", s.ingress[n])
	}
	for n := range of.processors {
		instance := strconv.Itoa(n)
		add("processor-"+instance, "processor", "--instance", instance, "--store", filepath.Join(s.dir, "store-"+instance))
	}
	for n := range of.sinks {
		instance := strconv.Itoa(n)
		for _, sink := range []string{"collect", "webhook", "erp", "readmodel", "journal", "schedule"} {
			if len(of.only) > 0 && !slices.Contains(of.only, sink) {
				continue
			}
			args := []string{"sink", sink, "--instance", instance}
			if sink == "collect" { // each has its operator call back another ingress
				args = append(args, "--callback-url", s.ingress[n%of.ingresses])
			}
			add(sink+"-"+instance, args...)
		}
	}
	for _, p := range s.fleet {
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := awaitReady(ctx, append([]*process{s.outside}, s.fleet...)...); err != nil {
		t.Fatal(err)
	}
}

// stop kills whatever runs.
func (s *stack) stop() {
	all := append([]*process{s.outside}, s.fleet...)
	for _, p := range all {
		p.kill()
	}
	for _, p := range all {
		p.watchers.Wait()
	}
}

// outputs shows the end of what every process has said.
func (s *stack) outputs(t testing.TB) {
	t.Helper()
	for _, p := range append([]*process{s.outside}, s.fleet...) {
		t.Logf("---- the end of what %s said (it ended by itself %d times)\n%s", p.name, p.unexpected.Load(), tail(p.log(), 3<<10))
	}
}

// startPostgres starts the server again, after it was stopped.
func (s *stack) startPostgres(ctx context.Context) (err error) {
	s.server, err = devstack.StartPostgres(ctx, s.database)
	return err
}
