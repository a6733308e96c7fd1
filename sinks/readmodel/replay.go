package readmodel

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
)

// replayAtOnce bounds what one transaction of a replay holds.
const replayAtOnce = 1000

// Replayed says what a replay found.
type Replayed struct {
	// Events that were applied again; in a dry run, that would be.
	Events int64
	// Unreadable records cannot be decoded.
	Unreadable int64
}

// Replay applies the events again that were written to a topic from since to
// until, not including, by the broker's clock. A session that stands at a later
// event stays as it is, so that a replay only ever adds what is missing. topic,
// without the prefix, is checkout.events or this sink's poison topic. Positions
// stay. The sink need not run; progress may be nil.
func (r *ReadModel) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress kafka.Progress) (Replayed, error) {
	var out Replayed
	var events []event
	flush := func() error {
		defer func() { events = events[:0] }()
		if dryRun {
			return nil
		}
		return r.cfg.Store.Apply(ctx, snapshots(events), nil)
	}
	err := r.cfg.Kafka.ReadBetween(ctx, r.cfg.Kafka.Prefix+topic, since, until, progress, func(rec *kgo.Record) error {
		e, err := r.decode(rec)
		switch {
		case errors.Is(err, schemas.ErrUndecodable):
			out.Unreadable++
			return nil
		case err != nil:
			return err
		case e.snapshot == nil:
			return nil
		}
		out.Events++
		if events = append(events, e); len(events) < replayAtOnce {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return out, err
}
