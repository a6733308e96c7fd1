package contract_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	// text is the program that receives if no file has it; env is what else it needs.
	text string
	env  []string
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
	// A proxy that answers for the module's name gives another one, or an error.
	asked := false
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked = true
		w.WriteHeader(http.StatusForbidden)
	}))
	defer proxy.Close()
	cmd.Env = append(os.Environ(), "GOPROXY="+proxy.URL, "npm_config_offline=true", "npm_config_update_notifier=false") // it needs nothing else
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", q.install, err, out)
	}
	if asked {
		t.Errorf("%s asks a module proxy", q.install)
	}
	return dir
}

// A newcomer copies a program from the documentation, runs it against the service and
// pays. The program reports the payment. The receiver beside it unlocks the case.
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
			q.prepare(t)
			r := receivers[q.language]
			if r != nil {
				r.start(t, q, key)
			}
			order := runQuickstart(t, u, q, key)
			if r == nil {
				return
			}
			harness.Eventually(t, "the receiver has unlocked the case", func() error {
				if lines := r.lines(t, order); len(lines) != 2 || !strings.HasSuffix(lines[1], " paid") {
					return fmt.Errorf("the case is %q", lines)
				}
				return nil
			})
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

// prepare makes the folder of the programs, and installs our SDK in it.
func (q *quickstart) prepare(t *testing.T) {
	t.Helper()
	if q.install != "" {
		q.dir = q.installed(t)
	} else {
		q.dir = servers.Dir(t)
	}
}

// command copies a program to the folder of the programs and returns the command that runs it.
func (q quickstart) command(ctx context.Context, t *testing.T, file, port string, env ...string) *exec.Cmd {
	t.Helper()
	text := []byte(q.text)
	if q.text == "" {
		var err error
		if text, err = os.ReadFile(filepath.Join(quickstarts, file)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(q.dir, file)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := q.run(t, path, port)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Dir(path)
	cmd.Env = append(program.Environment(), append(append(env, q.env...), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")...)
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
