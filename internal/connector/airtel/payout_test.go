package airtel_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/airtel"
	"quittance/test/connectors"
)

func isDisbursement(r *http.Request) bool {
	return strings.HasSuffix(r.URL.Path, "/standard/v1/disbursements/")
}

func isPayoutEnquiry(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/standard/v1/disbursements/")
}

// publicKey is a key as Airtel's portal shows it.
func publicKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, base64.StdEncoding.EncodeToString(der)
}

// payoutStandin runs the simulator and counts what it has paid.
func payoutStandin(t *testing.T, configure ...func(*simulator.Config)) connectors.PayoutStandin {
	t.Helper()
	s := connectors.Simulators(t, airtel.Operator, append(configure, accepts)...)
	return connectors.PayoutStandin{Handler: s.Handler, Path: s.Path, Payments: func(id string) (n int) {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/control/payouts?operator="+airtel.Operator, http.NoBody))
		var all []struct {
			ID       string
			Payments int
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if p.ID == bare(id) {
				n += p.Payments
			}
		}
		return n
	}}
}

// tells is an answer of Airtel with the status of a payout.
func tells(id, status, code string) connectors.Answer {
	return connectors.Answer{Status: http.StatusOK, Body: fmt.Sprintf(`{"data":{"transaction":{"id":%q,"status":%q,"airtel_money_id":"MP7","message":"?"}},
		"status":{"code":"200","message":"?","result_code":"ESB000010","response_code":%q,"success":%t}}`, bare(id), status, code, status == "TS")}
}

func refuses(status int, result, code string) connectors.Answer {
	return connectors.Answer{Status: status, Body: fmt.Sprintf(`{"status":{"code":"400","message":"?","result_code":%q,"response_code":%q,"success":false}}`, result, code)}
}

func TestPayoutConformance(t *testing.T) {
	t.Parallel()
	_, public := publicKey(t)
	fields := func(secret string) map[string]string {
		return map[string]string{"client_id": "client-id", "client_secret": secret, "pin": "4711", "public_key": public}
	}
	connectors.RunPayouts(t, airtel.Registration, connectors.PayoutOperator{
		Standin: func(t *testing.T) connectors.PayoutStandin { return payoutStandin(t) },
		Fields:  fields("client-secret"), Wrong: fields("another-secret"), Asks: isDisbursement, Enquires: isPayoutEnquiry,
		Paid: "05 500 00 01", Waits: "05 500 00 03", Refused: "05 500 00 04",
		Malformed: []string{"", "05", "06 600 00 01", "01 100 00 01", "05 500 00 0", "05 500 00 011", "+33 5 50 00 00 01", "5.5E+7"},
		Known: []connectors.Answer{
			refuses(http.StatusBadRequest, "ESB000041", ""), refuses(http.StatusOK, "ESB000010", "DP00900001017"),
			refuses(http.StatusOK, "ESB000010", "DP00900001011"), refuses(http.StatusConflict, "ESB000041", "DP00900001017"),
		},
		Refusals: map[string]connectors.Refusal{
			"DP00900001007": {Cause: connector.CauseFunds},
			"DP00900001003": {Cause: connector.CausePayeeOrAccount},
			"DP00900001010": {Cause: connector.CausePayeeOrAccount},
			"DP00900001004": {Cause: connector.CausePayee},
			"DP00900001009": {Cause: connector.CausePayee},
			"DP00900001012": {Cause: connector.CausePayee},
			"DP00900001013": {Cause: connector.CausePayee},
			"DP00900001005": {Cause: connector.CauseOperator, Unproven: true},
			"DP00900001011": {Cause: connector.CauseOperator, Unproven: true},
			"DP00900001099": {Cause: connector.CauseOperator, Unproven: true},
		},
		RefusesCall: func(code string) (connectors.Answer, bool) {
			// 1011 says that Airtel knows a payout: see Known.
			return refuses(http.StatusOK, "ESB000011", code), code != "DP00900001011"
		},
		Says: func(ref connector.PayoutReference, code string) connectors.Answer {
			if code == "" {
				return tells(ref.ID, "TS", "DP00900001001")
			}
			return tells(ref.ID, "TF", code)
		},
		Undecided: []connectors.Answer{
			tells("", "TIP", "DP00900001006"), tells("", "TA", "DP00900001000"),
			tells("", "TF", "DP00900001000"), tells("", "TF", "DP00900001006"), tells("", "TF", "DP00900001014"), tells("", "TF", "DP00900001017"), tells("", "TF", "DP00900001001"),
		},
		NotFound: refuses(http.StatusBadRequest, "ESB000045", "DP00900001015"),
		Named: map[string]connector.NameVerdict{
			"05 500 00 01": connector.NameMatch, "05 501 00 42": connector.NameMatch, "05 500 00 02": connector.NameClose, "05 500 00 03": connector.NameDifferent, "05 500 00 07": connector.NameUnknown,
		},
		Mute: "05 500 00 08", Holder: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/users/") },
		NobodyHeld: refuses(http.StatusBadRequest, "ESB000011", "DP02200000002"),
	})
}

