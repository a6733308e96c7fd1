// Package topics reads what an installation has in Kafka.
package topics

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
)

// Topics reads the topics of an installation, with clients of its own. Safe for
// concurrent use.
type Topics struct {
	Codec  *schemas.Codec
	Admin  *kadm.Client
	client *kgo.Client
	broker string
	prefix string
}

// Open connects to a broker (host:port) and a schema registry (URL). prefix is that of
// the topics.
func Open(ctx context.Context, broker, prefix, schemaRegistry string) (*Topics, error) {
	registry, err := schemas.NewClient(schemaRegistry, nil)
	if err != nil {
		return nil, err
	}
	codec, err := schemas.NewCodec(ctx, registry, false)
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: %w", err)
	}
	return &Topics{Codec: codec, Admin: kadm.NewClient(cl), client: cl, broker: broker, prefix: prefix}, nil
}

// Close closes the clients.
func (t *Topics) Close() { t.client.Close() }

// Ends returns where the partitions of a topic end. The name is without the prefix.
func (t *Topics) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	ends, err := t.Admin.ListEndOffsets(ctx, t.prefix+topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("finding the end of %s%s: %w", t.prefix, topic, err)
	}
	out := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) { out[o.Partition] = o.Offset })
	return out, nil
}

// Reading reads the committed records of a topic from its start. Not for concurrent
// use.
type Reading struct {
	topics *Topics
	topic  string // without the prefix
	client *kgo.Client
	at     map[int32]int64 // next offset
}

// Read begins to read a topic. The name is without the prefix.
func (t *Topics) Read(ctx context.Context, topic string) (*Reading, error) {
	r := &Reading{topics: t, topic: topic, at: map[int32]int64{}}
	name := t.prefix + topic
	starts, err := t.Admin.ListStartOffsets(ctx, name)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("finding the start of %s: %w", name, err)
	}
	from := map[int32]kgo.Offset{}
	starts.Each(func(o kadm.ListedOffset) {
		r.at[o.Partition] = o.Offset
		from[o.Partition] = kgo.NewOffset().At(o.Offset)
	})
	// Transactions end with control records, which the reading needs to know how far
	// it is.
	r.client, err = kgo.NewClient(kgo.SeedBrokers(t.broker), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{name: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: %w", err)
	}
	return r, nil
}

// Close ends the reading.
func (r *Reading) Close() { r.client.Close() }

// Next calls each for every record from where the last Next ended to the end that the
// topic has now.
func (r *Reading) Next(ctx context.Context, each func(*kgo.Record) error) error {
	ends, err := r.topics.Ends(ctx, r.topic)
	if err != nil {
		return err
	}
	behind := func() bool {
		for partition, end := range ends {
			if r.at[partition] < end {
				return true
			}
		}
		return false
	}
	for behind() {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("reading %s: %w", r.topic, ctx.Err())
		}
		// Errors of fetches are temporary, for example while the broker restarts: the
		// client tries again.
		var fault error
		fetches.EachRecord(func(rec *kgo.Record) {
			r.at[rec.Partition] = rec.Offset + 1
			if !rec.Attrs.IsControl() && fault == nil {
				fault = each(rec)
			}
		})
		if fault != nil {
			return fault
		}
	}
	return nil
}
