package delivery

import (
	"context"
	"fmt"
	"time"

	"quittance/dev/bench/measure"
)

var illGroups = []group{{name: "ten", subscribers: 10, endpoints: 1}, {name: "hundred", subscribers: 100, endpoints: 1}}

// illness is a fault of some endpoints, which begins at all of them in the same moment.
type illness struct {
	name    string
	group   string
	faulty  int // the first ones of the group
	behaves behaviour
	small   bool // the small size has it too
}

var illnesses = []illness{
	{"1 of 10 hangs", "ten", 1, hangs, false},
	{"40 of 100 hang", "hundred", 40, hangs, true},
	{"1 of 10 drips", "ten", 1, drips, false},
	{"1 of 10 answers 500", "ten", 1, fails, false},
	{"1 of 10 resets", "ten", 1, resets, true},
}

// ill makes endpoints faulty under a steady load, and measures what the healthy ones
// notice. Then the faulty endpoints recover and must get all that they missed.
func (t *trial) ill(ctx context.Context) error {
	for _, what := range illnesses {
		if t.size == Small && !what.small {
			continue
		}
		if err := t.befall(ctx, what); err != nil {
			return err
		}
	}
	return nil
}

func (t *trial) befall(ctx context.Context, what illness) error {
	a := t.arena
	rate, lead, window := 100.0, time.Duration(0), 1500*time.Millisecond
	if t.size == Full {
		rate, lead, window = 400, 5*time.Second, 30*time.Second
	}
	subscribers := a.groups[what.group]
	faulty := map[*endpoint]bool{}
	for _, s := range subscribers[:what.faulty] {
		faulty[s.endpoints[0]] = true
	}
	from := time.Now().Add(200 * time.Millisecond)
	falling := from.Add(lead + window)
	all := a.steadily(rate, from, lead+2*window, subscribers...)
	err := a.load(ctx, all, func(ctx context.Context) error {
		measure.Until(ctx, falling)
		for e := range faulty {
			e.turn(what.behaves)
		}
		return nil
	})
	for e := range faulty {
		e.turn(healthy)
	}
	if err != nil {
		return err
	}
	if err := t.settle(ctx, all, 10*time.Minute); err != nil {
		return err
	}
	well := func(e *endpoint) bool { return !faulty[e] }
	without := measure.Percentile(latencies(all, from.Add(lead), falling, well), 0.99)
	with := measure.Percentile(latencies(all, falling, falling.Add(window), well), 0.99)
	t.line("ill run=%d: %s at %.0f/s: p99 of the healthy %.1f ms without, %.1f ms with (× %.2f)", t.run, what.name, rate,
		measure.Milliseconds(without), measure.Milliseconds(with), float64(with)/float64(without))
	if err := t.judge(ctx, what.name, all); err != nil || t.size == Small {
		return err
	}
	const slice = 5 * time.Second
	for at := from.Add(lead); at.Before(falling.Add(window)); at = at.Add(slice) {
		t.say(fmt.Sprintf("  from %3.0f s after it: %s", at.Sub(falling).Seconds(), distribution(latencies(all, at, at.Add(slice), well))))
	}
	if what == illnesses[0] {
		t.figure(figureHealthy, measure.Milliseconds(without))
		t.figure(figureHealthyHung, measure.Milliseconds(with))
	}
	t.unharmed(what.name, without, with)
	return nil
}
