package mtn_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/test/connectors"
)

// gateway gives the answers that a test sets and counts tokens.
type gateway struct {
	tokens atomic.Int64
	asked  atomic.Int64
	answer func(w http.ResponseWriter, r *http.Request)
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isToken(r) {
		n := g.tokens.Add(1)
		_, _ = fmt.Fprintf(w, `{"access_token":"t%d","token_type":"access_token","expires_in":3600}`, n)
		return
	}
	g.asked.Add(1)
	g.answer(w, r)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*gateway, mtn.Account) {
	t.Helper()
	g := &gateway{answer: answer}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, account(connector.BaseURL(server.URL))
}

func request() connector.Request {
	return connector.Request{ID: uuid.NewString(), Payer: "242066000001", Amount: 5075, Currency: "XAF", PaymentRef: "1234567890123456"}
}

// Outcomes of every state and reason of MTN, in status answers and in reports.
func TestStates(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]connector.Outcome{
		`{"status":"SUCCESSFUL","amount":"5075","currency":"XAF","financialTransactionId":"9"}`: {Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "9"},
		`{"status":"SUCCESSFUL","amount":5075,"currency":"XAF","financialTransactionId":9}`:     {Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "9"},
		`{"status":"SUCCESSFUL","amount":"5075.00","currency":"XAF"}`:                           {Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF"},
		`{"status":"SUCCESSFUL","amount":"50.75","currency":"EUR"}`:                             {Status: checkout.OutcomeApproved, Amount: 5075, Currency: "EUR"},
		`{"status":"SUCCESSFUL","amount":"5075.5","currency":"XAF"}`:                            {Status: checkout.OutcomeApproved, Currency: "XAF"},
		`{"status":"SUCCESSFUL"}`:                                                      {Status: checkout.OutcomeApproved},
		`{"status":"PENDING"}`:                                                         {Status: checkout.OutcomePending},
		`{"status":"PENDING","reason":"ONGOING"}`:                                      {Status: checkout.OutcomeAmbiguous, Reason: "ONGOING"},
		`{"status":"FAILED","reason":"DELAYED"}`:                                       {Status: checkout.OutcomeAmbiguous, Reason: "DELAYED"},
		`{"status":"FAILED","reason":"PENDING"}`:                                       {Status: checkout.OutcomeAmbiguous, Reason: "PENDING"},
		`{"status":"FAILED","reason":"APPROVAL_REJECTED"}`:                             refusal("APPROVAL_REJECTED", checkout.FailureRejected),
		`{"status":"FAILED","reason":{"code":"REJECTED","message":"of 242066000001"}}`: refusal("REJECTED", checkout.FailureRejected),
		`{"status":"FAILED","reason":"EXPIRED"}`:                                       refusal("EXPIRED", checkout.FailureApprovalTimeout),
		`{"status":"FAILED","reason":"COULD_NOT_PERFORM_TRANSACTION"}`:                 refusal("COULD_NOT_PERFORM_TRANSACTION", checkout.FailureApprovalTimeout),
		`{"status":"FAILED","reason":"NOT_ENOUGH_FUNDS"}`:                              refusal("NOT_ENOUGH_FUNDS", checkout.FailureInsufficientFunds),
		`{"status":"FAILED","reason":"PAYER_LIMIT_REACHED"}`:                           refusal("PAYER_LIMIT_REACHED", checkout.FailurePayerLimitReached),
		`{"status":"FAILED","reason":"PAYER_NOT_FOUND"}`:                               refusal("PAYER_NOT_FOUND", checkout.FailurePayerNotFound),
		`{"status":"FAILED","reason":"PAYEE_NOT_ALLOWED_TO_RECEIVE"}`:                  refusal("PAYEE_NOT_ALLOWED_TO_RECEIVE", checkout.FailurePayeeUnavailable),
		`{"status":"FAILED","reason":"SERVICE_UNAVAILABLE"}`:                           refusal("SERVICE_UNAVAILABLE", checkout.FailureOperatorUnavailable),
		`{"status":"FAILED","reason":"INTERNAL_PROCESSING_ERROR"}`:                     refusal("INTERNAL_PROCESSING_ERROR", checkout.FailureOperatorError),
		`{"status":"FAILED","reason":"SOMETHING_NEW"}`:                                 refusal("SOMETHING_NEW", checkout.FailureOperatorError),
		`{"status":"FAILED","reason":"The payer 242066000001 has no money"}`:           refusal("", checkout.FailureOperatorError),
		`{"status":"FAILED"}`:                                                          refusal("", checkout.FailureOperatorError),
	} {
		c := newConnector(t)
		_, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if got, err := c.Enquire(t.Context(), a, connector.Reference{ID: uuid.NewString()}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", body, got, err, want)
		}
		if got, err := c.ParseReport(nil, []byte(body)); err != nil || got.Outcome != want {
			t.Errorf("report %s: %+v, %v, want %+v", body, got, err, want)
		}
	}
	for _, body := range []string{`{"status":"TIMEOUT"}`, `{"status":""}`, `{"status":"successful"}`, `{"Status":{}}`, `[{"status":"SUCCESSFUL"}]`} {
		c := newConnector(t)
		_, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if got, err := c.Enquire(t.Context(), a, connector.Reference{ID: uuid.NewString()}); connector.FaultOf(err) != connector.FaultMalformed || err == nil {
			t.Errorf("%s: %+v, %v, want malformed", body, got, err)
		}
	}
}

