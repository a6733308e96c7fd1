package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/sinks/delivery"
)

// catchUpPatience bounds the wait for the schedule to have applied what is
// recorded. Without it a schedule that is down would stop all deliveries; with
// it, some are sent twice.
const catchUpPatience = 10 * time.Second

// History answers workers from Postgres; it implements delivery.History. Safe
// for concurrent use.
type History struct {
	pool  *pgxpool.Pool
	adm   *kadm.Client
	topic string
}

// NewHistory makes a history over the pool; client is any client of the same
// broker, which the caller closes.
func NewHistory(cfg kafka.Config, client *kgo.Client, pool *pgxpool.Pool) *History {
	return &History{pool: pool, adm: kadm.NewClient(client), topic: cfg.Prefix + schemas.TopicAttempts}
}

// CatchUp waits until Postgres has all outcomes that Kafka has now, at most 10 s.
func (h *History) CatchUp(ctx context.Context) error {
	behind, err := h.behind(ctx)
	if err != nil {
		return err
	}
	for begun := time.Now(); ; {
		is, err := behind(ctx)
		if err != nil {
			return err
		}
		if !is || time.Since(begun) > catchUpPatience {
			return nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// behind asks Kafka which outcomes there are now, and returns what says whether
// Postgres has still to apply some of them.
func (h *History) behind(ctx context.Context) (func(context.Context) (bool, error), error) {
	ends, err := h.adm.ListEndOffsets(ctx, h.topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the end of outcomes: %w", err)
	}
	starts, err := h.adm.ListStartOffsets(ctx, h.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the start of outcomes: %w", err)
	}
	return func(ctx context.Context) (bool, error) {
		at, err := positions(ctx, h.pool, h.topic)
		if err != nil {
			return false, err
		}
		behind := false
		ends.Each(func(o kadm.ListedOffset) {
			start, _ := starts.Lookup(o.Topic, o.Partition)
			behind = behind || (o.Offset > start.Offset && at[o.Partition] < o.Offset)
		})
		return behind, nil
	}, nil
}

// Settled are the deliveries that need no sending: those with an end, those that
// wait in the schedule, and those of which a later round is on the topic.
func (h *History) Settled(ctx context.Context, refs []delivery.Ref) (map[string]struct{}, error) {
	on, ids, rounds := make([]time.Time, len(refs)), make([]string, len(refs)), make([]int32, len(refs))
	for i, r := range refs {
		on[i], ids[i], rounds[i] = day(r.OccurredAt), r.DeliveryID, r.Round
	}
	rows, err := h.pool.Query(ctx, `
		SELECT d.delivery_id FROM unnest($1::date[], $2::text[], $3::int[]) AS r (occurred_on, delivery_id, round)
		JOIN deliveries d ON d.occurred_on = r.occurred_on AND d.delivery_id = r.delivery_id
		WHERE d.state = 'delivered' OR d.round > r.round OR (d.round = r.round AND d.state <> 'queued')`, on, ids, rounds)
	if err != nil {
		return nil, fmt.Errorf("asking which deliveries are settled: %w", err)
	}
	return set(rows)
}

// Suspended are the destinations of a kind to which nothing is sent.
func (h *History) Suspended(ctx context.Context, kind delivery.Kind) (map[string]struct{}, error) {
	rows, err := h.pool.Query(ctx, `SELECT destination_id FROM delivery_destinations WHERE suspended_at IS NOT NULL AND kind = $1`, string(kind))
	if err != nil {
		return nil, fmt.Errorf("asking for suspended destinations: %w", err)
	}
	return set(rows)
}

func set(rows pgx.Rows) (map[string]struct{}, error) {
	out := map[string]struct{}{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { out[id] = struct{}{}; return nil }); err != nil {
		return nil, fmt.Errorf("asking Postgres: %w", err)
	}
	return out, nil
}
