package calls

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"quittance/internal/commands"
	"quittance/internal/connector"
	"quittance/internal/exemplar"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Kind is what a request has the operator do. It is a label of metrics and the kind of the
// records.
type Kind string

// KindEnquire asks about a payment and moves no money. The other kind of a sink is
// Config.Moves.
const KindEnquire Kind = "enquire"

// About is what the loop needs to know of a request.
type About struct {
	// Kind is Config.Moves or KindEnquire. Another one, or an Operator that is empty, is that
	// of a record that could not be understood, which is only counted.
	Kind Kind
	// Operator is the operator's short name.
	Operator string
	// ID is the id by which the operator knows the payment. Repetitions have the same.
	ID string
	// TenantID and Live name the account whose enquiries share slots.
	TenantID string
	Live     bool
	// Enquiry is the number of an enquiry about the payment; later ones have higher numbers.
	Enquiry int32
	// NotAfter is the time after which money must not be asked for, UTC.
	NotAfter time.Time
}

// Request is a record in hand. A is what its operator answers. The loop calls the methods of
// one request one after another.
type Request[A any] interface {
	// About describes the request. The result never changes.
	About() About
	// Old reports whether the request needs neither a call nor a report any more, because the
	// processor has enquired since or will. After a loss of the group's offsets current
	// requests would otherwise wait behind a week of old ones.
	Old() bool
	// Prepare finds what a call of the kind needs, such as the account. It runs before each
	// call. After an error nothing is sent; it is a *connector.Error.
	Prepare(h *Hand, kind Kind) error
	// Ask has the operator move the money, by one call. The error says whether the operator
	// may have acted (connector.Uncertain).
	Ask(ctx context.Context) (A, error)
	// Enquire asks the operator about the payment, by one call.
	Enquire(ctx context.Context) (A, error)
	// Unsendable reports whether an error of Prepare means that no reader of the record can
	// ever send it.
	Unsendable(err error) bool
	// Settles reports whether the answer to an enquiry ends the asking for money, after a
	// call of which nobody knows whether it arrived. Otherwise the request is sent again,
	// with the same id.
	Settles(a A) bool
	// Confirms reports whether the answer to the call that moves money counts only with an
	// enquiry. Then the loop enquires, in a slot of enquiries, and Confirm joins the two.
	Confirms(a A) bool
	// Confirm returns the answer to a call that moves money from it and the enquiry that
	// followed. enquired is nil if the operator has not answered until NotAfter.
	Confirm(a A, enquired *A) A
	// Answered reports what the operator answered to a request for money: to the call itself,
	// or to an enquiry (KindEnquire) that settled it. It returns the outcome for the metrics,
	// as Hand.Reported does.
	Answered(h *Hand, a A, to Kind) string
	// Enquired reports the answer to an enquiry, which was requested or follows a request for
	// money that came too late. It returns like Answered.
	Enquired(h *Hand, a A) string
	// NeverSent reports that the request was surely not sent and that no reader will send it.
	// cause is the last error, nil if there was no try. It returns like Answered.
	NeverSent(h *Hand, cause error) string
	// Status is the name of an answer, a label of metrics.
	Status(a A) string
	// Call returns the record of a call for the journal. outcome is the answer's Status, or
	// the class of the error.
	Call(kind Kind, at time.Time, took time.Duration, outcome string, a A, err error) record.Record
}

// Broker is what the loop writes by: a consume.Consumer.
type Broker interface {
	// Produce writes records to all replicas.
	Produce(ctx context.Context, records ...*kgo.Record) error
	// First reports whether nobody has read the record before this process.
	First(r *kgo.Record) bool
	// SetAside writes the record to the poison topic. It reports false when ctx ended before.
	SetAside(ctx context.Context, r *kgo.Record, cause error) bool
}

// Config configures a Loop. The fields up to Metrics are required.
type Config struct {
	// Name is in the names of the metrics, quittance_NAME_….
	Name     string
	Kafka    kafka.Config
	Topology *kafka.Topology
	Codec    *schemas.Codec
	// Group is the consumer group. Requests is the topic that the loop reads, Poison the one
	// of what cannot be understood, Calls the one of calls for the journal. All are names
	// without the installation's prefix.
	Group, Requests, Poison, Calls string
	// Moves is the kind of the requests that move money.
	Moves Kind
	// Operators are the names of all operators.
	Operators []string
	// Exemplar says what the id of a request is, in the examples of metrics.
	Exemplar exemplar.Label
	// Commands signs the commands that report answers.
	Commands commands.Signer
	Now      func() time.Time
	Log      *slog.Logger
	Metrics  prometheus.Registerer

	// Backlog is the largest number of records in hand; 16,384 when zero.
	Backlog int
	// Drain bounds the wait for calls under way at shutdown; 8 s when zero.
	Drain time.Duration
}

