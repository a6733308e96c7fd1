package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/checkout"
	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/dev/bench/topics"
	"quittance/dev/clock"
	"quittance/dev/stack"
	"quittance/dev/stack/program"
)

// tenant is the agency of all subscribers.
const tenant = "018f0000-0000-7000-8000-000000000401"

// Arena is an installation that delivers webhooks, the receivers of its integrators,
// and what is known of both. Scenarios that do not disturb may use it at the same time.
type Arena struct {
	in               *installation.Installation
	pool             *pgxpool.Pool
	topics           *topics.Topics
	worker, schedule *program.Process
	groups           map[string][]*subscriber
	hosts            []*host

	numbers, writers atomic.Int64
	firsts           atomic.Int64 // notifications that an endpoint has accepted, without repetitions
	ahead            atomic.Int64 // nanoseconds that the service's clock is ahead of the machine's

	mu           sync.Mutex
	disturbances []*disturbance
	broken       []error // of receivers
}

// group is subscribers of a kind.
type group struct {
	name        string
	subscribers int
	endpoints   int // of each subscriber
	inFlight    int // max_in_flight of each endpoint; the registry's default when 0
	// hostOf is the host of the nth endpoint of the group, counted from 0. When it is
	// nil, each endpoint has its own host.
	hostOf func(n int) int
}

var warmGroup = group{name: "warm", subscribers: 8, endpoints: 1}

// Open starts an installation with the endpoints of the scenarios, and delivers to some
// of them until every partition is assigned and the broker's JVM has compiled most of
// its code. Close ends it.
func Open(ctx context.Context, cfg installation.Config, size Size, scenarios ...Scenario) (_ *Arena, err error) {
	a := &Arena{groups: map[string][]*subscriber{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close(ctx))
		}
	}()
	if a.in, err = installation.Open(ctx, cfg); err != nil {
		return nil, err
	}
	if a.pool, err = pgxpool.New(ctx, a.in.DSN()); err != nil {
		return nil, fmt.Errorf("connecting to Postgres: %w", err)
	}
	var groups []group
	for _, s := range scenarios {
		for _, g := range s.groups {
			if !slices.ContainsFunc(groups, func(o group) bool { return o.name == g.name }) {
				groups = append(groups, g)
			}
		}
	}
	if err := a.register(ctx, append(groups, warmGroup)...); err != nil {
		return nil, err
	}
	if a.worker, err = a.sink("webhook", 0); err != nil {
		return nil, err
	}
	if a.schedule, err = a.sink("schedule", 0); err != nil {
		return nil, err
	}
	if err := a.in.Start(ctx, a.worker, a.schedule); err != nil {
		return nil, err
	}
	if a.topics, err = topics.Open(ctx, a.in.Broker, a.in.Prefix, a.in.Schemas()); err != nil {
		return nil, err
	}
	rate, lasting := 20.0, 2*time.Second
	if size == Full {
		rate, lasting = 1000, 15*time.Second
	}
	return a, a.warm(ctx, rate, lasting)
}

// sink makes a process of a sink.
func (a *Arena) sink(name string, instance int) (*program.Process, error) {
	n := strconv.Itoa(instance)
	return a.in.Process(name+"-"+n, "sink", name, "--instance", n, "--log", "info")
}

// warm delivers to the group warm.
func (a *Arena) warm(ctx context.Context, rate float64, lasting time.Duration) error {
	all := a.steadily(rate, time.Now(), lasting, a.groups[warmGroup.name]...)
	if err := a.write(ctx, all); err != nil {
		return err
	}
	return a.settle(ctx, all, 0)
}

// Close ends everything. It works after ctx has ended too.
func (a *Arena) Close(ctx context.Context) error {
	var err error
	if a.topics != nil {
		a.topics.Close()
	}
	if a.pool != nil {
		a.pool.Close()
	}
	if a.in != nil {
		err = a.in.Close(ctx)
	}
	for _, h := range a.hosts {
		h.down()
	}
	return err
}

// Output returns the end of what each process has printed.
func (a *Arena) Output() string {
	var b strings.Builder
	for _, p := range []*program.Process{a.worker, a.schedule} {
		fmt.Fprintf(&b, "---- the end of the output of %s, which has ended by itself %d times\n%s\n", p.Name, p.Unexpected.Load(), program.Tail(p.LogFile(), 3<<10))
	}
	return b.String()
}

// failed records that a receiver no longer works.
func (a *Arena) failed(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = append(a.broken, err)
}

func (a *Arena) failures() []error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.broken)
}

// register starts the receivers of groups and adds the groups to the registry.
func (a *Arena) register(ctx context.Context, groups ...group) error {
	registry, err := a.receivers(ctx, groups)
	if err != nil {
		return err
	}
	if err := a.in.Seed(ctx, registry); err != nil {
		return err
	}
	return a.learnIDs(ctx)
}

// receivers starts the receivers of groups and returns a registry file that names them.
func (a *Arena) receivers(ctx context.Context, groups []group) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "agencies:\n  - id: %s\n    slug: agency\n    name: Agency\n    applications:\n", tenant)
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
				if hosts[at] == nil {
					ports, err := stack.FreePorts(1)
					if err != nil {
						return "", err
					}
					hosts[at] = &host{arena: a, addr: program.Local(ports[0]), endpoints: map[string]*endpoint{}}
				}
				e := newEndpoint(hosts[at], fmt.Sprintf("/%s/%d", g.name, n), fmt.Sprintf("whsec_%032x", n))
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
			if err := h.up(ctx); err != nil {
				return "", err
			}
			a.hosts = append(a.hosts, h)
		}
	}
	return b.String(), nil
}

