package journal

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/money/localtime"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// ReceiptsOf returns the receipts of an event that moves money; none for the others. An event
// that lacks what a receipt needs is an error that wraps ErrInvalidEntry.
func ReceiptsOf(r *record.Event) ([]Receipt, error) {
	switch checkout.EventType(r.Type) {
	case checkout.EventCompleted, checkout.EventLatePayment, checkout.EventReversed, checkout.EventPartiallyReversed:
	case checkout.EventCollectionMismatched, checkout.EventCollectionOrphaned, checkout.EventCaseOpened, checkout.EventCaseResolved:
	default:
		return nil, nil
	}
	e := mapping.ToEvent(r)
	c := e.Case()
	switch e.Type {
	case checkout.EventCompleted:
		if e.Session.Late {
			return fromHonour(e)
		}
		return ofItems(e, MovementCompleted, 1)
	case checkout.EventLatePayment:
		return ofItems(e, MovementLate, 1)
	case checkout.EventReversed, checkout.EventPartiallyReversed:
		return ofItems(e, MovementReversal, -1)
	case checkout.EventCollectionMismatched:
		if !c.Reported() {
			return nil, nil
		}
		return ofCollection(e, c, MovementMismatch, 1), nil
	case checkout.EventCollectionOrphaned, checkout.EventCaseOpened:
		// Money of no known session may be reported several times. The opening of its case is
		// one event.
		if !c.Reported() || (e.Session.ID == "") != (e.Type == checkout.EventCaseOpened) {
			return nil, nil
		}
		return ofCollection(e, c, MovementOrphan, 1), nil
	default: // case.resolved
		if !c.TakesBack() {
			return nil, nil
		}
		return ofCollection(e, c, MovementReversal, -1), nil
	}
}

// fromHonour returns the receipts of a session that a case completed after its end. Late money
// has its receipts since it arrived. A mismatch or an orphan was a sum of the whole collection, and
// now pays the items: it is taken off, and they are added. What is left has an event of its own.
func fromHonour(e checkout.Event) ([]Receipt, error) {
	c, ok := e.Session.Case(e.Detail[checkout.DetailCaseID])
	movement := MovementMismatch
	switch {
	case ok && c.Kind == checkout.CaseMismatch:
	case ok && c.Kind == checkout.CaseOrphan:
		movement = MovementOrphan
	default:
		return nil, nil
	}
	items, err := ofItems(e, MovementLate, 1)
	if err != nil {
		return nil, err
	}
	return append(ofCollection(e, c, movement, -1), items...), nil
}

// receiptOf returns what all receipts of an event have.
func receiptOf(e checkout.Event, movement Movement) Receipt {
	s := e.Session
	return Receipt{
		Movement: movement, OccurredAt: e.OccurredAt, LocalDate: localDate(e.OccurredAt),
		TenantID: s.TenantID, ApplicationID: s.ApplicationID, Livemode: s.Live, Mode: string(s.Mode),
		SessionID: e.SessionID, OrderID: s.OrderID, PaymentRef: s.PaymentRef,
	}
}

// ofItems returns a receipt for each item of the session, or for each whose money the event gave
// back.
func ofItems(e checkout.Event, movement Movement, sign int64) ([]Receipt, error) {
	s, c := e.Session, e.Session.Collection
	if s.ID == "" || c == nil {
		return nil, fmt.Errorf("%w: %s %s has no collection", ErrInvalidEntry, e.Type, e.ID)
	}
	base := receiptOf(e, movement)
	base.ApprovedOn = localDate(firstTime(plausible(c.ApprovedAt, e.OccurredAt), c.DecidedAt, e.OccurredAt))
	base.Account, base.Channel, base.OfferID, base.Currency = c.Account, string(c.Channel), c.OfferID, c.Currency
	base.CollectionID, base.OperatorRef = c.ID, c.OperatorRef
	base.CaseID, base.RecordedBy = e.Detail[checkout.DetailCaseID], e.Detail[checkout.DetailBy]
	if movement == MovementReversal {
		base.Reason, base.Reference = returnOf(e)
	}
	items := s.Dues()
	out := make([]Receipt, 0, len(items))
	for i, item := range items {
		if movement == MovementReversal && !slices.ContainsFunc(e.Returned(), func(due checkout.Item) bool { return due.TransactionID == item.TransactionID }) {
			continue
		}
		r := base
		r.Item = uint16(i + 1)
		r.ID = ReceiptID(e.ID, r.Item)
		r.ERPDueRef, r.TransactionID, r.NoticeRef = item.ERPDueRef, item.TransactionID, item.NoticeRef
		r.ServiceCode, r.ServiceLabel = item.ServiceCode, item.ServiceLabel
		r.Amount, r.FeeAmount, r.TotalAmount = sign*item.Amount, sign*item.Fee, sign*(item.Amount+item.Fee)
		out = append(out, r)
	}
	return out, nil
}

