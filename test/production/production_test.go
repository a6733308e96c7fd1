package production

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/dev/clock"
	"quittance/dev/stack/chdb"
	"quittance/dev/stack/program"
	"quittance/internal/kafka"
	"quittance/internal/postgres"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/test/await"
	"quittance/test/harness"
	"quittance/test/servers"
)

const (
	public      = "https://pay.example"
	application = "018f0000-0000-7000-8000-00000000000a"
	startWithin = 2 * time.Minute
)

// coreless matches the limits of a process that leaves no core dump.
var coreless = regexp.MustCompile(`(?m)^Max core file size\s+0\s+0\s`)

// registry is a file without anything that only quittance-dev accepts.
const registry = `agencies:
  - id: 018f0000-0000-7000-8000-000000000001
    slug: impots
    name: Impôts
    services: [{code: patente, label: Patente}]
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 0, maximum: 5000}]
    applications:
      - id: ` + application + `
        name: Guichet fiscal
        offers: [momo]
        webhook_endpoints: [{url: "https://guichet.example/webhooks", events: [checkout.cancelled]}]
`

// account is a file with an operator's account. Its plain secrets are accepted by
// quittance-dev only.
const account = `agencies:
  - id: 018f0000-0000-7000-8000-000000000001
    slug: impots
    name: Impôts
    connectors: {test: {momo: {base_url: "https://momo.example", target_environment: sandbox, subscription_key: SubscriptionKey000000001, api_user: 018f0000-0000-7000-8000-0000000000aa, api_key: ApiKey0000000000000000001}}}
`

// installation is the production program with its servers.
type installation struct {
	*program.Program
	path, dir, prefix string
	dsn               string // of the superuser
	pool              *postgres.Pool
	engine            chdb.Config
	journal           *chdb.Server
	keys              *secret.Keys
}

// newInstallation migrates an installation on a broker that is the only one of its cluster.
func newInstallation(t *testing.T) *installation {
	t.Helper()
	i := emptyInstallation(t, "QUITTANCE_PARTITIONS=2", "QUITTANCE_ACCEPT_ONE_REPLICA=true")
	i.succeeds(t, i.path, "migrate", "--postgres", servers.Login(t, i.dsn, "migrate"))
	i.restrictsTheJournal(t)
	if _, err := clock.Advance(t.Context(), i.pool, 1000*time.Hour); err != nil {
		t.Fatal(err)
	}
	return i
}

