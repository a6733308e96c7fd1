package office

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench"
	"quittance/dev/bench/client"
	"quittance/dev/bench/installation"
	"quittance/dev/bench/measure"
	"quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/dev/staff"
	"quittance/internal/identity"
	"quittance/internal/postgres"
	"quittance/internal/sessions"
	"quittance/money/localtime"
	"quittance/schemas"
)

// Config of a measurement. All fields but Broker and Program are required.
type Config struct {
	// Broker is host:port of a running Kafka. When it is empty, Run starts one.
	Broker string
	// Program is the path of quittance-dev. When it is empty, the roles run this program.
	Program string
	// Rows is the number of sessions in Postgres.
	Rows int
	// Viewers look at pages at the same time.
	Viewers int
	// Seconds is how long they look, and how long payments are measured before.
	Seconds int
	// Profiles is an existing folder for the CPU profile of office while people look; empty for none.
	Profiles string
	// Log receives progress.
	Log *slog.Logger
}

// The bars, on two cores with 50 viewers.
const (
	maxList   = 150 * time.Millisecond // p95
	maxRecord = 300 * time.Millisecond // p95, of searches too
	maxPoll   = 20 * time.Millisecond  // p95
	maxFirst  = 30 << 10               // bytes of a first view, before compression
	maxRatio  = 1.1                    // of the p99 of creations
	// maxAlone bounds the p99 of creations while nobody looks: beside a slow baseline the ratio says nothing.
	maxAlone = 250 * time.Millisecond
)

const (
	// creationRate is the rate of creations of sessions, a second.
	creationRate = 40
	// think is how long a viewer looks at a page.
	think = time.Second
)

// people look at the pages. Each of them has as many sessions as a person may have.
var people = []string{"Démo Lead 1", "Démo Lead 2", "Démo Support", "Démo Audit"}

const browsersEach = 3

// run is a measurement under way.
type run struct {
	Config
	in        *installation.Installation
	pool      *pgxpool.Pool
	codec     *schemas.Codec
	roles     []*program.Process
	creations *client.Creations
	staffURL  string
	out       io.Writer
	browsers  []*staff.Browser
	begun     time.Time // of the measurement; all sessions that are made here ended before

	mu    sync.Mutex
	took  map[string][]time.Duration
	first int // bytes of the largest first view
}

// Run starts an installation, fills it, measures, and writes the report to out. Its last line is
//
//	office rows=… list_p95_ms=… search_ms=… record_ms=… poll_ms=… checkout_p99_ratio=…
//
// It returns an error that names the bars that were missed.
func Run(ctx context.Context, cfg Config, out io.Writer) (err error) {
	in, err := installation.Open(ctx, installation.Config{Broker: cfg.Broker, Program: cfg.Program, Log: cfg.Log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(ctx)) }()
	r := &run{Config: cfg, in: in, out: out, took: map[string][]time.Duration{}}
	if err := r.start(ctx); err != nil {
		return err
	}
	defer r.pool.Close()
	return installation.During(ctx, r.roles, r.measure)
}

// start starts the roles.
func (r *run) start(ctx context.Context) error {
	ports, err := stack.FreePorts(program.UpPorts + 1)
	if err != nil {
		return err
	}
	edge, pages := program.Local(ports[0]), ports[program.UpPorts]
	r.staffURL = fmt.Sprintf("http://localhost:%d", pages) // browsers allow passkeys for names only
	if _, err := r.in.Simulate(ports[0]); err != nil {
		return err
	}
	file, keys := bench.Registry(agencies)
	if err := r.in.Seed(ctx, string(file)); err != nil {
		return err
	}
	if r.roles, err = r.in.Roles(ctx,
		installation.Role{Name: "processor checkout", Args: []string{"processor", "--instance", "0"}},
		installation.Role{Name: "sink readmodel", Args: []string{"sink", "readmodel", "--instance", "0"}},
		installation.Role{Name: "ingress", Args: []string{"ingress", "--listen", edge, "--checkout-url", "http://" + edge, "--callback-url", "http://" + edge}},
		installation.Role{Name: "office", Args: []string{"office", "--listen", program.Local(pages), "--staff-url", r.staffURL}},
	); err != nil {
		return err
	}
	if r.pool, err = postgres.Open(ctx, r.in.DSN()); err != nil {
		return err
	}
	if r.codec, err = r.in.Codec(ctx); err != nil {
		return err
	}
	r.creations = client.NewCreations("http://"+edge, bench.ServiceCode, keys, creationRate)
	return r.signIn(ctx)
}

