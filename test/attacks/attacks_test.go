package attacks_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/dev/bench/client"
	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"
)

// commit names the release that is attacked; empty for the tree.
var commit = os.Getenv("QUITTANCE_ATTACKS_COMMIT")

// patience is how long an attack waits for its effect. A service that refuses it has no effect to wait for.
const patience = 12 * time.Second

const (
	keyOfGuichet = "sk_test_GuichetDemoKey00000000000"
	paysAtOnce   = "06 600 00 01"
	waits        = "06 600 00 90" // for /control of the simulators, which nobody uses
)

// installation is what the attacks are made on.
type installation struct {
	*client.Client
	t       *testing.T
	program string // quittance-dev
	port    int
	db      *pgx.Conn
	thief   *thief
	dir     string
}

// attack is one attempt of somebody who has a part. do returns nil when it succeeded.
type attack struct {
	part, gain string
	account    bool // the agency has an account at the operator
	do         func(*installation) error
}

var list = []attack{
	{"Postgres", "the ERP's token", false, sendTokenToThief},
	{"Postgres", "the operator's keys, and paid by the thief's word", true, becomeTheOperator},
	{"Postgres", "a key of the platform", false, insertKey},
	{"Postgres", "two members of staff who give money back", false, insertStaff},
	{"Postgres", "the receipts' key set has a key of the thief", false, insertReceiptKey},
	{"Postgres", "no trace in the audit table", false, removeTrace},
	{"Kafka", "paid by a command of any client", false, forgeOutcome},
	{"Kafka", "a signed webhook about a payment that is not paid", false, forgeWebhook},
}

// Each attack succeeds on the release that the variable names, and fails on the tree.
func TestAttacks(t *testing.T) {
	if os.Getenv("QUITTANCE_ATTACKS") == "" {
		t.Skip("runs by `make test/attacks`")
	}
	attacked := built(t)
	succeeded := 0
	for _, a := range list {
		t.Run(a.part+": "+a.gain, func(t *testing.T) {
			err := a.do(start(t, attacked, a.account))
			outcome := "succeeded"
			if err != nil {
				outcome = "failed: " + err.Error()
			} else {
				succeeded++
			}
			t.Logf("%s taken: %s: %s", a.part, a.gain, outcome)
			if (err == nil) != (commit != "") {
				t.Errorf("%s taken: %s: %s", a.part, a.gain, outcome)
			}
		})
	}
	t.Logf("attacks=%d succeeded=%d release=%s", len(list), succeeded, cmp.Or(commit, "tree"))
}

// release is what is attacked: its quittance-dev, and its demo registry.
type release struct{ program, registry string }

// built builds the release that the variable names, or else the tree.
func built(t *testing.T) release {
	t.Helper()
	if commit == "" {
		return release{servers.QuittanceDev(t), harness.Absolute(t, program.DemoRegistry)}
	}
	tree, out := filepath.Join(t.TempDir(), "tree"), filepath.Join(t.TempDir(), "quittance-dev")
	run := func(dir, name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, text)
		}
	}
	run(harness.Root, "git", "clone", "--quiet", "--no-checkout", ".", tree)
	run(tree, "git", "checkout", "--quiet", commit)
	run(tree, "go", "build", "-buildvcs=false", "-o", out, "./cmd/quittance-dev")
	return release{out, filepath.Join(tree, program.DemoRegistry)}
}

// start starts an installation of its own.
func start(t *testing.T, of release, account bool) *installation {
	t.Helper()
	dir, port := servers.Dir(t), harness.Ports(t, program.UpPorts)[0]
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	up, err := program.StartUp(ctx, program.UpConfig{Program: of.program, Root: harness.Root, Dir: dir, Port: port, Registry: registry(t, of, dir, account)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_ = up.Stop(ctx)
		if t.Failed() {
			t.Logf("the end of its log:\n%s", program.Tail(filepath.Join(dir, "stderr.log"), 6<<10))
		}
	})
	password, err := os.ReadFile(filepath.Join(dir, "data", "postgres", "password"))
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(ctx, fmt.Sprintf("postgres://quittance:%s@127.0.0.1:%d/quittance", strings.TrimSpace(string(password)), port+4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	return &installation{Client: client.New(port), t: t, program: of.program, port: port, db: db, thief: newThief(t), dir: dir}
}

// registry is the demo registry, on demand with a merchant account of mobile money.
func registry(t *testing.T, of release, dir string, account bool) string {
	t.Helper()
	if !account {
		return of.registry
	}
	text, err := os.ReadFile(of.registry)
	if err != nil {
		t.Fatal(err)
	}
	const before = "    # The citizen portal shows"
	lines := `    connectors:
      test:
        momo: {base_url: "http://127.0.0.1:9", target_environment: sandbox, subscription_key: the-subscription-key, api_user: 018f0000-0000-7000-8000-0000000000aa, api_key: the-api-key}
`
	path := filepath.Join(dir, "registry.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), before, lines+before, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (i *installation) exec(sql string, args ...any) error {
	_, err := i.db.Exec(i.t.Context(), sql, args...)
	return err
}

// create makes a session of the agency, or ends the test.
func (i *installation) create(body string) client.Session {
	i.t.Helper()
	s, err := i.Create(i.t.Context(), keyOfGuichet, body)
	if err != nil {
		i.t.Fatal(err)
	}
	return s
}

// order is the body of a session of 5,000 FCFA with a due of the agency's ERP.
func order(name string) string {
	return fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":"patente","metadata":{"erp_due_ref":"DUE-%s"}}`, name, name)
}

// pay pays a session at the simulated operator, or ends the test.
func (i *installation) pay(s client.Session, phone string) {
	i.t.Helper()
	if err := i.Citizen(s.ID).Pay(i.t.Context(), phone); err != nil {
		i.t.Fatal(err)
	}
}

// completed makes a session that is paid, or ends the test.
func (i *installation) completed(name string) client.Session {
	i.t.Helper()
	s := i.create(order(name))
	i.pay(s, paysAtOnce)
	if err := i.becomes(s.ID, "completed"); err != nil {
		i.t.Fatal(err)
	}
	return s
}

// becomes waits until a session has a status.
func (i *installation) becomes(id, status string) error {
	return within(func() error {
		a, err := i.Send(i.t.Context(), http.MethodGet, i.Sessions("/"+id), "", "Authorization", "Bearer "+keyOfGuichet)
		if err != nil {
			return err
		}
		var s client.Session
		if err := json.Unmarshal(a.Body, &s); err != nil {
			return err
		}
		if s.Status != status {
			return fmt.Errorf("the session is %s", s.Status)
		}
		return nil
	})
}

// within repeats check for patience.
func within(check func() error) (err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if err = check(); err == nil {
			return nil
		}
	}
	return err
}

func hash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

var errNothing = errors.New("nothing came")
