package contract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"quittance/test/harness"
)

// taxpayer is a citizen's browser at the citizen API of an `up`.
type taxpayer struct {
	t       *testing.T
	up      *harness.Up
	cookies map[string]string
}

// call calls the API, reads the answer into v unless it is nil, and wants a status.
func (p taxpayer) call(method, path, body string, want int, v any, headers ...string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.up.URL(harness.AtService, "/api/v1/citizen"+path), strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := p.up.Client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		p.t.Fatalf("%s %s answers %d, want %d: %s %v", method, path, resp.StatusCode, want, text, err)
	}
	for _, c := range resp.Cookies() {
		p.cookies[c.Name] = c.Value
	}
	if v != nil {
		if err := json.Unmarshal(text, v); err != nil {
			p.t.Fatal(err)
		}
	}
}

// due is an item of GET /citizen/dues.
type due struct {
	Ref          string `json:"erp_due_ref"`
	Outstanding  int64  `json:"outstanding_minor"`
	ServiceCode  string `json:"service_code"`
	PaymentState string `json:"payment_state"`
	CheckoutURL  string `json:"checkout_url"`
}

// dues returns the account's dues by reference.
func (p taxpayer) dues() map[string]due {
	p.t.Helper()
	var list struct {
		Items        []due
		SourceStatus string `json:"source_status"`
	}
	p.call(http.MethodGet, "/dues", "", http.StatusOK, &list)
	if list.SourceStatus != "ok" {
		p.t.Fatalf("the source is %s", list.SourceStatus)
	}
	by := map[string]due{}
	for _, d := range list.Items {
		by[d.Ref] = d
	}
	return by
}

// A citizen's whole way by the API: sign in by the code in the inbox, link, list, pay a part
// of one due and all of another, and see the ERP's balance go down.
func TestAWholeWayOfATaxpayer(t *testing.T) {
	t.Parallel()
	up := harness.Shared(t)
	run := uuid.NewString()[:8]
	subject, mail := "NIU-"+run, "usager."+run+"@example.org"
	partial, whole := subject+"-B", subject+"-A"
	up.Control(t, "erp/impots", fmt.Sprintf(`{"dues": {%q: [
		{"erp_due_ref": %q, "label": "Patente", "amount_minor": 5000, "outstanding_minor": 5000, "original_minor": 5000, "currency": "XAF", "allow_partial": false, "revenue_line_code": "4711"},
		{"erp_due_ref": %q, "label": "Foncier", "amount_minor": 12000, "outstanding_minor": 12000, "original_minor": 15000, "currency": "XAF", "allow_partial": true, "minimum_amount_minor": 1000}]}}`, subject, whole, partial))
	p := taxpayer{t, up, map[string]string{}}

	p.call(http.MethodPost, "/sign-in", fmt.Sprintf(`{"email": %q, "locale": "fr"}`, mail), http.StatusAccepted, nil)
	var code string
	harness.Eventually(t, "the code is in the inbox", func() error {
		var got []struct{ To, Text string }
		if err := json.Unmarshal([]byte(inbox(t, up, "mail", "application/json")), &got); err != nil {
			return err
		}
		for _, m := range got {
			if m.To == mail {
				code = digits(m.Text)
				return nil
			}
		}
		return errors.New("it is not there")
	})
	p.call(http.MethodPost, "/sign-in/verify", fmt.Sprintf(`{"email": %q, "code": %q}`, mail, code), http.StatusNoContent, nil)
	var codes []struct{ Code string }
	harness.Operator{Up: up}.JSON(t, &codes, "links", "codes", "impots", "--mode", "test", "--subject", subject)
	agency := harness.GuichetAgency
	p.call(http.MethodPost, "/links", fmt.Sprintf(`{"tenant_id": %q, "subject_ref": %q, "link_code": %q}`, agency, subject, codes[0].Code), http.StatusCreated, nil)
	if dues := p.dues(); len(dues) != 2 || dues[whole].PaymentState != "payable" || dues[whole].ServiceCode == "" || dues[partial].Outstanding != 12_000 {
		t.Fatalf("the dues are %+v", dues)
	}

	var s harness.Session
	cart := fmt.Sprintf(`{"items": [{"erp_due_ref": %q, "amount_minor": 4000, "outstanding_minor": 12000}, {"erp_due_ref": %q}]}`, partial, whole)
	p.call(http.MethodPost, "/checkout", cart, http.StatusCreated, &s, "Idempotency-Key", run)
	var again harness.Session
	if p.call(http.MethodPost, "/checkout", cart, http.StatusCreated, &again, "Idempotency-Key", run); again.ID != s.ID {
		t.Errorf("the same key made %s after %s", again.ID, s.ID)
	}
	if d := p.dues()[partial]; d.PaymentState != "in_payment" || !strings.HasSuffix(d.CheckoutURL, "/c/"+s.ID) {
		t.Errorf("while the cart is open the due is %+v", d)
	}
	p.call(http.MethodPost, "/checkout", cart, http.StatusConflict, nil, "Idempotency-Key", run+"-2")
	up.Citizen(s.ID).Pay(t, "06 600 00 01")

	var paid struct {
		Items []struct {
			SessionID string `json:"session_id"`
			Amount    int64
			Items     []struct{ Recording string }
		}
	}
	harness.Eventually(t, "the ERP's balance went down, and the list shows the rest", func() error {
		p.call(http.MethodGet, "/payments", "", http.StatusOK, &paid)
		dues := p.dues()
		if dues[partial].Outstanding != 8_000 || dues[partial].PaymentState != "payable" || dues[whole].PaymentState != "paid" && dues[whole].Ref != "" {
			return fmt.Errorf("the dues are %+v", dues)
		}
		if len(paid.Items) != 1 || paid.Items[0].SessionID != s.ID || paid.Items[0].Amount != 9_000 || len(paid.Items[0].Items) != 2 ||
			paid.Items[0].Items[0].Recording != "recorded" || paid.Items[0].Items[1].Recording != "recorded" {
			return fmt.Errorf("the payments are %+v", paid)
		}
		return nil
	})
	told := up.Confirmations(t, s)
	if len(told) != 2 || told[0].TransactionID == told[1].TransactionID || told[0].Accepted != 1 || told[1].Accepted != 1 || told[0].Body.Amount+told[1].Body.Amount != 9_000 {
		t.Errorf("the ERP accepted %+v", told)
	}

	// The rest is paid next, and the session is over on the server after the sign-out.
	p.call(http.MethodPost, "/checkout", fmt.Sprintf(`{"items": [{"erp_due_ref": %q}]}`, partial), http.StatusCreated, nil, "Idempotency-Key", run+"-3")
	p.call(http.MethodPost, "/sign-out", "", http.StatusForbidden, nil, "Sec-Fetch-Site", "cross-site")
	stolen := taxpayer{t, up, map[string]string{"quittance_citizen": p.cookies["quittance_citizen"]}}
	p.call(http.MethodPost, "/sign-out", "", http.StatusNoContent, nil)
	stolen.call(http.MethodGet, "/dues", "", http.StatusUnauthorized, nil)
}

// digits returns the first six digits in a row of a text.
func digits(text string) string {
	run := ""
	for _, c := range text {
		if c < '0' || c > '9' {
			run = ""
		} else if run += string(c); len(run) == 6 {
			return run
		}
	}
	return ""
}
