package delivery_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/dev/bench/measure"
)

// crowd has very many endpoints, a twentieth of which is dead for an hour of the
// service's clock: that costs little, harms nobody, and in the end they have all.
func (r *deliveryReport) crowd(t *testing.T, a *arena, run int) {
	const each = 10 // endpoints of a subscriber
	subscribers, rate, lead, window, steps := 30, 10.0, time.Duration(0), time.Second, 4
	if r.full {
		subscribers, rate, lead, window, steps = 1000, 40, 5*time.Second, 30*time.Second, 60
	}
	dead := func(n int) bool { return n%20 == 0 }
	if a.groups["crowd"] == nil {
		took := a.register(t, group{name: "crowd", subscribers: subscribers, endpoints: each, hostOf: func(n int) int {
			if dead(n) {
				return 1
			}
			return 0
		}})
		r.line(t, "crowd: %d endpoints registered in %v", subscribers*each, measure.Rounded(took))
	}
	crowd := a.groups["crowd"]
	ill := map[*endpoint]bool{}
	var gone *host
	for s, sub := range crowd {
		for i, e := range sub.endpoints {
			if dead(s*each + i) {
				ill[e], gone = true, e.host
			}
		}
	}
	requeued := metric(t, a.schedule, "quittance_delivery_schedule_requeued_total")
	_, workerBefore := resident(t, a.worker)
	_, scheduleBefore := resident(t, a.schedule)

	hour := time.Duration(steps) * time.Second
	from := time.Now().Add(200 * time.Millisecond)
	dying := from.Add(lead + window)
	bulletins := a.steadily(rate, from, lead+window+hour, crowd...)
	var rows, queued, crowded int // the most that was seen
	a.load(t, bulletins, func() {
		measure.Until(t.Context(), dying)
		gone.down()
		for n := range steps {
			measure.Until(t.Context(), dying.Add(time.Duration(n+1)*time.Second))
			if err := a.advance(t.Context(), time.Hour/time.Duration(steps)); err != nil {
				t.Error(err)
			}
			var waiting, onTopic, most int
			if err := a.stack.Pool.QueryRow(t.Context(), `
				SELECT coalesce(sum(waiting), 0), coalesce(sum(queued), 0), coalesce(max(queued), 0) FROM (
					SELECT count(*) AS waiting, count(*) FILTER (WHERE state = 'queued') AS queued
					FROM deliveries WHERE state IN ('waiting', 'queued') GROUP BY destination_id)`).Scan(&waiting, &onTopic, &most); err != nil {
				t.Error(err)
			}
			rows, queued, crowded = max(rows, waiting), max(queued, onTopic), max(crowded, most)
		}
	})
	requeued = metric(t, a.schedule, "quittance_delivery_schedule_requeued_total") - requeued
	_, workerMost := resident(t, a.worker)
	_, scheduleMost := resident(t, a.schedule)
	owed := missing(bulletins)
	gone.up(t)
	a.settle(t.Context(), t, bulletins, 10*time.Minute)

	healthy := func(e *endpoint) bool { return !ill[e] }
	without := measure.Percentile(latencies(bulletins, from.Add(lead), dying, healthy), 0.99)
	with := measure.Percentile(latencies(bulletins, dying, dying.Add(hour), healthy), 0.99)
	r.line(t, "crowd run=%d: %d of %d endpoints dead for an hour, %d deliveries owed to them: p99 of the healthy at %.0f/s %.1f ms without, %.1f ms with (× %.2f)", run,
		len(ill), len(crowd)*each, owed, rate*each, measure.Milliseconds(without), measure.Milliseconds(with), float64(with)/float64(without))
	r.line(t, "crowd run=%d: at most %d rows open and %d on the topic, %d of one endpoint; %.0f requeued in that hour; resident at most: worker %d MiB (%d before), schedule %d MiB (%d before)",
		run, rows, queued, crowded, requeued, workerMost, workerBefore, scheduleMost, scheduleBefore)
	r.judge(t, a, fmt.Sprintf("crowd of %d", len(crowd)*each), bulletins)
	if owed == 0 {
		t.Error("nothing was owed to the dead endpoints: the scenario shows nothing")
	}
	if !r.full {
		return // others use the schedule at the same time
	}
	// A row for each delivery that is owed, and twice the cap of an endpoint on the
	// topic; a delivery is put there again by the steps of its schedule and by the
	// breaker's probes, a handful of times in an hour.
	const headroom, onTopicOfOne, rounds, growth = 100, 2 * 8, 10, 128
	if rows > owed+headroom || crowded > onTopicOfOne || requeued > rounds*float64(owed) {
		t.Errorf("run %d: %d rows open, %d of one endpoint on the topic, %.0f requeued: not bounded by the %d owed", run, rows, crowded, requeued, owed)
	}
	if workerMost > workerBefore+growth || scheduleMost > scheduleBefore+growth {
		t.Errorf("run %d: memory grew from %d to %d MiB in the worker, from %d to %d MiB in the schedule", run, workerBefore, workerMost, scheduleBefore, scheduleMost)
	}
	r.unharmed(t, run, "a dead crowd", without, with)
}
