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
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"quittance/checkout"
	"quittance/internal/connector"
)

// Operator is the operator's short name.
const Operator = "mtn"

const (
	// maxAnswer bounds what is read of an answer.
	maxAnswer      = 64 << 10
	maxRetryAfter  = 5 * time.Minute
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
	client *http.Client

	mu       sync.Mutex
	accounts map[connector.Account]*session
}

var _ connector.Connector = (*Connector)(nil)

// session is what we keep of one account: in memory, and worth nothing.
type session struct {
	tokens    tokens
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
	return &Connector{
		cfg: cfg,
		client: &http.Client{
			Timeout: cfg.Timeout,
			Transport: &http.Transport{
				Proxy:                 http.ProxyFromEnvironment,
				DialContext:           (&net.Dialer{Timeout: min(5*time.Second, cfg.Timeout), KeepAlive: 30 * time.Second}).DialContext,
				TLSHandshakeTimeout:   5 * time.Second,
				ResponseHeaderTimeout: cfg.Timeout,
				ForceAttemptHTTP2:     true,
				MaxIdleConns:          256,
				MaxIdleConnsPerHost:   128,
				IdleConnTimeout:       time.Minute,
			},
			// A redirect would take the key and the number elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		accounts: map[connector.Account]*session{},
	}, nil
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
	a, err := c.authorized(ctx, account, call{
		doing: doing, method: http.MethodPost, path: collections, body: body,
		header: map[string]string{"X-Reference-Id": r.ID, "X-Callback-Url": r.CallbackURL, "Content-Type": "application/json"},
	})
	if err != nil {
		return connector.Outcome{}, err
	}
	pending := connector.Outcome{Status: checkout.OutcomePending}
	ref := connector.Reference{ID: r.ID}
	switch {
	case a.status == http.StatusAccepted:
		return pending, nil
	case a.status == http.StatusConflict:
		// It is there. What became of it may not be to be had just now, or not
		// everywhere yet: it is asked about later anyway.
		o, err := c.Enquire(ctx, account, ref)
		if err != nil || o.Status == checkout.OutcomeUnknown {
			o = pending
		}
		return o, nil
	}
	var no refusal
	if a.status < 400 || a.status == http.StatusTooManyRequests || a.status == http.StatusRequestTimeout ||
		decode(a.body, &no) != nil || no.Code == "" || passing[string(no.Code)] || undecided[string(no.Code)] {
		return connector.Outcome{}, a.fault(doing, true, string(no.Code))
	}
	// MTN refuses the request itself. An earlier one of the same id, whose answer
	// was lost, may have been taken all the same.
	o, err := c.Enquire(ctx, account, ref)
	if err != nil {
		return connector.Outcome{}, withSent(err, true)
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
	a, err := c.authorized(ctx, account, call{doing: doing, method: http.MethodGet, path: collections + "/" + url.PathEscape(ref.ID)})
	if err != nil {
		return connector.Outcome{}, err
	}
	switch a.status {
	case http.StatusOK:
		var r result
		if err := decode(a.body, &r); err != nil {
			return connector.Outcome{}, a.malformed(doing, err)
		}
		o, err := toOutcome(r)
		if err != nil {
			return connector.Outcome{}, a.malformed(doing, err)
		}
		return o, nil
	case http.StatusNotFound:
		// A gateway that knows no such path answers 404 as well: only MTN's own word
		// means that there is no such payment.
		var no refusal
		if decode(a.body, &no) == nil && no.Code == "RESOURCE_NOT_FOUND" {
			return connector.Outcome{Status: checkout.OutcomeUnknown, Reason: string(no.Code)}, nil
		}
	}
	return connector.Outcome{}, a.fault(doing, false, "")
}

// ParseCallback reads the body of a callback, which is that of a status answer.
func (c *Connector) ParseCallback(_ http.Header, body []byte) (connector.Callback, error) {
	var r result
	if err := decode(body, &r); err != nil {
		return connector.Callback{}, fmt.Errorf("reading MTN's report: %w: %w", connector.ErrCallback, err)
	}
	o, err := toOutcome(r)
	if err != nil {
		return connector.Callback{}, fmt.Errorf("reading MTN's report: %w: %w", connector.ErrCallback, err)
	}
	return connector.Callback{ID: r.ReferenceID, Outcome: o}, nil
}

// call is one HTTP request to MTN.
type call struct {
	doing  string
	method string
	path   string
	body   []byte
	header map[string]string
}

// answer is what came back, its body read and capped.
type answer struct {
	status     int
	body       []byte
	retryAfter time.Duration
}

// fault is the Error of an answer that is no outcome. sent says whether the
// request could have changed something.
func (a answer) fault(doing string, sent bool, code string) *connector.Error {
	e := &connector.Error{Doing: doing, Sent: sent, RetryAfter: a.retryAfter, Err: fmt.Errorf("status %d %s", a.status, code)}
	switch {
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		e.Fault, e.Sent = connector.FaultCredentials, false
	case a.status == http.StatusTooManyRequests:
		e.Fault, e.Sent = connector.FaultBusy, false
	case a.status == http.StatusRequestTimeout || a.status == http.StatusGatewayTimeout:
		e.Fault = connector.FaultTimeout
	case a.status >= 500:
		e.Fault = connector.FaultServer
	default:
		e.Fault = connector.FaultMalformed
	}
	return e
}

func (a answer) malformed(doing string, err error) *connector.Error {
	return &connector.Error{Doing: doing, Fault: connector.FaultMalformed, Err: err}
}

// authorized makes a call with the account's token, with a fresh one once when
// MTN no longer takes it: a 401 means that nothing was done.
func (c *Connector) authorized(ctx context.Context, account connector.Account, q call) (answer, error) {
	s := c.session(account)
	for attempt := 0; ; attempt++ {
		token, err := s.tokens.get(ctx, c.cfg.Now, func(ctx context.Context) (token, error) { return c.issue(ctx, account) })
		if err != nil {
			return answer{}, err
		}
		header := map[string]string{
			"Authorization": "Bearer " + token, "X-Target-Environment": account.TargetEnvironment,
		}
		for k, v := range q.header {
			header[k] = v
		}
		with := q
		with.header = header
		a, err := c.do(ctx, account, with)
		if err != nil {
			return answer{}, err
		}
		switch {
		case a.status == http.StatusForbidden, a.status == http.StatusUnauthorized && attempt > 0:
			return answer{}, a.fault(q.doing, false, "")
		case a.status != http.StatusUnauthorized:
			return a, nil
		}
		s.tokens.drop(token)
	}
}

// issue asks for a token. Nothing is collected by it, whatever happens.
func (c *Connector) issue(ctx context.Context, account connector.Account) (token, error) {
	const doing = "getting a token"
	a, err := c.do(ctx, account, call{doing: doing, method: http.MethodPost, path: "/collection/token/"})
	if err != nil {
		return token{}, withSent(err, false)
	}
	if a.status != http.StatusOK {
		return token{}, a.fault(doing, false, "")
	}
	var t struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := decode(a.body, &t); err != nil || t.AccessToken == "" || t.ExpiresIn <= 0 {
		return token{}, a.malformed(doing, errJSON)
	}
	lifetime := time.Duration(min(t.ExpiresIn, 24*3600)) * time.Second
	// Given up a little early: a call that is on its way should not meet its end.
	return token{text: t.AccessToken, until: c.cfg.Now().Add(lifetime - min(lifetime/10, time.Minute))}, nil
}

// do makes one HTTP call. Without an answer the error says whether the request
// may have left.
func (c *Connector) do(ctx context.Context, account connector.Account, q call) (answer, error) {
	var left atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { left.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, q.method, strings.TrimRight(account.BaseURL, "/")+q.path, bytes.NewReader(q.body))
	if err != nil {
		return answer{}, connector.NetworkError(q.doing, false, err)
	}
	req.Header.Set("Ocp-Apim-Subscription-Key", account.SubscriptionKey)
	for k, v := range q.header {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	if req.Header.Get("Authorization") == "" {
		req.SetBasicAuth(account.APIUser, account.APIKey)
	}
	changes := q.method != http.MethodGet
	resp, err := c.client.Do(req)
	if err != nil {
		return answer{}, connector.NetworkError(q.doing, changes && left.Load(), err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, retryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		// The 202 counts without its body.
		if resp.StatusCode == http.StatusAccepted {
			return a, nil
		}
		return answer{}, connector.NetworkError(q.doing, changes, err)
	}
	if len(a.body) > maxAnswer {
		a.body = nil // no answer of the protocol's is that long; decode refuses it
	}
	return a, nil
}

// withSent is err with another Sent. It copies: those who waited for the same
// token share one error.
func withSent(err error, sent bool) error {
	var e *connector.Error
	if !errors.As(err, &e) {
		return err
	}
	other := *e
	other.Sent = sent
	return &other
}

// retryAfter reads the header's seconds; dates and nonsense count as nothing.
func retryAfter(s string) time.Duration {
	n, err := strconv.Atoi(s)
	if err != nil || n <= 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}
