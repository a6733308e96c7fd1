package harness

import (
	"context"
	"fmt"
	"time"

	"quittance/schemas"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topics reads the topics of a stack, with clients of its own.
type Topics struct {
	Codec *schemas.Codec
	Admin *kadm.Client
	kafka *kgo.Client
	addr  string // of the broker
}

// OpenTopics connects to the broker and to the schema registry of a stack.
func OpenTopics(ctx context.Context, s *Stack) (*Topics, error) {
	registry, err := schemas.NewClient(s.schemas)
	if err != nil {
		return nil, err
	}
	codec, err := schemas.NewCodec(ctx, registry, false)
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.Kafka.Addr()), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	return &Topics{Codec: codec, Admin: kadm.NewClient(cl), kafka: cl, addr: s.Kafka.Addr()}, nil
}

// Close closes the clients.
func (t *Topics) Close() { t.kafka.Close() }

// Reading reads a topic from its start, committed records only, as far as it
// goes; asked again it goes on.
type Reading struct {
	topic  string
	client *kgo.Client
	admin  *kadm.Client
	at     map[int32]int64 // next offset
}

// Read begins to read a topic, whose name is given without the prefix.
func (t *Topics) Read(ctx context.Context, topic string) (*Reading, error) {
	r := &Reading{topic: Prefix + topic, admin: t.Admin, at: map[int32]int64{}}
	starts, err := t.Admin.ListStartOffsets(ctx, r.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the start of %s: %w", r.topic, err)
	}
	from := map[int32]kgo.Offset{}
	starts.Each(func(o kadm.ListedOffset) {
		r.at[o.Partition] = o.Offset
		from[o.Partition] = kgo.NewOffset().At(o.Offset)
	})
	// Control records are kept to see how far the reading has come: the end of a
	// transaction is one.
	r.client, err = kgo.NewClient(kgo.SeedBrokers(t.addr), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	return r, err
}

// Close ends the reading.
func (r *Reading) Close() { r.client.Close() }

// Next calls each for every record up to the topic's present end.
func (r *Reading) Next(ctx context.Context, each func(*kgo.Record) error) error {
	ends, err := r.admin.ListEndOffsets(ctx, r.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("asking for the end of %s: %w", r.topic, err)
	}
	behind := func() bool {
		var found bool
		ends.Each(func(o kadm.ListedOffset) { found = found || r.at[o.Partition] < o.Offset })
		return found
	}
	for behind() {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			return fmt.Errorf("reading %s: %w", r.topic, ctx.Err())
		}
		// Errors are a broker on its way back; the client tries again.
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
