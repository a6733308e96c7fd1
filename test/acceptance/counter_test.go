package acceptance_test

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
)

// The demo registry's clerks.
const (
	clerk1 = "ck_test_Guichet1DemoKey0000000000"
	clerk2 = "ck_test_Guichet2DemoKey0000000000"
)

// counterCall is one of an agency's desk software.
func (u *up) counterCall(t *testing.T, key, path, body string) (out map[string]any) {
	t.Helper()
	a := u.call(t, http.MethodPost, u.url(atService, "/api/v1/counter/"+path), body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	if a.status/100 != 2 {
		t.Fatalf("%s %s: %d %s", path, body, a.status, a.body)
	}
	a.into(t, &out)
	return out
}

// A citizen pays in cash at an agency's counter: once by the agency's own
// software, once by the clerk's page. The integrator, the ERP and the analyst
// learn of it as of every payment; a second person reverses one of them.
func TestCounter(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := newUp(t, "--log", "debug")
	u.start(t)
	if !strings.Contains(u.banner, clerk1) || !strings.Contains(u.banner, u.url(atService, "/counter")) {
		t.Errorf("the banner tells no clerk where to go:\n%s", u.banner)
	}

	bySoftware := u.create(t, "cash-by-software")
	held := u.counterCall(t, clerk1, "reservations", fmt.Sprintf(`{"payment_ref": %q}`, bySoftware.PaymentRef))
	payment := fmt.Sprintf(`{"payment_ref": %q, "collection_id": %q, "total": %.0f, "receipt": "R-1"}`, bySoftware.PaymentRef, held["collection_id"], held["total"])
	for range 2 {
		if taken := u.counterCall(t, clerk1, "payments", payment); taken["status"] != "completed" || taken["clerk"] != "c01" {
			t.Errorf("taken as %v", taken)
		}
	}

	byPage := u.create(t, "cash-by-page")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &up{port: u.port, client: &http.Client{Jar: jar}} // follows redirects, keeps cookies
	page := func(a answer, says string) pageForm {
		t.Helper()
		if !strings.Contains(string(a.body), says) {
			t.Fatalf("the counter answers %d, and does not say %q:\n%s", a.status, says, a.body)
		}
		return readForm(string(a.body))
	}
	send := func(f pageForm, field, value string) answer {
		t.Helper()
		f.fields.Set(field, value)
		return browser.call(t, http.MethodPost, u.url(atService, f.action), f.fields.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	}
	signIn := page(browser.call(t, http.MethodGet, u.url(atService, "/counter?lang=en"), ""), "Open the counter")
	desk := page(send(signIn, "key", clerk2), "Look a payment up")
	review := page(send(desk, "payment_ref", byPage.PaymentRef[:8]+" "+byPage.PaymentRef[8:]), "Take the cash")
	page(send(review, "receipt", "R-2"), "Receipt for cash")
	page(send(review, "receipt", "R-2"), "Receipt for cash") // pressed twice

	for _, s := range []session{bySoftware, byPage} {
		u.becomes(t, s.ID, "completed")
		u.delivered(t, s.ID, "checkout.completed")
		u.confirmed(t, s)
	}
	other := page(browser.call(t, http.MethodGet, u.url(atService, "/counter/"+bySoftware.PaymentRef+"?lang=en"), ""), "Give the cash back")
	page(send(other, "reason", "wrong case"), "given back by c02")

	for _, s := range []session{bySoftware, byPage} {
		var body struct {
			Channel string `json:"channel"`
			OfferID string `json:"offer_id"`
			Total   int64  `json:"total_amount"`
			Ref     string `json:"operator_ref"`
		}
		inbox := u.inbox(t, s.ID)
		if len(inbox) != 1 || json.Unmarshal([]byte(inbox[0].Body), &body) != nil || inbox[0].event.Event != "checkout.completed" ||
			body.Channel != "CASH" || body.OfferID != "cash_agency" || body.Total != 5000 || !strings.HasPrefix(body.Ref, "R-") {
			t.Errorf("the inbox has %+v, want one checkout.completed in cash", inbox)
		}
		if c := u.collections(t, s); len(c) != 0 {
			t.Errorf("an operator was asked: %+v", c)
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
	u.call(t, http.MethodGet, u.url(atSimulators, "/control/erp/impots"), "").into(t, &erp)
	for _, c := range erp.Accepted {
		if c.Accepted != 1 || c.Body.Payment.Channel != "CASH" {
			t.Errorf("the ERP has accepted %+v, want one in cash", c)
		}
	}
	if len(erp.Accepted) != 2 {
		t.Errorf("the ERP has accepted %d confirmations, want 2", len(erp.Accepted))
	}
	if n := u.journalled(t, bySoftware.ID, "collection.reversed"); n != 1 {
		t.Errorf("the journal has %d reversals", n)
	}
	o := operator{u}
	var third struct {
		Secret string `json:"secret"`
	}
	o.json(t, &third, "clerks", "add", "--agency", "impots", "--code", "c03", "--name", "Guichet 3", "--counter", "Annexe", "--mode", "test")
	stands := u.url(atService, "/api/v1/counter/payments/"+bySoftware.PaymentRef)
	answers := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprintf("the third clerk is answered %d", want), func() error {
			if a := u.call(t, http.MethodGet, stands, "", "Authorization", "Bearer "+third.Secret); a.status != want {
				return fmt.Errorf("%d", a.status)
			}
			return nil
		})
	}
	answers(http.StatusOK)
	o.says(t, "impots/c03", "clerks", "list")
	o.refused(t, "quittance clerks list", "clerks", "revoke", "impots/c04")
	o.says(t, "is revoked", "clerks", "revoke", "impots/c03")
	answers(http.StatusUnauthorized)
	if s := u.session(t, bySoftware.ID); s.Status != "completed" {
		t.Errorf("reversed, and the session is %s", s.Status)
	}

	t.Run("numbers", u.counterNumbers)

	log, err := os.ReadFile(u.stderr())
	if err != nil {
		t.Fatal(err)
	}
	cookies := jar.Cookies(&url.URL{Scheme: "http", Host: local(u.port), Path: "/counter"})
	if len(cookies) != 1 {
		t.Fatalf("the browser holds %v", cookies)
	}
	for _, secret := range []string{clerk1, clerk2, third.Secret, cookies[0].Value} {
		if bytes.Contains(log, []byte(secret)) {
			t.Errorf("the log holds %q", secret)
		}
	}
}

// Cash has every outcome that the other channels' magic numbers have, played by the
// simulated counter, whose desk software speaks for a clerk to the service's own API.
func (u *up) counterNumbers(t *testing.T) {
	visit := func(s session, body string) (c collection) {
		u.control(t, "counter/"+s.PaymentRef, body).into(t, &c)
		return c
	}
	stands := func(s session) (p struct {
		Status string `json:"status"`
		Cash   *struct {
			Status     string `json:"status"`
			ReversedBy string `json:"reversed_by"`
		} `json:"cash"`
	},
	) {
		u.call(t, http.MethodGet, u.url(atService, "/api/v1/counter/payments/"+s.PaymentRef), "", "Authorization", "Bearer "+clerk1).into(t, &p)
		return p
	}
	numbers := map[string]struct {
		becomes  string // of the visit
		calls    int    // of the desk, after the look-up
		answered int    // to the last of them
		clock    bool   // only when the reservation has ended
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
	made := map[string]session{}
	for number := range numbers {
		made[number] = u.create(t, "cash-number-"+number)
		if number == "12" { // the number comes when the clerk holds it already
			visit(made[number], "")
		}
		if c := visit(made[number], fmt.Sprintf(`{"number": %q}`, number)); c.Amount != "5000" {
			t.Errorf("%s: the clerk is to take %s", number, c.Amount)
		}
	}
	mistyped := u.create(t, "cash-number-07")
	a := u.call(t, http.MethodPost, u.url(atSimulators, "/control/counter/"+mistyped.PaymentRef), `{"number": "07"}`)
	if a.status != http.StatusUnprocessableEntity || !bytes.Contains(a.body, []byte("counter.reference_mistyped")) || stands(mistyped).Cash != nil {
		t.Errorf("a mistyped reference: %d %s", a.status, a.body)
	}
	byHand := u.create(t, "cash-by-hand")
	held := visit(byHand, "")
	if again := visit(byHand, ""); again.ID != held.ID || again.Status != "pending" {
		t.Errorf("looked up again: %+v after %+v", again, held)
	}
	u.control(t, "collections/"+held.ID+"/approve", `{"amount": "1"}`)
	if a := u.call(t, http.MethodPost, u.url(atSimulators, "/control/counter/"+byHand.PaymentRef), `{"number": "04"}`); a.status != http.StatusConflict {
		t.Errorf("a number for what is decided: %d %s", a.status, a.body)
	}
	if p := stands(byHand); p.Status != "open" || p.Cash == nil || p.Cash.Status != "reserved" {
		t.Errorf("held, and another amount taken: %+v", p)
	}

	settles := func(clock bool) {
		for number, want := range numbers {
			if want.clock != clock {
				continue
			}
			s := made[number]
			eventually(t, number+" is settled", func() error {
				c := u.collected(t, s)
				if c.Status != want.becomes || c.CallbacksSent != want.calls || c.CallbackStatus != want.answered {
					return fmt.Errorf("%+v", c)
				}
				return nil
			})
			if want.becomes != "approved" {
				if p := stands(s); p.Status != "open" || p.Cash != nil {
					t.Errorf("%s: without cash the payment is %+v", number, p)
				}
				continue
			}
			u.becomes(t, s.ID, "completed")
			u.delivered(t, s.ID, "checkout.completed")
			if p := stands(s); p.Cash == nil || p.Cash.Status != "taken" {
				t.Errorf("%s: paid, and it stands at %+v", number, p)
			}
			u.confirmed(t, s) // by the ERP, once
		}
	}
	settles(false)
	if c := u.collected(t, byHand); c.CallbackStatus != http.StatusConflict {
		t.Errorf("another amount is answered %+v", c)
	}
	u.control(t, "counter/"+made["01"].PaymentRef+"/reverse", "")
	if p := stands(made["01"]); p.Status != "completed" || p.Cash == nil || p.Cash.Status != "reversed" || p.Cash.ReversedBy != "c02" {
		t.Errorf("given back: %+v", p)
	}
	if c, s := u.collected(t, made["10"]), u.session(t, made["10"].ID); c.Status != "pending" || s.Status != "open" {
		t.Errorf("10: before the reservation has ended: %+v, the session is %s", c, s.Status)
	}
	u.advance(t, 10*time.Minute+time.Second)
	eventually(t, "the reservation has ended", func() error {
		if p := stands(made["03"]); p.Cash != nil {
			return fmt.Errorf("%+v", *p.Cash)
		}
		return nil
	})
	u.advance(t, time.Minute)
	settles(true)
}
