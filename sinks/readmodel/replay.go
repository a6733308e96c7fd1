package readmodel

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/sessions"
)

// Replayed has the numbers of a replay.
type Replayed struct {
	// Events is the number of events that were applied again. A dry run applies none and
	// counts them.
	Events int64
	// Unreadable is the number of records that cannot be decoded.
	Unreadable int64
}

// Replay applies the events of a topic from since to until again (consume.Replay). A
// session that already has a later event stays unchanged, so a replay only adds missing
// events. topic is checkout.events or this sink's poison topic.
func (r *ReadModel) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress kafka.Progress) (out Replayed, err error) {
	out.Events, out.Unreadable, err = consume.Replay(ctx, r.consumer, topic, since, until, dryRun, progress, func(rec *kgo.Record) ([]sessions.Snapshot, error) {
		e, err := r.decode(rec)
		return snapshots([]event{e}), err
	}, func(ctx context.Context, found []sessions.Snapshot) error { return r.cfg.Store.Apply(ctx, found, nil) })
	return out, err
}
