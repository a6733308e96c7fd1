package sessions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/schemas/record"
)

// SealedSessions are the open sessions whose client_secret, or whose redirect to an
// acquirer's page, was sealed with one master key.
type SealedSessions struct {
	Open int
	// Until is when the last of them expires.
	Until time.Time
}

// Sealed reads checkout.state and counts the open sessions by the id of the master key that
// their values need. Values in the state of ended sessions are not opened any more.
func Sealed(ctx context.Context, cfg kafka.Config, topology *kafka.Topology, codec *schemas.Codec) (map[string]SealedSessions, error) {
	type need struct {
		keys  []string
		until time.Time
	}
	needs := map[string]need{} // by session; the last record of a session counts
	_, err := cfg.ReadAll(ctx, topology.Name(schemas.TopicState), func(r *kgo.Record) error {
		id, ok := strings.CutPrefix(string(r.Key), "s\x00") // processors/checkout: the key of a session
		if !ok {
			return nil
		}
		delete(needs, id)
		if len(r.Value) == 0 {
			return nil
		}
		var s record.Session
		if err := codec.Decode(r.Value, &s); err != nil {
			return fmt.Errorf("partition %d, offset %d: %w", r.Partition, r.Offset, err)
		}
		if s.Status != string(checkout.StatusOpen) {
			return nil
		}
		values := [][]byte{s.ClientSecretSealed}
		if s.Collection != nil {
			values = append(values, s.Collection.RedirectSealed)
		}
		n := need{until: s.ExpiresAt}
		for _, v := range values {
			if key, ok := secret.SealedWith(v); ok {
				n.keys = append(n.keys, key)
			}
		}
		needs[id] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sealed values of sessions: %w", err)
	}
	out := map[string]SealedSessions{}
	for _, n := range needs {
		counted := map[string]bool{}
		for _, key := range n.keys {
			if counted[key] {
				continue
			}
			counted[key] = true
			of := out[key]
			of.Open++
			if of.Until.Before(n.until) {
				of.Until = n.until
			}
			out[key] = of
		}
	}
	return out, nil
}
