// Package card is the card acquirer. The citizen pays on a page of the acquirer's
// own, so no card number ever comes near this service.
//
// Acquirers have no protocol in common. This is the one that we ask of an
// acquirer's gateway, or of a small service in front of it: JSON over https, five
// things to do.
//
// # A transaction
//
//	POST {base}/v1/transactions
//	{"merchant": "impots", "reference": "2f6c…", "amount": 507500, "currency": "EUR",
//	 "description": "…", "return_url": "https://…", "callback_url": "https://…",
//	 "expires_at": "2026-03-01T12:05:00Z"}
//
// reference is our collection, a UUID; amount is in minor units of currency, with
// the decimals of contract decisions § 7. The answer is 201:
//
//	{"transaction_id": "T-991", "reference": "2f6c…", "status": "pending",
//	 "url": "https://pay.acquirer.example/T-991?token=…", "client_token": "…",
//	 "checkout_environment": "live"}
//
// The reference makes it idempotent for a merchant. Again with the same amount and
// currency it is 200 with the same transaction, page and token; the addresses, the
// description and the deadline of the first request stay. With another amount or
// currency it is 409 reference_conflict and nothing changes. checkout_environment is
// "test" or "live". transaction_id is at most 64 letters, digits, dots, hyphens and
// underscores. The page sends the citizen to return_url when all is done there, and
// takes nothing more once expires_at has passed.
//
// # Enquiry
//
//	GET {base}/v1/transactions/{reference}?merchant=impots
//	{"transaction_id": "T-991", "reference": "2f6c…", "status": "approved",
//	 "amount": 507500, "currency": "EUR", "reason": "…"}
//
// A reference that the merchant has no transaction of is 404 transaction_not_found.
//
//	pending                the citizen has not finished on the page
//	processing             the acquirer does not know yet
//	approved               the money of amount and currency is the merchant's
//	declined               by the issuer or the acquirer
//	authentication_failed  the card holder's authentication (3-D Secure)
//	abandoned              the citizen gave up on the page
//	expired                expires_at has passed without the citizen's doing
//
// The last five are final. reason is the acquirer's own code of it, such as
// insufficient_funds: small letters and underscores.
//
// # Report
//
// A final transaction is reported by POST to its callback_url with the body of an
// enquiry's answer, signed, until a 2xx comes back.
//
// # Errors
//
// {"code": "…", "message": "…"}; only the code is read. 401 and 403 mean that the
// request was not looked at, 429 that it was not done. See reason.go for the codes
// that refuse a transaction for good.
//
// # Signatures
//
// Requests and reports carry
//
//	Authorization: HMAC-SHA256 merchant="impots", timestamp="1772366400", signature="9f86d0…"
//
// timestamp is in seconds of Unix time and within five minutes of the reader's
// clock. merchant is printable ASCII without quotation marks and backslashes.
// signature is the HMAC-SHA256 in hexadecimal, under the secret that merchant and
// acquirer share, of these lines, joined by line feeds without one at the end:
//
//	of a request             of a report
//
//	request                  report
//	{merchant}               {merchant}
//	{timestamp}              {timestamp}
//	{METHOD}                 {SHA-256 of the body, in hexadecimal}
//	{path and query as sent}
//	{SHA-256 of the body, in hexadecimal}
//
// The first line keeps a request from passing for a report. A report's signature
// need not cover its address: its body names the reference.
package card

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/connector"
)

// Operator is the operator's short name.
const Operator = "card"

const transactionsPath = "/v1/transactions"

// Registration is the acquirer as the service knows it.
var Registration = connector.Registration{
	Operator: Operator,
	Offer:    checkout.OfferCard,
	Account: func(base connector.BaseURL, f connector.Fields) connector.Account {
		return Account{BaseURL: base, Merchant: f.Text("merchant"), Secret: f.Secret("secret").Reveal(), XAF: f.Flag("xaf")}
	},
	// Cards take the contract's list of currencies, and XAF where the agency's
	// acquirer takes it (decisions § 7).
	Takes: func(account connector.Account, currency money.Currency) bool {
		a, _ := account.(Account)
		return currency.Card() || currency.Code() == money.Default && a.XAF
	},
	Simulated: func(_, agencySlug string) map[string]string {
		return map[string]string{"merchant": agencySlug, "secret": "simulator"}
	},
	New: func(cfg connector.Config) (connector.Connector, error) { return New(cfg) },
}

// Account is an agency's account with an acquirer.
type Account struct {
	connector.BaseURL
	Merchant string
	Secret   string
	// XAF says that the acquirer takes XAF beside the contract's list.
	XAF bool
}

