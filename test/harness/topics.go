package harness

import (
	"context"

	"quittance/dev/bench/topics"
)

// OpenTopics connects to the broker and to the schema registry of a stack.
func OpenTopics(ctx context.Context, s *Stack) (*topics.Topics, error) {
	return topics.Open(ctx, s.Kafka.Addr(), Prefix, s.schemas)
}
