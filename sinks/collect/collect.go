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

	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/secret"
	"quittance/schemas"
)

// Config configures a Sink. The fields up to Metrics are required.
type Config struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec

	// Connectors by offer id.
	Connectors map[string]connector.Connector
	// Account returns the merchant account of an agency, in a mode and for an offer, that a
	// collection names by its fingerprint; the present one where it names none. replaced
	// means that the agency has another account now: the operator is asked about the
	// collection, but not for its money. The sink calls it before each call of an operator.
	Account func(tenantID string, live bool, offerID, fingerprint string) (account connector.Account, replaced, ok bool)
	// Payer opens the sealed number of a payer. An error that wraps personal.ErrErased says
	// that nobody can open it any more.
	Payer func(ctx context.Context, sessionID string, sealed []byte) (string, error)
	// HonoursLate reports whether the agency's policy honours late payments. Nil means
	// that no agency does.
	HonoursLate func(tenantID string) bool
	// Signer signs callback addresses.
	Signer secret.Signer
	// Commands signs the commands that say what operators answered.
	Commands commands.Signer
	// PublicURL is the address under which operators call back.
	PublicURL string
	// Sealer seals the redirects in operators' answers.
	Sealer connector.Sealer
	// CheckoutURL is the address of the checkout pages. An operator's own page sends
	// citizens back there.
	CheckoutURL string

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Backlog is the largest number of records in hand; 16,384 when zero.
	Backlog int
	// DrainTimeout bounds the wait for calls under way at shutdown; 8 s when zero.
	DrainTimeout time.Duration
}

func (c *Config) validate() error {
	c.Backlog = cmp.Or(c.Backlog, 16384)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 8*time.Second)
	if c.Topology == nil || c.Codec == nil || c.Account == nil || c.Payer == nil || c.Signer == nil || c.Commands == nil || c.Sealer == nil || c.Now == nil || c.Log == nil {
		return errors.New("collect: Topology, Codec, Account, Payer, Signer, Commands, Sealer, Now and Log are required")
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

// Group is the consumer group of the sink.
const Group = "sinks.collect"

// Sink processes collections.requests. Make it with New and call Run once.
type Sink struct {
	cfg      Config
	consumer *consume.Consumer
	produce  func(ctx context.Context, records ...*kgo.Record) error // the consumer's
	first    func(*kgo.Record) bool                                  // the consumer's
	requests *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	unknown  *prometheus.CounterVec // accounts
	untold   prometheus.Counter     // calls
	slots    slots
	newest   newest
	// complain limits the log lines of an operator's outage.
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
			Name: "quittance_collect_requests_total", Help: "Collection requests processed, by outcome.",
		}, []string{"operator", "kind", "outcome"}),
		unknown: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_collect_unknown_accounts_total", Help: "Collection requests whose merchant account is neither configured nor among the replaced ones.",
		}, []string{"operator", "kind"}),
		untold: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_collect_untold_calls_total", Help: "Calls to operators that could not be written for the journal. They were made.",
		}),
		calls: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quittance_collect_call_seconds", Help: "Duration of calls to operators, including the wait for a slot.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40},
		}, []string{"operator", "call", "outcome"}),
	}
	for _, c := range cfg.Connectors {
		for _, call := range []string{kindCollect, kindEnquire} {
			s.unknown.WithLabelValues(c.Operator(), call)
			for _, fault := range []connector.FaultKind{
				connector.FaultNetwork, connector.FaultTimeout, connector.FaultServer, connector.FaultBusy, connector.FaultCredentials, connector.FaultMalformed,
			} {
				s.calls.WithLabelValues(c.Operator(), call, string(fault))
			}
		}
	}
	var err error
	s.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: Group, Topics: []string{schemas.TopicCollections}, Poison: schemas.TopicPoisonCollections,
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
	s.produce, s.first = s.consumer.Produce, s.consumer.First
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_collect_in_hand", Help: "Collection requests read and not done.",
	}, func() float64 { return float64(s.consumer.InHand()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_collect_oldest_request_seconds", Help: "Age of the oldest collection request that is read and not done. 0 when there is none.",
	}, s.consumer.Lag)
	return s, nil
}

// Run works until ctx ends, then waits for the calls under way, at most for
// DrainTimeout, commits, leaves the group and returns nil. Waiting records are left to
// the next member. It returns an error only when it could not begin.
func (s *Sink) Run(ctx context.Context) error {
	return consume.Each(ctx, s.consumer, s.decode, func(ctx, calls context.Context, j *job) bool {
		j.waiting, j.calls = ctx, calls
		return j.do()
	})
}