// join registers a group while the service runs, and returns how long the registration
// took.
func (a *Arena) join(ctx context.Context, g group) (took time.Duration, err error) {
	begun := time.Now()
	if err := a.register(ctx, g); err != nil {
		return 0, err
	}
	took = time.Since(begun)
	// An instance reads the registry once a second. Until then it delivers events to
	// nobody, so events are written until one arrives.
	last := a.groups[g.name][0]
	const tries, each = 30, 2 * time.Second
	for range tries {
		probe := []*notification{a.notification(time.Now(), last)}
		if err := a.write(ctx, probe); err != nil {
			return 0, err
		}
		for begun := time.Now(); missing(probe) > 0 && time.Since(begun) < each; {
			if !measure.Pause(ctx, 200*time.Millisecond) {
				return 0, ctx.Err()
			}
		}
		if missing(probe) == 0 {
			for _, e := range last.endpoints {
				e.take()
			}
			return took, nil
		}
	}
	return 0, fmt.Errorf("the service does not deliver to the group %s %v after its registration", g.name, tries*each)
}

// learnIDs reads the ids of the endpoints from the registry.
func (a *Arena) learnIDs(ctx context.Context) error {
	byURL := map[string]*endpoint{}
	for _, subscribers := range a.groups {
		for _, s := range subscribers {
			for _, e := range s.endpoints {
				byURL[e.url] = e
			}
		}
	}
	rows, err := a.pool.Query(ctx, `SELECT id::text, url FROM webhook_endpoints`)
	if err != nil {
		return fmt.Errorf("reading endpoints: %w", err)
	}
	var id, url string
	if _, err := pgx.ForEachRow(rows, []any{&id, &url}, func() error {
		if e := byURL[url]; e != nil {
			e.id = id
			delete(byURL, url)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("reading endpoints: %w", err)
	}
	if len(byURL) > 0 {
		return fmt.Errorf("%d endpoints are not in the registry", len(byURL))
	}
	return nil
}

// now returns the time of the service's clock.
func (a *Arena) now() time.Time { return time.Now().UTC().Add(time.Duration(a.ahead.Load())) }

// advance moves the service's clock forward.
func (a *Arena) advance(ctx context.Context, d time.Duration) error {
	ahead, err := clock.Advance(ctx, a.pool, d)
	if err == nil {
		a.ahead.Store(int64(ahead))
	}
	return err
}

// missing counts deliveries that no receiver has accepted.
func missing(of []*notification) int {
	n := 0
	for _, b := range of {
		for _, e := range b.to.endpoints {
			if _, ok := e.first(b.number); !ok {
				n++
			}
		}
	}
	return n
}

// settle waits until the receivers have accepted everything and Postgres has recorded
// it. Once a second it advances the clock by a step, so that retries become due. After
// four minutes it returns an error.
func (a *Arena) settle(ctx context.Context, of []*notification, step time.Duration) error {
	const patience, linger = 4 * time.Minute, time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for n := 1; ; n++ {
		left := missing(of)
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
			return fmt.Errorf("not settled: %d deliveries are missing; receivers have accepted %d, Postgres has %d as delivered and %d as not delivered: %w",
				left, a.firsts.Load(), delivered, open, errors.Join(err, ctx.Err()))
		}
	}
	measure.Pause(ctx, linger) // a second request for a delivery may still be on its way
	return nil
}

// recorded counts the deliveries that Postgres has as delivered, and all others. It
// counts the deliveries of scenarios that run at the same time too.
func (a *Arena) recorded(ctx context.Context) (delivered, open int64, err error) {
	err = a.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE state = 'delivered'), count(*) FILTER (WHERE state <> 'delivered') FROM deliveries`).Scan(&delivered, &open)
	return delivered, open, err
}

// latencies returns the times from each notification's time to its first acceptance, of
// those whose time lies in [from, to), at endpoints that count.
func latencies(of []*notification, from, to time.Time, counts func(*endpoint) bool) []time.Duration {
	var out []time.Duration
	for _, b := range of {
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

var highestResident = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// resident returns the most memory that a process has used, in MiB.
func resident(p *program.Process) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of %s: %w", p.Name, err)
	}
	m := highestResident.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("reading the memory of %s: no VmHWM", p.Name)
	}
	n, err := strconv.Atoi(string(m[1]))
	return n >> 10, err
}

// spent returns the CPU time that each part of the installation has used, and this
// process: the receivers and the load.
func (a *Arena) spent() (map[string]time.Duration, error) {
	parts := map[int]string{a.worker.Pid(): "worker", a.schedule.Pid(): "schedule", os.Getpid(): "receivers and load"}
	if a.in.Kafka != nil {
		parts[a.in.Kafka.Pid()] = "broker"
	}
	file, err := os.ReadFile(filepath.Join(a.in.PostgresDir(), "data", "postmaster.pid"))
	if err != nil {
		return nil, fmt.Errorf("finding Postgres: %w", err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	postmaster, err := strconv.Atoi(first)
	if err != nil {
		return nil, fmt.Errorf("finding Postgres: %w", err)
	}
	for _, pid := range append(measure.Children(postmaster), postmaster) {
		parts[pid] = "Postgres"
	}
	out := map[string]time.Duration{}
	for pid, name := range parts {
		took, _ := measure.CPU(pid) // a process that has ended counts no more
		out[name] += took
	}
	return out, nil
}

// spending says how much CPU time was used since before, for each of n deliveries. It
// depends less than latencies do on the load of the machine.
func (a *Arena) spending(before map[string]time.Duration, n int) (string, error) {
	after, err := a.spent()
	if err != nil {
		return "", err
	}
	parts := make([]string, 0, len(after))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		parts = append(parts, fmt.Sprintf("%s %d µs", name, (after[name]-before[name]).Microseconds()/int64(n)))
	}
	return strings.Join(parts, ", "), nil
}
