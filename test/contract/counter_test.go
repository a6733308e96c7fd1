package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"quittance/dev/stack/program"
	"quittance/test/harness"
)

// The demo registry's clerks.
const (
	clerk1 = "ck_test_Guichet1DemoKey0000000000"
	clerk2 = "ck_test_Guichet2DemoKey0000000000"
)

// counterCall calls the counter API as an agency's desk software does.
func counterCall(t *testing.T, u *harness.Up, key, path, body string) (out map[string]any) {
	t.Helper()
	a := u.Call(t, http.MethodPost, u.URL(harness.AtService, "/api/v1/counter/"+path), body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	if a.Status/100 != 2 {
		t.Fatalf("%s %s: %d %s", path, body, a.Status, a.Body)
	}
	a.Into(t, &out)
	return out
}

// Two citizens pay in cash at an agency's counter: one by the agency's own software, one
// by the clerk's page. The integrator, the ERP and the journal get both payments. A second
// clerk reverses one of them.
func TestCounter(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := harness.NewUp(t, "--log", "debug")
	u.Start(t)
	if !strings.Contains(u.Banner, clerk1) || !strings.Contains(u.Banner, u.URL(harness.AtService, "/counter")) {
		t.Errorf("the banner lacks the counter's address or a clerk's key:\n%s", u.Banner)
	}

	bySoftware := u.Create(t, "cash-by-software")
	held := counterCall(t, u, clerk1, "reservations", fmt.Sprintf(`{"payment_ref": %q}`, bySoftware.PaymentRef))
	payment := fmt.Sprintf(`{"payment_ref": %q, "collection_id": %q, "total": %.0f, "receipt": "R-1"}`, bySoftware.PaymentRef, held["collection_id"], held["total"])
	for range 2 {
		if taken := counterCall(t, u, clerk1, "payments", payment); taken["status"] != "completed" || taken["clerk"] != "c01" {
			t.Errorf("the payment is answered with %v, want it completed by c01", taken)
		}
	}

	byPage := u.Create(t, "cash-by-page")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &harness.Up{Port: u.Port, Client: &http.Client{Transport: httpclient.Transport, Jar: jar}} // follows redirects, keeps cookies
	page := func(a harness.Answer, says string) harness.PageForm {
		t.Helper()
		if !strings.Contains(string(a.Body), says) {
			t.Fatalf("the counter answers %d without %q:\n%s", a.Status, says, a.Body)
		}
		return harness.ReadForm(string(a.Body))
	}
	send := func(f harness.PageForm, field, value string) harness.Answer {
		t.Helper()
		f.Fields.Set(field, value)
		return browser.Call(t, http.MethodPost, u.URL(harness.AtService, f.Action), f.Fields.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	}
	signIn := page(browser.Call(t, http.MethodGet, u.URL(harness.AtService, "/counter?lang=en"), ""), "Open the counter")
	desk := page(send(signIn, "key", clerk2), "Look a payment up")
	review := page(send(desk, "payment_ref", byPage.PaymentRef[:8]+" "+byPage.PaymentRef[8:]), "Take the cash")
	page(send(review, "receipt", "R-2"), "Receipt for cash")
	page(send(review, "receipt", "R-2"), "Receipt for cash") // the clerk presses twice

	for _, s := range []harness.Session{bySoftware, byPage} {
		u.Becomes(t, s.ID, "completed")
		u.Delivered(t, s.ID, "checkout.completed")
		u.Confirmed(t, s)
	}
	other := page(browser.Call(t, http.MethodGet, u.URL(harness.AtService, "/counter/"+bySoftware.PaymentRef+"?lang=en"), ""), "Give the cash back")
	page(send(other, "reason", "wrong case"), "given back by c02")
	u.Delivered(t, bySoftware.ID, "checkout.reversed")
	tillOfTheDay(t, u)

	for _, s := range []harness.Session{bySoftware, byPage} {
		var body struct {
			Channel string `json:"channel"`
			OfferID string `json:"offer_id"`
			Total   int64  `json:"total_amount"`
			Ref     string `json:"operator_ref"`
		}
		inbox := u.Inbox(t, s.ID)
		if s.ID == bySoftware.ID && len(inbox) == 2 && !inbox[1].Event.Paid {
			inbox = inbox[:1] // the second one is of the reversal
		}
		if len(inbox) != 1 || json.Unmarshal([]byte(inbox[0].Body), &body) != nil || inbox[0].Event.Event != "checkout.completed" ||
			body.Channel != "CASH" || body.OfferID != "cash_agency" || body.Total != 5000 || !strings.HasPrefix(body.Ref, "R-") {
			t.Errorf("the inbox has %+v, want one checkout.completed in cash", inbox)
		}
		if c := u.Collections(t, s); len(c) != 0 {
			t.Errorf("an operator has %+v, want no collection", c)
		}
	}
	var erp struct {
		Accepted []struct {
			Accepted int `json:"accepted"`
			Body     struct {
				PaymentRef string `json:"payment_ref"`
				Payment    struct {
					Channel string `json:"channel"`
				} `json:"payment"`
			} `json:"body"`
		} `json:"accepted"`
	}
	u.Call(t, http.MethodGet, u.URL(harness.AtSimulators, "/control/erp/impots"), "").Into(t, &erp)
	for _, c := range erp.Accepted {
		if c.Accepted != 1 || c.Body.Payment.Channel != "CASH" {
			t.Errorf("the ERP has accepted %+v, want one in cash", c)
		}
	}
	if len(erp.Accepted) != 2 {
		t.Errorf("the ERP has accepted %d confirmations, want 2", len(erp.Accepted))
	}
	if n := u.Journalled(t, bySoftware.ID, "collection.reversed"); n != 1 {
		t.Errorf("the journal has %d reversals, want 1", n)
	}
	third := thirdClerk(t, u, bySoftware)
	if s := u.Session(t, bySoftware.ID); s.Status != "completed" {
		t.Errorf("the session of the reversed payment is %s, want completed", s.Status)
	}

	t.Run("numbers", func(t *testing.T) { counterNumbers(t, u) })

	log, err := os.ReadFile(u.Stderr())
	if err != nil {
		t.Fatal(err)
	}
	cookies := jar.Cookies(&url.URL{Scheme: "http", Host: program.Local(u.Port), Path: "/counter"})
	if len(cookies) != 1 {
		t.Fatalf("the browser has the cookies %v, want one", cookies)
	}
	for _, secret := range []string{clerk1, clerk2, third, cookies[0].Value} {
		if bytes.Contains(log, []byte(secret)) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// thirdClerk checks how a clerk is added, limited and revoked by commands. It returns the
// clerk's key.
func thirdClerk(t *testing.T, u *harness.Up, paid harness.Session) string {
	t.Helper()
	o := harness.Operator{Up: u}
	var third struct {
		Secret string `json:"secret"`
	}
	o.JSON(t, &third, "clerks", "add", "--agency", "impots", "--code", "c03", "--name", "Guichet 3", "--counter", "Annexe", "--mode", "test")
	stands := u.URL(harness.AtService, "/api/v1/counter/payments/"+paid.PaymentRef)
	answers := func(want int) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("the third clerk is answered %d", want), func() error {
			if a := u.Call(t, http.MethodGet, stands, "", "Authorization", "Bearer "+third.Secret); a.Status != want {
				return fmt.Errorf("%d", a.Status)
			}
			return nil
		})
	}
	answers(http.StatusOK)
	o.Says(t, "impots/c03", "clerks", "list")
	o.Misused(t, "--per-payment AMOUNT", "clerks", "limit", "impots/c03")
	o.Refused(t, "per-day: must be an amount in XAF from 0", "clerks", "limit", "impots/c03", "--per-day", "-1")
	o.Refused(t, "quittance-dev clerks list", "clerks", "limit", "impots/c04", "--per-day", "1")
	o.Says(t, "a payment 4999, a day unlimited", "clerks", "limit", "impots/c03", "--per-payment", "4999")
	above := u.Create(t, "cash-above-the-limit")
	harness.Eventually(t, "the limit is in force", func() error {
		a := u.Call(t, http.MethodPost, u.URL(harness.AtService, "/api/v1/counter/reservations"), fmt.Sprintf(`{"payment_ref": %q}`, above.PaymentRef),
			"Authorization", "Bearer "+third.Secret, "Content-Type", "application/json")
		if a.Status == http.StatusConflict && strings.Contains(string(a.Body), "counter.payment_limit") {
			return nil
		}
		var held map[string]any // the limit is not in force yet
		a.Into(t, &held)
		counterCall(t, u, third.Secret, "releases", fmt.Sprintf(`{"payment_ref": %q, "collection_id": %q}`, above.PaymentRef, held["collection_id"]))
		return fmt.Errorf("%d %s", a.Status, a.Body)
	})
	o.Refused(t, "quittance-dev clerks list", "clerks", "revoke", "impots/c04")
	o.Says(t, "is revoked", "clerks", "revoke", "impots/c03")
	answers(http.StatusUnauthorized)
	return third.Secret
}

// counterNumbers checks the outcome of each magic number at the simulated counter, whose
// desk software calls the counter API with a clerk's key.
func counterNumbers(t *testing.T, u *harness.Up) {
	visit := func(s harness.Session, body string) (c harness.Collection) {
		u.Control(t, "counter/"+s.PaymentRef, body).Into(t, &c)
		return c
	}
	stands := func(s harness.Session) (p struct {
		Status string `json:"status"`
		Cash   *struct {
			Status     string `json:"status"`
			ReversedBy string `json:"reversed_by"`
		} `json:"cash"`
	},
	) {
		u.Call(t, http.MethodGet, u.URL(harness.AtService, "/api/v1/counter/payments/"+s.PaymentRef), "", "Authorization", "Bearer "+clerk1).Into(t, &p)
		return p
	}
	numbers := map[string]struct {
		becomes  string // status of the visit
		calls    int    // number of calls of the desk after the look-up
		answered int    // status of the answer to the last of them
		clock    bool   // the outcome comes when the reservation has ended
	}{
		"01": {becomes: "approved", calls: 1, answered: 200},
		"02": {becomes: "approved", calls: 1, answered: 200},
		"03": {becomes: "pending", clock: true},
		"04": {becomes: "rejected", calls: 1, answered: 200},
		"05": {becomes: "rejected", calls: 1, answered: 200},
		"06": {becomes: "rejected", calls: 1, answered: 200},
		"08": {becomes: "approved", calls: 1, answered: 200},
		"09": {becomes: "approved", calls: 2, answered: 200},
		"10": {becomes: "approved", calls: 1, answered: 200, clock: true},
		"11": {becomes: "approved", calls: 1, answered: 200},
		"12": {becomes: "approved", calls: 1, answered: 200},
		"13": {becomes: "rejected", calls: 1, answered: 200},
	}
	made := map[string]harness.Session{}
	for number := range numbers {
		made[number] = u.Create(t, "cash-number-"+number)
		if number == "12" { // the number comes after the reservation
			visit(made[number], "")
		}
		if c := visit(made[number], fmt.Sprintf(`{"number": %q}`, number)); c.Amount != "5000" {
			t.Errorf("%s: the clerk is asked to take %s, want 5000", number, c.Amount)
		}
	}
	mistyped := u.Create(t, "cash-number-07")
	a := u.Call(t, http.MethodPost, u.URL(harness.AtSimulators, "/control/counter/"+mistyped.PaymentRef), `{"number": "07"}`)
	if a.Status != http.StatusUnprocessableEntity || !bytes.Contains(a.Body, []byte("counter.reference_mistyped")) || stands(mistyped).Cash != nil {
		t.Errorf("a mistyped reference: %d %s", a.Status, a.Body)
	}
	byHand := u.Create(t, "cash-by-hand")
	held := visit(byHand, "")
	if again := visit(byHand, ""); again.ID != held.ID || again.Status != "pending" {
		t.Errorf("the second look-up returns %+v after %+v, want the same collection", again, held)
	}
	u.Control(t, "collections/"+held.ID+"/approve", `{"amount": "1"}`)
	if a := u.Call(t, http.MethodPost, u.URL(harness.AtSimulators, "/control/counter/"+byHand.PaymentRef), `{"number": "04"}`); a.Status != http.StatusConflict {
		t.Errorf("a number for a decided visit: %d %s, want 409", a.Status, a.Body)
	}
	if p := stands(byHand); p.Status != "open" || p.Cash == nil || p.Cash.Status != "reserved" {
		t.Errorf("after a payment of another amount the payment is %+v, want it reserved", p)
	}

	settles := func(clock bool) {
		for number, want := range numbers {
			if want.clock != clock {
				continue
			}
			s := made[number]
			harness.Eventually(t, number+" is settled", func() error {
				c := u.Collected(t, s)
				if c.Status != want.becomes || c.CallbacksSent != want.calls || c.CallbackStatus != want.answered {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
			if want.becomes != "approved" {
				if p := stands(s); p.Status != "open" || p.Cash != nil {
					t.Errorf("%s: the payment is %+v, want it open without cash", number, p)
				}
				continue
			}
			u.Becomes(t, s.ID, "completed")
			u.Delivered(t, s.ID, "checkout.completed")
			if p := stands(s); p.Cash == nil || p.Cash.Status != "taken" {
				t.Errorf("%s: the payment is %+v, want the cash taken", number, p)
			}
			u.Confirmed(t, s)
		}
	}
	settles(false)
	if c := u.Collected(t, byHand); c.CallbackStatus != http.StatusConflict {
		t.Errorf("the collection of another amount is %+v, want 409 for its payment", c)
	}
	u.Control(t, "counter/"+made["01"].PaymentRef+"/reverse", "")
	if p := stands(made["01"]); p.Status != "completed" || p.Cash == nil || p.Cash.Status != "reversed" || p.Cash.ReversedBy != "c02" {
		t.Errorf("the reversed payment is %+v, want it reversed by c02", p)
	}
	if c, s := u.Collected(t, made["10"]), u.Session(t, made["10"].ID); c.Status != "pending" || s.Status != "open" {
		t.Errorf("10: before the end of the reservation the collection is %+v and the session %s, want pending and open", c, s.Status)
	}
	u.Advance(t, 10*time.Minute+time.Second)
	harness.Eventually(t, "the reservation has ended", func() error {
		if p := stands(made["03"]); p.Cash != nil {
			return fmt.Errorf("%+v", *p.Cash)
		}
		return nil
	})
	u.Advance(t, time.Minute)
	settles(true)
}
