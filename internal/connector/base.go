package connector

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"quittance/internal/transport"
)

// Base is what the connectors share: the operator's name, the configuration, one pool
// of HTTP connections, and for each merchant account its access token and the rate of
// its enquiries. All of it is in memory only; a restart loses nothing. A connector
// embeds a Base with its own type of accounts. Safe for concurrent use.
type Base[A ownAccount] struct {
	Config

	operator  string
	client    *http.Client
	tokenCall func(A) Call

	mu        sync.Mutex
	merchants map[A]*merchant
}

// ownAccount is a connector's own type of accounts.
type ownAccount interface {
	Account
	comparable
	At(path string) string
}

// CertifiedAccount is an Account whose calls show a client certificate (mTLS). Each has connections of
// its own: those of one account must not carry calls of another.
type CertifiedAccount interface {
	Account
	// TLS returns what connections need. Its error holds no key.
	TLS() (*tls.Config, error)
}

// merchant is the state of one account.
type merchant struct {
	client    *http.Client
	fault     error // of its client certificate: no call can be made
	enquiries *rate.Limiter
	flight    singleflight.Group // of requests for a token

	mu   sync.Mutex
	held token
}

// token is an access token and the time until which it is used. The zero value is no
// token.
type token struct {
	text  string
	until time.Time
}

// NewBase checks the configuration and makes a Base. tokenCall is the call that asks
// the operator for an account's access token (RFC 6749); nil where calls carry no
// token.
func NewBase[A ownAccount](operator string, cfg Config, tokenCall func(A) Call) (*Base[A], error) {
	if err := cfg.check(operator); err != nil {
		return nil, err
	}
	via := transport.HTTP(&net.Dialer{Timeout: min(5*time.Second, cfg.Timeout)})
	via.Proxy = http.ProxyFromEnvironment
	via.TLSHandshakeTimeout, via.ResponseHeaderTimeout = 5*time.Second, cfg.Timeout
	via.MaxIdleConns, via.MaxIdleConnsPerHost, via.IdleConnTimeout = 256, 128, time.Minute
	return &Base[A]{Config: cfg, operator: operator, tokenCall: tokenCall, merchants: map[A]*merchant{}, client: &http.Client{
		Timeout: cfg.Timeout, Transport: via,
		// Following a redirect would send the key and the number to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Operator is the operator's short name.
func (b *Base[A]) Operator() string { return b.operator }

// Own is the account as the connector's own type. An account of another connector is
// an *Error.
func (b *Base[A]) Own(account Account) (A, error) {
	a, ok := account.(A)
	if !ok {
		return a, &Error{Doing: "reading the merchant account", Fault: FaultCredentials, Err: errors.New("it is another operator's")}
	}
	return a, nil
}

// AwaitEnquiry is Own once the account may make another enquiry, at most
// Config.EnquiriesPerSecond. Errors are *Error.
func (b *Base[A]) AwaitEnquiry(ctx context.Context, account Account, doing string) (A, error) {
	a, err := b.Own(account)
	if err != nil {
		return a, err
	}
	if err := b.merchant(a).enquiries.Wait(ctx); err != nil {
		return a, &Error{Doing: doing, Fault: FaultBusy, Err: err}
	}
	return a, nil
}

func (b *Base[A]) merchant(a A) *merchant {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.merchants[a]
	if m == nil {
		m = &merchant{client: b.client, enquiries: rate.NewLimiter(rate.Limit(b.EnquiriesPerSecond), 1)}
		if certified, ok := any(a).(CertifiedAccount); ok {
			m.client, m.fault = b.certified(certified)
		}
		b.merchants[a] = m
	}
	return m
}

// certified returns a client whose connections show an account's certificate.
func (b *Base[A]) certified(account CertifiedAccount) (*http.Client, error) {
	cfg, err := account.TLS()
	if err != nil {
		return nil, &Error{Doing: "reading the client certificate", Fault: FaultCredentials, Err: err}
	}
	own := *b.client
	if shared, ok := own.Transport.(*http.Transport); ok {
		via := shared.Clone()
		via.TLSClientConfig = cfg
		own.Transport = via
	}
	return &own, nil
}

// Authorized is Do with the account's token. After a 401, which means that the
// operator has done nothing, it makes the call once more with a new token. A second
// 401, or a 403, is returned as an *Error.
func (b *Base[A]) Authorized(ctx context.Context, a A, q Call) (Answer, error) {
	m := b.merchant(a)
	for attempt := 0; ; attempt++ {
		var err error
		if q.token, err = b.token(ctx, a, m); err != nil {
			return Answer{}, err
		}
		answer, err := b.Do(ctx, a, q)
		if err != nil {
			return Answer{}, err
		}
		switch {
		case answer.Status == http.StatusForbidden && !q.Forbidden, answer.Status == http.StatusUnauthorized && attempt > 0:
			return Answer{}, answer.Fault(q.Doing, false, "")
		case answer.Status != http.StatusUnauthorized:
			return answer, nil
		}
		m.drop(q.token)
	}
}

// Token returns the account's access token, which a call of Authorized would have. Errors
// are *Error.
func (b *Base[A]) Token(ctx context.Context, a A) (string, error) {
	return b.token(ctx, a, b.merchant(a))
}

// token returns the held token or asks for one. All callers that wait share one
// request: the end of one caller's context does not cancel it, its own time-out does.
func (b *Base[A]) token(ctx context.Context, a A, m *merchant) (string, error) {
	held := func() string {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.held.text != "" && b.Now().Before(m.held.until) {
			return m.held.text
		}
		return ""
	}
	if text := held(); text != "" {
		return text, nil
	}
	result := m.flight.DoChan("token", func() (any, error) {
		// A request that has ended since the first look has brought a token.
		if text := held(); text != "" {
			return text, nil
		}
		fresh, err := b.issue(context.WithoutCancel(ctx), a)
		if err == nil {
			m.mu.Lock()
			m.held = fresh
			m.mu.Unlock()
		}
		return fresh.text, err
	})
	select {
	case <-ctx.Done():
		return "", NetworkError("awaiting a token", false, ctx.Err())
	case r := <-result:
		if r.Err != nil {
			return "", r.Err
		}
		text, _ := r.Val.(string)
		return text, nil
	}
}

// issue asks the operator for a token. That collects nothing, so no error is Sent.
func (b *Base[A]) issue(ctx context.Context, account A) (token, error) {
	q := b.tokenCall(account)
	q.Doing, q.Method = "getting a token", http.MethodPost
	a, err := b.Do(ctx, account, q)
	if err != nil {
		return token{}, WithSent(err, false)
	}
	if a.Status != http.StatusOK {
		fault := a.Fault(q.Doing, false, "")
		if a.Status == http.StatusBadRequest {
			fault.Fault = FaultCredentials // OAuth2's invalid_client may come as a 400
		}
		return token{}, fault
	}
	var t struct {
		AccessToken string  `json:"access_token"`
		ExpiresIn   seconds `json:"expires_in"`
	}
	if err := a.Decode(&t); err != nil || t.AccessToken == "" || t.ExpiresIn <= 0 {
		return token{}, Malformed(q.Doing, ErrNotObject)
	}
	// Its use ends a little earlier, so that it does not expire during a call.
	lifetime := min(time.Duration(t.ExpiresIn), 24*3600) * time.Second
	return token{t.AccessToken, b.Now().Add(lifetime - min(lifetime/10, time.Minute))}, nil
}

// drop forgets a token that the operator refused, unless it was replaced meanwhile.
func (m *merchant) drop(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held.text == text {
		m.held = token{}
	}
}
