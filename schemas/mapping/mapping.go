// Package mapping converts between the domain (package checkout) and the records of the
// topics (package schemas/record). It decides nothing. An unknown type of command is an
// error.
package mapping

import (
	"fmt"
	"time"

	"quittance/casework"
	"quittance/checkout"
	"quittance/schemas/payload"
	"quittance/schemas/record"
)

// Types of commands on checkout.commands.
const (
	CommandCreate       = "session.create"
	CommandCancel       = "session.cancel"
	CommandCollect      = "collection.start"
	CommandOutcome      = "collection.outcome"
	CommandEnquire      = "collection.enquire"
	CommandRedirected   = "collection.redirected"
	CommandReserve      = "counter.reserve"
	CommandTake         = "counter.take"
	CommandRelease      = "counter.release"
	CommandReverse      = "counter.reverse"
	CommandIssueToken   = "completion_token.issue"
	CommandConsumeToken = "completion_token.consume"
	CommandRefund       = "case.refund_request"
	CommandResolve      = "case.resolve"
	CommandErase        = "session.erase"
	CommandNoteProposal = "case.note_proposal"
	CommandConfirmed    = "confirmation.answer"
	CommandInitCheckout = "cashin.init_checkout"
	CommandPartnerPay   = "cashin.partner_pay"
	CommandLookUp       = "cashin.look_up"
)

// FromCommand converts a command. A Tick has no record: its error wraps
// checkout.ErrUnknownCommand.
func FromCommand(c checkout.Command) (*record.Command, error) {
	r := &record.Command{
		SessionID: c.SessionID, ApplicationID: c.ApplicationID, Livemode: c.Live, IssuedAt: c.At,
	}
	if c.ReplyTo != nil {
		r.CorrelationID, r.ReplyPartition = c.ReplyTo.CorrelationID, c.ReplyTo.Partition
	}
	switch do := c.Do.(type) {
	case checkout.Create:
		r.Type = CommandCreate
		r.Create = &record.CreateSession{
			Session: FromSession(do.Session), IdempotencyKey: do.IdempotencyKey, BodyHash: do.BodyHash,
			CreationsPerMinute: int32(do.CreationsPerMinute), Faults: FromFaults(do.Faults), Replace: do.Replace, //nolint:gosec // validated by the registry
		}
	case checkout.Cancel:
		r.Type, r.By = CommandCancel, string(do.By)
	case checkout.Erase:
		r.Type, r.By = CommandErase, do.By
	case checkout.Collect:
		r.Type, r.Collect = CommandCollect, fromCollect(do)
	case checkout.Outcome:
		r.Type = CommandOutcome
		r.Outcome = &record.CollectionOutcome{
			CollectionID: do.CollectionID, Source: string(do.Source), Status: string(do.Status), Amount: do.Amount,
			Currency: do.Currency, OperatorRef: do.OperatorRef, FailureCode: string(do.FailureCode),
			AskedAt: do.AskedAt, ApprovedAt: do.ApprovedAt, HonourLate: do.HonourLate, Account: do.Account,
		}
	case checkout.Enquire:
		r.Type = CommandEnquire
		r.Outcome = &record.CollectionOutcome{CollectionID: do.CollectionID}
	case checkout.Redirected:
		r.Type = CommandRedirected
		r.Redirect = &record.CollectionRedirect{CollectionID: do.CollectionID, Sealed: do.Sealed}
	case checkout.Reserve, checkout.Take, checkout.Release, checkout.Reverse:
		r.Type, r.Counter = fromClerk(do)
	case checkout.IssueToken:
		r.Type = CommandIssueToken
		r.Token = &record.CompletionToken{Hash: do.Hash, ClientSecretHash: do.ClientSecretHash, LifetimeMs: do.Lifetime.Milliseconds()}
	case checkout.ConsumeToken:
		r.Type = CommandConsumeToken
		r.Token = &record.CompletionToken{Hash: do.Hash, OrderID: do.OrderID}
	case checkout.OpenRefundRequest:
		r.Type = CommandRefund
		r.Case = &record.CaseEntry{By: do.By, Reason: do.Reason}
	case checkout.Resolve:
		r.Type = CommandResolve
		r.Case = &record.CaseEntry{
			CaseID: do.CaseID, Resolution: string(do.Resolution), Reference: do.Reference, Reason: do.Reason, By: do.By, ApprovedBy: do.ApprovedBy,
		}
	case checkout.NoteProposal:
		r.Type = CommandNoteProposal
		r.Case = &record.CaseEntry{
			CaseID: do.CaseID, Resolution: string(do.Resolution), Reference: do.Reference, Reason: do.Reason, By: do.By,
			Proposal: int32(do.Number), Step: string(do.Step), //nolint:gosec // small
		}
	case checkout.Confirmed:
		r.Type = CommandConfirmed
		r.Confirmed = &record.ConfirmationAnswer{TransactionID: do.TransactionID, Answer: string(do.Answer), AnsweredAt: do.AnsweredAt, Reason: do.Reason}
	case checkout.InitCheckout, checkout.PartnerPay, checkout.LookUp:
		fromCashinCommand(r, do)
	default:
		return nil, fmt.Errorf("encoding command %T: %w", c.Do, checkout.ErrUnknownCommand)
	}
	return r, nil
}