// signIn signs the people in, in several browsers each.
func (r *run) signIn(ctx context.Context) error {
	now := func() time.Time { return time.Now().UTC() }
	desk, err := identity.OpenDesk(identity.DeskConfig{Pool: r.pool, Keys: r.in.Keys, URL: r.staffURL, Log: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		return err
	}
	all := staff.NewPeople(staff.PeopleConfig{File: filepath.Join(r.in.Dir, "staff.json"), Pool: r.pool, Keys: r.in.Keys, Party: desk.Party(), URL: r.staffURL, Now: now})
	via := &http.Client{
		Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for range browsersEach {
		for _, name := range people {
			b := staff.NewBrowser(all, name, via)
			if err := b.SignIn(ctx); err != nil {
				return err
			}
			r.browsers = append(r.browsers, b)
		}
	}
	return nil
}

// measure does all measurements in turn.
func (r *run) measure(ctx context.Context) error {
	r.begun = time.Now().UTC()
	if err := fill(ctx, r.pool, r.codec, r.Rows, r.in.Topology.Count(schemas.TopicEvents), r.begun, r.Log); err != nil {
		return err
	}
	r.Log.Info("sessions are created while nobody looks")
	before := r.creations.During(ctx, func(ctx context.Context) error { measure.Pause(ctx, r.length()); return nil })
	r.Log.Info("people look at pages while sessions are created", slog.Int("viewers", r.Viewers))
	meanwhile := r.creations.During(ctx, r.look)
	if err := errors.Join(before.Err, meanwhile.Err); err != nil {
		return err
	}
	alone, beside := measure.Percentile(before.Took, 0.99), measure.Percentile(meanwhile.Took, 0.99)
	ratio := beside.Seconds() / alone.Seconds()
	r.say("checkout rate=%d p99_ms=%.0f alone_p99_ms=%.0f creations=%d alone=%d", creationRate, measure.Milliseconds(beside), measure.Milliseconds(alone), len(meanwhile.Took), len(before.Took))
	for _, kind := range kinds {
		of := r.took[kind.name]
		r.say("%-8s n=%d p50_ms=%.1f p95_ms=%.1f p99_ms=%.1f", kind.name, len(of), measure.Milliseconds(measure.Percentile(of, 0.5)), measure.Milliseconds(measure.Percentile(of, 0.95)), measure.Milliseconds(measure.Percentile(of, 0.99)))
	}
	r.say("office rows=%d viewers=%d list_p95_ms=%.0f search_ms=%.0f record_ms=%.0f poll_ms=%.0f first_view_kb=%.1f checkout_p99_ratio=%.2f", r.Rows, r.Viewers,
		measure.Milliseconds(r.p95(list)), measure.Milliseconds(r.p95(search)), measure.Milliseconds(r.p95(record)), measure.Milliseconds(r.p95(poll)), float64(r.first)/1024, ratio)
	return r.check(alone, ratio)
}

func (r *run) length() time.Duration { return time.Duration(r.Seconds) * time.Second }

func (r *run) say(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format+"\n", args...) }

// kind is what a viewer does.
type kind struct {
	name string
	// share is how often a viewer does it, of shares times.
	share int
	// path returns the address, of any of so many rows.
	path func(r *run) string
}

// The names of kinds with a bar.
const (
	list, search, record, poll = "list", "search", "record", "poll"
)

// kinds are what viewers do: two lists, one with a condition, a search, a record, and the questions of the script of a page that
// has not changed.
var kinds = []kind{
	{list, 10, func(r *run) string {
		if rand.IntN(2) == 0 { //nolint:gosec // which page somebody looks at
			return "/ops/payments?mode=test"
		}
		return "/ops/payments?mode=test&status=failed&agency=" + bench.AgencyID(rand.IntN(agencies)) //nolint:gosec // as above
	}},
	{search, 1, func(r *run) string {
		return "/ops/search?q=" + url.QueryEscape(fmt.Sprintf("DOSSIER-%09d", rand.IntN(r.Rows))) //nolint:gosec // as above
	}},
	{record, 9, func(r *run) string {
		e := made(rand.IntN(r.Rows), r.Rows, r.in.Topology.Count(schemas.TopicEvents), r.begun) //nolint:gosec // as above
		return "/ops/payments/" + sessions.Place(e.SessionID)
	}},
	{poll, 10, func(r *run) string {
		return "/ops/payments?mode=test&agency=" + bench.AgencyID(1) + "&day=" + r.oldDay()
	}},
}

// shares is the sum of the shares of kinds. Searches have one, because a person may search 30 times a minute.
const shares = 30

// chosen is what a viewer does next.
func chosen() kind {
	n := rand.IntN(shares) //nolint:gosec // as above
	for _, k := range kinds {
		if n -= k.share; n < 0 {
			return k
		}
	}
	return kinds[0]
}

// oldDay is a local day in the middle of the sessions, of which nothing changes any more.
func (r *run) oldDay() string {
	return localtime.Day(r.begun.Add(-max(time.Duration(r.Rows)*between/2, 48*time.Hour)))
}

// look has viewers look at pages.
func (r *run) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.length())
	defer cancel()
	var g errgroup.Group
	for n := range r.Viewers {
		g.Go(func() error { return r.view(ctx, n) })
	}
	if r.Profiles != "" {
		g.Go(func() error { return r.profile(ctx) })
	}
	return g.Wait()
}

