package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadata43 is the newest metadata.version that brokers of Kafka 4.3 support.
// Kafka 4.2 supports 29, Kafka 4.4 will support 31.
const metadata43 = 30

// Warning is the reason why operators should run another release of the broker that
// answers cl; empty when nothing is known against it.
//
// Kafka 4.3.0 and 4.3.1 take a partition that has no leader for a deleted one
// (KAFKA-20734): a coordinator that ends a transaction at that moment writes no end
// marker to it, and the records of a committed transaction are lost. A broker that
// is killed and comes back alone passes through that state.
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
			return "the broker is Kafka 4.3: its releases 4.3.0 and 4.3.1 can lose records of committed transactions when a partition has no leader for a moment (KAFKA-20734); run 4.2.1, or a release that has the mend"
		}
	}
	return ""
}
