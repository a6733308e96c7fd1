package simulator_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"quittance/test/httpclient"

	"github.com/google/uuid"

	"quittance/dev/simulator"
)

const cardPath = "/card/v1/transactions"

// shop is a merchant of the card acquirer.
type shop struct {
	*world
	merchant, secret string
}

func (w *world) shop() *shop { return &shop{w, "impots", "simulator"} }

func hmacHex(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return fmt.Sprintf("%x", mac.Sum(nil))
}

func authorization(merchant, secret string, at time.Time, text string) string {
	return fmt.Sprintf(`HMAC-SHA256 merchant="%s", timestamp="%d", signature="%s"`, merchant, at.Unix(), hmacHex(secret, text))
}

// sign returns the Authorization header of a request.
func (m *shop) sign(method, target, body string) map[string]string {
	now := m.clock.Now()
	text := fmt.Sprintf("request\n%s\n%d\n%s\n%s\n%x", m.merchant, now.Unix(), method, target, sha256.Sum256([]byte(body)))
	return map[string]string{"Content-Type": "application/json", "Authorization": authorization(m.merchant, m.secret, now, text)}
}

func (m *shop) transaction(id string) map[string]any {
	return map[string]any{
		"merchant": m.merchant, "reference": id, "amount": 507550, "currency": "EUR", "description": "Patente <2026>",
		"return_url": "https://pay.example/c/chs_1", "callback_url": m.world.merchant.URL + "/callback/" + id,
		"expires_at": m.clock.Now().Add(5 * time.Minute),
	}
}

func (m *shop) post(transaction map[string]any) answer {
	m.t.Helper()
	body, err := json.Marshal(transaction)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.call(http.MethodPost, cardPath, string(body), m.sign(http.MethodPost, cardPath, string(body)))
}

// opened is the answer to a request for a transaction.
type opened struct {
	TransactionID string `json:"transaction_id"`
	Reference     string `json:"reference"`
	Status        string `json:"status"`
	URL           string `json:"url"`
	ClientToken   string `json:"client_token"`
	Environment   string `json:"checkout_environment"`
}

// open requests a transaction and returns it.
func (m *shop) open() opened {
	m.t.Helper()
	a := m.post(m.transaction(uuid.NewString()))
	var o opened
	a.decode(m.t, &o)
	if a.status != http.StatusCreated || o.Status != "pending" || !strings.HasPrefix(o.URL, m.url+"/card/pay/"+o.TransactionID+"?token=") ||
		o.ClientToken == "" || o.Environment != "test" {
		m.t.Fatalf("transaction: %d %s", a.status, a.body)
	}
	return o
}

// cardState is the answer to an enquiry and the body of a report.
type cardState struct {
	TransactionID string `json:"transaction_id"`
	Reference     string `json:"reference"`
	Status        string `json:"status"`
	Amount        int64  `json:"amount"`
	Currency      string `json:"currency"`
	Reason        string `json:"reason"`
}

func (m *shop) state(id string) cardState {
	m.t.Helper()
	target := cardPath + "/" + id + "?merchant=" + m.merchant
	return enquire[cardState](m.world, target, m.sign(http.MethodGet, target, ""))
}

// press posts the page's form and returns the answer, not followed.
func (m *shop) press(o opened, action, number string) answer {
	m.t.Helper()
	u, err := url.Parse(o.URL)
	if err != nil {
		m.t.Fatal(err)
	}
	form := url.Values{"token": {u.Query().Get("token")}, "action": {action}, "card": {number}}
	u.RawQuery = "lang=en"
	return m.page(http.MethodPost, u.String(), form.Encode())
}

