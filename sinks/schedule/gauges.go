package schedule

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
)

var kinds = []delivery.Kind{delivery.KindWebhook, delivery.KindERP}

// States of the gauge of the oldest undelivered event.
const (
	undeliveredUntried       = "untried"
	undeliveredRetrying      = "retrying"
	undeliveredHeld          = "held"
	undeliveredNeedsOperator = "needs_operator"
)

// peekPatience bounds the look at what stands on the topics.
const peekPatience = 5 * time.Second

// gauges tell how late deliveries are, also when nobody works on them: what was
// never tried is looked up on the topics, not asked of the workers.
func (s *Schedule) gauges(ctx context.Context, adm *kadm.Client) error {
	untried, kafkaErr := s.untried(ctx, adm)
	type key struct{ kind, state string }
	oldest, rows, held := map[key]time.Time{}, map[key]int64{}, map[string]int64{}
	for _, k := range kinds {
		held[string(k)] = 0
		for _, state := range []string{stateWaiting, stateQueued, stateNeedsOperator} {
			rows[key{string(k), state}] = 0
		}
		for _, state := range []string{undeliveredRetrying, undeliveredHeld, undeliveredNeedsOperator} {
			oldest[key{string(k), state}] = time.Time{}
		}
		if kafkaErr == nil {
			oldest[key{string(k), undeliveredUntried}] = untried[k]
		}
	}
	result, err := s.cfg.Pool.Query(ctx, `
		SELECT d.kind, d.state, x.suspended_at IS NOT NULL, count(*), min(d.occurred_at)
		FROM deliveries d LEFT JOIN delivery_destinations x USING (kind, destination_id)
		WHERE d.state IN ('waiting', 'queued', 'needs_operator') GROUP BY 1, 2, 3`)
	if err != nil {
		return errors.Join(kafkaErr, err)
	}
	var kind, state string
	var suspended bool
	var n int64
	var first time.Time
	if _, err := pgx.ForEachRow(result, []any{&kind, &state, &suspended, &n, &first}, func() error {
		rows[key{kind, state}] += n
		as := key{kind, undeliveredRetrying}
		switch {
		case state == stateNeedsOperator:
			as.state = undeliveredNeedsOperator
		case suspended:
			as.state = undeliveredHeld
		}
		oldest[as] = earlier(oldest[as], first)
		return nil
	}); err != nil {
		return errors.Join(kafkaErr, err)
	}
	if result, err = s.cfg.Pool.Query(ctx, `SELECT kind, count(*) FROM delivery_destinations WHERE suspended_at IS NOT NULL GROUP BY kind`); err != nil {
		return errors.Join(kafkaErr, err)
	}
	if _, err := pgx.ForEachRow(result, []any{&kind, &n}, func() error { held[kind] = n; return nil }); err != nil {
		return errors.Join(kafkaErr, err)
	}

	now := s.cfg.Now()
	for k, at := range oldest {
		age := 0.0
		if !at.IsZero() {
			age = max(0, now.Sub(at).Seconds())
		}
		s.count.oldest.WithLabelValues(k.kind, k.state).Set(age)
	}
	for k, n := range rows {
		s.count.rows.WithLabelValues(k.kind, k.state).Set(float64(n))
	}
	for kind, n := range held {
		s.count.held.WithLabelValues(kind).Set(float64(n))
	}
	return errors.Join(kafkaErr, s.owed(ctx, now))
}

// owed counts the payments that an ERP has still to accept, none of which may be
// forgotten (delivery.md, "ERP").
func (s *Schedule) owed(ctx context.Context, now time.Time) error {
	var n int64
	var first *time.Time
	err := s.cfg.Pool.QueryRow(ctx, `SELECT count(*), min(c.completed_at)`+owedWhere).Scan(&n, &first)
	if err != nil {
		return fmt.Errorf("counting confirmations that are owed: %w", err)
	}
	age := 0.0
	if first != nil {
		age = max(0, now.Sub(*first).Seconds())
	}
	s.count.owed.Set(float64(n))
	s.count.oldestOwed.Set(age)
	return nil
}

// untried is the oldest event of each kind that a planner or a worker has not
// settled, zero for none.
func (s *Schedule) untried(ctx context.Context, adm *kadm.Client) (map[delivery.Kind]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, peekPatience)
	defer cancel()
	out := map[delivery.Kind]time.Time{}
	for _, kind := range kinds {
		planning, sending, err := delivery.Stages(kind)
		if err != nil {
			return nil, err
		}
		for _, stage := range []delivery.Stage{planning, sending} {
			topic := s.cfg.Kafka.Prefix + stage.Topic
			spans, err := kafka.Unsettled(ctx, adm, topic, s.cfg.Kafka.Prefix+stage.Group)
			if err != nil {
				return nil, err
			}
			err = s.cfg.Kafka.Read(ctx, topic, spans, nil, func(r *kgo.Record) (bool, error) {
				at, ok := untriedSince(s.cfg.Codec, stage == planning, r.Value)
				if ok {
					out[kind] = earlier(out[kind], at)
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

// untriedSince is when the event of a notification, or of a planner's delivery,
// occurred. What the schedule has put on the topic has a row and is counted there;
// of poison those tell who settle it.
func untriedSince(codec *schemas.Codec, notification bool, value []byte) (time.Time, bool) {
	if notification {
		var n record.Notification
		err := codec.Decode(value, &n)
		return n.OccurredAt, err == nil
	}
	var d record.Delivery
	err := codec.Decode(value, &d)
	return d.OccurredAt, err == nil && d.Round == 0
}

// earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
