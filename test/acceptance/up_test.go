package acceptance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/test/servers"
)

// Ports of an `up`, from the service's (developer-mode documentation of README).
const (
	atService    = 0
	atSimulators = 1
	atBroker     = 2
	atController = 3
	atClickHouse = 5
	atHealth     = 7
	upPorts      = 9
)

// The demo registry's keys.
const (
	guichetKey     = "sk_test_GuichetDemoKey00000000000"
	guichetLiveKey = "sk_live_GuichetDemoKey00000000000"
	douanesKey     = "sk_test_DouaneDemoKey000000000000"
	platformKey    = "sk_test_PlatformDemoKey0000000000"
	douanesAgency  = "018f0000-0000-7000-8000-000000000002"
)

// soon bounds the wait for what happens by itself at once, on a machine that has
// other things to do.
const soon = 60 * time.Second

// root is the module's folder, from which the program finds what was fetched.
const root = "../.."

// up is a `quittance up` of a test, as a newcomer starts it.
type up struct {
	dir      string // of this test: data, output, registry
	port     int
	registry string
	args     []string
	client   *http.Client

	life   *life
	begun  bool // at least once
	banner string
}

// newUp makes an `up` that has not been started. Its folder goes with the test.
func newUp(t *testing.T, args ...string) *up {
	t.Helper()
	return &up{
		dir: servers.Dir(t), port: ports(t, upPorts)[0], registry: "deploy/dev/registry.yaml", args: args,
		client: &http.Client{
			Timeout:       15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (u *up) url(part int, path string) string { return "http://" + local(u.port+part) + path }

func (u *up) stderr() string { return filepath.Join(u.dir, "stderr.log") }

func (u *up) stdout() string { return filepath.Join(u.dir, "stdout.log") }

// data is the folder that --data names.
func (u *up) data() string { return filepath.Join(u.dir, "data") }

// start starts it and waits for the block that says it is ready.
func (u *up) start(t *testing.T) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := os.Create(u.stdout())
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.OpenFile(u.stderr(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"up", "--port", strconv.Itoa(u.port), "--data", u.data(), "--registry", u.registry}, u.args...)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = root, (&program{}).environment()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l := &life{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // as in process.startLocked
		defer runtime.UnlockOSThread()
		defer func() { _, _ = stdout.Close(), stderr.Close() }()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait()
		close(l.ended)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	u.life = l
	if !u.begun {
		u.begun = true
		t.Cleanup(func() {
			u.end(30 * time.Second)
			if t.Failed() {
				t.Logf("the end of what up said:\n%s", tail(u.stderr(), 8<<10))
			}
		})
	}
	for begun := time.Now(); ; {
		text, err := os.ReadFile(u.stdout())
		if err != nil {
			t.Fatal(err)
		}
		// The block ends with its curl line and an empty one.
		if u.banner = string(text); strings.HasSuffix(u.banner, "\n\n") && strings.Contains(u.banner, "\ncurl ") {
			return
		}
		select {
		case <-l.ended:
			t.Fatalf("up ended before it was ready: %s", tail(u.stderr(), 4<<10))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("up is not ready; it says:\n%s", tail(u.stderr(), 4<<10))
		}
	}
}

// end tells it to end, by force after patience, and says how long that took.
func (u *up) end(patience time.Duration) time.Duration {
	if u.life == nil {
		return 0
	}
	begun := time.Now()
	_ = u.life.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-u.life.ended:
	case <-time.After(patience):
		_ = u.life.cmd.Process.Kill()
		<-u.life.ended
	}
	u.life = nil
	return time.Since(begun)
}

// child is the process id of a child whose name has a prefix.
func (u *up) child(t *testing.T, prefix string) int {
	t.Helper()
	for _, pid := range childrenOf(t, u.life.cmd.Process.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(filepath.Base(strings.SplitN(string(name), "\x00", 2)[0]), prefix) {
			return pid
		}
	}
	t.Fatalf("up has no child %s…", prefix)
	return 0
}

// childrenOf are the processes that a process has started and that still run.
func childrenOf(t *testing.T, parent int) (out []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …, and a name may hold anything.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			out = append(out, pid)
		}
	}
	return out
}

// answer is what the service answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes a request. Headers come in pairs.
func (u *up) send(ctx context.Context, method, url, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := u.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, text}, err
}