// fromClerk converts the details of a clerk's command.
func fromClerk(do checkout.Action) (kind string, r *record.CounterEntry) {
	switch do := do.(type) {
	case checkout.Reserve:
		return CommandReserve, &record.CounterEntry{
			CollectionID: do.CollectionID, Clerk: do.By, WindowMs: do.Window.Milliseconds(), PaymentLimit: do.Limits.Payment, DayLimit: do.Limits.Day,
		}
	case checkout.Take:
		return CommandTake, &record.CounterEntry{
			CollectionID: do.CollectionID, Clerk: do.By, Total: do.Total, Receipt: do.Receipt, Desk: do.Desk, PaymentLimit: do.Limits.Payment, DayLimit: do.Limits.Day,
		}
	case checkout.Release:
		return CommandRelease, &record.CounterEntry{CollectionID: do.CollectionID, Clerk: do.By}
	case checkout.Reverse:
		return CommandReverse, &record.CounterEntry{CollectionID: do.CollectionID, Clerk: do.By, Reason: do.Reason}
	}
	return "", nil
}

// ToCommand converts a command. If its type is unknown, or its details are missing, the
// error wraps checkout.ErrUnknownCommand.
func ToCommand(r *record.Command) (checkout.Command, error) {
	c := checkout.Command{At: r.IssuedAt, SessionID: r.SessionID, ApplicationID: r.ApplicationID, Live: r.Livemode}
	if r.CorrelationID != "" {
		c.ReplyTo = &checkout.ReplyTo{CorrelationID: r.CorrelationID, Partition: r.ReplyPartition}
	}
	switch {
	case r.Type == CommandCreate && r.Create != nil:
		c.Do = checkout.Create{
			Session: ToSession(&r.Create.Session), IdempotencyKey: r.Create.IdempotencyKey, BodyHash: r.Create.BodyHash,
			CreationsPerMinute: int(r.Create.CreationsPerMinute), Faults: ToFaults(r.Create.Faults), Replace: r.Create.Replace,
		}
	case r.Type == CommandCancel:
		c.Do = checkout.Cancel{By: checkout.Canceller(r.By)}
	case r.Type == CommandErase:
		c.Do = checkout.Erase{By: r.By}
	case r.Type == CommandCollect && r.Collect != nil:
		c.Do = toCollect(r.Collect)
	case r.Type == CommandOutcome && r.Outcome != nil:
		c.Do = checkout.Outcome{
			CollectionID: r.Outcome.CollectionID, Source: checkout.Source(r.Outcome.Source),
			Status: checkout.OutcomeStatus(r.Outcome.Status), Amount: r.Outcome.Amount, Currency: r.Outcome.Currency,
			OperatorRef: r.Outcome.OperatorRef, FailureCode: checkout.FailureCode(r.Outcome.FailureCode),
			AskedAt: r.Outcome.AskedAt, ApprovedAt: r.Outcome.ApprovedAt, HonourLate: r.Outcome.HonourLate, Account: r.Outcome.Account,
		}
	case r.Type == CommandEnquire && r.Outcome != nil:
		c.Do = checkout.Enquire{CollectionID: r.Outcome.CollectionID}
	case r.Type == CommandRedirected && r.Redirect != nil:
		c.Do = checkout.Redirected{CollectionID: r.Redirect.CollectionID, Sealed: r.Redirect.Sealed}
	case r.Type == CommandReserve && r.Counter != nil:
		c.Do = checkout.Reserve{
			CollectionID: r.Counter.CollectionID, By: r.Counter.Clerk, Window: time.Duration(r.Counter.WindowMs) * time.Millisecond, Limits: toLimits(r.Counter),
		}
	case r.Type == CommandTake && r.Counter != nil:
		c.Do = checkout.Take{
			CollectionID: r.Counter.CollectionID, By: r.Counter.Clerk, Total: r.Counter.Total, Receipt: r.Counter.Receipt, Desk: r.Counter.Desk, Limits: toLimits(r.Counter),
		}
	case r.Type == CommandRelease && r.Counter != nil:
		c.Do = checkout.Release{CollectionID: r.Counter.CollectionID, By: r.Counter.Clerk}
	case r.Type == CommandReverse && r.Counter != nil:
		c.Do = checkout.Reverse{CollectionID: r.Counter.CollectionID, By: r.Counter.Clerk, Reason: r.Counter.Reason}
	case r.Type == CommandIssueToken && r.Token != nil:
		c.Do = checkout.IssueToken{Hash: r.Token.Hash, ClientSecretHash: r.Token.ClientSecretHash, Lifetime: time.Duration(r.Token.LifetimeMs) * time.Millisecond}
	case r.Type == CommandConsumeToken && r.Token != nil:
		c.Do = checkout.ConsumeToken{Hash: r.Token.Hash, OrderID: r.Token.OrderID}
	case r.Type == CommandRefund && r.Case != nil:
		c.Do = checkout.OpenRefundRequest{By: r.Case.By, Reason: r.Case.Reason}
	case r.Type == CommandResolve && r.Case != nil:
		c.Do = checkout.Resolve{
			CaseID: r.Case.CaseID, Resolution: casework.Resolution(r.Case.Resolution), Reference: r.Case.Reference, Reason: r.Case.Reason,
			By: r.Case.By, ApprovedBy: r.Case.ApprovedBy,
		}
	case r.Type == CommandNoteProposal && r.Case != nil:
		c.Do = checkout.NoteProposal{
			CaseID: r.Case.CaseID, Number: int(r.Case.Proposal), Step: casework.DecisionState(r.Case.Step), Resolution: casework.Resolution(r.Case.Resolution),
			Reference: r.Case.Reference, Reason: r.Case.Reason, By: r.Case.By,
		}
	case r.Type == CommandConfirmed && r.Confirmed != nil:
		c.Do = checkout.Confirmed{
			TransactionID: r.Confirmed.TransactionID, Answer: checkout.ConfirmationAnswer(r.Confirmed.Answer), AnsweredAt: r.Confirmed.AnsweredAt, Reason: r.Confirmed.Reason,
		}
	case r.Cashin != nil:
		c.Do = toCashinCommand(r)
	}
	if c.Do == nil {
		return checkout.Command{}, fmt.Errorf("decoding command %q: %w", r.Type, checkout.ErrUnknownCommand)
	}
	return c, nil
}

