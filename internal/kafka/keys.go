package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas"
	"quittance/schemas/record"
)

// keySample bounds how many events of a partition CheckKeys looks at.
const keySample = 100

// CheckKeys refuses topics whose records were written under the key of an earlier
// release. Commands, state and events are keyed by tenant_id; the first release
// keyed them by application_id, so the same agency has its state in other
// partitions there. The events tell: they are kept for ever, and each carries both
// ids. One event is enough, because this check keeps a second key out of a topic.
//
// The error wraps ErrTopics and names the mend.
func CheckKeys(ctx context.Context, c Config, t *Topology, codec *schemas.Codec) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	topic := t.Name(schemas.TopicEvents)
	adm := kadm.NewClient(cl)
	starts, err := Offsets(adm.ListStartOffsets(ctx, topic))
	if err != nil {
		return fmt.Errorf("asking for the start of %s: %w", topic, err)
	}
	ends, err := Offsets(adm.ListCommittedOffsets(ctx, topic))
	if err != nil {
		return fmt.Errorf("asking for the end of %s: %w", topic, err)
	}
	spans := map[int32]Span{}
	for p, from := range starts {
		spans[p] = Span{From: from, To: min(ends[p], from+keySample)}
	}
	errKeyed := errors.New("keyed by agency")
	err = c.Read(ctx, topic, spans, nil, func(r *kgo.Record) (more bool, err error) {
		var e record.Event
		if err := codec.Decode(r.Value, &e); err != nil && !errors.Is(err, schemas.ErrUndecodable) {
			return false, fmt.Errorf("checking the keys of %s: %w", topic, err)
		}
		switch {
		case e.Session == nil: // an orphaned report, which no agency is known of
			return true, nil
		case string(r.Key) == e.Session.TenantID:
			return false, errKeyed
		}
		return false, fmt.Errorf("%w: an earlier release wrote the records of %s keyed by application_id (partition %d, offset %d); this release keys them by tenant_id and cannot continue in these topics: "+
			"there is no conversion. Let the earlier release finish (no open session, no undecided collection, no waiting delivery), stop all its roles, then run `quittance migrate` with another --topic-prefix and start this release with it; it does not know the earlier sessions and paid orders. In developer mode delete the data folder instead",
			ErrTopics, topic, r.Partition, r.Offset)
	})
	if errors.Is(err, errKeyed) {
		return nil
	}
	return err
}