// call is send for those that must be answered.
func (u *up) call(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := u.send(t.Context(), method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
}

// sessions is the API's address.
func (u *up) sessions(path string) string { return u.url(atService, "/api/v1/checkout/sessions"+path) }

// session is the contract's resource, as far as tests look at it.
type session struct {
	ID           string  `json:"id"`
	OrderID      string  `json:"order_id"`
	Amount       int64   `json:"amount"`
	Status       string  `json:"status"`
	Paid         bool    `json:"paid"`
	PaymentRef   string  `json:"payment_ref"`
	CheckoutURL  string  `json:"checkout_url"`
	ClientSecret *string `json:"client_secret"`
}

// post creates with a key and a new Idempotency-Key.
func (u *up) post(t *testing.T, key, body string) answer {
	t.Helper()
	return u.call(t, http.MethodPost, u.sessions(""), body,
		"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", uuid.NewString())
}

// create makes an order's session of 5,000 FCFA with a due of the agency's ERP.
// Whoever is told 503 asks again with the same key, as the contract says.
func (u *up) create(t *testing.T, order string) (s session) {
	t.Helper()
	key := uuid.NewString()
	body := fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":"patente","metadata":{"erp_due_ref":"DUE-%s"}}`, order, order)
	eventually(t, "session is created", func() error {
		a := u.call(t, http.MethodPost, u.sessions(""), body,
			"Authorization", "Bearer "+guichetKey, "Content-Type", "application/json", "Idempotency-Key", key)
		switch a.status {
		case http.StatusCreated:
			a.into(t, &s)
			return nil
		case http.StatusServiceUnavailable:
			return errors.New("503")
		}
		t.Fatalf("creation of %s: %d %s", order, a.status, a.body)
		return nil
	})
	return s
}

// session reads one as its integrator does.
func (u *up) session(t *testing.T, id string) session {
	t.Helper()
	var s session
	eventually(t, "GET answers", func() error {
		a, err := u.send(t.Context(), http.MethodGet, u.sessions("/"+id), "", "Authorization", "Bearer "+guichetKey)
		if err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d %s %w", a.status, a.body, err)
		}
		return json.Unmarshal(a.body, &s)
	})
	return s
}

// becomes waits until a session has a status.
func (u *up) becomes(t *testing.T, id, status string) session {
	t.Helper()
	var s session
	eventually(t, "session is "+status, func() error {
		if s = u.session(t, id); s.Status != status {
			return fmt.Errorf("it is %s", s.Status)
		}
		return nil
	})
	return s
}

// eventually tries until check is content.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		switch {
		case err == nil:
			return
		case time.Since(begun) > soon:
			t.Fatalf("%s: still not after %v: %v", what, soon, err)
		case t.Context().Err() != nil:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// control tells the world outside how to behave.
func (u *up) control(t *testing.T, path, body string) answer {
	t.Helper()
	a := u.call(t, http.MethodPost, u.url(atSimulators, "/control/"+path), body, "Content-Type", "application/json")
	if a.status/100 != 2 {
		t.Fatalf("/control/%s %s: %d %s", path, body, a.status, a.body)
	}
	return a
}

func (u *up) advance(t *testing.T, by time.Duration) {
	t.Helper()
	u.control(t, "clock", fmt.Sprintf(`{"advance": %q}`, by))
}

// collection is a payment as the operator knows it.
type collection struct {
	ID             string `json:"id"`
	Operator       string `json:"operator"`
	Amount         string `json:"amount"`
	Status         string `json:"status"`
	CallbackURL    string `json:"callback_url"`
	CallbacksSent  int    `json:"callbacks_sent"`
	CallbackStatus int    `json:"callback_status"`
	Enquiries      int    `json:"enquiries"`
}

// collections are those of a session at the operator.
func (u *up) collections(t *testing.T, s session) (out []collection) {
	t.Helper()
	u.call(t, http.MethodGet, u.url(atSimulators, "/control/collections?external_id="+s.PaymentRef), "").into(t, &out)
	return out
}

// collected waits for a session's one collection at the operator.
func (u *up) collected(t *testing.T, s session) (c collection) {
	t.Helper()
	eventually(t, "the operator is asked", func() error {
		all := u.collections(t, s)
		if len(all) == 0 {
			return errors.New("it is not")
		}
		c = all[0]
		return nil
	})
	return c
}

// message is a webhook that came.
type message struct {
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	SignatureValid *bool             `json:"signature_valid"`
	Answered       int               `json:"answered"`

	event notice
}

type notice struct {
	EventID   string `json:"event_id"`
	Event     string `json:"event"`
	SessionID string `json:"session_id"`
	OrderID   string `json:"order_id"`
	Status    string `json:"status"`
	Paid      bool   `json:"paid"`
}

// inbox has the webhooks about a session, oldest first.
func (u *up) inbox(t *testing.T, id string) (out []message) {
	t.Helper()
	var all []message
	u.call(t, http.MethodGet, u.url(atSimulators, "/inbox/guichet"), "").into(t, &all)
	for _, m := range all {
		if err := json.Unmarshal([]byte(m.Body), &m.event); err != nil {
			t.Fatalf("webhook %s: %v", m.Body, err)
		}
		if m.event.SessionID == id {
			out = append(out, m)
		}
	}
	return out
}

// delivered waits for a webhook that the receiver took, and returns it.
func (u *up) delivered(t *testing.T, id, event string) (got message) {
	t.Helper()
	eventually(t, event+" is delivered", func() error {
		for _, m := range u.inbox(t, id) {
			if m.event.Event == event && m.Answered == http.StatusOK {
				got = m
				return nil
			}
		}
		return errors.New("it is not")
	})
	return got
}

