// Package mtn is mobile money A: MTN MoMo Collections.
//
// The protocol in short: a token for the merchant account (60 minutes), then
// POST requesttopay with our id in X-Reference-Id, answered 202, which is not
// payment; then GET requesttopay/{id} until it is SUCCESSFUL or FAILED, or a call
// to X-Callback-Url with the same body. The same id again is answered 409. All
// of it over one pool of connections, at most ten status calls a second per
// account.
//
// Public descriptions: https://momodeveloper.mtn.com (Collections) and its page
// of common errors.
package mtn

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
const Operator = "mtn"

const (
	defaultTimeout = 20 * time.Second
	defaultRate    = 10 // MTN allows about as many status calls a second
	collections    = "/collection/v1_0/requesttopay"
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

// Connector speaks MTN MoMo Collections. Safe for concurrent use.
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
		return nil, errors.New("mtn: Now is required")
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.EnquiriesPerSecond = cmp.Or(cfg.EnquiriesPerSecond, defaultRate)
	if cfg.Timeout < 0 || cfg.EnquiriesPerSecond < 0 {
		return nil, errors.New("mtn: Timeout and EnquiriesPerSecond must not be negative")
	}
	return &Connector{cfg: cfg, client: connector.NewClient(cfg.Timeout), accounts: map[connector.Account]*session{}}, nil
}

// Operator is "mtn".
func (c *Connector) Operator() string { return Operator }

// Payer takes Congolese numbers of MTN, which start with 06.
func (c *Connector) Payer(input string) (string, error) { return connector.CongoPayer(input, "06") }

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

// Collect is POST requesttopay. An id that MTN knows already is asked about.
func (c *Connector) Collect(ctx context.Context, account connector.Account, r connector.Request) (connector.Outcome, error) {
	const doing = "requesting payment"
	message, err := toRequestToPay(r)
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	body, err := json.Marshal(message)
	if err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
	}
	a, err := c.authorized(ctx, account, connector.Call{
		Doing: doing, Method: http.MethodPost, URL: collections, Body: body,
		Header: map[string]string{"X-Reference-Id": r.ID, "X-Callback-Url": r.CallbackURL, "Content-Type": "application/json"},
	})
	if err != nil {
		return connector.Outcome{}, err
	}
	pending := connector.Outcome{Status: checkout.OutcomePending}
	ref := connector.Reference{ID: r.ID}
	switch {
	case a.Status == http.StatusAccepted:
		return pending, nil
	case a.Status == http.StatusConflict:
		// It is there. What became of it may not be to be had just now, or not
		// everywhere yet: it is asked about later anyway.
		o, err := c.Enquire(ctx, account, ref)
		if err != nil || o.Status == checkout.OutcomeUnknown {
			o = pending
		}
		return o, nil
	}
	var no refusal
	if a.Status < 400 || a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout ||
		a.Decode(&no) != nil || no.Code == "" || passing[string(no.Code)] || undecided[string(no.Code)] {
		return connector.Outcome{}, a.Fault(doing, true, string(no.Code))
	}
	// MTN refuses the request itself. An earlier one of the same id, whose answer
	// was lost, may have been taken all the same.
	o, err := c.Enquire(ctx, account, ref)
	if err != nil {
		return connector.Outcome{}, connector.WithSent(err, true)
	}
	if o.Status == checkout.OutcomeUnknown {
		o = connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: failure(string(no.Code)), Reason: string(no.Code)}
	}
	return o, nil
}

// Enquire is GET requesttopay/{id}, at most EnquiriesPerSecond of an account.
func (c *Connector) Enquire(ctx context.Context, account connector.Account, ref connector.Reference) (connector.Outcome, error) {
	const doing = "asking about a payment"
	if err := c.session(account).enquiries.Wait(ctx); err != nil {
		return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultBusy, Err: err}
	}
	a, err := c.authorized(ctx, account, connector.Call{Doing: doing, Method: http.MethodGet, URL: collections + "/" + url.PathEscape(ref.ID)})
	if err != nil {
		return connector.Outcome{}, err
	}
	switch a.Status {
	case http.StatusOK:
		var r result
		if err := a.Decode(&r); err != nil {
			return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
		}
		o, err := toOutcome(r)
		if err != nil {
			return connector.Outcome{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
		}
		return o, nil
	case http.StatusNotFound:
		// A gateway that knows no such path answers 404 as well: only MTN's own word
		// means that there is no such payment.
		var no refusal
		if a.Decode(&no) == nil && no.Code == "RESOURCE_NOT_FOUND" {
			return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: string(no.Code)}, nil
		}
	}
	return connector.Outcome{}, a.Fault(doing, false, "")
}

// ParseReport reads the body of a callback, which is that of a status answer.
func (c *Connector) ParseReport(_ http.Header, body []byte) (connector.Report, error) {
	var r result
	if err := connector.DecodeReport(body, &r); err != nil {
		return connector.Report{}, fmt.Errorf("reading MTN's report: %w: %w", connector.ErrReport, err)
	}
	o, err := toOutcome(r)
	if err != nil {
		return connector.Report{}, fmt.Errorf("reading MTN's report: %w: %w", connector.ErrReport, err)
	}
	return connector.Report{ID: r.ReferenceID, Outcome: o}, nil
}

// authorized makes a call below the account's address with its token.
func (c *Connector) authorized(ctx context.Context, account connector.Account, q connector.Call) (connector.Answer, error) {
	return c.session(account).tokens.Authorized(ctx, q.Doing, func(token string) (connector.Answer, error) {
		with := q
		with.Header = map[string]string{"Authorization": "Bearer " + token, "X-Target-Environment": account.TargetEnvironment}
		maps.Copy(with.Header, q.Header)
		return c.do(ctx, account, with)
	})
}

// issue asks for a token. Nothing is collected by it, whatever happens.
func (c *Connector) issue(ctx context.Context, account connector.Account) (connector.Token, error) {
	const doing = "getting a token"
	credentials := base64.StdEncoding.EncodeToString([]byte(account.APIUser + ":" + account.APIKey))
	a, err := c.do(ctx, account, connector.Call{
		Doing: doing, Method: http.MethodPost, URL: "/collection/token/", Header: map[string]string{"Authorization": "Basic " + credentials},
	})
	if err != nil {
		return connector.Token{}, connector.WithSent(err, false)
	}
	if a.Status != http.StatusOK {
		return connector.Token{}, a.Fault(doing, false, "")
	}
	var t struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := a.Decode(&t); err != nil || t.AccessToken == "" || t.ExpiresIn <= 0 {
		return connector.Token{}, &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: connector.ErrNotObject}
	}
	return connector.NewToken(t.AccessToken, c.cfg.Now(), t.ExpiresIn), nil
}

// do makes one HTTP call below the account's address.
func (c *Connector) do(ctx context.Context, account connector.Account, q connector.Call) (connector.Answer, error) {
	q.URL = strings.TrimRight(account.BaseURL, "/") + q.URL
	q.Header["Ocp-Apim-Subscription-Key"] = account.SubscriptionKey
	return c.client.Do(ctx, q)
}
