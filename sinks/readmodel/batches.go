package readmodel

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/disbursements"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// BatchesConfig configures Batches. All fields are required.
type BatchesConfig struct {
	Kafka   kafka.Config
	Store   *disbursements.Store
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// BatchesGroup is the consumer group of Batches.
const BatchesGroup = "readmodel-disbursement"

// Batches applies disbursement.events to the read model of batches (internal/disbursements). Run it once.
type Batches struct {
	cfg      BatchesConfig
	consumer *consume.Consumer
	types    *prometheus.CounterVec
	cases    *prometheus.GaugeVec
}

// countEvery is the time between two counts of open cases.
const countEvery = 30 * time.Second

// NewBatches makes the sink. It connects when it runs.
func NewBatches(cfg BatchesConfig) (*Batches, error) {
	if cfg.Store == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("read model of batches: Store, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	b := &Batches{
		cfg: cfg,
		types: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_disbursement_events_total", Help: "Events of disbursement batches by type and mode (test, live), counted when the read model has them.",
		}, []string{"event", "mode"}),
		cases: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_disbursement_cases_open", Help: "Lines of batches with an open case, and batches that are held, by kind of the case.",
		}, []string{"kind"}),
	}
	for _, t := range disbursement.EventTypes() {
		b.types.WithLabelValues(string(t), modeTest)
		b.types.WithLabelValues(string(t), modeLive)
	}
	var err error
	b.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: BatchesGroup, Topics: []string{schemas.Disbursement.Events}, Poison: schemas.TopicPoisonBatches,
		Positions: cfg.Store.Positions, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_readmodel_batches_poison_total", Help: "Events of disbursement batches that the read model cannot apply.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_readmodel_batches_failures_total", Help: "Batches of events of disbursement batches that could not be applied and were read again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_readmodel_batches_lag_seconds", Help: "Age of the oldest event of a disbursement batch read that is not in the read model yet; 0 when there is none.",
	}, b.consumer.Lag)
	return b, nil
}

// Run applies events until ctx ends, then returns nil. While Kafka or Postgres is unavailable it waits. It returns an error
// only when it could not begin.
func (b *Batches) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var counting sync.WaitGroup
	counting.Go(func() { b.count(ctx) })
	defer counting.Wait()
	defer cancel()
	return consume.Batch(ctx, b.consumer, func(rec *kgo.Record) (disbursements.Happened, error) {
		return b.cfg.Store.Read(rec.Value, rec.Partition, rec.Offset)
	}, b.apply)
}

// count counts open cases until ctx ends. A count that fails is made again.
func (b *Batches) count(ctx context.Context) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		open, err := b.cfg.Store.OpenCases(ctx)
		if err != nil && ctx.Err() == nil {
			b.cfg.Log.Warn("cases of batches were not counted", slog.Any("error", err))
		}
		for kind, n := range open {
			b.cases.WithLabelValues(kind).Set(float64(n))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *Batches) apply(ctx context.Context, events []disbursements.Happened, moves []consume.Move) error {
	if err := b.cfg.Store.Apply(ctx, events, moves); err != nil {
		return err
	}
	for _, e := range events {
		mode := modeTest
		if e.Event.Live {
			mode = modeLive
		}
		b.types.WithLabelValues(string(e.Event.Type), mode).Inc()
	}
	return nil
}