func toLimits(r *record.CounterEntry) checkout.Limits {
	return checkout.Limits{Payment: r.PaymentLimit, Day: r.DayLimit}
}

// FromSession converts a session.
func FromSession(s checkout.Session) record.Session {
	r := record.Session{
		ID: s.ID, ApplicationID: s.ApplicationID, TenantID: s.TenantID, Livemode: s.Live, Platform: s.Platform,
		OrderID: s.OrderID, Amount: s.Amount, Currency: s.Currency, Mode: string(s.Mode),
		ServiceCode: s.ServiceCode, ServiceLabel: s.ServiceLabel, Description: s.Description, Note: s.Note,
		CustomerSealed: s.CustomerSealed, Customer: (*record.Customer)(s.Customer), CustomerID: s.CustomerID, Metadata: s.Metadata, SuccessURL: s.SuccessURL, CancelURL: s.CancelURL,
		PaymentRef: s.PaymentRef, NoticeID: s.NoticeID, NoticeRef: s.NoticeRef, TransactionID: s.TransactionID,
		ClientSecretHash: s.ClientSecretHash, ClientSecretSealed: s.ClientSecretSealed,
		CreatedAt: s.CreatedAt, ExpiresAt: s.ExpiresAt, EndedAt: s.EndedAt,
		Status: string(s.Status), Sequence: s.Sequence, FailureCode: string(s.FailureCode), FailureMessage: s.FailureMessage,
		Orphans: s.Orphans, Late: s.Late, ReversedAt: s.ReversedAt, ReversalReason: string(s.ReversalReason), ReversalRef: s.ReversalRef,
		Archived: s.Archived, ERP: s.ERP, Cashin: fromCashin(s.Cashin),
		Items: fromItems(s.Items), Confirmation: fromConfirmation(s.Confirmation), CitizenID: s.CitizenID, PulledAt: s.PulledAt, CancelledBy: string(s.CancelledBy),
	}
	if len(s.Cases) > 0 {
		r.Cases = make([]record.Case, len(s.Cases))
		for i, c := range s.Cases {
			r.Cases[i] = record.Case{
				ID: c.ID, Kind: string(c.Kind), CollectionID: c.CollectionID, Amount: c.Amount, Currency: c.Currency, OperatorRef: c.OperatorRef,
				Reason: c.Reason, By: c.By, OpenedAt: c.OpenedAt, Resolution: string(c.Resolution), Reference: c.Reference, ClosedBy: c.ClosedBy, ClosedAt: c.ClosedAt,
				Account: c.Account, ApprovedAt: c.ApprovedAt,
				Proposed: int32(c.Proposed), Decided: int32(c.Decided), //nolint:gosec // small
				TransactionID: c.TransactionID,
			}
		}
	}
	if len(s.Offers) > 0 {
		r.Offers = make([]record.Offer, len(s.Offers))
		for i, o := range s.Offers {
			r.Offers[i] = record.Offer{ID: o.ID, Channel: string(o.Channel), Fee: o.Fee}
		}
	}
	if c := s.Collection; c != nil {
		r.Collection = &record.Collection{
			ID: c.ID, OfferID: c.OfferID, Channel: string(c.Channel), Status: string(c.Status), Amount: c.Amount, Fee: c.Fee,
			Currency: c.Currency, PayerMasked: c.PayerMasked, RequestedAt: c.RequestedAt, NotAfter: c.NotAfter,
			WindowEndsAt: c.WindowEndsAt, Enquiries: int32(c.Enquiries), LastEnquiryAt: c.LastEnquiryAt, //nolint:gosec // small
			NextEnquiryAt: c.NextEnquiryAt, Mismatched: c.Mismatched, OperatorRef: c.OperatorRef, Account: c.Account,
			FailureCode: string(c.FailureCode), DecidedAt: c.DecidedAt,
			RedirectSealed: c.RedirectSealed, Clerk: c.Clerk, ReversedBy: c.ReversedBy, ReversedAt: c.ReversedAt,
			ClosingEnquiryAt: c.ClosingEnquiryAt, ApprovedAt: c.ApprovedAt, ByReference: c.ByReference,
		}
	}
	for _, refusal := range s.Refusals {
		r.Refusals = append(r.Refusals, record.Refusal{CollectionID: refusal.CollectionID, FailureCode: string(refusal.FailureCode), At: refusal.At})
	}
	return r
}

