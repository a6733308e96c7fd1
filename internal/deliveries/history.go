package deliveries

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

const (
	// catchUpPatience bounds the wait until the schedule has applied all recorded
	// outcomes. Without the bound, a schedule that is down would stop all deliveries.
	// With it, some deliveries may be sent twice.
	catchUpPatience = 10 * time.Second
	catchUpAsk      = 20 * time.Millisecond
)

// History answers the workers' questions from Postgres. Safe for concurrent use.
type History struct {
	store *Store
	adm   *kadm.Client
	topic string
}

// NewHistory makes a history over the store; client is any client of the same
// broker, which the caller closes.
func NewHistory(cfg kafka.Config, client *kgo.Client, store *Store) *History {
	return &History{store: store, adm: kadm.NewClient(client), topic: cfg.Prefix + schemas.TopicAttempts}
}

// CatchUp waits for at most 10 s until Postgres has all outcomes that Kafka has now.
func (h *History) CatchUp(ctx context.Context) error {
	_, err := h.caughtUp(ctx, catchUpPatience)
	return err
}

// caughtUp waits for a bounded time until Postgres has all outcomes that Kafka has
// now. It reports whether Postgres has them.
func (h *History) caughtUp(ctx context.Context, patience time.Duration) (bool, error) {
	bounds, err := kafka.Bounds(ctx, h.adm, h.topic)
	if err != nil {
		return false, err
	}
	for begun := time.Now(); ; {
		at, err := h.store.Positions(ctx, h.topic)
		if err != nil {
			return false, err
		}
		behind := false
		for p, span := range bounds {
			behind = behind || (span.To > span.From && at[p] < span.To)
		}
		if !behind || time.Since(begun) > patience {
			return !behind, nil
		}
		if !consume.Sleep(ctx, catchUpAsk) {
			return false, ctx.Err()
		}
	}
}

// Settled returns the ids of deliveries that need no sending: they are final, wait in
// the schedule, or are on the topic in a later round. refs must not be empty.
func (h *History) Settled(ctx context.Context, refs []Ref) (map[string]bool, error) {
	var rows [][]any
	for _, r := range refs {
		rows = append(rows, []any{day(r.OccurredAt), r.DeliveryID, r.Round})
	}
	return collectMap[string, bool](ctx, h.store.pool, "asking which deliveries are settled", `
		SELECT d.delivery_id, true FROM unnest($1::date[], $2::text[], $3::int[]) AS r (occurred_on, delivery_id, round)
		JOIN deliveries d ON d.occurred_on = r.occurred_on AND d.delivery_id = r.delivery_id
		WHERE d.state = 'delivered' OR d.round > r.round OR (d.round = r.round AND d.state <> 'queued')`, byColumn(rows)...)
}

// Suspended returns the ids of the suspended destinations of a kind.
func (h *History) Suspended(ctx context.Context, kind Kind) (map[string]bool, error) {
	return collectMap[string, bool](ctx, h.store.pool, "asking for suspended destinations",
		`SELECT destination_id, true FROM delivery_destinations WHERE suspended_at IS NOT NULL AND kind = $1`, kind)
}

// Resumed returns when the destinations of a kind were last resumed; those that never were are missing.
func (h *History) Resumed(ctx context.Context, kind Kind) (map[string]time.Time, error) {
	return collectMap[string, time.Time](ctx, h.store.pool, "asking for resumed destinations",
		`SELECT destination_id, resumed_at FROM delivery_destinations WHERE resumed_at IS NOT NULL AND kind = $1`, kind)
}

// Refusing returns the ids of the destinations of a kind that refuse our credentials.
func (h *History) Refusing(ctx context.Context, kind Kind) (map[string]bool, error) {
	return collectMap[string, bool](ctx, h.store.pool, "asking for destinations that refuse our credentials",
		`SELECT destination_id, true FROM delivery_destinations WHERE refused_since IS NOT NULL AND kind = $1`, kind)
}
