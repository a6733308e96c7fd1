package pi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/dev/simulator"
	"quittance/internal/connector"
	"quittance/internal/connector/pi"
	"quittance/test/connectors"
)

func isRequest(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/demandes-paiements")
}

func isEnquiry(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/demandes-paiements")
}

func TestConformance(t *testing.T) {
	t.Parallel()
	connectors.Run(t, pi.Registration, connectors.Operator{
		Standin: func(t *testing.T) connectors.Standin { return connectors.Simulators(t, pi.Operator, accepts) },
		Fields:  fields("client-secret"), Wrong: fields("another-secret"),
		Asks: isRequest, Enquires: isEnquiry, Tokens: true,
		Approves: "04 400 00 01", Waits: "04 400 00 03",
		Refuses: map[string]checkout.FailureCode{
			"04 400 00 04": checkout.FailureRejected,
			"04 400 00 05": checkout.FailureInsufficientFunds,
			"04 400 00 06": checkout.FailurePayerLimitReached,
			"04 400 00 07": checkout.FailurePayerNotFound,
		},
		Malformed: []string{"", "04", "01 100 00 01", "04 400 00 0", "04 400 00 011", "+33 4 40 00 00 01", "zero four"},
		Claims: func(id string) (int, string) {
			return http.StatusOK, fmt.Sprintf(`{"txId":%q,"end2endId":"E1","statut":"IRREVOCABLE","montant":5075}`, bare(id))
		},
		Report: func(id string, amount int64, _ string) []byte {
			return fmt.Appendf(nil, `{"evCode":"DEMANDE_PAIEMENT_IRREVOCABLE","evDate":"2026-11-30T10:00:00Z","txId":%q,"end2endId":"E1","montant":%d}`, bare(id), amount)
		},
	})
}

// request is a request to pay of a number.
func request(id, payer string) connector.Request {
	return connector.Request{ID: id, Payer: payer, Amount: 5075, Currency: "XAF", PaymentRef: "1234567890123456", ExpiresAt: time.Now().Add(5 * time.Minute)}
}

// What the switch says of requests to pay.
func TestStatesOfRequests(t *testing.T) {
	t.Parallel()
	c, account, faults := collecting(t)
	const id = "7c2e5f0a-0000-4000-8000-000000000001"
	for body, want := range map[string]connector.Outcome{
		`"statut":"INITIE"`: {Status: checkout.OutcomePending},
		`"statut":"ENVOYE"`: {Status: checkout.OutcomePending},
		`"statut":"IRREVOCABLE","montant":5075,"end2endId":"E1","dateIrrevocabilite":"2026-11-30T10:00:00+01:00"`: {
			Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF", OperatorRef: "E1", ApprovedAt: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		},
		`"statut":"IRREVOCABLE","montant":"5075.00"`:           {Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF"},
		`"statut":"IRREVOCABLE","montant":5075,"devise":"XOF"`: {Status: checkout.OutcomeApproved}, // matches no collection
		`"statut":"IRREVOCABLE","montant":5075.5`:              {Status: checkout.OutcomeApproved},
		`"statut":"REJETE","statutRaison":"ARFR"`:              {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected, Reason: "ARFR"},
		`"statut":"REJETE","statutRaison":"AEXR"`:              {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureApprovalTimeout, Reason: "AEXR"},
		`"statut":"REJETE","statutRaison":"ZZ99"`:              {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureOperatorError, Reason: "ZZ99"},
		`"statut":"REJETE","statutRaison":"de +242066000001"`:  {Status: checkout.OutcomeRefused, FailureCode: checkout.FailureOperatorError},
		`"statut":"REJETE","statutRaison":"AB03"`:              {Status: checkout.OutcomeAmbiguous, Reason: "AB03"},
		`"statut":"REJETE","statutRaison":"ALAC"`:              {Status: checkout.OutcomeAmbiguous, Reason: "ALAC"},
		`"statut":"REJETE","statutRaison":"APAR"`:              {Status: checkout.OutcomeAmbiguous, Reason: "APAR"},
	} {
		faults.Answer(1, isEnquiry, http.StatusOK, `{"txId":"`+bare(id)+`",`+body+`}`)
		if got, err := c.Enquire(t.Context(), account, connector.Reference{ID: id, Amount: 5075, Currency: "XAF"}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", body, got, err, want)
		}
	}
	for _, body := range []string{`{"statut":"PERDU"}`, `{"statut":""}`, `{"txId":"7c2e5f0a000040008000000000000002","statut":"IRREVOCABLE","montant":5075}`} {
		faults.Answer(1, isEnquiry, http.StatusOK, body)
		if got, err := c.Enquire(t.Context(), account, connector.Reference{ID: id}); err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

// A payer rejects, and approves half a minute later all the same. A request that was sent twice is told as rejected (DU03), and
// is asked about in the list.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	c, account, _ := collecting(t, func(cfg *simulator.Config) { cfg.Now = func() time.Time { return time.Now().Add(ahead) } })
	r := request("7c2e5f0a-0000-4000-8000-000000000003", "242044000014")
	for range 2 {
		if o, err := c.Collect(t.Context(), account, r); err != nil || o.Status == checkout.OutcomeApproved {
			t.Fatalf("Collect: %+v, %v", o, err)
		}
	}
	ref := connector.Reference{ID: r.ID, Amount: r.Amount, Currency: r.Currency}
	if o, err := c.Enquire(t.Context(), account, ref); err != nil || o.Status != checkout.OutcomeRefused || o.FailureCode != checkout.FailureRejected {
		t.Errorf("at first: %+v, %v", o, err)
	}
	ahead = 31 * time.Second
	if o, err := c.Enquire(t.Context(), account, ref); err != nil || o.Status != checkout.OutcomeApproved || o.Amount != r.Amount || o.ApprovedAt.IsZero() {
		t.Errorf("then: %+v, %v", o, err)
	}
}

// collecting returns the connector and an account at the simulator.
func collecting(t *testing.T, configure ...func(*simulator.Config)) (*pi.Connector, pi.Account, *connectors.Faults) {
	t.Helper()
	faults := &connectors.Faults{}
	c, err := pi.New(connectors.Config())
	if err != nil {
		t.Fatal(err)
	}
	account := payingAccount(connectors.Serve(t, faults, connectors.Simulators(t, pi.Operator, append(configure, accepts)...)))
	account.Purpose = connector.PurposeCollect
	return c, account, faults
}
