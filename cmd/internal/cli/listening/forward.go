package listening

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/internal/secret"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/webhook"
)

// ErrForward is the error of a URL to which events may not be forwarded. Its text has the
// reason.
var ErrForward = errors.New("events are forwarded to this machine alone")

// Heard is an event and the result of forwarding it.
type Heard struct {
	Notification record.Notification
	// OrderID is the integrator's; empty when the body has none.
	OrderID string
	// Header holds the signed headers, as an endpoint receives them.
	Header http.Header
	// Forwarded means that the event was posted at Tried, with Result. Verdict is the
	// delivery worker's decision about such an answer to a first attempt.
	Forwarded bool
	Tried     time.Time
	Result    call.Result
	Verdict   delivery.Verdict
}

// ParseForward parses an http or https URL of this machine: 127.0.0.1, [::1] or
// localhost. An error wraps ErrForward unless the text is not a URL at all.
func ParseForward(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%q is not an absolute URL, such as http://127.0.0.1:3000/webhooks", raw)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: %s is neither http nor https", ErrForward, u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("%w, as real endpoints are called: without credentials in the URL", ErrForward)
	case u.Fragment != "":
		return nil, fmt.Errorf("%w, as real endpoints are called: without a fragment in the URL", ErrForward)
	}
	switch strings.ToLower(u.Hostname()) {
	case "127.0.0.1", "::1", "localhost":
		return u, nil
	}
	return nil, fmt.Errorf("%w: %s is not 127.0.0.1, [::1] or localhost; register an endpoint for another machine", ErrForward, u.Host)
}

// Forwarder signs events as for an endpoint and posts each once to a server on this machine. Make it
// with NewForwarder.
type Forwarder struct {
	// To is where to post events, a URL from ParseForward; nil posts nothing.
	To *url.URL

	client *call.Client
}

// NewForwarder makes a forwarder. Close it.
func NewForwarder(to *url.URL) *Forwarder {
	return &Forwarder{To: to, client: call.NewLoopback(ParseForward)}
}

// Close closes idle connections.
func (f *Forwarder) Close() { f.client.Close() }

// Forward signs an event with a secret and posts it.
func (f *Forwarder) Forward(ctx context.Context, n *record.Notification, signing secret.Text) (Heard, error) {
	now := time.Now()
	header, err := webhook.Sign([]secret.Text{signing}, n.EventID, now, n.Body)
	if err != nil {
		return Heard{}, err
	}
	heard := Heard{Notification: *n, OrderID: orderID(n.Body), Header: header.Clone()}
	if f.To != nil {
		heard.Forwarded, heard.Tried = true, now
		heard.Result = f.client.Post(ctx, f.To.String(), header, n.Body)
		first := deliveries.Plan(webhook.Kind, n, "")
		first.FirstAttemptAt = now
		heard.Verdict = webhook.Judge(first, heard.Result, now)
	}
	return heard, nil
}

func orderID(body []byte) string {
	var of struct {
		OrderID string `json:"order_id"`
	}
	_ = json.Unmarshal(body, &of) // a body without an order is shown without one
	return of.OrderID
}
