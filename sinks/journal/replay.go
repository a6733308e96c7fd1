package journal

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
)

// Replayed has the numbers of a replay.
type Replayed struct {
	// Entries is the number of entries that were written again. A dry run writes none
	// and counts them.
	Entries int64
	// Unreadable is the number of records that cannot be decoded or make no valid entry, and of outcomes of
	// deliveries that nothing proves.
	Unreadable int64
}

// Replay writes the entries, receipts and expected money of a topic's records from since to until again
// (consume.Replay). The same records make the same entries, of which FINAL shows one.
// topic is checkout.events, cases.events, deliveries.attempts, collections.calls,
// reconciliation.statements, reconciliation.events or this sink's poison topic.
func (j *Journal) Replay(ctx context.Context, topic string, since, until time.Time, dryRun bool, progress kafka.Progress) (out Replayed, err error) {
	replay := func() error {
		out.Entries, out.Unreadable, err = consume.Replay(ctx, j.consumer, topic, since, until, dryRun, progress, func(r *kgo.Record) ([]rows, error) {
			out, err := j.decoder.Rows(r)
			return []rows{out}, err
		}, j.write)
		return err
	}
	if dryRun {
		return out, replay()
	}
	err = j.cfg.Store.Rewriting(ctx, "replay", replay)
	return out, err
}
