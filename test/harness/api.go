package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// Answer is what the service answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send makes a request. Headers come in pairs.
func (u *Up) Send(ctx context.Context, method, url, body string, headers ...string) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := u.Client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, text}, err
}

// Call is send for those that must be answered.
func (u *Up) Call(t *testing.T, method, url, body string, headers ...string) Answer {
	t.Helper()
	a, err := u.Send(t.Context(), method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

// Into decodes the body.
func (a Answer) Into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// Sessions is the address of the sessions, or of a path below them.
func (u *Up) Sessions(path string) string { return u.URL(AtService, "/api/v1/checkout/sessions"+path) }

// Session is the contract's resource, as far as suites look at it.
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

// Post creates with a key and a new Idempotency-Key.
func (u *Up) Post(t *testing.T, key, body string) Answer {
	t.Helper()
	return u.Call(t, http.MethodPost, u.Sessions(""), body,
		"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", uuid.NewString())
}

// Create makes an order's session of 5,000 FCFA with a due of the agency's ERP.
func (u *Up) Create(t *testing.T, order string) Session {
	t.Helper()
	return u.CreateFrom(t, GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":"patente","metadata":{"erp_due_ref":"DUE-%s"}}`, order, order))
}

// CreateFrom makes a session from a body. It repeats a request that is answered with
// 503, with the same Idempotency-Key, as the contract says.
func (u *Up) CreateFrom(t *testing.T, key, body string) (s Session) {
	t.Helper()
	idempotency := uuid.NewString()
	Eventually(t, "session is created", func() error {
		a := u.Call(t, http.MethodPost, u.Sessions(""), body,
			"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", idempotency)
		switch a.Status {
		case http.StatusCreated:
			a.Into(t, &s)
			return nil
		case http.StatusServiceUnavailable:
			return errors.New("503")
		}
		t.Fatalf("creation from %s: %d %s", body, a.Status, a.Body)
		return nil
	})
	return s
}

// Session reads one as its integrator does.
func (u *Up) Session(t *testing.T, id string) Session {
	t.Helper()
	var s Session
	Eventually(t, "GET answers", func() error {
		a, err := u.Send(t.Context(), http.MethodGet, u.Sessions("/"+id), "", "Authorization", "Bearer "+GuichetKey)
		if err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("%d %s %w", a.Status, a.Body, err)
		}
		return json.Unmarshal(a.Body, &s)
	})
	return s
}

// Becomes waits until a session has a status.
func (u *Up) Becomes(t *testing.T, id, status string) Session {
	t.Helper()
	var s Session
	Eventually(t, "session is "+status, func() error {
		if s = u.Session(t, id); s.Status != status {
			return fmt.Errorf("it is %s", s.Status)
		}
		return nil
	})
	return s
}
