package journal

import (
	"fmt"
	"strconv"
	"time"

	"quittance/checkout"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// Reasons of withdrawn rows.
const (
	withdrawnSuperseded = "superseded" // the operator replaced its report
	withdrawnAskAgain   = "ask_again"  // staff have the operator asked anew
	withdrawnDecided    = "decided"    // the operator decided an undecided collection
	withdrawnStatement  = "statement"  // the statement was withdrawn that had said so
)

// ExpectedOf returns the expected money of an event, without its position; none for events that
// change none. Honouring moves no money and adds nothing: late money is expected since it
// arrived, a mismatch with the amount that was reported, which includes the surplus. An event
// that lacks what a row needs is an error that wraps ErrInvalidEntry.
func ExpectedOf(r *record.Event) ([]Expected, error) {
	switch checkout.EventType(r.Type) {
	case checkout.EventCompleted, checkout.EventLatePayment, checkout.EventReversed, checkout.EventPartiallyReversed,
		checkout.EventFailed, checkout.EventExpired, checkout.EventCancelled, checkout.EventCollectionRefused, checkout.EventCollectionReopened,
		checkout.EventCollectionMismatched, checkout.EventCollectionOrphaned, checkout.EventCaseOpened, checkout.EventCaseResolved:
	default:
		return nil, nil
	}
	e := mapping.ToEvent(r)
	s, c := e.Session, e.Case()
	switch e.Type {
	case checkout.EventCompleted:
		if s.Late && c.Kind == checkout.CaseOrphan {
			return decided(e), nil // the honoured orphan's collection was reopened for it
		}
		if s.Late {
			return nil, nil
		}
		return expectSession(e, ExpectedReceived, ExpectedCompleted)
	case checkout.EventLatePayment:
		received, err := expectSession(e, ExpectedReceived, ExpectedLate)
		return append(decided(e), received...), err
	case checkout.EventReversed, checkout.EventPartiallyReversed:
		return expectSession(e, ExpectedGivenBack, ExpectedReversed)
	case checkout.EventCollectionReopened:
		return reopened(e), nil
	case checkout.EventFailed, checkout.EventExpired, checkout.EventCancelled:
		return undecided(e), nil
	case checkout.EventCollectionRefused:
		return decided(e), nil
	case checkout.EventCollectionMismatched:
		if !c.Reported() {
			return nil, nil
		}
		return append(decided(e), expectCase(e, c, ExpectedReceived, ExpectedMismatch)), nil
	case checkout.EventCollectionOrphaned, checkout.EventCaseOpened:
		// As with receipts: the opening of its case counts a report of no known session once.
		if !c.Reported() || c.Honoured() || (s.ID == "") != (e.Type == checkout.EventCaseOpened) {
			return nil, nil
		}
		return []Expected{expectCase(e, c, ExpectedReceived, ExpectedOrphan)}, nil
	default: // case.resolved
		switch {
		case !c.TakesBack():
			return nil, nil
		case c.Replaced() && !c.Honoured():
			return []Expected{expectCase(e, c, ExpectedReceived, stateOf(c)).Withdraw(reasons[c.Resolution])}, nil
		}
		return []Expected{expectCase(e, c, ExpectedGivenBack, ExpectedReversed)}, nil
	}
}

// stateOf returns the state of the money that a report of a case tells of.
func stateOf(c checkout.Case) ExpectedState {
	if c.Kind == checkout.CaseMismatch {
		return ExpectedMismatch
	}
	return ExpectedOrphan
}

// expectedOf returns what all expected money of an event has.
func expectedOf(e checkout.Event, kind ExpectedKind, state ExpectedState, approved time.Time) Expected {
	s := e.Session
	out := Expected{
		Kind: kind, State: state, OccurredAt: e.OccurredAt, ApprovedAt: approved, LocalDate: localDate(approved),
		TenantID: s.TenantID, ApplicationID: s.ApplicationID, Livemode: s.Live, SessionID: s.ID, OrderID: s.OrderID, PaymentRef: s.PaymentRef,
		NoticeRefs: []string{}, DueRefs: []string{}, TransactionIDs: []string{}, Amounts: []int64{},
	}
	if s.ID == "" {
		out.Livemode, _ = strconv.ParseBool(e.Detail[checkout.DetailLive]) // our own text
		return out
	}
	for _, due := range s.Dues() {
		if due.NoticeRef != "" {
			out.NoticeRefs = append(out.NoticeRefs, due.NoticeRef)
		}
	}
	return out
}

// expectCollection returns an entry of the session's own collection.
func expectCollection(e checkout.Event, kind ExpectedKind, state ExpectedState, approved time.Time) Expected {
	out, c := expectedOf(e, kind, state, approved), e.Session.Collection
	out.ID = ExpectedID(kind, e.Session.ID, c.ID)
	out.Account, out.Channel, out.OfferID, out.Currency = c.Account, string(c.Channel), c.OfferID, c.Currency
	out.CollectionID, out.OperatorRef = c.ID, c.OperatorRef
	out.Gross, out.Fee = c.Amount, c.Fee
	return out
}

// expectSession returns the entry of the money that completed the session, that came late for
// it, or that was given back.
func expectSession(e checkout.Event, kind ExpectedKind, state ExpectedState) ([]Expected, error) {
	s, c := e.Session, e.Session.Collection
	if s.ID == "" || c == nil {
		return nil, fmt.Errorf("%w: %s %s has no collection", ErrInvalidEntry, e.Type, e.ID)
	}
	approved := firstTime(plausible(c.ApprovedAt, e.OccurredAt), c.DecidedAt, e.OccurredAt)
	if kind == ExpectedGivenBack {
		approved = e.OccurredAt
	}
	out := expectCollection(e, kind, state, approved)
	out.CaseID = e.Detail[checkout.DetailCaseID]
	sign, dues := int64(1), s.Dues()
	if kind == ExpectedGivenBack {
		sign, dues = -1, e.Returned()
		out.Gross, out.Fee = -out.Gross, -out.Fee
		out.Reason, out.Reference = returnOf(e)
		if len(dues) < len(s.Dues()) {
			out.ID = ExpectedID(kind, s.ID, c.ID, e.ID)
			out.Gross, out.Fee = -checkout.Total(dues), 0
			for _, due := range dues {
				out.Fee -= due.Fee
			}
		}
	}
	for _, due := range dues {
		out.DueRefs, out.TransactionIDs, out.Amounts = append(out.DueRefs, due.ERPDueRef), append(out.TransactionIDs, due.TransactionID), append(out.Amounts, sign*due.Amount)
	}
	return []Expected{out}, nil
}

// expectCase returns the entry of money that was reported beside the session's own payment.
func expectCase(e checkout.Event, c checkout.Case, kind ExpectedKind, state ExpectedState) Expected {
	approved := firstTime(plausible(c.ApprovedAt, e.OccurredAt), c.OpenedAt, e.OccurredAt)
	if kind == ExpectedGivenBack {
		approved = e.OccurredAt
	}
	out := expectedOf(e, kind, state, approved)
	out.ID = ExpectedID(kind, c.ID)
	out.Channel, out.OfferID = reportedBy(e, c)
	out.Account, out.Currency, out.Gross = c.Account, c.Currency, c.Amount
	out.CollectionID, out.OperatorRef, out.CaseID, out.Reason = c.CollectionID, c.OperatorRef, c.ID, c.Reason
	if kind == ExpectedGivenBack {
		out.Gross, out.Reason, out.Reference = -c.Amount, reasons[c.Resolution], c.Reference
	}
	return out
}

// undecided returns the entry of a collection that was not decided when its session ended.
// A mismatch is an entry already, and cash is decided by a clerk alone.
func undecided(e checkout.Event) []Expected {
	c := e.Session.Collection
	if c == nil || c.Status != checkout.CollectionUndecided || c.Mismatched || c.Origin() != checkout.OriginAsked {
		return nil
	}
	return []Expected{expectUndecided(e)}
}

// decided returns the row that withdraws the entry of the session's undecided collection. A
// mismatch before the session's end left no entry, and one after it withdrew it. A collection
// that was refused before has no entry either; the event does not tell, and the row changes
// nothing.
func decided(e checkout.Event) []Expected {
	c := e.Session.Collection
	if c == nil || !e.Session.Ended() || c.Origin() != checkout.OriginAsked || c.Mismatched != (e.Type == checkout.EventCollectionMismatched) {
		return nil
	}
	return []Expected{expectUndecided(e).Withdraw(withdrawnDecided)}
}

// reopened returns the entry of an ended session's collection that is undecided again. If its
// earlier entry stands, it is withdrawn.
func reopened(e checkout.Event) []Expected {
	entry := undecided(e)
	if len(entry) == 0 {
		return nil
	}
	before := *e.Session.Collection
	before.Reopened--
	earlier := e
	earlier.Session.Collection = &before
	return append(entry, expectUndecided(earlier).Withdraw(withdrawnAskAgain))
}

// expectUndecided returns the entry of the session's undecided collection. A withdrawn entry
// stays so, and a collection that is reopened after that has another one.
func expectUndecided(e checkout.Event) Expected {
	c := e.Session.Collection
	out := expectCollection(e, ExpectedUndecided, ExpectedOpen, c.RequestedAt)
	if c.Reopened > 0 {
		out.ID = ExpectedID(ExpectedUndecided, e.Session.ID, c.ID, strconv.Itoa(c.Reopened))
	}
	return out
}
