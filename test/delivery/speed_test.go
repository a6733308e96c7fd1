package delivery_test

import (
	"testing"
	"time"

	"quittance/dev/bench/measure"
)

var (
	singleGroups = []group{{name: "single", subscribers: 1, endpoints: 1, inFlight: 64}}
	fanoutGroups = []group{{name: "fanout", subscribers: 1, endpoints: 20}}
)

// single raises the rate to one endpoint until it is not sustained: its p99 over
// the window exceeds the bar.
func (r *deliveryReport) single(t *testing.T, a *arena, run int) {
	if !r.full {
		r.pace(t, a, run, 150, 0, 2*time.Second)
		return
	}
	const first, step, most = singleBar, 500, 8000
	const lead, window = 3 * time.Second, 20 * time.Second
	var highest float64
	var at time.Duration
	for rate := float64(first); rate <= most; rate += step {
		p99 := r.pace(t, a, run, rate, lead, window)
		if p99 > singleP99Bar {
			break
		}
		highest, at = rate, p99
	}
	for rate := float64(first - 250); highest == 0 && rate > 0; rate -= 250 { // what it does carry
		if p99 := r.pace(t, a, run, rate, lead, window); p99 <= singleP99Bar {
			highest, at = rate, p99
		}
	}
	r.line(t, "single run=%d: sustained %.0f/s, p99 %.1f ms", run, highest, measure.Milliseconds(at))
	r.figure("single_per_s", highest)
	r.figure("single_p99_ms", measure.Milliseconds(at))
	if got := r.median("single_per_s"); run == r.runs && got < singleBar {
		t.Errorf("%.0f deliveries a second with a p99 of %v at most, want %d", got, singleP99Bar, singleBar)
	}
}

// pace holds a rate and returns the window's p99.
func (r *deliveryReport) pace(t *testing.T, a *arena, run int, rate float64, lead, window time.Duration) time.Duration {
	t.Helper()
	from := time.Now().Add(200 * time.Millisecond)
	bulletins := a.steadily(rate, from, lead+window, a.groups["single"]...)
	spent := a.spent(t)
	a.load(t, bulletins, func() {})
	spending := a.spending(t, spent, len(bulletins))
	a.settle(t.Context(), t, bulletins, 0)
	took := latencies(bulletins, from.Add(lead), from.Add(lead+window), everyEndpoint)
	p99 := measure.Percentile(took, 0.99)
	r.line(t, "single run=%d: at %.0f/s for %v p50 %.1f ms, p99 %.1f ms, most %.1f ms; CPU a delivery: %s", run, rate, window,
		measure.Milliseconds(measure.Percentile(took, 0.5)), measure.Milliseconds(p99), measure.Milliseconds(measure.Percentile(took, 1)), spending)
	r.judge(t, a, "single", bulletins)
	return p99
}

// fanout has all happen at once.
func (r *deliveryReport) fanout(t *testing.T, a *arena, run int) {
	events := 40
	if r.full {
		events = 800
	}
	begun := time.Now().Add(200 * time.Millisecond)
	var bulletins []*bulletin
	for range events {
		bulletins = append(bulletins, a.bulletin(begun, a.groups["fanout"][0]))
	}
	a.load(t, bulletins, func() {})
	a.settle(t.Context(), t, bulletins, 0)
	took := latencies(bulletins, begun, begun.Add(time.Second), everyEndpoint)
	last := measure.Percentile(took, 1)
	rate := float64(len(took)) / last.Seconds()
	r.line(t, "fanout run=%d: %d events to 20 endpoints: %.0f deliveries a second, the last after %v", run, events, rate, measure.Rounded(last))
	r.judge(t, a, "fanout", bulletins)
	if r.full {
		r.figure("fanout_per_s", rate)
		if got := r.median("fanout_per_s"); run == r.runs && got < fanoutBar {
			t.Errorf("%.0f deliveries a second, want %d", got, fanoutBar)
		}
	}
}
