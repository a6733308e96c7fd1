package kafka

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Span is a range of offsets of one partition, from From up to but not including To.
type Span struct {
	From, To int64
}

// Between returns the spans of a topic's committed records with a time from since up to but
// not including until. The time is that of the record. Expired records are not in the
// spans.
func Between(ctx context.Context, adm *kadm.Client, topic string, since, until time.Time) (map[int32]Span, error) {
	from, err := Offsets(adm.ListOffsetsAfterMilli(ctx, since.UnixMilli(), topic))
	if err != nil {
		return nil, fmt.Errorf("asking %s for its offsets at %s: %w", topic, since.UTC().Format(time.RFC3339), err)
	}
	to, err := Offsets(adm.ListOffsetsAfterMilli(ctx, until.UnixMilli(), topic))
	if err != nil {
		return nil, fmt.Errorf("asking %s for its offsets at %s: %w", topic, until.UTC().Format(time.RFC3339), err)
	}
	// Transactions after the last stable offset may still be aborted.
	stable, err := Offsets(adm.ListCommittedOffsets(ctx, topic))
	if err != nil {
		return nil, fmt.Errorf("asking %s for its end: %w", topic, err)
	}
	spans := map[int32]Span{}
	for p, at := range from {
		if s := (Span{From: at, To: min(to[p], stable[p])}); s.From < s.To {
			spans[p] = s
		}
	}
	return spans, nil
}

// Offsets returns listed offsets by partition.
func Offsets(offsets kadm.ListedOffsets, err error) (map[int32]int64, error) {
	if err == nil {
		err = offsets.Error()
	}
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	offsets.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
	return out, nil
}

// Progress receives the number of records that are done, and the total.
type Progress func(done, total int64)

// ReadBetween reads all records of the spans that Between returns. See Read.
func (c Config) ReadBetween(ctx context.Context, topic string, since, until time.Time, progress Progress, each func(*kgo.Record) error) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	spans, err := Between(ctx, kadm.NewClient(cl), topic, since, until)
	if err != nil {
		return err
	}
	return c.Read(ctx, topic, spans, progress, func(r *kgo.Record) (bool, error) { return true, each(r) })
}

// ReadAll reads all committed records of a topic. It returns the end of each partition up
// to which it has read.
func (c Config) ReadAll(ctx context.Context, topic string, each func(*kgo.Record) error) (ends map[int32]int64, err error) {
	cl, err := c.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	spans, err := Bounds(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return nil, err
	}
	ends = map[int32]int64{}
	for p, s := range spans {
		ends[p] = s.To
	}
	return ends, c.Read(ctx, topic, spans, nil, func(r *kgo.Record) (bool, error) { return true, each(r) })
}

// Unsettled returns the spans of a topic that a group has not processed yet: from its
// committed offset, or from the start of the topic, to the end of the topic.
func Unsettled(ctx context.Context, adm *kadm.Client, topic, group string) (map[int32]Span, error) {
	open, err := unsettled(ctx, adm, group, topic)
	if err != nil {
		return nil, err
	}
	return open[topic], nil
}

// unsettled is Unsettled for several topics, by topic.
func unsettled(ctx context.Context, adm *kadm.Client, group string, topics ...string) (map[string]map[int32]Span, error) {
	committed, err := Committed(ctx, adm, group)
	if err != nil {
		return nil, err
	}
	open, err := bounds(ctx, adm, topics...)
	if err != nil {
		return nil, err
	}
	for topic, spans := range open {
		for p, s := range spans {
			if at, ok := committed.Lookup(topic, p); ok {
				s.From = max(s.From, at.At)
			}
			if spans[p] = s; s.From >= s.To {
				delete(spans, p)
			}
		}
	}
	return open, nil
}

// Bounds returns the span of each partition, from the first to the last stable offset.
func Bounds(ctx context.Context, adm *kadm.Client, topic string) (map[int32]Span, error) {
	of, err := bounds(ctx, adm, topic)
	if err != nil {
		return nil, err
	}
	return of[topic], nil
}

// bounds is Bounds for several topics, by topic.
func bounds(ctx context.Context, adm *kadm.Client, topics ...string) (map[string]map[int32]Span, error) {
	ends, err := adm.ListCommittedOffsets(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the ends of %s: %w", strings.Join(topics, ", "), err)
	}
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the starts of %s: %w", strings.Join(topics, ", "), err)
	}
	of := map[string]map[int32]Span{}
	for _, topic := range topics {
		of[topic] = map[int32]Span{}
	}
	starts.Each(func(start kadm.ListedOffset) {
		end, _ := ends.Lookup(start.Topic, start.Partition)
		of[start.Topic][start.Partition] = Span{From: start.Offset, To: end.Offset}
	})
	return of, nil
}

// Read calls each for the committed records of spans, in order within a partition. If each
// returns more = false, Read skips the rest of that partition. Read joins no group and
// commits no offset. It calls progress, which may be nil, once per 1000 records.
func (c Config) Read(ctx context.Context, topic string, spans map[int32]Span, progress Progress, each func(*kgo.Record) (more bool, err error)) error {
	total, done := int64(0), int64(0)
	for _, s := range spans {
		total += max(0, s.To-s.From)
	}
	offsets := map[int32]kgo.Offset{}
	for p, s := range spans {
		if s.From < s.To {
			offsets[p] = kgo.NewOffset().At(s.From)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	// The last record of a span may be a control record, or the end of an aborted
	// transaction. Control records show that the end is reached.
	cl, err := c.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(offsets) > 0 {
		fetches := cl.PollRecords(ctx, 10_000)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		for i := fetches.RecordIter(); !i.Done(); {
			r := i.Next()
			if _, open := offsets[r.Partition]; !open {
				continue
			}
			more := true
			if !r.Attrs.IsControl() && r.Offset < spans[r.Partition].To {
				if done++; done%1000 == 0 && progress != nil {
					progress(done, total)
				}
				if more, err = each(r); err != nil {
					return err
				}
			}
			if !more || r.Offset+1 >= spans[r.Partition].To {
				delete(offsets, r.Partition)
				cl.PauseFetchPartitions(map[string][]int32{topic: {r.Partition}})
			}
		}
	}
	return nil
}