// ToSession converts a session.
func ToSession(r *record.Session) checkout.Session {
	s := checkout.Session{
		ID: r.ID, ApplicationID: r.ApplicationID, TenantID: r.TenantID, Live: r.Livemode, Platform: r.Platform,
		OrderID: r.OrderID, Amount: r.Amount, Currency: r.Currency, Mode: checkout.Mode(r.Mode),
		ServiceCode: r.ServiceCode, ServiceLabel: r.ServiceLabel, Description: r.Description, Note: r.Note,
		CustomerSealed: r.CustomerSealed, Customer: (*checkout.Customer)(r.Customer), CustomerID: r.CustomerID, Metadata: r.Metadata, SuccessURL: r.SuccessURL, CancelURL: r.CancelURL,
		PaymentRef: r.PaymentRef, NoticeID: r.NoticeID, NoticeRef: r.NoticeRef, TransactionID: r.TransactionID,
		ClientSecretHash: r.ClientSecretHash, ClientSecretSealed: r.ClientSecretSealed,
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, EndedAt: r.EndedAt,
		Status: checkout.Status(r.Status), Sequence: r.Sequence,
		FailureCode: checkout.FailureCode(r.FailureCode), FailureMessage: r.FailureMessage, Orphans: r.Orphans,
		Late: r.Late, ReversedAt: r.ReversedAt, ReversalReason: checkout.ReversalReason(r.ReversalReason), ReversalRef: r.ReversalRef, Archived: r.Archived,
		ERP: r.ERP, Cashin: toCashin(r.Cashin), Items: toItems(r.Items), Confirmation: toConfirmation(r.Confirmation), CitizenID: r.CitizenID, PulledAt: r.PulledAt, CancelledBy: checkout.Canceller(r.CancelledBy),
	}
	if len(r.Cases) > 0 {
		s.Cases = make([]checkout.Case, len(r.Cases))
		for i, c := range r.Cases {
			s.Cases[i] = checkout.Case{
				Case: casework.Case{
					ID: c.ID, Kind: casework.Kind(c.Kind), Amount: c.Amount, Currency: c.Currency, Reason: c.Reason, By: c.By,
					OpenedAt: c.OpenedAt, Resolution: casework.Resolution(c.Resolution), Reference: c.Reference, ClosedBy: c.ClosedBy,
					ClosedAt: c.ClosedAt, Proposed: int(c.Proposed), Decided: int(c.Decided),
				},
				CollectionID: c.CollectionID, OperatorRef: c.OperatorRef, Account: c.Account, ApprovedAt: c.ApprovedAt, TransactionID: c.TransactionID,
			}
		}
	}
	if len(r.Offers) > 0 {
		s.Offers = make([]checkout.Offer, len(r.Offers))
		for i, o := range r.Offers {
			s.Offers[i] = checkout.Offer{ID: o.ID, Channel: checkout.Channel(o.Channel), Fee: o.Fee}
		}
	}
	if c := r.Collection; c != nil {
		s.Collection = &checkout.Collection{
			ID: c.ID, OfferID: c.OfferID, Channel: checkout.Channel(c.Channel), Status: checkout.CollectionStatus(c.Status),
			Amount: c.Amount, Fee: c.Fee, Currency: c.Currency, PayerMasked: c.PayerMasked, RequestedAt: c.RequestedAt,
			NotAfter: c.NotAfter, WindowEndsAt: c.WindowEndsAt, Enquiries: int(c.Enquiries), LastEnquiryAt: c.LastEnquiryAt,
			NextEnquiryAt: c.NextEnquiryAt, Mismatched: c.Mismatched, OperatorRef: c.OperatorRef, Account: c.Account,
			FailureCode: checkout.FailureCode(c.FailureCode), DecidedAt: c.DecidedAt,
			RedirectSealed: c.RedirectSealed, Clerk: c.Clerk, ReversedBy: c.ReversedBy, ReversedAt: c.ReversedAt,
			ClosingEnquiryAt: c.ClosingEnquiryAt, ApprovedAt: c.ApprovedAt, ByReference: c.ByReference,
		}
	}
	for _, refusal := range r.Refusals {
		s.Refusals = append(s.Refusals, checkout.Refusal{CollectionID: refusal.CollectionID, FailureCode: checkout.FailureCode(refusal.FailureCode), At: refusal.At})
	}
	return s
}

