package journal

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// Replayed says what a replay found.
type Replayed struct {
	// Entries that were written again; in a dry run, that would be.
	Entries int64
	// Unreadable records cannot be decoded, or make no valid entry.
	Unreadable int64
}

// Replay journals again what was written to a topic from since to until, not
// including, by the broker's clock: the same records make the same entries, of
// which FINAL shows one. topic, without the prefix, is checkout.events,
// deliveries.attempts or this sink's poison topic. The sink need not run;
// progress may be nil.
func (j *Journal) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress kafka.Progress) (Replayed, error) {
	var out Replayed
	var entries []journal.Entry
	flush := func() error {
		defer func() { entries = entries[:0] }()
		if dryRun {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, cmp.Or(j.cfg.InsertTimeout, defaultInsertTimeout))
		defer cancel()
		return j.cfg.Store.Insert(bounded, entries)
	}
	err := j.cfg.Kafka.ReadBetween(ctx, j.cfg.Kafka.Prefix+topic, since, until, progress, func(r *kgo.Record) error {
		if topic == schemas.TopicPoisonJournal {
			r.Topic = consume.Origin(r)
		}
		entry, err := j.decode(r)
		switch {
		case errors.Is(err, schemas.ErrUndecodable), errors.Is(err, journal.ErrInvalidEntry):
			out.Unreadable++
			return nil
		case err != nil:
			return err
		}
		out.Entries++
		if entries = append(entries, entry); len(entries) < j.cfg.BatchSize {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return out, err
}
