package simulator_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/dev/simulator"
)

// merchant calls MTN's protocol as one account.
type merchant struct {
	*world
	user  string
	token string
}

func (w *world) login(user string) *merchant {
	w.t.Helper()
	a := w.call(http.MethodPost, "/mtn/collection/token/", "", basic(user, "key", map[string]string{"Ocp-Apim-Subscription-Key": "subscription"}))
	if a.status != http.StatusOK {
		w.t.Fatalf("token: %d %s", a.status, a.body)
	}
	var grant struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
	}
	a.decode(w.t, &grant)
	if grant.AccessToken == "" || grant.TokenType == "" || grant.ExpiresIn != 3600 {
		w.t.Fatalf("token answer %s", a.body)
	}
	return &merchant{world: w, user: user, token: grant.AccessToken}
}

func mtnMerchant(w *world) mobileMoney { return w.login("user") }

func basic(user, password string, header map[string]string) map[string]string {
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(user, password)
	header = maps.Clone(header)
	header["Authorization"] = req.Header.Get("Authorization")
	return header
}

func (m *merchant) header(reference string) map[string]string {
	return map[string]string{
		"Authorization":             "Bearer " + m.token,
		"Ocp-Apim-Subscription-Key": "subscription",
		"X-Target-Environment":      "mtncongo",
		"X-Reference-Id":            reference,
		"X-Callback-Url":            m.merchant.URL + "/callback/" + reference,
		"Content-Type":              "application/json",
	}
}

func payment(payer string) string {
	return fmt.Sprintf(`{"amount":"5000","currency":"XAF","externalId":"order-1","payer":{"partyIdType":"MSISDN","partyId":%q},"payerMessage":"Patente 2026","payeeNote":"n"}`, payer)
}

// request requests a payment and returns its reference.
func (m *merchant) request(payer string) string {
	m.t.Helper()
	reference := uuid.NewString()
	if a := m.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", payment(payer), m.header(reference)); a.status != http.StatusAccepted || a.body != "" {
		m.t.Fatalf("request to pay: %d %q", a.status, a.body)
	}
	return reference
}

// result is a status answer.
type result struct {
	FinancialTransactionID string `json:"financialTransactionId"`
	ExternalID             string `json:"externalId"`
	Amount                 string `json:"amount"`
	Currency               string `json:"currency"`
	Payer                  struct {
		PartyIDType string `json:"partyIdType"`
		PartyID     string `json:"partyId"`
	} `json:"payer"`
	Status string `json:"status"`
	Reason string `json:"reason"`
}

func (m *merchant) status(reference string) result {
	m.t.Helper()
	return enquire[result](m.world, "/mtn/collection/v1_0/requesttopay/"+reference, m.header(reference))
}

// settles waits until the operator reports status and reason, and checks that
// only a success has a transaction id.
func (m *merchant) settles(reference, status, reason string) {
	m.t.Helper()
	var r result
	m.eventually(status+" "+reason, func() bool {
		r = m.status(reference)
		return r.Status == status
	})
	if r.Reason != reason {
		m.t.Errorf("reason %q, want %q", r.Reason, reason)
	}
	if (r.FinancialTransactionID != "") != (status == "SUCCESSFUL") {
		m.t.Errorf("status %s with financialTransactionId %q", status, r.FinancialTransactionID)
	}
	if r.Amount != "5000" || r.Currency != "XAF" || r.ExternalID != "order-1" || r.Payer.PartyIDType != "MSISDN" {
		m.t.Errorf("the answer does not echo the request: %+v", r)
	}
}

func TestMagicNumbersThatDecideAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		nn, status, reason string
		callbacks          int
	}{
		{"01", "SUCCESSFUL", "", 1},
		{"04", "FAILED", "APPROVAL_REJECTED", 1},
		{"05", "FAILED", "NOT_ENOUGH_FUNDS", 1},
		{"06", "FAILED", "PAYER_LIMIT_REACHED", 1},
		{"07", "FAILED", "PAYER_NOT_FOUND", 1},
		{"08", "SUCCESSFUL", "", 0},
		{"09", "SUCCESSFUL", "", 2},
		{"13", "FAILED", "APPROVAL_REJECTED", 1},
	} {
		t.Run(row.nn, func(t *testing.T) {
			t.Parallel()
			m := newWorld(t, nil).login("user")
			reference := m.request("2420660000" + row.nn)
			m.settles(reference, row.status, row.reason)
			calls := m.callbacks(row.callbacks)
			m.quiet(row.callbacks)
			for _, c := range calls {
				if c.method != http.MethodPut || c.path != "/callback/"+reference {
					t.Errorf("callback %s %s", c.method, c.path)
				}
				var told result
				if err := json.Unmarshal([]byte(c.body), &told); err != nil {
					t.Fatalf("callback body %q: %v", c.body, err)
				}
				if asked := m.status(reference); told != asked {
					t.Errorf("the callback is %+v and the status answer %+v", told, asked)
				}
			}
		})
	}
}

func TestMagicNumbersThatTakeTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		nn, meanwhile, reason string
		after                 time.Duration
	}{
		{"02", "PENDING", "", 5 * time.Second},
		{"10", "PENDING", "", 5*time.Minute + 30*time.Second},
		{"12", "PENDING", "ONGOING", 8 * time.Second},
	} {
		t.Run(row.nn, func(t *testing.T) {
			takesTime(t, mtnMerchant, "2420660000"+row.nn, row.after, row.meanwhile, row.reason, "SUCCESSFUL", "")
		})
	}
}

func TestMagicNumber03NeverAnswers(t *testing.T) {
	neverAnswers(t, mtnMerchant, "242066000003", "PENDING", "")
}

// The first request of 11 is answered 500 and not registered; the same
// reference then works.
func TestMagicNumber11FailsOnce(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	reference := uuid.NewString()
	header := m.header(reference)
	post := func() answer {
		return m.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", payment("242066000011"), header)
	}
	if a := post(); a.status != http.StatusInternalServerError {
		t.Fatalf("first request: %d %s", a.status, a.body)
	}
	if a := m.call(http.MethodGet, "/mtn/collection/v1_0/requesttopay/"+reference, "", header); a.status != http.StatusNotFound || !strings.Contains(a.body, `"RESOURCE_NOT_FOUND"`) {
		t.Fatalf("status after the 500: %d %s", a.status, a.body)
	}
	if a := post(); a.status != http.StatusAccepted {
		t.Fatalf("second request: %d %s", a.status, a.body)
	}
	m.settles(reference, "SUCCESSFUL", "")
	m.callbacks(1)
	if a := post(); a.status != http.StatusConflict {
		t.Errorf("third request: %d %s", a.status, a.body)
	}
}

func TestOtherNumbersWaitForControl(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	// 055… are magic numbers of the other operator; 14 and 00 are not magic.
	for _, payer := range []string{"242066123456", "242055000001", "242066000014", "242066000000", "33612345678"} {
		reference := m.request(payer)
		m.settles(reference, "PENDING", "")
	}
	m.control("/clock", `{"advance":"10m"}`)
	m.quiet(0)

	approved, rejected, expired := m.request("242066123456"), m.request("242066123456"), m.request("242066123456")
	m.control("/collections/"+approved+"/approve", "")
	m.control("/collections/"+rejected+"/reject", "")
	m.control("/collections/"+expired+"/reject", `{"reason":"EXPIRED"}`)
	m.settles(approved, "SUCCESSFUL", "")
	m.settles(rejected, "FAILED", "APPROVAL_REJECTED")
	m.settles(expired, "FAILED", "EXPIRED")
	m.callbacks(3)
	m.quiet(3)

	// A decision is final.
	if a := m.call(http.MethodPost, "/control/collections/"+approved+"/reject", "", nil); a.status != http.StatusConflict || !strings.Contains(a.body, "approved") {
		t.Errorf("rejecting an approved payment: %d %s", a.status, a.body)
	}
	m.settles(approved, "SUCCESSFUL", "")
}

