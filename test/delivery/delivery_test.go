package delivery_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/dev/stack/program"
)

// What is demanded of the full size, of the median of the runs: a machine that
// stalls for a fifth of a second spoils one.
const (
	singleBar    = 1500 // deliveries a second to one endpoint …
	singleP99Bar = 120 * time.Millisecond
	fanoutBar    = 2000 // deliveries a second
	healthyBar   = 2.0  // p99 beside ill endpoints, as a multiple of that without them
)

// deliveryReport gathers what runs have measured. Safe for concurrent use.
type deliveryReport struct {
	full bool
	runs int

	mu            sync.Mutex
	lines         []string
	figures       map[string][]float64
	lost, doubled int
}

// line adds a line of a scenario.
func (r *deliveryReport) line(t testing.TB, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	t.Log(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, text)
}

// figure notes one run's figure, of which the median counts.
func (r *deliveryReport) figure(name string, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures[name] = append(r.figures[name], value)
}

// unharmed judges, after the last run, what the healthy had beside the ill.
func (r *deliveryReport) unharmed(t *testing.T, run int, what string, without, with time.Duration) {
	t.Helper()
	name := "ratio " + what
	r.figure(name, float64(with)/float64(without))
	if got := r.median(name); run == r.runs && got > healthyBar {
		t.Errorf("%s: p99 of the healthy is %.2f times what it is without, at most %.0f is wanted", what, got, healthyBar)
	}
}

// median of a figure; 0 when nothing was measured.
func (r *deliveryReport) median(name string) float64 {
	of := slices.Sorted(slices.Values(r.figures[name]))
	if len(of) == 0 {
		return 0
	}
	return of[len(of)/2]
}

func (r *deliveryReport) last() string {
	return fmt.Sprintf("single_per_s=%.0f single_p99_ms=%.1f fanout_per_s=%.0f healthy_p99_ms=%.1f healthy_p99_hung_ms=%.1f lost=%d doubled=%d",
		r.median("single_per_s"), r.median("single_p99_ms"), r.median("fanout_per_s"), r.median("healthy_p99_ms"), r.median("healthy_p99_hung_ms"), r.lost, r.doubled)
}

// judge counts what became of bulletins; nothing may be lost, forged or doubled
// without reason.
func (r *deliveryReport) judge(t testing.TB, a *arena, what string, bulletins []*bulletin) {
	t.Helper()
	f, err := a.judge(t.Context(), bulletins)
	if err != nil {
		t.Fatal(err)
	}
	r.line(t, "%s: %v", what, f)
	for _, finding := range f.findings {
		t.Error(finding)
	}
	if f.lost+f.unexplained+f.unsigned > 0 {
		t.Errorf("%s: %v, want no lost, unexplained or unsigned ones", what, f)
	}
	for _, p := range a.stack.Fleet {
		if n := p.Unexpected.Load(); n > 0 {
			t.Errorf("%s: %s has ended by itself %d times; it says:\n%s", what, p.Name, n, program.Tail(p.LogFile(), 4<<10))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += f.lost
	r.doubled += f.doubled
}

// Webhooks reach whoever subscribes, quickly, signed, and at least once: however
// many receivers hang or are gone, and whatever is killed meanwhile. Processes of
// the program, a broker and a Postgres of their own; receivers, and a load in the
// processors' place, in this process.
//
// QUITTANCE_DELIVERY=full measures, three runs of each scenario (or
// QUITTANCE_DELIVERY_RUNS), and fails when a bar is missed; QUITTANCE_DELIVERY_REPORT
// names a file that gets the report as well. Shortened in the normal suite, where
// nothing is timed.
func TestDelivery(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation and disturbs it for a minute")
	}
	r := &deliveryReport{full: os.Getenv("QUITTANCE_DELIVERY") == "full", runs: 1, figures: map[string][]float64{}}
	if r.full {
		r.runs = 3
	}
	if text := os.Getenv("QUITTANCE_DELIVERY_RUNS"); text != "" {
		var err error
		if r.runs, err = strconv.Atoi(text); err != nil {
			t.Fatalf("QUITTANCE_DELIVERY_RUNS: %q is not a number", text)
		}
	}
	t.Cleanup(func() {
		text := strings.Join(append(slices.Clone(r.lines), r.last()), "\n") + "\n"
		t.Logf("\n%s", text)
		if file := os.Getenv("QUITTANCE_DELIVERY_REPORT"); file != "" {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	// Those that leave the installation in peace, then those that do not.
	calm := []scenario{
		{"ill", illGroups, (*deliveryReport).ill},
		{"crowd", nil, (*deliveryReport).crowd},
		{"single", singleGroups, (*deliveryReport).single},
		{"fanout", fanoutGroups, (*deliveryReport).fanout},
	}
	disturbed := []scenario{
		{"killed", faultGroups, (*deliveryReport).killed},
		{"rebalance", faultGroups, (*deliveryReport).rebalance},
		{"postgres", faultGroups, (*deliveryReport).postgres},
		{"broker", faultGroups, (*deliveryReport).broker},
	}
	if r.full {
		for _, s := range append(calm, disturbed...) {
			t.Run(s.name, func(t *testing.T) {
				a := newArena(t, append(s.groups, warmGroups...)...)
				a.warm(t, 1000, 15*time.Second)
				for run := range r.runs {
					begun := loadAverage()
					s.run(r, t, a, run+1)
					r.line(t, "%s run=%d: load average %s before, %s after", s.name, run+1, begun, loadAverage())
				}
			})
		}
		return
	}
	// One installation for all, and what can goes on at the same time.
	t.Parallel()
	a := newArena(t, slices.Concat(singleGroups, fanoutGroups, illGroups, faultGroups, warmGroups)...)
	a.warm(t, 20, 2*time.Second)
	t.Run("calm", func(t *testing.T) {
		for _, s := range calm {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.run(r, t, a, 1)
			})
		}
	})
	for _, s := range disturbed {
		t.Run(s.name, func(t *testing.T) { s.run(r, t, a, 1) })
	}
}

// scenario is one way to try the installation.
type scenario struct {
	name   string
	groups []group
	run    func(r *deliveryReport, t *testing.T, a *arena, run int)
}

var warmGroups = []group{{name: "warm", subscribers: 8, endpoints: 1}}

// warm sees deliveries through, so that every partition is assigned, and the
// broker's compiler has done most of its work, before anything is measured.
func (a *arena) warm(t testing.TB, rate float64, lasting time.Duration) {
	t.Helper()
	bulletins := a.steadily(rate, time.Now(), lasting, a.groups["warm"]...)
	if err := a.write(t.Context(), bulletins); err != nil {
		t.Fatal(err)
	}
	a.settle(t.Context(), t, bulletins, 0)
}

// load writes bulletins beside whatever do does, and returns when both are done.
func (a *arena) load(t testing.TB, bulletins []*bulletin, do func()) {
	t.Helper()
	written := make(chan error, 1)
	go func() { written <- a.write(t.Context(), bulletins) }()
	do()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// loadAverage of the machine, over the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}
