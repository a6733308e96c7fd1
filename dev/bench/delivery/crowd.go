package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quittance/dev/bench/measure"
)

// perSubscriber is the number of endpoints of a subscriber of the crowd.
const perSubscriber = 10

// inCrowdDead says which endpoints of the crowd are dead: a twentieth.
func inCrowdDead(n int) bool { return n%20 == 0 }

// crowd has very many endpoints, a twentieth of which is dead for an hour of the
// service's clock. That must cost little memory and few records, must not slow the other
// endpoints, and in the end all endpoints must have all.
func (t *trial) crowd(ctx context.Context) error {
	a := t.arena
	subscribers, rate, lead, window, steps := 30, 10.0, time.Duration(0), time.Second, 4
	if t.size == Full {
		subscribers, rate, lead, window, steps = 1000, 40, 5*time.Second, 30*time.Second, 60
	}
	if a.groups["crowd"] == nil {
		took, err := a.join(ctx, group{name: "crowd", subscribers: subscribers, endpoints: perSubscriber, hostOf: func(n int) int {
			if inCrowdDead(n) {
				return 1
			}
			return 0
		}})
		if err != nil {
			return err
		}
		t.line("crowd: %d endpoints registered in %v", subscribers*perSubscriber, measure.Rounded(took))
	}
	crowd := a.groups["crowd"]
	dead := map[*endpoint]bool{}
	var gone *host
	for s, sub := range crowd {
		for i, e := range sub.endpoints {
			if inCrowdDead(s*perSubscriber + i) {
				dead[e], gone = true, e.host
			}
		}
	}
	before, err := a.usage(ctx)
	if err != nil {
		return err
	}
	hour := time.Duration(steps) * time.Second
	from := time.Now().Add(200 * time.Millisecond)
	dying := from.Add(lead + window)
	all := a.steadily(rate, from, lead+window+hour, crowd...)
	var most queues
	if err := a.load(ctx, all, func(ctx context.Context) error {
		measure.Until(ctx, dying)
		gone.down()
		var errs []error
		for n := range steps {
			measure.Until(ctx, dying.Add(time.Duration(n+1)*time.Second))
			errs = append(errs, a.advance(ctx, time.Hour/time.Duration(steps)), most.raise(ctx, a))
		}
		return errors.Join(errs...)
	}); err != nil {
		return err
	}
	after, err := a.usage(ctx)
	if err != nil {
		return err
	}
	owed := missing(all)
	if err := gone.up(ctx); err != nil {
		return err
	}
	if err := t.settle(ctx, all, 10*time.Minute); err != nil {
		return err
	}
	requeued := after.requeued - before.requeued
	well := func(e *endpoint) bool { return !dead[e] }
	without := measure.Percentile(latencies(all, from.Add(lead), dying, well), 0.99)
	with := measure.Percentile(latencies(all, dying, dying.Add(hour), well), 0.99)
	t.line("crowd run=%d: %d of %d endpoints dead for an hour, %d deliveries owed to them: p99 of the healthy at %.0f/s %.1f ms without, %.1f ms with (× %.2f)", t.run,
		len(dead), len(crowd)*perSubscriber, owed, rate*perSubscriber, measure.Milliseconds(without), measure.Milliseconds(with), float64(with)/float64(without))
	t.line("crowd run=%d: at most %d rows open and %d on the topic, %d of one endpoint; %.0f requeued in that hour; resident at most: worker %d MiB (%d before), schedule %d MiB (%d before)",
		t.run, most.rows, most.onTopic, most.ofOne, requeued, after.worker, before.worker, after.schedule, before.schedule)
	if owed == 0 {
		t.fault("no delivery was owed to the dead endpoints: the scenario shows nothing")
	}
	if err := t.judge(ctx, fmt.Sprintf("crowd of %d", len(crowd)*perSubscriber), all); err != nil || t.size == Small {
		return err // in the small size other scenarios use the schedule at the same time
	}
	t.bounded(owed, most, requeued, before, after)
	t.unharmed("a dead crowd", without, with)
	return nil
}

// bounded holds what the dead endpoints cost against limits: a row for each delivery
// that is owed, twice the cap of an endpoint on the topic, some requeues of a delivery in
// an hour (the steps of its schedule and the probes of the breaker), and little memory.
func (t *trial) bounded(owed int, most queues, requeued float64, before, after crowdUsage) {
	const headroom, onTopicOfOne, rounds, growth = 100, 2 * 8, 10, 128
	if most.rows > owed+headroom || most.ofOne > onTopicOfOne || requeued > rounds*float64(owed) {
		t.fault("run %d: %d rows open, %d of one endpoint on the topic, %.0f requeued: not bounded by the %d owed", t.run, most.rows, most.ofOne, requeued, owed)
	}
	if after.worker > before.worker+growth || after.schedule > before.schedule+growth {
		t.fault("run %d: memory grew from %d to %d MiB in the worker, from %d to %d MiB in the schedule", t.run, before.worker, after.worker, before.schedule, after.schedule)
	}
}

// crowdUsage is what the sinks have used so far.
type crowdUsage struct {
	worker, schedule int // most memory, in MiB
	requeued         float64
}

func (a *Arena) usage(ctx context.Context) (u crowdUsage, err error) {
	if u.worker, err = resident(a.worker); err != nil {
		return u, err
	}
	if u.schedule, err = resident(a.schedule); err != nil {
		return u, err
	}
	u.requeued, err = a.schedule.Metric(ctx, "quittance_delivery_schedule_requeued_total")
	return u, err
}

// queues are the deliveries that are not delivered yet.
type queues struct {
	rows    int
	onTopic int // of the rows
	ofOne   int // of one endpoint on the topic
}

// raise raises the numbers to the present ones.
func (q *queues) raise(ctx context.Context, a *Arena) error {
	var now queues
	if err := a.pool.QueryRow(ctx, `
		SELECT coalesce(sum(waiting), 0), coalesce(sum(queued), 0), coalesce(max(queued), 0) FROM (
			SELECT count(*) AS waiting, count(*) FILTER (WHERE state = 'queued') AS queued
			FROM deliveries WHERE state IN ('waiting', 'queued') GROUP BY destination_id)`).Scan(&now.rows, &now.onTopic, &now.ofOne); err != nil {
		return fmt.Errorf("counting deliveries: %w", err)
	}
	q.rows, q.onTopic, q.ofOne = max(q.rows, now.rows), max(q.onTopic, now.onTopic), max(q.ofOne, now.ofOne)
	return nil
}
