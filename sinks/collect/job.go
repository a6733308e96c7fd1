package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/kafka/consume"
	"quittance/internal/personal"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/sinks/calls"
)

const (
	kindCollect = calls.Kind(checkout.RequestCollect)
	kindEnquire = calls.Kind(checkout.RequestEnquire)

	// oldAfter is the time after not_after at which a request is too old to be
	// processed. It is longer than any approval window.
	oldAfter = 15 * time.Minute
)

// environmentLive is the checkout_environment of real money.
const environmentLive = "live"

// errNoAccount is the error of an agency that does not have the merchant account.
var errNoAccount = &connector.Error{Doing: "finding the agency's account", Fault: connector.FaultCredentials, Err: errors.New("the agency has no account, or not the one that the collection began with")}

// errReplaced is the error of an agency that has another merchant account now.
var errReplaced = &connector.Error{Doing: "finding the agency's account", Fault: connector.FaultCredentials, Err: errors.New("the agency has replaced the account that the collection began with")}

// job is one record in hand.
type job struct {
	sink      *Sink
	request   record.CollectionRequest
	connector connector.Connector
	account   connector.Account // of the next call
	payer     string            // the opened number
	noPayee   bool              // the agency had no account, or another one, at some try to ask for the money
}

// About describes the request.
func (j *job) About() calls.About {
	q := &j.request
	about := calls.About{
		Kind: calls.Kind(q.Kind), ID: q.CollectionID, TenantID: q.TenantID, Live: q.Livemode, Enquiry: q.Enquiry, NotAfter: q.NotAfter,
	}
	if j.connector != nil {
		about.Operator = j.connector.Operator()
	}
	return about
}

// Old reports whether a later enquiry of the processor has been due for oldAfter. The
// processor enquires until the payment is final, so an old record needs neither a call
// nor a report. After a loss of the group's offsets a week of old records is read again,
// and current requests would wait behind them.
//
// The first enquiry follows a request for money within seconds. Later intervals grow up
// to a day. An interval is at most five times as long as the time from not_after to the
// enquiry before it.
func (j *job) Old() bool {
	q := &j.request
	now := j.sink.cfg.Now()
	if calls.Kind(q.Kind) == kindCollect {
		return now.Sub(q.NotAfter) > oldAfter
	}
	next := min(5*max(0, q.RequestedAt.Sub(q.NotAfter)), 24*time.Hour)
	return now.Sub(q.RequestedAt) > oldAfter+next
}

// errInvariant is the error of a record that no processor of this version writes.
var errInvariant = fmt.Errorf("not a collection request of this version: %w", consume.ErrRefused)

// check validates the request and finds its connector.
func (j *job) check() error {
	q := &j.request
	c, ok := j.sink.cfg.Connectors[q.OfferID]
	switch {
	case calls.Kind(q.Kind) != kindCollect && calls.Kind(q.Kind) != kindEnquire:
		return fmt.Errorf("kind %q: %w", q.Kind, errInvariant)
	case !ok:
		return fmt.Errorf("offer %q has no connector: %w", q.OfferID, errInvariant)
	case q.CollectionID == "" || q.SessionID == "" || q.ApplicationID == "" || q.TenantID == "":
		return fmt.Errorf("an id is empty: %w", errInvariant)
	case q.Amount <= 0 || q.Currency == "":
		return fmt.Errorf("no amount: %w", errInvariant)
	}
	j.connector = c
	return nil
}

// redirects reports whether the payer continues on the operator's own page. Only the
// answer to the request contains the page's address, so the request is repeated until
// it is answered.
func (j *job) redirects() bool {
	_, reachesPayers := j.connector.(connector.PayerReader)
	return !reachesPayers
}

// Settles reports whether an answer to an enquiry ends the asking: the operator has the
// request, and the payer needs no address that only the answer to the request has.
func (j *job) Settles(o connector.Outcome) bool {
	return o.Status != checkout.OutcomeUnknown && (o.Decided() || !j.redirects())
}

// Confirms reports false: a refusal of a request for money moves none later.
func (j *job) Confirms(connector.Outcome) bool { return false }

// Confirm is not called.
func (j *job) Confirm(o connector.Outcome, _ *connector.Outcome) connector.Outcome { return o }

// Unsendable reports whether the payer's number stays unreadable: an erasure or an older
// database took its key.
func (j *job) Unsendable(err error) bool { return errors.Is(err, personal.ErrErased) }

// Status returns the status of an answer.
func (j *job) Status(o connector.Outcome) string { return string(o.Status) }

// Prepare finds the account, and opens the payer's number to ask for the money.
func (j *job) Prepare(h *calls.Hand, kind calls.Kind) (err error) {
	var replaced bool
	j.account, replaced, err = j.find(h)
	if kind == kindEnquire {
		return err
	}
	if err == nil && replaced {
		err = errReplaced
	}
	if err != nil {
		j.noPayee = true
		return err
	}
	return j.open(h)
}

// Ask asks the operator for the money.
func (j *job) Ask(ctx context.Context) (connector.Outcome, error) {
	q := &j.request
	return j.connector.Collect(ctx, j.account, connector.Request{
		ID: q.CollectionID, Payer: j.payer, Amount: q.Amount, Currency: q.Currency,
		PaymentRef: q.PaymentRef, Description: q.Description,
		CallbackURL: connector.CallbackURL(j.sink.cfg.Signer, j.sink.cfg.PublicURL, j.connector.Operator(), q.SessionID, q.CollectionID),
		ReturnURL:   j.returnURL(), ExpiresAt: q.WindowEndsAt,
	})
}

