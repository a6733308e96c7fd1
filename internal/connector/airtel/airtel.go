// Package airtel is mobile money B: Airtel Money merchant payments, Congo.
//
// The protocol in short: a token for the merchant's application (OAuth2 client
// credentials, three minutes), then POST /merchant/v1/payments/ with our id as
// transaction.id, which makes the payer's phone ask for the PIN; then GET
// /standard/v1/payments/{id} until it is TS (success), TF (failed) or TE
// (expired). TIP (in progress) and TA (ambiguous) are no decision, and nor is
// anything that the answer to the request says: it tells that the phone was
// asked, whatever word stands there.
//
// What differs from other operators:
//
//   - Ids are letters and digits: our UUID without its dashes.
//   - The payer's number is national, with its 0 and without the country code.
//   - Neither answers nor callbacks name an amount. An id stands for the one
//     amount that it was asked with, so that is what an approval is of.
//   - A callback names no reason either, and comes once. It makes us ask
//     (connector.Report.Ask). In Airtel's public protocol a merchant's callbacks
//     have one address, set in its portal, which cannot tell the session: our
//     address travels in X-Callback-Url for gateways that honour it. Without
//     callbacks every payment is found by enquiry.
//
// Public descriptions: https://developers.airtel.cg (Collection APIs).
package airtel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/internal/connector"
)

// Operator is the operator's short name.
const Operator = "airtel"

const (
	country  = "CG"
	currency = "XAF"

	defaultTimeout = 20 * time.Second
	defaultRate    = 10
	tokenPath      = "/auth/oauth2/token" //nolint:gosec // an address
	paymentsPath   = "/merchant/v1/payments/"
	enquiryPath    = "/standard/v1/payments/"
)

// Config of a Connector.
type Config struct {
	// Now is the time in UTC; tokens live by it. Required.
	Now func() time.Time
	// Timeout of one HTTP call, dialling and answer included; 20 s when zero.
	Timeout time.Duration
	// EnquiriesPerSecond of one account; 10 when zero.
	EnquiriesPerSecond float64
}

// Connector speaks Airtel Money. Safe for concurrent use.
type Connector struct {
	cfg    Config
	client *connector.Client

	mu       sync.Mutex
	accounts map[connector.Account]*session
}

var _ connector.Collector = (*Connector)(nil)

// session is what we keep of one account: in memory, and worth nothing.
type session struct {
	tokens    connector.Tokens
	enquiries *rate.Limiter
}

// New makes a Connector.
func New(cfg Config) (*Connector, error) {
	if cfg.Now == nil {
		return nil, errors.New("airtel: Now is required")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.EnquiriesPerSecond = cmp.Or(cfg.EnquiriesPerSecond, defaultRate)
	if cfg.Timeout < 0 || cfg.EnquiriesPerSecond < 0 {
		return nil, errors.New("airtel: Timeout and EnquiriesPerSecond must not be negative")
	}
	return &Connector{cfg: cfg, client: connector.NewClient(cfg.Timeout), accounts: map[connector.Account]*session{}}, nil
}

// Operator is "airtel".
func (c *Connector) Operator() string { return Operator }

// Payer takes Congolese numbers of Airtel, which start with 05, or with 04 where
// they were Warid's, whose network is Airtel's now.
func (c *Connector) Payer(input string) (string, error) {
	return connector.CongoPayer(input, "05", "04")
}

func (c *Connector) session(a connector.Account) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.accounts[a]
	if s == nil {
		s = &session{enquiries: rate.NewLimiter(rate.Limit(c.cfg.EnquiriesPerSecond), 1)}
		s.tokens.Now = c.cfg.Now
		s.tokens.Issue = func(ctx context.Context) (connector.Token, error) { return c.issue(ctx, a) }
		c.accounts[a] = s
	}
	return s
}

// Collect is POST /merchant/v1/payments/, in XAF only. It never returns an
// approval of the request's own answer: that proves nothing. An id that Airtel
// knows already is asked about.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	message, err := toPayment(r)
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	body, err := json.Marshal(message)
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	a, err := c.authorized(ctx, account, doing, http.MethodPost, paymentsPath, body, r.CallbackURL)
	if err != nil {
		return connector.Outcome{}, err
	}
	var e envelope
	readable := a.Decode(&e) == nil
	pending := connector.Outcome{Status: checkout.OutcomePending}
	ref := connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
	code := e.code()
	switch {
	case readable && e.any(duplicate):
		// It is there. What became of it may not be to be had just now, or not
		// everywhere yet: it is asked about later anyway.
		o, err := c.Enquire(ctx, account, ref)
		if err != nil || o.Status == checkout.OutcomeUnknown {
			o = pending
		}
		return o, nil
	case a.Status >= 500, a.Status == http.StatusTooManyRequests, a.Status == http.StatusRequestTimeout, !readable:
		return connector.Outcome{}, a.Fault(doing, true, code)
	case a.Status < 300 && e.Status.Success, e.any(submitted):
		return pending, nil
	}
	o, definite := refusalOfRequest(a.Status, e)
	if !definite {
		return connector.Outcome{}, a.Fault(doing, true, code)
	}
	// Airtel refuses the request itself. An earlier one of the same id, whose
	// answer was lost, may have been taken all the same.
	known, err := c.Enquire(ctx, account, ref)
	if err != nil {
		return connector.Outcome{}, connector.WithSent(err, true)
	}
	if known.Status != checkout.OutcomeUnknown {
		return known, nil
	}
	return o, nil
}

