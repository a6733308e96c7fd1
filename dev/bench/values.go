package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
)

// maxValues is the number of different commands that the echo sends.
const maxValues = 4096

// commands returns up to maxValues commands that the service has written, and their
// average size.
func commands(ctx context.Context, cfg kafka.Config, topology *kafka.Topology) (values [][]byte, size int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	topic := topology.Name(schemas.TopicCommands)
	cl, err := cfg.Client(kgo.ConsumeTopics(topic), kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, 0, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("finding the end of %s: %w", topic, err)
	}
	there := int64(0)
	ends.Each(func(o kadm.ListedOffset) { there += o.Offset })
	want, sum := int(min(there, maxValues)), 0
	if want == 0 {
		return nil, 0, errors.New("the service has written no commands")
	}
	for len(values) < want {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, 0, fmt.Errorf("reading %s: %w", topic, ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if len(values) < want {
				values = append(values, r.Value)
				sum += len(r.Value)
			}
		})
	}
	return values, sum / len(values), nil
}