// FromEvent converts an event without phone numbers, secrets and contact data that nobody
// sealed, because checkout.events keeps it for ever. Sealed contact data become unreadable
// when their data key is deleted (internal/personal). The hash of a client_secret stays: pages recognise
// the holder of the secret with it, and the secret cannot be computed from it.
func FromEvent(e checkout.Event) *record.Event {
	r := &record.Event{
		EventID: e.ID, Type: string(e.Type), SessionID: e.SessionID, Sequence: e.Sequence, OccurredAt: e.OccurredAt, Detail: e.Detail,
	}
	if e.Session.ID != "" {
		s := FromSession(e.Session)
		s.Customer, s.ClientSecretSealed, s.Orphans = nil, nil, nil // Detail names an orphaned collection
		r.Session = &s
	}
	return r
}

// ToEvent converts an event of checkout.events. It lacks what FromEvent leaves out.
func ToEvent(r *record.Event) checkout.Event {
	e := checkout.Event{
		ID: r.EventID, Type: checkout.EventType(r.Type), SessionID: r.SessionID, Sequence: r.Sequence, OccurredAt: r.OccurredAt, Detail: r.Detail,
	}
	if r.Session != nil {
		e.Session = ToSession(r.Session)
		e.Session.Sequence = r.Sequence
	}
	return e
}

