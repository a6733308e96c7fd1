package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
)

// Size of the scenarios.
type Size bool

// The two sizes.
const (
	Small Size = false // seconds; only counts are judged
	Full  Size = true  // minutes; latencies, rates and memory are judged too
)

// Report gathers what the runs have measured. Safe for concurrent use.
type Report struct {
	size Size
	runs int
	say  func(line string)

	mu            sync.Mutex
	lines         []string
	figures       map[string][]float64
	lost, doubled int
}

// NewReport returns an empty report on runs of each scenario. say receives each line at
// once.
func NewReport(size Size, runs int, say func(line string)) *Report {
	return &Report{size: size, runs: runs, say: say, figures: map[string][]float64{}}
}

// String returns the lines.
func (r *Report) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, line := range r.lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}

func (r *Report) line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.say(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, text)
}

// figure adds a figure of one run. The median of the runs counts.
func (r *Report) figure(name string, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.figures[name] = append(r.figures[name], value)
}

// median of a figure; 0 when nothing was measured.
func (r *Report) median(name string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := slices.Sorted(slices.Values(r.figures[name]))
	if len(of) == 0 {
		return 0
	}
	return of[len(of)/2]
}

// Figures of the last line of a report.
const (
	figureSingle      = "single_per_s"
	figureSingleP99   = "single_p99_ms"
	figureFanout      = "fanout_per_s"
	figureHealthy     = "healthy_p99_ms"
	figureHealthyHung = "healthy_p99_hung_ms"
	figurePause       = "kill_pause_s"
)

// figuresLine is the last line of a report: the medians of what was measured, and the
// counts.
func (r *Report) figuresLine() string {
	var parts []string
	for _, f := range []struct {
		name   string
		digits int
	}{{figureSingle, 0}, {figureSingleP99, 1}, {figureFanout, 0}, {figureHealthy, 1}, {figureHealthyHung, 1}, {figurePause, 1}} {
		if len(r.figures[f.name]) > 0 {
			parts = append(parts, fmt.Sprintf("%s=%.*f", f.name, f.digits, r.median(f.name)))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("lost=%d doubled=%d", r.lost, r.doubled)), " ")
}

// Try runs a scenario once in an arena that has its groups. run counts from 1. It
// returns what was wrong, and an error when the scenario could not go on.
func (r *Report) Try(ctx context.Context, s Scenario, a *Arena, run int) (faults []string, err error) {
	t := &trial{Report: r, arena: a, run: run}
	err = s.run(t, ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.faults, err
}

// trial is one run of a scenario.
type trial struct {
	*Report
	arena *Arena
	run   int

	mu     sync.Mutex
	faults []string
}

func (t *trial) fault(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// last says whether this is the last run, after which medians are judged.
func (t *trial) last() bool { return t.run == t.runs }

// unharmed holds, after the last run, the p99 of the healthy endpoints beside faulty
// ones against the limit.
func (t *trial) unharmed(what string, without, with time.Duration) {
	name := "ratio " + what
	t.figure(name, float64(with)/float64(without))
	if got := t.median(name); t.last() && got > healthyLimit {
		t.fault("%s: the p99 of the healthy endpoints is %.2f times what it is without, want %.0f times at most", what, got, healthyLimit)
	}
}

// judge counts what became of notifications. None may be lost, wrongly signed, or
// doubled without cause.
func (t *trial) judge(ctx context.Context, what string, of []*notification) error {
	v, err := t.arena.judge(ctx, of)
	if err != nil {
		return err
	}
	t.line("%s: %v", what, v)
	for _, finding := range v.findings {
		t.fault("%s", finding)
	}
	if v.lost+v.unexplained+v.unsigned > 0 {
		t.fault("%s: %v, want no lost, unexplained or unsigned ones", what, v)
	}
	for _, p := range []*program.Process{t.arena.worker, t.arena.schedule} {
		t.running(what, p)
	}
	for _, err := range t.arena.failures() {
		t.fault("%s: %v", what, err)
	}
	t.Report.mu.Lock()
	defer t.Report.mu.Unlock()
	t.lost += v.lost
	t.doubled += v.doubled
	return nil
}

// running checks that a process has not ended by itself.
func (t *trial) running(what string, p *program.Process) {
	if n := p.Unexpected.Load(); n > 0 {
		t.fault("%s: %s has ended by itself %d times; the end of its output:\n%s", what, p.Name, n, program.Tail(p.LogFile(), 4<<10))
	}
}

// settle waits until all notifications are delivered; see Arena.settle.
func (t *trial) settle(ctx context.Context, of []*notification, step time.Duration) error {
	if err := t.arena.settle(ctx, of, step); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.fault("%v", err)
	}
	return nil
}

// p50, p99 and the maximum of durations, for a line.
func distribution(took []time.Duration) string {
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms, most %.1f ms", measure.Milliseconds(measure.Percentile(took, 0.5)),
		measure.Milliseconds(measure.Percentile(took, 0.99)), measure.Milliseconds(measure.Percentile(took, 1)))
}