// Fingerprint is of the merchant. The empty parts are in the fingerprints of
// collections since the first release.
func (a Account) Fingerprint() string {
	return connector.Fingerprint(a.BaseURL, "", "", a.Merchant)
}

// Connector speaks to acquirers. Safe for concurrent use.
type Connector struct{ *connector.Base[Account] }

var _ connector.ReportVerifier = (*Connector)(nil)

// New makes a Connector. It signs with, and judges signatures by, cfg.Timestamp.
func New(cfg connector.Config) (*Connector, error) {
	base, err := connector.NewBase[Account](Operator, cfg, nil)
	return &Connector{base}, err
}

// Collect is POST /v1/transactions. A new transaction is pending, with the page on
// which the citizen pays; the same request again has the same page. What the answer
// says of the money decides nothing: the acquirer is asked. A reference that it
// knows with another amount is asked about as well, and has no page.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	own, err := c.Own(account)
	if err != nil {
		return connector.Outcome{}, err
	}
	body, err := toTransaction(own, r)
	if err != nil {
		return connector.Outcome{}, connector.Malformed(doing, err)
	}
	a, err := c.signed(ctx, own, connector.Call{Doing: doing, Method: http.MethodPost, Path: transactionsPath, Body: body})
	if err != nil {
		return connector.Outcome{}, err
	}
	ref := connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
	switch a.Status {
	case http.StatusCreated, http.StatusOK:
		o, err := connector.ReadOutcome(a, doing, func(m created) (connector.Outcome, error) { return toPending(m, r.ID) })
		switch {
		case err != nil:
			return connector.Outcome{}, connector.WithSent(err, true)
		case o.Redirect != nil:
			return o, nil
		}
		return connector.OfKnown(c.Enquire(ctx, account, ref)), nil
	case http.StatusConflict:
		return connector.OfKnown(c.Enquire(ctx, account, ref)), nil
	}
	refusal, definite := refusalOfRequest(a)
	if !definite {
		return connector.Outcome{}, a.Fault(doing, true, errorCode(a))
	}
	known, err := c.Enquire(ctx, account, ref)
	return connector.OfRefused(refusal, known, err)
}

// Enquire is GET /v1/transactions/{reference}, at most EnquiriesPerSecond of an
// account. It never returns a redirect.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	own, err := c.AwaitEnquiry(ctx, account, doing)
	if err != nil {
		return connector.Outcome{}, err
	}
	path := transactionsPath + "/" + url.PathEscape(ref.ID) + "?merchant=" + url.QueryEscape(own.Merchant)
	a, err := c.signed(ctx, own, connector.Call{Doing: doing, Method: http.MethodGet, Path: path})
	if err != nil {
		return connector.Outcome{}, err
	}
	switch {
	case a.Status == http.StatusNotFound && errorCode(a) == notFound:
		// Only the acquirer's own word means that there is no such payment: a gateway
		// that knows no such path answers 404 as well.
		return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: notFound}, nil
	case a.Status != http.StatusOK:
		return connector.Outcome{}, a.Fault(doing, false, errorCode(a))
	}
	return connector.ReadOutcome(a, doing, func(m state) (connector.Outcome, error) {
		if m.Reference != ref.ID {
			return connector.Outcome{}, errAnotherPayment
		}
		return toOutcome(m)
	})
}

// ParseReport reads the body of a report. Whether the acquirer signed it is
// VerifyReport's to say.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	return connector.ReadReport("the acquirer", body, func(m state) (connector.Report, error) {
		if m.Reference == "" {
			return connector.Report{}, errors.New("it names no reference")
		}
		o, err := toOutcome(m)
		return connector.Report{ID: m.Reference, Outcome: o}, err
	})
}

// VerifyReport says whether the account's acquirer signed the report within five
// minutes of now. It does not look at what the report says: that it is about the
// collection of its address is the caller's to check.
func (c *Connector) VerifyReport(account connector.Account, header http.Header, body []byte) error {
	own, err := c.Own(account)
	if err != nil {
		return fmt.Errorf("%w: %w", connector.ErrSignature, err)
	}
	return verify(own, header, body, c.Timestamp())
}

// signed makes a call with the account's signature.
func (c *Connector) signed(ctx context.Context, account Account, q connector.Call) (connector.Answer, error) {
	authorization, err := sign(account, c.Timestamp(), q.Method, account.At(q.Path), q.Body)
	if err != nil {
		return connector.Answer{}, &connector.Error{Doing: q.Doing, Fault: connector.FaultCredentials, Err: err}
	}
	q.Header = map[string]string{"Authorization": authorization, "Accept": "application/json"}
	return c.Do(ctx, account, q)
}
