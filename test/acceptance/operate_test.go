package acceptance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An operator's bad morning, at the command line of the program: a receiver that
// is gone, an ERP that refuses, a secret that has leaked. Nothing is lost by any
// of it.
func TestOperatingDeliveries(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	o := deliveryOperator{operator{newUp(t)}}
	o.start(t)

	o.refused(t, "say what to do", "endpoints")
	o.refused(t, "say what to do", "deliveries")
	o.says(t, "there are no deliveries yet", "deliveries", "list")
	var endpoint string
	for _, e := range o.endpoints(t) {
		if e.URL == o.url(atSimulators, "/inbox/guichet") {
			endpoint = e.ID
		}
		if e.State != "ok" || e.Waiting != 0 {
			t.Errorf("at the start: %+v", e)
		}
	}
	if !strings.Contains(o.says(t, endpoint, "endpoints", "list"), "impots/test") {
		t.Error("the ERP is not listed")
	}
	o.refused(t, "never suspended", "endpoints", "suspend", "impots/test")
	o.refused(t, "endpoints list", "endpoints", "suspend", "nobody")
	o.refused(t, "--state", "deliveries", "retry", "--endpoint", endpoint)

	o.control(t, "inbox/guichet", `{"status": 410}`)
	o.control(t, "erp/impots", `{"refuse": {"status": 422, "code": "due_closed"}}`)
	paid := o.create(t, "operated")
	o.citizen(paid).pay(t, "06 600 00 01")
	o.becomes(t, paid.ID, "completed")

	// The receiver.
	o.stands(t, endpoint, "suspended", func(e endpointShown) bool { return e.State == "suspended" && e.Reason == "gone" && e.Waiting == 1 })
	o.says(t, "answered 410", "endpoints", "list")
	o.says(t, "answered 410", "endpoints", "suspend", endpoint)
	held := o.deliveries(t, "--endpoint", endpoint)
	if len(held) != 1 || held[0].State != "waiting" || held[0].SessionID != paid.ID {
		t.Fatalf("held: %+v", held)
	}
	o.refused(t, "endpoints resume "+endpoint, "deliveries", "retry", held[0].ID)
	o.says(t, "410", "deliveries", "show", held[0].ID)

	// The ERP.
	var parked []deliveryShown
	eventually(t, "the ERP's refusal is shown", func() error {
		if parked = o.deliveries(t, "--state", "needs_operator"); len(parked) != 1 {
			return fmt.Errorf("%+v", parked)
		}
		return nil
	})
	if parked[0].Endpoint != "impots/test" || parked[0].Kind != "erp" || parked[0].Status != 422 {
		t.Errorf("parked: %+v", parked[0])
	}
	o.says(t, "due_closed", "deliveries", "show", parked[0].ID)
	o.says(t, "due now", "deliveries", "retry", parked[0].ID)
	eventually(t, "the ERP has refused twice", func() error {
		if again := o.deliveries(t, "--endpoint", "impots/test", "--state", "needs_operator"); len(again) != 1 || again[0].Attempts != 2 {
			return fmt.Errorf("%+v", again)
		}
		return nil
	})
	o.control(t, "erp/impots", `{"reset": true}`)
	o.says(t, "1 delivery that was needs_operator is due now", "deliveries", "retry", "--endpoint", "impots/test", "--state", "needs_operator")
	o.confirmed(t, paid)
	o.says(t, "nothing to do", "deliveries", "retry", "--endpoint", "impots/test", "--state", "needs_operator")
	o.says(t, "no delivery is like that", "deliveries", "list", "--state", "needs_operator", "--since", "1h")
	if n := len(o.confirmations(t, paid)); n != 1 {
		t.Errorf("the ERP has accepted %d", n)
	}

	// The receiver is back.
	o.control(t, "inbox/guichet", `{"reset": true}`)
	o.resume(t, endpoint, paid)
	o.stands(t, endpoint, "well", func(e endpointShown) bool { return e.State == "ok" && e.Waiting+e.Queued == 0 })
	o.refused(t, "was accepted at", "deliveries", "retry", held[0].ID)

	// A maintenance of the receiver, and its secret.
	o.says(t, "is suspended", "endpoints", "suspend", endpoint)
	text := o.says(t, "whsec_", "endpoints", "rotate-secret", endpoint)
	o.refused(t, "--overlap 0", "endpoints", "rotate-secret", endpoint)
	var rotated endpointShown
	o.json(t, &rotated, "endpoints", "rotate-secret", endpoint, "--overlap", "0")
	if !strings.HasPrefix(rotated.Secret, "whsec_") || strings.Contains(text, rotated.Secret) || rotated.Secrets != 1 {
		t.Errorf("rotated: %d sign", rotated.Secrets)
	}
	time.Sleep(2 * time.Second) // the worker asks once a second who is suspended
	meanwhile := o.create(t, "meanwhile")
	o.citizen(meanwhile).pay(t, "06 600 00 01")
	o.stands(t, endpoint, "held", func(e endpointShown) bool { return e.State == "suspended" && e.Reason == "operator" && e.Waiting == 1 })
	if got := o.inbox(t, meanwhile.ID); len(got) != 0 {
		t.Errorf("a suspended endpoint got %+v", got)
	}
	got := o.resume(t, endpoint, meanwhile)
	if got.SignatureValid == nil || !*got.SignatureValid || strings.Contains(got.Headers["webhook-signature"], " ") {
		t.Errorf("signed with %q, want one valid signature", got.Headers["webhook-signature"])
	}
}