func (m *shop) page(method, address, body string) answer {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	still := &http.Client{Transport: httpclient.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := still.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (m *shop) choose(o opened, action, number string) {
	m.t.Helper()
	resp := m.press(o, action, number)
	if resp.status != http.StatusSeeOther || resp.header.Get("Location") != "https://pay.example/c/chs_1" {
		m.t.Fatalf("%s: %d to %q", action, resp.status, resp.header.Get("Location"))
	}
}

func TestCardChoices(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		action, number, status, reason string
		callbacks                      int
	}{
		{"approve", "", "approved", "", 1},
		{"decline", "", "declined", "declined", 1},
		{"fail_authentication", "", "authentication_failed", "authentication_failed", 1},
		{"abandon", "", "abandoned", "abandoned", 1},
		{"pay", "4000 0000 0000 0001", "approved", "", 1},
		{"pay", "4000000000000004", "declined", "declined", 1},
		{"pay", "4000 0000 0000 0005", "declined", "insufficient_funds", 1},
		{"pay", "4000 0000 0000 0006", "declined", "limit_exceeded", 1},
		{"pay", "4000 0000 0000 0007", "declined", "unknown_card", 1},
		{"pay", "4000 0000 0000 0008", "approved", "", 0},
		{"pay", "4000 0000 0000 0009", "approved", "", 2},
		{"pay", "4000 0000 0000 0013", "authentication_failed", "authentication_failed", 1},
		{"pay", "4000 0000 0000 0014", "abandoned", "abandoned", 1},
	} {
		t.Run(row.action+row.number, func(t *testing.T) {
			t.Parallel()
			m := newWorld(t, nil).shop()
			o := m.open()
			m.choose(o, row.action, row.number)
			m.eventually(row.status, func() bool { return m.state(o.Reference).Status == row.status })
			calls := m.callbacks(row.callbacks)
			m.quiet(row.callbacks)
			want := cardState{o.TransactionID, o.Reference, row.status, 507550, "EUR", row.reason}
			if got := m.state(o.Reference); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
			for _, c := range calls {
				var told cardState
				if err := json.Unmarshal([]byte(c.body), &told); err != nil || told != want || c.method != http.MethodPost || c.path != "/callback/"+o.Reference {
					t.Errorf("report %+v: %v", c, err)
				}
				text := fmt.Sprintf("report\nimpots\n%d\n%x", m.clock.Now().Unix(), sha256.Sum256([]byte(c.body)))
				if c.authorization != authorization("impots", "simulator", m.clock.Now(), text) {
					t.Errorf("signed %q", c.authorization)
				}
			}
			// A second press, in another tab, changes nothing.
			m.choose(o, "approve", "")
			m.choose(o, "decline", "")
			if got := m.state(o.Reference); got != want {
				t.Errorf("after a second press %+v, want %+v", got, want)
			}
		})
	}
}

func TestCardChoicesThatTakeTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		number, meanwhile, status string
		after                     time.Duration
		callbacks                 int
	}{
		{"", "pending", "expired", 5 * time.Minute, 1}, // no button is pressed
		{"4000 0000 0000 0002", "pending", "approved", 5 * time.Second, 1},
		{"4000 0000 0000 0003", "pending", "expired", 5 * time.Minute, 0},
		{"4000 0000 0000 0010", "pending", "approved", 5*time.Minute + 30*time.Second, 1},
		{"4000 0000 0000 0012", "processing", "approved", 8 * time.Second, 1},
		{"4000 0000 0000 0099", "pending", "expired", 5 * time.Minute, 1},
		{"4242 4242 4242 4242", "pending", "expired", 5 * time.Minute, 1},
	} {
		t.Run(row.number, func(t *testing.T) {
			t.Parallel()
			m := newWorld(t, nil).shop()
			o := m.open()
			if row.number != "" {
				m.choose(o, "pay", row.number)
				m.choose(o, "decline", "") // in another tab; the first choice counts
			}
			m.control("/clock", fmt.Sprintf(`{"advance":%q}`, row.after-time.Millisecond))
			m.quiet(0)
			if got := m.state(o.Reference).Status; got != row.meanwhile {
				t.Errorf("meanwhile %s, want %s", got, row.meanwhile)
			}
			m.control("/clock", `{"advance":"1ms"}`)
			if got := m.state(o.Reference).Status; got != row.status {
				t.Errorf("%s, want %s", got, row.status)
			}
			m.callbacks(row.callbacks)
			m.quiet(row.callbacks)
		})
	}
}

