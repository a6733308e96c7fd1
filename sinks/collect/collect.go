package collect

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/exemplar"
	"quittance/internal/kafka"
	"quittance/internal/secret"
	"quittance/schemas"
	"quittance/sinks/calls"
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

	// Backlog and DrainTimeout are the bounds of the loop (calls.Config); its own when zero.
	Backlog      int
	DrainTimeout time.Duration
}

func (c *Config) validate() error {
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
	return nil
}

// Group is the consumer group of the sink.
const Group = "sinks.collect"

// Sink processes collections.requests. Make it with New and call Run once.
type Sink struct {
	cfg  Config
	loop *calls.Loop[connector.Outcome]
}

// New checks the configuration and makes a Sink. It joins the group
// {prefix}sinks.collect when it runs.
func New(cfg Config) (*Sink, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	operators := make([]string, 0, len(cfg.Connectors))
	for _, c := range cfg.Connectors {
		operators = append(operators, c.Operator())
	}
	s := &Sink{cfg: cfg}
	var err error
	s.loop, err = calls.New(calls.Config{
		Name: "collect", Kafka: cfg.Kafka, Topology: cfg.Topology, Codec: cfg.Codec,
		Group: Group, Requests: schemas.TopicCollections, Poison: schemas.TopicPoisonCollections, Calls: schemas.TopicCalls,
		Moves: kindCollect, Operators: operators, Exemplar: exemplar.CollectionID, Commands: cfg.Commands,
		Now: cfg.Now, Log: cfg.Log, Metrics: cfg.Metrics, Backlog: cfg.Backlog, Drain: cfg.DrainTimeout,
	}, func(r *kgo.Record) (calls.Request[connector.Outcome], error) {
		j := &job{sink: s}
		err := cfg.Codec.Decode(r.Value, &j.request)
		if err == nil {
			err = j.check()
		}
		return j, err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Run works until ctx ends, then waits for the calls under way, at most for
// DrainTimeout, commits, leaves the group and returns nil. Waiting records are left to
// the next member. It returns an error only when it could not begin.
func (s *Sink) Run(ctx context.Context) error { return s.loop.Run(ctx) }