// profile takes the CPU profile of office for half the time that people look.
func (r *run) profile(ctx context.Context) error {
	office := r.roles[len(r.roles)-1]
	text, err := office.Get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, r.Seconds/2)))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.Profiles, office.Name+".cpu.pprof"), text, 0o600); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}

// view is one viewer. The one who asks for a page again, as its script does, says which page is there.
func (r *run) view(ctx context.Context, n int) error {
	b, tag := r.browsers[n%len(r.browsers)], ""
	for measure.Pause(ctx, rand.N(2*think)) { //nolint:gosec // as above
		k := chosen()
		path, asks := k.path(r), []string(nil)
		if k.name == poll {
			if tag == "" {
				a, err := b.Get(ctx, path)
				if err != nil || a.Header.Get("ETag") == "" {
					return refused(ctx, path, a, err)
				}
				tag = a.Header.Get("ETag")
			}
			asks = []string{"If-None-Match", tag, "Quittance-Asks", "1"}
		}
		begun := time.Now()
		a, err := b.Get(ctx, path, asks...)
		took := time.Since(begun)
		switch {
		case err == nil && k.name == poll && a.Status == http.StatusNotModified:
		case err == nil && k.name == search && a.Status == http.StatusSeeOther && strings.HasPrefix(a.Header.Get("Location"), "/ops/payments/"): // the only one
		case err == nil && k.name != search && k.name != poll && a.Status == http.StatusOK:
		default:
			return refused(ctx, path, a, err)
		}
		r.note(k.name, took, len(a.Body))
	}
	return nil
}

// refused is the error of an answer that is none; nil when the measurement is over.
func refused(ctx context.Context, path string, a staff.Answer, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s was answered with %d, ETag %q", path, a.Status, a.Header.Get("ETag"))
}

func (r *run) note(kind string, took time.Duration, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took[kind] = append(r.took[kind], took)
	r.first = max(r.first, size)
}

func (r *run) p95(kind string) time.Duration { return measure.Percentile(r.took[kind], 0.95) }

// check returns an error that names the bars that were missed.
func (r *run) check(alone time.Duration, ratio float64) error {
	var missed []error
	for _, bar := range []struct {
		kind string
		most time.Duration
	}{{list, maxList}, {search, maxRecord}, {record, maxRecord}, {poll, maxPoll}} {
		if len(r.took[bar.kind]) < r.Viewers {
			missed = append(missed, fmt.Errorf("%s: %d answers were measured, fewer than there are viewers", bar.kind, len(r.took[bar.kind])))
		}
		if p95 := r.p95(bar.kind); p95 > bar.most {
			missed = append(missed, fmt.Errorf("%s takes %v at p95, more than %v", bar.kind, p95.Round(time.Millisecond), bar.most))
		}
	}
	if r.first > maxFirst {
		missed = append(missed, fmt.Errorf("a page has %d bytes, more than %d", r.first, maxFirst))
	}
	if alone > maxAlone {
		missed = append(missed, fmt.Errorf("creations alone take %v at p99, more than %v: the machine has other work, and the ratio says nothing", alone.Round(time.Millisecond), maxAlone))
	} else if ratio > maxRatio {
		missed = append(missed, fmt.Errorf("creations take %.2f times as long at p99, more than %.1f", ratio, maxRatio))
	}
	return errors.Join(missed...)
}
