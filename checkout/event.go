package checkout

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/casework"
	"quittance/money"
)

// EventType is the type of an event.
type EventType string

// The events of a session. Those in Webhook are sent to integrators.
const (
	EventCreated              EventType = "checkout.created"
	EventUpdated              EventType = "checkout.updated" // by a later init-checkout of the deprecated cash-in surface
	EventCompleted            EventType = "checkout.completed"
	EventFailed               EventType = "checkout.failed"
	EventCancelled            EventType = "checkout.cancelled"
	EventExpired              EventType = "checkout.expired"
	EventLatePayment          EventType = "checkout.late_payment"
	EventReversed             EventType = "checkout.reversed"           // nothing of the session is paid any more
	EventPartiallyReversed    EventType = "checkout.partially_reversed" // the money of some of its dues was given back
	EventArchived             EventType = "checkout.archived"           // contact data and secrets are gone
	EventErased               EventType = "checkout.erased"             // contact data was erased on request
	EventTokenIssued          EventType = "checkout.completion_token_issued"
	EventTokenConsumed        EventType = "checkout.completion_token_consumed"
	EventCollectionRequested  EventType = "collection.requested"
	EventCollectionRedirected EventType = "collection.redirected" // to the acquirer's page
	EventCollectionReleased   EventType = "collection.released"   // a clerk's reservation ended without cash
	EventCollectionReversed   EventType = "collection.reversed"   // cash was given back: an operator case
	EventCollectionEnquired   EventType = "collection.enquired"
	EventCollectionRefused    EventType = "collection.refused"    // after the session's end, or of a payment by reference; otherwise the session fails
	EventCollectionMismatched EventType = "collection.mismatched" // an operator case
	EventCollectionOrphaned   EventType = "collection.orphaned"   // an operator case
	EventCollectionUnreadable EventType = "collection.unreadable" // approved, without a readable amount: it is asked again
	EventCollectionReopened   EventType = "collection.reopened"   // approved after a refusal, or staff have the operator asked anew
	// EventCollectionContradicted says that the operator refused a sum whose case is open.
	EventCollectionContradicted EventType = "collection.contradicted"
	// EventCollectionReported takes that back: a statement has the sum again.
	EventCollectionReported EventType = "collection.reported"
	EventCaseOpened         EventType = "case.opened"   // where no other event opens it
	EventCaseProposed       EventType = "case.proposed" // by staff, as are the next two
	EventCaseApproved       EventType = "case.approved"
	EventCaseRejected       EventType = "case.rejected"
	EventCaseLapsed         EventType = "case.lapsed" // a proposal lapsed before anybody approved it
	// EventCaseRefused is an approved proposal that was not carried out, with the code of the refusal. The case stays open.
	EventCaseRefused          EventType = "case.refused"
	EventCaseResolved         EventType = "case.resolved"
	EventConfirmationAwaited  EventType = "confirmation.awaited" // a first call to the ERP failed, and none was expected
	EventConfirmationAccepted EventType = "confirmation.accepted"
	EventConfirmationRefused  EventType = "confirmation.refused"
	EventConfirmationRetried  EventType = "confirmation.retried"  // staff make the ERP be told once more
	EventConfirmationRecorded EventType = "confirmation.recorded" // staff say that the ERP has the payment
)

// EventTypes has all event types.
func EventTypes() []EventType {
	return []EventType{
		EventCreated, EventUpdated, EventCompleted, EventFailed, EventCancelled, EventExpired, EventLatePayment, EventReversed, EventPartiallyReversed, EventArchived, EventErased,
		EventTokenIssued, EventTokenConsumed, EventCollectionRequested, EventCollectionRedirected, EventCollectionEnquired,
		EventCollectionRefused, EventCollectionReleased, EventCollectionReversed, EventCollectionMismatched, EventCollectionOrphaned,
		EventCollectionUnreadable, EventCollectionReopened, EventCollectionContradicted, EventCollectionReported,
		EventCaseOpened, EventCaseProposed, EventCaseApproved, EventCaseRejected, EventCaseLapsed, EventCaseRefused, EventCaseResolved,
		EventConfirmationAwaited, EventConfirmationAccepted, EventConfirmationRefused, EventConfirmationRetried, EventConfirmationRecorded,
	}
}

