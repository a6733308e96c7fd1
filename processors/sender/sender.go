// Package sender lets a processor take each command from those alone who may send it (docs/design/rights.md, "Commands and
// bodies").
package sender

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime"
	"quittance/schemas/origin"
)

// Errors of commands.
var (
	// ErrNotAllowed says that the sender of a command may not send it.
	ErrNotAllowed = errors.New("not allowed: the sender may not send this command")
	// ErrNotStamped says that the topic of commands has the times of its senders.
	ErrNotStamped = errors.New("the topic does not have the broker's times: run `quittance migrate`, which sets message.timestamp.type=LogAppendTime")
)

// Reasons of refused commands, a label of metrics.
const (
	reasonUnsigned   = "unsigned"
	reasonForged     = "forged"
	reasonNotAllowed = "not_allowed"
	reasonNotStamped = "not_stamped"
)

// Unknown is the label of a record that names no known sender.
const Unknown = "unknown"

// Config is what a Guard of the actions A needs. All fields but AcceptUnsigned are required.
type Config[A any] struct {
	// Processor is the name of the processor, a label of the metrics.
	Processor string
	// Keys has the keys of all senders.
	Keys origin.Verifier
	// AcceptUnsigned accepts commands that do not say who sent them.
	AcceptUnsigned bool
	// Allowed returns the senders that may send an action; none for an action that nobody sends.
	Allowed func(A) []string
	Metrics prometheus.Registerer
}

// Guard lets pass the commands of those who may send them. It is safe for concurrent use.
type Guard[A any] struct {
	cfg      Config[A]
	refused  *prometheus.CounterVec
	unsigned prometheus.Counter
}

// New returns a guard, or an error that names the sender of which it has no key.
func New[A any](cfg Config[A], senders []string) (*Guard[A], error) {
	for _, s := range senders {
		if cfg.Keys[s] == nil {
			return nil, fmt.Errorf("processor of %s: no key of the sender %s", cfg.Processor, s)
		}
	}
	f := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"processor": cfg.Processor}, cfg.Metrics))
	g := &Guard[A]{
		cfg: cfg,
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_processor_commands_refused_total",
			Help: "Commands sent to the poison topic by the sender that they name and by reason: unsigned, forged, not_allowed, not_stamped. A transaction that is repeated counts again.",
		}, []string{"sender", "reason"}),
		unsigned: f.NewCounter(prometheus.CounterOpts{
			Name: "quittance_processor_commands_unsigned_total",
			Help: "Commands without a proof of their sender that were accepted (--accept-unsigned-commands).",
		}),
	}
	for _, s := range append(slices.Clone(senders), Unknown) {
		for _, reason := range []string{reasonUnsigned, reasonForged, reasonNotAllowed, reasonNotStamped} {
			g.refused.WithLabelValues(s, reason)
		}
	}
	return g, nil
}

// Sent returns who sent the record. It is empty for an unsigned one, if such are accepted. Every error is poison.
func (g *Guard[A]) Sent(rec *kgo.Record) (from string, err error) {
	from, err = g.cfg.Keys.Verify(rec)
	switch {
	case err == nil:
		return from, nil
	case !errors.Is(err, origin.ErrUnsigned):
		return "", g.refuse(from, reasonForged, err)
	case !g.cfg.AcceptUnsigned:
		return "", g.refuse("", reasonUnsigned, err)
	}
	g.unsigned.Inc()
	return "", nil
}

// Allows returns an error if the sender may not send the action. Every error is poison.
func (g *Guard[A]) Allows(from string, do A) error {
	if allowed := g.cfg.Allowed(do); from == "" && len(allowed) > 0 || slices.Contains(allowed, from) {
		return nil
	}
	return g.refuse(from, reasonNotAllowed, fmt.Errorf("%w: %q, %T", ErrNotAllowed, from, do))
}

// TimeOf returns the time at which the broker took the record, in UTC: the time of its command. The sender's own could be
// another day, or ahead of what is in force later. The broker's is the same when the record is read again. The error is poison:
// the topic has the times of its senders.
func (g *Guard[A]) TimeOf(from string, rec *kgo.Record) (time.Time, error) {
	if rec.Attrs.TimestampType() != logAppendTime {
		return time.Time{}, g.refuse(from, reasonNotStamped, ErrNotStamped)
	}
	return rec.Timestamp.UTC(), nil
}

// logAppendTime is the type of times that the broker sets (KIP-32).
const logAppendTime = 1

func (g *Guard[A]) refuse(from, reason string, err error) error {
	if from == "" {
		from = Unknown
	}
	g.refused.WithLabelValues(from, reason).Inc()
	return runtime.Poison(err)
}
