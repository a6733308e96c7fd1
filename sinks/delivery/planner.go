package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

// PlannerConfig is what a Planner needs. All fields without a default are required.
type PlannerConfig struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// Kind needs its Directory.
	Kind deliveries.Registration
	// Bodies proves the bodies of the kind's Sources. It is required if there are any.
	Bodies origin.MACs
	// Outcomes signs the outcomes that notifications ask for, with the name of the kind.
	Outcomes *origin.Signer
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Planner turns each notification, and each event of the kind's sources, into one delivery per destination. It commits
// offsets some time after the acknowledgement of the deliveries. A notification that is
// planned again gives the same delivery ids. A previous planner may have planned the
// records that were on a partition before its assignment, without committing them. The
// planner marks their deliveries, and the worker asks whether they are settled before
// it sends them.
type Planner struct {
	cfg    PlannerConfig
	target string
	// sources are the kind's, by the full names of their topics.
	sources  map[string]deliveries.Source
	consumer *consume.Consumer
	count    *counters

	mu sync.Mutex
	// seen is, by partition, the end of the notifications that another planner may have
	// planned. It lacks partitions whose end is not known yet.
	seen map[partition]int64
}

// partition is one of a topic, by its full name.
type partition struct {
	topic string
	id    int32
}

// headerRepeat marks a delivery that may already be on its topic.
const headerRepeat = "repeat"

// NewPlanner makes a planner. It connects when it runs.
func NewPlanner(cfg PlannerConfig) (*Planner, error) {
	if cfg.Codec == nil || cfg.Kind.Directory == nil || cfg.Outcomes == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("delivery planner: Codec, Kind with its Directory, Outcomes, Log and Metrics are required")
	}
	if len(cfg.Kind.Sources) > 0 && cfg.Bodies == nil {
		return nil, fmt.Errorf("delivery planner: Bodies is required for %s, which has sources", cfg.Kind.Kind)
	}
	p := &Planner{
		cfg: cfg, target: cfg.Kafka.Prefix + cfg.Kind.Deliveries, sources: map[string]deliveries.Source{},
		count: newCounters(cfg.Metrics, cfg.Kind.Kind), seen: map[partition]int64{},
	}
	for _, s := range cfg.Kind.Sources {
		p.sources[cfg.Kafka.Prefix+s.Topic] = s
	}
	var err error
	p.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: cfg.Kind.Planning().Group, Topics: cfg.Kind.Planned(), Poison: schemas.TopicPoisonDeliveries,
		Assigned: p.forget, Timeout: planWithin, Log: cfg.Log, Poisoned: p.count.poison,
	})
	return p, err
}

// planWithin bounds the time in which a batch of deliveries is written.
const planWithin = 30 * time.Second

// Run plans until ctx ends, then returns nil. The next planner plans the notifications
// again whose deliveries were not acknowledged.
func (p *Planner) Run(ctx context.Context) error {
	return consume.Batch(ctx, p.consumer, p.decode, p.plan)
}

// notification is what a record asks for, with the record's place.
type notification struct {
	partition  partition
	offset     int64
	deliveries []record.Delivery
	// requested are outcomes without a call.
	requested []*record.Attempt
	// none means that the record is of a source and notifies nobody.
	none bool
}

func (p *Planner) decode(r *kgo.Record) (notification, error) {
	out := notification{partition: partition{r.Topic, r.Partition}, offset: r.Offset}
	if s, ok := p.sources[r.Topic]; ok {
		notifications, err := s.Notifications(p.cfg.Codec, r.Value)
		if errors.Is(err, deliveries.ErrNoApplication) {
			return out, nil // counted as one without a destination
		}
		for _, n := range notifications {
			origin.SignBody(p.cfg.Kind.Notifications, n, p.cfg.Bodies)
			p.address(&out, n)
		}
		out.none = len(notifications) == 0
		return out, err
	}
	if p.cfg.Kind.Plan != nil {
		var err error
		out.deliveries, err = p.cfg.Kind.Plan(p.cfg.Codec, r.Value)
		return out, err
	}
	var n record.Notification
	if err := p.cfg.Codec.Decode(r.Value, &n); err != nil {
		return out, err
	}
	p.address(&out, &n)
	return out, nil
}

// address adds a delivery for each destination of n.
func (p *Planner) address(out *notification, n *record.Notification) {
	for _, id := range p.cfg.Kind.Directory.Destinations(n) {
		d := deliveries.Plan(p.cfg.Kind.Kind, n, id)
		if a := deliveries.Requested(n, d); a != nil {
			out.requested = append(out.requested, a)
		} else {
			out.deliveries = append(out.deliveries, *d)
		}
	}
}

func (p *Planner) plan(ctx context.Context, notifications []notification, moves []consume.Move) error {
	var out []*kgo.Record
	unaddressed := 0
	repeats := p.repeats(ctx, moves)
	for i := range notifications {
		n := &notifications[i]
		if len(n.deliveries)+len(n.requested) == 0 && !n.none {
			unaddressed++
		}
		records, err := p.records(n, repeats)
		if err != nil {
			return err
		}
		out = append(out, records...)
	}
	if err := p.consumer.Produce(ctx, out...); err != nil {
		// Some of them may be on the topic: they are repetitions when planned again.
		for _, m := range moves {
			p.forget(m.Topic, m.Partition)
		}
		return fmt.Errorf("producing deliveries: %w", err)
	}
	p.count.planned.Add(float64(len(out)))
	p.count.unaddressed.Add(float64(unaddressed))
	return nil
}

// records returns the records of a notification: its deliveries, and the outcomes that it
// requests. An outcome may be on its topic twice.
func (p *Planner) records(n *notification, repeats map[partition]int64) (out []*kgo.Record, err error) {
	for _, a := range n.requested {
		value, err := p.cfg.Codec.Encode(a)
		if err != nil {
			return nil, err
		}
		out = append(out, outcomeRecord(p.cfg.Kafka, p.cfg.Outcomes, a, value))
	}
	end, known := repeats[n.partition]
	for i := range n.deliveries {
		d := &n.deliveries[i]
		value, err := p.cfg.Codec.Encode(d)
		if err != nil {
			return nil, err
		}
		r := &kgo.Record{Topic: p.target, Key: []byte(d.DestinationID), Value: value}
		if !known || n.offset < end {
			r.Headers = []kgo.RecordHeader{{Key: headerRepeat}}
		}
		out = append(out, r)
	}
	return out, nil
}

// forget deletes what is known of a partition's end. It will be asked for again.
func (p *Planner) forget(topic string, id int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.seen, partition{topic, id})
}

// repeats returns, by partition, the end of the notifications that may have been
// planned before. Notifications of a missing partition may all have been planned. The
// end of a partition never falls below the end at its assignment, so a late question
// marks too many deliveries, never too few.
func (p *Planner) repeats(ctx context.Context, moves []consume.Move) map[partition]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := map[string]bool{}
	for _, m := range moves {
		if _, ok := p.seen[partition{m.Topic, m.Partition}]; ok || asked[m.Topic] {
			continue
		}
		asked[m.Topic] = true
		ends, err := p.consumer.Ends(ctx, m.Topic)
		if err != nil {
			p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "asking for the ends of notifications; their deliveries of this batch are marked as repetitions", slog.String("topic", m.Topic), slog.Any("error", err))
		}
		for id, end := range ends {
			at := partition{m.Topic, id}
			if _, ok := p.seen[at]; !ok {
				p.seen[at] = end
			}
		}
	}
	return maps.Clone(p.seen)
}
