package pi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/pi"
	"quittance/test/connectors"
)

func isPayment(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/paiements")
}

func isPayoutEnquiry(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/paiements")
}

// accepts makes the simulator accept only the client.
func accepts(c *simulator.Config) {
	c.Switch = func(id, secret, key string) bool {
		return id == "client-id" && secret == "client-secret" && key == "api-key"
	}
}

func fields(secret string) map[string]string {
	return map[string]string{"client_id": "client-id", "client_secret": secret, "api_key": "api-key", "alias": "5f0c3b1e-own-alias", "certificate": "client-certificate", "private_key": "private-key"}
}

func payingAccount(base connector.BaseURL) pi.Account {
	return pi.Account{BaseURL: base, Purpose: connector.PurposePayout, ClientID: "client-id", ClientSecret: "client-secret", APIKey: "api-key", Alias: "5f0c3b1e-own-alias"}
}

// bare returns our id without dashes, as the switch takes it.
func bare(id string) string { return strings.ReplaceAll(id, "-", "") }

// payoutStandin runs the simulator and counts what it has paid.
func payoutStandin(t *testing.T, configure ...func(*simulator.Config)) connectors.PayoutStandin {
	t.Helper()
	s := connectors.Simulators(t, pi.Operator, append(configure, accepts)...)
	return connectors.PayoutStandin{Handler: s.Handler, Path: s.Path, Payments: func(id string) int {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/control/payouts?operator="+pi.Operator, http.NoBody))
		var all []struct {
			ID       string
			Payments int
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if p.ID == bare(id) {
				return p.Payments
			}
		}
		return 0
	}}
}

// tells is an answer about a payment.
func tells(ref connector.PayoutReference, status, reason string) connectors.Answer {
	currency := ""
	if ref.Currency != "" && ref.Currency != "XAF" {
		currency = fmt.Sprintf(`"devise":%q,`, ref.Currency)
	}
	return connectors.Answer{Status: http.StatusOK, Body: fmt.Sprintf(`{"txId":%q,"end2endId":"ECG1",%s"statut":%q,"statutRaison":%q,"montant":%d,"payeurAlias":"5f0c3b1e-own-alias","payeAlias":"+%s","payeNom":"AWA MABIALA"}`,
		bare(ref.ID), currency, status, reason, ref.Amount, ref.Payee)}
}

// said is an answer that names no payment.
func said(status, reason string) connectors.Answer {
	return connectors.Answer{Status: http.StatusOK, Body: fmt.Sprintf(`{"end2endId":"ECG1","statut":%q,"statutRaison":%q}`, status, reason)}
}

