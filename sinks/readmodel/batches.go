package readmodel

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/disbursement"
	"quittance/internal/disbursements"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// BatchesConfig configures Batches. All fields are required but Now.
type BatchesConfig struct {
	Kafka kafka.Config
	Store *disbursements.Store
	// Now is the service's clock; nil: the machine's.
	Now     func() time.Time
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
	paused   *prometheus.GaugeVec // mode
	closed   *prometheus.GaugeVec // mode
}

// lookEvery is the time between two looks at open cases and at the accounts that are paused.
const lookEvery = 30 * time.Second

// NewBatches makes the sink. It connects when it runs.
func NewBatches(cfg BatchesConfig) (*Batches, error) {
	if cfg.Store == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("read model of batches: Store, Log and Metrics are required")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	with := promauto.With(cfg.Metrics)
	b := &Batches{
		cfg: cfg,
		paused: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_disbursement_account_paused_seconds", Help: "How long the payout account pays nothing that is paused longest, of agencies with a batch that pays, by mode (test, live); 0 when there is none. Every instance reports the same.",
		}, []string{"mode"}),
		closed: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_disbursement_accounts_closed", Help: "Payout accounts that try no line because the operator refuses their settings, until a person says so, by mode (test, live). Every instance reports the same.",
		}, []string{"mode"}),
		types: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_disbursement_events_total", Help: "Events of disbursement batches by type and mode (test, live), counted when the read model has them.",
		}, []string{"event", "mode"}),
		cases: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_disbursement_cases_open", Help: "Lines of batches with an open case, and batches that are held, by kind of the case and mode (test, live). Every instance reports the same.",
		}, []string{"kind", "mode"}),
	}
	for _, mode := range []string{modeTest, modeLive} {
		b.paused.WithLabelValues(mode)
		b.closed.WithLabelValues(mode)
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
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { b.watch(ctx); return nil })
	group.Go(func() error {
		return consume.Batch(ctx, b.consumer, func(rec *kgo.Record) (disbursements.Happened, error) {
			return b.cfg.Store.Read(rec.Value, rec.Partition, rec.Offset)
		}, b.apply)
	})
	return group.Wait()
}

// watch counts open cases and measures how long accounts have been paused, until ctx ends. While Postgres is away the last values stay.
func (b *Batches) watch(ctx context.Context) {
	for ok := true; ok; ok = consume.Sleep(ctx, lookEvery) {
		b.count(ctx)
		accounts, err := b.cfg.Store.PausedAccounts(ctx, disbursements.Scope{})
		if err != nil {
			if ctx.Err() == nil {
				b.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "it is not known which payout accounts are paused; it is tried again", slog.Any("error", err))
			}
			continue
		}
		age, closed := map[bool]float64{}, map[bool]int{}
		for _, a := range accounts {
			if a.Waits {
				age[a.Live] = max(age[a.Live], b.cfg.Now().Sub(a.Since).Seconds())
			}
			if a.Closed {
				closed[a.Live]++
			}
		}
		for _, live := range []bool{false, true} {
			b.paused.WithLabelValues(disbursement.Mode(live)).Set(age[live])
			b.closed.WithLabelValues(disbursement.Mode(live)).Set(float64(closed[live]))
		}
	}
}

// count counts the open cases. While Postgres is away the last values stay.
func (b *Batches) count(ctx context.Context) {
	open, err := b.cfg.Store.OpenCases(ctx)
	if err != nil && ctx.Err() == nil {
		b.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "cases of batches are not counted; it is tried again", slog.Any("error", err))
	}
	for k, n := range open {
		b.cases.WithLabelValues(k.Kind, disbursement.Mode(k.Live)).Set(float64(n))
	}
}

func (b *Batches) apply(ctx context.Context, events []disbursements.Happened, moves []consume.Move) error {
	if err := b.cfg.Store.Apply(ctx, events, moves); err != nil {
		return err
	}
	for _, e := range events {
		b.types.WithLabelValues(string(e.Event.Type), disbursement.Mode(e.Event.Live)).Inc()
	}
	return nil
}
