package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
)

// PlannerConfig is what a Planner needs. All fields without a default are required.
type PlannerConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// Kind needs its Directory.
	Kind    deliveries.Registration
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Planner turns each notification into one delivery per destination. It reads
// committed records only, writes with an idempotent producer and commits offsets
// some time after the acknowledgement; a repetition gives the same delivery ids.
// What stood on a partition before it was assigned here may have been planned by
// somebody who did not come to commit it: such deliveries are marked, and the
// worker asks whether they are settled before it sends them.
type Planner struct {
	cfg    PlannerConfig
	stage  deliveries.Stage
	target string
	count  *counters

	mu sync.Mutex
	// seen is by partition where the notifications end that somebody else may have
	// planned; missing until that was asked.
	seen map[int32]int64
}

// headerRepeat marks a delivery that may stand on its topic already.
const headerRepeat = "repeat"

// NewPlanner makes a planner. It connects when it runs.
func NewPlanner(cfg PlannerConfig) (*Planner, error) {
	if cfg.Codec == nil || cfg.Kind.Directory == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("delivery planner: Codec, Kind with its Directory, Log and Metrics are required")
	}
	return &Planner{
		cfg: cfg, stage: cfg.Kind.Planning(), target: cfg.Kafka.Prefix + cfg.Kind.Deliveries,
		count: newCounters(cfg.Metrics, cfg.Kind.Kind), seen: map[int32]int64{},
	}, nil
}

// Run plans until ctx ends, then returns nil. What was polled and not yet
// acknowledged is planned again by whoever comes next.
func (p *Planner) Run(ctx context.Context) error {
	cl, err := p.cfg.Kafka.Client(
		kgo.ConsumerGroup(p.cfg.Kafka.Prefix+p.stage.Group), kgo.ConsumeTopics(p.cfg.Kafka.Prefix+p.stage.Topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(),
		// Only what is acknowledged is marked. A commit for each poll would cost the
		// broker more than the deliveries; what is not committed at a crash is planned
		// again, and known again.
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(commitEvery),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second), kgo.FetchMaxWait(500*time.Millisecond),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, partitions := range assigned {
				for _, n := range partitions {
					delete(p.seen, n)
				}
			}
		}),
	)
	if err != nil {
		return err
	}
	defer func() {
		commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPatience)
		defer cancel()
		if err := cl.CommitMarkedOffsets(commit); err != nil {
			p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "committing planned offsets at the end, they are planned again", slog.Any("error", err))
		}
		cl.CloseAllowingRebalance()
	}()
	for {
		fetches := cl.PollRecords(ctx, 1000)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading notifications", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		})
		if err := p.plan(ctx, cl, fetches.Records()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		cl.AllowRebalance()
	}
}

func (p *Planner) plan(ctx context.Context, cl *kgo.Client, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	var out []*kgo.Record
	planned, unaddressed, poison := 0, 0, 0
	repeats := p.repeats(ctx, cl, records)
	for _, r := range records {
		var n record.Notification
		err := decode(ctx, p.cfg.Codec, r.Value, &n)
		if errors.Is(err, schemas.ErrUndecodable) {
			out = append(out, poisoned(p.cfg.Kafka.Prefix, r.Topic, r.Partition, r.Offset, r.Key, r.Value, err))
			poison++
			continue
		}
		if err != nil {
			return err
		}
		ids := p.cfg.Kind.Directory.Destinations(&n)
		if len(ids) == 0 {
			unaddressed++
		}
		for _, id := range ids {
			value, err := p.cfg.Codec.Encode(deliveries.Plan(p.cfg.Kind.Kind, &n, id))
			if err != nil {
				return err
			}
			d := &kgo.Record{Topic: p.target, Key: []byte(id), Value: value}
			if end, known := repeats[r.Partition]; !known || r.Offset < end {
				d.Headers = []kgo.RecordHeader{{Key: headerRepeat}}
			}
			out = append(out, d)
			planned++
		}
	}
	if err := cl.ProduceSync(ctx, out...).FirstErr(); err != nil {
		return fmt.Errorf("producing deliveries: %w", err)
	}
	p.count.planned.Add(float64(planned))
	p.count.unaddressed.Add(float64(unaddressed))
	p.count.poison.Add(float64(poison))
	cl.MarkCommitRecords(records...)
	return nil
}

// repeats says, by partition, up to where notifications may have been planned
// before. The end of a partition now is never below the one at its assignment:
// asking late marks too much, never too little. A partition that is missing may
// hold nothing else. No rebalance comes between: it waits for AllowRebalance.
func (p *Planner) repeats(ctx context.Context, cl *kgo.Client, records []*kgo.Record) map[int32]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(records, func(r *kgo.Record) bool { _, ok := p.seen[r.Partition]; return !ok }) {
		return p.seen
	}
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, p.cfg.Kafka.Prefix+p.stage.Topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "asking where notifications end, all of these may be planned again", slog.Any("error", err))
		return p.seen
	}
	ends.Each(func(o kadm.ListedOffset) {
		if _, ok := p.seen[o.Partition]; !ok {
			p.seen[o.Partition] = o.Offset
		}
	})
	return p.seen
}

// decode tries again while the schema registry cannot be reached.
func decode(ctx context.Context, codec *schemas.Codec, value []byte, into record.Record) error {
	for {
		err := codec.Decode(value, into)
		if err == nil || errors.Is(err, schemas.ErrUndecodable) {
			return err
		}
		if !sleep(ctx, time.Second) {
			return err
		}
	}
}

// sleep waits unless ctx ends first; d is short.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// poisoned is a record that cannot be decoded, as it was, with where it stood
// and why it was refused.
func poisoned(prefix, topic string, partition int32, offset int64, key, value []byte, why error) *kgo.Record {
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	return &kgo.Record{
		Topic: prefix + schemas.TopicPoisonDeliveries, Key: key, Value: value,
		Headers: []kgo.RecordHeader{
			header("topic", topic), header("partition", strconv.Itoa(int(partition))),
			header("offset", strconv.FormatInt(offset, 10)), header("error", why.Error()),
		},
	}
}

// Poisoned is a record for the poison topic of deliveries: key and value as they
// were, with the position and the error as headers.
func Poisoned(prefix string, r *kgo.Record, why error) *kgo.Record {
	return poisoned(prefix, r.Topic, r.Partition, r.Offset, r.Key, r.Value, why)
}
