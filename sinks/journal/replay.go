package journal

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
)

// Replayed says what a replay found.
type Replayed struct {
	// Entries that were written again; in a dry run, that would be.
	Entries int64
	// Unreadable records cannot be decoded, or make no valid entry.
	Unreadable int64
}

// Replay journals again what was written to a topic from since to until
// (consume.Replay). The same records make the same entries, of which FINAL shows
// one. topic is checkout.events, deliveries.attempts or this sink's poison topic.
func (j *Journal) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress kafka.Progress) (out Replayed, err error) {
	write := j.cfg.Store.Insert
	if dryRun {
		write = nil
	}
	out.Entries, out.Unreadable, err = consume.Replay(ctx, j.consumer, topic, since, until, progress, func(r *kgo.Record) ([]journal.Entry, error) {
		entry, err := j.decode(r)
		return []journal.Entry{entry}, err
	}, write)
	return out, err
}
