package disbursement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// EventType is the type of an event.
type EventType string

// The events. Those of the first group carry the batch after them, the others the lines that changed, too.
const (
	EventOpened    EventType = "batch.opened"
	EventSealed    EventType = "batch.sealed"
	EventApproval  EventType = "batch.approval" // of one person
	EventApproved  EventType = "batch.approved" // by all levels
	EventRejected  EventType = "batch.rejected"
	EventRecalled  EventType = "batch.recalled"
	EventExpired   EventType = "batch.expired"
	EventDiscarded EventType = "batch.discarded"
	EventAsked     EventType = "batch.erp_asked"
	EventReleased  EventType = "batch.released"
	EventHeld      EventType = "batch.held"
	EventResumed   EventType = "batch.resumed"
	EventStopped   EventType = "batch.stopped"
	EventOverdue   EventType = "batch.overdue"
	EventDone      EventType = "batch.done"

	EventLinesAdded    EventType = "lines.added"
	EventLinesSent     EventType = "lines.sent"
	EventLinesResent   EventType = "lines.resent" // the same attempts
	EventLinesEnquired EventType = "lines.enquired"
	EventLinesCancel   EventType = "lines.cancelled"
	EventLinePaid      EventType = "line.paid"
	EventLineRefused   EventType = "line.refused"
	EventLineUnsent    EventType = "line.unsent" // ready again: no money moved
	EventLineReturned  EventType = "line.returned"
	EventLinePart      EventType = "line.partly_returned" // another amount than the line's came back
	EventLineRetried   EventType = "line.retried"
	EventLineProven    EventType = "line.proven" // the refusal is proven
	// EventLineUnproven and EventReturnWithdrawn tell that the statement was withdrawn that had proven the refusal, or told of the
	// return: the refusal proves nothing again, and the line counts as paid, as before.
	EventLineUnproven    EventType = "line.unproven"
	EventReturnWithdrawn EventType = "line.return_withdrawn"
	EventLineCorrected   EventType = "line.corrected"
	EventLineSettled     EventType = "line.settled" // by two people
	EventCaseOpened      EventType = "case.opened"
	EventCaseNoted       EventType = "case.acknowledged"

	// Of an agency: no batch.
	EventPolicy  EventType = "agency.policy"
	EventRoster  EventType = "agency.roster"
	EventRevoked EventType = "agency.revoked"
	EventPaused  EventType = "account.paused"
	EventRefills EventType = "account.open"
	// EventReopened is of a closed account that is tried again, by a person or because another account took its place. It
	// stays paused until it pays.
	EventReopened EventType = "account.reopened"
)

// EventTypes has all event types.
func EventTypes() []EventType {
	return []EventType{
		EventOpened, EventSealed, EventApproval, EventApproved, EventRejected, EventRecalled, EventExpired, EventDiscarded, EventAsked, EventReleased,
		EventHeld, EventResumed, EventStopped, EventOverdue, EventDone, EventLinesAdded, EventLinesSent, EventLinesResent, EventLinesEnquired,
		EventLinesCancel, EventLinePaid, EventLineRefused, EventLineUnsent, EventLineReturned, EventLinePart, EventLineRetried, EventLineProven,
		EventLineUnproven, EventReturnWithdrawn, EventLineCorrected, EventLineSettled, EventCaseOpened, EventCaseNoted, EventPolicy, EventRoster, EventRevoked, EventPaused, EventRefills, EventReopened,
	}
}

// Webhook says which event integrators are told of, by its public name; empty for none.
func (t EventType) Webhook() string {
	switch t {
	case EventDone:
		return "disbursement.completed"
	case EventLineRefused:
		return "disbursement.line_refused"
	case EventLineReturned:
		return "disbursement.line_returned"
	case EventReturnWithdrawn:
		return "disbursement.line_return_withdrawn"
	case EventHeld:
		return "disbursement.held"
	default:
		return ""
	}
}

// Names of the details that an event may carry. None holds personal data of payees.
const (
	DetailBy         = "by"     // person
	DetailReason     = "reason" // of a rejection, a hold, a pause or a case
	DetailCase       = "case_kind"
	DetailWord       = "word"
	DetailSource     = "source"
	DetailAttempt    = "attempt"         // number, of a word that contradicts the line
	DetailLine       = "line"            // position of the line, of an event of one
	DetailReported   = "reported_amount" // minor units
	DetailCurrency   = "reported_currency"
	DetailReference  = "reference" // of evidence
	DetailApprovedBy = "approved_by"
	DetailAccount    = "account"
	DetailClosed     = "closed" // "true" of a pause that a person ends
	DetailPerson     = "person"
	DetailVersion    = "version"
	DetailWas        = "was"     // status of a line before people settled it
	DetailPaidBy     = "paid_by" // attempt that had paid it, and since when it was taken for paid
	DetailPaidAt     = "paid_at"
	DetailUnproven   = "unproven" // set of a line whose refusal was not proven
	DetailProofs     = "proofs"   // attempts whose proof by statements ends, see Proofs
	DetailReturnedAt = "returned_at"
)

// Event is something that happened. It carries what it changed as it is afterwards.
type Event struct {
	ID       string
	Type     EventType
	TenantID string
	Live     bool
	// Batch is the batch after the event, and its Sequence the event's number; nil for events of an agency.
	Batch *Batch
	// Lines are the lines that the event changed. Only EventLinesAdded has their sealed contents: the reader keeps them.
	Lines  []Line
	At     time.Time
	Detail map[string]string
	// Sealing is set by sealing and approvals.
	Sealing *Sealing
	// Agency and Roster are set by their changes.
	Agency *Agency
	Roster *Roster
	// Confirmed is what two people have signed of a change of roster or policy.
	Confirmed []Signed
}

// Webhook says which event integrators are told of, by its public name; empty for none. A line that two people settle as refused
// is one that was refused.
func (e Event) Webhook() string {
	if e.Type == EventLineSettled && len(e.Lines) == 1 && e.Lines[0].Status == LineRefused {
		return EventLineRefused.Webhook()
	}
	return e.Type.Webhook()
}

// EventID returns the id of the event of a batch with a sequence.
func EventID(batch string, sequence int64) string { return eventID(batch, sequence) }

// eventID returns the id of an event, which is the same whenever it is decided again.
func eventID(owner string, sequence int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "disbursement|%s|%d", owner, sequence))
	return hex.EncodeToString(sum[:16])
}
