package operations_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// An integrator runs `listen`. It prints each event and posts it to the integrator's own
// program, signed as a webhook is.
func TestListen(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := harness.NewUp(t)
	u.Start(t)

	// The integrator's program accepts completions and answers other events with 500.
	type request struct {
		header http.Header
		body   []byte
	}
	requests := make(chan request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a forwarded event: %v", err)
		}
		requests <- request{r.Header.Clone(), body}
		if !bytes.Contains(body, []byte(`"checkout.completed"`)) {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)

	port := []string{"--port", strconv.Itoa(u.Port)}
	forwarding := listen(t, u, append(port, "--forward-to", server.URL+"/hook", "--application", "Guichet fiscal", "--mode", "test")...)
	others := listen(t, u, append(port, "--json", "--application", "Guichet douanier")...)
	cancellations := listen(t, u, append(port, "--json", "--events", "checkout.cancelled")...)
	streamed := byKey(t, u, harness.GuichetKey, "--json", "--forward-to", server.URL+"/stream")

	paid := u.Create(t, "heard")
	u.Citizen(paid.ID).Pay(t, "06 600 00 01")
	completed, twin := <-requests, <-requests
	cancelled := u.Create(t, "heard-and-refused")
	u.Call(t, http.MethodPost, u.Sessions("/"+cancelled.ID+"/cancel"), "", "Authorization", "Bearer "+harness.GuichetKey)
	refused := <-requests
	<-requests

	wh, err := standardwebhooks.NewWebhook(forwarding.secret(t))
	if err != nil {
		t.Fatalf("the library refuses the printed secret: %v", err)
	}
	for event, r := range map[string]request{"checkout.completed": completed, "checkout.cancelled": refused} {
		if err := wh.Verify(r.body, r.header); err != nil {
			t.Errorf("%s: %v", event, err)
		}
		if err := wh.Verify(append(r.body, ' '), r.header); err == nil {
			t.Errorf("%s verifies with another body", event)
		}
		var n harness.Notice
		if err := json.Unmarshal(r.body, &n); err != nil || n.Event != event || r.header.Get("webhook-id") != n.EventID || r.header.Get("x-service-event-id") != n.EventID {
			t.Errorf("the forwarded event is %s with %v, want %s", r.body, r.header, event)
		}
	}
	// The registered endpoint gets the same event with another signature.
	registered := u.Delivered(t, paid.ID, "checkout.completed")
	if registered.Body != string(completed.body) || registered.Headers["webhook-id"] != completed.header.Get("webhook-id") {
		t.Errorf("the forwarded event is %s; the endpoint got %s", completed.body, registered.Body)
	}
	if registered.Headers["webhook-signature"] == completed.header.Get("webhook-signature") || registered.Headers["user-agent"] != completed.header.Get("user-agent") {
		t.Errorf("the event is forwarded with %v; the endpoint got %v", completed.header, registered.Headers)
	}

	forwarding.says(t, `Z  checkout\.completed  `+paid.ID+`  order heard  → 200 OK in \d+ ms\n`)
	forwarding.says(t, `Z  checkout\.cancelled  `+cancelled.ID+`  order heard-and-refused  → 500 Internal Server Error in \d+ ms\n    A real endpoint would be sent this again after about [456] s`)
	cancellations.says(t, cancelled.ID)
	streamed.says(t, cancelled.ID)
	if err := wh.Verify(twin.body, twin.header); err != nil || string(twin.body) != registered.Body || twin.header.Get("webhook-id") != completed.header.Get("webhook-id") {
		t.Errorf("the stream forwards %s with %v: %v", twin.body, twin.header, err)
	}
	for _, l := range []*listening{forwarding, others, cancellations, streamed} {
		l.end(t)
	}
	forwarding.says(t, `\n2 events, 1 accepted, 1 not\.\n$`)
	if got := others.out(); got != "" {
		t.Errorf("listening to another application prints %s", got)
	}
	var heard struct {
		Event, Body string
		SessionID   string `json:"session_id"`
		Headers     map[string]string
		Forward     *struct{}
	}
	if err := json.Unmarshal([]byte(cancellations.out()), &heard); err != nil {
		t.Fatalf("--json prints %s, want one object: %v", cancellations.out(), err) // --events leaves the completion out
	}
	shown := http.Header{}
	for name, value := range heard.Headers {
		shown.Set(name, value)
	}
	everyone, err := standardwebhooks.NewWebhook(cancellations.secret(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := everyone.Verify([]byte(heard.Body), shown); err != nil || heard.SessionID != cancelled.ID || heard.Forward != nil {
		t.Errorf("--json shows %+v: %v", heard, err)
	}
	if forwarding.secret(t) == cancellations.secret(t) || others.secret(t) == forwarding.secret(t) {
		t.Error("two applications have the same signing secret")
	}

	// A later start reads past events and has the same secret. Nothing listens at the
	// address to forward to.
	server.Close()
	again := listen(t, u, append(port, "--since", "1h", "--forward-to", server.URL, "--application", "018f0000-0000-7000-8000-00000000000a")...)
	again.says(t, `checkout\.completed  `+paid.ID+`  order heard  → nothing listens there\n`)
	again.says(t, `checkout\.cancelled`)
	again.end(t)
	if again.secret(t) != forwarding.secret(t) {
		t.Error("the signing secret changes at the next start")
	}

	listenRefuses(t, u)
	byKeyRefuses(t, u, paid.ID)
}

// byKey starts the `listen` of integrators, who have a test key and nothing else.
func byKey(t *testing.T, u *harness.Up, key string, args ...string) *listening {
	t.Helper()
	return start(t, outside(t, append([]string{"--url", u.URL(harness.AtService, ""), "--key", key}, args...)...))
}

func outside(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), servers.Quittance(t), append([]string{"listen"}, args...)...)
	cmd.Env = program.Environment()
	return cmd
}

