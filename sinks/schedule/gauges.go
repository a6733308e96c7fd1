package schedule

import (
	"context"
	"errors"
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

// peekPatience bounds the time in which the topics are read.
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
		if kafkaErr == nil {
			oldest[key{k.Kind, undeliveredUntried}] = untried[k.Kind]
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

// untried returns, by kind, the time of the oldest event that planner or worker have not
// settled; zero: none.
func (s *Schedule) untried(ctx context.Context, adm *kadm.Client) (map[deliveries.Kind]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, peekPatience)
	defer cancel()
	out := map[deliveries.Kind]time.Time{}
	for _, kind := range s.cfg.Deliveries.Kinds() {
		for _, stage := range stages(kind) {
			topic := s.cfg.Kafka.Prefix + stage.Topic
			spans, err := kafka.Unsettled(ctx, adm, topic, s.cfg.Kafka.Prefix+stage.Group)
			if err != nil {
				return nil, err
			}
			err = s.cfg.Kafka.Read(ctx, topic, spans, nil, func(r *kgo.Record) (bool, error) {
				at, ok := stage.since(s.cfg.Codec, r.Value)
				if ok {
					out[kind.Kind] = earlier(out[kind.Kind], at)
				}
				return !ok, nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
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
