package quittance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Config configures a Client. URL and Key are required.
type Config struct {
	// URL is the service's address without a path, such as https://pay.example. http is
	// accepted for this machine only, because the key is a secret.
	URL string
	// Key is sk_test_… or sk_live_….
	Key string
	// HTTP sends the requests. The default gives each of them 30 seconds, or what is
	// left of the budget.
	HTTP *http.Client
	// Attempts is how often a call is sent at most. The default is 4.
	Attempts int
	// Budget is the longest that a call takes, with all its attempts and the waits between
	// them. An answer that asks for a wait that ends later is returned at once, and an attempt
	// is given up when the budget ends. The default is ten seconds, because a call is often
	// part of a request that a browser waits for. A program without such a reader, such as a
	// nightly one, gives more.
	Budget time.Duration
	// LongestWait is the longest wait between two attempts. An answer that asks for a longer
	// one is returned at once. The default is the budget.
	LongestWait time.Duration
}

// Client calls the service. It is safe for concurrent use.
type Client struct {
	base        string
	key         string
	http        *http.Client
	attempts    int
	budget      time.Duration
	longestWait time.Duration
}

// New returns a client. The error names the field of the configuration that is at fault.
func New(c Config) (*Client, error) {
	base, err := url.Parse(c.URL)
	switch {
	case err != nil || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("quittance: URL must be an address such as https://pay.example")
	case strings.Trim(base.Path, "/") != "":
		return nil, errors.New("quittance: URL must have no path: the client adds /api/v1")
	case base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())):
		return nil, errors.New("quittance: URL must use https: the key is a secret")
	case !strings.HasPrefix(c.Key, "sk_test_") && !strings.HasPrefix(c.Key, "sk_live_"), strings.ContainsAny(c.Key, "\r\n "):
		return nil, errors.New("quittance: Key must begin with sk_test_ or sk_live_ and have no white space")
	case c.Attempts < 0:
		return nil, errors.New("quittance: Attempts must not be negative")
	case c.Budget < 0 || c.LongestWait < 0:
		return nil, errors.New("quittance: Budget and LongestWait must not be negative")
	}
	httpClient := http.Client{Timeout: 30 * time.Second, Transport: probed()}
	if c.HTTP != nil {
		httpClient = *c.HTTP
	}
	// The API never redirects: a redirect would take the key to another address.
	httpClient.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	budget := cmp.Or(c.Budget, 10*time.Second)
	return &Client{
		base: base.Scheme + "://" + base.Host + "/api/v1/checkout/sessions", key: c.Key, http: &httpClient,
		attempts: cmp.Or(c.Attempts, 4), budget: budget, longestWait: cmp.Or(c.LongestWait, budget),
	}, nil
}

// probed returns Go's own transport with pings. A connection of HTTP/2 that a balancer has
// forgotten is closed within ten seconds. Without pings each later call on it times out.
func probed() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has replaced it
		return http.DefaultTransport
	}
	t := standard.Clone()
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second}
	return t
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// CreateSession creates a session. With an empty idempotencyKey it makes one, which makes
// the repetitions within this call safe. A program that repeats the call itself, for
// instance after a restart, passes a key of its own that it stored before the first call.
// A creation beyond the quota (429) is returned at once: the next minute may be far away.
func (c *Client) CreateSession(ctx context.Context, s SessionCreate, idempotencyKey string) (Session, error) {
	if idempotencyKey == "" {
		idempotencyKey = rand.Text()
	}
	var out Session
	_, err := c.call(ctx, http.MethodPost, "", s, http.Header{"Idempotency-Key": {idempotencyKey}}, &out)
	return out, err
}

// Session returns the session with that id.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	var out Session
	_, err := c.call(ctx, http.MethodGet, "/"+url.PathEscape(id), nil, nil, &out)
	return out, err
}

// Filter selects sessions of a list. Empty fields select all.
type Filter struct {
	OrderID    string
	Status     SessionStatus
	CustomerID string
	PaymentRef string
	// CompletedFrom (inclusive) and CompletedTo (exclusive) bound the time at which sessions
	// were completed, and select completed ones only.
	CompletedFrom, CompletedTo time.Time
	TenantID                   string // with a platform key: the agency
	Page                       int    // from 1
	PageSize                   int    // at most 100
}

