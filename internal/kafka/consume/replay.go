package consume

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
)

// Replay reads the records of a topic again, with times from since up to but not including
// until. topic has no prefix and may be the poison topic. Replay passes the items to write,
// Config.AtOnce in one call; a dry run only counts them. Replay moves no position and joins
// no group, so the consumer need not run. progress may be nil.
func Replay[T any](ctx context.Context, c *Consumer, topic string, since, until time.Time, dryRun bool, progress kafka.Progress, decode func(*kgo.Record) ([]T, error), write func(context.Context, []T) error) (applied, unreadable int64, err error) {
	var items []T
	flush := func() error {
		defer func() { items = items[:0] }()
		if dryRun {
			return nil
		}
		bounded, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		defer cancel()
		return write(bounded, items)
	}
	err = c.cfg.Kafka.ReadBetween(ctx, c.cfg.Kafka.Prefix+topic, since, until, progress, func(r *kgo.Record) error {
		if topic == c.cfg.Poison {
			r.Topic = Origin(r)
		}
		found, err := decode(r)
		switch {
		case poisonous(err):
			unreadable++
			return nil
		case err != nil:
			return err
		}
		applied += int64(len(found))
		if items = append(items, found...); len(items) < c.cfg.AtOnce {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return applied, unreadable, err
}
