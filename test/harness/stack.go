package harness

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	devstack "quittance/dev/stack"
	"quittance/dev/stack/chdb"
	"quittance/dev/stack/program"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// Prefix of a stack's topics and groups.
const Prefix = "crash."

// AppsPerAgency is the number of applications for mobile money of each agency that
// Applications makes.
const AppsPerAgency = 2 // 32 applications in all

// partnersPerAgency is the number of applications with a pair of cash-in credentials of each
// agency that ApplicationsAndPartners makes. They are many because their quotas are fixed.
const partnersPerAgency = 6 // 96 applications in all

// Database is the name of the database of a stack, in PostgreSQL and in ClickHouse.
const Database = "quittance"

// StartWithin bounds the start of servers and of roles.
const StartWithin = 4 * time.Minute

const (
	numAgencies     = 16 // commands and state are partitioned by agency: they fill every partition
	simulatorInFile = "http://127.0.0.1:8081"
)

// Stack is an installation: processes of the program, and servers of its own, since a
// suite may kill the broker.
type Stack struct {
	Dir        string
	Kafka      *devstack.Kafka
	Database   devstack.PostgresConfig
	Server     *devstack.Postgres // the running server of that configuration
	Pool       *pgxpool.Pool
	Engine     *chdb.Server
	ClickHouse string // host:port
	Simulator  string // URL
	Ingress    []string
	Offices    []string // host:port of the pages of staff
	StaffURL   string   // at which people reach them
	Program    *program.Program
	Fleet      []*program.Process // all but the simulators
	Apps       []Application
	Counters   []Counter
	Partners   []Partner
	Portals    []Application // of the agencies, in their order; without keys
	Ledgers    []Application // agencies with the accounts mtn and banque; without ids and keys
	Keys       *secret.Keys  // of the installation
	Reference  *secret.ReferenceKey

	secure   *servers.SecureKafka // nil for a broker without TLS and ACLs
	postgres string               // URL of the superuser
	schemas  string               // URL of the schema registry
	outside  *program.Process     // the simulators, which no suite kills
}

// Application is an application of the registry, with its key.
type Application struct {
	ID, Tenant, Slug, Key string
}

// Counter is an application of the registry whose payments are made in cash, with the keys
// of two clerks of its agency.
type Counter struct {
	Application
	Clerks [2]string
}

// Partner is an application of the registry that uses the deprecated cash-in surface, with
// its pair of credentials. Its unsigned webhooks arrive in the inbox "partner-ID".
type Partner struct {
	Application
	APIKey, SecretKey string
}

// Shape says which roles a stack has.
type Shape struct {
	// Registry returns the registry file. It may fill the stack's Apps.
	Registry func(*Stack) string
	// Numbers of instances. Sinks is the number of instances of each sink.
	Ingresses, Processors, Sinks int
	// Batches is the number of processors of disbursement batches, Offices that of the pages of staff.
	Batches, Offices int
	// Only are the names of the sinks that run; all when empty.
	Only []string
	// Kafka replaces the stack's own broker. Each role is the user quittance-ROLE of it.
	Kafka *servers.SecureKafka
	// Program is the path of the program; quittance-dev when empty.
	Program string
}

// EveryRole has two instances of every role, citizen portals, and partners of the deprecated
// cash-in surface.
var EveryRole = Shape{Registry: (*Stack).ApplicationsAndPartners, Ingresses: 2, Processors: 2, Sinks: 2}

// NewStack starts the servers, migrates, applies the registry and starts the roles of the
// shape. Everything ends with the test.
func NewStack(t testing.TB, dir string, of Shape) *Stack {
	t.Helper()
	path := of.Program
	if path == "" {
		path = servers.QuittanceDev(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), StartWithin)
	defer cancel()
	s := &Stack{Dir: dir, Keys: secret.GenerateKeys(), Reference: secret.GenerateReferenceKey(), secure: of.Kafka}
	s.servers(ctx, t)
	s.configure(ctx, t, path, of.Registry(s))
	s.start(ctx, t, of)
	return s
}

