package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// errAddressee says that a proved body is not for the delivery's destination.
var errAddressee = errors.New("forged: the body is proved, but not for this destination")

// proved returns nil if the processor made the delivery's body for its destination. What it signs and sends,
// a worker reads from a topic that other roles write as well, and the schedule from a table
// (docs/design/rights.md, "Commands and bodies").
func (w *Worker) proved(d *record.Delivery) error {
	if !w.cfg.Kind.Proves() {
		return nil
	}
	err := origin.VerifyBody(w.cfg.Kind.Notifications, d, w.cfg.Bodies)
	if errors.Is(err, origin.ErrUnsigned) && w.cfg.AcceptUnproven {
		w.count.unproven.Inc()
		err = nil
	}
	if err == nil && w.cfg.Kind.Addressed != nil && !w.cfg.Kind.Addressed(d) {
		err = errAddressee
	}
	return err
}

// distrust records that a delivery without a proof was not sent, so that a person decides and the schedule
// does not put it on its topic again. It returns what calls settle at its second call or when the outcome is
// in Kafka, whichever is later.
func (w *Worker) distrust(d *record.Delivery, settle func()) func() {
	w.count.refused.Inc()
	w.cfg.Log.LogAttrs(w.callCtx, slog.LevelError, "a delivery has no proof of its body and is not sent",
		slog.String("delivery_id", d.DeliveryID), slog.String("event_id", d.EventID), slog.String("destination", d.DestinationID))
	var done atomic.Int32
	both := func() {
		if done.Add(1) == 2 {
			settle()
		}
	}
	a := &record.Attempt{Delivery: *d, Outcome: string(deliveries.OutcomeNeedsOperator), At: w.cfg.Now(), Reason: deliveries.ReasonUnproven, OwnAddress: true}
	a.Delivery.Attempt-- // no call was made
	a.Delivery.Body, a.Delivery.Mac = nil, nil
	value, err := w.cfg.Codec.Encode(a)
	if err != nil {
		w.fail(fmt.Errorf("recording the outcome of %s: %w", d.DeliveryID, err))
		return both
	}
	w.produce(context.WithoutCancel(w.callCtx), outcomeRecord(w.cfg.Kafka, w.cfg.Outcomes, a, value), func(_ *kgo.Record, err error) {
		if err != nil {
			w.fail(fmt.Errorf("recording the outcome of %s: %w", d.DeliveryID, err))
			return
		}
		both()
	})
	return both
}

// outcomeRecord returns the record of an outcome, which proves that the worker of its kind made it.
func outcomeRecord(cfg kafka.Config, signer *origin.Signer, a *record.Attempt, value []byte) *kgo.Record {
	r := &kgo.Record{Topic: cfg.Prefix + schemas.TopicAttempts, Key: []byte(a.Delivery.DestinationID), Value: value}
	signer.SignKeyed(r)
	return r
}