// deliveryOperator looks after endpoints and deliveries.
type deliveryOperator struct{ operator }

// resume resumes an endpoint for which a session's completion waits, and sees it
// delivered. A worker that has not heard of it in time, on a busy machine, puts it
// off once more, for a minute: the clock moves on then.
func (o deliveryOperator) resume(t *testing.T, endpoint string, s session) message {
	t.Helper()
	o.says(t, "is resumed; 1 delivery", "endpoints", "resume", endpoint)
	for range 5 {
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			for _, m := range o.inbox(t, s.ID) {
				if m.Answered == http.StatusOK {
					return m
				}
			}
		}
		o.advance(t, 2*time.Minute)
	}
	return o.delivered(t, s.ID, "checkout.completed")
}

// endpointShown is an endpoint as --json prints it.
type endpointShown struct {
	ID      string `json:"id"`
	URL     string `json:"url"`
	State   string `json:"state"`
	Reason  string `json:"suspended_reason"`
	Waiting int    `json:"waiting"`
	Queued  int    `json:"queued"`
	Secrets int    `json:"signing_secrets"`
	Secret  string `json:"secret"`
}

func (o deliveryOperator) endpoints(t *testing.T) (out []endpointShown) {
	t.Helper()
	o.json(t, &out, "endpoints", "list")
	return out
}

// stands waits until an endpoint is shown as a test wants it.
func (o deliveryOperator) stands(t *testing.T, id, what string, is func(endpointShown) bool) {
	t.Helper()
	eventually(t, "endpoint is "+what, func() error {
		var e endpointShown
		if o.json(t, &e, "endpoints", "show", id); !is(e) {
			return fmt.Errorf("%+v", e)
		}
		return nil
	})
}

// deliveryShown is a delivery as --json prints it.
type deliveryShown struct {
	ID        string `json:"id"`
	Kind      string `json:"kind"`
	Endpoint  string `json:"endpoint"`
	SessionID string `json:"session_id"`
	State     string `json:"state"`
	Attempts  int    `json:"attempts"`
	Status    int    `json:"http_status"`
}

func (o deliveryOperator) deliveries(t *testing.T, filter ...string) (out []deliveryShown) {
	t.Helper()
	o.json(t, &out, append([]string{"deliveries", "list"}, filter...)...)
	return out
}