// emptyInstallation has servers without topics and tables. Its environment has the variables that
// Kubernetes makes for a service called quittance.
func emptyInstallation(t *testing.T, environment ...string) *installation {
	t.Helper()
	path := servers.Quittance(t)
	dir := servers.Dir(t)
	logs := filepath.Join(dir, "output")
	if err := os.Mkdir(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	dsn, pool := servers.Database(t)
	prefix := servers.Prefix(t) + "."
	// With the groups of developers, as tests also run commands of the other program here.
	servers.Grant(t, dsn, harness.Grants(t.Context(), t, servers.QuittanceDev(t)))
	engine := chdb.Config{Dir: filepath.Join(dir, "clickhouse"), Addr: program.Local(harness.Ports(t, 1)[0]), Log: servers.Logger(t)}
	journal, err := chdb.Start(t.Context(), engine)
	if err != nil {
		t.Fatal(err)
	}
	keys := secret.GenerateKeys()
	i := &installation{path: path, dir: dir, prefix: prefix, dsn: dsn, pool: pool, engine: engine, journal: journal, keys: keys, Program: program.New(path, logs, append(environment,
		"QUITTANCE_PORT=tcp://10.96.0.7:8080", "QUITTANCE_SERVICE_HOST=10.96.0.7", "QUITTANCE_TOPIC_PREFIX="+prefix,
		"QUITTANCE_KAFKA="+servers.Kafka(t), "QUITTANCE_POSTGRES="+servers.Login(t, dsn, "operator"), "QUITTANCE_CLICKHOUSE=http://"+engine.Addr+"/quittance",
		"QUITTANCE_SCHEMA_REGISTRY="+servers.SchemaRegistry(t), "QUITTANCE_DATA="+filepath.Join(dir, "data"),
		"QUITTANCE_MASTER_KEYS="+keys.Reveal(), "QUITTANCE_REFERENCE_KEY="+secret.GenerateReferenceKey().Reveal())...)}
	t.Cleanup(func() { _ = i.journal.Stop(context.WithoutCancel(t.Context())) })
	return i
}

// restrictsTheJournal starts the ClickHouse engine again with the rights of the operator, who has those of the sink journal.
// The engine has one user.
func (i *installation) restrictsTheJournal(t *testing.T) {
	t.Helper()
	if err := i.journal.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(i.succeeds(t, i.path, "grants", "operator", "--server", "clickhouse")) {
		if grant, _, is := strings.Cut(line, " TO "); is {
			i.engine.Users = `<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/><networks><ip>::/0</ip></networks>
				<profile>default</profile><quota>default</quota><grants><query>` + grant + `</query></grants></default></users></clickhouse>`
		}
	}
	var err error
	if i.journal, err = chdb.Start(t.Context(), i.engine); err != nil {
		t.Fatal(err)
	}
}

// as returns the flag with which a role connects to Postgres. The processor has no user there.
func (i *installation) as(t *testing.T, role ...string) []string {
	t.Helper()
	name := role[0]
	switch name {
	case "sink":
		name = role[1]
	case "processor":
		return role
	}
	return append(slices.Clone(role), "--postgres", servers.Login(t, i.dsn, name))
}

// of returns the program with the keys of a role.
func (i *installation) of(t *testing.T, role string) *program.Program {
	t.Helper()
	its, err := i.Of(t.Context(), role)
	if err != nil {
		t.Fatal(err)
	}
	return its
}

// roleOf returns the name of the role that a command runs.
func roleOf(args []string) string {
	switch args[0] {
	case "sink":
		return args[1]
	case "processor":
		return "checkout"
	}
	return args[0]
}

// run runs a command of a program on the installation.
func (i *installation) run(t *testing.T, path string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = i.dir, i.Environment()
	if role := roleOf(args); path == i.path && slices.Contains([]string{"ingress", "processor", "sink"}, args[0]) {
		cmd.Env = i.of(t, role).Environment()
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (i *installation) succeeds(t *testing.T, path string, args ...string) string {
	t.Helper()
	stdout, stderr, code := i.run(t, path, args...)
	if code != 0 {
		t.Fatalf("%v ends with %d and prints %s", args, code, stderr)
	}
	return stdout
}

// file writes a registry file.
func (i *installation) file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(i.dir, "registry.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProductionRefusesWhatDevelopersMay(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	for name, with := range map[string]struct{ old, new, want string }{
		"a plain key":            {"offers: [momo]", "offers: [momo]\n        keys: [{secret: sk_test_OwnKey0000000000000000000}]", "is a secret in plain text, which is allowed in developer mode only"},
		"a plain signing secret": {"events:", "secret: whsec_OwnSecret0000000000000000000000, events:", "is a secret in plain text, which is allowed in developer mode only"},
		"a demo key":             {"offers: [momo]", "offers: [momo]\n        keys: [{secret: sk_test_GuichetDemoKey00000000000}]", "agencies[0].applications[0].keys[0].secret is a secret of the demo registry, which everybody can read"},
		"an http endpoint":       {"https://guichet.example", "http://guichet.example", "must be https"},
		"a loopback endpoint":    {"https://guichet.example", "http://127.0.0.1:8081", "must be https"},
	} {
		text := strings.Replace(registry, with.old, with.new, 1)
		if _, stderr, code := i.run(t, i.path, "seed", i.file(t, text)); code != 1 || !strings.Contains(stderr, with.want) {
			t.Errorf("%s: seed ends with %d and prints %s, want 1 and %q", name, code, stderr, with.want)
		}
	}
	for want, args := range map[string][]string{
		`unknown flag: --developer`:     {"ingress", "--developer"},
		`unknown flag: --port`:          {"keys", "list", "--port", "8080"},
		`unknown flag: --simulator-url`: {"ingress", "--simulator-url", "http://127.0.0.1:8081"},
		`unknown command "up"`:          {"up"},
		`say at which service`:          {"listen"},
		`unknown command "simulate"`:    {"simulate"},
		`unknown command "bench"`:       {"bench"},
	} {
		if _, stderr, code := i.run(t, i.path, args...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v ends with %d and prints %s, want 2 and %q", args, code, stderr, want)
		}
	}
}

// A developer's registry was applied to the database: its keys, which everybody can read,
// were valid in production.
func TestProductionRefusesDemoSecrets(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	dev := servers.QuittanceDev(t)
	demo, err := filepath.Abs("../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i.succeeds(t, dev, "seed", "--port", "0", demo)
	const want = "of Guichet fiscal (impots): end it with `quittance keys revoke "
	for _, args := range [][]string{{"ingress", "--checkout-url", public}, {"sink", "webhook"}, {"doctor", "ingress"}} {
		if args[0] != "doctor" {
			args = i.as(t, args...)
		}
		if stdout, stderr, code := i.run(t, i.path, args...); code != 1 || !strings.Contains(stdout+stderr, want) || strings.Contains(stdout+stderr, "DemoKey") {
			t.Errorf("%v ends with %d and prints %s%s, want 1 and %q", args, code, stdout, stderr, want)
		}
	}
}

// Topics with money on one disk, and a number of partitions that nobody chose, cannot be
// corrected later.
func TestProductionRefusesToLosePayments(t *testing.T) {
	t.Parallel()
	i := emptyInstallation(t)
	migrate := func(args ...string) []string {
		return append([]string{"migrate", "--postgres", servers.Login(t, i.dsn, "migrate")}, args...)
	}
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{migrate(), 2, "--partitions is not set"},
		{migrate(), 2, "--partitions 64"},
		{migrate("--partitions", "2"), 1, "--accept-one-replica"},
		{migrate("--partitions", "2", "--replication", "1"), 2, "--accept-one-replica accepts that one lost disk loses payments"},
		{migrate("--partitions", "2", "--accept-one-replica"), 0, "topics are ready"},
		{migrate(), 1, "fewer than 3 replicas"},
		{migrate("--partitions", "3", "--accept-one-replica"), 1, "has 2 partitions and cannot have 3"},
		{[]string{"sink", "journal"}, 1, "fewer than 3 replicas"},
		{[]string{"doctor", "journal"}, 1, "fewer than 3 replicas"},
		{[]string{"ingress", "--accept-one-replica", "--checkout-url", public, "--reference-key="}, 1, "QUITTANCE_REFERENCE_KEY is not set"},
		{[]string{"sink", "schedule", "--accept-one-replica", "--master-keys", i.keys.Reveal()}, 1, "QUITTANCE_MASTER_KEYS holds the master keys"},
		{[]string{"sink", "collect", "--accept-one-replica", "--checkout-url", public, "--callback-url", public, "--master-keys", i.keys.Subset("schedule", nil).Reveal()}, 1, `lack seal "connector accounts"`},
		{[]string{"ingress", "--accept-one-replica"}, 2, "not set: --checkout-url (or QUITTANCE_CHECKOUT_URL), the https address"},
		{[]string{"ingress", "--accept-one-replica", "--checkout-url", "http://pay.example"}, 1, "--checkout-url http://pay.example: must be https"},
		{[]string{"ingress", "--accept-one-replica", "--checkout-url", "pay.example"}, 1, "--checkout-url: must be an https address"},
		{[]string{"sink", "notify", "--accept-one-replica"}, 2, "not set: --checkout-url (or QUITTANCE_CHECKOUT_URL), the https address"},
		{[]string{"sink", "notify", "--accept-one-replica", "--checkout-url", public, "--sms", "infobip+http://127.0.0.1?sender=X"}, 1, "--sms (the secret is --sms-secret or --sms-secret-file): http is for developers"},
		{[]string{"sink", "notify", "--accept-one-replica", "--checkout-url", public, "--mail", "smtp://mail.example"}, 1, "from: must be the e-mail address"},
		{[]string{"sink", "collect", "--accept-one-replica", "--checkout-url", public, "--callback-url", "http://pay.example"}, 1, "--callback-url http://pay.example: must be https"},
		{[]string{"doctor", "ingress", "--accept-one-replica", "--reference-key="}, 1, "QUITTANCE_REFERENCE_KEY is not set"},
		{[]string{"doctor", "journal", "--accept-one-replica"}, 0, "WARNING: one lost disk loses payments"},
	} {
		if step.args[0] == "ingress" || step.args[0] == "sink" {
			step.args = i.as(t, step.args...)
		}
		stdout, stderr, code := i.run(t, i.path, step.args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v ends with %d and prints %s%s; want %d and %q", step.args, code, stdout, stderr, step.code, step.want)
		}
	}
}

func TestProduction(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	// An endpoint's secret is shown only once, so --json must show it.
	if report := i.succeeds(t, i.path, "seed", "--json", i.file(t, registry)); !strings.Contains(report, `"Secret": "whsec_`) {
		t.Errorf("seed --json shows no signing secret: %s", report)
	}
	dev := servers.QuittanceDev(t)
	i.succeeds(t, dev, "seed", "--port", "0", i.file(t, account))
	var key struct{ Secret string }
	if err := json.Unmarshal([]byte(i.succeeds(t, i.path, "keys", "create", "--application", application, "--mode", "test", "--json")), &key); err != nil {
		t.Fatal(err)
	}

	roles := [][]string{{"processor", "--instance", "0"}, {"ingress"}}
	for _, sink := range []string{"collect", "notify", "webhook", "cashin", "erp", "schedule", "cases", "readmodel", "journal", "tidy", "disburse"} {
		roles = append(roles, []string{"sink", sink})
	}
	ports := harness.Ports(t, len(roles)+1)
	service := program.Local(ports[len(roles)])
	roles[1] = append(roles[1], "--listen", service, "--checkout-url", public, "--drain", "0s") // nobody is given time to move on
	roles[2] = append(roles[2], "--checkout-url", public, "--callback-url", public)
	roles[3] = append(roles[3], "--checkout-url", public) // without a provider it starts, and warns
	var processes []*program.Process
	supervisor := newSupervisor(t)
	for n, args := range roles {
		p := i.of(t, roleOf(args)).With("NOTIFY_SOCKET="+supervisor.path).Process(strings.Join(args[:min(2, len(args))], "-"), program.Local(ports[n]), i.as(t, args...)...)
		processes = append(processes, p)
		t.Cleanup(p.Quit)
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	if err := program.AwaitReady(ctx, processes...); err != nil {
		t.Fatal(err)
	}
	for _, p := range processes {
		if log := program.Tail(p.LogFile(), 64<<10); !strings.Contains(log, "developer=false") || strings.Contains(log, "developer mode") {
			t.Errorf("%s does not log developer=false, or logs developer mode:\n%s", p.Name, log)
		}
		if status, _ := call(t, http.MethodGet, "http://"+p.Health+"/debug/pprof/", "", ""); status != http.StatusNotFound {
			t.Errorf("%s answers %d for profiles, want 404", p.Name, status)
		}
		if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.Pid())); err != nil || !coreless.Match(limits) {
			t.Errorf("%s can leave a core dump: %v\n%s", p.Name, err, limits)
		}
	}
	if found := i.succeeds(t, i.path, "doctor", "ingress"); !strings.Contains(found, "every application that has a key can be paid") {
		t.Errorf("doctor finds %s", found)
	}
	secured(t, "http://"+service)

	sessions := "http://" + service + "/api/v1/checkout/sessions"
	type session struct {
		ID        string    `json:"id"`
		Status    string    `json:"status"`
		CreatedAt time.Time `json:"created_at"`
	}
	ask := func(method, url, body string, want int) (s session) {
		t.Helper()
		status, text := call(t, method, url, key.Secret, body)
		if err := json.Unmarshal(text, &s); status != want || err != nil {
			t.Fatalf("%s %s answers %d %s, want %d", method, url, status, text, want)
		}
		return s
	}
	created := ask(http.MethodPost, sessions, `{"order_id":"order-1","amount":5000,"description":"Patente","service_code":"patente"}`, http.StatusCreated)
	if ahead := time.Until(created.CreatedAt); ahead > time.Hour {
		t.Errorf("the developer's clock moves the production program by %s", ahead)
	}
	if read := ask(http.MethodGet, sessions+"/"+created.ID, "", http.StatusOK); read.ID != created.ID || read.Status != created.Status {
		t.Errorf("the session is read as %+v and was created as %+v", read, created)
	}
	i.costsOfMadeUpIDs(t, "http://"+service, created.ID, key.Secret)
	ask(http.MethodPost, sessions+"/"+created.ID+"/cancel", "", http.StatusOK)
	if read := ask(http.MethodGet, sessions+"/"+created.ID, "", http.StatusOK); read.Status != "cancelled" {
		t.Errorf("after the cancellation the session is %s", read.Status)
	}

	// The agency has no live account yet: its citizens could not pay.
	var live struct{ Secret string }
	if err := json.Unmarshal([]byte(i.succeeds(t, i.path, "keys", "create", "--application", application, "--mode", "live", "--json")), &live); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "a creation without a channel is refused", func() error { // a new key is known within a second
		if status, text := call(t, http.MethodPost, sessions, live.Secret, `{"order_id":"order-2","amount":5000}`); status != http.StatusUnprocessableEntity || !strings.Contains(string(text), `"code":"checkout.no_channel"`) {
			return fmt.Errorf("it is answered %d %s", status, text)
		}
		return nil
	})
	if found := i.succeeds(t, i.path, "doctor", "ingress"); !strings.Contains(found, "creations of Guichet fiscal (impots) live are refused with checkout.no_channel") {
		t.Errorf("doctor finds %s", found)
	}

	supervisor.told(t, "READY=1", len(processes))
	i.restartsTheEdge(t, processes[0], processes[1], sessions, key.Secret)
	supervisor.told(t, "STOPPING=1", 1)
	supervisor.told(t, "READY=1", len(processes)+1)

	// Derived data is lost, and made again while the roles run.
	if _, err := i.pool.Exec(t.Context(), `DELETE FROM sessions`); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"readmodel", "journal"} {
		if report := i.succeeds(t, i.path, "rebuild", what, "--yes", "--json"); !strings.Contains(report, `"equal": true`) || !strings.Contains(report, `"status": "cancelled"`) {
			t.Errorf("rebuild %s: %s", what, report)
		} else if what == "journal" && (!strings.Contains(report, `"receipts": []`) || !strings.Contains(report, `"expected_money": []`)) { // nothing was paid
			t.Errorf("rebuild %s tells no sums of receipts and expected money: %s", what, report)
		}
	}
	if read := ask(http.MethodGet, sessions+"/"+created.ID, "", http.StatusOK); read.Status != "cancelled" {
		t.Errorf("after the rebuild the session is %s", read.Status)
	}
	if _, stderr, code := i.run(t, i.path, "rebuild", "readmodel"); code != 2 || !strings.Contains(stderr, "Reads of sessions answer 503") || !strings.Contains(stderr, "nothing was done") {
		t.Errorf("a rebuild without an answer ends with %d and prints %s", code, stderr)
	}
	if _, stderr, code := i.run(t, i.path, "rebuild", "stores", "--instance", "0", "--yes"); code != 1 || !strings.Contains(stderr, "stop `quittance processor checkout") {
		t.Errorf("rebuild stores beside the processor ends with %d and prints %s", code, stderr)
	}
	processes[0].Quit()
	if report := i.succeeds(t, i.path, "rebuild", "stores", "--instance", "0", "--yes"); !strings.Contains(report, "Removed the local stores of 2 partitions") {
		t.Errorf("rebuild stores: %s", report)
	}
}

