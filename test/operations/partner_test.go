package operations_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"quittance/dev/stack/program"
	"quittance/test/harness"
)

// oldSite is the simulated partner of the deprecated cash-in API.
type oldSite struct {
	origin string
	client *http.Client
}

func siteOf(u *harness.Up) oldSite {
	return oldSite{"http://" + program.Local(u.Port+10), &http.Client{
		Timeout: 45 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send sends a form, or asks for a page, and returns the answer.
func (s oldSite) send(t *testing.T, address string, form url.Values) (status int, location, body string) {
	t.Helper()
	method, content := http.MethodGet, ""
	if form != nil {
		method, content = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location"), string(text)
}

// shows waits until the page of an order shows a text of each pattern.
func (s oldSite) shows(t *testing.T, page string, patterns ...string) {
	t.Helper()
	harness.Eventually(t, "the page of the order", func() error {
		_, _, body := s.send(t, page, nil)
		for _, p := range patterns {
			if !regexp.MustCompile(p).MatchString(body) {
				return fmt.Errorf("lacks %s:\n%s", p, body)
			}
		}
		return nil
	})
}

// usage is what `cashin usage --json` prints.
type usage struct {
	Since        string
	Applications []struct {
		Name    string `json:"application_name"`
		Agency  string
		Mode    string
		InForce bool `json:"credentials_in_force"`
		Calls   int64
		Refused int64
		First   time.Time `json:"first_call_at"`
		Last    time.Time `json:"last_call_at"`
		Days    []struct {
			Day, Route             string
			Calls, Refused, Failed int64
		}
	}
	Reversals []struct {
		SessionID      string `json:"session_id"`
		Number         string
		ExternalNumber string `json:"external_number"`
		Reason         string
		Amount         int64
	}
}

// oldPartner is the story of a partner who has not moved. The site of an old program sells a
// stamp on the hosted page and learns of the payment by an unsigned webhook; it sells another
// one by telephone and learns of it from check-status. The agency sees who calls. It gives
// the money of one payment back, of which no call tells the partner, and sees that too.
func (o caseOperator) oldPartner(t *testing.T, jean, mireille caseOperator) {
	t.Helper()
	site := siteOf(o.Up)
	if !strings.Contains(o.Banner, site.origin+"/ ") || !strings.Contains(o.Banner, "apiKey ak_test_") {
		t.Errorf("the banner does not say how to use the partner:\n%s", o.Banner)
	}
	if status, _, body := site.send(t, site.origin+"/?lang=en", nil); status != http.StatusOK || strings.Count(body, `name="moyen"`) != 3 {
		t.Errorf("the site answers %d\n%s", status, body)
	}

	status, checkout, body := site.send(t, site.origin+"/commande.php", url.Values{"timbre": {"TF-5000"}, "moyen": {""}})
	id := checkout[strings.LastIndex(checkout, "/")+1:]
	if status != http.StatusSeeOther || !strings.HasPrefix(id, "chs_") {
		t.Fatalf("the site answers %d %s\n%s", status, checkout, body)
	}
	order := regexp.MustCompile(`CMD-\w{12}`).FindString(o.Says(t, "CMD-", "sessions", "show", id))
	page := site.origin + "/commande.php?commande=" + order
	site.shows(t, page, `data-status="created"`, `id="webhooks">0<`)
	o.Citizen(id).Pay(t, "06 600 00 01")
	site.shows(t, page, `data-status="completed"`, `id="webhooks">1<`)
	if status, _, _ := site.send(t, site.origin+"/notification.php?cle=guessed&commande="+order, url.Values{}); status != http.StatusNotFound {
		t.Errorf("a webhook at another address is answered %d", status)
	}

	status, _, body = site.send(t, site.origin+"/commande.php", url.Values{"timbre": {"TF-5000"}, "moyen": {"mobile_money_a"}, "telephone": {"05 500 00 01"}})
	if status != http.StatusUnprocessableEntity || !strings.Contains(body, `id="fault"`) {
		t.Errorf("a number of another operator is answered %d\n%s", status, body)
	}
	status, page, body = site.send(t, site.origin+"/commande.php", url.Values{"timbre": {"TP-25000"}, "moyen": {"mobile_money_a"}, "telephone": {"06 600 00 01"}, "lang": {"en"}})
	if status != http.StatusSeeOther {
		t.Fatalf("the site answers %d\n%s", status, body)
	}
	site.shows(t, page, `data-status="completed"`, `id="number">T\d{10}<`, `id="webhooks">0<`, `id="asked">[1-9]`, "paid: here is your stamp")

	var opened struct{ ID string }
	jean.JSON(t, &opened, "cases", "open", id, "--reason", "bought twice")
	mireille.Says(t, "refund", "cases", "propose", opened.ID, "refund", "--reason", "bought twice", "--reference", "wire 9")
	jean.Says(t, "wire 9", "cases", "approve", opened.ID)
	var u usage
	harness.Eventually(t, "the agency sees who calls, and the reversal", func() error {
		u = usage{}
		o.JSON(t, &u, "cashin", "usage", "--agency", "impots") // counts are written every few seconds
		if len(u.Applications) == 0 || len(u.Reversals) == 0 || !strings.Contains(fmt.Sprint(u.Applications), "check-status") {
			return fmt.Errorf("%+v", u)
		}
		return nil
	})
	a := u.Applications[0]
	calls := map[string]int64{}
	for _, d := range a.Days {
		calls[d.Route] += d.Calls
	}
	if len(u.Applications) != 1 || a.Name != "Vente de timbres" || a.Mode != "test" || !a.InForce || a.Refused != 1 || a.First.IsZero() || a.Last.Before(a.First) || calls["/init-checkout"] != 1 || calls["/partners/payments"] != 2 ||
		calls["/generate-application-access-token"] != 1 || calls["/partners/payment-gateways"] == 0 || calls["/transactions/{number}/check-status"] == 0 {
		t.Errorf("usage: %+v", u)
	}
	if r := u.Reversals[0]; len(u.Reversals) != 1 || r.SessionID != id || r.ExternalNumber != order || r.Amount != 5000 || r.Reason != "refunded" || !regexp.MustCompile(`^T\d{10}$`).MatchString(r.Number) {
		t.Errorf("reversals: %+v", u.Reversals)
	}
	o.Says(t, "Vente de timbres (impots)", "cashin", "usage", "--by", "route")
	if csv := o.Says(t, "agency,application_id,application,mode,day,route,calls,refused,failed\n", "cashin", "usage", "--format", "csv", "--since", "2d"); strings.Contains(csv, order) || strings.Count(csv, "\n") < 6 {
		t.Errorf("the calls as CSV:\n%s", csv)
	}
	o.Refused(t, "--agency: no agency has the id or slug \"nobody\"; there are: douanes; impots", "cashin", "usage", "--agency", "nobody")
	o.Misused(t, "--since: must not be in the future", "cashin", "usage", "--since", "2099-01-01")
	o.Says(t, "no application calls the cash-in surface", "cashin", "usage", "--agency", "douanes")
}
