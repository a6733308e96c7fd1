// Package schedule is the sink of delivery outcomes. It applies them to Postgres and
// puts due deliveries on their topic again. Package deliveries has the rows and their
// rules.
//
// Outcomes (deliveries.attempts) are believed if the worker of their kind has signed them, because several
// roles may write the topic. They are applied exactly once, because the position of
// each partition is written in the same transaction. Only when the broker has lost data
// are all outcomes of a partition applied again. Then attempts are listed twice, and
// the states of deliveries stay the same.
//
// A short transaction claims due deliveries by a lease. Then they are produced. After
// a crash between the two the lease runs out, and the delivery is claimed again in the
// next round.
package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/internal/deliveries"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
)

const (
	defaultPoll   = 250 * time.Millisecond
	produceWithin = 20 * time.Second // below the lease of a claim, 30 s
	applyWithin   = 30 * time.Second
	leaseEvery    = 5 * time.Second
	gaugesEvery   = 10 * time.Second
	tidyEvery     = 10 * time.Minute
	applyAtOnce   = 2000
)

// Config is what a Schedule needs. Fields without a default are required.
type Config struct {
	Kafka kafka.Config
	Codec *schemas.Codec
	// Deliveries needs the Directory of each kind.
	Deliveries *deliveries.Store
	// Outcomes has the keys of the workers of all kinds. With AcceptUnproven whoever may write the topic can
	// say that a delivery was accepted. New sets what counts.
	Outcomes origin.Outcomes
	// Now is the service's clock. Retries are due by it.
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Poll is the interval between two claims, at most a second; 250 ms when zero.
	Poll time.Duration
}

// Group is the consumer group of the sink.
const Group = "delivery-schedule"

// Schedule is the sink of outcomes. Several processes may run one: they share the
// partitions, and claims exclude each other.
type Schedule struct {
	cfg                               Config
	applied, poison, requeued         prometheus.Counter
	oldest, rows, suspended, refusing *prometheus.GaugeVec
	outstanding, oldestOutstanding    prometheus.Gauge
	// seen is what the gauges have looked at, by stage. Only they use it, one after another.
	seen map[string]seen
}

// New makes a schedule. It connects when it runs.
func New(cfg Config) (*Schedule, error) {
	if cfg.Codec == nil || cfg.Deliveries == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("delivery schedule: Codec, Deliveries, Now, Log and Metrics are required")
	}
	for _, kind := range cfg.Deliveries.Kinds() {
		if kind.Directory == nil || cfg.Outcomes.Workers[string(kind.Kind)] == nil {
			return nil, fmt.Errorf("delivery schedule: kind %s has no Directory or no key in Outcomes", kind.Kind)
		}
	}
	cfg.Poll = min(cmp.Or(cfg.Poll, defaultPoll), time.Second)
	with := promauto.With(cfg.Metrics)
	deliveries.CountOutcomes(with, "quittance_delivery_schedule", &cfg.Outcomes)
	return &Schedule{
		cfg: cfg,
		applied: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_delivery_schedule_applied_total", Help: "Outcomes applied to Postgres.",
		}),
		poison: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_delivery_schedule_poison_total", Help: "Outcomes that cannot be decoded, or that do not prove which worker made them.",
		}),
		requeued: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_delivery_schedule_requeued_total", Help: "Due deliveries put on their topic.",
		}),
		oldest: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_delivery_oldest_undelivered_seconds",
			Help: "Age of the oldest event that is not delivered: never tried (untried), to be tried again (retrying), of a suspended endpoint (held), or for a person to decide (needs_operator). 0 when there is none.",
		}, []string{"kind", "state"}),
		rows: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_delivery_scheduled", Help: "Deliveries in the schedule by state.",
		}, []string{"kind", "state"}),
		refusing: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_delivery_refusing_destinations", Help: "Destinations that refuse our credentials: all their deliveries wait, and one is tried every 15 minutes.",
		}, []string{"kind"}),
		suspended: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quittance_delivery_suspended_destinations", Help: "Destinations to which nothing is sent until they are resumed.",
		}, []string{"kind"}),
		outstanding: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_erp_confirmations_owed", Help: "Completed payments that an ERP is to be told of and has not accepted.",
		}),
		oldestOutstanding: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_erp_confirmations_oldest_owed_seconds", Help: "Since when the oldest of them is completed. 0 when there is none.",
		}),
	}, nil
}