// /control can decide before the payer's script does. The script's decision then changes
// nothing.
func TestControlDecidesBeforeTheScript(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	reference := m.request("242066000002")
	m.control("/collections/"+reference+"/reject", "")
	m.control("/clock", `{"advance":"1m"}`)
	m.callbacks(1)
	m.quiet(1)
	m.settles(reference, "FAILED", "APPROVAL_REJECTED")
}

func TestApprovalOfAnotherAmount(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	reference := m.request("242066123456")
	m.control("/collections/"+reference+"/approve", `{"amount":"1"}`)
	if r := m.status(reference); r.Status != "SUCCESSFUL" || r.Amount != "1" {
		t.Errorf("status %+v", r)
	}
	if c := m.callbacks(1)[0]; !strings.Contains(c.body, `"amount":"1"`) {
		t.Errorf("callback %s", c.body)
	}
}

func TestCallbackIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.callback = func(n int) int {
		if n < 3 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
	m := w.login("user")
	reference := m.request("242066000001")
	m.callbacks(1)
	m.quiet(1) // no second try while the clock stands still
	m.clock.advance(2 * time.Second)
	m.quiet(2) // nor is it entered before the answer has been read
	m.clock.advance(2 * time.Second)
	m.callbacks(3)
	m.clock.advance(time.Hour)
	m.quiet(3)
	w.eventually("record of the last callback", func() bool {
		var c struct {
			Sent   int `json:"callbacks_sent"`
			Status int `json:"callback_status"`
		}
		w.call(http.MethodGet, "/control/collections/"+reference, "", nil).decode(t, &c)
		return c.Sent == 3 && c.Status == http.StatusOK
	})
}

func TestCallbackGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.callback = func(int) int { return http.StatusInternalServerError }
	w.login("user").request("242066000001")
	for n := 1; n <= 3; n++ {
		w.callbacks(n)
		// The retry is entered only after the answer has been read.
		time.Sleep(30 * time.Millisecond)
		w.clock.advance(2 * time.Second)
	}
	w.clock.advance(time.Hour)
	w.quiet(3)
}

func TestDuplicateReference(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	reference := m.request("242066123456")
	a := m.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", payment("242066000004"), m.header(reference))
	if a.status != http.StatusConflict || !strings.Contains(a.body, `"code":"RESOURCE_ALREADY_EXIST"`) {
		t.Fatalf("duplicate: %d %s", a.status, a.body)
	}
	m.settles(reference, "PENDING", "")
}

func TestMTNAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simulator.Config) {
		c.MTN = func(subscriptionKey, apiUser, apiKey string) bool {
			return subscriptionKey == "subscription" && apiKey == "key" && strings.HasPrefix(apiUser, "user")
		}
	})
	key := map[string]string{"Ocp-Apim-Subscription-Key": "subscription"}
	for name, header := range map[string]map[string]string{
		"no subscription key":    basic("user", "key", map[string]string{}),
		"wrong subscription key": basic("user", "key", map[string]string{"Ocp-Apim-Subscription-Key": "other"}),
		"no credentials":         key,
		"wrong api key":          basic("user", "other", key),
		"unknown user":           basic("nobody", "key", key),
	} {
		if a := w.call(http.MethodPost, "/mtn/collection/token/", "", header); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}

	m := w.login("user")
	reference := m.request("242066000001")
	path := "/mtn/collection/v1_0/requesttopay/" + reference
	header := m.header(reference)
	header["Ocp-Apim-Subscription-Key"] = "other"
	if a := m.call(http.MethodGet, path, "", header); a.status != http.StatusUnauthorized {
		t.Errorf("token with another subscription key: %d", a.status)
	}
	header = m.header(reference)
	header["Authorization"] = "Bearer made-up"
	if a := m.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", payment("242066000001"), header); a.status != http.StatusUnauthorized {
		t.Errorf("made-up token: %d", a.status)
	}
	if a := w.login("user2").call(http.MethodGet, path, "", w.login("user2").header(reference)); a.status != http.StatusNotFound {
		t.Errorf("another merchant's payment: %d %s", a.status, a.body)
	}

	w.control("/clock", `{"advance":"59m59s"}`)
	m.status(reference)
	w.control("/clock", `{"advance":"1s"}`)
	if a := m.call(http.MethodGet, path, "", m.header(reference)); a.status != http.StatusUnauthorized {
		t.Errorf("token after an hour: %d", a.status)
	}
	w.login("user").status(reference)
}