// The PIN goes encrypted, in the padding that the account has, and no error tells it.
func TestPIN(t *testing.T) {
	t.Parallel()
	for _, oaep := range []bool{false, true} {
		key, public := publicKey(t)
		var seen atomic.Int64
		s := payoutStandin(t, func(c *simulator.Config) {
			c.AirtelPIN = func(encrypted []byte) bool {
				seen.Add(1)
				plain, err := rsa.DecryptPKCS1v15(nil, key, encrypted) //nolint:staticcheck // as Airtel wants it
				if oaep {
					plain, err = rsa.DecryptOAEP(sha1.New(), nil, key, encrypted, nil)
				}
				return err == nil && string(plain) == "4711"
			}
		})
		base := connectors.Serve(t, &connectors.Faults{}, connectors.Standin{Handler: s, Path: s.Path})
		c, err := airtel.NewPayouts(connectors.Config())
		if err != nil {
			t.Fatal(err)
		}
		account := airtel.PayoutAccount{BaseURL: base, ClientID: "client-id", ClientSecret: "client-secret", PIN: "4711", PublicKey: public, OAEP: oaep}
		p := connector.Payout{PayoutReference: connector.PayoutReference{ID: "7c2e5f0a-0000-4000-8000-000000000001", Payee: "242055000001", Amount: 5075, Currency: "XAF"}, PayoutRef: "QD0000000000000000000000AB"}
		if o, err := c.Pay(t.Context(), account, p); err != nil || o.Status != connector.PayoutPending || seen.Load() != 1 {
			t.Errorf("OAEP %v: %+v, %v, %d PINs", oaep, o, err, seen.Load())
		}
		if o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference); err != nil || !o.Agrees(p.PayoutReference) {
			t.Errorf("OAEP %v: %+v, %v", oaep, o, err)
		}
		p.ID = "7c2e5f0a-0000-4000-8000-000000000002"
		account.PIN = "0815"
		if o, err := c.Pay(t.Context(), account, p); err != nil || o.Status != connector.PayoutRefused || o.Cause != connector.CauseAccount {
			t.Errorf("a wrong PIN: %+v, %v", o, err)
		}
		for _, wrong := range []string{"", "AAAA", "not base64"} {
			account.PublicKey = wrong
			if _, err := c.Pay(t.Context(), account, p); connector.FaultOf(err) != connector.FaultCredentials || connector.Uncertain(err) || strings.Contains(err.Error(), "0815") {
				t.Errorf("public key %q: %v", wrong, err)
			}
		}
	}
}

// What Airtel says of a payout and what it did are two things.
func TestPayoutFaults(t *testing.T) {
	t.Parallel()
	_, public := publicKey(t)
	s := payoutStandin(t)
	base := connectors.Serve(t, &connectors.Faults{}, connectors.Standin{Handler: s, Path: s.Path})
	c, err := airtel.NewPayouts(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	account := airtel.PayoutAccount{BaseURL: base, ClientID: "client-id", ClientSecret: "client-secret", PIN: "4711", PublicKey: public}
	for n, x := range []struct {
		payee     string
		uncertain bool // the first call
		status    connector.PayoutStatus
		unproven  bool
		payments  int
	}{
		{"242055000008", true, connector.PayoutPaid, false, 1},     // paid without an answer
		{"242055000009", true, connector.PayoutRefused, true, 1},   // said to have failed, then paid
		{"242055000010", false, connector.PayoutPaid, false, 0},    // said to be paid
		{"242055000011", true, connector.PayoutPaid, false, 1},     // 500, then taken
		{"242055000012", false, connector.PayoutPending, false, 0}, // ambiguous
		{"242055000006", false, connector.PayoutRefused, false, 0},
	} {
		p := connector.Payout{PayoutReference: connector.PayoutReference{ID: fmt.Sprintf("7c2e5f0a-0000-4000-8000-%012d", n), Payee: x.payee, Amount: 5075, Currency: "XAF"}, PayoutRef: "QD0000000000000000000000AB"}
		_, err := c.Pay(t.Context(), account, p)
		if (err != nil) != x.uncertain || err != nil && !connector.Uncertain(err) {
			t.Errorf("%s: %v", x.payee, err)
		}
		if x.uncertain { // the same attempt again: nobody is paid twice
			_, _ = c.Pay(t.Context(), account, p)
		}
		o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference)
		if err != nil || o.Status != x.status || o.Unproven != x.unproven || s.Payments(p.ID) != x.payments {
			t.Errorf("%s: %+v, %v, paid %d times", x.payee, o, err, s.Payments(p.ID))
		}
	}
}