func refusal(reason string, code checkout.FailureCode) connector.Outcome {
	return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: code, Reason: reason}
}

// The request holds our id, the account, the amount without decimals, and text that the
// gateway accepts.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	r := request()
	r.Description, r.CallbackURL = "Impôt d'été « 2026 » — œuvre\n<b>", "https://pay.example/callbacks/mtn/x/y/z"
	var mu sync.Mutex
	var header http.Header
	var body map[string]any
	_, a := serve(t, func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		header = q.Header.Clone()
		_ = json.NewDecoder(q.Body).Decode(&body)
		w.WriteHeader(http.StatusAccepted)
	})
	o, err := newConnector(t).Collect(t.Context(), a, r)
	if err != nil || o.Status != checkout.OutcomePending {
		t.Fatalf("202: %+v, %v; it is not payment", o, err)
	}
	for name, want := range map[string]string{
		"X-Reference-Id": r.ID, "X-Callback-Url": r.CallbackURL, "X-Target-Environment": "mtncongo",
		"Ocp-Apim-Subscription-Key": "subscription-key", "Authorization": "Bearer t1", "Content-Type": "application/json",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := map[string]any{
		"amount": "5075", "currency": "XAF", "externalId": r.PaymentRef,
		"payer":        map[string]any{"partyIdType": "MSISDN", "partyId": r.Payer},
		"payerMessage": "Impot d ete 2026 oeuvre b", "payeeNote": r.PaymentRef,
	}
	if fmt.Sprint(body) != fmt.Sprint(want) {
		t.Errorf("body %v, want %v", body, want)
	}
}

// Many calls use one token, also concurrent ones. When MTN refuses a token with 401, it
// has done nothing: the connector gets a new token and repeats the call once.
func TestTokens(t *testing.T) {
	t.Parallel()
	var revoked atomic.Value
	revoked.Store("")
	g, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == revoked.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	var ahead atomic.Int64
	c, err := mtn.New(connector.Config{Now: func() time.Time { return now().Add(time.Duration(ahead.Load())) }, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	collect := func() {
		t.Helper()
		if _, err := c.Collect(t.Context(), a, request()); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(collect)
	}
	wg.Wait()
	if n := g.tokens.Load(); n != 1 {
		t.Errorf("%d tokens for 20 calls, want 1", n)
	}
	revoked.Store("Bearer t1")
	collect()
	if n := g.tokens.Load(); n != 2 {
		t.Errorf("%d tokens after a refused one, want 2", n)
	}
	ahead.Store(int64(time.Hour))
	collect()
	if n := g.tokens.Load(); n != 3 {
		t.Errorf("%d tokens an hour later, want 3", n)
	}
	another := a
	another.APIUser = "another"
	if _, err := c.Collect(t.Context(), another, request()); err != nil || g.tokens.Load() != 4 {
		t.Errorf("another account: %v, %d tokens, want 4", err, g.tokens.Load())
	}
}

// Outcomes of MTN's answers to the request.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	const unknown = `{"code":"RESOURCE_NOT_FOUND","message":"Requested resource was not found."}`
	for _, c := range []struct {
		name          string
		status        int
		body, enquiry string
		want          connector.Outcome
		fault         connector.FaultKind
		sent          bool
	}{
		{name: "payer unknown, MTN has no such request", status: 500, body: `{"code":"PAYER_NOT_FOUND","message":"x"}`, enquiry: unknown, want: refusal("PAYER_NOT_FOUND", checkout.FailurePayerNotFound)},
		{name: "bad request", status: 400, body: `{"code":"BAD_REQUEST"}`, enquiry: unknown, want: refusal("BAD_REQUEST", checkout.FailureOperatorError)},
		{name: "refused now, taken earlier", status: 400, body: `{"code":"BAD_REQUEST"}`, enquiry: `{"status":"PENDING"}`, want: connector.Outcome{Status: checkout.OutcomePending}},
		{name: "refused, and cannot be asked", status: 400, body: `{"code":"BAD_REQUEST"}`, enquiry: "", fault: connector.FaultMalformed, sent: true},
		{name: "in trouble", status: 500, body: `{"code":"INTERNAL_PROCESSING_ERROR"}`, fault: connector.FaultServer, sent: true},
		{name: "unavailable", status: 503, body: `{"code":"SERVICE_UNAVAILABLE"}`, fault: connector.FaultServer, sent: true},
		{name: "a firewall's page", status: 400, body: `<html>Request Rejected</html>`, fault: connector.FaultMalformed, sent: true},
		{name: "busy", status: 429, body: `{"statusCode":429}`, fault: connector.FaultBusy},
		{name: "forbidden", status: 403, body: `{}`, fault: connector.FaultCredentials},
		{name: "a gateway's time-out", status: 504, body: `{}`, fault: connector.FaultTimeout, sent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				status, body := c.status, c.body
				if isEnquiry(r) {
					status, body = http.StatusOK, c.enquiry
					if c.enquiry == unknown {
						status = http.StatusNotFound
					}
				}
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
			})
			o, err := newConnector(t).Collect(t.Context(), a, request())
			if c.fault == "" {
				if err != nil || o != c.want {
					t.Errorf("%+v, %v, want %+v", o, err, c.want)
				}
				return
			}
			var e *connector.Error
			if !errors.As(err, &e) || e.Fault != c.fault || e.Sent != c.sent {
				t.Fatalf("%+v, %v, want %s, sent %v", o, err, c.fault, c.sent)
			}
			if c.name == "busy" && e.RetryAfter != 7*time.Second {
				t.Errorf("RetryAfter %v", e.RetryAfter)
			}
		})
	}
}

