package checkout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/checkout"
	"quittance/processors/runtime"
	"quittance/schemas/origin"
)

// The senders of commands. Each is a client of Kafka that may write checkout.commands and has a key of its
// own (docs/design/rights.md, "Commands and bodies").
const (
	SenderIngress  = "ingress"
	SenderCollect  = "collect"
	SenderERP      = "erp"
	SenderCases    = "cases"
	SenderOperator = "operator"
)

// Senders returns all senders.
func Senders() []string {
	return []string{SenderIngress, SenderCollect, SenderERP, SenderCases, SenderOperator}
}

// sendersOf is the one table of who may send which command. A command that is not in it may be sent by
// nobody. A row is as narrow as the parts that send: whoever takes one sender can do what this table says,
// and no more.
func sendersOf(do checkout.Action) []string {
	switch do := do.(type) {
	case checkout.Create, checkout.Cancel, checkout.Collect, checkout.Enquire,
		checkout.Reserve, checkout.Take, checkout.Release, checkout.Reverse,
		checkout.IssueToken, checkout.ConsumeToken,
		checkout.InitCheckout, checkout.PartnerPay, checkout.LookUp:
		return []string{SenderIngress}
	case checkout.Redirected:
		return []string{SenderCollect}
	case checkout.Outcome:
		switch do.Source {
		case checkout.SourceCallback:
			return []string{SenderIngress}
		case checkout.SourceRequest, checkout.SourceEnquiry:
			return []string{SenderCollect}
		case checkout.SourceCounter, checkout.SourceStaff: // parts of a Take and of a Resolve, never commands
		}
	case checkout.Confirmed:
		return []string{SenderERP}
	case checkout.Resolve, checkout.NoteProposal:
		return []string{SenderCases}
	case checkout.OpenRefundRequest, checkout.Erase:
		return []string{SenderOperator}
	case checkout.Tick: // the processor's own
	}
	return nil
}

// errNotAllowed says that the sender of a command may not send it.
var errNotAllowed = errors.New("not allowed: the sender may not send this command")

// Reasons of refused commands, a label of metrics.
const (
	reasonUnsigned   = "unsigned"
	reasonForged     = "forged"
	reasonNotAllowed = "not_allowed"
)

// guard lets pass the commands of those who may send them. It is safe for concurrent use.
type guard struct {
	senders        origin.Verifier
	acceptUnsigned bool
	refused        *prometheus.CounterVec
	unsigned       prometheus.Counter
}

// unknownSender is the label of a record that names no known sender.
const unknownSender = "unknown"

func newGuard(senders origin.Verifier, acceptUnsigned bool, metrics prometheus.Registerer) *guard {
	f := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"processor": "checkout"}, metrics))
	g := &guard{
		senders: senders, acceptUnsigned: acceptUnsigned,
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_processor_commands_refused_total",
			Help: "Commands sent to the poison topic by the sender that they name and by reason: unsigned, forged, not_allowed. A transaction that is repeated counts again.",
		}, []string{"sender", "reason"}),
		unsigned: f.NewCounter(prometheus.CounterOpts{
			Name: "quittance_processor_commands_unsigned_total",
			Help: "Commands without a proof of their sender that were accepted (--accept-unsigned-commands).",
		}),
	}
	for _, sender := range append(Senders(), unknownSender) {
		for _, reason := range []string{reasonUnsigned, reasonForged, reasonNotAllowed} {
			g.refused.WithLabelValues(sender, reason)
		}
	}
	return g
}

// sent returns who sent the record. It is empty for an unsigned one, if such are accepted. Every error is
// poison.
func (g *guard) sent(rec *kgo.Record) (from string, err error) {
	from, err = g.senders.Verify(rec)
	switch {
	case err == nil:
		return from, nil
	case !errors.Is(err, origin.ErrUnsigned):
		return "", g.refuse(from, reasonForged, err)
	case !g.acceptUnsigned:
		return "", g.refuse("", reasonUnsigned, err)
	}
	g.unsigned.Inc()
	return "", nil
}

// allows returns an error if the sender may not send the command. Every error is poison.
func (g *guard) allows(from string, do checkout.Action) error {
	if allowed := sendersOf(do); from == "" && len(allowed) > 0 || slices.Contains(allowed, from) {
		return nil
	}
	return g.refuse(from, reasonNotAllowed, fmt.Errorf("%w: %q, %T", errNotAllowed, from, do))
}

func (g *guard) refuse(from, reason string, err error) error {
	if from == "" {
		from = unknownSender
	}
	g.refused.WithLabelValues(from, reason).Inc()
	return runtime.Poison(err)
}