// A code of the gateway beside a code of the payout that is not known proves nothing: Airtel may have paid.
func TestUnknownCodeBesideRefusal(t *testing.T) {
	t.Parallel()
	for codes, want := range map[[2]string]struct {
		status   connector.PayoutStatus
		unproven bool
	}{
		{"DP00900001099", "ESB000033"}: {connector.PayoutRefused, true},
		{"DP00900001005", "ESB000036"}: {connector.PayoutRefused, true},
		{"ESB000033", "DP00900001099"}: {connector.PayoutRefused, true},
		{"ESB000033", "DP00900001006"}: {connector.PayoutPending, false},
		{"ESB000033", "DP00900001001"}: {connector.PayoutPending, false},
		{"DP00900001012", "ESB000033"}: {connector.PayoutRefused, false},
		{"", "ESB000033"}:              {connector.PayoutRefused, false},
	} {
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.Method == http.MethodPost {
				_, _ = w.Write([]byte(`{"access_token":"t","expires_in":"180","token_type":"bearer"}`))
				return
			}
			_, _ = fmt.Fprintf(w, `{"data":{"transaction":{"status":"TF"}},"status":{"result_code":%q,"response_code":%q,"success":false}}`, codes[1], codes[0])
		})
		base := connectors.Serve(t, &connectors.Faults{}, connectors.Standin{Handler: handler})
		c, err := airtel.NewPayouts(connectors.Config())
		if err != nil {
			t.Fatal(err)
		}
		ref := connector.PayoutReference{ID: "7c2e5f0a-0000-4000-8000-000000000001", Payee: "242055000001", Amount: 5075, Currency: "XAF"}
		o, err := c.EnquirePayout(t.Context(), airtel.PayoutAccount{BaseURL: base, ClientID: "client-id", ClientSecret: "client-secret"}, ref)
		if err != nil || o.Status != want.status || o.Unproven != want.unproven {
			t.Errorf("%v: %+v, %v", codes, o, err)
		}
	}
}

// Airtel's answer says that the money has moved, and each payout was enquired about before the call returned. An account may
// make ten enquiries a second, so an agency paid ten lines a second, and its waiting calls took the places of all other
// agencies' lines.
func TestPayMakesNoEnquiry(t *testing.T) {
	t.Parallel()
	_, public := publicKey(t)
	s := payoutStandin(t, func(*simulator.Config) {})
	var enquiries atomic.Int64
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			enquiries.Add(1)
		}
		s.ServeHTTP(w, r)
	})
	base := connectors.Serve(t, &connectors.Faults{}, connectors.Standin{Handler: counted, Path: s.Path})
	c, err := airtel.NewPayouts(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	account := airtel.PayoutAccount{BaseURL: base, ClientID: "client-id", ClientSecret: "client-secret", PIN: "4711", PublicKey: public}
	p := connector.Payout{PayoutReference: connector.PayoutReference{ID: "7c2e5f0a-0000-4000-8000-000000000001", Payee: "242055000001", Amount: 5075, Currency: "XAF"}, PayoutRef: "QD0000000000000000000000AB"}
	if o, err := c.Pay(t.Context(), account, p); err != nil || o.Status != connector.PayoutPending || enquiries.Load() != 0 {
		t.Errorf("%+v, %v, %d enquiries", o, err, enquiries.Load())
	}
	if o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference); err != nil || !o.Agrees(p.PayoutReference) || enquiries.Load() != 1 {
		t.Errorf("%+v, %v, %d enquiries", o, err, enquiries.Load())
	}
	p.ID, p.Payee = "7c2e5f0a-0000-4000-8000-000000000002", "242066000001" // a number of another operator
	if o, err := c.Pay(t.Context(), account, p); err != nil || !o.Unconfirmed || o.Decided() || enquiries.Load() != 1 {
		t.Errorf("refused: %+v, %v, %d enquiries", o, err, enquiries.Load())
	}
}