func call(t *testing.T, method, url, key, body string) (status int, answer []byte) {
	t.Helper()
	status, answer, err := send(t.Context(), method, url, key, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

func send(ctx context.Context, method, url, key, body string) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", rand.Text())
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// supervisor is the socket on which systemd hears of the state of its services (Type=notify).
type supervisor struct {
	path string
	mu   sync.Mutex
	said map[string]int
}

func newSupervisor(t *testing.T) *supervisor {
	t.Helper()
	s := &supervisor{path: filepath.Join(servers.Dir(t), "s"), said: map[string]int{}}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		for buffer := make([]byte, 4096); ; {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.said[string(buffer[:n])]++
			s.mu.Unlock()
		}
	}()
	return s
}

// told waits until processes have said something as often.
func (s *supervisor) told(t *testing.T, what string, want int) {
	t.Helper()
	got := 0
	if !await.Within(startWithin, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = s.said[what]
		return got >= want
	}) || got != want {
		t.Errorf("systemd is told %s %d times, want %d", what, got, want)
	}
}

// restartsTheEdge restarts the ingress while 16 creations await their replies. A restart lost all of
// them: the callers got an error for sessions that were created.
func (i *installation) restartsTheEdge(t *testing.T, processor, ingress *program.Process, sessions, key string) {
	t.Helper()
	const inFlight = 16
	begun := i.commands(t)
	freeze := func(signal syscall.Signal) {
		if err := syscall.Kill(processor.Pid(), signal); err != nil {
			t.Fatal(err)
		}
	}
	freeze(syscall.SIGSTOP)
	answers := make(chan string, inFlight)
	for n := range inFlight {
		go func() {
			status, text, err := send(context.WithoutCancel(t.Context()), http.MethodPost, sessions, key, fmt.Sprintf(`{"order_id":"restart-%d","amount":5000,"service_code":"patente"}`, n))
			answers <- fmt.Sprintf("%d %v %s", status, err, text)
		}()
	}
	sent := await.Within(time.Second, func() bool { return i.commands(t) >= begun+inFlight })
	ended := make(chan struct{})
	go func() { ingress.Signal(syscall.SIGTERM); close(ended) }()
	unready := await.Within(time.Second, func() bool {
		_, err := ingress.Get(t.Context(), "/readyz")
		return err != nil
	})
	freeze(syscall.SIGCONT)
	if !sent || !unready {
		t.Errorf("the commands were sent: %v, the ingress became unready: %v", sent, unready)
	}
	lost := 0
	for range inFlight {
		if answer := <-answers; !strings.HasPrefix(answer, "201 ") {
			lost++
			t.Logf("a creation in flight is answered %s", answer)
		}
	}
	if lost > 0 {
		t.Errorf("a restart of the edge lost %d of %d replies in flight", lost, inFlight)
	}
	<-ended
	if err := ingress.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	if err := program.AwaitReady(ctx, ingress); err != nil {
		t.Fatal(err)
	}
}