// A choice that would be decided after the end of the transaction expires.
func TestCardExpiresInMidChoice(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).shop()
	o := m.open()
	m.control("/clock", `{"advance":"4m58s"}`)
	m.choose(o, "pay", "4000 0000 0000 0002")
	m.control("/clock", `{"advance":"2s"}`)
	if got := m.state(o.Reference).Status; got != "expired" {
		t.Errorf("status %s", got)
	}
	m.choose(o, "approve", "") // too late
	if got := m.state(o.Reference).Status; got != "expired" {
		t.Errorf("status %s", got)
	}
}

func TestCardReference(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).shop()
	transaction := m.transaction(uuid.NewString())
	first := m.post(transaction)
	transaction["description"], transaction["return_url"] = "another", "https://elsewhere.example/"
	again := m.post(transaction)
	if first.status != http.StatusCreated || again.status != http.StatusOK || again.body != first.body {
		t.Errorf("%d %s, then %d %s", first.status, first.body, again.status, again.body)
	}
	for field, value := range map[string]any{"amount": 507551, "currency": "USD"} {
		kept := transaction[field]
		transaction[field] = value
		if a := m.post(transaction); a.status != http.StatusConflict || !strings.Contains(a.body, `"reference_conflict"`) {
			t.Errorf("another %s: %d %s", field, a.status, a.body)
		}
		transaction[field] = kept
	}
	// The transaction is unknown to another merchant.
	other := &shop{m.world, "douanes", "simulator"}
	target := cardPath + "/" + transaction["reference"].(string) + "?merchant=douanes"
	if a := m.call(http.MethodGet, target, "", other.sign(http.MethodGet, target, "")); a.status != http.StatusNotFound || !strings.Contains(a.body, `"transaction_not_found"`) {
		t.Errorf("another merchant's: %d %s", a.status, a.body)
	}
	transaction["merchant"] = "douanes"
	if a := other.post(transaction); a.status != http.StatusConflict || strings.Contains(a.body, "token") {
		t.Errorf("another merchant's: %d %s", a.status, a.body)
	}
	var list []struct {
		Operator   string
		Amount     string
		Duplicates int `json:"duplicate_requests"`
	}
	m.call(http.MethodGet, "/control/collections?operator=card", "", nil).decode(t, &list)
	if len(list) != 1 || list[0].Amount != "507550" || list[0].Duplicates != 4 {
		t.Errorf("collections %+v", list)
	}
}