// Sessions returns a page of sessions, the newest first.
func (c *Client) Sessions(ctx context.Context, f Filter) (SessionPage, error) {
	q := url.Values{}
	for name, value := range map[string]string{
		"order_id": f.OrderID, "status": string(f.Status), "customer_id": f.CustomerID, "payment_ref": f.PaymentRef, "tenant_id": f.TenantID,
		"completed_from": instant(f.CompletedFrom), "completed_to": instant(f.CompletedTo), "page": number(f.Page), "page_size": number(f.PageSize),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	path := ""
	if len(q) > 0 {
		path = "?" + q.Encode()
	}
	var out SessionPage
	_, err := c.call(ctx, http.MethodGet, path, nil, nil, &out)
	return out, err
}

// AllSessions returns the sessions of all pages from f.Page on, the newest first. It asks for a page when
// the one before is used up, of 100 sessions unless f.PageSize says otherwise, and has no budget over
// all of them. The first error ends it. A session that is created meanwhile may be missing. One whose
// change moves it out of the filter may take another's place: read by OrderID or by CompletedFrom and
// CompletedTo in the past to miss none.
func (c *Client) AllSessions(ctx context.Context, f Filter) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		f.PageSize = cmp.Or(f.PageSize, 100)
		last := ""
		for f.Page = max(f.Page, 1); ; f.Page++ {
			page, err := c.Sessions(ctx, f)
			if err != nil {
				yield(Session{}, err)
				return
			}
			for _, s := range page.Items {
				if last != "" && s.ID >= last {
					continue // newer sessions have moved it to this page
				}
				if last = s.ID; !yield(s, nil) {
					return
				}
			}
			if len(page.Items) < f.PageSize {
				return
			}
		}
	}
}

// Events returns the events of a session of which your back end is told, the oldest first, and what became
// of each at your endpoints.
func (c *Client) Events(ctx context.Context, id string) ([]SessionEvent, error) {
	var out SessionEvents
	_, err := c.call(ctx, http.MethodGet, "/"+url.PathEscape(id)+"/events", nil, nil, &out)
	return out.Items, err
}

