// Package readmodel applies checkout.events to the read model of sessions in Postgres
// (internal/sessions).
//
// One transaction writes the rows of a batch and the positions of its partitions.
package readmodel

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/sessions"
	"quittance/schemas"
)

// Config configures a ReadModel. All fields except Metrics are required.
type Config struct {
	Kafka   kafka.Config
	Codec   *schemas.Codec
	Store   *sessions.Store
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Group is the consumer group of the sink.
const Group = "readmodel"

// ReadModel is the sink. Run it once.
type ReadModel struct {
	cfg      Config
	consumer *consume.Consumer
	applied  prometheus.Counter
	types    *prometheus.CounterVec
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*ReadModel, error) {
	if cfg.Codec == nil || cfg.Store == nil {
		return nil, errors.New("read model: Codec and Store are required")
	}
	with := promauto.With(cfg.Metrics)
	events := with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_readmodel_events_total", Help: "Events read, by outcome: applied or poison.",
	}, []string{"outcome"})
	r := &ReadModel{
		cfg: cfg, applied: events.WithLabelValues("applied"),
		types: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_checkout_events_total", Help: "Events by type and mode (test, live; none for an event of no session), counted when the read model has them. A rebuild counts them again.",
		}, []string{"event", "mode"}),
	}
	for _, t := range checkout.EventTypes() {
		r.types.WithLabelValues(string(t), modeTest)
		r.types.WithLabelValues(string(t), modeLive)
	}
	r.types.WithLabelValues(string(checkout.EventCollectionOrphaned), modeNone)
	var err error
	r.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: Group, Topics: []string{schemas.TopicEvents}, Poison: schemas.TopicPoisonReadmodel,
		// Reads wait for the high watermark, which counts control records.
		Positions: cfg.Store.Positions, Control: true,
		Log: cfg.Log, Poisoned: events.WithLabelValues("poison"),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_readmodel_failures_total", Help: "Batches that could not be applied and were read again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_readmodel_lag_seconds", Help: "Age of the oldest event read that is not in the read model yet; 0 when there is none.",
	}, r.consumer.Lag)
	return r, nil
}

// Values of the mode label.
const (
	modeTest = "test"
	modeLive = "live"
	modeNone = "none"
)

// Run applies events until ctx ends, then returns nil. It first finishes a batch under
// way. While Kafka or Postgres is unavailable it waits. It returns an error only when it
// could not begin.
func (r *ReadModel) Run(ctx context.Context) error {
	return consume.Batch(ctx, r.consumer, r.decode, r.apply)
}

// event is the content of a record.
type event struct {
	kind     checkout.EventType
	snapshot *sessions.Snapshot // nil for an event of no session
}

func (r *ReadModel) decode(rec *kgo.Record) (event, error) {
	kind, snapshot, err := sessions.Read(r.cfg.Codec, rec.Value)
	return event{kind, snapshot}, err
}

// apply writes the snapshots of events and moves the positions.
func (r *ReadModel) apply(ctx context.Context, events []event, moves []consume.Move) error {
	if err := r.cfg.Store.Apply(ctx, snapshots(events), moves); err != nil {
		return err
	}
	for _, e := range events {
		mode := modeNone
		if e.snapshot != nil {
			r.applied.Inc()
			if mode = modeTest; e.snapshot.Live {
				mode = modeLive
			}
		}
		r.types.WithLabelValues(string(e.kind), mode).Inc()
	}
	return nil
}

func snapshots(events []event) []sessions.Snapshot {
	out := make([]sessions.Snapshot, 0, len(events))
	for _, e := range events {
		if e.snapshot != nil {
			out = append(out, *e.snapshot)
		}
	}
	return out
}
