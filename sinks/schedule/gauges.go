package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
)

// States of the gauge of the oldest undelivered event.
const (
	undeliveredUntried       = "untried"
	undeliveredRetrying      = "retrying"
	undeliveredHeld          = "held"
	undeliveredNeedsOperator = "needs_operator"
)

// peekPatience bounds the time in which a topic is read.
const peekPatience = 5 * time.Second

// gauges sets the gauges of deliveries. It reads deliveries without an attempt from the
// topics, so the gauges are right even when no worker runs.
func (s *Schedule) gauges(ctx context.Context, adm *kadm.Client) error {
	untried, kafkaErr := s.untried(ctx, adm)
	type key struct {
		kind  deliveries.Kind
		state string
	}
	oldest, rows := map[key]time.Time{}, map[key]int64{}
	kinds := s.cfg.Deliveries.Kinds()
	for _, k := range kinds {
		for _, state := range []string{deliveries.StateWaiting, deliveries.StateQueued, deliveries.StateNeedsOperator} {
			rows[key{k.Kind, state}] = 0
		}
		for _, state := range []string{undeliveredRetrying, undeliveredHeld, undeliveredNeedsOperator} {
			oldest[key{k.Kind, state}] = time.Time{}
		}
		if at, known := untried[k.Kind]; known {
			oldest[key{k.Kind, undeliveredUntried}] = at
		}
	}
	backlog, err := s.cfg.Deliveries.Backlog(ctx)
	if err != nil {
		return errors.Join(kafkaErr, err)
	}
	for _, b := range backlog {
		rows[key{b.Kind, b.State}] += b.Count
		as := key{b.Kind, undeliveredRetrying}
		switch {
		case b.State == deliveries.StateNeedsOperator:
			as.state = undeliveredNeedsOperator
		case b.Suspended:
			as.state = undeliveredHeld
		}
		oldest[as] = earlier(oldest[as], b.Oldest)
	}
	suspended, err := s.cfg.Deliveries.CountSuspended(ctx)
	if err != nil {
		return errors.Join(kafkaErr, err)
	}
	refusing, err := s.cfg.Deliveries.CountRefusing(ctx)
	if err != nil {
		return errors.Join(kafkaErr, err)
	}
	outstanding, completed, err := s.cfg.Deliveries.CountOutstanding(ctx)
	if err != nil {
		return errors.Join(kafkaErr, err)
	}

	now := s.cfg.Now()
	for k, at := range oldest {
		s.oldest.WithLabelValues(string(k.kind), k.state).Set(age(at, now))
	}
	for k, n := range rows {
		s.rows.WithLabelValues(string(k.kind), k.state).Set(float64(n))
	}
	for _, k := range kinds {
		s.suspended.WithLabelValues(string(k.Kind)).Set(float64(suspended[k.Kind]))
		s.refusing.WithLabelValues(string(k.Kind)).Set(float64(refusing[k.Kind]))
	}
	s.outstanding.Set(float64(outstanding))
	s.oldestOutstanding.Set(age(completed, now))
	return kafkaErr
}

// age returns the age of a time in seconds. It is 0 for the zero time and for a time in
// the future.
func age(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}

// untried returns, by kind, the time of the oldest event that planner or worker have not settled; zero: none. A kind whose topics
// cannot be read is missing, and the others are not: the error says why.
func (s *Schedule) untried(ctx context.Context, adm *kadm.Client) (map[deliveries.Kind]time.Time, error) {
	var wait sync.WaitGroup
	var mu sync.Mutex
	out, failed := map[deliveries.Kind]time.Time{}, map[deliveries.Kind]error{}
	for _, kind := range s.cfg.Deliveries.Kinds() {
		out[kind.Kind] = time.Time{}
		for n, stage := range stages(kind) {
			seen := s.seenOf(kind.Kind, n)
			wait.Go(func() {
				at, err := s.oldestOf(ctx, adm, stage, seen)
				mu.Lock()
				defer mu.Unlock()
				out[kind.Kind] = earlier(out[kind.Kind], at)
				failed[kind.Kind] = errors.Join(failed[kind.Kind], err)
			})
		}
	}
	wait.Wait()
	var all error
	for kind, err := range failed {
		if err != nil {
			delete(out, kind)
			all = errors.Join(all, err)
		}
	}
	return out, all
}

