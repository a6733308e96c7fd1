package deliveries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/operation"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// source returns the topic to replay and the spans of its records. It leaves out what the
// planner has not planned yet: the planner makes these deliveries.
func (r *replay) source(ctx context.Context, adm *kadm.Client) (topic string, spans map[int32]kafka.Span, err error) {
	notifications, planner := r.Kafka.Prefix+cmp.Or(r.Source, r.kind.Notifications), r.Kafka.Prefix+r.kind.Planning().Group
	topic = notifications
	if r.FromEvents {
		topic = r.Kafka.Prefix + schemas.TopicEvents
	}
	if spans, err = kafka.Between(ctx, adm, topic, r.Since, r.Until); err != nil {
		return "", nil, err
	}
	if r.FromEvents {
		// The notifications of all events in the spans are below this end, because a
		// transaction flushes all its records before it commits. Their end markers may
		// arrive later.
		if err := awaitStable(ctx, adm, notifications); err != nil {
			return "", nil, err
		}
	}
	unplanned, err := kafka.Unsettled(ctx, adm, notifications, planner)
	if err != nil {
		return "", nil, err
	}
	if !r.FromEvents {
		for p, span := range spans {
			if open, ok := unplanned[p]; ok {
				span.To = min(span.To, open.From)
				spans[p] = span
			}
		}
		return topic, spans, nil
	}
	err = r.Kafka.Read(ctx, notifications, unplanned, nil, func(rec *kgo.Record) (bool, error) {
		var n record.Notification
		err := r.Codec.Decode(rec.Value, &n)
		if err == nil {
			r.unplanned[n.EventID] = struct{}{}
		}
		return true, readable(err)
	})
	return topic, spans, err
}

// awaitStable waits until all transactions that had written to a topic have ended. The
// error is CodeBehind if one of them does not end.
func awaitStable(ctx context.Context, adm *kadm.Client, topic string) error {
	ends, err := kafka.Offsets(adm.ListEndOffsets(ctx, topic))
	if err != nil {
		return fmt.Errorf("asking for the end of %s: %w", topic, err)
	}
	for begun := time.Now(); ; {
		stable, err := kafka.Offsets(adm.ListCommittedOffsets(ctx, topic))
		if err != nil {
			return fmt.Errorf("asking for the end of %s: %w", topic, err)
		}
		open := false
		for p, end := range ends {
			open = open || stable[p] < end
		}
		switch {
		case !open:
			return nil
		case time.Since(begun) > replayPatience:
			return operation.Refuse(CodeBehind, "", nil)
		case !consume.Sleep(ctx, catchUpAsk):
			return ctx.Err()
		}
	}
}

// findReversed finds the payments that were given back since they were made. An ERP that
// was never told of them is not told any more.
func (r *replay) findReversed(ctx context.Context) error {
	if !r.kind.Confirms {
		return nil
	}
	return r.Kafka.ReadBetween(ctx, r.Kafka.Prefix+schemas.TopicEvents, r.Since, time.Now().Add(time.Hour), nil, func(rec *kgo.Record) error {
		var e record.Event
		if err := r.Codec.Decode(rec.Value, &e); err != nil {
			return readable(err)
		}
		switch checkout.EventType(e.Type) {
		case checkout.EventReversed, checkout.EventPartiallyReversed:
			for _, due := range mapping.ToEvent(&e).Returned() {
				r.reversed[due.TransactionID] = struct{}{}
			}
		case checkout.EventCollectionReversed: // of an earlier release, which told nothing else
			for _, due := range mapping.ToEvent(&e).Session.Dues() {
				r.reversed[due.TransactionID] = struct{}{}
			}
		default:
		}
		return nil
	})
}

// notifications returns the notifications of a record.
func (r *replay) notifications(rec *kgo.Record) ([]*record.Notification, error) {
	if s, ok := r.kind.source(r.Source); ok {
		out, err := s.Notifications(r.Codec, rec.Value)
		if errors.Is(err, ErrNoApplication) {
			return nil, nil
		}
		return out, err
	}
	if !r.FromEvents {
		var n record.Notification
		return []*record.Notification{&n}, r.Codec.Decode(rec.Value, &n)
	}
	var e record.Event
	if err := r.Codec.Decode(rec.Value, &e); err != nil {
		return nil, err
	}
	if event := mapping.ToEvent(&e); event.Type == checkout.EventCompleted {
		return mapping.ToConfirmations(event)
	}
	return nil, nil
}

// acceptedBefore returns the ids of those events whose payments an ERP has accepted. The
// daily tables keep deliveries for 60 days only.
func (r *replay) acceptedBefore(ctx context.Context, batch []record.Delivery) (map[string]bool, error) {
	if !r.kind.Confirms {
		return nil, nil
	}
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].EventID
	}
	return collectMap[string, bool](ctx, r.store.pool, "asking which payments are accepted",
		`SELECT transaction_id, true FROM erp_confirmations WHERE transaction_id = ANY($1) AND accepted_at IS NOT NULL`, ids)
}

// readable returns nil for a record that cannot be decoded.
func readable(err error) error {
	if errors.Is(err, schemas.ErrUndecodable) {
		return nil
	}
	return err
}
