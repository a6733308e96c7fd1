package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/schemas/origin"
)

// historyPatience bounds the reading of a topic for the first record that is proven.
const historyPatience = time.Minute

// History returns the rule of who is believed in a topic of one partition (origin.History). topic is without the prefix.
func (c Config) History(topic string, writers origin.Verifier) *origin.History {
	return origin.NewHistory(writers, func(from, to int64) (int64, bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), historyPatience)
		defer cancel()
		return c.FirstProven(ctx, topic, writers, from, to)
	})
}

// FirstProven returns the first record of a topic's first partition, from from up to but not including to, that writers
// prove (origin.Signer.SignKeyed).
func (c Config) FirstProven(ctx context.Context, topic string, writers origin.Verifier, from, to int64) (offset int64, found bool, err error) {
	err = c.Read(ctx, c.Prefix+topic, map[int32]Span{0: {From: from, To: to}}, nil, func(r *kgo.Record) (bool, error) {
		if _, err := writers.VerifyKeyed(r); err == nil {
			offset, found = r.Offset, true
		}
		return !found, nil
	})
	return offset, found, err
}
