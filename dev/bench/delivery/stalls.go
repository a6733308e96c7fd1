package delivery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/dev/bench/measure"
	"quittance/schemas"
	"quittance/schemas/record"
)

// steps are the steps of a delivery, in their order. Each lasts from the end of the step
// before it, the first from the planned time of the event.
var steps = []string{"write", "plan", "fetch", "call"}

// journey is when each step of a delivery ended.
type journey struct {
	due  time.Time
	ends [4]time.Time
}

// longest returns the step that took longest, and how long.
func (j *journey) longest() (step string, took time.Duration) {
	from := j.due
	for i, end := range j.ends {
		if d := end.Sub(from); d > took {
			step, took = steps[i], d
		}
		from = end
	}
	return step, took
}

// stall is a run of slow deliveries.
type stall struct {
	from, until time.Time // of their planned times
	count       int
	worst       time.Duration
	by          map[string]int // how many had that longest step
}

// stallGap separates two stalls.
const stallGap = 100 * time.Millisecond

// stalls groups the deliveries that took longer than limit.
func stalls(of []journey, limit time.Duration) (out []stall) {
	slices.SortFunc(of, func(a, b journey) int { return a.due.Compare(b.due) })
	for i := range of {
		j := &of[i]
		took := j.ends[len(j.ends)-1].Sub(j.due)
		if took <= limit {
			continue
		}
		if n := len(out); n == 0 || j.due.Sub(out[n-1].until) > stallGap {
			out = append(out, stall{from: j.due, by: map[string]int{}})
		}
		s := &out[len(out)-1]
		step, _ := j.longest()
		s.until, s.worst = j.due, max(s.worst, took)
		s.count++
		s.by[step]++
	}
	return out
}

// journeys reads from the topics when each step of the first delivery of notifications
// ended. Notifications have one endpoint.
func (a *Arena) journeys(ctx context.Context, of []*notification) ([]journey, error) {
	at := map[string]*journey{}
	for _, b := range of {
		j := &journey{due: b.at}
		if j.ends[3], _ = b.to.endpoints[0].first(b.number); !j.ends[3].IsZero() {
			at[notificationID(b.number)] = j
		}
	}
	note := func(step int, event string, when time.Time) {
		if j := at[event]; j != nil && j.ends[step].IsZero() {
			j.ends[step] = when
		}
	}
	for topic, each := range map[string]func(*kgo.Record) error{
		schemas.TopicWebhooks: func(r *kgo.Record) error {
			var n record.Notification
			err := a.topics.Codec.Decode(r.Value, &n)
			note(0, n.EventID, r.Timestamp)
			return err
		},
		schemas.TopicWebhooksDeliveries: func(r *kgo.Record) error {
			var d record.Delivery
			err := a.topics.Codec.Decode(r.Value, &d)
			note(1, d.EventID, r.Timestamp)
			return err
		},
		schemas.TopicAttempts: func(r *kgo.Record) error {
			var attempt record.Attempt
			err := a.topics.Codec.Decode(r.Value, &attempt)
			note(2, attempt.Delivery.EventID, attempt.At)
			return err
		},
	} {
		if err := a.readAll(ctx, topic, each); err != nil {
			return nil, err
		}
	}
	out := make([]journey, 0, len(at))
	for _, j := range at {
		if !slices.ContainsFunc(j.ends[:], time.Time.IsZero) {
			out = append(out, *j)
		}
	}
	return out, nil
}

func (a *Arena) readAll(ctx context.Context, topic string, each func(*kgo.Record) error) error {
	r, err := a.topics.Read(ctx, topic)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Next(ctx, each)
}

// watch notes when a timer of this process fired late: then the machine as a whole had no
// time for it.
type watch struct{ late []lateness }

// lateness is a timer that fired late.
type lateness struct {
	at time.Time
	by time.Duration
}

const (
	watchEvery = 5 * time.Millisecond
	watchLate  = 50 * time.Millisecond
)

// run watches until ctx ends.
func (w *watch) run(ctx context.Context) {
	for last := time.Now(); measure.Pause(ctx, watchEvery); last = time.Now() {
		if by := time.Since(last) - watchEvery; by > watchLate {
			w.late = append(w.late, lateness{last, by})
		}
	}
}

// during returns by how much timers were late in a time.
func (w *watch) during(from, until time.Time) (by time.Duration) {
	for _, l := range w.late {
		if l.at.Add(l.by).After(from) && l.at.Before(until) {
			by += l.by
		}
	}
	return by
}

// explainStalls reports the runs of slow deliveries: which step took long, and whether the
// machine as a whole stood still.
func (t *trial) explainStalls(ctx context.Context, of []*notification, limit time.Duration, w *watch) error {
	all, err := t.arena.journeys(ctx, of)
	if err != nil {
		return err
	}
	for _, s := range stalls(all, limit) {
		var by []string
		for _, step := range steps {
			if s.by[step] > 0 {
				by = append(by, fmt.Sprintf("%s %d", step, s.by[step]))
			}
		}
		t.line("single run=%d: stall at %s for %v: %d deliveries, the slowest %.0f ms, by their longest step: %s; timers of the machine were late by %v", t.run,
			s.from.UTC().Format(clockFormat), measure.Rounded(s.until.Sub(s.from)), s.count, measure.Milliseconds(s.worst), strings.Join(by, ", "),
			measure.Rounded(w.during(s.from, s.until.Add(s.worst))))
	}
	return nil
}
