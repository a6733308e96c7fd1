package journal

import (
	"fmt"
	"time"

	"quittance/checkout"
	"quittance/schemas/record"
)

// statusCompleted is the status of a paid session.
const statusCompleted = "completed"

// fromEvent returns the entry of an event: the event and the session after it. It leaves
// out the customer's contact data, the agency's note and all secrets.
func fromEvent(e *record.Event) Entry {
	out := Entry{
		ID: e.EventID, Type: EntryTypeEvent, OccurredAt: e.OccurredAt,
		Event: e.Type, EventID: e.EventID, Sequence: e.Sequence, SessionID: e.SessionID, Detail: e.Detail,
	}
	s := e.Session
	if s == nil {
		out.TenantID = e.Detail[checkout.DetailTenant] // of a case of the matcher
		return out
	}
	out.TenantID, out.ApplicationID, out.Livemode = s.TenantID, s.ApplicationID, s.Livemode
	out.OrderID, out.PaymentRef, out.NoticeID, out.NoticeRef, out.TransactionID = s.OrderID, s.PaymentRef, s.NoticeID, s.NoticeRef, s.TransactionID
	out.Mode, out.Status, out.Amount, out.Currency = s.Mode, s.Status, s.Amount, s.Currency
	out.ServiceCode, out.ServiceLabel, out.Metadata, out.FailureCode = s.ServiceCode, s.ServiceLabel, s.Metadata, s.FailureCode
	out.CreatedAt, out.ExpiresAt, out.EndedAt = optional(s.CreatedAt), optional(s.ExpiresAt), optional(s.EndedAt)
	if s.Status == statusCompleted {
		out.CompletedAt = out.EndedAt
	}
	if c := s.Collection; c != nil {
		out.CollectionID, out.CollectionStatus, out.Channel, out.OfferID, out.Account = c.ID, c.Status, c.Channel, c.OfferID, c.Account
		out.OperatorRef, out.PayerMasked, out.FeeAmount, out.TotalAmount = c.OperatorRef, c.PayerMasked, c.Fee, c.Amount
	}
	return out
}

// fromAttempt returns the entry of a delivery's outcome. One attempt has several
// outcomes when it was deferred first, or when two workers made it around a rebalance.
// The journal has an entry for each.
func fromAttempt(a *record.Attempt) Entry {
	d := &a.Delivery
	return Entry{
		ID:   fmt.Sprintf("%s/%d.%d/%s/%d", d.DeliveryID, d.Attempt, d.Round, a.Outcome, a.At.UnixMilli()),
		Type: EntryTypeDelivery, OccurredAt: a.At, Event: d.Event, EventID: d.EventID,
		TenantID: d.TenantID, ApplicationID: d.ApplicationID, Livemode: d.Livemode, SessionID: d.SessionID,
		DeliveryID: d.DeliveryID, DestinationKind: d.Kind, EndpointID: d.DestinationID, Attempt: d.Attempt,
		Outcome: a.Outcome, HTTPStatus: a.HTTPStatus, DurationMS: a.DurationMs, Reason: a.Reason, NextAttemptAt: optional(a.NextAttemptAt),
	}
}

// Names of the facts of a call that have no column.
const (
	detailOperator = "operator"
	detailFault    = "fault"
)

// fromCall returns the entry of a call to an operator.
func fromCall(c *record.Call) Entry {
	channel, _ := checkout.OfferChannel(c.OfferID)
	detail := map[string]string{detailOperator: c.Operator}
	if c.Fault != "" {
		detail[detailFault] = c.Fault
	}
	return Entry{
		ID:   fmt.Sprintf("%s/%s.%d/%s/%d", c.CollectionID, c.Kind, c.Enquiry, c.Outcome, c.At.UnixMilli()),
		Type: EntryTypeCall, OccurredAt: c.At, Event: "call." + c.Kind,
		TenantID: c.TenantID, ApplicationID: c.ApplicationID, Livemode: c.Livemode, SessionID: c.SessionID,
		CollectionID: c.CollectionID, Account: c.Account, Channel: string(channel), OfferID: c.OfferID, OperatorRef: c.OperatorRef, FailureCode: c.FailureCode,
		TotalAmount: c.Amount, Currency: c.Currency, Attempt: c.Enquiry, Outcome: c.Outcome, DurationMS: c.DurationMs, Reason: c.Reason, Detail: detail,
	}
}

// optional returns nil for the zero time.
func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
