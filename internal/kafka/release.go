package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadata43 is the highest metadata.version that Kafka 4.3 supports. Kafka 4.2 supports
// 29, Kafka 4.4 will support 31.
const metadata43 = 30

// Warning returns a reason to run another release of the broker, or an empty string if its
// release has no known fault.
//
// Kafka 4.3.0 and 4.3.1 treat a partition without a leader as deleted (KAFKA-20734). A
// coordinator that ends a transaction at that moment writes no end marker to the
// partition, and the records of a committed transaction are lost. After a kill, the only
// broker of a cluster has partitions without a leader for a moment.
func Warning(ctx context.Context, cl *kgo.Client) (string, error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, cl)
	if err != nil {
		return "", fmt.Errorf("asking for the broker's release: %w", err)
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return "", fmt.Errorf("asking for the broker's release: %w", err)
	}
	return warningOf(resp.SupportedFeatures), nil
}

func warningOf(features []kmsg.ApiVersionsResponseSupportedFeature) string {
	for _, f := range features {
		if f.Name == "metadata.version" && f.MaxVersion == metadata43 {
			return "the broker is Kafka 4.3: its releases 4.3.0 and 4.3.1 can lose records of committed transactions when a partition has no leader for a moment (KAFKA-20734); run 4.2.1, or a release with the fix"
		}
	}
	return ""
}