// Webhook says whether integrators can subscribe to the event (contract, "Events";
// docs/design/decisions.md § 6 for late payments, § 14 for reversals).
func (t EventType) Webhook() bool {
	switch t {
	case EventCompleted, EventFailed, EventCancelled, EventExpired, EventLatePayment, EventReversed, EventPartiallyReversed:
		return true
	case EventCreated, EventUpdated, EventArchived, EventErased, EventTokenIssued, EventTokenConsumed, EventCollectionRequested, EventCollectionRedirected,
		EventCollectionEnquired, EventCollectionRefused, EventCollectionReleased, EventCollectionReversed,
		EventCollectionMismatched, EventCollectionOrphaned, EventCollectionUnreadable, EventCollectionReopened, EventCollectionContradicted, EventCollectionReported,
		EventCaseOpened, EventCaseProposed, EventCaseApproved, EventCaseRejected, EventCaseLapsed, EventCaseRefused, EventCaseResolved,
		EventConfirmationAwaited, EventConfirmationAccepted, EventConfirmationRefused, EventConfirmationRetried, EventConfirmationRecorded:
		return false
	}
	return false
}

// Names of the details that an event may carry.
const (
	DetailBy             = "by"              // who cancelled or erased; the clerk who reserved, took, released or reversed
	DetailReason         = "reason"          // why a report does not fit, or cash was given back
	DetailCollectionID   = "collection_id"   // of an orphaned report, a released reservation or a refused payment by reference
	DetailFailureCode    = "failure_code"    // of a refused payment by reference
	DetailReportedAmount = "reported_amount" // minor units
	DetailReportedCurr   = "reported_currency"
	DetailOperatorRef    = "operator_ref"
	DetailSource         = "source"
	DetailCaseID         = "case_id"
	DetailCaseKind       = "case_kind"
	DetailResolution     = "resolution"
	DetailReference      = "reference"   // of a refund or of evidence
	DetailApprovedBy     = "approved_by" // the second member of staff
	DetailLate           = "late"        // true when a case completed the session
	DetailWasCompleted   = "was_completed"
	DetailOrderPaid      = "order_paid"   // another session of the order is paid
	DetailPerson         = "person_id"    // id of the member of staff who took a step of a decision
	DetailGroup          = "person_group" // id of the person's agency; empty for operations
	DetailSignedAt       = "signed_at"
	DetailDigest         = "content_digest"  // of what is decided on, hexadecimal
	DetailSignature      = "signature"       // of the step, base64
	DetailAlone          = "alone"           // true if the person may decide without another one
	DetailProposal       = "proposal"        // number of a proposal within its case
	DetailAnsweredAt     = "answered_at"     // time of the call to the ERP
	DetailTransactionID  = "transaction_id"  // of the due whose confirmation the event is about
	DetailTransactionIDs = "transaction_ids" // of the dues whose money a partial reversal gave back, with spaces between them
	DetailNumber         = "number"          // of a payment of the deprecated cash-in surface
	DetailPaymentID      = "payment_id"      // of the same

	// Of an orphaned report of no session, and of the events of its case, which have no
	// session to hold them.
	DetailAccount    = "account"     // as Collection.Account
	DetailApprovedAt = "approved_at" // the operator's own date of the approval, RFC 3339
	DetailLive       = "livemode"    // true or false
	DetailOpenedAt   = "opened_at"   // time at which the case was opened, RFC 3339
	DetailEventID    = "event_id"    // event that reported the money
	DetailTenant     = "tenant_id"   // agency of a case of the matcher
)

// Event is something that happened. It is a snapshot: Session is the whole session
// after the event, and that is the contract of the wire event too. A reader stores
// the snapshot with the highest sequence and never folds changes. For an orphaned
// report of no session, and for events of cases without a session (internal/cases), Session
// is the zero Session and Sequence is 0.
type Event struct {
	ID         string // evt_, derived from (session, sequence)
	Type       EventType
	SessionID  string
	Sequence   int64
	OccurredAt time.Time
	Session    Session
	Detail     map[string]string

	// change is what apply needs beyond the type and the time.
	change change
}

// Returned returns the dues whose money the event gave back: some of a partial reversal, and of a
// reversal all whose money was not given back before.
func (e Event) Returned() (out []Item) {
	ids := strings.Fields(e.Detail[DetailTransactionIDs])
	for _, due := range e.Session.Dues() {
		partial := e.Type == EventPartiallyReversed && slices.Contains(ids, due.TransactionID)
		if partial || e.Type == EventReversed && due.ReversedAt.IsZero() {
			out = append(out, due)
		}
	}
	return out
}