func (s *Stack) servers(ctx context.Context, t testing.TB) {
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
	p := Ports(t, 3)
	var err error
	if s.secure == nil {
		if s.Kafka, err = devstack.StartKafka(ctx, devstack.KafkaConfig{Dir: filepath.Join(s.Dir, "kafka"), Port: p[0], ControllerPort: p[1], Log: log}); err != nil {
			t.Fatal(err)
		}
		stop("Kafka", s.Kafka.Stop)
	}
	s.Database = devstack.PostgresConfig{Dir: filepath.Join(s.Dir, "postgres"), Port: p[2], Log: log}
	if s.Server, err = devstack.StartPostgres(ctx, s.Database); err != nil {
		t.Fatal(err)
	}
	stop("PostgreSQL", func(ctx context.Context) error { return s.Server.Stop(ctx) })
	s.postgres = s.Server.DSN(Database)
	if s.Engine, err = chdb.Start(ctx, chdb.Config{Dir: filepath.Join(s.Dir, "clickhouse"), Log: log}); err != nil {
		t.Fatal(err)
	}
	stop("ClickHouse", s.Engine.Stop)
	s.ClickHouse = s.Engine.Addr()
	schemas, err := devstack.StartSchemaRegistry(ctx, devstack.SchemaRegistryConfig{Dir: filepath.Join(s.Dir, "schemas"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	stop("the schema registry", schemas.Stop)
	s.schemas = schemas.URL()
	if s.Pool, err = pgxpool.New(ctx, s.postgres); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Pool.Close)
}

// configure migrates and applies the registry.
func (s *Stack) configure(ctx context.Context, t testing.TB, path, registry string) {
	t.Helper()
	port := Ports(t, program.UpPorts-1)[0] // of the simulators
	mail := port + 8                       // of the simulated mail server
	s.Simulator = "http://" + program.Local(port)
	logs := filepath.Join(s.Dir, "output")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	var broker []string
	if s.secure != nil {
		broker = []string{"QUITTANCE_KAFKA=" + s.secure.Scram, "QUITTANCE_KAFKA_CA_FILE=" + s.secure.File}
	} else {
		broker = []string{"QUITTANCE_KAFKA=" + s.Kafka.Addr()}
	}
	s.Program = program.New(path, logs, append(broker,
		"QUITTANCE_LOG=info", "QUITTANCE_TOPIC_PREFIX="+Prefix,
		"QUITTANCE_CLICKHOUSE=http://"+s.ClickHouse+"/"+Database, "QUITTANCE_SCHEMA_REGISTRY="+s.schemas,
		"QUITTANCE_SIMULATOR_URL="+s.Simulator, "QUITTANCE_MAIL=smtp+plain://"+program.Local(mail)+"?from=no-reply@quittance.example", "QUITTANCE_DATA="+filepath.Join(s.Dir, "data"),
		"QUITTANCE_MASTER_KEYS="+s.Keys.Reveal(), "QUITTANCE_KEYLESS_PER_CLIENT=1000000", "QUITTANCE_KEYLESS_PER_INSTANCE=1000000", "QUITTANCE_REFERENCE_KEY="+s.Reference.Reveal(),
	)...)
	file := filepath.Join(s.Dir, "registry.yaml")
	if err := os.WriteFile(file, []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	servers.Grant(t, s.postgres, Grants(ctx, t, path, "migrate"))
	if err := s.Program.Run(ctx, append([]string{"migrate"}, s.Credentials(t, "migrate")...)...); err != nil {
		t.Fatal(err)
	}
	servers.Grant(t, s.postgres, Grants(ctx, t, path))
	s.Program = s.Program.With("QUITTANCE_POSTGRES=" + servers.Login(t, s.postgres, "operator"))
	if err := s.Program.Run(ctx, "seed", file); err != nil {
		t.Fatal(err)
	}
	s.outside = s.Program.Process("simulate", program.Local(Ports(t, 1)[0]), append([]string{"simulate", "--port", strconv.Itoa(port - 1)}, s.Credentials(t, "operator")...)...)
}

// Credentials returns the flags with which a role connects to Postgres, and to a secure broker. A role without rights
// in Postgres has no user there. Commands connect as the operator.
func (s *Stack) Credentials(t testing.TB, role string) (flags []string) {
	t.Helper()
	if role != "operator" && role != "checkout" && role != "disbursement" {
		flags = []string{"--postgres", servers.Login(t, s.postgres, role)}
	}
	if s.secure == nil {
		return flags
	}
	user := "quittance-" + role
	return append(flags, "--kafka-user", user, "--kafka-password-file", s.secure.PasswordFile(user))
}

// Grants returns what `grants` of the program prints for Postgres, for all roles or some.
func Grants(ctx context.Context, t testing.TB, path string, role ...string) string {
	t.Helper()
	out, err := exec.CommandContext(ctx, path, append([]string{"grants"}, role...)...).Output()
	if err != nil {
		t.Fatalf("printing the rights in Postgres: %v", err)
	}
	return string(out)
}

// Applications returns a registry: agencies with an ERP each, and applications with an
// endpoint each and with quotas that no suite reaches. The payments of an agency's first
// applications are made by mobile money, those of its last one in cash.
func (s *Stack) Applications() string { return s.registry(0, false) }

// ApplicationsAndPortals returns the registry of Applications, in which each agency also has
// a citizen portal.
func (s *Stack) ApplicationsAndPortals() string { return s.registry(0, true) }

// ApplicationsAndPartners returns the registry of Applications, in which each agency also
// has applications with a pair of cash-in credentials, whose payments are made by mobile
// money, a citizen portal, and accounts whose statements are reconciled.
func (s *Stack) ApplicationsAndPartners() string { return s.registry(partnersPerAgency, true) }

// registry returns the registry with so many partners in each agency.
func (s *Stack) registry(partners int, portals bool) string {
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
    clerks:
      - {code: c01, name: Clerk 1, counter: Hall, keys: [{secret: %s}]}
      - {code: c02, name: Clerk 2, counter: Hall, keys: [{secret: %s}]}
`, tenant, slug, a, simulatorInFile, slug, a, clerkKey(a, 0), clerkKey(a, 1))
		if portals {
			s.portal(&b, tenant, slug, a)
		}
		if partners > 0 {
			s.Ledgers = append(s.Ledgers, Application{Tenant: tenant, Slug: slug})
			b.WriteString(ledgers)
		}
		b.WriteString("    applications:\n")
		for i := range AppsPerAgency + 1 {
			n, offer := a*(AppsPerAgency+1)+i, "momo"
			app := Application{
				ID: fmt.Sprintf("018f0000-0000-7000-8000-0000000002%02d", n), Tenant: tenant, Slug: slug, Key: fmt.Sprintf("sk_test_CrashKey%020d", n),
			}
			if i < AppsPerAgency {
				s.Apps = append(s.Apps, app)
			} else {
				offer = "cash_agency"
				s.Counters = append(s.Counters, Counter{app, [2]string{clerkKey(a, 0), clerkKey(a, 1)}})
			}
			fmt.Fprintf(&b, `      - id: %s
        name: Application %d
        offers: [%s]
        keys: [{secret: %s}]
        creations_per_minute: 1000000
        reads_per_minute: 1000000
        webhook_endpoints: [{url: %s/inbox/%s, secret: whsec_%s, events: [%s]}]
`, app.ID, n, offer, app.Key, simulatorInFile, app.ID,
				base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "crash test secret %06d", n)), strings.Join(WebhookKinds, ", "))
		}
		for i := range partners {
			s.partner(&b, tenant, slug, a*partners+i)
		}
	}
	return b.String()
}

// ledgers are the accounts of an agency whose statements the simulators write.
const ledgers = `    accounts:
      test:
        - {code: mtn, kind: operator, offer: momo, number: "46733123454", profile: mtn, cutoff: "17:00", settles_to: banque}
        - {code: banque, kind: bank, iban: CG39 3001 1000 1010 1345 1300 019, profile: camt.053, batch_pattern: '\bMTN-\d{8}\b'}
`

// portal adds the citizen portal of an agency to the registry, with an endpoint.
func (s *Stack) portal(b *strings.Builder, tenant, slug string, n int) {
	p := Application{ID: registry.PortalID(tenant), Tenant: tenant, Slug: slug}
	s.Portals = append(s.Portals, p)
	fmt.Fprintf(b, `    portal:
      active: true
      offers: [momo]
      webhook_endpoints: [{url: %s/inbox/%s, secret: whsec_%s, events: [%s]}]
`, simulatorInFile, p.ID, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "crash portal's secret %06d", n)), strings.Join(WebhookKinds, ", "))
}

// partner adds an application with a pair of cash-in credentials to the registry. Signed
// webhooks about its payments go to an endpoint, as those of every application.
func (s *Stack) partner(b *strings.Builder, tenant, slug string, n int) {
	p := Partner{
		Application: Application{ID: fmt.Sprintf("018f0000-0000-7000-8000-0000000003%02d", n), Tenant: tenant, Slug: slug},
		APIKey:      fmt.Sprintf("ak_test_CrashPartner%020d", n), SecretKey: fmt.Sprintf("as_test_CrashPartner%020d", n),
	}
	s.Partners = append(s.Partners, p)
	fmt.Fprintf(b, `      - id: %[1]s
        name: Partner %[2]d
        offers: [momo]
        webhook_endpoints: [{url: %[3]s/inbox/%[1]s, secret: whsec_%[4]s, events: [%[5]s]}]
        cashin: {mode: test, api_key: %[6]s, secret_key: %[7]s, providers: [mobile_money_a], webhook_url: "%[3]s/inbox/partner-%[1]s"}
`, p.ID, n, simulatorInFile, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "crash partner's secret %06d", n)), strings.Join(WebhookKinds, ", "), p.APIKey, p.SecretKey)
}

// clerkKey returns the key of a clerk of an agency of Applications.
func clerkKey(agency, clerk int) string {
	return fmt.Sprintf("ck_test_CrashClerk%018d%d", agency, clerk)
}

// start starts the roles and waits until all are ready.
func (s *Stack) start(ctx context.Context, t testing.TB, of Shape) {
	t.Helper()
	t.Cleanup(func() {
		s.stop()
		for _, p := range s.Fleet {
			NamesNoSession(t, p.LogFile())
		}
	})
	if err := s.outside.Start(); err != nil {
		t.Fatal(err)
	}
	listen := Ports(t, of.Ingresses)
	for _, port := range listen {
		s.Ingress = append(s.Ingress, "http://"+program.Local(port))
	}
	add := func(name, role string, args ...string) {
		its, err := s.Program.Of(ctx, role)
		if err != nil {
			t.Fatal(err)
		}
		s.Fleet = append(s.Fleet, its.Process(name, program.Local(Ports(t, 1)[0]), append(args, s.Credentials(t, role)...)...))
	}
	for n := range of.Ingresses {
		instance := strconv.Itoa(n)
		add("ingress-"+instance, "ingress", "ingress", "--listen", program.Local(listen[n]), "--instance", instance, "--drain", "0s",
			"--checkout-url", s.Ingress[0], "--callback-url", s.Ingress[n])
	}
	for n := range of.Processors {
		instance := strconv.Itoa(n)
		add("processor-"+instance, "checkout", "processor", "--instance", instance, "--store", filepath.Join(s.Dir, "store-"+instance))
	}
	for n := range of.Batches {
		instance := strconv.Itoa(n)
		add("disbursement-"+instance, "disbursement", "processor", "disbursement", "--instance", instance, "--store", filepath.Join(s.Dir, "store-disbursement-"+instance))
	}
	for n, port := range Ports(t, of.Offices) {
		if n == 0 {
			s.StaffURL = fmt.Sprintf("http://localhost:%d", port) // browsers allow passkeys for names only
		}
		s.Offices = append(s.Offices, program.Local(port))
		add(fmt.Sprintf("office-%d", n), "office", "office", "--listen", s.Offices[n], "--staff-url", s.StaffURL)
	}
	for n := range of.Sinks {
		instance := strconv.Itoa(n)
		for _, sink := range []string{"collect", "webhook", "cashin", "erp", "readmodel", "journal", "schedule", "cases", "match", "notify", "tidy", "disburse"} {
			if (sink == "notify" || sink == "disburse") && s.secure == nil && !slices.Contains(of.Only, sink) {
				continue // few suites send messages or pay people
			}
			if len(of.Only) > 0 && !slices.Contains(of.Only, sink) {
				continue
			}
			args := []string{"sink", sink, "--instance", instance}
			if sink == "collect" { // the operator calls back another ingress for each instance
				args = append(args, "--callback-url", s.Ingress[n%of.Ingresses])
			}
			add(sink+"-"+instance, sink, args...)
		}
	}
	for _, p := range s.Fleet {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := program.AwaitReady(ctx, append([]*program.Process{s.outside}, s.Fleet...)...); err != nil {
		t.Fatal(err)
	}
}

// Process returns a process of the fleet by its name, such as erp-0.
func (s *Stack) Process(t testing.TB, name string) *program.Process {
	t.Helper()
	i := slices.IndexFunc(s.Fleet, func(p *program.Process) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no process %s", name)
	}
	return s.Fleet[i]
}

// stop kills all processes.
func (s *Stack) stop() {
	all := append([]*program.Process{s.outside}, s.Fleet...)
	for _, p := range all {
		p.Kill()
	}
	for _, p := range all {
		p.Quit()
	}
}

// Outputs logs the end of the output of every process.
func (s *Stack) Outputs(t testing.TB) {
	t.Helper()
	for _, p := range append([]*program.Process{s.outside}, s.Fleet...) {
		t.Logf("---- the end of the output of %s, which has ended by itself %d times\n%s", p.Name, p.Unexpected.Load(), program.Tail(p.LogFile(), 3<<10))
	}
}

// StartPostgres starts the database server again, after it was stopped.
func (s *Stack) StartPostgres(ctx context.Context) (err error) {
	s.Server, err = devstack.StartPostgres(ctx, s.Database)
	return err
}

// KillPostgres kills the database server and starts it again: it recovers from its log.
func (s *Stack) KillPostgres(ctx context.Context) error {
	if err := s.Server.Kill(ctx); err != nil {
		return err
	}
	return s.StartPostgres(ctx)
}

// BackUpPostgres stops the database server, copies its data and starts it again.
func (s *Stack) BackUpPostgres(ctx context.Context) error {
	if err := s.Server.Stop(ctx); err != nil {
		return err
	}
	if err := exec.CommandContext(ctx, "cp", "-a", s.Database.Dir, s.backup()).Run(); err != nil {
		return fmt.Errorf("copying the data of PostgreSQL: %w", err)
	}
	return s.StartPostgres(ctx)
}

// RestorePostgres replaces the data of the database server by the copy of BackUpPostgres.
// Everything that was written after the copy is gone.
func (s *Stack) RestorePostgres(ctx context.Context) error {
	if err := s.Server.Stop(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Database.Dir); err != nil {
		return fmt.Errorf("removing the data of PostgreSQL: %w", err)
	}
	if err := os.Rename(s.backup(), s.Database.Dir); err != nil {
		return fmt.Errorf("restoring the data of PostgreSQL: %w", err)
	}
	return s.StartPostgres(ctx)
}

func (s *Stack) backup() string { return s.Database.Dir + "-backup" }

// WebhookKinds are the events that an endpoint can subscribe to. They are written out, so
// that a change of the service's own list fails a suite.
var WebhookKinds = []string{"checkout.completed", "checkout.failed", "checkout.cancelled", "checkout.expired", "checkout.late_payment", "checkout.reversed", "checkout.partially_reversed"}

// JourneyPatience is how long a client repeats a request. RequestPatience is how long each
// request waits for its answer.
const (
	JourneyPatience = 2 * time.Minute
	RequestPatience = 8 * time.Second
)
