package mtn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/mtn"
	"quittance/money"
	"quittance/test/connectors"
)

func isTransfer(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/transfer") }
func isPayoutEnquiry(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/transfer/")
}

var payoutFields = map[string]string{"target_environment": "mtncongo", "subscription_key": "subscription-key", "api_user": "api-user", "api_key": "api-key"}

// payoutStandin runs the simulator and counts what it has paid.
func payoutStandin(t *testing.T, configure ...func(*simulator.Config)) connectors.PayoutStandin {
	t.Helper()
	s := connectors.Simulators(t, mtn.Operator, append(configure, accepts)...)
	return connectors.PayoutStandin{Handler: s.Handler, Path: s.Path, Payments: func(id string) (n int) {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/control/payouts?operator="+mtn.Operator, http.NoBody))
		var all []struct {
			ID       string
			Payments int
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if p.ID == id {
				n += p.Payments
			}
		}
		return n
	}}
}

func failed(code string) string {
	return fmt.Sprintf(`{"amount":"5075","currency":"XAF","externalId":"QD","payee":{"partyIdType":"MSISDN","partyId":"242066000003"},"status":"FAILED","reason":%q}`, code)
}

func TestPayoutConformance(t *testing.T) {
	t.Parallel()
	wrong := maps.Clone(payoutFields)
	wrong["api_key"] = "another-key"
	connectors.RunPayouts(t, mtn.Registration, connectors.PayoutOperator{
		Standin: func(t *testing.T) connectors.PayoutStandin { return payoutStandin(t) },
		Fields:  payoutFields, Wrong: wrong, Asks: isTransfer, Enquires: isPayoutEnquiry,
		Paid: "06 600 00 01", Waits: "06 600 00 03", Refused: "06 600 00 04",
		Malformed: []string{"", "06", "05 500 00 01", "04 400 00 01", "06 600 00 0", "06 600 00 011", "+33 6 60 00 00 01", "zero six", "6.6E+7"},
		Known: []connectors.Answer{
			{Status: http.StatusConflict, Body: `{"code":"RESOURCE_ALREADY_EXIST","message":"Duplicated reference id. Creation of resource failed."}`},
			{Status: http.StatusConflict, Body: "<h1>Conflict</h1>"},
			{Status: http.StatusBadRequest, Body: `{"code":"RESOURCE_ALREADY_EXIST"}`},
			{Status: http.StatusInternalServerError, Body: `{"code":"RESOURCE_ALREADY_EXIST"}`},
		},
		Refusals: map[string]connectors.Refusal{
			"NOT_ENOUGH_FUNDS": {Cause: connector.CauseFunds},
			"LOW_BALANCE_OR_PAYEE_LIMIT_REACHED_OR_NOT_ALLOWED": {Cause: connector.CausePayeeOrAccount},
			"PAYEE_NOT_FOUND":                {Cause: connector.CausePayee},
			"PAYEE_NOT_ALLOWED_TO_RECEIVE":   {Cause: connector.CausePayee},
			"PAYEE_LIMIT_REACHED":            {Cause: connector.CausePayee},
			"NOT_ALLOWED_TARGET_ENVIRONMENT": {Cause: connector.CauseAccount},
			"INTERNAL_PROCESSING_ERROR":      {Cause: connector.CauseOperator, Unproven: true},
			"SOMETHING_NEW":                  {Cause: connector.CauseOperator, Unproven: true},
		},
		RefusesCall: func(code string) (connectors.Answer, bool) {
			return connectors.Answer{Status: http.StatusBadRequest, Body: fmt.Sprintf(`{"code":%q,"message":"?"}`, code)}, code != ""
		},
		Says: func(ref connector.PayoutReference, code string) connectors.Answer {
			if code != "" {
				return connectors.Answer{Status: http.StatusOK, Body: failed(code)}
			}
			c, _ := money.Lookup(ref.Currency)
			return connectors.Answer{Status: http.StatusOK, Body: fmt.Sprintf(`{"financialTransactionId":"77","externalId":"QD","amount":%q,"currency":%q,"payee":{"partyIdType":"MSISDN","partyId":%q},"status":"SUCCESSFUL"}`, c.Decimal(ref.Amount), ref.Currency, ref.Payee)}
		},
		Undecided: []connectors.Answer{
			{Status: http.StatusOK, Body: `{"status":"PENDING"}`},
			{Status: http.StatusOK, Body: `{"status":"DELAYED"}`},
			{Status: http.StatusOK, Body: failed("TRANSFER_DELAYED")},
			{Status: http.StatusOK, Body: failed("PENDING")},
			{Status: http.StatusOK, Body: `{"status":"FAILED","reason":{"code":"PAYEE_DELAYED","message":"later"}}`},
		},
		NotFound:    connectors.Answer{Status: http.StatusNotFound, Body: `{"code":"RESOURCE_NOT_FOUND","message":"Requested resource was not found."}`},
		NamesAmount: true, NamesPayee: true,
		Named: map[string]connector.NameVerdict{
			"06 600 00 01": connector.NameMatch, "06 601 00 42": connector.NameMatch, "06 600 00 02": connector.NameClose, "06 600 00 03": connector.NameDifferent, "06 600 00 07": connector.NameUnknown,
		},
		Mute: "06 600 00 08", Holder: func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/basicuserinfo") },
		NobodyHeld: connectors.Answer{Status: http.StatusNotFound, Body: `{"code":"RESOURCE_NOT_FOUND","message":"Requested resource was not found."}`},
	})
}

// world is the simulator with a connector of payouts.
type world struct {
	*mtn.Payouts
	standin connectors.PayoutStandin
	account connector.Account
}

func payouts(t *testing.T, configure ...func(*simulator.Config)) world {
	t.Helper()
	c, err := mtn.NewPayouts(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	s := payoutStandin(t, configure...)
	base := connectors.Serve(t, &connectors.Faults{}, connectors.Standin{Handler: s, Path: s.Path})
	return world{c, s, mtn.PayoutAccount(account(base))}
}

func (w world) control(t *testing.T, path, body string) int {
	t.Helper()
	answer := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/control"+path, bytes.NewReader([]byte(body)))
	r.Header.Set("Content-Type", "application/json")
	w.standin.ServeHTTP(answer, r)
	return answer.Code
}

func attempt(id, payee string) connector.Payout {
	return connector.Payout{PayoutReference: connector.PayoutReference{ID: id, Payee: payee, Amount: 5075, Currency: "XAF"}, PayoutRef: "QD0000000000000000000000AB"}
}

// The faults of the simulator, as the connector tells them: what the operator says and what
// it did are two things.
func TestPayoutFaults(t *testing.T) {
	t.Parallel()
	w := payouts(t)
	for n, c := range []struct {
		payee     string
		uncertain bool // the first call
		status    connector.PayoutStatus
		unproven  bool
		payments  int
	}{
		{"242066000008", true, connector.PayoutPaid, false, 1},     // paid without an answer
		{"242066000009", false, connector.PayoutRefused, true, 1},  // refused, then paid
		{"242066000010", false, connector.PayoutPaid, false, 0},    // said to be paid
		{"242066000011", true, connector.PayoutPaid, false, 1},     // 500, then taken
		{"242066000012", false, connector.PayoutPending, false, 0}, // delayed
		{"242066000006", false, connector.PayoutRefused, false, 0},
	} {
		p := attempt(fmt.Sprintf("7c2e5f0a-0000-4000-8000-%012d", n), c.payee)
		_, err := w.Pay(t.Context(), w.account, p)
		if (err != nil) != c.uncertain || err != nil && !connector.Uncertain(err) {
			t.Errorf("%s: %v", c.payee, err)
		}
		if c.uncertain { // the same attempt again
			if _, err := w.Pay(t.Context(), w.account, p); err != nil {
				t.Errorf("%s, again: %v", c.payee, err)
			}
		}
		o, err := w.EnquirePayout(t.Context(), w.account, p.PayoutReference)
		if err != nil || o.Status != c.status || o.Unproven != c.unproven || w.standin.Payments(p.ID) != c.payments {
			t.Errorf("%s: %+v, %v, paid %d times", c.payee, o, err, w.standin.Payments(p.ID))
		}
	}
}

// An account without money refuses, and the same line is paid by a new attempt once it has
// some. A repeated attempt is not.
func TestPayoutOfAnEmptyAccount(t *testing.T) {
	t.Parallel()
	w := payouts(t)
	float := func(amount string) {
		if code := w.control(t, "/mtn/float", `{"account":"api-user","amount":"`+amount+`"}`); code != http.StatusNoContent {
			t.Fatalf("answer %d", code)
		}
	}
	state := func(p connector.Payout) connector.PayoutOutcome {
		t.Helper()
		if _, err := w.Pay(t.Context(), w.account, p); err != nil {
			t.Fatal(err)
		}
		o, err := w.EnquirePayout(t.Context(), w.account, p.PayoutReference)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	float("6000")
	first, second, third := attempt("7c2e5f0a-0000-4000-8000-00000000000a", "242066000001"), attempt("7c2e5f0a-0000-4000-8000-00000000000b", "242066000001"), attempt("7c2e5f0a-0000-4000-8000-00000000000c", "242066000001")
	if o := state(first); !o.Agrees(first.PayoutReference) {
		t.Errorf("%+v", o)
	}
	if o := state(second); o.Status != connector.PayoutRefused || o.Cause != connector.CauseFunds || o.Unproven {
		t.Errorf("%+v, want refused for want of funds", o)
	}
	float("6000")
	if o := state(second); o.Status != connector.PayoutRefused {
		t.Errorf("the refused attempt again: %+v", o)
	}
	if o := state(third); !o.Agrees(third.PayoutReference) {
		t.Errorf("a new attempt: %+v", o)
	}
	if code := w.control(t, "/payouts/"+third.ID+"/return", `{"fee":"50"}`); code != http.StatusOK {
		t.Errorf("returning: %d", code)
	}
	if code := w.control(t, "/payouts/"+second.ID+"/return", `{}`); code != http.StatusConflict {
		t.Errorf("returning what was not paid: %d", code)
	}
}

// A token of collections does not pay, and a payout account is another account.
func TestPayoutAccounts(t *testing.T) {
	t.Parallel()
	w := payouts(t)
	if _, err := w.Pay(t.Context(), account("http://127.0.0.1:9"), attempt("7c2e5f0a-0000-4000-8000-00000000000d", "242066000001")); connector.FaultOf(err) != connector.FaultCredentials || connector.Uncertain(err) {
		t.Errorf("an account of collections: %v", err)
	}
	if account("b").Fingerprint() == mtn.PayoutAccount(account("b")).Fingerprint() {
		t.Error("one fingerprint for both purposes")
	}
}
