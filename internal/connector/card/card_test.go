package card_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/card"
	"quittance/test/connectors"
)

func request() connector.Request {
	return connector.Request{
		ID: uuid.NewString(), Amount: 507550, Currency: "EUR", Description: "Patente 2026",
		ReturnURL: "https://pay.example/c/chs_1", CallbackURL: "http://127.0.0.1:9/callbacks/card/x", ExpiresAt: now().Add(5 * time.Minute),
	}
}

func reference(r connector.Request) connector.Reference {
	return connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
}

// The bytes on the wire are the documented ones. openssl made the expected signatures from
// the documented lines.
func TestWire(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	c, err := card.New(connector.Config{Now: now, Timestamp: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	a := card.Account{BaseURL: connector.BaseURL(server.URL + "/gateway/"), Merchant: "impots&co", Secret: "s3cret"}
	r := connector.Request{
		ID: "2f6c0f6e-8f5b-4a39-9d53-3b8f1d0c8f11", Amount: 5075, Currency: "XAF", Description: "Patente",
		ReturnURL: "https://pay.example/c/chs_1", CallbackURL: "https://pay.example/callbacks/x", ExpiresAt: at.Add(5 * time.Minute),
	}
	_, _ = c.Collect(t.Context(), a, r)
	_, _ = c.Enquire(t.Context(), a, reference(r))
	want := []string{
		"POST /gateway/v1/transactions",
		`HMAC-SHA256 merchant="impots&co", timestamp="1772366400", signature="0f2246b6489135c778d30a85f07a8dc0f4a9a8b8f9c642fb6d0b850c18c2b70a"`,
		"application/json",
		`{"merchant":"impots\u0026co","reference":"2f6c0f6e-8f5b-4a39-9d53-3b8f1d0c8f11","amount":5075,"currency":"XAF","description":"Patente",` +
			`"return_url":"https://pay.example/c/chs_1","callback_url":"https://pay.example/callbacks/x","expires_at":"2026-03-01T12:05:00Z"}`,
		"GET /gateway/v1/transactions/2f6c0f6e-8f5b-4a39-9d53-3b8f1d0c8f11?merchant=impots%26co",
		`HMAC-SHA256 merchant="impots&co", timestamp="1772366400", signature="063476bd3e12ff51a60b7d45387297756f0ba7666be696adde963cc5f00271fe"`,
		"",
		"",
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("%d: got\n%s\nwant\n%s", i, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), want[i])
		}
	}
}

