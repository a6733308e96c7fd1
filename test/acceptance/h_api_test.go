package acceptance_test

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

// answer is what the service answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send makes a request. Headers come in pairs.
func (u *up) send(ctx context.Context, method, url, body string, headers ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := u.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, text}, err
}

// call is send for those that must be answered.
func (u *up) call(t *testing.T, method, url, body string, headers ...string) answer {
	t.Helper()
	a, err := u.send(t.Context(), method, url, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
}

// sessions is the API's address.
func (u *up) sessions(path string) string { return u.url(atService, "/api/v1/checkout/sessions"+path) }

// session is the contract's resource, as far as tests look at it.
type session struct {
	ID           string  `json:"id"`
	OrderID      string  `json:"order_id"`
	Amount       int64   `json:"amount"`
	Status       string  `json:"status"`
	Paid         bool    `json:"paid"`
	PaymentRef   string  `json:"payment_ref"`
	CheckoutURL  string  `json:"checkout_url"`
	ClientSecret *string `json:"client_secret"`
}

// post creates with a key and a new Idempotency-Key.
func (u *up) post(t *testing.T, key, body string) answer {
	t.Helper()
	return u.call(t, http.MethodPost, u.sessions(""), body,
		"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", uuid.NewString())
}

// create makes an order's session of 5,000 FCFA with a due of the agency's ERP.
func (u *up) create(t *testing.T, order string) session {
	t.Helper()
	return u.createFrom(t, guichetKey, fmt.Sprintf(`{"order_id":%q,"amount":5000,"description":"Patente 2026","service_code":"patente","metadata":{"erp_due_ref":"DUE-%s"}}`, order, order))
}

// createFrom makes a session from a body. It repeats a request that is answered with
// 503, with the same Idempotency-Key, as the contract says.
func (u *up) createFrom(t *testing.T, key, body string) (s session) {
	t.Helper()
	idempotency := uuid.NewString()
	eventually(t, "session is created", func() error {
		a := u.call(t, http.MethodPost, u.sessions(""), body,
			"Authorization", "Bearer "+key, "Content-Type", "application/json", "Idempotency-Key", idempotency)
		switch a.status {
		case http.StatusCreated:
			a.into(t, &s)
			return nil
		case http.StatusServiceUnavailable:
			return errors.New("503")
		}
		t.Fatalf("creation from %s: %d %s", body, a.status, a.body)
		return nil
	})
	return s
}

// session reads one as its integrator does.
func (u *up) session(t *testing.T, id string) session {
	t.Helper()
	var s session
	eventually(t, "GET answers", func() error {
		a, err := u.send(t.Context(), http.MethodGet, u.sessions("/"+id), "", "Authorization", "Bearer "+guichetKey)
		if err != nil || a.status != http.StatusOK {
			return fmt.Errorf("%d %s %w", a.status, a.body, err)
		}
		return json.Unmarshal(a.body, &s)
	})
	return s
}

// becomes waits until a session has a status.
func (u *up) becomes(t *testing.T, id, status string) session {
	t.Helper()
	var s session
	eventually(t, "session is "+status, func() error {
		if s = u.session(t, id); s.Status != status {
			return fmt.Errorf("it is %s", s.Status)
		}
		return nil
	})
	return s
}