func problem(status int) connectors.Answer {
	return connectors.Answer{Status: status, Body: fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d}`, http.StatusText(status), status)}
}

func TestPayoutConformance(t *testing.T) {
	t.Parallel()
	refusals := map[string]connectors.Refusal{}
	for cause, codes := range map[connector.PayoutCause]string{
		connector.CauseFunds: "AG07 AM04", connector.CausePayee: "AM02 BE23 AC01 AC03 AC04 AC07 BE01 FR01 RR04 AG11",
		connector.CausePayeeOrAccount: "AM21 AC06 AG01", connector.CauseOperator: "AB08", connector.CauseAccount: "AG10",
	} {
		for _, code := range strings.Fields(codes) {
			refusals[code] = connectors.Refusal{Cause: cause}
		}
	}
	for _, code := range strings.Fields("AB04 AB09 FF10 ZZ99") {
		refusals[code] = connectors.Refusal{Cause: connector.CauseOperator, Unproven: true}
	}
	connectors.RunPayouts(t, pi.Registration, connectors.PayoutOperator{
		Standin: func(t *testing.T) connectors.PayoutStandin { return payoutStandin(t) },
		Fields:  fields("client-secret"), Wrong: fields("another-secret"), Asks: isPayment, Enquires: isPayoutEnquiry,
		Paid: "04 400 00 01", Waits: "04 400 00 03", Refused: "04 400 00 04",
		Malformed: []string{"", "04", "01 100 00 01", "04 400 00 0", "04 400 00 011", "+33 4 40 00 00 01", "4.4E+7"},
		Known: []connectors.Answer{
			problem(http.StatusConflict), {Status: http.StatusConflict}, said("REJETE", "DU03"), said("REJETE", "DU01"), said("REJETE", "AM05"),
		},
		Refusals: refusals,
		RefusesCall: func(code string) (connectors.Answer, bool) {
			return said("REJETE", code), true
		},
		Says: func(ref connector.PayoutReference, code string) connectors.Answer {
			if code == "" {
				return tells(ref, "IRREVOCABLE", "")
			}
			return tells(ref, "REJETE", code)
		},
		Undecided: []connectors.Answer{said("INITIE", ""), said("ENVOYE", ""), said("REJETE", "AB03"), said("REJETE", "DU03")},
		NotFound:  problem(http.StatusNotFound),
		Named: map[string]connector.NameVerdict{
			"04 400 00 01": connector.NameMatch, "04 401 00 42": connector.NameMatch, "06 600 00 01": connector.NameMatch,
			"04 400 00 02": connector.NameClose, "04 400 00 03": connector.NameDifferent, "04 400 00 07": connector.NameUnknown,
		},
		Mute: "04 400 00 08", Holder: func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/alias/") },
		NobodyHeld:  problem(http.StatusNotFound),
		NamesAmount: true, NamesPayee: true,
	})
}

// payouts returns the connector and an account at a stand-in.
func payouts(t *testing.T) (*pi.Payouts, pi.Account, connectors.PayoutStandin, *connectors.Faults) {
	t.Helper()
	s, faults := payoutStandin(t), &connectors.Faults{}
	c, err := pi.NewPayouts(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	return c, payingAccount(connectors.Serve(t, faults, connectors.Standin{Handler: s, Path: s.Path})), s, faults
}

func payoutTo(payee string) connector.Payout {
	return connector.Payout{PayoutReference: connector.PayoutReference{ID: uuid.NewString(), Payee: payee, Amount: 5075, Currency: "XAF"}, PayoutRef: "QD0000000000000000000000AB", Purpose: "Bourse 2026"}
}

// What the switch says of a payment and what it did are two things.
func TestPayoutFaults(t *testing.T) {
	t.Parallel()
	c, account, s, _ := payouts(t)
	for _, x := range []struct {
		payee     string
		uncertain bool // the first call
		status    connector.PayoutStatus
		unproven  bool
		payments  int
	}{
		{"242044000008", true, connector.PayoutPaid, false, 1},     // paid without an answer
		{"242044000009", true, connector.PayoutRefused, true, 1},   // said to be refused, then paid
		{"242044000010", false, connector.PayoutPaid, false, 0},    // said to be paid
		{"242044000011", true, connector.PayoutPaid, false, 1},     // 500, then taken
		{"242044000012", false, connector.PayoutPending, false, 0}, // the settlement timed out
		{"242044000015", false, connector.PayoutPaid, false, 1},    // a clock a day ahead
		{"242066000042", false, connector.PayoutPending, false, 0}, // another operator's wallet
	} {
		p := payoutTo(x.payee)
		_, err := c.Pay(t.Context(), account, p)
		if (err != nil) != x.uncertain || err != nil && !connector.Uncertain(err) {
			t.Errorf("%s: %v", x.payee, err)
		}
		if x.uncertain { // the same attempt again: nobody is paid twice
			_, _ = c.Pay(t.Context(), account, p)
		}
		o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference)
		if err != nil || o.Status != x.status || o.Unproven != x.unproven || o.Status == connector.PayoutPaid && !o.Agrees(p.PayoutReference) || s.Payments(p.ID) != x.payments {
			t.Errorf("%s: %+v, %v, paid %d times", x.payee, o, err, s.Payments(p.ID))
		}
	}
}

// A payment whose answer was lost was sent again. The switch rejects the repetition (DU03), and tells of it when it is asked
// about the id, as if nobody had been paid. Read as a refusal it is paid twice.
func TestRepetitionIsNoRefusal(t *testing.T) {
	t.Parallel()
	c, account, s, faults := payouts(t)
	p := payoutTo("242044000001")
	for range 3 {
		if o, err := c.Pay(t.Context(), account, p); err != nil || o.Status == connector.PayoutRefused {
			t.Fatalf("Pay: %+v, %v", o, err)
		}
	}
	o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference)
	if err != nil || !o.Agrees(p.PayoutReference) || s.Payments(p.ID) != 1 || strings.HasSuffix(o.OperatorRef, "D") {
		t.Errorf("%+v, %v, paid %d times", o, err, s.Payments(p.ID))
	}
	isList := func(r *http.Request) bool { return isPayoutEnquiry(r) && r.URL.RawQuery != "" }
	entry := func(status, reason string, amount int) string {
		return fmt.Sprintf(`{"txId":%q,"statut":%q,"statutRaison":%q,"montant":%d,"payeAlias":"+%s"}`, bare(p.ID), status, reason, amount, p.Payee)
	}
	for _, x := range []struct {
		list   []string
		status connector.PayoutStatus
		agrees bool
	}{
		{nil, connector.PayoutPending, false},
		{[]string{entry("REJETE", "DU03", 5075)}, connector.PayoutPending, false},
		{[]string{entry("REJETE", "DU03", 5075), entry("ENVOYE", "", 5075)}, connector.PayoutPending, false},
		{[]string{entry("REJETE", "AC07", 5075), entry("REJETE", "DU03", 5075)}, connector.PayoutRefused, false},
		{[]string{entry("REJETE", "AC07", 5075), entry("IRREVOCABLE", "", 5075)}, connector.PayoutPaid, true},
		{[]string{entry("IRREVOCABLE", "", 5075), entry("REJETE", "AC07", 5075)}, connector.PayoutPaid, true},
		{[]string{entry("REJETE", "AC07", 5075), entry("ENVOYE", "", 5075)}, connector.PayoutPending, false},
		{[]string{entry("ENVOYE", "", 5075), entry("REJETE", "AC07", 5075)}, connector.PayoutPending, false},
		{[]string{entry("IRREVOCABLE", "", 5075), entry("IRREVOCABLE", "", 5075)}, connector.PayoutPaid, false}, // twice
	} {
		faults.Answer(1, isList, http.StatusOK, `{"data":[`+strings.Join(x.list, ",")+`]}`)
		o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference)
		if err != nil || o.Status != x.status || o.Agrees(p.PayoutReference) != x.agrees {
			t.Errorf("%v: %+v, %v", x.list, o, err)
		}
	}
	for _, answer := range []connectors.Answer{{Status: 500}, {Status: 200, Body: "{"}, {Status: 200, Body: `{"data":[{"statut":"PERDU"}]}`}} {
		faults.Answer(1, isList, answer.Status, answer.Body)
		if o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference); err == nil {
			t.Errorf("%+v: %+v", answer, o)
		}
	}
}

// An amount above the ceiling of the switch was answered 403. Read as refused credentials it closed the account, and nobody
// else was paid. A 403 of the gateway in front of the switch is of the account.
func TestForbidden(t *testing.T) {
	t.Parallel()
	c, account, s, faults := payouts(t)
	p := payoutTo("242044000001")
	p.Amount = 10_000_001
	if o, err := c.Pay(t.Context(), account, p); err != nil || !o.Unconfirmed || o.Cause != connector.CausePayeeOrAccount || s.Payments(p.ID) != 0 {
		t.Errorf("above the ceiling: %+v, %v", o, err)
	}
	if o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference); err != nil || o.Status != connector.PayoutUnknown {
		t.Errorf("enquiry: %+v, %v", o, err)
	}
	faults.Answer(1, isPayment, http.StatusForbidden, `{"message":"Forbidden"}`)
	if o, err := c.Pay(t.Context(), account, p); connector.FaultOf(err) != connector.FaultCredentials || connector.Uncertain(err) {
		t.Errorf("of the gateway: %+v, %v", o, err)
	}
	p.Amount, p.Currency = 100, "XOF"
	if o, err := c.Pay(t.Context(), account, p); err == nil || connector.Uncertain(err) {
		t.Errorf("another currency: %+v, %v", o, err)
	}
}

// The switch says by itself that money has come back.
func TestReturned(t *testing.T) {
	t.Parallel()
	c, account, s, _ := payouts(t)
	p := payoutTo("242044000001")
	if _, err := c.Pay(t.Context(), account, p); err != nil {
		t.Fatal(err)
	}
	back := httptest.NewRecorder()
	s.ServeHTTP(back, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/control/payouts/"+bare(p.ID)+"/return", strings.NewReader("{}")))
	o, err := c.EnquirePayout(t.Context(), account, p.PayoutReference)
	if err != nil || back.Code != http.StatusOK || !o.Returned || !o.Agrees(p.PayoutReference) || time.Since(o.PaidAt) > time.Minute {
		t.Errorf("%+v, %v, %s", o, err, back.Body)
	}
}
