package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"quittance/dev/bench/client"
)

// Answer is a client.Answer with a check of its body.
type Answer struct{ client.Answer }

// Into decodes the body.
func (a Answer) Into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("%d %s: %v", a.Status, a.Body, err)
	}
}

// Send sends a request. Headers come in pairs of name and value.
func (u *Up) Send(ctx context.Context, method, url, body string, headers ...string) (Answer, error) {
	a, err := u.Requests().Send(ctx, method, url, body, headers...)
	return Answer{a}, err
}

// Requests returns a client of the `up` that sends its requests with u.Client.
func (u *Up) Requests() *client.Client {
	return &client.Client{Service: u.URL(AtService, ""), Simulators: u.URL(AtSimulators, ""), HTTP: u.Client}
}

// Call sends a request that must be answered.
func (u *Up) Call(t *testing.T, method, url, body string, headers ...string) Answer {
	t.Helper()
	a, err := u.Send(t.Context(), method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

// Sessions is the URL of the sessions, or of a path below them.
func (u *Up) Sessions(path string) string { return u.Requests().Sessions(path) }

// Session is the resource of the ministry API.
type Session = client.Session

// Post creates a session with a key and a new Idempotency-Key.
func (u *Up) Post(t *testing.T, key, body string) Answer {
	t.Helper()
	return u.Call(t, http.MethodPost, u.Sessions(""), body,
		"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", uuid.NewString())
}

// Create makes a session of 5,000 FCFA for an order, with a due of the agency's ERP.
func (u *Up) Create(t *testing.T, order string) Session {
	t.Helper()
	return u.CreateFrom(t, GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":"patente","metadata":{"erp_due_ref":"DUE-%s"}}`, order, order))
}

// CreateFrom makes a session from a body; see client.Create.
func (u *Up) CreateFrom(t *testing.T, key, body string) Session {
	t.Helper()
	s, err := u.Requests().Create(t.Context(), key, body)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Session reads a session as its integrator does.
func (u *Up) Session(t *testing.T, id string) Session {
	t.Helper()
	var s Session
	Eventually(t, "reading a session", func() error {
		a, err := u.Send(t.Context(), http.MethodGet, u.Sessions("/"+id), "", "Authorization", "Bearer "+GuichetKey)
		if err != nil || a.Status != http.StatusOK {
			return fmt.Errorf("%d %s %w", a.Status, a.Body, err)
		}
		return json.Unmarshal(a.Body, &s)
	})
	return s
}

// Becomes waits until a session has a status, and returns it.
func (u *Up) Becomes(t *testing.T, id, status string) Session {
	t.Helper()
	var s Session
	Eventually(t, "waiting until a session is "+status, func() error {
		if s = u.Session(t, id); s.Status != status {
			return fmt.Errorf("it is %s", s.Status)
		}
		return nil
	})
	return s
}
