package support

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/checkout"
	"quittance/internal/journal"
	"quittance/money"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps, in the order of those that have the same time.
const (
	StepCommand  StepKind = "command"  // somebody asked the processor for a change
	StepEvent    StepKind = "event"    // a change of the session
	StepCall     StepKind = "call"     // an operator was asked
	StepDelivery StepKind = "delivery" // an integrator or an ERP was told
)

var stepOrder = []StepKind{StepCommand, StepEvent, StepCall, StepDelivery}

// NoEffect is the outcome of a command that changed nothing: it was refused, or it was
// carried out before.
const NoEffect = "no effect"

// Step is something that happened to a payment.
type Step struct {
	At   time.Time
	Kind StepKind
	// Name is the type of the command, the event or the call.
	Name string
	// Outcome is the status of the session after an event, the answer to a call or a
	// delivery, or NoEffect.
	Outcome string
	// Took is the duration of a call or a delivery.
	Took time.Duration
	// DestinationID is the endpoint of a delivery, or the agency and mode of an ERP.
	DestinationID string
	// Source is where Kafka has it.
	Source Source
	// Facts are what else is known. None of them is secret, contact data or a full phone
	// number.
	Facts []Fact

	sequence int64
}

// Source is the place of a record in Kafka. It is zero for a call and a delivery, whose places the
// journal does not have, and for an event that an earlier release wrote there.
type Source struct {
	Topic     string // with the installation's prefix
	Partition int32
	Offset    int64
}

// Fact is a name and its value.
type Fact struct{ Name, Value string }

// facts leaves out facts without a value.
func facts(list ...Fact) []Fact {
	return slices.DeleteFunc(list, func(f Fact) bool { return f.Value == "" })
}

// steps puts entries and commands in order. events is the topic of the events. complete says that the
// entries have all events.
func steps(events string, entries []journal.Entry, commands []command, complete bool) []Step {
	var out []Step
	changed := map[int64]bool{} // an event has the time of the command that caused it
	for i := range entries {
		e := &entries[i]
		if e.Type == journal.EntryTypeEvent {
			changed[e.OccurredAt.UnixMilli()] = true
		}
		step := ofEntry(e)
		if e.Type == journal.EntryTypeEvent && (e.SourcePartition > 0 || e.SourceOffset > 0) {
			step.Source = Source{events, e.SourcePartition, e.SourceOffset}
		}
		out = append(out, step)
	}
	for _, c := range commands {
		step := Step{At: c.IssuedAt.UTC(), Kind: StepCommand, Name: c.Type, Facts: ofCommand(c.Command), Source: c.source}
		if complete && !changed[c.IssuedAt.UnixMilli()] {
			step.Outcome = NoEffect
		}
		out = append(out, step)
	}
	slices.SortStableFunc(out, func(a, b Step) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(slices.Index(stepOrder, a.Kind), slices.Index(stepOrder, b.Kind)), cmp.Compare(a.sequence, b.sequence))
	})
	return out
}

func ofEntry(e *journal.Entry) Step {
	step := Step{At: e.OccurredAt.UTC(), Name: e.Event, sequence: e.Sequence}
	switch e.Type {
	case journal.EntryTypeCall:
		step.Kind, step.Outcome, step.Took = StepCall, e.Outcome, time.Duration(e.DurationMS)*time.Millisecond
		step.Facts = facts(
			Fact{"operator", e.Detail["operator"]}, Fact{"enquiry", positive(int64(e.Attempt))}, Fact{"amount", amount(e.TotalAmount, e.Currency)},
			Fact{"operator_ref", e.OperatorRef}, Fact{"reason", e.Reason}, Fact{"failure_code", e.FailureCode}, Fact{"fault", e.Detail["fault"]},
		)
	case journal.EntryTypeDelivery:
		step.Kind, step.Outcome, step.Took, step.DestinationID = StepDelivery, e.Outcome, time.Duration(e.DurationMS)*time.Millisecond, e.EndpointID
		step.Facts = facts(Fact{"kind", e.DestinationKind}, Fact{"attempt", positive(int64(e.Attempt))}, Fact{"http_status", positive(int64(e.HTTPStatus))}, Fact{"reason", e.Reason})
		if e.NextAttemptAt != nil {
			step.Facts = append(step.Facts, Fact{"next_attempt_at", e.NextAttemptAt.UTC().Format(time.RFC3339)})
		}
	default:
		step.Kind, step.Outcome = StepEvent, e.Status
		step.Facts = ofCollection(e)
		for _, name := range slices.Sorted(maps.Keys(e.Detail)) {
			if !slices.ContainsFunc(step.Facts, func(f Fact) bool { return f.Name == name }) {
				step.Facts = append(step.Facts, facts(Fact{name, e.Detail[name]})...)
			}
		}
	}
	return step
}

