package readmodel

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/sessions"
)

// Replayed says what a replay found.
type Replayed struct {
	// Events that were applied again; in a dry run, that would be.
	Events int64
	// Unreadable records cannot be decoded.
	Unreadable int64
}

// Replay applies the events again that were written to a topic from since to until
// (consume.Replay). A session that stands at a later event stays as it is, so that a
// replay only adds what is missing. topic is checkout.events or this sink's poison
// topic.
func (r *ReadModel) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress kafka.Progress) (out Replayed, err error) {
	write := func(ctx context.Context, found []sessions.Snapshot) error { return r.cfg.Store.Apply(ctx, found, nil) }
	if dryRun {
		write = nil
	}
	out.Events, out.Unreadable, err = consume.Replay(ctx, r.consumer, topic, since, until, progress, func(rec *kgo.Record) ([]sessions.Snapshot, error) {
		e, err := r.decode(rec)
		return snapshots([]event{e}), err
	}, write)
	return out, err
}
