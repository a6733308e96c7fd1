package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/test/harness"
)

// cashinStatement is a sentence of the contract's sections on the deprecated surface, with
// the check that it holds under one prefix.
type cashinStatement struct {
	says  string
	holds func(t *testing.T, c *cashin)
}

// form is a statement about one faulty field of init-checkout.
func form(says, field, rule string, bodies ...func(c *cashin) string) cashinStatement {
	return cashinStatement{says, func(t *testing.T, c *cashin) {
		s := c.partner(t)
		for _, body := range bodies {
			s.fault(t, s.post(t, "/init-checkout", body(c)), field, rule)
		}
	}}
}

// replaced returns a body of init-checkout in which a field has these values, as JSON.
func replaced(field string, values ...string) (out []func(c *cashin) string) {
	for _, v := range values {
		out = append(out, func(c *cashin) string {
			fields := map[string]string{"externalNumber": `"` + c.order() + `"`, "amount": "5000", "items": "[" + oneItem + "]"}
			fields[field] = v
			var parts []string
			for k, v := range fields {
				if v != "" {
					parts = append(parts, fmt.Sprintf("%q:%s", k, v))
				}
			}
			return "{" + strings.Join(parts, ",") + "}"
		})
	}
	return out
}

var cashinStatements = []cashinStatement{
	// Tokens.
	{"generate: 200 with token (oat_) and expiresAt, 2 hours after issue", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		got := s.object(t, s.post(t, "/generate-application-access-token", c.pair(s.n)), 200, "token", "expiresAt")
		matches(t, "token", got["token"], `^oat_`)
		if left := time.Until(parseTime(t, got["expiresAt"])); left < time.Hour+58*time.Minute || left > 2*time.Hour+time.Minute {
			t.Errorf("the token lives for %s", left)
		}
	}},
	{"generate: unknown key, wrong secret: 401 E_UNAUTHORIZED_ACCESS, the same bytes", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		wrong := s.post(t, "/generate-application-access-token", fmt.Sprintf(`{"apiKey":"ak_test_Contract%04d","secretKey":"x"}`, s.n))
		unknown := s.post(t, "/generate-application-access-token", `{"apiKey":"ak_test_nobody","secretKey":"x"}`)
		s.wrong(t, wrong, 401, "E_UNAUTHORIZED_ACCESS")
		equal(t, "the answer to an unknown key", string(unknown.Body), string(wrong.Body))
	}},
	{"generate: apiKey and secretKey, 1-500 characters, required", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		s.fault(t, s.post(t, "/generate-application-access-token", `{"secretKey":"x"}`), "apiKey", "required")
		s.fault(t, s.post(t, "/generate-application-access-token", `{"apiKey":"x","secretKey":""}`), "secretKey", "range")
		s.fault(t, s.post(t, "/generate-application-access-token", `{"secretKey":"x","apiKey":"`+strings.Repeat("x", 501)+`"}`), "apiKey", "range")
	}},
	{"a token is valid under both prefixes", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		for _, prefix := range []string{"/api", "/api/v1"} {
			equal(t, prefix, c.Call(t, http.MethodGet, c.URL(harness.AtService, prefix+"/partners/payment-gateways"), "", "Authorization", "Bearer "+s.token).Status, 200)
		}
	}},
	{"revoke: empty body, 200 with message; revokes only the presented token", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		other := c.open(t, s.n)
		s.object(t, s.post(t, "/revoke-application-access-token", ""), 200, "message")
		s.wrong(t, s.get(t, "/partners/payment-gateways"), 401, "E_UNAUTHORIZED_ACCESS")
		equal(t, "the other token", other.get(t, "/partners/payment-gateways").Status, 200)
	}},
	{"no token, an unknown token, an sk_ key: 401 E_UNAUTHORIZED_ACCESS on every route", func(t *testing.T, c *cashin) {
		for _, token := range []string{"", "oat_" + strings.Repeat("0", 43), taxKey} {
			s := shop{c: c, token: token}
			for _, a := range []harness.Answer{
				s.post(t, "/revoke-application-access-token", ""), s.post(t, "/init-checkout", c.body()), s.post(t, "/partners/payments", "{}"),
				s.get(t, "/transactions/T2611000001/check-status"), s.get(t, "/partners/payment-gateways"),
			} {
				s.wrong(t, a, 401, "E_UNAUTHORIZED_ACCESS")
			}
		}
	}},
	{"apiKey and secretKey do not replace an sk_ key", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		equal(t, "the ministry API", c.Call(t, http.MethodGet, c.Sessions(""), "", "Authorization", "Bearer "+s.token).Status, 401)
	}},

	// init-checkout.
	{"init: 200 with paymentId (integer), externalNumber, token, redirectUrl (hosted page)", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		got := s.init(t, c.body())
		if id, ok := got["paymentId"].(float64); !ok || id < 1 || id != float64(int64(id)) || id > 2147483647 {
			t.Errorf("paymentId is %v", got["paymentId"])
		}
		url, _ := got["redirectUrl"].(string)
		equal(t, "the page", c.Call(t, http.MethodGet, url, "").Status, 200)
		if token, _ := got["token"].(string); token == "" || strings.HasPrefix(token, "oat_") {
			t.Errorf("token is %v", got["token"])
		}
	}},
	{"init: while created, the same externalNumber updates the same payment, amount included, and keeps the redirectUrl", func(t *testing.T, c *cashin) {
		s, external := c.partner(t), c.order()
		body := func(amount int) string {
			return fmt.Sprintf(`{"externalNumber":%q,"amount":%d,"items":[%s]}`, external, amount, oneItem)
		}
		one, two := s.init(t, body(5000)), s.init(t, body(6000))
		equal(t, "the second answer", two, one)
		page := c.Call(t, http.MethodGet, two["redirectUrl"].(string), "")
		matches(t, "the page", string(page.Body), `6[\s\x{202f}\x{a0}]000`)
	}},
	{"init: unknown fields are ignored, null counts as absent", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		s.init(t, c.body(`"foo":{"bar":1}`, `"customer":null`, `"merchant":null`, `"description":null`, `"type":null`))
	}},
	form("init: externalNumber string 1-200, required", "externalNumber", "required", replaced("externalNumber", "")...),
	form("init: externalNumber too long: range", "externalNumber", "range", replaced("externalNumber", text(201), `""`)...),
	form("init: externalNumber of another type: type", "externalNumber", "type", replaced("externalNumber", "7", "[]")...),
	form("init: amount > 0, at most 2147483647: range", "amount", "range", replaced("amount", "0", "-1", "2147483648")...),
	form("init: amount: decimals refused, an integer: type", "amount", "type", replaced("amount", `"5000"`, "5000.0", "5e3", "1.5")...),
	form("init: amount is required", "amount", "required", replaced("amount", "")...),
	form("init: description at most 2000: range", "description", "range", replaced("description", text(2001))...),
	form("init: type ecommerce or service: enum", "type", "enum", replaced("type", `"other"`)...),
	form("init: items 1-50: range", "items", "range", replaced("items", "[]", "["+strings.Repeat(oneItem+",", 50)+oneItem+"]")...),
	form("init: items are required", "items", "required", replaced("items", "")...),
	form("init: item number unique within the array: distinct", "items", "distinct", replaced("items", "["+oneItem+","+oneItem+"]")...),
	form("init: item number 1-64", "items.0.number", "range", replaced("items", `[{"number":`+text(65)+`,"name":"n","price":1,"quantity":1}]`)...),
	form("init: item name 1-200", "items.0.name", "range", replaced("items", `[{"number":"1","name":`+text(201)+`,"price":1,"quantity":1}]`)...),
	form("init: item price >= 0", "items.0.price", "range", replaced("items", `[{"number":"1","name":"n","price":-0.5,"quantity":1}]`)...),
	form("init: item quantity >= 0", "items.0.quantity", "range", replaced("items", `[{"number":"1","name":"n","price":1,"quantity":-1}]`)...),
	form("init: customer: if present, full_name, address and phone are required", "customer.address", "required", replaced("customer", `{"full_name":"A","phone":"1"}`)...),
	form("init: merchant.redirectUrl: the origin must be authorised", "merchant.redirectUrl", "url", replaced("merchant", `{"redirectUrl":"https://partner.example.evil.test/"}`, `{"redirectUrl":"http://partner.example/"}`)...),
	form("init: merchant.backUrl: same origin rule", "merchant.backUrl", "url", replaced("merchant", `{"backUrl":"https://evil.test/"}`)...),
	form("init: merchant.webhookUrl with credentials, a local host or a private address is refused", "merchant.webhookUrl", "url",
		replaced("merchant", `{"webhookUrl":"https://u:p@example.org/"}`, `{"webhookUrl":"https://localhost/"}`, `{"webhookUrl":"https://10.0.0.1/"}`)...),
	form("init: merchant.note at most 2000", "merchant.note", "range", replaced("merchant", `{"note":`+text(2001)+`}`)...),

	// partners/payments.
	{"pay: 200 with paymentId, number (T + yy + mm + 6 digits), externalNumber, status pending, amount (due), provider; no redirectUrl", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		got := s.pay(t, c.charge("mobile_money_a", "066000003"))
		matches(t, "number", got["number"], `^T\d{10}$`)
		equal(t, "the answer", []any{got["status"], got["amount"], got["provider"]}, []any{"pending", 5000, "mobile_money_a"})
	}},
	{"pay: the same externalNumber is a new payment and a new debit; numbers have no gap", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		body := c.charge("mobile_money_b", "055000003")
		one, two := s.pay(t, body), s.pay(t, body)
		var a, b int
		_, _ = fmt.Sscanf(one["number"].(string)[5:], "%d", &a)
		_, _ = fmt.Sscanf(two["number"].(string)[5:], "%d", &b)
		if b != a+1 || one["paymentId"] == two["paymentId"] {
			t.Errorf("payments %v and %v", one, two)
		}
	}},
	{"pay: phone with +242, or 0 and 8 to 14 digits", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		for _, phone := range []string{"066000003", "+242066000003", "+24266000003"} {
			s.pay(t, c.charge("mobile_money_a", phone))
		}
	}},
	{"pay: invalid phone: 422 INVALID_PHONE_NUMBER", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		for _, phone := range []string{"+33612345678", "123", "055000001", "abc"} { // also of the other operator
			s.wrong(t, s.post(t, "/partners/payments", c.charge("mobile_money_a", phone)), 422, "INVALID_PHONE_NUMBER")
		}
	}},
	{"pay: phone required for the two mobile money providers", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		s.fault(t, s.post(t, "/partners/payments", c.body(`"provider":"mobile_money_a"`)), "customer.phone", "required")
		s.fault(t, s.post(t, "/partners/payments", c.body(`"provider":"mobile_money_b"`, `"customer":{}`)), "customer.phone", "required")
	}},
	{"pay: provider string 1-32, required", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		s.fault(t, s.post(t, "/partners/payments", c.body()), "provider", "required")
		s.fault(t, s.post(t, "/partners/payments", c.body(`"provider":`+text(33))), "provider", "range")
	}},
	{"pay: any other provider: 404 PROVIDER_NOT_FOUND", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		s.wrong(t, s.post(t, "/partners/payments", c.body(`"provider":"bank"`)), 404, "PROVIDER_NOT_FOUND")
	}},
	{"pay: known provider not activated: 403 PROVIDER_NOT_CONFIGURED", func(t *testing.T, c *cashin) {
		s := c.open(t, 1)
		s.wrong(t, s.post(t, "/partners/payments", c.charge("mobile_money_a", "066000001")), 403, "PROVIDER_NOT_CONFIGURED")
	}},
	{"pay: a card needs no phone; 200 pending", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		equal(t, "the answer", s.pay(t, c.body(`"provider":"card_network_b"`))["status"], "pending")
	}},
	{"pay: a refusal that comes at once is 200 pending; the status tells failed", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		got := s.pay(t, c.charge("mobile_money_a", "066000004"))
		s.becomes(t, got["number"], "failed")
	}},

	// check-status.
	{"status: exactly 17 keys; pending, then completed with paidAt, totalAmount with fees, gateway and the operator's reference", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		got := s.pay(t, c.charge("mobile_money_a", "066000002"))
		st := s.status(t, got["number"])
		equal(t, "engaged", []any{st["id"], st["paidAmount"], st["totalAmount"], st["externalNumber"]}, []any{got["paymentId"], 5000, 5100, got["externalNumber"]})
		st = s.becomes(t, got["number"], "completed")
		parseTime(t, st["paidAt"])
		if ref, _ := st["financialTransactionId"].(string); ref == "" {
			t.Error("no financialTransactionId")
		}
		gateway, _ := st["paymentGateway"].(map[string]any)
		equal(t, "the gateway", []any{len(gateway), gateway["id"], gateway["name"], gateway["logo"]}, []any{4, 1, "mobile_money_a", nil})
	}},
	{"status: transactionItems echo the items, numbers with their decimals", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		got := s.pay(t, c.charge("mobile_money_a", "066000003"))
		a := s.get(t, fmt.Sprintf("/transactions/%v/check-status", got["number"]))
		if !strings.Contains(string(a.Body), `"transactionItems":[`+oneItem+`]`) {
			t.Errorf("answered %s", a.Body)
		}
	}},
	{"status: paymentIntentId, extraInfo, paymentInfo, paymentFailedReason are always null", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		st := s.becomes(t, s.pay(t, c.charge("mobile_money_a", "066000005"))["number"], "failed")
		equal(t, "the fields", []any{st["paymentIntentId"], st["extraInfo"], st["paymentInfo"], st["paymentFailedReason"], st["paidAt"]}, []any{nil, nil, nil, nil, nil})
	}},
	{"status: unknown, foreign and malformed numbers: 404 E_ROW_NOT_FOUND, the same bytes", func(t *testing.T, c *cashin) {
		s, other := c.partner(t), c.partner(t)
		number := s.pay(t, c.charge("mobile_money_a", "066000003"))["number"]
		unknown := s.get(t, "/transactions/T2601999999/check-status")
		s.wrong(t, unknown, 404, "E_ROW_NOT_FOUND")
		for _, a := range []harness.Answer{other.get(t, fmt.Sprintf("/transactions/%v/check-status", number)), s.get(t, "/transactions/x/check-status")} {
			equal(t, "the answer", string(a.Body), string(unknown.Body))
		}
	}},

	// Gateways.
	{"gateways: a bare array of id, name, phoneRequired, commissionPercentage, commissionValue, logo (null)", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		var list []map[string]any
		s.get(t, "/partners/payment-gateways").Into(t, &list)
		if len(list) != 4 {
			t.Fatalf("%d gateways", len(list))
		}
		equal(t, "the first", list[0], map[string]any{"id": 1, "name": "mobile_money_a", "phoneRequired": true, "commissionPercentage": 0.015, "commissionValue": 25, "logo": nil})
		equal(t, "the last", []any{list[3]["id"], list[3]["name"], list[3]["phoneRequired"]}, []any{4, "card_network_b", false})
	}},
	{"gateways: one appears only when its channel is enabled", func(t *testing.T, c *cashin) {
		s := c.open(t, 1)
		var list []map[string]any
		s.get(t, "/partners/payment-gateways").Into(t, &list)
		if len(list) != 1 || list[0]["id"] != 2.0 {
			t.Errorf("the gateways are %v", list)
		}
	}},

	// Webhooks.
	{"webhook: after completed, exactly paymentId, externalNumber, amount, status, paidAt, note; unsigned, only Content-Type", func(t *testing.T, c *cashin) {
		s := c.open(t, 0)
		got := s.pay(t, c.body(`"provider":"mobile_money_a"`, `"customer":{"phone":"066000001"}`, `"description":"Frais é"`))
		m, body := s.told(t, got["paymentId"])
		if len(body) != 6 {
			t.Errorf("the body is %s", m.Body)
		}
		equal(t, "the body", []any{body["externalNumber"], body["amount"], body["status"], body["note"]}, []any{got["externalNumber"], 5000, "completed", "Frais é"})
		parseTime(t, body["paidAt"])
		for name := range m.Headers {
			if n := strings.ToLower(name); n != "content-type" && n != "content-length" && n != "host" {
				t.Errorf("the call has the header %s", name)
			}
		}
	}},
	{"webhook: a failed payment is told with status failed, paidAt null and note null", func(t *testing.T, c *cashin) {
		s := c.open(t, 0)
		got := s.pay(t, c.charge("mobile_money_a", "066000004"))
		_, body := s.told(t, got["paymentId"])
		equal(t, "the body", []any{body["status"], body["paidAt"], body["note"]}, []any{"failed", nil, nil})
	}},

	// Errors, limits, versioning.
	{"quota: 5 a minute for init-checkout, both prefixes together: 429 E_TOO_MANY_REQUESTS", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		refused := 0
		for n := range 12 {
			prefix := []string{"/api", "/api/v1"}[n%2]
			a := c.Call(t, http.MethodPost, c.URL(harness.AtService, prefix+"/init-checkout"), c.body(), "Authorization", "Bearer "+s.token, "Content-Type", "application/json")
			deprecated(t, a)
			if a.Status == 429 {
				s.wrong(t, a, 429, "E_TOO_MANY_REQUESTS")
				refused++
			}
		}
		if refused < 2 || refused > 7 { // less than 7: a minute ended meanwhile
			t.Errorf("%d of 12 are refused", refused)
		}
	}},
	{"malformed JSON: 400 E_BAD_REQUEST; another content type: 415; another method: 405 with Allow", func(t *testing.T, c *cashin) {
		s := c.partner(t)
		s.wrong(t, s.post(t, "/init-checkout", "{"), 400, "E_BAD_REQUEST")
		a := c.Call(t, http.MethodPost, c.URL(harness.AtService, c.prefix+"/init-checkout"), "x", "Authorization", "Bearer "+s.token, "Content-Type", "text/plain")
		deprecated(t, a)
		s.wrong(t, a, 415, "E_UNSUPPORTED_MEDIA_TYPE")
		a = s.call(t, http.MethodDelete, "/init-checkout", "")
		s.wrong(t, a, 405, "E_METHOD_NOT_ALLOWED")
		equal(t, "Allow", a.Header.Get("Allow"), "POST")
	}},
	{"an unknown path under /api: 404 E_ROUTE_NOT_FOUND; the ministry API has none of the headers", func(t *testing.T, c *cashin) {
		s := shop{c: &cashin{c.contract, "/api", c.next}}
		s.wrong(t, s.get(t, "/nothing"), 404, "E_ROUTE_NOT_FOUND")
		for _, path := range []string{"/api/v1", "/api/v1/nothing"} {
			equal(t, "Deprecation of "+path, c.Call(t, http.MethodGet, c.URL(harness.AtService, path), "").Header.Get("Deprecation"), "")
		}
	}},
	{"GET /checkout/sessions?order_id= finds the payments of an externalNumber", func(t *testing.T, c *cashin) {
		s := c.open(t, 2)
		external := s.init(t, c.body())["externalNumber"]
		var page map[string]any
		c.Call(t, http.MethodGet, c.Sessions("?order_id="+external.(string)), "", "Authorization", "Bearer sk_test_ContractPartner000000000").Into(t, &page)
		equal(t, "the total", page["total"], 1)
	}},
}