// ToConfirmations returns the notifications that have the agency's ERP told of the payments of
// the dues that the event names, told once more, or told no more. All notifications of a
// payment have the same id, its transaction_id, and the same time, that of the payment. They
// are about one delivery, until staff have the ERP told again of what it had accepted. The
// result depends on the event's record only, so that it can be made again from
// checkout.events.
func ToConfirmations(e checkout.Event) ([]*record.Notification, error) {
	var out []*record.Notification
	for _, request := range e.ConfirmationRequests() {
		n, err := notification(e, request.Due.TransactionID, func(e checkout.Event) ([]byte, error) { return payload.Confirmation(e, request.Due) })
		if err != nil {
			return nil, err
		}
		if request.Kind != checkout.RequestConfirm {
			n.Event, n.OccurredAt = string(checkout.EventCompleted), e.Session.EndedAt
			n.Request, n.RequestedAt, n.Again = string(request.Kind), e.OccurredAt, request.Due.Confirmation.Again
		}
		out = append(out, n)
	}
	return out, nil
}

// ToWebhook returns the notification of an event that integrators can subscribe to.
func ToWebhook(e checkout.Event) (*record.Notification, error) {
	return notification(e, e.ID, payload.Webhook)
}

// ToPartner returns the notification of an event of which a partner of the deprecated cash-in
// surface is told without a signature. It names the payment's own address.
func ToPartner(e checkout.Event) (*record.Notification, error) {
	n, err := notification(e, e.ID, payload.Partner)
	if err == nil {
		n.URL = e.Session.Cashin.WebhookURL
	}
	return n, err
}