// Case returns the case that the event opens or closes. If the case has no session, it is
// made of the event's details.
func (e Event) Case() Case {
	d := e.Detail
	if c, ok := e.Session.Case(d[DetailCaseID]); ok {
		return c
	}
	amount, _ := strconv.ParseInt(d[DetailReportedAmount], 10, 64) // our own text
	approved, _ := time.Parse(time.RFC3339, d[DetailApprovedAt])   // our own text; zero if absent
	c := Case{
		Case: casework.Case{
			ID: d[DetailCaseID], Kind: casework.Kind(d[DetailCaseKind]), Amount: amount, Currency: d[DetailReportedCurr], OpenedAt: e.OccurredAt,
		},
		CollectionID: d[DetailCollectionID], OperatorRef: d[DetailOperatorRef], Account: d[DetailAccount], ApprovedAt: approved,
	}
	if at, err := time.Parse(time.RFC3339, d[DetailOpenedAt]); err == nil {
		c.OpenedAt = at
	}
	if e.Type == EventCaseResolved {
		c.Resolution, c.Reference, c.ClosedBy, c.ClosedAt = casework.Resolution(d[DetailResolution]), d[DetailReference], d[DetailBy], e.OccurredAt
	}
	return c
}

// CaseEventID derives the id of an event of a case without a session: of its opening or exit,
// or of a step of a proposal. The event always has the same id, however often it is made.
func CaseEventID(caseID, what string) string { return eventID(caseID+"/"+what, 0) }

// change is the part of an event that apply folds in. It does not travel.
type change struct {
	created    *Session
	updated    *Session // what replaces the session's fields
	collection *Collection
	outcome    *Outcome
	redirect   []byte
	clerk      string // who took the cash, or gave it back
	failure    FailureCode
	next       time.Time
	opens      *Case
	closes     *Case
	late       bool      // a case completes the session
	decided    time.Time // when money of a late completion was reported
	reversal   *reversal
	notes      *Case     // the case with the number of a proposal
	answered   time.Time // of the call that an ERP answered
	reference  string    // of the ERP
	report     *collectionReport
}

// eventID derives an event's id. The same event always has the same id, however often it
// is decided, delivered or journalled.
func eventID(sessionID string, sequence int64) string {
	sum := sha256.Sum256([]byte(sessionID + "#" + strconv.FormatInt(sequence, 10)))
	return "evt_" + idEncoding.EncodeToString(sum[:20])
}

// apply returns the session after the event. It does not modify what its arguments
// share. An event of another session or out of sequence is a fault of the program
// and leaves the session as it is.
func apply(s Session, e Event) Session {
	if e.Type == EventCreated {
		s = *e.change.created
		s.Status, s.Sequence = StatusOpen, 1
		return s
	}
	if e.Sequence != s.Sequence+1 || e.SessionID != s.ID {
		return s
	}
	s.Sequence = e.Sequence
	if s.Collection != nil {
		c := *s.Collection
		s.Collection = &c
	}
	switch e.Type {
	case EventCompleted:
		s = end(s, StatusCompleted, e.OccurredAt)
		s.Late, s.FailureCode, s.FailureMessage = e.change.late, "", ""
		if s.Collection.Status != CollectionApproved {
			s = approve(s, e)
		}
		for _, due := range s.Dues() {
			if s.ERP && due.ERPDueRef != "" {
				s = s.withConfirmation(due.TransactionID, Confirmation{Status: ConfirmationAwaited, Since: e.OccurredAt})
			}
		}
	case EventReversed:
		s.ReversedAt, s.ReversalReason, s.ReversalRef = e.OccurredAt, e.change.reversal.reason, e.change.reversal.reference
	case EventPartiallyReversed:
		s = s.returned(*e.change.reversal, e.OccurredAt)
	case EventLatePayment:
		s = approve(s, e)
	case EventFailed:
		s = end(s, StatusFailed, e.OccurredAt)
		s.FailureCode, s.FailureMessage = e.change.failure, e.change.failure.Message()
		if e.change.outcome != nil {
			s.Collection.decide(CollectionRefused, *e.change.outcome, e.OccurredAt)
		}
	case EventUpdated:
		s = s.updated(*e.change.updated)
	case EventCancelled:
		s = end(s, StatusCancelled, e.OccurredAt)
		s.CancelledBy = Canceller(e.Detail[DetailBy])
	case EventExpired:
		s = end(s, StatusExpired, e.OccurredAt)
	case EventCollectionOrphaned:
		s.Orphans = with(s.Orphans, e.Detail[DetailCollectionID])
	case EventCollectionRequested, EventCollectionRedirected, EventCollectionReleased, EventCollectionReversed,
		EventCollectionEnquired, EventCollectionRefused, EventCollectionMismatched, EventCollectionUnreadable:
		if e.Type == EventCollectionRequested && s.Collection != nil {
			s = s.withRefusal() // cash takes the place of a refused collection
		}
		s.Collection = s.applyCollection(e)
		if e.Type == EventCollectionRefused && !s.Ended() {
			s = s.withRefusal()
		}
	case EventCollectionReopened:
		s = s.reopened(*e.change.collection)
	case EventArchived:
		s = archived(s)
	case EventErased:
		s = erased(s)
	case EventCaseResolved:
		s.Cases = replaced(s.Cases, *e.change.closes)
	case EventCaseProposed, EventCaseApproved, EventCaseRejected, EventCaseLapsed, EventCaseRefused, EventCollectionContradicted, EventCollectionReported:
		s.Cases = replaced(s.Cases, *e.change.notes)
	case EventConfirmationAwaited, EventConfirmationAccepted, EventConfirmationRefused, EventConfirmationRetried, EventConfirmationRecorded:
		if due, ok := s.Due(e.Detail[DetailTransactionID]); ok {
			s = s.withConfirmation(due.TransactionID, applyConfirmation(due.Confirmation, e))
			s.ERP = true // it has answered, or is awaited, even if the agency had none at the creation
		}
	case EventCaseOpened, EventTokenIssued, EventTokenConsumed:
		// They leave a trace in the journal.
	case EventCreated:
	}
	if e.change.opens != nil {
		s.Cases = append(slices.Clone(s.Cases), *e.change.opens)
	}
	if e.change.report != nil {
		s = s.remember(*e.change.report)
	}
	return s
}

