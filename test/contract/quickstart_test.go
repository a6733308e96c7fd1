package contract_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"

	"github.com/google/uuid"
)

// quickstarts is the folder of the programs that the documentation shows.
const quickstarts = harness.Root + "/ingress/docs/quickstart"

// quickstart is a program as a reader runs it: in a folder of its own, with only the
// language installed.
type quickstart struct {
	language string
	needs    []string // programs that must be installed
	// create and receive are files; receive is empty if there is none.
	create, receive string
	// run returns the command that runs a file; port is empty if the file does not listen.
	run func(t *testing.T, file, port string) []string
	// install is the file with the commands that install our SDK; empty if there is none. dir
	// is then the folder in which they ran.
	install, dir string
}

// script returns a command that runs a file with an interpreter.
func script(interpreter string) func(*testing.T, string, string) []string {
	return func(_ *testing.T, file, _ string) []string { return []string{interpreter, file} }
}

var allQuickstarts = []quickstart{
	{language: "curl", needs: []string{"sh", "curl"}, create: "create.sh", run: script("sh")},
	{language: "Go", needs: []string{"go"}, create: "create.go", receive: "receive.go", run: built},
	{language: "Node", needs: []string{"node"}, create: "create.mjs", receive: "receive.mjs", run: script("node")},
	{language: "PHP", needs: []string{"php"}, create: "create.php", receive: "receive.php", run: func(_ *testing.T, file, port string) []string {
		if port != "" {
			return []string{"php", "-S", "127.0.0.1:" + port, file}
		}
		return []string{"php", file}
	}},
	{language: "Python", needs: []string{"python3"}, create: "create.py", receive: "receive.py", run: script("python3")},
	// Java runs a source file since version 11; the programs are written for 17.
	{language: "Java", needs: []string{"java", "javac"}, create: "Create.java", receive: "Receive.java", run: script("java")},
	{language: "SDK for Go", needs: []string{"go"}, install: "sdk_install_go.sh", create: "sdk_create.go", receive: "sdk_receive.go", run: built},
	{language: "SDK for Node", needs: []string{"node", "npm"}, install: "sdk_install_node.sh", create: "sdk_create.mjs", receive: "sdk_receive.mjs", run: script("node")},
}

// built builds a program in Go. A program that `go run` starts would survive the kill of
// `go run`.
func built(t *testing.T, file, _ string) []string {
	t.Helper()
	path := strings.TrimSuffix(file, ".go")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, filepath.Base(file))
	cmd.Dir = filepath.Dir(file)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", filepath.Base(file), err, out)
	}
	return []string{path}
}

// installed runs the commands that install our SDK in a folder of its own and returns the
// folder. The copy of the source, which the reader has at home, is this repository.
func (q quickstart) installed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(quickstarts, q.install))
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.ReplaceAll(string(text), "$HOME/quittance", harness.Absolute(t, "."))
	if commands == string(text) {
		t.Fatalf("%s does not name the copy of the source", q.install)
	}
	dir := servers.Dir(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=off", "npm_config_offline=true", "npm_config_update_notifier=false") // it needs nothing else
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", q.install, err, out)
	}
	return dir
}

// A newcomer copies a program from the documentation, runs it against the service and
// pays. The program reports the payment. The receiver beside it accepts the webhooks that
// the service signs, and no others.
func TestQuickstarts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	shown, err := os.ReadDir(quickstarts)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range shown {
		if f.Name() != "quickstart.go" && !slices.ContainsFunc(allQuickstarts, func(q quickstart) bool { return slices.Contains([]string{q.create, q.receive, q.install}, f.Name()) }) {
			t.Errorf("the documentation shows %s, and no test runs it", f.Name())
		}
	}

	u, key := harness.Shared(t), "sk_test_"+rand.Text()[:25]
	receivers := map[string]*receiver{}
	for _, q := range allQuickstarts {
		if q.receive != "" && q.missing() == "" {
			var key [32]byte
			_, _ = rand.Read(key[:])
			receivers[q.language] = &receiver{port: harness.Ports(t, 1)[0], key: key[:]}
		}
	}
	var seeded any
	harness.Operator{Up: u}.JSON(t, &seeded, "seed", quickstartAgency(t, key, receivers))

	for _, q := range allQuickstarts {
		t.Run(q.language, func(t *testing.T) {
			t.Parallel()
			if missing := q.missing(); missing != "" {
				t.Skip(missing + " is not installed")
			}
			if q.install != "" {
				q.dir = q.installed(t)
			}
			r := receivers[q.language]
			if r != nil {
				r.start(t, q)
			}
			order := runQuickstart(t, u, q, key)
			if r == nil {
				return
			}
			harness.Eventually(t, "the receiver has the webhook", func() error {
				if printed := r.printed.String(); !strings.Contains(printed, "checkout.completed") || !strings.Contains(printed, order) {
					return fmt.Errorf("it has printed %q", printed)
				}
				return nil
			})
			r.refuses(t)
		})
	}
}