// Enquire is GET /standard/v1/payments/{id}, at most EnquiriesPerSecond of an
// account. What it returns as amount is the reference's, see the package.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	id, err := toTransactionID(ref.ID)
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	if err := c.session(account).enquiries.Wait(ctx); err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultBusy, Err: err}
	}
	a, err := c.authorized(ctx, account, doing, http.MethodGet, enquiryPath+id, nil, "")
	if err != nil {
		return connector.Outcome{}, err
	}
	var e envelope
	err = a.Decode(&e)
	switch {
	case err == nil && a.Status < 500 && e.missing():
		// Only Airtel's own word means that there is no such payment: a gateway that
		// knows no such path answers 404 as well.
		return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: e.code()}, nil
	case a.Status != http.StatusOK:
		return connector.Outcome{}, a.Fault(doing, false, e.code())
	}
	var o connector.Outcome
	if err == nil {
		o, err = toOutcome(e, id, ref)
	}
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	return o, nil
}

// ParseReport reads the body of a callback: which payment, and how Airtel says
// that it ended. It names neither amount nor reason, so Ask is set. The hash that
// stands in it where a merchant has switched that on is not judged: nothing is
// believed of the report but that asking is worth while.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	var r report
	if err := connector.DecodeReport(body, &r); err != nil {
		return connector.Report{}, fmt.Errorf("reading Airtel's report: %w: %w", connector.ErrReport, err)
	}
	id, err := fromTransactionID(string(r.Transaction.ID))
	if err != nil {
		return connector.Report{}, fmt.Errorf("reading Airtel's report: %w: %w", connector.ErrReport, err)
	}
	o, err := toStatus(r.Transaction.StatusCode, "")
	if err != nil {
		return connector.Report{}, fmt.Errorf("reading Airtel's report: %w: %w", connector.ErrReport, err)
	}
	o.OperatorRef = string(r.Transaction.AirtelMoneyID)
	return connector.Report{ID: id, Outcome: o, Ask: true}, nil
}

// authorized makes a call below the account's address with its token.
func (c *Connector) authorized(ctx context.Context, account connector.Account, doing, method, path string, body []byte, callbackURL string) (connector.Answer, error) {
	return c.session(account).tokens.Authorized(ctx, doing, func(token string) (connector.Answer, error) {
		header := map[string]string{
			"Authorization": "Bearer " + token, "X-Country": country, "X-Currency": currency, "X-Callback-Url": callbackURL, "Accept": "*/*",
		}
		if body != nil {
			header["Content-Type"] = "application/json"
		}
		return c.client.Do(ctx, connector.Call{Doing: doing, Method: method, URL: address(account, path), Body: body, Header: header})
	})
}

// issue asks for a token. Nothing is collected by it, whatever happens.
func (c *Connector) issue(ctx context.Context, account connector.Account) (connector.Token, error) {
	const doing = "getting a token"
	body, err := json.Marshal(map[string]string{
		"client_id": account.ClientID, "client_secret": account.ClientSecret, "grant_type": "client_credentials",
	})
	if err != nil {
		return connector.Token{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: connector.ErrNotObject}
	}
	a, err := c.client.Do(ctx, connector.Call{
		Doing: doing, Method: http.MethodPost, URL: address(account, tokenPath), Body: body,
		Header: map[string]string{"Content-Type": "application/json", "Accept": "*/*"},
	})
	if err != nil {
		return connector.Token{}, connector.WithSent(err, false)
	}
	if a.Status != http.StatusOK {
		fault := a.Fault(doing, false, "")
		if a.Status == http.StatusBadRequest {
			fault.Fault = connector.FaultCredentials // OAuth2's invalid_client may come as a 400
		}
		return connector.Token{}, fault
	}
	var t struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   number `json:"expires_in"`
	}
	if err := a.Decode(&t); err != nil || t.AccessToken == "" || t.ExpiresIn <= 0 {
		return connector.Token{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: connector.ErrNotObject}
	}
	return connector.NewToken(t.AccessToken, c.cfg.Now(), int64(t.ExpiresIn)), nil
}

func address(account connector.Account, path string) string {
	return strings.TrimRight(account.BaseURL, "/") + path
}
