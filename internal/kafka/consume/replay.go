package consume

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
)

// Replay reads the records of a topic again, with times from since up to but not including
// until. topic has no prefix and may be the poison topic. Replay passes the items to write,
// Config.AtOnce in one call; a dry run only counts them. Replay moves no position and joins
// no group, so the consumer need not run. progress may be nil.
//
// unreadable counts the records that cannot be decoded or are refused: they are in the
// poison topic.
func Replay[T any](ctx context.Context, c *Consumer, topic string, since, until time.Time, dryRun bool, progress kafka.Progress, decode func(*kgo.Record) ([]T, error), write func(context.Context, []T) error) (applied, unreadable int64, err error) {
	cl, err := c.cfg.Kafka.Client()
	if err != nil {
		return 0, 0, err
	}
	defer cl.Close()
	spans, err := kafka.Between(ctx, kadm.NewClient(cl), c.cfg.Kafka.Prefix+topic, since, until)
	if err != nil {
		return 0, 0, err
	}
	return ReplaySpans(ctx, c, topic, spans, dryRun, progress, decode, write)
}

// ReplaySpans is Replay for ranges of offsets.
func ReplaySpans[T any](ctx context.Context, c *Consumer, topic string, spans map[int32]kafka.Span, dryRun bool, progress kafka.Progress, decode func(*kgo.Record) ([]T, error), write func(context.Context, []T) error) (applied, unreadable int64, err error) {
	var items []T
	flush := func() error {
		defer func() { items = items[:0] }()
		if dryRun || len(items) == 0 {
			return nil
		}
		refused, err := writeAccepted(ctx, c, items, write)
		applied, unreadable = applied-refused, unreadable+refused
		return err
	}
	err = c.cfg.Kafka.Read(ctx, c.cfg.Kafka.Prefix+topic, spans, progress, func(r *kgo.Record) (bool, error) {
		if topic == c.cfg.Poison {
			r = Original(r)
		}
		found, err := decode(r)
		switch {
		case poisonous(err):
			unreadable++
			return true, nil
		case err != nil:
			return false, err
		}
		applied += int64(len(found))
		if items = append(items, found...); len(items) < c.cfg.AtOnce {
			return true, nil
		}
		return true, flush()
	})
	if err == nil {
		err = flush()
	}
	return applied, unreadable, err
}

// writeAccepted writes items. If they are refused, it writes each half separately, and
// skips the items that are refused alone.
func writeAccepted[T any](ctx context.Context, c *Consumer, items []T, write func(context.Context, []T) error) (refused int64, err error) {
	bounded, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	err = write(bounded, items)
	cancel()
	switch {
	case !errors.Is(err, ErrRefused):
		return 0, err
	case len(items) == 1:
		return 1, nil
	}
	half := len(items) / 2
	for _, part := range [][]T{items[:half], items[half:]} {
		n, err := writeAccepted(ctx, c, part, write)
		if refused += n; err != nil {
			return refused, err
		}
	}
	return refused, nil
}