// Redeliver sends an event of a session once more to your endpoints, with the same id and the same body. If the answer of
// an attempt was lost, the event may be sent twice. At most ten events a minute are sent.
func (c *Client) Redeliver(ctx context.Context, id, eventID string) (SessionEvent, error) {
	var out SessionEvent
	_, err := c.call(ctx, http.MethodPost, "/"+url.PathEscape(id)+"/events/"+url.PathEscape(eventID)+"/redeliver", nil, nil, &out)
	return out, err
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// CancelSession cancels an open session and returns it. A session that has ended is the
// problem checkout.session_ended. If the answer of an attempt was lost and the session is
// cancelled at the next one, that is a success.
func (c *Client) CancelSession(ctx context.Context, id string) (Session, error) {
	var out Session
	attempts, err := c.call(ctx, http.MethodPost, "/"+url.PathEscape(id)+"/cancel", nil, nil, &out)
	var p *Problem
	if attempts > 1 && errors.As(err, &p) && p.Code == ProblemCodeCheckoutSessionEnded {
		if now, readErr := c.Session(ctx, id); readErr == nil && now.Status == SessionStatusCancelled {
			return now, nil
		}
	}
	return out, err
}

// VerifyCompletion returns the session of a completion token, as it is now. Set OrderID to
// the order of the visitor's case: the token comes from the visitor's browser.
func (c *Client) VerifyCompletion(ctx context.Context, v CompletionVerify) (Completion, error) {
	var out Completion
	_, err := c.call(ctx, http.MethodPost, "/verify-completion", v, nil, &out)
	return out, err
}

// Language is that of a paper; the zero value is French.
type Language string

// Languages of papers.
const (
	LanguageFrench  Language = "fr"
	LanguageEnglish Language = "en"
)

// Notice returns the payment notice of an open hosted session as PDF/A-2b. A session without
// one is the problem checkout.no_notice. Ask for it again instead of keeping it: fees and the
// agency's contact may change.
func (c *Client) Notice(ctx context.Context, id string, lang Language) ([]byte, error) {
	return c.file(ctx, id, "notice", url.Values{"lang": {string(lang)}})
}

// Receipts returns the signed tokens of the receipts of a completed session, one for each due.
// Before that it is the problem checkout.not_completed.
func (c *Client) Receipts(ctx context.Context, id string) (Receipts, error) {
	var out Receipts
	_, err := c.call(ctx, http.MethodGet, "/"+url.PathEscape(id)+"/receipt", nil, nil, &out)
	return out, err
}

// ReceiptPDF returns the receipt of a due of a completed session as PDF/A-2b. The same payment
// in the same state has the same bytes. transactionID may be empty if the session has one due.
func (c *Client) ReceiptPDF(ctx context.Context, id, transactionID string, lang Language) ([]byte, error) {
	return c.file(ctx, id, "receipt", url.Values{"lang": {string(lang)}, "transaction_id": {transactionID}})
}

// file returns a paper of a session. Empty values of q are left out.
func (c *Client) file(ctx context.Context, id, paper string, q url.Values) ([]byte, error) {
	for name := range q {
		if q.Get(name) == "" {
			q.Del(name)
		}
	}
	path := "/" + url.PathEscape(id) + "/" + paper
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var out []byte
	_, err := c.call(ctx, http.MethodGet, path, nil, nil, &out)
	return out, err
}

// typePDF is the type of a paper.
const typePDF = "application/pdf"

// longestAnswer is the most bytes of an answer that are read: a page has 100 sessions.
const longestAnswer = 4 << 20

// call sends a request until it is answered, and decodes the answer; if out is a *[]byte, the
// answer is a PDF. It returns the number of attempts.
func (c *Client) call(ctx context.Context, method, path string, in any, header http.Header, out any) (attempts int, err error) {
	var body []byte
	if in != nil {
		if body, err = json.Marshal(in); err != nil {
			return 0, fmt.Errorf("quittance: encoding the request: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.budget)
	defer cancel()
	for attempts = 1; ; attempts++ {
		wait, err := c.attempt(ctx, method, path, body, header, out)
		if err == nil || wait < 0 || attempts >= c.attempts || ctx.Err() != nil {
			return attempts, err
		}
		if wait == 0 { // the answer asks for none
			wait = min(250*time.Millisecond<<min(attempts, 10), c.longestWait)
			wait = wait/2 + jitter(wait/2)
		}
		if deadline, ok := ctx.Deadline(); wait > c.longestWait || ok && time.Until(deadline) < wait {
			return attempts, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return attempts, err
		case <-timer.C:
		}
	}
}

// jitter returns a random duration up to d.
func jitter(d time.Duration) time.Duration {
	return time.Duration(mathrand.Int64N(int64(d) + 1)) //nolint:gosec // a wait is no secret
}

// attempt sends a request once. The wait before the next attempt is negative if there must
// be none, and zero if the answer names none.
func (c *Client) attempt(ctx context.Context, method, path string, body []byte, header http.Header, out any) (wait time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return -1, fmt.Errorf("quittance: making the request: %w", err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	accepted := "application/json"
	file, wantsFile := out.(*[]byte)
	if wantsFile {
		accepted = typePDF
	}
	r.Header.Set("Accept", accepted+", application/problem+json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, fmt.Errorf("quittance: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, longestAnswer))
	if err != nil {
		return 0, fmt.Errorf("quittance: reading the answer: %w", err)
	}
	if resp.StatusCode/100 == 2 && wantsFile {
		if kind := resp.Header.Get("Content-Type"); kind != typePDF {
			return -1, fmt.Errorf("quittance: the answer is %q, not a PDF", kind)
		}
		*file = text
		return 0, nil
	}
	if resp.StatusCode/100 == 2 {
		if err := json.Unmarshal(text, out); err != nil {
			return -1, fmt.Errorf("quittance: decoding the answer: %w", err)
		}
		return 0, nil
	}
	p := &Problem{}
	if json.Unmarshal(text, p) != nil || p.Code == "" {
		p = &Problem{Title: http.StatusText(resp.StatusCode), Detail: "the answer is not of this API"} // of a proxy
	}
	p.Status = resp.StatusCode
	if resp.StatusCode == http.StatusTooManyRequests && header.Get("Idempotency-Key") != "" {
		return -1, p // the quota of creations
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return time.Duration(max(seconds, 0)) * time.Second, p
	}
	return -1, p
}

// Error says what is wrong with the request and how to mend it. Read Code in programs, not
// this text.
func (p *Problem) Error() string {
	text := fmt.Sprintf("quittance: %d %s: %s", p.Status, cmp.Or(string(p.Code), p.Title), p.Detail)
	for _, f := range p.Errors {
		if f.Message != p.Detail {
			text += " " + f.Message
		}
	}
	if p.RequestID != "" {
		text += " (request " + p.RequestID + ")"
	}
	return text
}