func TestCardIsStrict(t *testing.T) {
	t.Parallel()
	m := newWorld(t, func(c *simulator.Config) {
		c.Card = func(merchant string) (requests, reports string, ok bool) { return "secret", "", merchant == "impots" }
	}).shop()
	m.secret = "secret"
	for name, row := range map[string]struct {
		change func(map[string]any)
		status int
		code   string
	}{
		"another merchant's": {func(q map[string]any) { q["merchant"] = "douanes" }, 422, "merchant_mismatch"},
		"no UUID":            {func(q map[string]any) { q["reference"] = "1" }, 422, "reference_invalid"},
		"capitals":           {func(q map[string]any) { q["reference"] = strings.ToUpper(uuid.NewString()) }, 422, "reference_invalid"},
		"currency":           {func(q map[string]any) { q["currency"] = "XOF" }, 422, "currency_not_supported"},
		"no amount":          {func(q map[string]any) { q["amount"] = 0 }, 422, "amount_not_supported"},
		"text":               {func(q map[string]any) { q["amount"] = "5000" }, 400, "body_invalid"},
		"fraction":           {func(q map[string]any) { q["amount"] = 50.5 }, 400, "body_invalid"},
		"unknown field":      {func(q map[string]any) { q["card_number"] = "4" }, 400, "body_invalid"},
		"no way back":        {func(q map[string]any) { delete(q, "return_url") }, 422, "return_url_invalid"},
		"script":             {func(q map[string]any) { q["return_url"] = "javascript:alert(1)" }, 422, "return_url_invalid"},
		"no callback":        {func(q map[string]any) { q["callback_url"] = "/x" }, 422, "callback_url_invalid"},
		"over":               {func(q map[string]any) { q["expires_at"] = m.clock.Now() }, 422, "expires_at_invalid"},
		"a day":              {func(q map[string]any) { q["expires_at"] = "tomorrow" }, 400, "body_invalid"},
		"long description":   {func(q map[string]any) { q["description"] = strings.Repeat("é", 201) }, 422, "description_invalid"},
	} {
		transaction := m.transaction(uuid.NewString())
		row.change(transaction)
		if a := m.post(transaction); a.status != row.status || !strings.Contains(a.body, `"`+row.code+`"`) {
			t.Errorf("%s: %d %s, want %d %s", name, a.status, a.body, row.status, row.code)
		}
	}
	body, err := json.Marshal(m.transaction(uuid.NewString()))
	if err != nil {
		t.Fatal(err)
	}
	now := m.clock.Now()
	signed := func(merchant, secret string, at time.Time, kind, method, target, body string) string {
		return authorization(merchant, secret, at, fmt.Sprintf("%s\n%s\n%d\n%s\n%s\n%x", kind, merchant, at.Unix(), method, target, sha256.Sum256([]byte(body))))
	}
	for name, header := range map[string]string{
		"none":             "",
		"bearer":           "Bearer x",
		"another secret":   signed("impots", "simulator", now, "request", "POST", cardPath, string(body)),
		"another merchant": signed("douanes", "secret", now, "request", "POST", cardPath, string(body)),
		"another method":   signed("impots", "secret", now, "request", "PUT", cardPath, string(body)),
		"another path":     signed("impots", "secret", now, "request", "POST", cardPath+"/", string(body)),
		"another body":     signed("impots", "secret", now, "request", "POST", cardPath, string(body)+" "),
		"a report":         signed("impots", "secret", now, "report", "POST", cardPath, string(body)),
		"old":              signed("impots", "secret", now.Add(-6*time.Minute), "request", "POST", cardPath, string(body)),
		"early":            signed("impots", "secret", now.Add(6*time.Minute), "request", "POST", cardPath, string(body)),
	} {
		if a := m.call(http.MethodPost, cardPath, string(body), map[string]string{"Content-Type": "application/json", "Authorization": header}); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	header := m.sign(http.MethodPost, cardPath, string(body))
	header["Content-Type"] = "text/plain"
	if a := m.call(http.MethodPost, cardPath, string(body), header); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("text: %d %s", a.status, a.body)
	}
}

func TestCardAmountThatFailsFirst(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).shop()
	transaction := m.transaction(uuid.NewString())
	transaction["amount"] = 1111
	if a := m.post(transaction); a.status != http.StatusInternalServerError {
		t.Errorf("first: %d %s", a.status, a.body)
	}
	target := cardPath + "/" + transaction["reference"].(string) + "?merchant=impots"
	if a := m.call(http.MethodGet, target, "", m.sign(http.MethodGet, target, "")); a.status != http.StatusNotFound {
		t.Errorf("it was taken: %d %s", a.status, a.body)
	}
	if a := m.post(transaction); a.status != http.StatusCreated {
		t.Errorf("second: %d %s", a.status, a.body)
	}
	m.control("/card", `{"status":503,"times":1}`)
	if a := m.post(transaction); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, `"code"`) {
		t.Errorf("outage: %d %s", a.status, a.body)
	}
}

