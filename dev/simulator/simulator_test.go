package simulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/dev/simulator"
	"quittance/test/await"
)

// clock is the simulators' clock; it stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 9, 30, 8, 0, 0, 0, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// received is one call that reached the merchant.
type received struct {
	method        string
	path          string
	body          string
	authorization string
}

// world is a running simulator and the merchant that operators call back.
type world struct {
	t        *testing.T
	clock    *clock
	url      string
	merchant *httptest.Server

	mu       sync.Mutex
	calls    []received
	callback func(n int) int // status of the n-th answer, from 1
}

func newWorld(t *testing.T, change func(*simulator.Config)) *world {
	t.Helper()
	w := &world{t: t, clock: newClock(), callback: func(int) int { return http.StatusOK }}
	w.merchant = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a callback: %v", err)
		}
		w.mu.Lock()
		w.calls = append(w.calls, received{r.Method, r.URL.Path, string(body), r.Header.Get("Authorization")})
		status := w.callback(len(w.calls))
		w.mu.Unlock()
		rw.WriteHeader(status)
	}))
	t.Cleanup(w.merchant.Close)

	cfg := simulator.Config{
		Now: w.clock.Now, Timestamp: w.clock.Now,
		Log:  slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
		Poll: 5 * time.Millisecond,
		AdvanceClock: func(_ context.Context, d time.Duration) (time.Time, error) {
			w.clock.advance(d)
			return w.clock.Now(), nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := simulator.New(cfg)
	if err != nil {
		t.Fatalf("making the simulator: %v", err)
	}
	server := httptest.NewServer(s.Handler())
	w.url = server.URL
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running errgroup.Group
	running.Go(func() error { return s.Run(ctx) })
	t.Cleanup(func() {
		stop()
		if err := running.Wait(); err != nil {
			t.Errorf("running the simulator: %v", err)
		}
		server.Close() // waits for handlers: those that hang must have let go
	})
	return w
}

// answer is a response with its body read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("decoding %q: %v", a.body, err)
	}
}

func (w *world) call(method, path, body string, header map[string]string) answer {
	w.t.Helper()
	a, err := w.try(w.t.Context(), method, path, body, header)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (w *world) try(ctx context.Context, method, path, body string, header map[string]string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewBufferString(body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	client := &http.Client{
		Transport:     &http.Transport{}, // other tests close the idle connections of theirs
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, err
	}
	return answer{resp.StatusCode, resp.Header, string(text)}, nil
}

// control posts to /control and fails without a 2xx.
func (w *world) control(path, body string) answer {
	w.t.Helper()
	a := w.call(http.MethodPost, "/control"+path, body, nil)
	if a.status/100 != 2 {
		w.t.Fatalf("POST /control%s %s: %d %s", path, body, a.status, a.body)
	}
	return a
}

// enquire returns the answer to an enquiry, which must be a 200.
func enquire[T any](w *world, target string, header map[string]string) (r T) {
	w.t.Helper()
	a := w.call(http.MethodGet, target, "", header)
	if a.status != http.StatusOK {
		w.t.Fatalf("enquiry: %d %s", a.status, a.body)
	}
	a.decode(w.t, &r)
	return r
}

// silent posts to an operator that does not answer.
func (w *world) silent(target, body string, header map[string]string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 200*time.Millisecond)
	defer cancel()
	if a, err := w.try(ctx, http.MethodPost, target, body, header); !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("a silent operator answered %d (%v)", a.status, err)
	}
}

// mobileMoney is a merchant of either mobile money operator.
type mobileMoney interface {
	request(payer string) (id string)
	settles(id, status, reason string)
}

// takesTime checks a payer who decides after a time: the outcome before it, and then the
// approval.
func takesTime(t *testing.T, signIn func(*world) mobileMoney, payer string, after time.Duration, meanwhile, reason, approved, code string) {
	t.Parallel()
	w := newWorld(t, nil)
	id := signIn(w).request(payer)
	w.control("/clock", fmt.Sprintf(`{"advance":%q}`, after-time.Millisecond))
	m := signIn(w) // the first token may have expired
	w.quiet(0)
	m.settles(id, meanwhile, reason)
	w.control("/clock", `{"advance":"1ms"}`)
	m.settles(id, approved, code)
	w.callbacks(1)
	w.quiet(1)
}

// neverAnswers checks a payer who never decides.
func neverAnswers(t *testing.T, signIn func(*world) mobileMoney, payer, status, reason string) {
	t.Parallel()
	w := newWorld(t, nil)
	id := signIn(w).request(payer)
	w.control("/clock", `{"advance":"720h"}`)
	w.quiet(0)
	signIn(w).settles(id, status, reason)
}

// callbacks waits until the merchant has got n calls and returns them.
func (w *world) callbacks(n int) []received {
	w.t.Helper()
	var got []received
	w.eventually(fmt.Sprintf("%d callbacks", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		got = append([]received(nil), w.calls...)
		return len(got) >= n
	})
	return got
}

// quiet asserts that the merchant has got n calls and gets no more for a while.
func (w *world) quiet(n int) {
	w.t.Helper()
	time.Sleep(60 * time.Millisecond) // a dozen turns of the timers: nothing happens that could be awaited
	if got := w.callbacks(n); len(got) != n {
		w.t.Errorf("the merchant was called %d times, want %d: %v", len(got), n, got)
	}
}

func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	await.Until(w.t, what, done)
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := simulator.New(simulator.Config{Now: time.Now}); err == nil {
		t.Error("a configuration without a logger was accepted")
	}
	log := slog.New(slog.DiscardHandler)
	if _, err := simulator.New(simulator.Config{Now: time.Now, Log: log, LateDelay: -1}); err == nil || !strings.Contains(err.Error(), "LateDelay") {
		t.Errorf("error %v does not name LateDelay", err)
	}
}

func TestIndexListsSurfaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.call(http.MethodGet, "/", "", nil)
	for _, want := range []string{"/mtn", "/erp/{agency}", "/inbox/guichet", "/control/clock", "06 600 00 13", "/airtel", "05 500 00 13", "/control/counter/PAYMENT_REF", "curl -X POST " + w.url} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the index does not mention %q", want)
		}
	}
	if a := w.call(http.MethodGet, "/nowhere", "", nil); a.status != http.StatusNotFound || !strings.Contains(a.body, "/nowhere") {
		t.Errorf("unknown address: %d %s", a.status, a.body)
	}
}