func (c *Config) validate() error {
	c.Backlog = cmp.Or(c.Backlog, 16384)
	c.Drain = cmp.Or(c.Drain, 8*time.Second)
	switch {
	case c.Name == "" || c.Group == "" || c.Requests == "" || c.Poison == "" || c.Calls == "" || c.Moves == "" || c.Exemplar == "":
		return errors.New("calls: Name, Group, Requests, Poison, Calls, Moves and Exemplar are required")
	case c.Topology == nil || c.Codec == nil || c.Commands == nil || c.Now == nil || c.Log == nil:
		return errors.New("calls: Topology, Codec, Commands, Now and Log are required")
	case len(c.Operators) == 0:
		return errors.New("calls: no operators")
	case c.Moves == KindEnquire:
		return errors.New("calls: requests that move money need a kind of their own")
	case c.Backlog < 0 || c.Drain < 0:
		return errors.New("calls: limits must not be negative")
	}
	return nil
}

// Loop processes the requests of one topic. Make it with New and call Run once.
type Loop[A any] struct {
	// Broker is the consumer of Run. A test that calls Do puts another in its place.
	Broker Broker

	cfg      Config
	consumer *consume.Consumer
	decode   func(*kgo.Record) (Request[A], error)
	requests *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	unknown  *prometheus.CounterVec // accounts
	untold   prometheus.Counter     // calls
	slots    slots
	newest   newest
	// complain limits the log lines of an operator's outage.
	complain rate.Sometimes
}

// New checks the configuration and makes a Loop. decode reads a record. Its error wraps
// schemas.ErrUndecodable or consume.ErrRefused if the record can never be understood; then
// the request says as much as is known (About), for the metrics.
func New[A any](cfg Config, decode func(*kgo.Record) (Request[A], error)) (*Loop[A], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	with, name := promauto.With(cfg.Metrics), "quittance_"+cfg.Name+"_"
	l := &Loop[A]{
		cfg: cfg, decode: decode, slots: slots{by: map[slot]*semaphore.Weighted{}}, newest: newest{byID: map[string]enquiries{}},
		complain: rate.Sometimes{Interval: time.Second},
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: name + "requests_total", Help: "Requests of " + cfg.Requests + " processed, by outcome.",
		}, []string{"operator", "kind", "outcome"}),
		unknown: with.NewCounterVec(prometheus.CounterOpts{
			Name: name + "unknown_accounts_total", Help: "Requests of " + cfg.Requests + " whose account is neither configured nor among the replaced ones.",
		}, []string{"operator", "kind"}),
		untold: with.NewCounter(prometheus.CounterOpts{
			Name: name + "untold_calls_total", Help: "Calls to operators that could not be written for the journal. They were made.",
		}),
		calls: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: name + "call_seconds", Help: "Duration of calls to operators, including the wait for a slot.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40},
		}, []string{"operator", "call", "outcome"}),
	}
	for _, operator := range cfg.Operators {
		for _, call := range []Kind{cfg.Moves, KindEnquire} {
			l.unknown.WithLabelValues(operator, string(call))
			for _, fault := range []connector.FaultKind{
				connector.FaultNetwork, connector.FaultTimeout, connector.FaultServer, connector.FaultBusy, connector.FaultCredentials, connector.FaultMalformed,
			} {
				l.calls.WithLabelValues(operator, string(call), string(fault))
			}
		}
	}
	var err error
	l.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: cfg.Group, Topics: []string{cfg.Requests}, Poison: cfg.Poison,
		AtOnce: cfg.Backlog, Drain: cfg.Drain, Pause: BackoffMax, Log: cfg.Log,
		// Commands go to the partition of their key.
		Options: []kgo.Opt{kgo.RecordPartitioner(kgo.ManualPartitioner())},
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: name + "poison_total", Help: "Records of " + cfg.Requests + " that could not be understood.",
		}),
	})
	if err != nil {
		return nil, err
	}
	l.Broker = l.consumer
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name + "in_hand", Help: "Requests of " + cfg.Requests + " read and not done.",
	}, func() float64 { return float64(l.consumer.InHand()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: name + "oldest_request_seconds", Help: "Age of the oldest request of " + cfg.Requests + " that is read and not done. 0 when there is none.",
	}, l.consumer.Lag)
	return l, nil
}

// Run works until ctx ends, then waits for the calls under way, at most for Config.Drain,
// commits, leaves the group and returns nil. Waiting records are left to the next member.
// It returns an error only when it could not begin.
func (l *Loop[A]) Run(ctx context.Context) error {
	type read struct {
		record  *kgo.Record
		request Request[A]
	}
	return consume.Each(ctx, l.consumer, func(r *kgo.Record) (read, error) {
		q, err := l.decode(r)
		if errors.Is(err, schemas.ErrUndecodable) || errors.Is(err, consume.ErrRefused) {
			l.count(q.About(), OutcomePoison)
		}
		return read{r, q}, err
	}, func(ctx, calls context.Context, r read) bool {
		return l.Do(ctx, calls, r.record, r.request)
	})
}

func (l *Loop[A]) count(q About, outcome string) {
	kind, operator := string(q.Kind), cmp.Or(q.Operator, "none")
	if q.Kind != l.cfg.Moves && q.Kind != KindEnquire {
		kind = "none"
	}
	l.requests.WithLabelValues(operator, kind, outcome).Inc()
}
