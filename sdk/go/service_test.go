package quittance_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	quittance "quittance.example/go"
)

// loses sends requests and loses the answer of the first.
type loses struct{ lost atomic.Bool }

func (l *loses) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && l.lost.CompareAndSwap(false, true) {
		_ = resp.Body.Close()
		return nil, errors.New("the answer is lost")
	}
	return resp, err
}

// The whole way on a running service: QUITTANCE_URL and QUITTANCE_KEY name it and a test key
// of it. The key's application sends checkout.cancelled to port QUITTANCE_WEBHOOK_PORT of
// this machine, signed with QUITTANCE_WEBHOOK_SECRET.
func TestService(t *testing.T) {
	t.Parallel()
	if os.Getenv("QUITTANCE_URL") == "" {
		t.Skip("QUITTANCE_URL names no running service; `make test/clients` starts one")
	}
	events := receives(t)
	transport := &loses{}
	c, err := quittance.New(quittance.Config{URL: os.Getenv("QUITTANCE_URL"), Key: os.Getenv("QUITTANCE_KEY"), HTTP: &http.Client{Transport: transport, Timeout: 30 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	order := "sdk-go-" + time.Now().Format("150405.000000000")
	body := quittance.SessionCreate{OrderID: order, Amount: 5_000_000_000, Metadata: map[string]string{"case": "4"}, Customer: quittance.Customer{Name: "A. Contribuable"}}

	s, err := c.CreateSession(t.Context(), body, "")
	if err != nil || s.OrderID != order || s.Amount != 5_000_000_000 || s.Mode != quittance.SessionModeHosted || !transport.lost.Load() {
		t.Fatalf("after a lost answer: %+v %v", s, err)
	}
	page, err := c.Sessions(t.Context(), quittance.Filter{OrderID: order})
	if err != nil || page.Total != 1 || !reflect.DeepEqual(page.Items[0], s) {
		t.Errorf("the order has %+v %v, want the one session %+v", page, err, s)
	}
	if got, err := c.Session(t.Context(), s.ID); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v %v", got, err)
	}

	var p *quittance.Problem
	if _, err := c.CreateSession(t.Context(), body, ""); !errors.As(err, &p) || p.Code != quittance.ProblemCodeCheckoutOrderOpen || p.RequestID == "" {
		t.Errorf("the order again: %v", err)
	}
	if _, err := c.CreateSession(t.Context(), quittance.SessionCreate{OrderID: strings.Repeat("x", 201)}, ""); !errors.As(err, &p) || len(p.Errors) != 2 {
		t.Errorf("two faults: %v", err)
	}
	if _, err := c.Session(t.Context(), "chs_unknown"); !errors.As(err, &p) || p.Status != http.StatusNotFound {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := c.VerifyCompletion(t.Context(), quittance.CompletionVerify{CompletionToken: "cpt_unknown", OrderID: order}); !errors.As(err, &p) || p.Code != quittance.ProblemCodeCheckoutCompletionTokenNotFound {
		t.Errorf("an unknown token: %v", err)
	}

	if paper, err := c.Notice(t.Context(), s.ID, quittance.LanguageEnglish); err != nil || !strings.HasPrefix(string(paper), "%PDF-") {
		t.Errorf("the notice: %d bytes, %v", len(paper), err)
	}
	if _, err := c.ReceiptPDF(t.Context(), s.ID, "", ""); !errors.As(err, &p) || p.Code != quittance.ProblemCodeCheckoutNotCompleted {
		t.Errorf("the receipt of an open session: %v", err)
	}
	if _, err := c.Receipts(t.Context(), s.ID); !errors.As(err, &p) || p.Code != quittance.ProblemCodeCheckoutNotCompleted {
		t.Errorf("the receipts of an open session: %v", err)
	}

	transport.lost.Store(false)
	if got, err := c.CancelSession(t.Context(), s.ID); err != nil || got.Status != quittance.SessionStatusCancelled {
		t.Errorf("after a lost answer: %+v %v", got, err)
	}
	if _, err := c.CancelSession(t.Context(), s.ID); !errors.As(err, &p) || p.Code != quittance.ProblemCodeCheckoutSessionEnded {
		t.Errorf("cancelled again: %v", err)
	}
	for {
		select {
		case e := <-events:
			if e.SessionID != s.ID {
				continue
			}
			if data, ok := e.Data.(*quittance.CancelledEvent); !ok || data.OrderID != order || data.Amount != 5_000_000_000 || e.Metadata["case"] != "4" || e.Status != quittance.SessionStatusCancelled {
				t.Errorf("%+v", e)
			}
			told, err := c.Events(t.Context(), s.ID)
			if err != nil || len(told) != 1 || told[0].EventID != e.EventID {
				t.Errorf("the events are %+v, %v", told, err)
			}
			if again, err := c.Redeliver(t.Context(), s.ID, e.EventID); err != nil || again.EventID != e.EventID {
				t.Errorf("sent again: %+v %v", again, err)
			}
			return
		case <-time.After(time.Minute):
			t.Fatal("no webhook came")
		}
	}
}

// receives listens for webhooks and returns those that are signed.
func receives(t *testing.T) <-chan quittance.Event {
	t.Helper()
	r, err := quittance.NewReceiver(os.Getenv("QUITTANCE_WEBHOOK_SECRET"))
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan quittance.Event, 100)
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("QUITTANCE_WEBHOOK_PORT"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		e, err := r.Read(request)
		if err != nil {
			t.Errorf("a webhook: %v", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		events <- e
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return events
}