// Enquire asks the operator about the collection.
func (j *job) Enquire(ctx context.Context) (connector.Outcome, error) {
	q := &j.request
	return j.connector.Enquire(ctx, j.account, connector.Reference{ID: q.CollectionID, Amount: q.Amount, Currency: q.Currency})
}

// open opens the payer's number. Requests of earlier versions have it in plain. While it
// cannot be opened, nothing is sent. The error wraps what Config.Payer returns.
func (j *job) open(ctx context.Context) (err error) {
	q := &j.request
	if j.payer = q.Payer; len(q.PayerSealed) == 0 {
		return nil
	}
	if j.payer, err = j.sink.cfg.Payer(ctx, q.SessionID, q.PayerSealed); err != nil {
		return &connector.Error{Doing: connector.DoingOpenPayer, Fault: connector.FaultNetwork, Err: err}
	}
	return nil
}

// returnURL returns the address of the citizen's page, in the citizen's language. Somebody who
// knows the payment reference only must not learn the session's id from it.
func (j *job) returnURL() string {
	address := j.sink.cfg.CheckoutURL + "/c/" + j.request.SessionID
	if j.request.ByReference {
		address = j.sink.cfg.CheckoutURL + "/p/" + j.request.PaymentRef
	}
	address += "?" + connector.QueryReturned
	if j.request.Language != "" {
		address += "&lang=" + url.QueryEscape(j.request.Language)
	}
	return address
}

// find returns the merchant account that the collection names. Any other account does
// not have this collection, and its answer "unknown" would be wrong. When the account is
// unknown, nobody can ask about the collection: each record is counted and logged.
func (j *job) find(h *calls.Hand) (account connector.Account, replaced bool, err error) {
	q := &j.request
	account, replaced, ok := j.sink.cfg.Account(q.TenantID, q.Livemode, q.OfferID, q.Account)
	if ok {
		return account, replaced, nil
	}
	if h.NoAccount() {
		j.sink.cfg.Log.LogAttrs(h, slog.LevelError, "the merchant account of a collection is unknown or locked: the operator cannot be asked",
			slog.String("operator", j.connector.Operator()), slog.String("kind", q.Kind), slog.String("collection_id", q.CollectionID),
			slog.String("tenant_id", q.TenantID), slog.Bool("livemode", q.Livemode), slog.String("account", q.Account))
	}
	return nil, false, errNoAccount
}

// report writes the operator's answer as a command, if it changes anything. It returns
// the name of the outcome.
func (j *job) report(h *calls.Hand, o connector.Outcome, source checkout.Source) string {
	q := &j.request
	j.sink.cfg.Log.LogAttrs(h, slog.LevelDebug, "operator answered",
		slog.String("operator", j.connector.Operator()), slog.String("kind", q.Kind), slog.String("collection_id", q.CollectionID),
		slog.String("status", string(o.Status)), slog.String("reason", o.Reason))
	var do checkout.Action
	var err error
	switch o.Status {
	case checkout.OutcomePending, checkout.OutcomeAmbiguous:
		if j.closing() {
			// The session waits for this answer before it fails.
			do = checkout.Outcome{CollectionID: q.CollectionID, Source: source, Status: o.Status, AskedAt: q.RequestedAt}
			break
		}
		if o.Redirect == nil {
			return string(o.Status)
		}
		if (o.Redirect.Environment == environmentLive) != q.Livemode {
			// The account is of the other mode: a live payment would move no money, or a
			// test would take real money. No payer has the address of the page, so nobody
			// can pay there.
			j.sink.cfg.Log.LogAttrs(h, slog.LevelError, "the agency's account is of the other mode (test or live)",
				slog.String("operator", j.connector.Operator()), slog.String("tenant_id", q.TenantID), slog.Bool("livemode", q.Livemode),
				slog.String("environment", o.Redirect.Environment))
			return j.report(h, connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailurePayeeUnavailable, Reason: "other_mode"}, source)
		}
		var sealed []byte
		sealed, err = connector.SealRedirect(j.sink.cfg.Sealer, q.SessionID, q.CollectionID, *o.Redirect)
		do = checkout.Redirected{CollectionID: q.CollectionID, Sealed: sealed}
	case checkout.OutcomeApproved, checkout.OutcomeRefused, checkout.OutcomeUnknown:
		outcome := checkout.Outcome{
			CollectionID: q.CollectionID, Source: source, Status: o.Status, Amount: o.Amount, Currency: o.Currency,
			OperatorRef: o.OperatorRef, FailureCode: o.FailureCode, ApprovedAt: o.ApprovedAt,
			HonourLate: j.sink.cfg.HonoursLate != nil && j.sink.cfg.HonoursLate(q.TenantID), Account: q.Account,
		}
		if calls.Kind(q.Kind) == kindEnquire {
			outcome.AskedAt = q.RequestedAt
		}
		do = outcome
	}
	if err == nil {
		err = j.command(h, do)
	}
	return h.Reported(string(o.Status), err)
}

// command writes a command about the request's session; its errors are those of
// calls.Hand.Command.
func (j *job) command(h *calls.Hand, do checkout.Action) error {
	q := &j.request
	command, err := mapping.FromCommand(checkout.Command{
		At: j.sink.cfg.Now(), TenantID: q.TenantID, SessionID: q.SessionID, ApplicationID: q.ApplicationID, Live: q.Livemode, Do: do,
	})
	if err != nil {
		return err
	}
	return h.Command(schemas.TopicCommands, q.TenantID, command)
}

// closing reports whether the request is an enquiry that was requested after the
// approval window.
func (j *job) closing() bool {
	q := &j.request
	return calls.Kind(q.Kind) == kindEnquire && !q.WindowEndsAt.IsZero() && !q.RequestedAt.Before(q.WindowEndsAt)
}
