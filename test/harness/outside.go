package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"quittance/dev/bench/client"
	"quittance/dev/stack/program"
)

// Control posts to /control of the simulators.
func (u *Up) Control(t *testing.T, path, body string) Answer {
	t.Helper()
	a := u.Call(t, http.MethodPost, u.URL(AtSimulators, "/control/"+path), body, "Content-Type", "application/json")
	if a.Status/100 != 2 {
		t.Fatalf("/control/%s %s: %d %s", path, body, a.Status, a.Body)
	}
	return a
}

// Advance moves the clock of the installation and of the simulators forward.
func (u *Up) Advance(t *testing.T, by time.Duration) {
	t.Helper()
	u.Control(t, "clock", fmt.Sprintf(`{"advance": %q}`, by))
}

// Collection is a payment as the simulated operator shows it.
type Collection = client.Collection

// Collections returns the collections of a session at the operator.
func (u *Up) Collections(t *testing.T, s Session) []Collection {
	t.Helper()
	all, err := u.Requests().Collections(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Collected waits until the operator has the collection of a session.
func (u *Up) Collected(t *testing.T, s Session) Collection {
	t.Helper()
	c, err := u.Requests().Collected(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Message is a webhook as the simulated receiver shows it.
type Message struct {
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	SignatureValid *bool             `json:"signature_valid"`
	Answered       int               `json:"answered"`

	Event Notice `json:"-"` // the decoded body
}

// Notice is the body of a webhook, without the fields that no suite reads.
type Notice struct {
	EventID   string `json:"event_id"`
	Event     string `json:"event"`
	SessionID string `json:"session_id"`
	OrderID   string `json:"order_id"`
	Status    string `json:"status"`
	Paid      bool   `json:"paid"`
}

// Inbox returns the webhooks about a session, oldest first.
func (u *Up) Inbox(t *testing.T, id string) (out []Message) {
	t.Helper()
	var all []Message
	u.Call(t, http.MethodGet, u.URL(AtSimulators, "/inbox/guichet"), "").Into(t, &all)
	for _, m := range all {
		if err := json.Unmarshal([]byte(m.Body), &m.Event); err != nil {
			t.Fatalf("webhook %s: %v", m.Body, err)
		}
		if m.Event.SessionID == id {
			out = append(out, m)
		}
	}
	return out
}

// Delivered waits for a webhook that the receiver answered with 200, and returns it.
func (u *Up) Delivered(t *testing.T, id, event string) (got Message) {
	t.Helper()
	Eventually(t, "waiting for the delivery of "+event, func() error {
		for _, m := range u.Inbox(t, id) {
			if m.Event.Event == event && m.Answered == http.StatusOK {
				got = m
				return nil
			}
		}
		return errors.New("it is not delivered")
	})
	return got
}

// Acceptance is a confirmation that an ERP has accepted.
type Acceptance struct {
	TransactionID string `json:"transaction_id"`
	Accepted      int    `json:"accepted"`
	Body          struct {
		DueRef     string `json:"erp_due_ref"`
		PaymentRef string `json:"payment_ref"`
		Amount     int64  `json:"amount_minor"`
	} `json:"body"`
}

// Confirmations returns the confirmations of a session that the agency's ERP has accepted.
func (u *Up) Confirmations(t *testing.T, s Session) (out []Acceptance) {
	t.Helper()
	var erp struct {
		Accepted []Acceptance `json:"accepted"`
	}
	u.Call(t, http.MethodGet, u.URL(AtSimulators, "/control/erp/impots"), "").Into(t, &erp)
	for _, c := range erp.Accepted {
		if c.Body.PaymentRef == s.PaymentRef {
			out = append(out, c)
		}
	}
	return out
}

// Confirmed waits until the ERP has accepted a confirmation of a session.
func (u *Up) Confirmed(t *testing.T, s Session) {
	t.Helper()
	Eventually(t, "waiting for the ERP", func() error {
		if len(u.Confirmations(t, s)) == 0 {
			return errors.New("it has accepted no confirmation")
		}
		return nil
	})
}

// Rows returns the rows that ClickHouse answers to a query.
func (u *Up) Rows(t *testing.T, query string) ([]map[string]any, error) {
	t.Helper()
	a, err := u.Send(t.Context(), http.MethodPost, u.URL(AtClickHouse, "/"), query+" FORMAT JSONEachRow")
	if err != nil {
		return nil, err
	}
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("%d %s", a.Status, a.Body)
	}
	var out []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(a.Body)); ; {
		var row map[string]any
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
}

// Journalled waits until the journal has an event of a session. It returns how many times
// the journal has it.
func (u *Up) Journalled(t *testing.T, id, event string) (n int) {
	t.Helper()
	Eventually(t, "waiting until the journal has "+event, func() error {
		rows, err := u.Rows(t, fmt.Sprintf("SELECT entry_id FROM quittance.journal FINAL WHERE entry_type = 'event' AND session_id = '%s' AND event = '%s'", id, event))
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	return n
}

// Metric returns a metric, the sum over its labels.
func (u *Up) Metric(t *testing.T, name string) float64 {
	t.Helper()
	sum, err := program.SumMetric(u.Call(t, http.MethodGet, u.URL(AtHealth, "/metrics"), "").Body, name)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