// Only MTN's own code means that there is no such payment.
func TestNotFoundOfAGateway(t *testing.T) {
	t.Parallel()
	_, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) })
	if o, err := newConnector(t).Enquire(t.Context(), a, connector.Reference{ID: uuid.NewString()}); err == nil {
		t.Errorf("%+v, want an error", o)
	}
}

func TestEnquiriesAreLimited(t *testing.T) {
	t.Parallel()
	g, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"status":"PENDING"}`)) })
	c, err := mtn.New(connector.Config{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var wg sync.WaitGroup
	for range 11 {
		wg.Go(func() {
			if _, err := c.Enquire(t.Context(), a, connector.Reference{ID: uuid.NewString()}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begun); took < 950*time.Millisecond || g.asked.Load() != 11 {
		t.Errorf("%d enquiries in %v", g.asked.Load(), took)
	}
}

// The magic numbers of developer mode give their outcomes over the real protocol.
func TestMagicNumbers(t *testing.T) {
	t.Parallel()
	base := operator(t, &connectors.Faults{}, func(c *simulator.Config) { c.ApprovalDelay = 200 * time.Millisecond })
	a := account(base)
	for nn, want := range map[string]string{
		"01": "approved", "02": "approved", "03": "pending", "04": string(checkout.FailureRejected), "05": string(checkout.FailureInsufficientFunds),
		"06": string(checkout.FailurePayerLimitReached), "07": string(checkout.FailurePayerNotFound), "08": "approved", "09": "approved",
		"10": "approved", "11": "approved", "12": "approved", "13": string(checkout.FailureRejected), "77": "pending",
	} {
		t.Run(nn, func(t *testing.T) {
			t.Parallel()
			c := newConnector(t)
			payer, err := c.Payer("06 600 00 " + nn)
			if err != nil {
				t.Fatal(err)
			}
			r := request()
			r.Payer = payer
			_, err = c.Collect(t.Context(), a, r)
			if (err != nil) != (nn == "11") {
				t.Fatalf("Collect: %v", err)
			}
			if nn == "11" {
				if _, err = c.Collect(t.Context(), a, r); err != nil {
					t.Fatalf("Collect again: %v", err)
				}
			}
			first := ""
			for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				o, err := c.Enquire(t.Context(), a, connector.Reference{ID: r.ID})
				if err != nil {
					t.Fatal(err)
				}
				got := string(o.Status)
				if first == "" {
					first = got
				}
				if o.Status == checkout.OutcomeRefused {
					got = string(o.FailureCode)
				}
				if got == want && (want != "pending" || time.Now().After(deadline.Add(-2*time.Second))) {
					break
				}
				if time.Now().After(deadline) || o.Decided() {
					t.Fatalf("%s, want %s", got, want)
				}
			}
			if nn == "12" && first != string(checkout.OutcomeAmbiguous) {
				t.Errorf("at first %s, want ambiguous", first)
			}
		})
	}
}

// Running collections hold the fingerprint of their account: it must not change. It is the
// same when the address or the secret is corrected. The form of the first release contained
// the address, and is known too.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	a := mtn.Account{BaseURL: "https://operator.example", TargetEnvironment: "mtncongo", SubscriptionKey: "s", APIUser: "user", APIKey: "k"}
	const want, earlier = "8f9018c7791d6dba", "0e022dcd923c1e20"
	if got := a.Fingerprint(); got != want {
		t.Errorf("fingerprint %s, stored collections hold %s", got, want)
	}
	if got := a.EarlierFingerprint(); got != earlier || !connector.Is(a, earlier) || !connector.Is(a, want) || connector.Is(a, "") {
		t.Errorf("earlier fingerprint %s, stored collections hold %s", got, earlier)
	}
	corrected, rotated, other := a, a, a
	corrected.BaseURL, rotated.APIKey, other.APIUser = "https://other.example", "another", "two"
	if corrected.Fingerprint() != want || rotated.Fingerprint() != want || other.Fingerprint() == want {
		t.Error("the fingerprint depends on the address or the secret, or not on the merchant")
	}
}
