// Package client speaks to a running `quittance-dev up` as integrators, citizens and
// operators do. Benchmarks and test suites use it.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
)

// Soon is how long Eventually tries.
const Soon = 60 * time.Second

// Client sends requests to an `up`. Safe for concurrent use.
type Client struct {
	Service    string // URL
	Simulators string // URL
	HTTP       *http.Client
}

// New returns a client of the `up` at a port. It follows no redirection.
func New(port int) *Client {
	return &Client{
		Service: "http://" + program.Local(port), Simulators: "http://" + program.Local(port+1),
		HTTP: &http.Client{
			Timeout:       15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Answer is the response to a request.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request. Headers come in pairs of name and value.
func (c *Client) Send(ctx context.Context, method, url, body string, headers ...string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, text}, err
}

// Session is the resource of the ministry API, without the fields that no client here
// reads.
type Session struct {
	ID           string  `json:"id"`
	OrderID      string  `json:"order_id"`
	Amount       int64   `json:"amount"`
	Status       string  `json:"status"`
	Paid         bool    `json:"paid"`
	PaymentRef   string  `json:"payment_ref"`
	CheckoutURL  string  `json:"checkout_url"`
	ClientSecret *string `json:"client_secret"`
}

// Sessions returns the URL of the sessions, or of a path below them.
func (c *Client) Sessions(path string) string {
	return c.Service + "/api/v1/checkout/sessions" + path
}

// Create makes a session from a body. It repeats a request that is answered with 503,
// with the same Idempotency-Key, as the contract says.
func (c *Client) Create(ctx context.Context, key, body string) (s Session, err error) {
	idempotency := uuid.NewString()
	err = Eventually(ctx, "creating a session", func() error {
		a, err := c.Send(ctx, http.MethodPost, c.Sessions(""), body,
			"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", idempotency)
		switch {
		case err != nil:
			return final{err}
		case a.Status == http.StatusCreated:
			return json.Unmarshal(a.Body, &s)
		case a.Status == http.StatusServiceUnavailable:
			return errors.New("503")
		}
		return final{fmt.Errorf("from %s: %d %s", body, a.Status, a.Body)}
	})
	return s, err
}

// Collection is a payment as the simulated operator shows it.
type Collection struct {
	ID             string `json:"id"`
	Operator       string `json:"operator"`
	Amount         string `json:"amount"`
	Status         string `json:"status"`
	CallbackURL    string `json:"callback_url"`
	CallbacksSent  int    `json:"callbacks_sent"`
	CallbackStatus int    `json:"callback_status"`
	Enquiries      int    `json:"enquiries"`
}

// Collections returns the collections of a session at the operator.
func (c *Client) Collections(ctx context.Context, s Session) (out []Collection, err error) {
	a, err := c.Send(ctx, http.MethodGet, c.Simulators+"/control/collections?external_id="+s.PaymentRef, "")
	if err != nil {
		return nil, fmt.Errorf("reading collections: %w", err)
	}
	if err := json.Unmarshal(a.Body, &out); err != nil {
		return nil, fmt.Errorf("reading collections: %d %s: %w", a.Status, a.Body, err)
	}
	return out, nil
}

// Collected waits until the operator has the collection of a session.
func (c *Client) Collected(ctx context.Context, s Session) (out Collection, err error) {
	err = Eventually(ctx, "waiting for a collection", func() error {
		all, err := c.Collections(ctx, s)
		switch {
		case err != nil:
			return final{err}
		case len(all) == 0:
			return errors.New("the operator has none")
		}
		out = all[0]
		return nil
	})
	return out, err
}

// Approve approves a collection at the operator, as a payer does on his phone.
func (c *Client) Approve(ctx context.Context, collection string) error {
	a, err := c.Send(ctx, http.MethodPost, c.Simulators+"/control/collections/"+collection+"/approve", "")
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%d %s", a.Status, a.Body)
	}
	if err != nil {
		return fmt.Errorf("approving a collection: %w", err)
	}
	return nil
}

// final is an error that a repetition does not mend.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Eventually repeats check until it returns nil, for up to Soon.
func Eventually(ctx context.Context, what string, check func() error) error {
	for begun := time.Now(); ; {
		err := check()
		switch {
		case err == nil:
			return nil
		case errors.As(err, &final{}):
			return fmt.Errorf("%s: %w", what, err)
		case time.Since(begun) > Soon:
			return fmt.Errorf("%s: not within %v: %w", what, Soon, err)
		case !measure.Pause(ctx, 100*time.Millisecond):
			return fmt.Errorf("%s: %w", what, errors.Join(err, ctx.Err()))
		}
	}
}
