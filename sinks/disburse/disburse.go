package disburse

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement/digest"
	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/exemplar"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/sinks/calls"
)

// Account is a payout account of an agency.
type Account struct {
	connector.Account
	// Operator is the short name of the operator.
	Operator string
	// Replaced means that the agency has another account now. Nobody is paid from this one, and its operator is asked about
	// the attempts that name it.
	Replaced bool
}

// Config configures a Sink. All fields are required.
type Config struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec

	// Connectors by the operator's short name.
	Connectors map[string]connector.PayoutConnector
	// Account returns the payout account of an agency and mode with a code and a fingerprint. Any other account does not
	// have the attempt, and its answer would be wrong. The sink calls it before each call of an operator.
	Account func(tenantID string, live bool, code, fingerprint string) (Account, bool)
	// Open opens the content of a line, by the id under which its data key is stored. An error that wraps personal.ErrErased
	// says that nobody can open it any more.
	Open func(ctx context.Context, batch string, position int, sealed []byte) (salt [32]byte, content digest.Line, err error)
	// Requests has the key of the processor. A request that it has not made is not carried out.
	Requests origin.Verifier
	// Commands signs the commands that say what operators answered.
	Commands commands.Signer

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

func (c *Config) validate() error {
	switch {
	case c.Topology == nil || c.Codec == nil || c.Account == nil || c.Open == nil || len(c.Requests) == 0 || c.Commands == nil || c.Now == nil || c.Log == nil:
		return errors.New("disburse: Topology, Codec, Account, Open, Requests, Commands, Now and Log are required")
	case len(c.Connectors) == 0:
		return errors.New("disburse: no connectors")
	}
	return nil
}

// Group is the consumer group of the sink.
const Group = "sinks.disburse"

// Sink processes disbursements.requests. Make it with New and call Run once.
type Sink struct {
	cfg  Config
	loop *calls.Loop[connector.PayoutOutcome]
	gate gate
}

// New checks the configuration and makes a Sink. It joins the group {prefix}sinks.disburse when it runs.
func New(cfg Config) (*Sink, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	operators := []string{unknownOperator} // a count that begins at 1 is no increase, and would raise no alert
	for _, c := range cfg.Connectors {
		operators = append(operators, c.Operator())
	}
	s := &Sink{cfg: cfg}
	var err error
	s.loop, err = calls.New(calls.Config{
		Name: "disburse", Kafka: cfg.Kafka, Topology: cfg.Topology, Codec: cfg.Codec,
		Group: Group, Requests: schemas.TopicPayouts, Poison: schemas.TopicPoisonPayouts, Calls: schemas.TopicPayoutCalls,
		Moves: kindPay, Operators: operators, Exemplar: exemplar.PayoutRef, Commands: cfg.Commands,
		Now: cfg.Now, Log: cfg.Log, Metrics: cfg.Metrics,
	}, func(r *kgo.Record) (calls.Request[connector.PayoutOutcome], error) { return s.read(r) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Run works until ctx ends, then waits for the calls under way, commits, leaves the group and returns nil. Waiting records
// are left to the next member. It returns an error only when it could not begin.
func (s *Sink) Run(ctx context.Context) error { return s.loop.Run(ctx) }