// TestCashin checks the statements of the contract's sections on the deprecated surface, by
// number and under both prefixes. Then it sends requests made from the surface's OpenAPI
// file, and causes bad days.
func TestCashin(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	base := newContract(t)
	next := 2
	var report strings.Builder
	failed := 0
	patient := *base.Client
	patient.Timeout = 30 * time.Second // partners/payments answers within 25 s
	base.Client = &patient
	days := &partnerDays{cashin: &cashin{base, "/api", &next}, keyed: keyedPartners}
	days.askAtClosedPort(t)
	for _, prefix := range []string{"/api", "/api/v1"} {
		c := &cashin{base, prefix, &next}
		for i, s := range cashinStatements {
			verdict := "pass"
			if !t.Run(fmt.Sprintf("%s/%02d %s", prefix[1:], i+1, s.says), func(t *testing.T) { s.holds(t, c) }) {
				verdict = "FAIL"
				failed++
			}
			fmt.Fprintf(&report, "%s  cash-in %02d %-7s %s\n", verdict, i+1, prefix, s.says)
		}
	}
	fmt.Fprintf(&report, "cash-in statements=%d prefixes=2 failed=%d\n", len(cashinStatements), failed)
	publish(t, report.String())
	t.Run("schemathesis", func(t *testing.T) { schemathesisCashin(t, base) })
	t.Run("bad days", days.run)
	if n := len(cashinStatements); n < 49 {
		t.Errorf("%d statements are checked", n)
	}
}
