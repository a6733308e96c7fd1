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
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/internal/connector"
)

// Operator is the operator's short name.
const Operator = "card"

const (
	defaultTimeout   = 20 * time.Second
	defaultRate      = 10
	transactionsPath = "/v1/transactions"
)

// Config of a Connector.
type Config struct {
	// Now is the machine's time in UTC, never a developer's clock that jumps:
	// signatures carry it and are judged by it. Required.
	Now func() time.Time
	// Timeout of one HTTP call, dialling and answer included; 20 s when zero.
	Timeout time.Duration
	// EnquiriesPerSecond of one account; 10 when zero.
	EnquiriesPerSecond float64
}

// Connector speaks to acquirers. Safe for concurrent use.
type Connector struct {
	cfg    Config
	client *connector.Client

	mu        sync.Mutex
	enquiries map[string]*rate.Limiter // by the account's fingerprint
}

var (
	_ connector.Collector      = (*Connector)(nil)
	_ connector.ReportVerifier = (*Connector)(nil)
)

// New makes a Connector.
func New(cfg Config) (*Connector, error) {
	if cfg.Now == nil {
		return nil, errors.New("card: Now is required")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.EnquiriesPerSecond = cmp.Or(cfg.EnquiriesPerSecond, defaultRate)
	if cfg.Timeout < 0 || cfg.EnquiriesPerSecond < 0 {
		return nil, errors.New("card: Timeout and EnquiriesPerSecond must not be negative")
	}
	return &Connector{cfg: cfg, client: connector.NewClient(cfg.Timeout), enquiries: map[string]*rate.Limiter{}}, nil
}

// Operator is "card".
func (c *Connector) Operator() string { return Operator }

// Collect is POST /v1/transactions. A new transaction is pending, with the page on
// which the citizen pays; the same request again has the same page. What the answer
// says of the money decides nothing: the acquirer is asked. A reference that it
// knows with another amount is asked about as well, and has no page.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	var body []byte
	message, err := toTransaction(account, r)
	if err == nil {
		body, err = json.Marshal(message)
	}
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	a, err := c.signed(ctx, account, doing, http.MethodPost, transactionsPath, body)
	if err != nil {
		return connector.Outcome{}, err
	}
	ref := connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
	switch a.Status {
	case http.StatusCreated, http.StatusOK:
		var m created
		var o connector.Outcome
		if err = a.Decode(&m); err == nil {
			o, err = toPending(m, r.ID)
		}
		if err != nil {
			return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Sent: true, Err: err}
		}
		if o.Redirect == nil {
			return c.known(ctx, account, ref), nil
		}
		return o, nil
	case http.StatusConflict:
		return c.known(ctx, account, ref), nil
	}
	refusal, definite := refusalOfRequest(a)
	if !definite {
		return connector.Outcome{}, a.Fault(doing, true, errorCode(a))
	}
	// The acquirer refuses the request itself. An earlier one of the same reference,
	// whose answer was lost, may have been taken all the same.
	earlier, err := c.Enquire(ctx, account, ref)
	if err != nil {
		return connector.Outcome{}, connector.WithSent(err, true)
	}
	if earlier.Status != checkout.OutcomeUnknown {
		return earlier, nil
	}
	return refusal, nil
}

// known is what the acquirer says of a transaction that it has. What became of it
// may not be to be had just now, or not everywhere yet: it is asked about later anyway.
func (c *Connector) known(ctx context.Context, account connector.Account, ref connector.Reference) connector.Outcome {
	o, err := c.Enquire(ctx, account, ref)
	if err != nil || o.Status == checkout.OutcomeUnknown {
		return connector.Outcome{Status: checkout.OutcomePending}
	}
	return o
}

// Enquire is GET /v1/transactions/{reference}, at most EnquiriesPerSecond of an
// account. It never returns a redirect.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	if err := c.limiter(account).Wait(ctx); err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultBusy, Err: err}
	}
	path := transactionsPath + "/" + url.PathEscape(ref.ID) + "?merchant=" + url.QueryEscape(account.Merchant)
	a, err := c.signed(ctx, account, doing, http.MethodGet, path, nil)
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
	var m state
	var o connector.Outcome
	if err = a.Decode(&m); err == nil {
		if m.Reference != ref.ID {
			err = errors.New("the answer is about another payment")
		} else {
			o, err = toOutcome(m)
		}
	}
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	return o, nil
}

// ParseReport reads the body of a report. Whether the acquirer signed it is
// VerifyReport's to say.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	var m state
	var o connector.Outcome
	err := connector.DecodeReport(body, &m)
	if err == nil {
		o, err = toOutcome(m)
	}
	if err == nil && m.Reference == "" {
		err = errors.New("it names no reference")
	}
	if err != nil {
		return connector.Report{}, fmt.Errorf("reading the acquirer's report: %w: %w", connector.ErrReport, err)
	}
	return connector.Report{ID: m.Reference, Outcome: o}, nil
}

// VerifyReport says whether the account's acquirer signed the report within five
// minutes of now. It does not look at what the report says: that it is about the
// collection of its address is the caller's to check.
func (c *Connector) VerifyReport(account connector.Account, header http.Header, body []byte) error {
	return verify(account, header, body, c.cfg.Now())
}

// signed makes a call below the account's address.
func (c *Connector) signed(ctx context.Context, account connector.Account, doing, method, path string, body []byte) (connector.Answer, error) {
	address := strings.TrimRight(account.BaseURL, "/") + path
	authorization, err := sign(account, c.cfg.Now(), method, address, body)
	if err != nil {
		return connector.Answer{}, &connector.Error{Doing: doing, Fault: connector.FaultCredentials, Err: err}
	}
	header := map[string]string{"Authorization": authorization, "Accept": "application/json"}
	if body != nil {
		header["Content-Type"] = "application/json"
	}
	return c.client.Do(ctx, connector.Call{Doing: doing, Method: method, URL: address, Body: body, Header: header})
}

func (c *Connector) limiter(account connector.Account) *rate.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := account.Fingerprint()
	l := c.enquiries[id]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(c.cfg.EnquiriesPerSecond), 1)
		c.enquiries[id] = l
	}
	return l
}
