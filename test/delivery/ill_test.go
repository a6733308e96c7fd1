package delivery_test

import (
	"testing"
	"time"

	"quittance/dev/bench/measure"
)

var illGroups = []group{{name: "ten", subscribers: 10, endpoints: 1}, {name: "hundred", subscribers: 100, endpoints: 1}}

// illness is what befalls some of the endpoints, all in the same moment.
type illness struct {
	name  string
	group string
	ill   int // the first ones of the group
	mood  mood
	short bool // is tried in the short size too
}

var illnesses = []illness{
	{"1 of 10 hangs", "ten", 1, hangMood, false},
	{"40 of 100 hang", "hundred", 40, hangMood, true},
	{"1 of 10 drips", "ten", 1, dripMood, false},
	{"1 of 10 answers 500", "ten", 1, failMood, false},
	{"1 of 10 resets", "ten", 1, resetMood, true},
}

// ill has endpoints fall ill under a steady load, sees whether the healthy ones
// notice, and lets the ill ones recover: then they get all that they missed.
func (r *deliveryReport) ill(t *testing.T, a *arena, run int) {
	for _, what := range illnesses {
		if r.full || what.short {
			r.befall(t, a, run, what)
		}
	}
}

func (r *deliveryReport) befall(t *testing.T, a *arena, run int, what illness) {
	t.Helper()
	rate, lead, window := 100.0, time.Duration(0), 1500*time.Millisecond
	if r.full {
		rate, lead, window = 400, 5*time.Second, 30*time.Second
	}
	subscribers := a.groups[what.group]
	ill := map[*endpoint]bool{}
	for _, s := range subscribers[:what.ill] {
		ill[s.endpoints[0]] = true
	}
	from := time.Now().Add(200 * time.Millisecond)
	falling := from.Add(lead + window)
	bulletins := a.steadily(rate, from, lead+2*window, subscribers...)
	a.load(t, bulletins, func() {
		measure.Until(t.Context(), falling)
		for e := range ill {
			e.turn(what.mood)
		}
	})
	for e := range ill {
		e.turn(wellMood)
	}
	a.settle(t.Context(), t, bulletins, 10*time.Minute)
	healthy := func(e *endpoint) bool { return !ill[e] }
	without := measure.Percentile(latencies(bulletins, from.Add(lead), falling, healthy), 0.99)
	with := measure.Percentile(latencies(bulletins, falling, falling.Add(window), healthy), 0.99)
	r.line(t, "ill run=%d: %s at %.0f/s: p99 of the healthy %.1f ms without, %.1f ms with (× %.2f)", run, what.name, rate,
		measure.Milliseconds(without), measure.Milliseconds(with), float64(with)/float64(without))
	r.judge(t, a, what.name, bulletins)
	if !r.full {
		return
	}
	const slice = 5 * time.Second
	for at := from.Add(lead); at.Before(falling.Add(window)); at = at.Add(slice) {
		took := latencies(bulletins, at, at.Add(slice), healthy)
		t.Logf("  from %3.0f s after it: p50 %.1f ms, p99 %.1f ms", at.Sub(falling).Seconds(), measure.Milliseconds(measure.Percentile(took, 0.5)), measure.Milliseconds(measure.Percentile(took, 0.99)))
	}
	if what == illnesses[0] {
		r.figure("healthy_p99_ms", measure.Milliseconds(without))
		r.figure("healthy_p99_hung_ms", measure.Milliseconds(with))
	}
	r.unharmed(t, run, what.name, without, with)
}
