package airtel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/internal/contact"
	"quittance/test/connectors"
)

// gateway gives the answers that a test sets and counts tokens.
type gateway struct {
	tokens atomic.Int64
	answer func(w http.ResponseWriter, r *http.Request)
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isToken(r) {
		n := g.tokens.Add(1)
		_, _ = fmt.Fprintf(w, `{"token_type":"bearer","expires_in":"180","access_token":"t%d"}`, n)
		return
	}
	g.answer(w, r)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*gateway, airtel.Account) {
	t.Helper()
	g := &gateway{answer: answer}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, account(connector.BaseURL(server.URL))
}

func request() connector.Request {
	return connector.Request{ID: uuid.NewString(), Payer: "242055000001", Amount: 5075, Currency: "XAF", PaymentRef: "1234567890123456"}
}

func reference(id string) connector.Reference {
	return connector.Reference{ID: id, Amount: 5075, Currency: "XAF"}
}

func refusal(reason string, code checkout.FailureCode) connector.Outcome {
	return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: code, Reason: reason}
}

// enquiry returns the answer to an enquiry.
func enquiry(status, code string) string {
	return fmt.Sprintf(`{"data":{"transaction":{"status":%q,"message":"of 055000001"}},"status":{"code":"200","result_code":"ESB000010","response_code":%q,"success":true}}`, status, code)
}

// Outcomes of every state and code of Airtel, in answers to enquiries.
func TestStates(t *testing.T) {
	t.Parallel()
	const id = "018f0000-0000-4000-8000-0000000000ab"
	approved := connector.Outcome{Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF"}
	numbered := approved
	numbered.OperatorRef = "MP1.2.3"
	undecided := func(status checkout.OutcomeStatus, reason string) connector.Outcome {
		return connector.Outcome{Status: status, Reason: reason}
	}
	for body, want := range map[string]connector.Outcome{
		`{"data":{"transaction":{"id":"` + bare(id) + `","status":"TS","airtel_money_id":"MP1.2.3"}},"status":{"success":true}}`:                  numbered,
		`{"data":{"transaction":{"id":"` + strings.ToUpper(bare(id)) + `","status":"TS","airtel_money_id":"MP1.2.3"}},"status":{"success":true}}`: numbered,
		`{"data":{"transaction":{"id":false,"status":"TS"}},"status":{"code":200,"success":false}}`:                                               approved,
		enquiry("TS", "DP00800001006"):                                        approved,
		enquiry("TIP", "DP00800001006"):                                       undecided(checkout.OutcomePending, "DP00800001006"),
		enquiry("TIP", "DP00800001024"):                                       undecided(checkout.OutcomePending, "DP00800001024"),
		enquiry("TA", "DP00800001000"):                                        undecided(checkout.OutcomeAmbiguous, "DP00800001000"),
		enquiry("TA", "DP00800001008"):                                        undecided(checkout.OutcomeAmbiguous, "DP00800001008"),
		enquiry("TF", "DP00800001000"):                                        undecided(checkout.OutcomeAmbiguous, "DP00800001000"),
		enquiry("TF", "DP00800001006"):                                        undecided(checkout.OutcomeAmbiguous, "DP00800001006"),
		enquiry("TF", "DP00800001025"):                                        undecided(checkout.OutcomeUnknown, "DP00800001025"),
		`{"status":{"code":"400","result_code":"ESB000045","success":false}}`: undecided(checkout.OutcomeUnknown, "ESB000045"),
		enquiry("TE", "DP00800001029"):                                        refusal("TE", checkout.FailureApprovalTimeout),
		enquiry("TE", ""):                                                     refusal("TE", checkout.FailureApprovalTimeout),
		enquiry("TF", "DP00800001002"):                                        refusal("DP00800001002", checkout.FailureWrongPIN),
		enquiry("TF", "DP00800001003"):                                        refusal("DP00800001003", checkout.FailurePayerLimitReached),
		enquiry("TF", "DP00800001004"):                                        refusal("DP00800001004", checkout.FailureAmountInvalid),
		enquiry("TF", "DP00800001005"):                                        refusal("DP00800001005", checkout.FailureApprovalTimeout),
		enquiry("TF", "DP00800001007"):                                        refusal("DP00800001007", checkout.FailureInsufficientFunds),
		enquiry("TF", "DP00800001008"):                                        refusal("DP00800001008", checkout.FailureRejected),
		enquiry("TF", "DP00800001009"):                                        refusal("DP00800001009", checkout.FailureOperatorError),
		enquiry("TF", "DP00800001010"):                                        refusal("DP00800001010", checkout.FailurePayeeUnavailable),
		enquiry("TF", "DP00800001024"):                                        refusal("DP00800001024", checkout.FailureApprovalTimeout),
		enquiry("TF", "DP00800001029"):                                        refusal("DP00800001029", checkout.FailureApprovalTimeout),
		enquiry("TF", "DP00800009999"):                                        refusal("DP00800009999", checkout.FailureOperatorError),
		enquiry("TF", "055000001"):                                            refusal("ESB000010", checkout.FailureOperatorError),
	} {
		c := newConnector(t)
		_, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if got, err := c.Enquire(t.Context(), a, reference(id)); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", body, got, err, want)
		}
	}
	for _, body := range []string{
		enquiry("", ""), enquiry("SUCCESS", "DP00800001001"), enquiry("ts", ""), enquiry("055000001", ""), `{"data":[],"status":{"success":true}}`,
		`{"data":{"transaction":{"id":"` + bare(uuid.NewString()) + `","status":"TS"}},"status":{"success":true}}`,
	} {
		c := newConnector(t)
		_, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		got, err := c.Enquire(t.Context(), a, reference(id))
		if err == nil || connector.FaultOf(err) != connector.FaultMalformed || strings.Contains(err.Error(), "055000001") {
			t.Errorf("%s: %+v, %v, want malformed", body, got, err)
		}
	}
}

