package acceptance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// control tells the world outside how to behave.
func (u *up) control(t *testing.T, path, body string) answer {
	t.Helper()
	a := u.call(t, http.MethodPost, u.url(atSimulators, "/control/"+path), body, "Content-Type", "application/json")
	if a.status/100 != 2 {
		t.Fatalf("/control/%s %s: %d %s", path, body, a.status, a.body)
	}
	return a
}

func (u *up) advance(t *testing.T, by time.Duration) {
	t.Helper()
	u.control(t, "clock", fmt.Sprintf(`{"advance": %q}`, by))
}

// collection is a payment as the operator knows it.
type collection struct {
	ID             string `json:"id"`
	Operator       string `json:"operator"`
	Amount         string `json:"amount"`
	Status         string `json:"status"`
	CallbackURL    string `json:"callback_url"`
	CallbacksSent  int    `json:"callbacks_sent"`
	CallbackStatus int    `json:"callback_status"`
	Enquiries      int    `json:"enquiries"`
}

// collections are those of a session at the operator.
func (u *up) collections(t *testing.T, s session) (out []collection) {
	t.Helper()
	u.call(t, http.MethodGet, u.url(atSimulators, "/control/collections?external_id="+s.PaymentRef), "").into(t, &out)
	return out
}

// collected waits for a session's one collection at the operator.
func (u *up) collected(t *testing.T, s session) (c collection) {
	t.Helper()
	eventually(t, "the operator is asked", func() error {
		all := u.collections(t, s)
		if len(all) == 0 {
			return errors.New("it is not")
		}
		c = all[0]
		return nil
	})
	return c
}

// message is a webhook that came.
type message struct {
	Headers        map[string]string `json:"headers"`
	Body           string            `json:"body"`
	SignatureValid *bool             `json:"signature_valid"`
	Answered       int               `json:"answered"`

	event notice
}

type notice struct {
	EventID   string `json:"event_id"`
	Event     string `json:"event"`
	SessionID string `json:"session_id"`
	OrderID   string `json:"order_id"`
	Status    string `json:"status"`
	Paid      bool   `json:"paid"`
}

// inbox has the webhooks about a session, oldest first.
func (u *up) inbox(t *testing.T, id string) (out []message) {
	t.Helper()
	var all []message
	u.call(t, http.MethodGet, u.url(atSimulators, "/inbox/guichet"), "").into(t, &all)
	for _, m := range all {
		if err := json.Unmarshal([]byte(m.Body), &m.event); err != nil {
			t.Fatalf("webhook %s: %v", m.Body, err)
		}
		if m.event.SessionID == id {
			out = append(out, m)
		}
	}
	return out
}

// delivered waits for a webhook that the receiver took, and returns it.
func (u *up) delivered(t *testing.T, id, event string) (got message) {
	t.Helper()
	eventually(t, event+" is delivered", func() error {
		for _, m := range u.inbox(t, id) {
			if m.event.Event == event && m.Answered == http.StatusOK {
				got = m
				return nil
			}
		}
		return errors.New("it is not")
	})
	return got
}

// acceptance is what an ERP accepted.
type acceptance struct {
	TransactionID string `json:"transaction_id"`
	Accepted      int    `json:"accepted"`
	Body          struct {
		DueRef     string `json:"erp_due_ref"`
		PaymentRef string `json:"payment_ref"`
		Amount     int64  `json:"amount_minor"`
	} `json:"body"`
}

// confirmations are those of a session that the agency's ERP accepted.
func (u *up) confirmations(t *testing.T, s session) (out []acceptance) {
	t.Helper()
	var erp struct {
		Accepted []acceptance `json:"accepted"`
	}
	u.call(t, http.MethodGet, u.url(atSimulators, "/control/erp/impots"), "").into(t, &erp)
	for _, c := range erp.Accepted {
		if c.Body.PaymentRef == s.PaymentRef {
			out = append(out, c)
		}
	}
	return out
}

func (u *up) confirmed(t *testing.T, s session) {
	t.Helper()
	eventually(t, "the ERP has accepted", func() error {
		if len(u.confirmations(t, s)) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
}

// rows is what ClickHouse answers to a query, a row a line.
func (u *up) rows(t *testing.T, query string) ([]map[string]any, error) {
	t.Helper()
	a, err := u.send(t.Context(), http.MethodPost, u.url(atClickHouse, "/"), query+" FORMAT JSONEachRow")
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK {
		return nil, fmt.Errorf("%d %s", a.status, a.body)
	}
	var out []map[string]any
	for dec := json.NewDecoder(bytes.NewReader(a.body)); ; {
		var row map[string]any
		if err := dec.Decode(&row); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out = append(out, row)
	}
}

// journalled waits until the journal has an event of a session, and says how
// often it has.
func (u *up) journalled(t *testing.T, id, event string) (n int) {
	t.Helper()
	eventually(t, "the journal has "+event, func() error {
		rows, err := u.rows(t, fmt.Sprintf("SELECT entry_id FROM quittance.journal FINAL WHERE entry_type = 'event' AND session_id = '%s' AND event = '%s'", id, event))
		if err != nil {
			return err
		}
		if n = len(rows); n == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	return n
}

// metric is the sum of a metric over its labels.
func (u *up) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	a := u.call(t, http.MethodGet, u.url(atHealth, "/metrics"), "")
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllSubmatch(a.body, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
	}
	return sum
}
