package collect

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"quittance/internal/connector"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
)

// Config of a Sink. Zero values of the numbers mean the defaults that their
// comments name.
type Config struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec

	// Connectors by offer id.
	Connectors map[string]connector.Connector
	// Account is an agency's merchant account for an offer, of test or live mode;
	// false when there is none (any more). It is asked at every call.
	Account func(tenantID string, live bool, offerID string) (connector.Account, bool)
	// Signer signs callback addresses.
	Signer connector.Signer
	// PublicURL is where operators reach the service: callbacks go below it.
	PublicURL string
	// Sealer seals the redirects that operators answer with.
	Sealer connector.Sealer
	// CheckoutURL is where citizens reach the checkout pages: an operator's own
	// page sends them back there.
	CheckoutURL string

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Backlog is how many records are in hand; beyond it none are fetched; 16,384.
	Backlog int
	// DrainTimeout bounds how long calls under way are waited for at the end; 8 s.
	DrainTimeout time.Duration
}

func (c *Config) validate() error {
	c.Backlog = cmp.Or(c.Backlog, 16384)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 8*time.Second)
	if c.Topology == nil || c.Codec == nil || c.Account == nil || c.Signer == nil || c.Sealer == nil || c.Now == nil || c.Log == nil {
		return errors.New("collect: Topology, Codec, Account, Signer, Sealer, Now and Log are required")
	}
	if len(c.Connectors) == 0 {
		return errors.New("collect: no connectors")
	}
	for _, address := range []string{c.PublicURL, c.CheckoutURL} {
		if u, err := url.Parse(address); err != nil || !u.IsAbs() || u.Host == "" {
			return errors.New("collect: PublicURL and CheckoutURL must be absolute URLs")
		}
	}
	if c.Backlog < 0 || c.DrainTimeout < 0 {
		return errors.New("collect: limits must not be negative")
	}
	return nil
}

// Sink works off collections.requests. Make it with New and call Run once.
type Sink struct {
	cfg      Config
	consumer *consume.Consumer
	requests *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	slots    slots
	newest   newest
	// complain keeps an operator's outage from filling the log.
	complain rate.Sometimes
}

// New checks the configuration and makes a Sink. It joins the group
// {prefix}sinks.collect when it runs.
func New(cfg Config) (*Sink, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	with := promauto.With(cfg.Metrics)
	s := &Sink{
		cfg: cfg, slots: slots{by: map[slot]*semaphore.Weighted{}}, newest: newest{byID: map[string]enquiries{}},
		complain: rate.Sometimes{Interval: time.Second},
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_collect_requests_total", Help: "Collection requests worked off, by what came of them.",
		}, []string{"operator", "kind", "outcome"}),
		calls: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quittance_collect_call_seconds", Help: "Calls to operators, the wait for a turn included.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40},
		}, []string{"operator", "call", "outcome"}),
	}
	for _, c := range cfg.Connectors {
		for _, call := range []string{kindCollect, kindEnquire} {
			for _, fault := range []connector.FaultKind{
				connector.FaultNetwork, connector.FaultTimeout, connector.FaultServer, connector.FaultBusy, connector.FaultCredentials, connector.FaultMalformed,
			} {
				s.calls.WithLabelValues(c.Operator(), call, string(fault))
			}
		}
	}
	var err error
	s.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: "sinks.collect", Topics: []string{schemas.TopicCollections}, Poison: schemas.TopicPoisonCollections,
		AtOnce: cfg.Backlog, Drain: cfg.DrainTimeout, Pause: backoffMax, Log: cfg.Log,
		// Commands go to the partition of their session.
		Options: []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())},
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_collect_poison_total", Help: "Records of collections.requests that could not be understood.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_collect_in_hand", Help: "Collection requests read and not done.",
	}, func() float64 { return float64(s.consumer.InHand()) })
	return s, nil
}

// Run works until ctx ends, then finishes the calls under way, DrainTimeout at
// most, commits, and leaves the group. What waits is left to the next member.
// The error is nil after an orderly end.
func (s *Sink) Run(ctx context.Context) error {
	return consume.Each(ctx, s.consumer, s.decode, func(ctx, calls context.Context, j *job) bool {
		j.waiting, j.calls = ctx, calls
		return j.do()
	})
}
