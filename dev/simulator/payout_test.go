package simulator_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/test/httpclient"
)

// A request that arrives late is not known before. Repeated under its id it is carried out once; under another id the
// payee is paid twice, and the ledger says so.
func TestPayoutArrivesLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var grant struct {
		AccessToken string `json:"access_token"`
	}
	w.call(http.MethodPost, "/mtn/disbursement/token/", "", basic("user", "key", map[string]string{"Ocp-Apim-Subscription-Key": "subscription"})).decode(t, &grant)
	header := func(reference string) map[string]string {
		return map[string]string{
			"Authorization": "Bearer " + grant.AccessToken, "Ocp-Apim-Subscription-Key": "subscription", "X-Target-Environment": "mtncongo",
			"X-Reference-Id": reference, "Content-Type": "application/json",
		}
	}
	const body = `{"amount":"5000","currency":"XAF","externalId":"line-1","payee":{"partyIdType":"MSISDN","partyId":"242066000013"},"payerMessage":"m","payeeNote":"n"}`
	// pay sends the request, which gets no answer.
	pay := func(reference string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/mtn/disbursement/v1_0/transfer", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range header(reference) {
			req.Header.Set(k, v)
		}
		if resp, err := httpclient.Default.Do(req); err == nil {
			_ = resp.Body.Close()
			t.Fatalf("the request is answered with %s", resp.Status)
		}
	}
	known := func(reference string) bool {
		return w.call(http.MethodGet, "/mtn/disbursement/v1_0/transfer/"+reference, "", header(reference)).status == http.StatusOK
	}
	payments := func() (n int) {
		var all []struct{ Payments int }
		w.call(http.MethodGet, "/control/payouts", "", nil).decode(t, &all)
		for _, p := range all {
			n += p.Payments
		}
		return n
	}
	same, other := uuid.NewString(), uuid.NewString()
	pay(same)
	if known(same) || payments() != 0 {
		t.Errorf("the operator knows a request that is under way; payments: %d", payments())
	}
	w.clock.advance(11 * time.Minute)
	pay(same)
	if !known(same) || payments() != 1 {
		t.Errorf("the repetition is not carried out; payments: %d", payments())
	}
	w.clock.advance(11 * time.Minute)
	if payments() != 1 {
		t.Errorf("%d payments of one id", payments())
	}
	pay(other)
	w.clock.advance(13 * time.Minute)
	if !known(other) || payments() != 2 {
		t.Errorf("another id is another payment; payments: %d", payments())
	}
}
