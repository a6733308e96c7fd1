package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/internal/kafka"
	"quittance/test/servers"
)

// callFunc is a caller without a connection.
type callFunc func(ctx context.Context) error

func (f callFunc) call(ctx context.Context) error { return f(ctx) }
func (callFunc) hangUp()                          {}

func callers(n int, f callFunc) []caller {
	out := make([]caller, n)
	for i := range out {
		out[i] = f
	}
	return out
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	var v []time.Duration
	for i := range 100 {
		v = append(v, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0.5: 50, 0.99: 99, 1: 100} {
		if got := quantile(v, q); got != want {
			t.Errorf("quantile %v of 1…100 is %d, want %d", q, got, want)
		}
	}
	if got := quantile(v[:1], 0.99); got != 1 {
		t.Errorf("quantile of one value is %d", got)
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing is %d", got)
	}
}

func TestMedianKeepsFailures(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	m := median([]sample{
		{rate: 30, p50: 3, p99: 9, calls: 10},
		{rate: 10, p50: 1, p99: 30, calls: 10, failed: 2, firstError: lost},
		{rate: 20, p50: 8, p99: 10, calls: 10},
	})
	if m.rate != 20 || m.p50 != 3 || m.p99 != 10 || m.calls != 30 || m.failed != 2 || !errors.Is(m.firstError, lost) {
		t.Errorf("got %+v", m)
	}
}

func TestClosedLoopCountsWithinItsWindow(t *testing.T) {
	t.Parallel()
	s := closedLoop(t.Context(), callers(4, func(context.Context) error {
		time.Sleep(20 * time.Millisecond)
		return nil
	}), 200*time.Millisecond, 500*time.Millisecond)
	// Each of the 4 clients can call at most 50 times a second.
	if s.rate > 200 || s.rate < 50 {
		t.Errorf("rate %.0f/s, want up to 200", s.rate)
	}
	if s.p50 < 20*time.Millisecond || s.failed != 0 {
		t.Errorf("p50 %v, %d failed", s.p50, s.failed)
	}
}

// The service stops for a moment. Requests that were due in that time waited too,
// although no client had sent them yet.
func TestOpenLoopCountsFromTheSchedule(t *testing.T) {
	t.Parallel()
	const stall = 400 * time.Millisecond
	begun := time.Now()
	s := openLoop(t.Context(), callers(1, func(context.Context) error {
		if at := time.Since(begun); at > 200*time.Millisecond && at < 300*time.Millisecond {
			time.Sleep(stall)
		}
		return nil
	}), 200, 0, time.Second)
	// About 40 % of the arrivals fall into the stall and wait for half of it.
	if s.p99 < stall/2 {
		t.Errorf("p99 %v hides a stall of %v", s.p99, stall)
	}
	if s.calls < 120 || s.calls > 280 {
		t.Errorf("%d arrivals in a second, want about 200", s.calls)
	}
}

func TestCreatorSendsWholeRequests(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	var answers atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte("erp_due_ref")) || r.URL.Path != createPath || r.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s with %s: %v", r.URL.Path, body, err)
		}
		if key := r.Header.Get("Idempotency-Key"); keys[key] { // one client: no other handler runs
			t.Errorf("the key %s came twice", key)
		} else {
			keys[key] = true
		}
		if answers.Add(1) == 3 {
			http.Error(w, "quota", http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, strings.Repeat("x", 5000)) // chunked
	}))
	defer srv.Close()
	c := &creator{addr: srv.Listener.Addr().String(), key: "k", run: "test", n: &atomic.Int64{}}
	defer c.hangUp()
	for i := range 5 {
		err := c.call(t.Context())
		if refused := i == 2; refused != (err != nil) {
			t.Errorf("call %d: %v", i, err)
		}
		if i == 2 && !strings.Contains(err.Error(), "429") {
			t.Errorf("the error does not show the answer: %v", err)
		}
	}
}

func TestEchoOnKafka(t *testing.T) {
	t.Parallel()
	cfg := kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Partitions: 2}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kafka.Migrate(t.Context(), cfg, cl); err != nil {
		t.Fatal(err)
	}
	topology, err := kafka.Load(t.Context(), cfg, cl)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := commands(t.Context(), cfg, topology); err == nil {
		t.Error("commands were read from an empty topic")
	}
	for _, v := range []string{"12345", "1234567"} {
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topology.Name("checkout.commands"), Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	values, size, err := commands(t.Context(), cfg, topology)
	if err != nil || len(values) != 2 || size != 6 {
		t.Fatalf("read %d commands of %d bytes on average: %v", len(values), size, err)
	}
	e, err := newEcho(t.Context(), cfg, topology, values, servers.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return e.Run(ctx) })
	b := &Benchmark{echo: e}
	if err := b.ready(ctx, echoCaller{e}); err != nil {
		t.Error(err)
	}
	s := closedLoop(ctx, b.echoers(8), 0, time.Second)
	if s.failed != 0 || s.rate < 10 || s.p50 <= 0 {
		t.Errorf("echo: %+v", s)
	}
	t.Logf("echo: %+v", s)
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestReportEndsWithTheNumbers(t *testing.T) {
	t.Parallel()
	r := results{
		cfg: Config{Length: time.Second, Processes: []Process{{Name: "broker"}}}, size: 800,
		service: map[int][]sample{}, echo: map[int][]sample{}, open: make([][]sample, len(Shares)),
		used: map[int][]usage{512: {{time.Second}}}, echoUsed: map[int][]usage{512: {{time.Second}}},
	}
	for _, n := range Clients {
		r.service[n] = []sample{{rate: 1000 * float64(n), p50: 9 * time.Millisecond, calls: 100}}
		r.echo[n] = []sample{{rate: 4000 * float64(n), p50: 3 * time.Millisecond, calls: 100}}
	}
	for i := range Shares {
		r.open[i] = []sample{{rate: 1, calls: 1}}
	}
	if err := r.check(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	const want = "create_per_s=512000 echo_per_s=2048000 ratio=0.25 p50_1_ms=9.00 echo_p50_1_ms=3.00"
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	r.service[64][0].failed = 50
	if r.check() == nil {
		t.Error("a service that does not answer passes the check")
	}
}
