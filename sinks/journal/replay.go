package journal

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
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
func (j *Journal) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress func(done, total int64)) (Replayed, error) {
	cl, err := j.cfg.Kafka.Client()
	if err != nil {
		return Replayed{}, err
	}
	defer cl.Close()
	name := j.cfg.Kafka.Prefix + topic
	spans, err := kafka.Between(ctx, kadm.NewClient(cl), name, since, until)
	if err != nil {
		return Replayed{}, err
	}
	var out Replayed
	var entries []journal.Entry
	flush := func() error {
		defer func() { entries = entries[:0] }()
		if dryRun {
			return nil
		}
		return j.tryInsert(ctx, entries)
	}
	total, done := kafka.Length(spans), int64(0)
	err = j.cfg.Kafka.Read(ctx, name, spans, func(r *kgo.Record) (bool, error) {
		if done++; done%1000 == 0 && progress != nil {
			progress(done, total)
		}
		if name == j.poison {
			r.Topic = origin(r)
		}
		entry, err := j.decode(ctx, r)
		switch {
		case errors.Is(err, schemas.ErrUndecodable), errors.Is(err, journal.ErrInvalidEntry):
			out.Unreadable++
			return true, nil
		case err != nil:
			return false, err
		}
		out.Entries++
		if entries = append(entries, entry); len(entries) < j.cfg.BatchSize {
			return true, nil
		}
		return true, flush()
	})
	if err == nil {
		err = flush()
	}
	return out, err
}

// origin is the topic that a poison record stood on.
func origin(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "topic" {
			return string(h.Value)
		}
	}
	return ""
}
