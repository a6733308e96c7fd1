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

// application calls Airtel's protocol as one merchant.
type application struct {
	*world
	token string
}

const airtelToken, airtelPayments, airtelEnquiry = "/airtel/auth/oauth2/token", "/airtel/merchant/v1/payments/", "/airtel/standard/v1/payments/"

func airtelCredentials(id, secret string) string {
	return fmt.Sprintf(`{"client_id":%q,"client_secret":%q,"grant_type":"client_credentials"}`, id, secret)
}

var asJSON = map[string]string{"Content-Type": "application/json"}

func (w *world) application(id string) *application {
	w.t.Helper()
	a := w.call(http.MethodPost, airtelToken, airtelCredentials(id, "secret"), asJSON)
	var token struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   string `json:"expires_in"`
	}
	a.decode(w.t, &token)
	if a.status != http.StatusOK || token.AccessToken == "" || token.TokenType != "bearer" || token.ExpiresIn != "180" {
		w.t.Fatalf("token: %d %s", a.status, a.body)
	}
	return &application{world: w, token: token.AccessToken}
}

func airtelMerchant(w *world) mobileMoney { return w.application("one") }

func (m *application) header(id string) map[string]string {
	return map[string]string{
		"Authorization": "Bearer " + m.token, "X-Country": "CG", "X-Currency": "XAF", "Content-Type": "application/json",
		"X-Callback-Url": m.merchant.URL + "/callback/" + id,
	}
}

func airtelID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

func airtelPayment(id, msisdn string) map[string]any {
	return map[string]any{
		"reference":   "1234567890123456",
		"subscriber":  map[string]any{"country": "CG", "currency": "XAF", "msisdn": msisdn},
		"transaction": map[string]any{"amount": 5000, "country": "CG", "currency": "XAF", "id": id},
	}
}

func (m *application) post(id, msisdn string) answer {
	m.t.Helper()
	body, err := json.Marshal(airtelPayment(id, msisdn))
	if err != nil {
		m.t.Fatal(err)
	}
	return m.call(http.MethodPost, airtelPayments, string(body), m.header(id))
}

// request requests a payment and returns its id.
func (m *application) request(msisdn string) string {
	m.t.Helper()
	id := airtelID()
	a := m.post(id, msisdn)
	if a.status != http.StatusOK || !strings.Contains(a.body, `"response_code":"DP00800001006"`) || !strings.Contains(a.body, `"success":true`) {
		m.t.Fatalf("payment: %d %s", a.status, a.body)
	}
	return id
}

// airtelResult is the answer to an enquiry.
type airtelResult struct {
	Data struct {
		Transaction struct {
			ID            string `json:"id"`
			AirtelMoneyID string `json:"airtel_money_id"`
			Status        string `json:"status"`
			Message       string `json:"message"`
		} `json:"transaction"`
	} `json:"data"`
	Status struct {
		ResponseCode string `json:"response_code"`
	} `json:"status"`
}

func (m *application) enquire(id string) airtelResult {
	m.t.Helper()
	return enquire[airtelResult](m.world, airtelEnquiry+id, m.header(id))
}

// settles waits until the operator reports status and code, and checks that only
// a success has Airtel's own id.
func (m *application) settles(id, status, code string) {
	m.t.Helper()
	var r airtelResult
	m.eventually(status+" "+code, func() bool {
		r = m.enquire(id)
		return r.Data.Transaction.Status == status
	})
	if r.Status.ResponseCode != code || r.Data.Transaction.ID != id || (r.Data.Transaction.AirtelMoneyID != "") != (status == "TS") {
		m.t.Errorf("%+v, want %s", r, code)
	}
}

const (
	airtelPaid    = "DP00800001001"
	airtelWorking = "DP00800001006"
)

func TestAirtelMagicNumbersThatDecideAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		nn, status, code string
		callbacks        int
	}{
		{"01", "TS", airtelPaid, 1},
		{"04", "TF", "DP00800001008", 1},
		{"05", "TF", "DP00800001007", 1},
		{"06", "TF", "DP00800001003", 1},
		{"08", "TS", airtelPaid, 0},
		{"09", "TS", airtelPaid, 2},
		{"13", "TF", "DP00800001002", 1},
	} {
		t.Run(row.nn, func(t *testing.T) {
			t.Parallel()
			m := newWorld(t, nil).application("one")
			id := m.request("0550000" + row.nn)
			m.settles(id, row.status, row.code)
			calls := m.callbacks(row.callbacks)
			m.quiet(row.callbacks)
			for _, c := range calls {
				var told struct {
					Transaction struct {
						ID            string `json:"id"`
						StatusCode    string `json:"status_code"`
						AirtelMoneyID string `json:"airtel_money_id"`
						Message       string `json:"message"`
					} `json:"transaction"`
					Hash string `json:"hash"`
				}
				if err := json.Unmarshal([]byte(c.body), &told); err != nil || c.method != http.MethodPost || c.path != "/callback/"+id {
					t.Fatalf("callback %+v: %v", c, err)
				}
				asked := m.enquire(id).Data.Transaction
				if got := told.Transaction; got.ID != id || got.StatusCode != asked.Status || got.AirtelMoneyID != asked.AirtelMoneyID || got.Message == "" || told.Hash == "" {
					t.Errorf("the callback is %+v and the enquiry %+v", told, asked)
				}
			}
		})
	}
}

func TestAirtelMagicNumbersThatTakeTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		nn, meanwhile, code string
		after               time.Duration
	}{
		{"02", "TIP", airtelWorking, 5 * time.Second},
		{"10", "TIP", airtelWorking, 5*time.Minute + 30*time.Second},
		{"12", "TA", "DP00800001000", 8 * time.Second},
	} {
		t.Run(row.nn, func(t *testing.T) {
			takesTime(t, airtelMerchant, "0550000"+row.nn, row.after, row.meanwhile, row.code, "TS", airtelPaid)
		})
	}
}

func TestAirtelMagicNumber03NeverAnswers(t *testing.T) {
	neverAnswers(t, airtelMerchant, "055000003", "TIP", airtelWorking)
}

// 07 is refused at the request and not kept; 11 fails once and then works.
func TestAirtelMagicNumbersOfTheRequest(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).application("one")
	id := airtelID()
	for range 2 {
		if a := m.post(id, "055000007"); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"DP00800001005"`) || !strings.Contains(a.body, "Msisdn Not Found") {
			t.Errorf("unknown payer: %d %s", a.status, a.body)
		}
	}
	if a := m.post(id, "055000011"); a.status != http.StatusInternalServerError {
		t.Errorf("first request: %d %s", a.status, a.body)
	}
	if a := m.call(http.MethodGet, airtelEnquiry+id, "", m.header(id)); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"ESB000045"`) {
		t.Errorf("enquiry after the 500: %d %s", a.status, a.body)
	}
	if a := m.post(id, "055000011"); a.status != http.StatusOK {
		t.Errorf("second request: %d %s", a.status, a.body)
	}
	m.settles(id, "TS", airtelPaid)
	if a := m.post(id, "055000011"); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"ESB000041"`) {
		t.Errorf("third request: %d %s", a.status, a.body)
	}
}

func TestAirtelUnderControl(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).application("one")
	approved, rejected, expired := m.request("055123456"), m.request("044123456"), m.request("055000077")
	for _, id := range []string{approved, rejected, expired} {
		m.settles(id, "TIP", airtelWorking)
	}
	if got := m.collections("?operator=airtel&status=pending&external_id=1234567890123456"); len(got) != 3 || got[0].ID != approved || got[0].Amount != "5000" {
		t.Errorf("listed %+v", got)
	}
	m.control("/collections/"+approved+"/approve", `{"amount":"1"}`)
	m.control("/collections/"+rejected+"/reject", "")
	m.control("/collections/"+expired+"/reject", `{"reason":"DP00800001029"}`)
	m.settles(approved, "TS", airtelPaid)
	m.settles(rejected, "TF", "DP00800001008")
	m.settles(expired, "TE", "DP00800001029")
	if message := m.enquire(approved).Data.Transaction.Message; !strings.Contains(message, "XAF 1 ") {
		t.Errorf("message %q", message)
	}
	m.callbacks(3)
	m.quiet(3)
	if a := m.call(http.MethodPost, "/control/collections/"+m.request("055123456")+"/reject", `{"reason":"EXPIRED"}`, nil); a.status != http.StatusUnprocessableEntity {
		t.Errorf("a reason of another operator: %d %s", a.status, a.body)
	}
}

func TestAirtelAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simulator.Config) {
		c.Airtel = func(id, secret string) bool { return secret == "secret" && (id == "one" || id == "two") }
	})
	for body, want := range map[string]int{
		airtelCredentials("one", "other"):                        http.StatusUnauthorized,
		airtelCredentials("three", "secret"):                     http.StatusUnauthorized,
		airtelCredentials("", ""):                                http.StatusUnauthorized,
		`{"client_id":"one","client_secret":"secret"}`:           http.StatusBadRequest,
		"grant_type=client_credentials&client_id=one&client_s=s": http.StatusBadRequest,
	} {
		if a := w.call(http.MethodPost, airtelToken, body, asJSON); a.status != want {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
	m := w.application("one")
	id := m.request("055000001")
	header := m.header(id)
	header["Authorization"] = "Bearer made-up"
	if a := m.call(http.MethodGet, airtelEnquiry+id, "", header); a.status != http.StatusUnauthorized {
		t.Errorf("made-up token: %d", a.status)
	}
	other := w.application("two")
	if a := other.call(http.MethodGet, airtelEnquiry+id, "", other.header(id)); a.status != http.StatusBadRequest || !strings.Contains(a.body, "ESB000045") {
		t.Errorf("another merchant's payment: %d %s", a.status, a.body)
	}
	w.control("/clock", `{"advance":"2m59s"}`)
	m.enquire(id)
	w.control("/clock", `{"advance":"1s"}`)
	if a := m.call(http.MethodGet, airtelEnquiry+id, "", m.header(id)); a.status != http.StatusUnauthorized {
		t.Errorf("token after three minutes: %d", a.status)
	}
}

func TestAirtelValidation(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).application("one")
	set := func(part, name string, value any) func(map[string]any) {
		return func(body map[string]any) {
			if part == "" {
				body[name] = value
				return
			}
			body[part].(map[string]any)[name] = value
		}
	}
	for name, c := range map[string]struct {
		header map[string]string
		change func(map[string]any)
		code   string
	}{
		"country missing":        {header: map[string]string{"X-Country": ""}, code: "ROUTER003"},
		"country of others":      {header: map[string]string{"X-Country": "UG"}, code: "ROUTER006"},
		"currency missing":       {header: map[string]string{"X-Currency": ""}, code: "ROUTER119"},
		"currency of others":     {header: map[string]string{"X-Currency": "UGX"}, code: "ROUTER112"},
		"content type":           {header: map[string]string{"Content-Type": "text/plain"}, code: "ROUTER003"},
		"callback relative":      {header: map[string]string{"X-Callback-Url": "/callback"}, code: "ROUTER003"},
		"with country code":      {change: set("subscriber", "msisdn", "242055000001"), code: "ESB000036"},
		"without its 0":          {change: set("subscriber", "msisdn", "55000001"), code: "ESB000036"},
		"number of MTN":          {change: set("subscriber", "msisdn", "066000001"), code: "ESB000036"},
		"payer's country":        {change: set("subscriber", "country", "CD"), code: "ESB000034"},
		"payment's currency":     {change: set("transaction", "currency", "CDF"), code: "ESB000035"},
		"id with dashes":         {change: set("transaction", "id", uuid.NewString()), code: "ESB000008"},
		"amount a string":        {change: set("transaction", "amount", "5000"), code: "ESB000008"},
		"amount zero":            {change: set("transaction", "amount", 0), code: "ESB000008"},
		"amount with decimals":   {change: set("transaction", "amount", 50.5), code: "ESB000008"},
		"reference with accents": {change: set("", "reference", "impôt"), code: "ESB000008"},
	} {
		id := airtelID()
		body := airtelPayment(id, "055000001")
		if c.change != nil {
			c.change(body)
		}
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		header := m.header(id)
		maps.Copy(header, c.header)
		if a := m.call(http.MethodPost, airtelPayments, string(encoded), header); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"`+c.code+`"`) {
			t.Errorf("%s: %d %s, want %s", name, a.status, a.body, c.code)
		}
	}
	if got := m.collections(""); len(got) != 0 {
		t.Errorf("refused requests were kept: %+v", got)
	}
}

func TestAirtelOutageAndSilence(t *testing.T) {
	t.Parallel()
	m := newWorld(t, nil).application("one")
	id := m.request("055000001")
	m.callbacks(1)
	m.control("/airtel", `{"status":503,"times":1}`)
	if a := m.call(http.MethodGet, airtelEnquiry+id, "", m.header(id)); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "ESB000001") {
		t.Errorf("during the outage: %d %s", a.status, a.body)
	}
	m.login("user") // the other operator has none
	m.enquire(id)

	// A silent operator has accepted the payment.
	m.control("/airtel", `{"delay":"5m"}`)
	silent := airtelID()
	body, err := json.Marshal(airtelPayment(silent, "055000001"))
	if err != nil {
		t.Fatal(err)
	}
	m.silent(airtelPayments, string(body), m.header(silent))
	m.callbacks(2)
	m.control("/airtel", `{"reset":true}`)
	m.settles(silent, "TS", airtelPaid)
}
