package quittance_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	quittance "quittance.example/go"
)

const key = "sk_test_TheKeyOfTheTests0000000000"

// scripted is a service that gives the answers of a list, one for each request.
type scripted struct {
	mu       sync.Mutex
	answers  []func(w http.ResponseWriter)
	requests []*http.Request
	bodies   []string
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(body))
	if len(s.answers) == 0 {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	answer(w)
}

func service(t *testing.T, answers ...func(w http.ResponseWriter)) (*scripted, *quittance.Client) {
	t.Helper()
	return waiting(t, 2*time.Second, answers...)
}

// waiting is a service whose client waits for up to longest between two attempts.
func waiting(t *testing.T, longest time.Duration, answers ...func(w http.ResponseWriter)) (*scripted, *quittance.Client) {
	t.Helper()
	s := &scripted{answers: answers}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := quittance.New(quittance.Config{URL: server.URL, Key: key, LongestWait: longest})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func says(status int, body string, headers ...string) func(w http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangsUp ends the connection without an answer.
func hangsUp(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

const (
	open      = `{"id":"chs_1","order_id":"o","amount":5000000000,"currency":"XAF","status":"open","paid":false,"payment_ref":"4175020683362214","checkout_url":"https://pay.example/c/chs_1","embed_checkout_url":null,"mode":"hosted","client_secret":null,"expires_at":"2026-11-22T10:15:00Z"}`
	busy      = `{"type":"/docs/errors/generic.unavailable","title":"Unavailable","status":503,"detail":"Send it again.","code":"generic.unavailable","message":"Send it again.","request_id":"r-1","errors":[]}`
	ended     = `{"type":"/docs/errors/checkout.session_ended","title":"Ended","status":409,"detail":"The session has ended.","code":"checkout.session_ended","message":"The session has ended.","request_id":"r-2","errors":[]}`
	validates = `{"type":"/docs/errors/generic.validation_failed","title":"Validation failed","status":422,"detail":"2 fields are at fault; errors names each of them.","code":"generic.validation_failed","message":"2 fields are at fault; errors names each of them.","request_id":"r-3","errors":[{"field":"amount","rule":"range","message":"amount must be positive."},{"field":"order_id","rule":"length","message":"order_id is too long."}]}`
)

// The first answer is lost, the second is a proxy's, the third asks to wait. Each time the
// client sends the same request with the same key.
func TestCreationIsRepeatedWithItsKey(t *testing.T) {
	t.Parallel()
	s, c := service(t, hangsUp, says(502, "<html>"), says(503, busy, "Retry-After", "1"), says(201, open))
	begun := time.Now()
	got, err := c.CreateSession(t.Context(), quittance.SessionCreate{OrderID: "o", Amount: 5_000_000_000}, "")
	if err != nil || got.ID != "chs_1" || got.Amount != 5_000_000_000 || got.Status != quittance.SessionStatusOpen {
		t.Fatalf("%+v %v", got, err)
	}
	if waited := time.Since(begun); waited < time.Second {
		t.Errorf("it took %s, and Retry-After was a second", waited)
	}
	if len(s.requests) != 4 {
		t.Fatalf("%d requests", len(s.requests))
	}
	keys := map[string]bool{}
	for i, r := range s.requests {
		keys[r.Header.Get("Idempotency-Key")] = true
		if s.bodies[i] != `{"amount":5000000000,"order_id":"o"}` || r.Header.Get("Authorization") != "Bearer "+key || r.URL.Path != "/api/v1/checkout/sessions" {
			t.Errorf("request %d: %s %s", i, r.URL, s.bodies[i])
		}
	}
	if len(keys) != 1 || keys[""] {
		t.Errorf("the keys were %v", keys)
	}

	s, c = service(t, says(201, open))
	if _, err := c.CreateSession(t.Context(), quittance.SessionCreate{OrderID: "o", Amount: 1}, "mine"); err != nil || s.requests[0].Header.Get("Idempotency-Key") != "mine" {
		t.Errorf("%v %v", err, s.requests[0].Header)
	}
}

// A refusal is returned at once, with all that it says and without the key.
func TestProblem(t *testing.T) {
	t.Parallel()
	s, c := service(t, says(422, validates))
	_, err := c.CreateSession(t.Context(), quittance.SessionCreate{}, "")
	var p *quittance.Problem
	if !errors.As(err, &p) || p.Code != quittance.ProblemCodeGenericValidationFailed || p.Status != 422 || len(p.Errors) != 2 || len(s.requests) != 1 {
		t.Fatalf("%v after %d requests", err, len(s.requests))
	}
	for _, part := range []string{"422", "generic.validation_failed", "amount must be positive.", "order_id is too long.", "r-3"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	// Not of the API, such as a proxy's page; and a redirect, which is not followed.
	for _, status := range []int{404, 302, 500} {
		s, c := service(t, says(status, "<html>", "Location", "/elsewhere"))
		if _, err := c.Session(t.Context(), "chs_1"); !errors.As(err, &p) || p.Status != status || p.Code != "" || len(s.requests) != 1 {
			t.Errorf("%d: %v after %d requests", status, err, len(s.requests))
		}
	}
	_, c = service(t, hangsUp, hangsUp, hangsUp, hangsUp)
	if _, err := c.Session(t.Context(), "chs_1"); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("%v", err)
	}
}

// The client does not wait longer than its caller, nor longer than it is told.
func TestWaits(t *testing.T) {
	t.Parallel()
	var p *quittance.Problem
	s, c := service(t, says(503, busy, "Retry-After", "60"))
	begun := time.Now()
	if _, err := c.Session(t.Context(), "chs_1"); !errors.As(err, &p) || p.Code != quittance.ProblemCodeGenericUnavailable || len(s.requests) != 1 || time.Since(begun) > 30*time.Second {
		t.Errorf("%v after %d requests and %s", err, len(s.requests), time.Since(begun))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s, c = waiting(t, time.Hour, says(429, busy, "Retry-After", "60"))
	begun = time.Now()
	if _, err := c.Session(ctx, "chs_1"); !errors.As(err, &p) || len(s.requests) != 1 || ctx.Err() != nil {
		t.Errorf("%v after %d requests and %s", err, len(s.requests), time.Since(begun))
	}
	// A web request that creates a session is told at once that the quota is used up.
	s, c = service(t, says(429, busy, "Retry-After", "1"))
	if _, err := c.CreateSession(t.Context(), quittance.SessionCreate{OrderID: "o", Amount: 1}, ""); !errors.As(err, &p) || p.Status != 429 || len(s.requests) != 1 {
		t.Errorf("%v after %d requests", err, len(s.requests))
	}
	gone, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := c.Session(gone, "chs_1"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A page of an agency waits for a call. The service asks for a wait that ends within the longest
// one each time, or does not answer at all. The call ends with its budget.
func TestBudget(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	s := &scripted{answers: []func(w http.ResponseWriter){says(503, busy, "Retry-After", "1"), func(http.ResponseWriter) { <-silent }}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(silent) })
	c, err := quittance.New(quittance.Config{URL: server.URL, Key: key, Budget: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := c.Session(t.Context(), "chs_1"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
	another := &scripted{answers: []func(w http.ResponseWriter){says(503, busy, "Retry-After", "11")}}
	standard := httptest.NewServer(another)
	t.Cleanup(standard.Close)
	if c, err = quittance.New(quittance.Config{URL: standard.URL, Key: key}); err != nil {
		t.Fatal(err)
	}
	var p *quittance.Problem
	if _, err := c.Session(t.Context(), "chs_1"); !errors.As(err, &p) || len(another.requests) != 1 {
		t.Errorf("beyond the ten seconds of the default: %v after %d requests", err, len(another.requests))
	}
}

// The answer to a cancellation was lost, and its repetition is told that the session has
// ended. It is cancelled, so the caller has what it wanted.
func TestCancellationWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	cancelled := strings.Replace(open, `"open"`, `"cancelled"`, 1)
	_, c := service(t, hangsUp, says(409, ended), says(200, cancelled))
	if got, err := c.CancelSession(t.Context(), "chs_1"); err != nil || got.Status != quittance.SessionStatusCancelled {
		t.Errorf("%+v %v", got, err)
	}
	var p *quittance.Problem
	_, c = service(t, hangsUp, says(409, ended), says(200, strings.Replace(open, `"open"`, `"completed"`, 1)))
	if _, err := c.CancelSession(t.Context(), "chs_1"); !errors.As(err, &p) || p.Code != quittance.ProblemCodeCheckoutSessionEnded {
		t.Errorf("a completed session: %v", err)
	}
	s, c := service(t, says(409, ended))
	if _, err := c.CancelSession(t.Context(), "chs_1"); !errors.As(err, &p) || len(s.requests) != 1 {
		t.Errorf("the first attempt: %v after %d requests", err, len(s.requests))
	}
}

// A session that moves to the next page while the list is read comes once. An error ends the list.
func TestAllSessions(t *testing.T) {
	t.Parallel()
	page := func(ids ...string) string {
		var items []string
		for _, id := range ids {
			items = append(items, strings.Replace(open, "chs_1", id, 1))
		}
		return `{"items":[` + strings.Join(items, ",") + `],"page":1,"page_size":2,"total":4}`
	}
	s, c := service(t, says(200, page("chs_4", "chs_3")), says(200, page("chs_3", "chs_2")), says(200, page("chs_1")), says(200, page("chs_4", "chs_3")), says(403, ended))
	from := time.Date(2026, 11, 21, 0, 0, 0, 0, time.FixedZone("", 3600))
	read := func() (ids []string, err error) {
		for session, err := range c.AllSessions(t.Context(), quittance.Filter{CompletedFrom: from, PageSize: 2}) {
			if err != nil {
				return ids, err
			}
			ids = append(ids, session.ID)
		}
		return ids, nil
	}
	if ids, err := read(); err != nil || strings.Join(ids, " ") != "chs_4 chs_3 chs_2 chs_1" {
		t.Errorf("%v %v", ids, err)
	}
	if got, want := s.requests[2].URL.RawQuery, "completed_from=2026-11-21T00%3A00%3A00%2B01%3A00&page=3&page_size=2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var p *quittance.Problem
	if ids, err := read(); len(ids) != 2 || !errors.As(err, &p) || p.Status != 403 {
		t.Errorf("%v %v", ids, err)
	}
}

func TestSessionEvents(t *testing.T) {
	t.Parallel()
	const event = `{"event_id":"evt_1","event":"checkout.completed","created_at":"2026-11-21T10:18:00.412Z","deliveries":[{"endpoint":"e","url":"https://a","state":"waiting","attempts":2,"last_status":500,"next_at":"2026-11-21T10:19:07Z"}]}`
	s, c := service(t, says(200, `{"items":[`+event+`]}`), says(202, event))
	events, err := c.Events(t.Context(), "chs_1")
	if err != nil || len(events) != 1 || len(events[0].Deliveries) != 1 || events[0].Deliveries[0].State != quittance.DeliveryStateWaiting || events[0].Deliveries[0].LastStatus != 500 {
		t.Errorf("%+v %v", events, err)
	}
	if again, err := c.Redeliver(t.Context(), "chs_1", events[0].EventID); err != nil || again.EventID != "evt_1" {
		t.Errorf("%+v %v", again, err)
	}
	if path := s.requests[0].URL.Path + " " + s.requests[1].URL.Path; path != "/api/v1/checkout/sessions/chs_1/events /api/v1/checkout/sessions/chs_1/events/evt_1/redeliver" {
		t.Error(path)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	s, c := service(t, says(200, `{"items":[`+open+`],"page":2,"page_size":1,"total":7}`), says(200, open), says(200, `{"session_id":"chs_1","order_id":"o","amount":5,"currency":"XAF","status":"completed","paid":true,"notice_id":"n","tenant_id":"t","metadata":{"case":"4"},"service_code":null,"service_label":null}`))
	page, err := c.Sessions(t.Context(), quittance.Filter{OrderID: "a&b=c", Status: quittance.SessionStatusOpen, Page: 2, PageSize: 1})
	if err != nil || page.Total != 7 || len(page.Items) != 1 || s.requests[0].URL.RawQuery != "order_id=a%26b%3Dc&page=2&page_size=1&status=open" {
		t.Errorf("%+v %v %s", page, err, s.requests[0].URL.RawQuery)
	}
	if _, err := c.Session(t.Context(), "../x?y"); err != nil || s.requests[1].URL.EscapedPath() != "/api/v1/checkout/sessions/..%2Fx%3Fy" {
		t.Errorf("%v %s", err, s.requests[1].URL.EscapedPath())
	}
	done, err := c.VerifyCompletion(t.Context(), quittance.CompletionVerify{CompletionToken: "cpt_1", OrderID: "o"})
	if err != nil || !done.Paid || done.Metadata["case"] != "4" || s.bodies[2] != `{"completion_token":"cpt_1","order_id":"o"}` {
		t.Errorf("%+v %v %s", done, err, s.bodies[2])
	}

	// Every field has the name and the form of the API.
	full, err := json.Marshal(quittance.SessionCreate{
		OrderID: "o", Amount: 1, Currency: quittance.CurrencyEUR, Mode: quittance.SessionModeEmbedded, TenantID: "t", ServiceCode: "s", Description: "d", Note: "n",
		Customer: quittance.Customer{Phone: "+242066000001"}, CustomerID: "c", Metadata: map[string]string{"k": "v"}, SuccessURL: "https://a", CancelURL: "https://b",
	})
	if want := `{"amount":1,"cancel_url":"https://b","currency":"EUR","customer":{"phone":"+242066000001"},"customer_id":"c","description":"d","metadata":{"k":"v"},"mode":"embedded","note":"n","order_id":"o","service_code":"s","success_url":"https://a","tenant_id":"t"}`; err != nil || string(full) != want {
		t.Errorf("%s %v", full, err)
	}
}

// Papers are files, receipts also signed tokens. A paper is asked for again as anything else, and
// what is no PDF is never returned as one.
func TestPapers(t *testing.T) {
	t.Parallel()
	pdf := "%PDF-1.7\n\xff"
	s, c := service(t, says(503, busy, "Retry-After", "1"), says(200, pdf, "Content-Type", "application/pdf"), says(200, pdf, "Content-Type", "application/pdf"),
		says(200, `{"items":[{"transaction_id":"x","notice_ref":"AV1","token":"a.b.c","url":"https://pay.example/q#a.b.c"}]}`), says(200, "<html>", "Content-Type", "text/html"), says(409, ended))
	if got, err := c.Notice(t.Context(), "chs_1", ""); err != nil || string(got) != pdf {
		t.Errorf("%q %v", got, err)
	}
	if got, err := c.ReceiptPDF(t.Context(), "chs_1", "x", quittance.LanguageEnglish); err != nil || string(got) != pdf {
		t.Errorf("%q %v", got, err)
	}
	if got, err := c.Receipts(t.Context(), "chs_1"); err != nil || len(got.Items) != 1 || got.Items[0].Token != "a.b.c" || got.Items[0].NoticeRef != "AV1" {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := c.Notice(t.Context(), "chs_1", ""); err == nil || got != nil {
		t.Errorf("a page: %q %v", got, err)
	}
	var p *quittance.Problem
	if _, err := c.ReceiptPDF(t.Context(), "chs_1", "", ""); !errors.As(err, &p) || p.Status != http.StatusConflict || p.Code == "" {
		t.Errorf("refused: %v", err)
	}
	const at, file, data = "/api/v1/checkout/sessions/chs_1/", "application/pdf, application/problem+json", "application/json, application/problem+json"
	for i, want := range [][2]string{{"notice", file}, {"notice", file}, {"receipt?lang=en&transaction_id=x", file}, {"receipt", data}, {"notice", file}, {"receipt", file}} {
		if r := s.requests[i]; r.URL.RequestURI() != at+want[0] || r.Header.Get("Accept") != want[1] {
			t.Errorf("request %d: %s, Accept %s, want %v", i, r.URL.RequestURI(), r.Header.Get("Accept"), want)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]quittance.Config{
		"URL must be an address":   {URL: "pay.example", Key: key},
		"URL must have no path":    {URL: "https://pay.example/api/v1", Key: key},
		"URL must use https":       {URL: "http://pay.example", Key: key},
		"Key must begin":           {URL: "https://pay.example", Key: "whsec_x"},
		"have no white space":      {URL: "https://pay.example", Key: key + "\n"},
		"Attempts must not be neg": {URL: "https://pay.example", Key: key, Attempts: -1},
	} {
		if _, err := quittance.New(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), key) {
			t.Errorf("New says %v, want %q", err, want)
		}
	}
	for _, url := range []string{"https://pay.example/", "http://127.0.0.1:8080", "http://[::1]:8080", "http://localhost:8080"} {
		if _, err := quittance.New(quittance.Config{URL: url, Key: key}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