// returnOf returns why an event gave money of its session back, and the reference of the refund.
func returnOf(e checkout.Event) (reason, reference string) {
	if e.Type == checkout.EventPartiallyReversed {
		return e.Detail[checkout.DetailReason], e.Detail[checkout.DetailReference]
	}
	return string(e.Session.ReversalReason), e.Session.ReversalRef
}

// ofCollection returns the receipt of money that was reported beside the session's own
// payment.
func ofCollection(e checkout.Event, c checkout.Case, movement Movement, sign int64) []Receipt {
	r := receiptOf(e, movement)
	r.ID = ReceiptID(e.ID, 0)
	if movement == MovementOrphan && e.Detail[checkout.DetailEventID] != "" {
		r.ID = ReceiptID(e.Detail[checkout.DetailEventID], 0) // as earlier releases derived it
	}
	r.ApprovedOn = localDate(firstTime(plausible(c.ApprovedAt, e.OccurredAt), c.OpenedAt, e.OccurredAt))
	if e.Session.ID == "" {
		r.Livemode, _ = strconv.ParseBool(e.Detail[checkout.DetailLive]) // our own text
	}
	r.Channel, r.OfferID = reportedBy(e, c)
	r.Account, r.Currency = c.Account, c.Currency
	r.CollectionID, r.OperatorRef = c.CollectionID, c.OperatorRef
	r.Amount, r.TotalAmount = sign*c.Amount, sign*c.Amount
	r.CaseID, r.Reason, r.RecordedBy = c.ID, c.Reason, c.By
	if movement == MovementReversal {
		r.Reason, r.Reference, r.RecordedBy = reasons[c.Resolution], c.Reference, c.ClosedBy
	}
	return []Receipt{r}
}

// reportedBy returns channel and offer of a case's money. Cases of earlier versions do not name
// them: a mismatch was then of the session's collection, and what a clerk reported was cash.
func reportedBy(e checkout.Event, c checkout.Case) (channel, offer string) {
	own := e.Session.Collection
	switch {
	case c.Channel != "":
		return string(c.Channel), c.OfferID
	case c.Kind == checkout.CaseMismatch && own != nil:
		return string(own.Channel), own.OfferID
	case c.Cash():
		return string(checkout.ChannelCash), checkout.OfferCashAgency
	}
	return "", ""
}

// reasons are the reasons of reversals by the resolution of their case.
var reasons = map[casework.Resolution]string{
	checkout.ResolutionRefund:       string(checkout.ReversalRefunded),
	checkout.ResolutionCashReturned: string(checkout.ReversalCashReturned),
	checkout.ResolutionSuperseded:   withdrawnSuperseded,
	checkout.ResolutionAskAgain:     withdrawnAskAgain,
}

// The bounds of a date of an approval, from the time of its event. Versions that did not bound the
// operators' dates committed events with any date. No such event may be refused: ClickHouse has
// no dates before 1970 or after 2149.
const (
	datedBefore = 800 * 24 * time.Hour
	datedAfter  = 48 * time.Hour
)

// plausible returns the operator's date of an approval, zero when it is out of bounds.
func plausible(approved, occurred time.Time) time.Time {
	if approved.Before(occurred.Add(-datedBefore)) || approved.After(occurred.Add(datedAfter)) {
		return time.Time{}
	}
	return approved
}

// DateDropped reports whether an event of money has an operator's date of the approval that the
// journal does not believe, so that the payment stands on the day on which it was recorded.
func DateDropped(r *record.Event) bool {
	var at time.Time
	switch checkout.EventType(r.Type) {
	case checkout.EventCompleted, checkout.EventLatePayment:
		if r.Session != nil && r.Session.Collection != nil {
			at = r.Session.Collection.ApprovedAt
		}
	case checkout.EventCollectionMismatched, checkout.EventCollectionOrphaned, checkout.EventCaseOpened:
		at = mapping.ToEvent(r).Case().ApprovedAt
	default: // its money has other events
	}
	return !at.IsZero() && plausible(at, r.OccurredAt).IsZero()
}

// firstTime returns the first time that is not zero.
func firstTime(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// localDate returns the day of a time in Africa/Brazzaville, at midnight UTC, as ClickHouse
// stores dates.
func localDate(t time.Time) time.Time {
	y, m, d := localtime.In(t).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}