// Only Airtel's own code means that there is no such payment.
func TestNotFoundOfAGateway(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"message":"no Route matched with those values"}`, "404 page not found"} {
		_, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, http.StatusNotFound) })
		if o, err := newConnector(t).Enquire(t.Context(), a, reference(uuid.NewString())); err == nil {
			t.Errorf("%s: %+v, want an error", body, o)
		}
	}
}

// The request holds our id without dashes, the national number with its 0, XAF as a whole
// number, and the country.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	r := request()
	r.Description, r.CallbackURL = "Impôt d'été", "https://pay.example/callbacks/airtel/x/y/z"
	var mu sync.Mutex
	var header http.Header
	var body map[string]any
	_, a := serve(t, func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		header = q.Header.Clone()
		_ = json.NewDecoder(q.Body).Decode(&body)
		_, _ = w.Write([]byte(`{"data":{"transaction":{"id":false,"status":"SUCCESS"}},"status":{"code":"200","response_code":"DP00800001006","success":true}}`))
	})
	o, err := newConnector(t).Collect(t.Context(), a, r)
	if err != nil || o.Status != checkout.OutcomePending {
		t.Fatalf("%+v, %v; it is not payment", o, err)
	}
	for name, want := range map[string]string{
		"X-Country": "CG", "X-Currency": "XAF", "X-Callback-Url": r.CallbackURL, "Authorization": "Bearer t1", "Content-Type": "application/json",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	want := map[string]any{
		"reference":   r.PaymentRef,
		"subscriber":  map[string]any{"country": "CG", "currency": "XAF", "msisdn": "055000001"},
		"transaction": map[string]any{"amount": 5075.0, "country": "CG", "currency": "XAF", "id": bare(r.ID)},
	}
	if fmt.Sprint(body) != fmt.Sprint(want) {
		t.Errorf("body %v, want %v", body, want)
	}
}

// A request that Airtel cannot execute is not sent.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	g, a := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for name, change := range map[string]func(*connector.Request){
		"another currency":   func(r *connector.Request) { r.Currency = "EUR" },
		"nothing":            func(r *connector.Request) { r.Amount = 0 },
		"an id of others":    func(r *connector.Request) { r.ID = "AB123" },
		"a number of others": func(r *connector.Request) { r.Payer = "33612345678" },
	} {
		r := request()
		change(&r)
		_, err := newConnector(t).Collect(t.Context(), a, r)
		if err == nil || connector.Uncertain(err) || connector.FaultOf(err) != connector.FaultMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := g.tokens.Load(); n != 0 {
		t.Errorf("%d tokens for what never leaves", n)
	}
}

func TestPayer(t *testing.T) {
	t.Parallel()
	c := newConnector(t)
	for input, want := range map[string]string{
		"05 500 00 01": "242055000001", "+242 05 500 00 01": "242055000001", "+24255000001": "242055000001", "04 400 00 01": "242044000001",
	} {
		if got, err := c.Payer(input); got != want || err != nil {
			t.Errorf("Payer(%q) = %q, %v, want %q", input, got, err, want)
		}
	}
	if _, err := c.Payer("06 600 00 01"); !errors.Is(err, contact.ErrOtherOperator) {
		t.Errorf("a number of MTN: %v", err)
	}
}

// Outcomes of Airtel's answers to the request.
func TestAnswersToTheRequest(t *testing.T) {
	t.Parallel()
	const (
		unknown = `{"status":{"code":"400","result_code":"ESB000045","success":false}}`
		working = `{"data":{"transaction":{"status":"TIP"}},"status":{"response_code":"DP00800001006","success":true}}`
	)
	answer := func(response, result string, success bool) string {
		return fmt.Sprintf(`{"data":{"transaction":{"id":false,"status":"TS"}},"status":{"code":"200","response_code":%q,"result_code":%q,"success":%v}}`, response, result, success)
	}
	pending := connector.Outcome{Status: checkout.OutcomePending}
	for _, c := range []struct {
		name          string
		status        int
		body, enquiry string
		want          connector.Outcome
		fault         connector.FaultKind
		sent          bool
	}{
		{name: "TS and success prove nothing", status: 200, body: answer("DP00800001001", "ESB000010", true), want: pending},
		{name: "in process without success", status: 200, body: answer("DP00800001006", "ESB000011", false), want: pending},
		{name: "ambiguous", status: 200, body: answer("DP00800001000", "ESB000011", false), want: pending},
		{name: "known, under way", status: 400, body: answer("", "ESB000041", false), enquiry: working, want: connector.Outcome{Status: checkout.OutcomePending, Reason: "DP00800001006"}},
		{name: "known, not everywhere yet", status: 400, body: answer("", "ESB000041", false), enquiry: unknown, want: pending},
		{name: "known, and cannot be asked", status: 400, body: answer("", "ESB000041", false), enquiry: "", want: pending},
		{name: "known, refused", status: 400, body: answer("", "ESB000041", false), enquiry: enquiry("TF", "DP00800001007"), want: refusal("DP00800001007", checkout.FailureInsufficientFunds)},
		{name: "payer unknown", status: 400, body: answer("DP00800001005", "ESB000011", false), enquiry: unknown, want: refusal("DP00800001005", checkout.FailurePayerNotFound)},
		{name: "refused at once", status: 200, body: answer("DP00800001007", "ESB000011", false), enquiry: unknown, want: refusal("DP00800001007", checkout.FailureInsufficientFunds)},
		{name: "refused at once, taken earlier", status: 200, body: answer("DP00800001007", "ESB000011", false), enquiry: working, want: connector.Outcome{Status: checkout.OutcomePending, Reason: "DP00800001006"}},
		{name: "refused at once, and cannot be asked", status: 200, body: answer("DP00800001007", "ESB000011", false), enquiry: "", fault: connector.FaultMalformed, sent: true},
		{name: "the account lacks a wallet", status: 400, body: `{"status_code":"ROUTER001","status_message":"Wallet is not configured"}`, enquiry: unknown, want: refusal("ROUTER001", checkout.FailurePayeeUnavailable)},
		{name: "time-out of its own", status: 200, body: answer("DP00800001024", "ESB000011", false), enquiry: unknown, fault: connector.FaultMalformed, sent: true},
		{name: "the gateway's time-out", status: 400, body: `{"status_code":"ROUTER117"}`, enquiry: unknown, fault: connector.FaultMalformed, sent: true},
		{name: "ambiguous in general", status: 400, body: answer("", "ESB000004", false), enquiry: unknown, fault: connector.FaultMalformed, sent: true},
		{name: "a code of no table", status: 400, body: answer("DP00800009999", "", false), enquiry: unknown, fault: connector.FaultMalformed, sent: true},
		{name: "in trouble, with a payer's code", status: 500, body: answer("DP00800001005", "ESB000001", false), enquiry: unknown, fault: connector.FaultServer, sent: true},
		{name: "a firewall's page", status: 400, body: `<html>Request Rejected</html>`, fault: connector.FaultMalformed, sent: true},
		{name: "busy", status: 429, body: `{}`, fault: connector.FaultBusy},
		{name: "forbidden", status: 403, body: `{}`, fault: connector.FaultCredentials},
		{name: "a gateway's time-out", status: 504, body: `{}`, fault: connector.FaultTimeout, sent: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, a := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if isEnquiry(r) {
					_, _ = w.Write([]byte(c.enquiry))
					return
				}
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
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
			if c.fault == connector.FaultBusy && e.RetryAfter != 7*time.Second {
				t.Errorf("RetryAfter %v", e.RetryAfter)
			}
		})
	}
}

// Every callback causes an enquiry. A malformed callback is unreadable.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	c := newConnector(t)
	id := uuid.NewString()
	for status, want := range map[string]checkout.OutcomeStatus{
		"TS": checkout.OutcomeApproved, "TF": checkout.OutcomeRefused, "TE": checkout.OutcomeRefused, "TIP": checkout.OutcomePending, "TA": checkout.OutcomeAmbiguous,
	} {
		got, err := c.ParseReport(nil, fmt.Appendf(nil, `{"transaction":{"id":%q,"status_code":%q,"message":"m","airtel_money_id":"MP1"}}`, bare(id), status))
		if err != nil || got.ID != id || got.Outcome.Status != want || !got.Ask || got.Outcome.OperatorRef != "MP1" {
			t.Errorf("%s: %+v, %v", status, got, err)
		}
	}
	for _, body := range []string{
		`{"transaction":{"id":"` + id + `","status_code":"TS"}}`, // with dashes, unlike our id in the request
		`{"transaction":{"id":"BBZMiscxy","status_code":"TS"}}`,
		`{"transaction":{"id":"` + bare(id) + `00","status_code":"TS"}}`,
		`{"transaction":{"id":"` + bare(id) + `","status_code":"SUCCESS"}}`,
		`{"transaction":{"id":"` + bare(id) + `"}}`,
		`{"transaction":[]}`,
	} {
		if got, err := c.ParseReport(nil, []byte(body)); !errors.Is(err, connector.ErrReport) {
			t.Errorf("%s: %+v, %v, want ErrReport", body, got, err)
		}
	}
}

// Many calls use one token for most of its three minutes.
func TestTokens(t *testing.T) {
	t.Parallel()
	g, a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":{"response_code":"DP00800001006","success":true}}`))
	})
	var ahead atomic.Int64
	c, err := airtel.New(connector.Config{Now: func() time.Time { return now().Add(time.Duration(ahead.Load())) }, Timeout: 5 * time.Second})
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
	ahead.Store(int64(2 * time.Minute))
	collect()
	if n := g.tokens.Load(); n != 1 {
		t.Errorf("%d tokens in two minutes, want 1", n)
	}
	ahead.Store(int64(175 * time.Second))
	collect()
	if n := g.tokens.Load(); n != 2 {
		t.Errorf("%d tokens shortly before three minutes, want 2", n)
	}
}

