package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"quittance/schemas"
	"quittance/schemas/record"
)

// keySample is the most events of a partition that CheckKeys reads.
const keySample = 100

// CheckKeys returns an error if an earlier release wrote the topics with another key.
// Commands, state and events are keyed by tenant_id. The first release keyed them by
// application_id, so an agency's state is in other partitions there. CheckKeys reads the
// events, because they are kept for ever and contain both ids. One event of an agency is
// enough: this check prevents that a topic has records with both keys.
//
// The error wraps ErrTopics and says what to do.
func CheckKeys(ctx context.Context, c Config, t *Topology, codec *schemas.Codec) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	topic := t.Name(schemas.TopicEvents)
	spans, err := Bounds(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return err
	}
	for p, s := range spans {
		spans[p] = Span{From: s.From, To: min(s.To, s.From+keySample)}
	}
	errKeyed := errors.New("keyed by agency")
	err = c.Read(ctx, topic, spans, nil, func(r *kgo.Record) (more bool, err error) {
		var e record.Event
		if err := codec.Decode(r.Value, &e); err != nil && !errors.Is(err, schemas.ErrUndecodable) {
			return false, fmt.Errorf("checking the keys of %s: %w", topic, err)
		}
		switch {
		case e.Session == nil: // an orphaned report, whose agency is unknown
			return true, nil
		case string(r.Key) == e.Session.TenantID:
			return false, errKeyed
		}
		return false, fmt.Errorf("%w: an earlier release wrote the records of %s with the key application_id (partition %d, offset %d); this release uses the key tenant_id, and the records cannot be converted. "+
			"Let the earlier release finish (no open session, no undecided collection, no waiting delivery) and stop all its roles. Then run `quittance migrate` with another --topic-prefix and start this release with that prefix; this release will not know the earlier sessions and paid orders. In developer mode delete the data folder instead",
			ErrTopics, topic, r.Partition, r.Offset)
	})
	if errors.Is(err, errKeyed) {
		return nil
	}
	return c.denied(err, kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, topic)
}