// ofCollection returns the facts of an event that are those of its collection.
func ofCollection(e *journal.Entry) []Fact {
	switch checkout.EventType(e.Event) {
	case checkout.EventCollectionRequested:
		return facts(Fact{"offer", e.OfferID}, Fact{"amount", amount(e.TotalAmount, e.Currency)}, Fact{"payer", e.PayerMasked}, Fact{"collection_id", e.CollectionID})
	case checkout.EventCompleted, checkout.EventLatePayment:
		return facts(Fact{"offer", e.OfferID}, Fact{"amount", amount(e.TotalAmount, e.Currency)}, Fact{"operator_ref", e.OperatorRef})
	case checkout.EventFailed, checkout.EventCollectionRefused:
		return facts(Fact{"failure_code", e.FailureCode})
	default:
		return nil
	}
}

// ofCommand returns the facts of a command that anybody may read. It names each of them, so
// that a new field stays out until somebody has thought about it.
func ofCommand(c *record.Command) []Fact {
	out := facts(Fact{"by", c.By})
	if q := c.Create; q != nil {
		var faults []string
		for _, f := range q.Faults {
			faults = append(faults, f.Code)
		}
		out = append(out, facts(Fact{"order", q.Session.OrderID}, Fact{"amount", amount(q.Session.Amount, q.Session.Currency)}, Fact{"faults", strings.Join(faults, "; ")})...)
	}
	if q := c.Collect; q != nil {
		out = append(out, facts(Fact{"offer", q.OfferID}, Fact{"total", strconv.FormatInt(q.Total, 10)}, Fact{"payer", q.PayerMasked}, Fact{"collection_id", q.CollectionID})...)
	}
	if q := c.Outcome; q != nil && c.Type == mapping.CommandOutcome {
		out = append(out, facts(Fact{"source", q.Source}, Fact{"status", q.Status}, Fact{"amount", amount(q.Amount, q.Currency)}, Fact{"operator_ref", q.OperatorRef}, Fact{"failure_code", q.FailureCode})...)
	}
	if q := c.Counter; q != nil {
		out = append(out, facts(Fact{"clerk", q.Clerk}, Fact{"desk", q.Desk}, Fact{"total", positive(q.Total)}, Fact{"receipt", q.Receipt}, Fact{"reason", q.Reason})...)
	}
	if q := c.Case; q != nil {
		out = append(out, facts(
			Fact{"case", q.CaseID}, Fact{"step", q.Step}, Fact{"proposal", positive(int64(q.Proposal))}, Fact{"resolution", q.Resolution}, Fact{"reference", q.Reference},
			Fact{"reason", q.Reason}, Fact{"by", q.By}, Fact{"approved_by", q.ApprovedBy},
		)...)
	}
	if q := c.Confirmed; q != nil {
		out = append(out, facts(Fact{"answer", q.Answer}, Fact{"reason", q.Reason})...)
	}
	return out
}

// amount returns an amount with its currency; empty without a currency.
func amount(minor int64, currency string) string {
	if c, ok := money.Lookup(currency); ok {
		return c.Decimal(minor) + " " + currency
	}
	if currency == "" {
		return ""
	}
	return fmt.Sprintf("%d %s", minor, currency)
}

// positive returns a number; empty for zero.
func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
