package consume

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a poison record, behind those that it had; key and value are as they
// were.
const (
	HeaderTopic     = "quittance-topic"
	HeaderPartition = "quittance-partition"
	HeaderOffset    = "quittance-offset"
	HeaderError     = "quittance-error"
)

// oldHeaderTopic is what HeaderTopic was called in the first release, on the
// topics of the journal, the collections and the deliveries.
const oldHeaderTopic = "topic"

// maxErrorText bounds the text of the error in a header.
const maxErrorText = 4096

// Poison is the record that stands for r on a poison topic (full name).
func Poison(topic string, r *kgo.Record, cause error) *kgo.Record {
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	text := cause.Error()
	return &kgo.Record{
		Topic: topic, Partition: 0, Key: r.Key, Value: r.Value,
		Headers: append(slices.Clone(r.Headers),
			header(HeaderTopic, r.Topic), header(HeaderPartition, strconv.Itoa(int(r.Partition))),
			header(HeaderOffset, strconv.FormatInt(r.Offset, 10)), header(HeaderError, text[:min(len(text), maxErrorText)])),
	}
}

// Origin is the topic that a poison record stood on, by the headers of this or of
// the first release; empty when neither is there.
func Origin(poison *kgo.Record) string {
	for _, name := range []string{HeaderTopic, oldHeaderTopic} {
		// The last one counts: a record that was poison before carries its older headers.
		for _, h := range slices.Backward(poison.Headers) {
			if h.Key == name {
				return string(h.Value)
			}
		}
	}
	return ""
}

// setAside writes a record to the poison topic.
func (c *Consumer) setAside(ctx context.Context, r *kgo.Record, cause error) error {
	c.cfg.Log.LogAttrs(ctx, slog.LevelError, "record is poison and is set aside", slog.String("group", c.cfg.Group), slog.String("topic", r.Topic),
		slog.Int("partition", int(r.Partition)), slog.Int64("offset", r.Offset), slog.Any("error", cause))
	topic := c.cfg.Kafka.Prefix + c.cfg.Poison
	bounded, cancel := c.begun(ctx)
	defer cancel()
	if err := c.Produce(bounded, Poison(topic, r, cause)); err != nil {
		return fmt.Errorf("writing to %s: %w", topic, err)
	}
	c.cfg.Poisoned.Inc()
	return nil
}