// byKeyRefuses checks who hears nothing: live keys, keys of nobody, other applications, and whoever has
// three streams already. A stream that begins in the past has the events of then.
func byKeyRefuses(t *testing.T, u *harness.Up, paid string) {
	t.Helper()
	at := u.URL(harness.AtService, "")
	for want, args := range map[string][]string{
		`must be a test key`: {"--url", at, "--key", harness.GuichetLiveKey}, `listening: 401: The API key is`: {"--url", at, "--key", "sk_test_nobody00000000000000000000"},
		`must use https`: {"--url", "http://pay.example", "--key", harness.GuichetKey}, `must be below 24h`: {"--url", at, "--key", harness.GuichetKey, "--since", "24h"},
	} {
		if output, err := outside(t, args...).CombinedOutput(); err == nil || !strings.Contains(string(output), want) || strings.Contains(string(output), harness.GuichetKey) {
			t.Errorf("listen %v ends with %v and prints %q, want %s", args, err, output, want)
		}
	}
	if a := u.Call(t, http.MethodGet, at+"/api/v1/checkout/webhooks", "", "Authorization", "Bearer "+harness.GuichetLiveKey); a.Status != http.StatusForbidden {
		t.Errorf("a live key is answered %d %s", a.Status, a.Body)
	}
	var open []*listening
	for range 3 {
		open = append(open, byKey(t, u, harness.GuichetKey, "--since", "1h"))
	}
	open[2].says(t, `checkout\.completed  `+paid+`  order heard\n`)
	if output, err := outside(t, "--url", at, "--key", harness.GuichetKey).CombinedOutput(); err == nil || !strings.Contains(string(output), "429: 3 streams of webhooks are open") {
		t.Errorf("a fourth stream ends with %v and prints %q", err, output)
	}
	foreign := byKey(t, u, harness.DouanesKey, "--since", "1h")
	for _, l := range append(open, foreign) {
		l.end(t)
	}
	if strings.Contains(foreign.all(), paid) {
		t.Errorf("another application hears %s", foreign.all())
	}
}