// acceptance is what an ERP accepted.
type acceptance struct {
	TransactionID string `json:"transaction_id"`
	Accepted      int    `json:"accepted"`
	Body          struct {
		DueRef     string `json:"erp_due_ref"`
		PaymentRef string `json:"payment_ref"`
		Amount     int64  `json:"amount_minor"`
	} `json:"body"`
}

// confirmations are those of a session that the agency's ERP accepted.
func (u *up) confirmations(t *testing.T, s session) (out []acceptance) {
	t.Helper()
	var erp struct {
		Accepted []acceptance `json:"accepted"`
	}
	u.call(t, http.MethodGet, u.url(atSimulators, "/control/erp/impots"), "").into(t, &erp)
	for _, c := range erp.Accepted {
		if c.Body.PaymentRef == s.PaymentRef {
			out = append(out, c)
		}
	}
	return out
}

func (u *up) confirmed(t *testing.T, s session) {
	t.Helper()
	eventually(t, "the ERP has accepted", func() error {
		if len(u.confirmations(t, s)) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
}

// rows is what ClickHouse answers to a query, a row a line.
func (u *up) rows(t *testing.T, query string) ([]map[string]any, error) {
	t.Helper()
	a, err := u.send(t.Context(), http.MethodPost, u.url(atClickHouse, "/"), query+" FORMAT JSONEachRow")
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("%d %s", a.status, a.body)
	}
	var out []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(a.body)); ; {
		var row map[string]any
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
}

// journalled waits until the journal has an event of a session, and says how
// often it has.
func (u *up) journalled(t *testing.T, id, event string) (n int) {
	t.Helper()
	eventually(t, "the journal has "+event, func() error {
		rows, err := u.rows(t, fmt.Sprintf("SELECT entry_id FROM quittance.journal FINAL WHERE entry_type = 'event' AND session_id = '%s' AND event = '%s'", id, event))
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	return n
}

// metric is the sum of a metric over its labels.
func (u *up) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	a := u.call(t, http.MethodGet, u.url(atHealth, "/metrics"), "")
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllSubmatch(a.body, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}

// citizen is somebody at a session's page without a script.
type citizen struct {
	up *up
	id string
}

func (u *up) citizen(s session) citizen { return citizen{u, s.ID} }

// submit sends a form as the browser does.
func (c citizen) submit(t *testing.T, f pageForm) answer {
	t.Helper()
	return c.up.call(t, http.MethodPost, c.up.url(atService, f.action), f.fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
}

// page is what the page shows; it must be there.
func (c citizen) page(t *testing.T) string {
	t.Helper()
	return c.at(t, "")
}

// at is what the page shows at a step: a query such as "&step=phone&offer=momo".
func (c citizen) at(t *testing.T, step string) string {
	t.Helper()
	var text string
	eventually(t, "the page is shown", func() error {
		a, err := c.up.send(t.Context(), http.MethodGet, c.up.url(atService, "/c/"+c.id+"?lang=en"+step), "")
		if err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d %w", a.status, err)
		}
		text = string(a.body)
		return nil
	})
	return text
}

// review goes to the page that asks to confirm, and returns its form.
func (c citizen) review(t *testing.T, phone string) pageForm {
	t.Helper()
	f := readForm(c.at(t, "&step=phone&offer=momo"))
	if !f.fields.Has("phone") {
		t.Fatalf("the page of %s asks for no number", c.id)
	}
	f.fields.Set("phone", phone)
	var review pageForm
	eventually(t, "the review is shown", func() error {
		a := c.submit(t, f)
		review = readForm(string(a.body))
		if a.status != http.StatusOK || !strings.HasSuffix(strings.SplitN(review.action, "?", 2)[0], "/pay") {
			return fmt.Errorf("%d", a.status)
		}
		return nil
	})
	return review
}

// pay confirms a payment by a number.
func (c citizen) pay(t *testing.T, phone string) {
	t.Helper()
	c.confirm(t, c.review(t, phone))
}

// confirm sends the review's form, again if the page cannot tell what became of
// it: the same attempt is the same payment.
func (c citizen) confirm(t *testing.T, review pageForm) {
	t.Helper()
	eventually(t, "payment is confirmed", func() error {
		a := c.submit(t, review)
		switch a.status {
		case http.StatusSeeOther:
			return nil
		case http.StatusServiceUnavailable:
			return errors.New("503")
		}
		t.Fatalf("confirming: %d %s", a.status, a.body)
		return nil
	})
}

// atOnce does all of it at the same moment.
func atOnce(do ...func()) {
	var all sync.WaitGroup
	for _, f := range do {
		all.Go(f)
	}
	all.Wait()
}

// clone is a form of its own with the same fields.
func (f pageForm) clone() pageForm {
	fields := url.Values{}
	for k, v := range f.fields {
		fields[k] = slices.Clone(v)
	}
	return pageForm{f.action, fields}
}
