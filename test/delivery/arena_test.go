package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/dev/bench/measure"
	"quittance/dev/clock"
	"quittance/dev/stack/program"
	"quittance/test/harness"
	"quittance/test/servers"
)

const deliveryTenant = "018f0000-0000-7000-8000-000000000401"

// arena is an installation that delivers webhooks, the receivers of its
// integrators, and what is known of both.
type arena struct {
	stack            *harness.Stack
	topics           *harness.Topics
	worker, schedule *program.Process
	groups           map[string][]*subscriber
	hosts            []*host

	numbers, writers atomic.Int64
	firsts           atomic.Int64 // first acceptances
	ahead            atomic.Int64 // of the machine's clock, the service's

	mu           sync.Mutex
	disturbances []*disturbance
}

// group is subscribers of a kind.
type group struct {
	name        string
	subscribers int
	endpoints   int // of each subscriber
	inFlight    int // max_in_flight of each endpoint; the registry's default when 0
	// hostOf is the host of the nth endpoint of the group, counted from 0; each
	// has its own when nil.
	hostOf func(n int) int
}

// newArena starts an installation with the groups.
func newArena(t testing.TB, groups ...group) *arena {
	t.Helper()
	a := &arena{groups: map[string][]*subscriber{}}
	a.stack = harness.NewStack(t, servers.Dir(t), harness.Shape{
		Registry: func(*harness.Stack) string { return a.invite(t, groups...) }, Sinks: 1, Only: []string{"webhook", "schedule"},
	})
	t.Cleanup(func() {
		if t.Failed() {
			a.stack.Outputs(t)
		}
	})
	// Only the migration needs it; what is measured is not to share the machine with it.
	if err := a.stack.Engine.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range a.stack.Fleet {
		switch p.Name {
		case "webhook-0":
			a.worker = p
		case "schedule-0":
			a.schedule = p
		}
	}
	var err error
	if a.topics, err = harness.OpenTopics(t.Context(), a.stack); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.topics.Close)
	a.learnIDs(t)
	return a
}

// invite makes the groups' receivers and returns the registry that names them.
func (a *arena) invite(t testing.TB, groups ...group) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "agencies:\n  - id: %s\n    slug: agency\n    name: Agency\n    applications:\n", deliveryTenant)
	for _, g := range groups {
		hosts := map[int]*host{}
		for s := range g.subscribers {
			sub := &subscriber{id: uuid.NewString()}
			fmt.Fprintf(&b, "      - {id: %s, name: %s %d, webhook_endpoints: [\n", sub.id, g.name, s)
			for i := range g.endpoints {
				n := s*g.endpoints + i
				at := n
				if g.hostOf != nil {
					at = g.hostOf(n)
				}
				h := hosts[at]
				if h == nil {
					h = &host{addr: program.Local(harness.Ports(t, 1)[0]), endpoints: map[string]*endpoint{}, firsts: &a.firsts}
					hosts[at] = h
					a.hosts = append(a.hosts, h)
				}
				e := newEndpoint(h, fmt.Sprintf("/%s/%d", g.name, n), fmt.Sprintf("whsec_%032x", n))
				sub.endpoints = append(sub.endpoints, e)
				fmt.Fprintf(&b, "          {url: %q, secret: %s, events: [%s]", e.url, e.secret, checkout.EventCompleted)
				if g.inFlight > 0 {
					fmt.Fprintf(&b, ", max_in_flight: %d", g.inFlight)
				}
				b.WriteString("},\n")
			}
			b.WriteString("        ]}\n")
			a.groups[g.name] = append(a.groups[g.name], sub)
		}
		for _, h := range hosts {
			h.up(t)
			t.Cleanup(h.down)
		}
	}
	return b.String()
}

// register adds groups to the registry while the service runs, and says how long
// that took.
func (a *arena) register(t testing.TB, groups ...group) time.Duration {
	t.Helper()
	file := filepath.Join(a.stack.Dir, "further.yaml")
	if err := os.WriteFile(file, []byte(a.invite(t, groups...)), 0o600); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := a.stack.Program.Run(t.Context(), "seed", file); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	a.learnIDs(t)
	// An instance knows it within a second of reading it, and until then events
	// go to nobody.
	last := a.groups[groups[len(groups)-1].name][0]
	for tries := 0; ; tries++ {
		probe := []*bulletin{a.bulletin(time.Now(), last)}
		if err := a.write(t.Context(), probe); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if missing(probe) > 0 {
				measure.Pause(t.Context(), 200*time.Millisecond)
			}
		}
		if missing(probe) == 0 {
			break
		}
		if tries == 30 {
			t.Fatal("what was registered is not known a minute later")
		}
	}
	for _, e := range last.endpoints {
		e.take()
	}
	return took
}