func notification(e checkout.Event, id string, body func(checkout.Event) ([]byte, error)) (*record.Notification, error) {
	b, err := body(e)
	if err != nil {
		return nil, fmt.Errorf("writing the body of %s: %w", e.Type, err)
	}
	return &record.Notification{
		EventID: id, Event: string(e.Type), ApplicationID: e.Session.ApplicationID, TenantID: e.Session.TenantID,
		SessionID: e.SessionID, Livemode: e.Session.Live, Platform: e.Session.Platform, OccurredAt: e.OccurredAt, Body: b,
	}, nil
}

// FromAnswer converts the answer to the request that waits at to.
func FromAnswer(to checkout.ReplyTo, a checkout.Answer) *record.Reply {
	r := &record.Reply{
		CorrelationID: to.CorrelationID, Code: string(a.Code), Replayed: a.Replayed, Faults: FromFaults(a.Faults),
		RetryAfterMs: a.RetryAfter.Milliseconds(), QuotaLimit: int32(a.QuotaLimit), QuotaRemaining: int32(a.QuotaRemaining), //nolint:gosec // small
		TokenExpiresAt: a.TokenExpiresAt, CaseID: a.CaseID,
	}
	if a.Session != nil {
		s := FromSession(*a.Session)
		r.Session = &s
	}
	return r
}

// ToAnswer converts an answer.
func ToAnswer(r *record.Reply) checkout.Answer {
	a := checkout.Answer{
		Code: checkout.Code(r.Code), Replayed: r.Replayed, Faults: ToFaults(r.Faults),
		RetryAfter: time.Duration(r.RetryAfterMs) * time.Millisecond, QuotaLimit: int(r.QuotaLimit), QuotaRemaining: int(r.QuotaRemaining),
		TokenExpiresAt: r.TokenExpiresAt, CaseID: r.CaseID,
	}
	if r.Session != nil {
		s := ToSession(r.Session)
		a.Session = &s
	}
	return a
}

// FromFaults converts a list of faults. An empty list becomes nil.
func FromFaults(faults []checkout.Fault) []record.Fault {
	if len(faults) == 0 {
		return nil
	}
	out := make([]record.Fault, len(faults))
	for i, f := range faults {
		out[i] = record.Fault{Code: string(f.Code), Field: f.Field, Rule: f.Rule, Message: f.Message}
	}
	return out
}

// ToFaults converts a list of faults. An empty list becomes nil.
func ToFaults(faults []record.Fault) []checkout.Fault {
	if len(faults) == 0 {
		return nil
	}
	out := make([]checkout.Fault, len(faults))
	for i, f := range faults {
		out[i] = checkout.Fault{Code: checkout.Code(f.Code), Field: f.Field, Rule: f.Rule, Message: f.Message}
	}
	return out
}

// FromRequest converts a collection request.
func FromRequest(q checkout.CollectionRequest) *record.CollectionRequest {
	s, c := q.Session, q.Session.Collection
	r := &record.CollectionRequest{
		Kind: string(q.Kind), CollectionID: c.ID, SessionID: s.ID, ApplicationID: s.ApplicationID, TenantID: s.TenantID,
		Livemode: s.Live, OfferID: c.OfferID, Amount: c.Amount, Currency: c.Currency, Account: c.Account, PayerSealed: q.PayerSealed, Payer: q.Payer,
		PaymentRef: s.PaymentRef, Description: s.Description, RequestedAt: q.At, NotAfter: c.NotAfter, WindowEndsAt: c.WindowEndsAt,
		Language: q.Language, ByReference: q.ByReference,
	}
	if q.ByReference {
		r.Description = ""
	}
	if q.Kind == checkout.RequestEnquire {
		r.Enquiry = int32(c.Enquiries) //nolint:gosec // small
	}
	if q.Word != nil {
		r.WordCorrelationID, r.WordPartition = q.Word.CorrelationID, q.Word.Partition
	}
	return r
}
