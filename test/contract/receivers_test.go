package contract_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/dev/stack/program"
	"quittance/schemas/payload"
	"quittance/test/harness"
	"quittance/test/httpclient"
)

// receiver is a program that receives webhooks.
type receiver struct {
	port    int
	key     []byte
	dir     string // where it runs; cases is its store
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

// start runs the receiver until the test ends. apiKey says which mode it believes.
func (r *receiver) start(t *testing.T, q quickstart, apiKey string) {
	t.Helper()
	r.dir = q.dir
	if err := os.MkdirAll(filepath.Join(r.dir, "cases"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	port := strconv.Itoa(r.port)
	cmd := q.command(ctx, t, q.receive, port, "PORT="+port, "QUITTANCE_WEBHOOK_SECRET="+r.secret(), "QUITTANCE_KEY="+apiKey)
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

// file is the case of an order in the receiver's store.
func (r *receiver) file(order string) string { return filepath.Join(r.dir, "cases", order+".txt") }

// lines are the due of a case and its payments, "session sequence state".
func (r *receiver) lines(t *testing.T, order string) []string {
	t.Helper()
	text, err := os.ReadFile(r.file(order))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// due makes a case of 5000 XAF, as the program that creates the session does.
func (r *receiver) due(t *testing.T, order string) {
	t.Helper()
	write(t, r.file(order), []byte("5000 XAF\n"))
}

// hook is a webhook about a session whose order is o of 5000 XAF.
type hook struct {
	order, session string
	event          checkout.EventType
	sequence       int64
	amount         int64 // 5000 if 0
	currency       string
	test           bool
	detail         map[string]string
}

func (h hook) body(t *testing.T) string {
	t.Helper()
	s := checkout.Session{
		ID: "chs_" + h.session, OrderID: h.order, Amount: cmp.Or(h.amount, 5000), Currency: cmp.Or(h.currency, "XAF"),
		Live: !h.test, Status: checkout.StatusCompleted, Sequence: h.sequence,
		// A field that is not at the top is not the event's.
		Metadata:   map[string]string{"was_completed": "false", "event": "checkout.completed", "x": "}\\\""},
		Collection: &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 75, Amount: 5075},
	}
	e := checkout.Event{ID: "evt_" + rand.Text(), Type: h.event, SessionID: s.ID, Sequence: h.sequence, OccurredAt: time.Now(), Session: s, Detail: h.detail}
	if h.event == checkout.EventReversed {
		e.Session.ReversalReason, e.Session.ReversedAt = checkout.ReversalRefunded, time.Now()
		e.Detail = maps.Clone(h.detail)
	}
	b, err := payload.Webhook(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// signature is a header webhook-signature.
func signature(key []byte, id, timestamp, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// deliver sends a signed body and returns the status.
func (r *receiver) deliver(t *testing.T, body string) int {
	t.Helper()
	now := strconv.FormatInt(time.Now().Unix(), 10)
	status, err := r.post(t, body, "webhook-id", "evt_1", "webhook-timestamp", now, "webhook-signature", signature(r.key, "evt_1", now, body))
	if err != nil {
		t.Errorf("delivering %s: %v", body, err)
	}
	return status
}

// An integrator copies a receiver from the documentation and trusts it with money. It unlocks a
// case once, for money of the expected mode, order, amount and currency, and locks it again
// when that money is given back. What it cannot store it does not answer by 2xx, so that the
// service sends it again.
func TestReceivers(t *testing.T) {
	t.Parallel()
	for _, q := range allQuickstarts {
		if q.receive == "" {
			continue
		}
		t.Run(q.language, func(t *testing.T) {
			t.Parallel()
			if missing := q.missing(); missing != "" {
				t.Skip(missing + " is not installed")
			}
			q.prepare(t)
			r := &receiver{port: harness.Ports(t, 1)[0], key: []byte(rand.Text())}
			r.start(t, q, "sk_live_"+rand.Text())
			r.unlocks(t)
			r.survivesItsStore(t)
			r.waitsForItsStore(t)
			r.refuses(t)
		})
	}
}

// journey is what happens to the money of a case of 5000 XAF.
type journey struct {
	hooks []hook
	want  string // the payments of the case, "session sequence state"
}

// journeys are what a receiver in live mode must follow.
func journeys() map[string]journey {
	given := map[string]string{checkout.DetailWasCompleted: "true", checkout.DetailOrderPaid: "false"}
	late := map[string]string{checkout.DetailWasCompleted: "false", checkout.DetailOrderPaid: "true"}
	paid := hook{session: "a", event: checkout.EventCompleted, sequence: 3}
	reversed := hook{session: "a", event: checkout.EventReversed, sequence: 4, detail: given}
	return map[string]journey{
		"paid":                 {[]hook{paid}, "chs_a 3 paid"},
		"repeated":             {[]hook{paid, paid, paid}, "chs_a 3 paid"},
		"of-the-other-mode":    {[]hook{{session: "a", event: checkout.EventCompleted, sequence: 3, test: true}}, ""},
		"another-amount":       {[]hook{{session: "a", event: checkout.EventCompleted, sequence: 3, amount: 50}}, "chs_a 3 differs"},
		"another-currency":     {[]hook{{session: "a", event: checkout.EventCompleted, sequence: 3, currency: "EUR"}}, "chs_a 3 differs"},
		"given-back":           {[]hook{paid, reversed, paid}, "chs_a 4 reversed"},
		"given-back-first":     {[]hook{reversed, paid}, "chs_a 4 reversed"},
		"paid-by-another":      {[]hook{paid, {session: "b", event: checkout.EventCompleted, sequence: 1}, reversed}, "chs_b 1 paid chs_a 4 reversed"},
		"late-money-went-back": {[]hook{{session: "a", event: checkout.EventReversed, sequence: 9, detail: late}, paid}, "chs_a 3 paid"},
	}
}

// unlocks checks what each event does to a case.
func (r *receiver) unlocks(t *testing.T) {
	t.Helper()
	for name, c := range journeys() {
		r.due(t, name)
		for _, h := range c.hooks {
			h.order = name
			if status := r.deliver(t, h.body(t)); status/100 != 2 {
				t.Errorf("%s: %s is answered %d", name, h.event, status)
			}
		}
		if got := strings.Join(r.lines(t, name)[1:], " "); got != c.want {
			t.Errorf("%s: the case has %q, want %q", name, got, c.want)
		}
	}
	for _, event := range checkout.EventTypes() {
		if !event.Webhook() || event == checkout.EventCompleted || event == checkout.EventReversed {
			continue
		}
		order := string(event)
		r.due(t, order)
		status := r.deliver(t, hook{order: order, session: "a", event: event, sequence: 2}.body(t))
		if lines := r.lines(t, order); status/100 != 2 || len(lines) != 1 {
			t.Errorf("%s is answered %d, and the case is %q", event, status, lines)
		}
	}
	// An event of 2030, and an order of another system that shares the endpoint.
	r.due(t, "new")
	unknown := strings.Replace(hook{order: "new", session: "a", event: checkout.EventCompleted, sequence: 2}.body(t), "checkout.completed", "checkout.of_2030", 1)
	if status := r.deliver(t, unknown); status/100 != 2 || len(r.lines(t, "new")) != 1 {
		t.Errorf("an unknown event is answered %d: %q", status, r.lines(t, "new"))
	}
	if status := r.deliver(t, hook{order: "theirs", session: "a", event: checkout.EventCompleted, sequence: 2}.body(t)); status/100 != 2 {
		t.Errorf("another system's order is answered %d", status)
	}
	if _, err := os.Stat(r.file("theirs")); err == nil {
		t.Error("another system's order has become a case")
	}
	if n := strings.Count(r.printed.String(), "repeated paid"); n != 1 {
		t.Errorf("an event that came three times unlocked %d times", n)
	}
}

// survivesItsStore checks that an event which cannot be stored comes again: the receiver lives,
// answers 5xx, and unlocks once when the store works again.
func (r *receiver) survivesItsStore(t *testing.T) {
	t.Helper()
	for name, c := range map[string]struct{ breaks, mends func(order string) error }{
		"cannot-read": {
			func(order string) error { return os.Mkdir(r.file(order), 0o700) },
			func(order string) error { return os.Remove(r.file(order)) },
		},
		"cannot-write": {
			func(order string) error { return os.MkdirAll(r.file(order)+".new/full", 0o700) },
			func(order string) error { return os.RemoveAll(r.file(order) + ".new") },
		},
		"not-there": {
			func(string) error { return os.Rename(filepath.Join(r.dir, "cases"), filepath.Join(r.dir, "gone")) },
			func(string) error { return os.Rename(filepath.Join(r.dir, "gone"), filepath.Join(r.dir, "cases")) },
		},
	} {
		if name != "cannot-read" {
			r.due(t, name)
		}
		if err := c.breaks(name); err != nil {
			t.Fatal(err)
		}
		body := hook{order: name, session: "a", event: checkout.EventCompleted, sequence: 3}.body(t)
		for range 2 {
			if status := r.deliver(t, body); status/100 != 5 {
				t.Errorf("%s: answered %d, want 5xx", name, status)
			}
		}
		if err := c.mends(name); err != nil {
			t.Fatal(err)
		}
		if name == "cannot-read" {
			r.due(t, name)
		}
		status := r.deliver(t, body)
		if lines := r.lines(t, name); status/100 != 2 || len(lines) != 2 || lines[1] != "chs_a 3 paid" {
			t.Errorf("%s, and then works: answered %d, and the case is %q", name, status, lines)
		}
	}
	if status := r.deliver(t, "no JSON"); status/100 != 5 {
		t.Errorf("a signed body that cannot be read is answered %d, want 5xx", status)
	}
}

// waitsForItsStore checks that the answer comes after the store's. The case is a pipe, which
// the receiver reads until the test has written it.
func (r *receiver) waitsForItsStore(t *testing.T) {
	t.Helper()
	if err := syscall.Mkfifo(r.file("slow"), 0o600); err != nil {
		t.Fatal(err)
	}
	answered := make(chan int, 1)
	body := hook{order: "slow", session: "a", event: checkout.EventCompleted, sequence: 3}.body(t)
	go func() { answered <- r.deliver(t, body) }()
	var pipe *os.File
	harness.Eventually(t, "the receiver reads the case", func() (err error) {
		pipe, err = os.OpenFile(r.file("slow"), os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails while nobody reads
		return err
	})
	select {
	case status := <-answered:
		_ = pipe.Close()
		t.Fatalf("answered %d before it is stored", status)
	case <-time.After(100 * time.Millisecond): // an answer that does not wait comes at once
	}
	if _, err := pipe.WriteString("5000 XAF\n"); err != nil {
		t.Error(err)
	}
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
	status := <-answered
	if lines := r.lines(t, "slow"); status/100 != 2 || len(lines) != 2 || lines[1] != "chs_a 3 paid" {
		t.Errorf("answered %d, and the case is %q", status, lines)
	}
}

// refuses checks that the receiver refuses unsigned and wrongly signed bodies, and takes
// a body with two signatures.
func (r *receiver) refuses(t *testing.T) {
	t.Helper()
	const id = "evt_test"
	event := func(order string) string {
		r.due(t, order)
		return hook{order: order, session: "é", event: checkout.EventCompleted, sequence: 3}.body(t)
	}
	sign := signature
	at := func(d time.Duration) string { return strconv.FormatInt(time.Now().Add(d).Unix(), 10) }
	now := at(0)
	forged, good := event("forged"), event("good")
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
	if forged, good := r.lines(t, "forged"), r.lines(t, "good"); len(forged) != 1 || len(good) != 2 {
		t.Errorf("the forged case is %q, the good one %q", forged, good)
	}
}