// seen is how far the records of a stage were looked at, by partition: those before next are settled, or ask for no delivery.
type seen map[int32]struct {
	next int64
	at   time.Time // of the last of them
}

// seenOf returns what was seen of a stage of a kind.
func (s *Schedule) seenOf(kind deliveries.Kind, n int) seen {
	key := fmt.Sprintf("%s/%d", kind, n)
	if s.seen[key] == nil {
		if s.seen == nil {
			s.seen = map[string]seen{}
		}
		s.seen[key] = seen{}
	}
	return s.seen[key]
}

// oldestOf returns the time of the oldest event of a stage that is not settled; zero: none. A topic may have many records that ask
// for no delivery, as that of batches has on a payday, while the stage is behind. What was looked at once is not read again, and
// when the time is over the last record that was looked at counts: what follows is not older.
func (s *Schedule) oldestOf(ctx context.Context, adm *kadm.Client, stage untriedStage, seen seen) (oldest time.Time, err error) {
	within, cancel := context.WithTimeout(ctx, peekPatience)
	defer cancel()
	topic := s.cfg.Kafka.Prefix + stage.Topic
	spans, err := kafka.Unsettled(within, adm, topic, s.cfg.Kafka.Prefix+stage.Group)
	if err != nil {
		return oldest, err
	}
	for p, span := range spans {
		if next := seen[p].next; next > span.From && next <= span.To {
			span.From = next
			spans[p] = span
		}
	}
	open := map[int32]bool{}
	for p, span := range spans {
		open[p] = span.From < span.To
	}
	err = s.cfg.Kafka.Read(within, topic, spans, nil, func(r *kgo.Record) (bool, error) {
		if err := within.Err(); err != nil {
			return false, err
		}
		at, ok := stage.since(s.cfg.Codec, r.Value)
		if ok {
			oldest = earlier(oldest, at)
		} else {
			x := seen[r.Partition]
			x.next, x.at = r.Offset+1, r.Timestamp.UTC()
			seen[r.Partition] = x
		}
		open[r.Partition] = !ok && r.Offset+1 < spans[r.Partition].To
		return !ok, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil
		for p, unread := range open {
			switch {
			case !unread:
			case seen[p].at.IsZero():
				return oldest, fmt.Errorf("reading %s: nothing could be read in %s", topic, peekPatience)
			default:
				oldest = earlier(oldest, seen[p].at)
			}
		}
	}
	return oldest, err
}

// untriedStage is a stage with what reads the time of its records' events. since returns false for a record that notifies
// nobody, for a delivery that the schedule has written, because its row is counted, and for a record that cannot be
// decoded.
type untriedStage struct {
	deliveries.Stage
	since func(codec *schemas.Codec, value []byte) (time.Time, bool)
}

// stages returns the stages of a kind, one for each topic.
func stages(kind deliveries.Registration) []untriedStage {
	out := []untriedStage{
		{kind.Planning(), func(codec *schemas.Codec, value []byte) (time.Time, bool) {
			var n record.Notification
			err := codec.Decode(value, &n)
			return n.OccurredAt, err == nil
		}},
		{kind.Sending(), func(codec *schemas.Codec, value []byte) (time.Time, bool) {
			var d record.Delivery
			err := codec.Decode(value, &d)
			return d.OccurredAt, err == nil && d.Round == 0
		}},
	}
	for _, s := range kind.Sources {
		out = append(out, untriedStage{deliveries.Stage{Topic: s.Topic, Group: kind.Planning().Group}, func(codec *schemas.Codec, value []byte) (time.Time, bool) {
			notifications, err := s.Notifications(codec, value)
			if err != nil || len(notifications) == 0 {
				return time.Time{}, false
			}
			return notifications[0].OccurredAt, true
		}})
	}
	return out
}

// earlier returns the earlier of two times. The zero time counts as missing.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