func TestMTNValidation(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	type change struct {
		header map[string]string
		body   map[string]any
	}
	for name, c := range map[string]change{
		"reference missing":        {header: map[string]string{"X-Reference-Id": ""}},
		"reference no UUID":        {header: map[string]string{"X-Reference-Id": "abc"}},
		"reference not version 4":  {header: map[string]string{"X-Reference-Id": uuid.Must(uuid.NewV7()).String()}},
		"reference in braces":      {header: map[string]string{"X-Reference-Id": "{" + uuid.NewString() + "}"}},
		"environment missing":      {header: map[string]string{"X-Target-Environment": ""}},
		"callback relative":        {header: map[string]string{"X-Callback-Url": "/callback"}},
		"content type":             {header: map[string]string{"Content-Type": "text/plain"}},
		"amount a number":          {body: map[string]any{"amount": 5000}},
		"amount zero":              {body: map[string]any{"amount": "0"}},
		"amount with decimals":     {body: map[string]any{"amount": "50.5"}},
		"amount negative":          {body: map[string]any{"amount": "-5"}},
		"amount missing":           {body: map[string]any{"amount": nil}},
		"currency of another land": {body: map[string]any{"currency": "UGX"}},
		"currency lower case":      {body: map[string]any{"currency": "xaf"}},
		"payer with plus":          {body: map[string]any{"payer": map[string]any{"partyIdType": "MSISDN", "partyId": "+242066000001"}}},
		"payer type":               {body: map[string]any{"payer": map[string]any{"partyIdType": "EMAIL", "partyId": "242066000001"}}},
		"payer missing":            {body: map[string]any{"payer": nil}},
		"message too long":         {body: map[string]any{"payerMessage": strings.Repeat("x", 161)}},
		"apostrophe":               {body: map[string]any{"payeeNote": "l'impôt"}},
	} {
		var body map[string]any
		if err := json.Unmarshal([]byte(payment("242066000001")), &body); err != nil {
			t.Fatal(err)
		}
		maps.Copy(body, c.body)
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		header := m.header(uuid.NewString())
		maps.Copy(header, c.header)
		a := m.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", string(encoded), header)
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, `"code"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if a := m.call(http.MethodPost, "/mtn/collection/v1_0/requesttopay", `{"amount":`, m.header(uuid.NewString())); a.status != http.StatusBadRequest {
		t.Errorf("broken JSON: %d", a.status)
	}
	var kept []any
	m.call(http.MethodGet, "/control/collections", "", nil).decode(t, &kept)
	if len(kept) != 0 {
		t.Errorf("%d refused requests were kept", len(kept))
	}
}

func TestMTNOutageAndSilence(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).login("user")
	reference := m.request("242066000001")
	m.callbacks(1)

	m.control("/mtn", `{"status":503,"times":2}`)
	for range 2 {
		if a := m.call(http.MethodGet, "/mtn/collection/v1_0/requesttopay/"+reference, "", m.header(reference)); a.status != http.StatusServiceUnavailable {
			t.Errorf("during the outage: %d", a.status)
		}
	}
	m.status(reference)

	// A silent operator has accepted the payment: the callback arrives although the request
	// is never answered.
	m.control("/mtn", `{"delay":"5m"}`)
	silent := uuid.NewString()
	m.silent("/mtn/collection/v1_0/requesttopay", payment("242066000001"), m.header(silent))
	if c := m.callbacks(2)[1]; c.path != "/callback/"+silent {
		t.Errorf("second callback at %s", c.path)
	}
	m.control("/mtn", `{"reset":true}`)
	m.settles(silent, "SUCCESSFUL", "")
}