// listenRefuses checks the messages about wrong arguments.
func listenRefuses(t *testing.T, u *harness.Up) {
	t.Helper()
	port := []string{"--port", strconv.Itoa(u.Port)}
	for name, args := range map[string][]string{
		`--port of a running .quittance-dev up.`:      {"--kafka", program.Local(u.Port + harness.AtBroker)},
		`no .quittance-dev up. runs on port 1 `:       {"--port", "1"},
		`example\.com is not 127\.0\.0\.1`:            append(port, "--forward-to", "http://example.com/hook"),
		`10\.0\.0\.1:80 is not 127\.0\.0\.1`:          append(port, "--forward-to", "http://10.0.0.1:80/hook"),
		`127\.1 is not 127\.0\.0\.1`:                  append(port, "--forward-to", "http://127.1/hook"),
		`localhost\.example is not`:                   append(port, "--forward-to", "https://localhost.example/hook"),
		`ftp is neither http nor https`:               append(port, "--forward-to", "ftp://localhost/hook"),
		`without credentials`:                         append(port, "--forward-to", "http://a:b@localhost/hook"),
		`is not an absolute URL`:                      append(port, "--forward-to", "localhost:3000"),
		`no event "checkout\.paid"`:                   append(port, "--events", "checkout.paid"),
		`--mode: must be test or live`:                append(port, "--mode", "prod"),
		`no application has this id or name[^$]*fisc`: append(port, "--application", "nobody"),
		`master keys are not known`:                   {"--data", t.TempDir(), "--kafka", program.Local(u.Port + harness.AtBroker), "--schema-registry", u.URL(6, "")},
	} {
		output, err := command(t, u, append([]string{"listen"}, args...)...).CombinedOutput()
		if err == nil || !regexp.MustCompile(name).Match(output) {
			t.Errorf("listen %v ends with %v and prints %q, want %s", args, err, output, name)
		}
	}
}

// listening is a running `quittance-dev listen`.
type listening struct {
	cmd            *exec.Cmd
	mu             sync.Mutex
	stdout, stderr bytes.Buffer
	readers        sync.WaitGroup
}

// command prepares a command of quittance-dev, without the environment of the test.
func command(t *testing.T, u *harness.Up, args ...string) *exec.Cmd {
	t.Helper()
	path := servers.QuittanceDev(t)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir, cmd.Env = u.Dir, program.Environment()
	return cmd
}

// listen starts `listen` and waits until it reads all later events.
func listen(t *testing.T, u *harness.Up, args ...string) *listening {
	t.Helper()
	return start(t, command(t, u, append([]string{"listen"}, args...)...))
}

// start starts a `listen` and waits until it reads all later events.
func start(t *testing.T, cmd *exec.Cmd) *listening {
	t.Helper()
	l := &listening{cmd: cmd}
	for to, pipe := range map[*bytes.Buffer]func() (io.ReadCloser, error){&l.stdout: l.cmd.StdoutPipe, &l.stderr: l.cmd.StderrPipe} {
		from, err := pipe()
		if err != nil {
			t.Fatal(err)
		}
		l.readers.Go(func() {
			for lines := bufio.NewReader(from); ; {
				line, err := lines.ReadString('\n')
				l.mu.Lock()
				to.WriteString(line)
				l.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l.says(t, `Listening to the events of .*Ctrl-C ends\.\n`)
	return l
}

func (l *listening) out() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stdout.String()
}

func (l *listening) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stdout.String() + l.stderr.String()
}

// says waits until `listen` has printed a match of what.
func (l *listening) says(t *testing.T, what string) {
	t.Helper()
	expr := regexp.MustCompile(what)
	harness.Eventually(t, fmt.Sprintf("listen prints %q", what), func() error {
		if printed := l.all(); !expr.MatchString(printed) {
			return errors.New(printed)
		}
		return nil
	})
}

// secret returns the signing secret, which must be printed once.
func (l *listening) secret(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^Signing secret: (whsec_\S+)$`).FindAllStringSubmatch(l.all(), -1)
	if len(found) != 1 || strings.Count(l.all(), "whsec_") != 1 {
		t.Fatalf("the signing secret is not printed exactly once: %s", l.all())
	}
	return found[0][1]
}

// end sends SIGINT and waits for the end.
func (l *listening) end(t *testing.T) {
	t.Helper()
	if err := l.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(30*time.Second, func() { _ = l.cmd.Process.Kill() })
	defer kill.Stop()
	l.readers.Wait()
	if err := l.cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C ends listen with %v", err)
	}
}
