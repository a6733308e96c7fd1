// Package card is the connector of card acquirers. The citizen pays on a page of the
// acquirer, so this service never receives a card number.
//
// Acquirers have no common protocol. This service expects the following protocol, JSON
// over https, from an acquirer's gateway or from a small service in front of it.
//
// # A transaction
//
//	POST {base}/v1/transactions
//	{"merchant": "impots", "reference": "2f6c…", "amount": 507500, "currency": "EUR",
//	 "description": "…", "return_url": "https://…", "callback_url": "https://…",
//	 "expires_at": "2026-03-01T12:05:00Z"}
//
// reference is our collection, a UUID; amount is in minor units of currency, with
// the decimals of contract docs/design/decisions.md § 7. description has at most 200 characters. The answer
// is 201:
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
// underscores. The page sends the citizen to return_url at the end, and accepts no payment
// after expires_at.
//
// # Enquiry
//
//	GET {base}/v1/transactions/{reference}?merchant=impots
//	{"transaction_id": "T-991", "reference": "2f6c…", "status": "approved",
//	 "amount": 507500, "currency": "EUR", "reason": "…", "approved_at": "2026-03-01T12:03:10Z"}
//
// A reference that the merchant has no transaction of is 404 transaction_not_found.
//
//	pending                the citizen has not finished on the page
//	processing             the acquirer does not know yet
//	approved               the money of amount and currency is the merchant's
//	declined               by the issuer or the acquirer
//	authentication_failed  the card holder's authentication (3-D Secure)
//	abandoned              the citizen gave up on the page
//	expired                expires_at has passed and the citizen has done nothing
//
// The last five are final. reason is the acquirer's code for the status, such as
// insufficient_funds: small letters and underscores. approved_at is the date of an
// approval. Without it, late money is held even where the agency honours it.
//
// # Report
//
// The acquirer reports a final transaction by POST to its callback_url. The body is that
// of the answer to an enquiry, signed. The acquirer repeats the report until the answer is
// a 2xx.
//
// # Errors
//
// An error is {"code": "…", "message": "…"}. The service reads only the code. 401, 403 and
// 429 mean that the acquirer has done nothing. See reason.go for the codes of definite
// refusals.
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
// The first line prevents the use of a request's signature for a report. A report's
// signature need not cover its address, because its body names the reference.
package card

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/money"
)

// Operator is the operator's short name.
const Operator = "card"

const transactionsPath = "/v1/transactions"

// Registration is the registration of the acquirer.
var Registration = connector.Registration{
	Operator: Operator,
	Collector: &connector.Collector{
		Account: connector.AccountType{
			Name: "card",
			Read: func(base connector.BaseURL, f connector.Fields) connector.Account {
				return Account{BaseURL: base, Merchant: f.Text("merchant"), Secret: f.Secret("secret").Reveal(), ReportSecret: f.ReportSecret("report_secret").Reveal(), XAF: f.Flag("xaf")}
			},
			Simulated: func(_, agencySlug string) map[string]string {
				return map[string]string{"merchant": agencySlug, "secret": "simulator", "report_secret": "simulator"}
			},
		},
		// Cards take the contract's list of currencies, and XAF where the agency's
		// acquirer takes it (docs/design/decisions.md § 7).
		Takes: func(account connector.Account, currency money.Currency) bool {
			a, _ := account.(Account)
			return currency.Card() || currency.Code() == money.Default && a.XAF
		},
		New: func(cfg connector.Config) (connector.Connector, error) { return New(cfg) },
	},
}

// Account is an agency's account with an acquirer.
type Account struct {
	connector.BaseURL
	Merchant string
	Secret   string
	// ReportSecret signs the acquirer's reports; Secret does so when it is empty. With one of its own the
	// ingress can verify reports without the secret that signs requests.
	ReportSecret string
	// XAF says that the acquirer takes XAF beside the contract's list.
	XAF bool
}

// Fingerprint is of the merchant. An account names no environment: a test account and a
// live one are different accounts of the agency. An agency that moves to another acquirer
// must not keep the merchant's name there: it is another account.
func (a Account) Fingerprint() string { return connector.Fingerprint(Operator, "", a.Merchant) }

// EarlierFingerprint is of the address too.
func (a Account) EarlierFingerprint() string {
	return connector.EarlierFingerprint(a.BaseURL, "", "", a.Merchant)
}

// Connector speaks to acquirers. Safe for concurrent use.
type Connector struct{ *connector.Base[Account] }

var _ connector.ReportVerifier = (*Connector)(nil)

// New makes a Connector. It uses cfg.Timestamp to make and to verify signatures.
func New(cfg connector.Config) (*Connector, error) {
	base, err := connector.NewBase[Account](Operator, cfg, nil)
	return &Connector{base}, err
}

// Collect is POST /v1/transactions. A new transaction is pending, with the page on which
// the citizen pays. The same request again returns the same page. A final status in the
// answer decides nothing: Collect enquires. Collect also enquires when the acquirer knows
// the reference with another amount; the outcome has no page then.
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
		// Only the acquirer's own code means that there is no such payment. A gateway without
		// such a path answers 404 too.
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

// ParseReport reads the body of a report. It does not check the signature, see
// VerifyReport.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	return connector.ReadReport("the acquirer", body, func(m state) (connector.Report, error) {
		if m.Reference == "" {
			return connector.Report{}, errors.New("it names no reference")
		}
		o, err := toOutcome(m)
		return connector.Report{ID: m.Reference, Outcome: o}, err
	})
}

// VerifyReport returns nil when the account's acquirer signed the report within five
// minutes of now. It does not read the report. The caller checks that the report names
// the collection of its address.
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