// applyCollection returns the session's collection after one of its events.
func (s Session) applyCollection(e Event) *Collection {
	switch e.Type {
	case EventCollectionRefused:
		s.Collection.decide(CollectionRefused, *e.change.outcome, e.OccurredAt)
	case EventCollectionRequested:
		c := *e.change.collection
		return &c
	case EventCollectionEnquired:
		s.Collection.Enquiries++
		s.Collection.LastEnquiryAt = e.OccurredAt
		s.Collection.NextEnquiryAt = e.change.next
		if s.Collection.ClosingEnquiryAt.IsZero() && !e.OccurredAt.Before(s.Collection.WindowEndsAt) {
			s.Collection.ClosingEnquiryAt = e.OccurredAt
		}
	case EventCollectionRedirected:
		s.Collection.RedirectSealed = e.change.redirect
	case EventCollectionReleased:
		return nil
	case EventCollectionReversed:
		s.Collection.ReversedBy, s.Collection.ReversedAt = e.change.clerk, e.OccurredAt
	case EventCollectionMismatched:
		s.Collection.Mismatched = true
		if s.Ended() {
			s.Collection.NextEnquiryAt = time.Time{} // as in end
		}
	case EventCollectionUnreadable:
		s.Collection.Unreadable = true
		if ref := e.change.outcome.OperatorRef; ref != "" {
			s.Collection.OperatorRef = ref
		}
	default: // no event of a collection
	}
	return s.Collection
}

// replaced returns a copy of the cases in which c replaces the case of the same id.
func replaced(cases []Case, c Case) []Case {
	cases = slices.Clone(cases)
	for i := range cases {
		if cases[i].ID == c.ID {
			cases[i] = c
		}
	}
	return cases
}

// end puts the session into a terminal status. A collection without a final answer becomes
// undecided.
func end(s Session, status Status, at time.Time) Session {
	s.Status, s.EndedAt = status, at
	if c := s.Collection; c != nil && c.Status == CollectionPending {
		c.Status = CollectionUndecided
		if c.Mismatched {
			c.NextEnquiryAt = time.Time{} // the operator has answered; now a person must decide
		}
	}
	return s
}

// approve records the approval of the session's collection and divides its fee among the
// items.
func approve(s Session, e Event) Session {
	s.Collection.approve(e)
	if len(s.Items) > 0 {
		s.Items = slices.Clone(s.Items)
		amounts := make([]int64, len(s.Items))
		for i, item := range s.Items {
			amounts[i] = item.Amount
		}
		for i, fee := range money.Divide(s.Collection.Fee, amounts) {
			s.Items[i].Fee = fee
		}
	}
	return s
}

func (c *Collection) approve(e Event) {
	at := e.OccurredAt
	if !e.change.decided.IsZero() {
		at = e.change.decided
	}
	c.decide(CollectionApproved, *e.change.outcome, at)
	c.ApprovedAt = e.change.outcome.ApprovedAt
	if e.change.clerk != "" {
		c.Clerk, c.Account = e.change.clerk, e.change.outcome.Account
	}
}

func (c *Collection) decide(status CollectionStatus, o Outcome, at time.Time) {
	c.Status, c.DecidedAt, c.NextEnquiryAt, c.RedirectSealed = status, at, time.Time{}, nil
	if o.OperatorRef != "" {
		c.OperatorRef = o.OperatorRef
	}
	if status == CollectionRefused {
		c.FailureCode = o.FailureCode
	} else {
		c.FailureCode = ""
	}
}