// The acquirer takes 200 characters of description; the cash-in surface takes 2000.
func TestLongDescription(t *testing.T) {
	t.Parallel()
	var sent struct {
		Description string `json:"description"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = json.NewDecoder(r.Body).Decode(&sent)
	}))
	defer server.Close()
	c, err := card.New(connector.Config{Now: now, Timestamp: now})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = c.Collect(t.Context(), card.Account{BaseURL: connector.BaseURL(server.URL), Merchant: "impots", Secret: "s3cret"}, connector.Request{
		ID: "2f6c0f6e-8f5b-4a39-9d53-3b8f1d0c8f11", Amount: 5075, Currency: "XAF", Description: strings.Repeat("é", 2000),
		ReturnURL: "https://pay.example/c/chs_1", CallbackURL: "https://pay.example/callbacks/x", ExpiresAt: now().Add(5 * time.Minute),
	})
	if sent.Description != strings.Repeat("é", 200) {
		t.Errorf("the acquirer is sent %d bytes of description", len(sent.Description))
	}
}

// A refusal of the request counts unless the acquirer accepted an earlier request of the
// same reference.
func TestRefusalsOfTheRequest(t *testing.T) {
	t.Parallel()
	faults := &connectors.Faults{}
	base := operator(t, faults)
	c := patient(t)
	for code, want := range map[string]checkout.FailureCode{
		"currency_not_supported": checkout.FailureAmountInvalid,
		"amount_not_supported":   checkout.FailureAmountInvalid,
		"merchant_inactive":      checkout.FailurePayeeUnavailable,
	} {
		body := `{"code":"` + code + `","message":"4111 1111 1111 1111"}`
		r := request()
		faults.Answer(1, isRequest, http.StatusUnprocessableEntity, body)
		if o, err := c.Collect(t.Context(), account(base), r); err != nil || o.Status != checkout.OutcomeRefused || o.FailureCode != want || o.Reason != code {
			t.Errorf("%s: %+v, %v", code, o, err)
		}
		// The enquiry after a refusal fails: the outcome is undecided.
		faults.Answer(1, isRequest, http.StatusUnprocessableEntity, body)
		faults.Next(1, isEnquiry, connectors.Error500)
		if _, err := c.Collect(t.Context(), account(base), r); !connector.Uncertain(err) || connector.FaultOf(err) != connector.FaultServer {
			t.Errorf("%s, no enquiry: %v", code, err)
		}
		// The acquirer accepted the request before.
		if _, err := c.Collect(t.Context(), account(base), r); err != nil {
			t.Fatal(err)
		}
		faults.Answer(1, isRequest, http.StatusUnprocessableEntity, body)
		if o, err := c.Collect(t.Context(), account(base), r); err != nil || o.Status != checkout.OutcomePending {
			t.Errorf("%s, taken before: %+v, %v", code, o, err)
		}
	}
	for _, answer := range []struct {
		status int
		body   string
	}{
		{http.StatusUnprocessableEntity, `{"code":"description_invalid"}`},
		{http.StatusUnprocessableEntity, `{"message":"currency_not_supported"}`},
		{http.StatusNotFound, `{"code":"currency_not_supported"}`},
		{http.StatusOK, `{"code":"currency_not_supported"}`},
	} {
		faults.Answer(1, isRequest, answer.status, answer.body)
		if o, err := c.Collect(t.Context(), account(base), request()); !connector.Uncertain(err) || connector.FaultOf(err) != connector.FaultMalformed {
			t.Errorf("%d %s: %+v, %v", answer.status, answer.body, o, err)
		}
	}
	// The simulator refuses a currency that cards do not take.
	r := request()
	r.Currency = "XOF"
	if o, err := c.Collect(t.Context(), account(base), r); err == nil || connector.Uncertain(err) {
		t.Errorf("a currency that cards do not take: %+v, %v", o, err)
	}
}

func TestAnswersToARequest(t *testing.T) {
	t.Parallel()
	faults := &connectors.Faults{}
	base := operator(t, faults)
	c := patient(t)
	answer := func(change func(map[string]any)) (connector.Outcome, error) {
		r := request()
		m := map[string]any{
			"transaction_id": "T-991", "reference": r.ID, "status": "pending", "url": "https://pay.example/T-991",
			"client_token": "hush", "checkout_environment": "test", "whatever": 1,
		}
		change(m)
		body, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		faults.Answer(1, isRequest, http.StatusCreated, string(body))
		return c.Collect(t.Context(), account(base), r)
	}
	for _, address := range []string{"https://pay.example/T-991", "http://127.0.0.1:8081/x?token=1", "http://localhost/x", "http://[::1]:80/x"} {
		if o, err := answer(func(m map[string]any) { m["url"] = address }); err != nil || o.Redirect == nil || o.Redirect.URL != address {
			t.Errorf("%s: %+v, %v", address, o, err)
		}
	}
	if o, err := answer(func(m map[string]any) { m["status"] = "processing" }); err != nil || o.Status != checkout.OutcomePending || o.Redirect == nil {
		t.Errorf("processing: %+v, %v", o, err)
	}
	for name, change := range map[string]func(map[string]any){
		"no token":             func(m map[string]any) { delete(m, "client_token") },
		"long token":           func(m map[string]any) { m["client_token"] = strings.Repeat("a", 5000) },
		"another environment":  func(m map[string]any) { m["checkout_environment"] = "production" },
		"no id":                func(m map[string]any) { m["transaction_id"] = "" },
		"an id of prose":       func(m map[string]any) { m["transaction_id"] = "card 4111" },
		"another reference":    func(m map[string]any) { m["reference"] = uuid.NewString() },
		"a status of nobody's": func(m map[string]any) { m["status"] = "settled" },
		"no status":            func(m map[string]any) { delete(m, "status") },
	} {
		o, err := answer(change)
		if !connector.Uncertain(err) || connector.FaultOf(err) != connector.FaultMalformed || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "4111") {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func malformed(err error) bool {
	return err != nil && connector.FaultOf(err) == connector.FaultMalformed
}

func TestAnswersToAnEnquiry(t *testing.T) {
	t.Parallel()
	faults := &connectors.Faults{}
	base := operator(t, faults)
	c := patient(t)
	r := request()
	enquire := func(status int, body string) (connector.Outcome, error) {
		faults.Answer(1, isEnquiry, status, body)
		return c.Enquire(t.Context(), account(base), reference(r))
	}
	if o, err := enquire(http.StatusNotFound, `{"code":"transaction_not_found"}`); err != nil || o.Status != checkout.OutcomeUnknown {
		t.Errorf("%+v, %v", o, err)
	}
	for _, body := range []string{`{}`, `{"code":"no_such_path"}`, `404 page not found`} {
		if o, err := enquire(http.StatusNotFound, body); !malformed(err) {
			t.Errorf("%s: %+v, %v", body, o, err)
		}
	}
	if _, err := enquire(http.StatusOK, string(report(uuid.NewString(), "approved", r.Amount, r.Currency))); !malformed(err) {
		t.Errorf("another payment: %v", err)
	}
	if _, err := enquire(http.StatusOK, string(report(r.ID, "refunded", r.Amount, r.Currency))); !malformed(err) {
		t.Errorf("an unknown status: %v", err)
	}
	// An approval has the amount that the acquirer names, not the one that was asked for.
	for _, took := range []struct {
		amount          int64
		currency, known string
	}{{1, "EUR", "EUR"}, {507550, "USD", "USD"}, {507550, "euro 4111", ""}, {0, "", ""}} {
		o, err := enquire(http.StatusOK, string(report(r.ID, "approved", took.amount, took.currency)))
		if err != nil || o.Status != checkout.OutcomeApproved || o.Amount != took.amount || o.Currency != took.known || o.OperatorRef != "T-991" || o.Redirect != nil {
			t.Errorf("%+v: %+v, %v", took, o, err)
		}
	}
	// The acquirer's date of an approval. An unreadable one does not matter.
	for text, want := range map[string]time.Time{
		`"2026-03-01T13:03:10+01:00"`: time.Date(2026, 3, 1, 12, 3, 10, 0, time.UTC), `"1.3.2026"`: {}, `17`: {}, `null`: {}, `""`: {},
	} {
		o, err := enquire(http.StatusOK, `{"transaction_id":"T-1","reference":"`+r.ID+`","status":"approved","amount":1,"currency":"EUR","approved_at":`+text+`}`)
		if err != nil || o.Status != checkout.OutcomeApproved || !o.ApprovedAt.Equal(want) {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
	o, err := enquire(http.StatusOK, `{"transaction_id":"T-1","reference":"`+r.ID+`","status":"declined","reason":"insufficient_funds"}`)
	if err != nil || o.Status != checkout.OutcomeRefused || o.FailureCode != checkout.FailureCardDeclined || o.Reason != "insufficient_funds" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = enquire(http.StatusOK, `{"transaction_id":"T-1","reference":"`+r.ID+`","status":"declined","reason":"Card 4111 declined"}`); err != nil || o.Reason != "declined" {
		t.Errorf("prose is passed on: %+v, %v", o, err)
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	c := patient(t)
	id := uuid.NewString()
	for status, want := range map[string]checkout.FailureCode{
		"declined": checkout.FailureCardDeclined, "authentication_failed": checkout.FailureCardAuthentication,
		"abandoned": checkout.FailureCardAbandoned, "expired": checkout.FailureCardAbandoned,
	} {
		got, err := c.ParseReport(nil, report(id, status, 1, "EUR"))
		if err != nil || got.ID != id || got.Ask || got.Outcome.Status != checkout.OutcomeRefused || got.Outcome.FailureCode != want {
			t.Errorf("%s: %+v, %v", status, got, err)
		}
	}
	for _, status := range []string{"pending", "processing"} {
		if got, err := c.ParseReport(nil, report(id, status, 1, "EUR")); err != nil || got.Outcome.Decided() {
			t.Errorf("%s: %+v, %v", status, got, err)
		}
	}
	for _, body := range []string{string(report("", "approved", 1, "EUR")), string(report(id, "APPROVED", 1, "EUR")), `{"reference":"` + id + `","status":"approved","amount":"1"}`} {
		if got, err := c.ParseReport(nil, []byte(body)); !errors.Is(err, connector.ErrReport) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

// With an account without a usable secret nothing is signed or sent.
func TestAccountWithoutSecret(t *testing.T) {
	t.Parallel()
	c := patient(t)
	for _, a := range []card.Account{
		{BaseURL: "http://127.0.0.1:9", Merchant: "impots"},
		{BaseURL: "http://127.0.0.1:9", Secret: "hush"},
		{BaseURL: "http://127.0.0.1:9", Secret: "hush", Merchant: `a", timestamp="1`},
		{BaseURL: "http://127.0.0.1:9", Secret: "hush", Merchant: "a\nb"},
	} {
		_, err := c.Collect(t.Context(), a, request())
		if connector.FaultOf(err) != connector.FaultCredentials || connector.Uncertain(err) || strings.Contains(err.Error(), "hush") {
			t.Errorf("merchant %q: %v", a.Merchant, err)
		}
	}
}

// Enquiries and reports show the states of a payment on the acquirer's page over time.
func TestInTheCourseOfTime(t *testing.T) {
	t.Parallel()
	for card, steps := range map[string][]struct {
		after  time.Duration
		status checkout.OutcomeStatus
		code   checkout.FailureCode
	}{
		nobody:                {{4 * time.Minute, checkout.OutcomePending, ""}, {time.Minute, checkout.OutcomeRefused, checkout.FailureCardAbandoned}},
		"4000 0000 0000 0003": {{4 * time.Minute, checkout.OutcomePending, ""}, {time.Minute, checkout.OutcomeRefused, checkout.FailureCardAbandoned}},
		"4000 0000 0000 0010": {{5 * time.Minute, checkout.OutcomePending, ""}, {time.Minute, checkout.OutcomeApproved, ""}},
		"4000 0000 0000 0012": {{0, checkout.OutcomePending, ""}, {time.Minute, checkout.OutcomeApproved, ""}},
	} {
		t.Run(card, func(t *testing.T) {
			t.Parallel()
			var ahead atomic.Int64
			type received struct {
				header http.Header
				body   []byte
			}
			reports := make(chan received, 10)
			merchant := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				reports <- received{r.Header, body}
			}))
			t.Cleanup(merchant.Close)
			base := operator(t, &connectors.Faults{}, func(cfg *simulator.Config) {
				cfg.Now = func() time.Time { return now().Add(time.Duration(ahead.Load())) }
				cfg.AmbiguousDelay, cfg.LateDelay = 30*time.Second, 30*time.Second
			})
			c := patient(t)
			r := request()
			r.ReturnURL, r.CallbackURL = "https://pay.example/c/hush", merchant.URL+"/callbacks/card"
			o, err := c.Collect(t.Context(), account(base), r)
			if err != nil || o.Redirect == nil {
				t.Fatalf("%+v, %v", o, err)
			}
			visit(t, *o.Redirect, card)
			for _, step := range steps {
				ahead.Add(int64(step.after))
				o, err = c.Enquire(t.Context(), account(base), reference(r))
				if err != nil || o.Status != step.status || o.FailureCode != step.code {
					t.Errorf("after %v: %+v, %v; want %s", step.after, o, err, step.status)
				}
			}
			if strings.HasSuffix(card, "03") {
				return // found by enquiry alone
			}
			got := <-reports
			if err := c.VerifyReport(account(base), got.header, got.body); err != nil {
				t.Errorf("report: %v", err)
			}
			told, err := c.ParseReport(got.header, got.body)
			if err != nil || told.ID != r.ID || told.Outcome != o {
				t.Errorf("the report says %+v, %v, the enquiry %+v", told, err, o)
			}
		})
	}
}

// patient returns a connector with a longer time-out, for a busy machine.
func patient(t *testing.T) *card.Connector {
	t.Helper()
	c, err := card.New(connector.Config{Now: now, Timeout: 20 * time.Second, EnquiriesPerSecond: 100})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Running collections hold the fingerprint of their account: it must not change. It is the
// same when the address or the secret is corrected. The form of the first release contained
// the address, and is known too.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	a := card.Account{BaseURL: "https://operator.example", Merchant: "one", Secret: "s"}
	const want, earlier = "a00cd1ba91e5b99d", "2a86571198c6bede"
	if got := a.Fingerprint(); got != want {
		t.Errorf("fingerprint %s, stored collections hold %s", got, want)
	}
	if got := a.EarlierFingerprint(); got != earlier || !connector.Is(a, earlier) || !connector.Is(a, want) || connector.Is(a, "") {
		t.Errorf("earlier fingerprint %s, stored collections hold %s", got, earlier)
	}
	corrected, rotated, other := a, a, a
	corrected.BaseURL, rotated.Secret, other.Merchant = "https://other.example", "another", "two"
	if corrected.Fingerprint() != want || rotated.Fingerprint() != want || other.Fingerprint() == want {
		t.Error("the fingerprint depends on the address or the secret, or not on the merchant")
	}
}