// learnIDs asks under which ids the registry has the endpoints.
func (a *arena) learnIDs(t testing.TB) {
	t.Helper()
	byURL := map[string]*endpoint{}
	for _, e := range a.endpoints() {
		byURL[e.url] = e
	}
	rows, err := a.stack.Pool.Query(t.Context(), `SELECT id::text, url FROM webhook_endpoints`)
	if err != nil {
		t.Fatal(err)
	}
	var id, url string
	if _, err := pgx.ForEachRow(rows, []any{&id, &url}, func() error {
		if e := byURL[url]; e != nil {
			e.id = id
			delete(byURL, url)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(byURL) > 0 {
		t.Fatalf("%d endpoints are not in the registry", len(byURL))
	}
}

func (a *arena) endpoints() []*endpoint {
	var out []*endpoint
	for _, g := range a.groups {
		for _, s := range g {
			out = append(out, s.endpoints...)
		}
	}
	return out
}

// now is the service's clock.
func (a *arena) now() time.Time { return time.Now().UTC().Add(time.Duration(a.ahead.Load())) }

// advance moves it, for all roles.
func (a *arena) advance(ctx context.Context, d time.Duration) error {
	ahead, err := clock.Advance(ctx, a.stack.Pool, d)
	if err == nil {
		a.ahead.Store(int64(ahead))
	}
	return err
}

// missing counts deliveries that no receiver has accepted.
func missing(bulletins []*bulletin) int {
	n := 0
	for _, b := range bulletins {
		for _, e := range b.to.endpoints {
			if _, ok := e.first(b.number); !ok {
				n++
			}
		}
	}
	return n
}

// settle waits until all is accepted, and Postgres says so as well. The clock
// advances by a step each second, so that what waits for a retry comes. What is
// missing in the end is told by the judge.
func (a *arena) settle(ctx context.Context, t testing.TB, bulletins []*bulletin, step time.Duration) {
	t.Helper()
	const patience, linger = 4 * time.Minute, time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := 1; ; n++ {
		left := missing(bulletins)
		var delivered, open int64
		var err error
		if left == 0 {
			if delivered, open, err = a.recorded(ctx); err == nil && open == 0 && delivered == a.firsts.Load() {
				break
			}
		}
		if step > 0 && n%4 == 0 {
			err = errors.Join(err, a.advance(ctx, step))
		}
		if !measure.Pause(ctx, 250*time.Millisecond) {
			t.Errorf("not settled after %v: %d deliveries are missing; of %d that receivers have accepted Postgres has %d as delivered, and %d others: %v",
				patience, left, a.firsts.Load(), delivered, open, err)
			return
		}
	}
	measure.Pause(ctx, linger) // for a double that is still on its way
}

// recorded is how many deliveries Postgres knows as delivered, and how many it
// has not so. Those of other loads that run at the same time count too.
func (a *arena) recorded(ctx context.Context) (delivered, open int64, err error) {
	err = a.stack.Pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE state = 'delivered'), count(*) FILTER (WHERE state <> 'delivered') FROM deliveries`).Scan(&delivered, &open)
	return delivered, open, err
}

// latencies from a bulletin's time to its first acceptance, of those whose time
// lies in [from, to), at endpoints that count.
func latencies(bulletins []*bulletin, from, to time.Time, counts func(*endpoint) bool) []time.Duration {
	var out []time.Duration
	for _, b := range bulletins {
		if b.at.Before(from) || !b.at.Before(to) {
			continue
		}
		for _, e := range b.to.endpoints {
			if !counts(e) {
				continue
			}
			if at, ok := e.first(b.number); ok {
				out = append(out, at.Sub(b.at))
			}
		}
	}
	return out
}

func everyEndpoint(*endpoint) bool { return true }

// resident is a process's memory in MiB, now and at most.
func resident(t testing.TB, p *program.Process) (now, most int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		t.Fatalf("reading the memory of %s: %v", p.Name, err)
	}
	read := func(field string) int {
		m := regexp.MustCompile(field + `:\s+(\d+) kB`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("no %s of %s", field, p.Name)
		}
		n, _ := strconv.Atoi(string(m[1]))
		return n >> 10
	}
	return read("VmRSS"), read("VmHWM")
}

// metric reads a process's metric, the sum over its labels.
func metric(t testing.TB, p *program.Process, name string) float64 {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Health+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// spent is the CPU time that each part of the installation has used, and the
// whole of this process: receivers and load.
func (a *arena) spent(t testing.TB) map[string]time.Duration {
	t.Helper()
	out := map[string]time.Duration{}
	for name, p := range map[string]*program.Process{"worker": a.worker, "schedule": a.schedule} {
		out[name] = time.Duration(metric(t, p, "process_cpu_seconds_total") * float64(time.Second))
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	pidFile, err := os.ReadFile(filepath.Join(a.stack.Database.Dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	postmaster, _, _ := strings.Cut(string(pidFile), "\n")
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …, of which utime and stime are the 14th and 15th,
		// in hundredths of a second.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		took := time.Duration(user+system) * 10 * time.Millisecond
		switch pid := filepath.Base(filepath.Dir(file)); {
		case pid == strconv.Itoa(a.stack.Kafka.Pid()):
			out["broker"] += took
		case pid == postmaster || fields[1] == postmaster:
			out["Postgres"] += took
		case pid == strconv.Itoa(os.Getpid()):
			out["receivers and load"] += took
		}
	}
	return out
}

// spending says what was spent since before, for each of n deliveries. Unlike
// latencies it hardly depends on what else the machine does.
func (a *arena) spending(t testing.TB, before map[string]time.Duration, n int) string {
	t.Helper()
	after := a.spent(t)
	parts := make([]string, 0, len(after))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		parts = append(parts, fmt.Sprintf("%s %d µs", name, (after[name]-before[name]).Microseconds()/int64(n)))
	}
	return strings.Join(parts, ", ")
}