// missing returns the needed programs that are not installed.
func (q quickstart) missing() string {
	var out []string
	for _, name := range q.needs {
		if _, err := exec.LookPath(name); err != nil {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// command copies a program to a folder of its own and returns the command that runs it.
func (q quickstart) command(ctx context.Context, t *testing.T, file, port string, env ...string) *exec.Cmd {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(quickstarts, file))
	if err != nil {
		t.Fatal(err)
	}
	if q.dir == "" {
		q.dir = servers.Dir(t)
	}
	path := filepath.Join(q.dir, file)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := q.run(t, path, port)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Dir(path)
	cmd.Env = append(program.Environment(), append(env, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// runQuickstart runs the program that creates a session and pays the session that it
// prints. It returns the order once the program has printed that it is paid.
func runQuickstart(t *testing.T, u *harness.Up, q quickstart, key string) (order string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*harness.Soon)
	defer cancel()

	refused := q.command(ctx, t, q.create, "", "QUITTANCE_URL="+u.URL(harness.AtService, ""), "QUITTANCE_KEY=sk_test_Unknown00000000000000000")
	if out, err := refused.CombinedOutput(); err == nil || !bytes.Contains(out, []byte("/docs/errors/generic.unauthorized")) {
		t.Errorf("with an unknown key the program ends with %v and prints %s", err, out)
	}

	cmd := q.command(ctx, t, q.create, "", "QUITTANCE_URL="+u.URL(harness.AtService, ""), "QUITTANCE_KEY="+key)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(name string) string {
		t.Helper()
		if !lines.Scan() {
			err := cmd.Wait()
			t.Fatalf("the program ended with %v before it printed %s: %s", err, name, stderr.String())
		}
		value, ok := strings.CutPrefix(lines.Text(), name+": ")
		if !ok {
			t.Fatalf("the program printed %q, want %s", lines.Text(), name)
		}
		return value
	}
	order = next("order_id")
	page := next("checkout_url")

	var list struct{ Items []harness.Session }
	u.Call(t, http.MethodGet, u.Sessions("?order_id="+url.QueryEscape(order)), "", "Authorization", "Bearer "+key).Into(t, &list)
	if len(list.Items) != 1 || list.Items[0].CheckoutURL != page || list.Items[0].Amount != 5000 || list.Items[0].Status != "open" {
		t.Fatalf("the program printed %s and %s; the service has %+v", order, page, list.Items)
	}
	u.Citizen(list.Items[0].ID).Pay(t, "06 600 00 01")
	if got := next("status"); got != "completed, paid: true" {
		t.Errorf("after the payment the program printed %q", got)
	}
	if err := cmd.Wait(); err != nil || lines.Scan() || stderr.Len() > 0 {
		t.Errorf("the program ended with %v and printed %s%s", err, lines.Text(), stderr.String())
	}
	return order
}

// quickstartAgency writes a registry file with one application. Its webhooks go to the
// receivers.
func quickstartAgency(t *testing.T, key string, receivers map[string]*receiver) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `agencies:
  - id: %s
    slug: quickstart-%d
    name: Quickstart
    services: [{code: patente, label: Patente}]
    default_service: patente
    applications:
      - id: %s
        name: Quickstart
        offers: [momo]
        keys: [{secret: %s}]
        webhook_endpoints:
`, uuid.NewString(), time.Now().UnixNano(), uuid.NewString(), key)
	for _, r := range receivers {
		fmt.Fprintf(&b, "          - {url: %q, secret: %q, events: [checkout.completed]}\n", r.url(), r.secret())
	}
	path := filepath.Join(servers.Dir(t), "registry.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// receiver is a program that receives webhooks.
type receiver struct {
	port    int
	key     []byte
	printed output
}

// output keeps the output of a program. Safe for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (r *receiver) url() string { return "http://" + program.Local(r.port) + "/webhooks" }

func (r *receiver) secret() string { return "whsec_" + base64.StdEncoding.EncodeToString(r.key) }

// start runs the receiver until the test ends.
func (r *receiver) start(t *testing.T, q quickstart) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	port := strconv.Itoa(r.port)
	cmd := q.command(ctx, t, q.receive, port, "PORT="+port, "QUITTANCE_WEBHOOK_SECRET="+r.secret())
	cmd.Stdout, cmd.Stderr = &r.printed, &r.printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ended := make(chan struct{})
	var end error
	go func() {
		runtime.LockOSThread() // as in process.startLocked
		defer runtime.UnlockOSThread()
		end = cmd.Run()
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Logf("the receiver in %s printed:\n%s", q.language, r.printed.String())
		}
	})
	harness.Eventually(t, "the receiver listens", func() error {
		select {
		case <-ended:
			t.Fatalf("the receiver ended: %v", end)
		default:
		}
		_, err := r.post(t, "{}")
		return err
	})
}

// post sends a body to the receiver and returns the status. headers are pairs.
func (r *receiver) post(t *testing.T, body string, headers ...string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url(), strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := httpclient.Default.Do(req)
	if err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Body.Close()
}

// refuses checks that the receiver refuses unsigned and wrongly signed bodies, and takes
// a body with two signatures.
func (r *receiver) refuses(t *testing.T) {
	t.Helper()
	const id = "evt_test"
	event := func(order string) string {
		b, err := json.Marshal(map[string]string{"event": "checkout.completed", "order_id": order})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	sign := func(key []byte, id, timestamp, body string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "." + body))
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).Unix(), 10) }
	now := at(0)
	forged, good := event("forged"), event("good-é")
	stale, early := at(-10*time.Minute), at(10*time.Minute)

	for name, headers := range map[string][]string{
		"nothing":               nil,
		"no signature":          {"webhook-id", id, "webhook-timestamp", now},
		"no id":                 {"webhook-timestamp", now, "webhook-signature", sign(r.key, id, now, forged)},
		"no time":               {"webhook-id", id, "webhook-signature", sign(r.key, id, now, forged)},
		"a time that is none":   {"webhook-id", id, "webhook-timestamp", "now", "webhook-signature", sign(r.key, id, "now", forged)},
		"another key":           {"webhook-id", id, "webhook-timestamp", now, "webhook-signature", sign([]byte("another"), id, now, forged)},
		"no key":                {"webhook-id", id, "webhook-timestamp", now, "webhook-signature", sign(nil, id, now, forged)},
		"another id":            {"webhook-id", "evt_other", "webhook-timestamp", now, "webhook-signature", sign(r.key, id, now, forged)},
		"another body":          {"webhook-id", id, "webhook-timestamp", now, "webhook-signature", sign(r.key, id, now, good)},
		"too old":               {"webhook-id", id, "webhook-timestamp", stale, "webhook-signature", sign(r.key, id, stale, forged)},
		"from the future":       {"webhook-id", id, "webhook-timestamp", early, "webhook-signature", sign(r.key, id, early, forged)},
		"a part of a signature": {"webhook-id", id, "webhook-timestamp", now, "webhook-signature", sign(r.key, id, now, forged)[:20]},
		"an empty signature":    {"webhook-id", id, "webhook-timestamp", now, "webhook-signature", "v1,"},
		"no base64":             {"webhook-id", id, "webhook-timestamp", now, "webhook-signature", "v1,*** é v1"},
	} {
		if status, err := r.post(t, forged, headers...); err != nil || status != http.StatusBadRequest {
			t.Errorf("%s: %d %v, want 400", name, status, err)
		}
	}
	// A rotation of the secret sends two signatures.
	two := sign([]byte("another"), id, now, good) + " " + sign(r.key, id, now, good)
	if status, err := r.post(t, good, "webhook-id", id, "webhook-timestamp", now, "webhook-signature", two); err != nil || status/100 != 2 {
		t.Errorf("two signatures: %d %v, want 2xx", status, err)
	}
	harness.Eventually(t, "the receiver prints the signed event", func() error {
		if printed := r.printed.String(); !strings.Contains(printed, "good-") {
			return fmt.Errorf("it has printed %q", printed)
		}
		return nil
	})
	if printed := r.printed.String(); strings.Contains(printed, "forged") {
		t.Errorf("the receiver accepted a forged event: %s", printed)
	}
}
