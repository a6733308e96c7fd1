package delivery

import (
	"context"
	"time"

	"quittance/dev/bench/measure"
)

var (
	singleGroups = []group{{name: "single", subscribers: 1, endpoints: 1, inFlight: 64}}
	fanoutGroups = []group{{name: "fanout", subscribers: 1, endpoints: 20}}
)

// single raises the rate to one endpoint until the p99 exceeds the limit.
func (t *trial) single(ctx context.Context) error {
	if t.size == Small {
		_, err := t.pace(ctx, 150, 0, 2*time.Second)
		return err
	}
	const first, step, most = singleLimit, 500, 8000
	const lead, window = 3 * time.Second, 20 * time.Second
	var highest float64
	var at time.Duration
	for rate := float64(first); rate <= most; rate += step {
		p99, err := t.pace(ctx, rate, lead, window)
		if err != nil {
			return err
		}
		if p99 > singleP99Limit {
			break
		}
		highest, at = rate, p99
	}
	for rate := float64(first - 250); highest == 0 && rate > 0; rate -= 250 { // a lower rate that it sustains
		p99, err := t.pace(ctx, rate, lead, window)
		if err != nil {
			return err
		}
		if p99 <= singleP99Limit {
			highest, at = rate, p99
		}
	}
	t.line("single run=%d: sustained %.0f/s, p99 %.1f ms", t.run, highest, measure.Milliseconds(at))
	t.figure(figureSingle, highest)
	t.figure(figureSingleP99, measure.Milliseconds(at))
	if got := t.median(figureSingle); t.last() && got < singleLimit {
		t.fault("%.0f deliveries a second with a p99 of %v at most, want %d", got, singleP99Limit, singleLimit)
	}
	return nil
}

// pace holds a rate and returns the p99 of the window after the lead.
func (t *trial) pace(ctx context.Context, rate float64, lead, window time.Duration) (time.Duration, error) {
	a := t.arena
	from := time.Now().Add(200 * time.Millisecond)
	all := a.steadily(rate, from, lead+window, a.groups["single"]...)
	before, err := a.spent()
	if err != nil {
		return 0, err
	}
	watching, enough := context.WithCancel(ctx)
	defer enough()
	var w watch
	watched := make(chan struct{})
	go func() { defer close(watched); w.run(watching) }()
	if err := a.write(ctx, all); err != nil {
		return 0, err
	}
	spending, err := a.spending(before, len(all))
	if err != nil {
		return 0, err
	}
	if err := t.settle(ctx, all, 0); err != nil {
		return 0, err
	}
	enough()
	<-watched
	if t.size == Full {
		if err := t.explainStalls(ctx, all[int(rate*lead.Seconds()):], singleP99Limit, &w); err != nil {
			return 0, err
		}
	}
	took := latencies(all, from.Add(lead), from.Add(lead+window), everyEndpoint)
	t.line("single run=%d: at %.0f/s for %v %s; CPU a delivery: %s", t.run, rate, window, distribution(took), spending)
	return measure.Percentile(took, 0.99), t.judge(ctx, "single", all)
}

// fanout writes all events at once.
func (t *trial) fanout(ctx context.Context) error {
	a, events := t.arena, 40
	if t.size == Full {
		events = 800
	}
	begun := time.Now().Add(200 * time.Millisecond)
	var all []*notification
	for range events {
		all = append(all, a.notification(begun, a.groups["fanout"][0]))
	}
	if err := a.write(ctx, all); err != nil {
		return err
	}
	if err := t.settle(ctx, all, 0); err != nil {
		return err
	}
	took := latencies(all, begun, begun.Add(time.Second), everyEndpoint)
	last := measure.Percentile(took, 1)
	rate := float64(len(took)) / last.Seconds()
	t.line("fanout run=%d: %d events to 20 endpoints: %.0f deliveries a second, the last after %v", t.run, events, rate, measure.Rounded(last))
	if err := t.judge(ctx, "fanout", all); err != nil || t.size == Small {
		return err
	}
	t.figure(figureFanout, rate)
	if got := t.median(figureFanout); t.last() && got < fanoutLimit {
		t.fault("%.0f deliveries a second, want %d", got, fanoutLimit)
	}
	return nil
}