// Run applies outcomes and produces due deliveries until ctx ends, then returns nil.
// While Postgres is unavailable it waits. Afterwards it catches up.
func (s *Schedule) Run(ctx context.Context) error {
	consumer, err := consume.New(consume.Config{
		Kafka: s.cfg.Kafka, Group: Group, Topics: []string{schemas.TopicAttempts}, Poison: schemas.TopicPoisonDeliveries,
		Positions: s.cfg.Deliveries.Positions, AtOnce: applyAtOnce, Timeout: applyWithin, Log: s.cfg.Log, Poisoned: s.poison,
	})
	if err != nil {
		return err
	}
	cl, err := s.cfg.Kafka.Client(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordDeliveryTimeout(produceWithin))
	if err != nil {
		return err
	}
	defer cl.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return consume.Batch(ctx, consumer, s.decode, s.apply) })
	g.Go(func() error { return s.claims(ctx, cl) })
	g.Go(func() error {
		return s.every(ctx, leaseEvery, "returning run-out leases", s.now(s.cfg.Deliveries.ReturnLeases))
	})
	g.Go(func() error {
		return s.every(ctx, gaugesEvery, "counting deliveries", func(ctx context.Context) error { return s.gauges(ctx, kadm.NewClient(cl)) })
	})
	g.Go(func() error {
		return s.every(ctx, deliveries.RecoverEvery, "advancing recoveries", s.now(s.recoveries))
	})
	g.Go(func() error { return s.every(ctx, tidyEvery, "tidying deliveries", s.now(s.cfg.Deliveries.Tidy)) })
	return g.Wait()
}

// now passes the service's time to a chore.
func (s *Schedule) now(do func(context.Context, time.Time) error) func(context.Context) error {
	return func(ctx context.Context) error { return do(ctx, s.cfg.Now()) }
}

// recoveries makes the next deliveries of each running recovery due.
func (s *Schedule) recoveries(ctx context.Context, now time.Time) error {
	finished, err := s.cfg.Deliveries.AdvanceRecoveries(ctx, now)
	for _, r := range finished {
		s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "recovery has finished", slog.String("recovery", r.ID), slog.String("kind", string(r.Kind)), slog.String("destination", r.DestinationID))
	}
	return err
}

// every does a chore at intervals of real time. It logs an error, which means that
// Postgres or Kafka is unavailable.
func (s *Schedule) every(ctx context.Context, interval time.Duration, what string, do func(context.Context) error) error {
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a chore of the schedule failed", slog.String("chore", what), slog.Any("error", err))
		}
		if !consume.Sleep(ctx, interval) {
			return nil
		}
	}
}

// decode reads an outcome.
func (s *Schedule) decode(r *kgo.Record) (*record.Attempt, error) {
	var a record.Attempt
	if err := s.cfg.Codec.Decode(r.Value, &a); err != nil {
		return nil, err
	}
	if !deliveries.Outcome(a.Outcome).Known() || a.Delivery.DeliveryID == "" {
		return nil, fmt.Errorf("outcome %q: %w", a.Outcome, schemas.ErrUndecodable)
	}
	if err := s.cfg.Outcomes.Verify(r, &a); err != nil {
		return nil, err
	}
	return &a, nil
}

func (s *Schedule) apply(ctx context.Context, outcomes []*record.Attempt, moves []consume.Move) error {
	if err := s.cfg.Deliveries.Apply(ctx, outcomes, moves); err != nil {
		return err
	}
	s.applied.Add(float64(len(outcomes)))
	return nil
}

// claims claims due deliveries until ctx ends, more often while there are some.
func (s *Schedule) claims(ctx context.Context, cl *kgo.Client) error {
	for {
		n, err := s.claim(ctx, cl)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "putting due deliveries on their topic", slog.Any("error", err))
		}
		wait := s.cfg.Poll
		if n > 0 {
			wait /= 5
		}
		if !consume.Sleep(ctx, wait) {
			return nil
		}
	}
}

// claim leases due deliveries, produces them and marks them as queued. A delivery that
// Kafka does not acknowledge is claimed again when its lease has run out.
func (s *Schedule) claim(ctx context.Context, cl *kgo.Client) (int, error) {
	claimed, err := s.cfg.Deliveries.Claim(ctx, s.cfg.Now())
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	records := make([]*kgo.Record, len(claimed))
	for i := range claimed {
		d := &claimed[i]
		kind, err := s.cfg.Deliveries.Kinds().Of(deliveries.Kind(d.Kind))
		if err != nil {
			return 0, err
		}
		value, err := s.cfg.Codec.Encode(d)
		if err != nil {
			return 0, err
		}
		records[i] = &kgo.Record{Topic: s.cfg.Kafka.Prefix + kind.Deliveries, Key: []byte(d.DestinationID), Value: value}
	}
	if err := cl.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return 0, fmt.Errorf("producing due deliveries: %w", err)
	}
	s.requeued.Add(float64(len(claimed)))
	return len(claimed), s.cfg.Deliveries.MarkQueued(ctx, claimed)
}