// The magic numbers of developer mode give their outcomes over the real protocol.
func TestMagicNumbers(t *testing.T) {
	t.Parallel()
	base := operator(t, &connectors.Faults{})
	a := account(base)
	for nn, want := range map[string]string{
		"01": "approved", "02": "approved", "03": "pending", "04": string(checkout.FailureRejected), "05": string(checkout.FailureInsufficientFunds),
		"06": string(checkout.FailurePayerLimitReached), "07": string(checkout.FailurePayerNotFound), "08": "approved", "09": "approved",
		"10": "approved", "11": "approved", "12": "approved", "13": string(checkout.FailureWrongPIN), "77": "pending",
	} {
		t.Run(nn, func(t *testing.T) {
			t.Parallel()
			c := newConnector(t)
			payer, err := c.Payer("05 500 00 " + nn)
			if err != nil {
				t.Fatal(err)
			}
			r := request()
			r.Payer = payer
			o, err := c.Collect(t.Context(), a, r)
			if (err != nil) != (nn == "11") {
				t.Fatalf("Collect: %v", err)
			}
			if nn == "11" {
				if o, err = c.Collect(t.Context(), a, r); err != nil {
					t.Fatalf("Collect again: %v", err)
				}
			}
			first := ""
			for deadline := time.Now().Add(3 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				if !o.Decided() {
					if o, err = c.Enquire(t.Context(), a, reference(r.ID)); err != nil {
						t.Fatal(err)
					}
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
	a := airtel.Account{BaseURL: "https://operator.example", ClientID: "one", ClientSecret: "s"}
	const want, earlier = "ca544f068be665b3", "2a86571198c6bede"
	if got := a.Fingerprint(); got != want {
		t.Errorf("fingerprint %s, stored collections hold %s", got, want)
	}
	if got := a.EarlierFingerprint(); got != earlier || !connector.Is(a, earlier) || !connector.Is(a, want) || connector.Is(a, "") {
		t.Errorf("earlier fingerprint %s, stored collections hold %s", got, earlier)
	}
	corrected, rotated, other := a, a, a
	corrected.BaseURL, rotated.ClientSecret, other.ClientID = "https://other.example", "another", "two"
	if corrected.Fingerprint() != want || rotated.Fingerprint() != want || other.Fingerprint() == want {
		t.Error("the fingerprint depends on the address or the secret, or not on the merchant")
	}
}
