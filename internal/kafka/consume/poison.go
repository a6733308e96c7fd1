package consume

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
)

// oldHeaderTopic is the name that schemas.HeaderTopic had in the first release, on the
// poison topics of the journal, the collections and the deliveries.
const oldHeaderTopic = "topic"

// Origin returns the topic of the original record of a poison record, from the headers of
// this or the first release. It returns an empty string if there is no such header.
func Origin(poison *kgo.Record) string {
	if topic := last(poison, schemas.HeaderTopic); topic != "" {
		return topic
	}
	return last(poison, oldHeaderTopic)
}

// last returns the last value of a header; empty if there is none. A record that was poison
// before carries its older headers first.
func last(r *kgo.Record, name string) string {
	for _, h := range slices.Backward(r.Headers) {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// Original returns the original record of a poison record. One of the first release has no
// headers for its position, and keeps that of the poison topic.
func Original(poison *kgo.Record) *kgo.Record {
	r := *poison
	r.Topic = Origin(poison)
	partition, err := strconv.ParseInt(last(poison, schemas.HeaderPartition), 10, 32)
	offset, err2 := strconv.ParseInt(last(poison, schemas.HeaderOffset), 10, 64)
	if err == nil && err2 == nil {
		r.Partition, r.Offset = int32(partition), offset
	}
	return &r
}

// setAside writes a record to the poison topic.
func (c *Consumer) setAside(ctx context.Context, r *kgo.Record, cause error) error {
	c.cfg.Log.LogAttrs(ctx, slog.LevelError, "the record cannot be processed and goes to the poison topic", slog.String("group", c.cfg.Group), slog.String("topic", r.Topic),
		slog.Int("partition", int(r.Partition)), slog.Int64("offset", r.Offset), slog.Any("error", cause))
	topic := c.cfg.Kafka.Prefix + c.cfg.Poison
	bounded, cancel := c.begun(ctx)
	defer cancel()
	if err := c.Produce(bounded, schemas.Poison(topic, r, cause)); err != nil {
		return fmt.Errorf("writing to %s: %w", topic, err)
	}
	c.cfg.Poisoned.Inc()
	return nil
}