// secured checks that browsers are told to come by https.
func secured(t *testing.T, service string) {
	t.Helper()
	for _, path := range []string{"/docs", "/c/nobody", "/api/v1/checkout/sessions", "/nowhere"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, service+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := httpclient.Default.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.Header.Values("Strict-Transport-Security"); len(got) != 1 || got[0] != "max-age=31536000" {
			t.Errorf("%s is answered %d with HSTS %q", path, resp.StatusCode, got)
		}
	}
}

// costsOfMadeUpIDs sends made-up ids and tokens to the edge of a created session. A made-up
// id cost a query, a report or a form with it a command.
func (i *installation) costsOfMadeUpIDs(t *testing.T, service, id, key string) {
	t.Helper()
	old := id[:len(id)-10] // of an earlier release, without a MAC
	forged := old + "0123456789"
	token := "cpt_" + strings.Repeat("0", 74)
	begun, queries := i.commands(t), i.lookUps(t)
	const rounds = 20
	for range rounds {
		for _, c := range []struct {
			method, path, key, body string
			want                    int
		}{
			{http.MethodGet, "/c/" + forged, "", "", 404},
			{http.MethodGet, "/c/" + forged + "/live", "", "", 404},
			{http.MethodPost, "/c/" + forged + "/cancel", "", "", 404},
			{http.MethodGet, "/embed/" + forged + "?client_secret=chs_secret_x&parent_origin=https://guichet.example", "", "", 404},
			{http.MethodPost, "/embed/" + forged + "/completion-token", "chs_secret_x", "", 404},
			{http.MethodPost, "/callbacks/mtn/" + forged + "/018f0000-0000-7000-8000-0000000000aa", "", "", 404},
			{http.MethodGet, "/api/v1/checkout/sessions/" + forged, key, "", 404},
			{http.MethodPost, "/api/v1/checkout/sessions/" + forged + "/cancel", key, "", 404},
			{http.MethodPost, "/api/v1/checkout/sessions/verify-completion", key, `{"completion_token":"` + token + `"}`, 404},
		} {
			if status, _ := call(t, c.method, service+c.path, c.key, c.body); status != c.want {
				t.Errorf("%s %s answers %d, want %d", c.method, c.path, status, c.want)
			}
		}
	}
	// Postgres counts after up to ten seconds, so known look-ups end the count.
	for _, path := range []string{"/c/" + id, "/c/" + old, "/api/v1/checkout/sessions/" + id} {
		want := http.StatusOK
		if strings.HasSuffix(path, old) {
			want = http.StatusNotFound
		}
		if status, _ := call(t, http.MethodGet, service+path, key, ""); status != want {
			t.Errorf("GET %s answers %d, want %d", path, status, want)
		}
	}
	harness.Eventually(t, "counting look-ups of sessions", func() error {
		switch n := i.lookUps(t) - queries; {
		case n < 3:
			return fmt.Errorf("%d look-ups of sessions, want the 3 of real ids", n)
		case n >= rounds: // the session's creation may be counted late
			t.Errorf("%d look-ups of sessions for %d calls with made-up ids", n, 9*rounds)
		}
		return nil
	})
	if ended := i.commands(t); ended != begun {
		t.Errorf("made-up ids were %d commands", ended-begun)
	}
}

// lookUps returns how often Postgres has searched the sessions of the read model.
func (i *installation) lookUps(t *testing.T) (n int64) {
	t.Helper()
	if err := i.pool.QueryRow(t.Context(), `SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname = 'sessions'`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// commands returns how many records the commands have.
func (i *installation) commands(t *testing.T) (n int64) {
	t.Helper()
	cl, err := kafka.Config{Brokers: []string{servers.Kafka(t)}}.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kafka.Offsets(kadm.NewClient(cl).ListEndOffsets(t.Context(), i.prefix+schemas.TopicCommands))
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		n += end
	}
	return n
}