func TestCardControl(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).shop()
	o := m.open()
	m.choose(o, "pay", "4242 4242 4242 4242")
	a := m.call(http.MethodGet, "/control/collections/"+o.Reference, "", nil)
	if strings.Contains(a.body, "42424242") || strings.Contains(a.body, "4242 4242") || !strings.Contains(a.body, "•••• 4242") || strings.Contains(a.body, "token") {
		t.Errorf("collection: %s", a.body)
	}
	m.control("/collections/"+o.Reference+"/approve", `{"amount":"1"}`)
	if got := m.state(o.Reference); got.Status != "approved" || got.Amount != 1 {
		t.Errorf("%+v", got)
	}
	o = m.open()
	m.control("/collections/"+o.Reference+"/reject", ``)
	if got := m.state(o.Reference); got.Status != "declined" {
		t.Errorf("%+v", got)
	}
	o = m.open()
	m.control("/collections/"+o.Reference+"/reject", `{"reason":"authentication_failed"}`)
	if got := m.state(o.Reference); got.Status != "authentication_failed" {
		t.Errorf("%+v", got)
	}
	m.callbacks(3)
}

func TestCardPage(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).shop()
	o := m.open()
	read := func(resp answer) string {
		csp := resp.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "style-src 'sha256-", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("policy %q lacks %s", csp, part)
			}
		}
		if resp.header.Get("Cache-Control") != "no-store" || resp.header.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("header %v", resp.header)
		}
		return resp.body
	}
	for lang, words := range map[string][]string{
		"fr": {`<html lang="fr">`, "5\u202f075,50\u202f€", "Payer avec cette carte", "Abandonner"},
		"en": {`<html lang="en">`, "€5,075.50", "Pay with this card", "Abandon"},
	} {
		resp := m.page(http.MethodGet, o.URL+"&lang="+lang, "")
		body := read(resp)
		for _, word := range append(words, "impots", "Patente &lt;2026&gt;", `value="400000000000000`, `<label for="card">`) {
			if !strings.Contains(body, word) {
				t.Errorf("%s: no %q in %s", lang, word, body)
			}
		}
		if resp.status != http.StatusOK || strings.Contains(body, "<script") || strings.Contains(body, " style=") || strings.Contains(body, "onclick") {
			t.Errorf("%s: %d", lang, resp.status)
		}
		// Chromium judges the redirect after the form by form-action too.
		if csp := resp.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' https://pay.example;") {
			t.Errorf("policy %q", csp)
		}
	}
	// XAF has no decimals.
	francs := m.transaction(uuid.NewString())
	francs["currency"], francs["amount"] = "XAF", 5075
	var xaf opened
	m.post(francs).decode(t, &xaf)
	for lang, amount := range map[string]string{"fr": "5\u202f075\u202fFCFA", "en": "FCFA\u00a05,075"} {
		if body := read(m.page(http.MethodGet, xaf.URL+"&lang="+lang, "")); !strings.Contains(body, amount) {
			t.Errorf("%s: no %q in %s", lang, amount, body)
		}
	}
	m.choose(xaf, "approve", "")
	m.eventually("approved", func() bool { return m.state(xaf.Reference).Status == "approved" })
	if got := m.state(xaf.Reference); got.Amount != 5075 || got.Currency != "XAF" {
		t.Errorf("XAF: %+v", got)
	}
	base, _, _ := strings.Cut(o.URL, "?")
	for _, address := range []string{base, base + "?token=x", m.url + "/card/pay/txn_1?token=x", m.url + "/card/pay/" + o.Reference + "?token=x"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			resp := m.page(method, address, strings.Repeat("action=approve&token=x", map[string]int{http.MethodPost: 1}[method]))
			if body := read(resp); resp.status != http.StatusNotFound || strings.Contains(body, "impots") {
				t.Errorf("%s %s: %d", method, address, resp.status)
			}
		}
	}
	if resp := m.press(o, "steal", ""); resp.status != http.StatusBadRequest {
		t.Errorf("unknown action: %d", resp.status)
	}
	if got := m.state(o.Reference).Status; got != "pending" {
		t.Errorf("status %s", got)
	}
	m.choose(o, "approve", "")
	m.eventually("approved", func() bool { return m.state(o.Reference).Status == "approved" })
	if body := read(m.page(http.MethodGet, o.URL+"&lang=en", "")); !strings.Contains(body, "The payment is approved.") || strings.Contains(body, "<form") || !strings.Contains(body, `href="https://pay.example/c/chs_1"`) {
		t.Errorf("closed page: %s", body)
	}
}
