// Package mapping converts between the domain (package checkout) and the records of the
// topics (package schemas/record). It decides nothing. An unknown type of command is an
// error. Program gen generates the conversions that copy field for field.
package mapping

//go:generate go run ./gen

import (
	"fmt"
	"time"

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
	CommandCredit       = "statement.credit"
	CommandCreditGone   = "statement.credit_withdrawn"
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
		r.Type, r.Create = CommandCreate, new(fromCreate(do))
	case checkout.Cancel:
		r.Type, r.By = CommandCancel, string(do.By)
	case checkout.Erase:
		r.Type, r.By = CommandErase, do.By
	case checkout.Collect:
		r.Type, r.Collect = CommandCollect, new(fromCollect(do))
	case checkout.Outcome:
		r.Type, r.Outcome = CommandOutcome, new(fromOutcome(do))
	case checkout.Enquire:
		r.Type, r.Outcome = CommandEnquire, &record.CollectionOutcome{CollectionID: do.CollectionID}
	case checkout.Redirected:
		r.Type, r.Redirect = CommandRedirected, new(fromRedirected(do))
	case checkout.Reserve, checkout.Take, checkout.Release, checkout.Reverse:
		r.Type, r.Counter = fromClerk(do)
	case checkout.IssueToken:
		r.Type, r.Token = CommandIssueToken, new(fromIssueToken(do))
	case checkout.ConsumeToken:
		r.Type, r.Token = CommandConsumeToken, new(fromConsumeToken(do))
	case checkout.OpenRefundRequest:
		r.Type, r.Case = CommandRefund, new(fromOpenRefundRequest(do))
	case checkout.Resolve:
		r.Type, r.Case = CommandResolve, new(fromResolve(do))
	case checkout.NoteProposal:
		r.Type, r.Case = CommandNoteProposal, new(fromNoteProposal(do))
	case checkout.Confirmed:
		r.Type, r.Confirmed = CommandConfirmed, new(fromConfirmed(do))
	case checkout.Credit:
		r.Type, r.Credit = CommandCredit, new(fromCredit(do))
	case checkout.CreditWithdrawn:
		r.Type, r.Credit = CommandCreditGone, new(fromCreditWithdrawn(do))
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
		c.Do = toCreate(r.Create)
	case r.Type == CommandCancel:
		c.Do = checkout.Cancel{By: checkout.Canceller(r.By)}
	case r.Type == CommandErase:
		c.Do = checkout.Erase{By: r.By}
	case r.Type == CommandCollect && r.Collect != nil:
		c.Do = toCollect(r.Collect)
	case r.Type == CommandOutcome && r.Outcome != nil:
		c.Do = toOutcome(r.Outcome)
	case r.Type == CommandEnquire && r.Outcome != nil:
		c.Do = checkout.Enquire{CollectionID: r.Outcome.CollectionID}
	case r.Type == CommandRedirected && r.Redirect != nil:
		c.Do = toRedirected(r.Redirect)
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
		c.Do = toIssueToken(r.Token)
	case r.Type == CommandConsumeToken && r.Token != nil:
		c.Do = toConsumeToken(r.Token)
	case r.Type == CommandRefund && r.Case != nil:
		c.Do = toOpenRefundRequest(r.Case)
	case r.Type == CommandResolve && r.Case != nil:
		c.Do = toResolve(r.Case)
	case r.Type == CommandNoteProposal && r.Case != nil:
		c.Do = toNoteProposal(r.Case)
	case r.Type == CommandConfirmed && r.Confirmed != nil:
		c.Do = toConfirmed(r.Confirmed)
	case r.Type == CommandCredit && r.Credit != nil:
		c.Do = toCredit(r.Credit)
	case r.Type == CommandCreditGone && r.Credit != nil:
		c.Do = toCreditWithdrawn(r.Credit)
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

// FromEvent converts an event without phone numbers, secrets and contact data that nobody
// sealed, because checkout.events keeps it for ever. Sealed contact data become unreadable
// when their data key is deleted (internal/personal). The hash of a client_secret stays: pages recognise
// the holder of the secret with it, and the secret cannot be computed from it.
func FromEvent(e checkout.Event) *record.Event {
	r := &record.Event{
		EventID: e.ID, Type: string(e.Type), SessionID: e.SessionID, Sequence: e.Sequence, OccurredAt: e.OccurredAt, Detail: e.Detail,
	}
	if e.Session.ID != "" {
		r.Session = new(FromSession(e.Session))
		r.Session.Customer, r.Session.ClientSecretSealed, r.Session.Orphans = nil, nil, nil // Detail names an orphaned collection
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

// Reply returns the answer to the request that waits at to.
func Reply(to checkout.ReplyTo, a checkout.Answer) *record.Reply {
	r := FromAnswer(a)
	r.CorrelationID = to.CorrelationID
	return &r
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
