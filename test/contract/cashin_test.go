package contract_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/test/harness"
)

// The registry's partners of the deprecated cash-in surface. Each statement takes new ones,
// because the quotas of the surface are small. The bad days take those from keyedPartners
// on, which also have a key of the ministry API and an address for unsigned webhooks, and
// schemathesis those from fuzzedPartners on.
const (
	keyedPartners  = 130
	fuzzedPartners = 160
	partners       = 240

	closedAgency = "018f0000-0000-7000-8000-000000000004" // its operator's port is closed
)

// closedAddress is that of the operator of closedAgency. A test opens it.
var closedAddress = func() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}()

func partnerRegistry() string {
	var b strings.Builder
	app := func(agency, n int, more, settings string) {
		fmt.Fprintf(&b, "      - {id: 018f0000-0000-7000-8000-%08x%04x, name: Partner %d, offers: [momo, momo_b, card, cash_agency], %scashin: {mode: test, api_key: ak_test_Contract%04d, secret_key: as_test_Contract%04d, redirect_origins: [https://partner.example], %s}}\n",
			agency, n, n, more, n, n, settings)
	}
	fmt.Fprintf(&b, `  - id: 018f0000-0000-7000-8000-000000000005
    slug: partenaires
    name: Partenaires
    fees: [{channel: MOBILE_MONEY, currency: XAF, ratio: "0.015", fixed: 25}]
    connectors: {test: {card: {base_url: "http://127.0.0.1:8081/card", merchant: m, secret: simulator, xaf: true}}}
    applications:
`)
	for n := range partners {
		more, settings := "", "providers: [mobile_money_a, mobile_money_b, card_network_a, card_network_b]"
		switch n {
		case 0:
			settings += `, webhook_url: "http://127.0.0.1:8081/inbox/partner"`
		case 1:
			settings = "providers: [mobile_money_b]"
		case 2: // also has a key of the ministry API
			more = "keys: [{secret: sk_test_ContractPartner000000000}], "
		default:
			if n >= keyedPartners && n < fuzzedPartners {
				more = "keys: [{secret: " + partnerKey(n) + "}], "
				settings += `, webhook_url: "http://127.0.0.1:8081/inbox/partner"`
			}
		}
		app(5, n, more, settings)
	}
	fmt.Fprintf(&b, `  - id: %s
    slug: ferme
    name: Fermé
    connectors: {test: {momo: {base_url: "http://%s/mtn", target_environment: mtncongo, subscription_key: simulator, api_user: u, api_key: simulator}}}
    applications:
`, closedAgency, closedAddress)
	app(4, partners, "", "providers: [mobile_money_a]")
	return b.String()
}

// partnerKey is the key of the ministry API that a keyed partner has.
func partnerKey(n int) string { return fmt.Sprintf("sk_test_ContractKeyed%012d", n) }

// cashin calls the surface as a partner's program does, under one prefix.
type cashin struct {
	*contract
	prefix string
	next   *int
}

// shop is a partner with a token.
type shop struct {
	c     *cashin
	n     int
	token string
}

func (c *cashin) pair(n int) string {
	return fmt.Sprintf(`{"apiKey":"ak_test_Contract%04d","secretKey":"as_test_Contract%04d"}`, n, n)
}

// open returns the partner with the number.
func (c *cashin) open(t *testing.T, n int) shop {
	t.Helper()
	s := shop{c: c, n: n}
	got := s.object(t, s.post(t, "/generate-application-access-token", c.pair(n)), 200, "token", "expiresAt")
	s.token, _ = got["token"].(string)
	return s
}

// partner returns a partner that no statement has used.
func (c *cashin) partner(t *testing.T) shop {
	t.Helper()
	*c.next++
	if *c.next >= keyedPartners {
		t.Fatal("the registry has too few partners")
	}
	return c.open(t, *c.next)
}

func (s shop) call(t *testing.T, method, path, body string) harness.Answer {
	t.Helper()
	headers := []string{"Content-Type", "application/json"}
	if s.token != "" {
		headers = append(headers, "Authorization", "Bearer "+s.token)
	}
	a := s.c.Call(t, method, s.c.URL(harness.AtService, s.c.prefix+path), body, headers...)
	deprecated(t, a)
	return a
}

// deprecated checks the headers of every answer.
func deprecated(t *testing.T, a harness.Answer) {
	t.Helper()
	equal(t, "the headers", []string{a.Header.Get("Deprecation"), a.Header.Get("Sunset"), a.Header.Get("Link"), a.Header.Get("Content-Type")},
		[]string{"true", "Thu, 30 Sep 2027 00:00:00 GMT", `</api/v1/checkout/sessions>; rel="successor-version"`, "application/json"})
}

func (s shop) post(t *testing.T, path, body string) harness.Answer {
	t.Helper()
	return s.call(t, http.MethodPost, path, body)
}

func (s shop) get(t *testing.T, path string) harness.Answer {
	t.Helper()
	return s.call(t, http.MethodGet, path, "")
}

// object checks status and exact keys of an answer.
func (s shop) object(t *testing.T, a harness.Answer, status int, keys ...string) (got map[string]any) {
	t.Helper()
	a.Into(t, &got)
	var names []string
	for k := range got {
		names = append(names, k)
	}
	slices.Sort(names)
	slices.Sort(keys)
	if a.Status != status || !slices.Equal(names, keys) {
		t.Errorf("answered %d %s, want %d with exactly %v", a.Status, a.Body, status, keys)
	}
	return got
}

// wrong checks an error of three fields.
func (s shop) wrong(t *testing.T, a harness.Answer, status int, code string) {
	t.Helper()
	got := s.object(t, a, status, "message", "status", "code")
	equal(t, "code and status", []any{got["code"], got["status"]}, []any{code, status})
}

// fault checks that an answer is a 422 with one fault.
func (s shop) fault(t *testing.T, a harness.Answer, field, rule string) {
	t.Helper()
	got := s.object(t, a, 422, "message", "errors")
	faults, _ := got["errors"].([]any)
	if len(faults) != 1 {
		t.Errorf("the faults are %s, want one", a.Body)
		return
	}
	f, _ := faults[0].(map[string]any)
	equal(t, "the fault", []any{len(f), f["field"], f["rule"]}, []any{3, field, rule})
}

const oneItem = `{"number":"1","name":"Cahier","price":10.50,"quantity":2}`

// body returns the body of init-checkout with further fields.
func (c *cashin) body(fields ...string) string {
	return `{"externalNumber":"` + c.order() + `","amount":5000,"items":[` + oneItem + `]` + strings.Join(append([]string{""}, fields...), ",") + `}`
}

// charge returns the body of partners/payments.
func (c *cashin) charge(provider, phone string) string {
	return c.body(fmt.Sprintf(`"provider":%q`, provider), fmt.Sprintf(`"customer":{"phone":%q}`, phone))
}

var (
	initKeys   = []string{"paymentId", "externalNumber", "token", "redirectUrl"}
	payKeys    = []string{"paymentId", "number", "externalNumber", "status", "amount", "provider"}
	statusKeys = []string{
		"id", "number", "externalNumber", "status", "paidAmount", "totalAmount", "paidAt", "description", "type", "customer", "transactionItems", "paymentGateway",
		"financialTransactionId", "paymentIntentId", "extraInfo", "paymentInfo", "paymentFailedReason",
	}
)

func (s shop) init(t *testing.T, body string) map[string]any {
	t.Helper()
	return s.object(t, s.post(t, "/init-checkout", body), 200, initKeys...)
}

func (s shop) pay(t *testing.T, body string) map[string]any {
	t.Helper()
	return s.object(t, s.post(t, "/partners/payments", body), 200, payKeys...)
}

func (s shop) status(t *testing.T, number any) map[string]any {
	t.Helper()
	return s.object(t, s.get(t, fmt.Sprintf("/transactions/%v/check-status", number)), 200, statusKeys...)
}

// becomes waits until a payment has a status. It asks seldom, because of the quota.
func (s shop) becomes(t *testing.T, number any, status string) (got map[string]any) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(1500 * time.Millisecond) {
		if got = s.status(t, number); got["status"] == status {
			return got
		}
		if time.Now().After(deadline) {
			t.Fatalf("the payment is %v, want %s", got["status"], status)
		}
	}
}

// told waits for the unsigned webhook about a payment.
func (s shop) told(t *testing.T, paymentID any) (m harness.Message, body map[string]any) {
	t.Helper()
	harness.Eventually(t, "the unsigned webhook arrives", func() error {
		var all []harness.Message
		s.c.Call(t, http.MethodGet, s.c.URL(harness.AtSimulators, "/inbox/partner"), "").Into(t, &all)
		for _, m = range all {
			body = nil
			if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
				return err
			}
			if body["paymentId"] == paymentID {
				return nil
			}
		}
		return fmt.Errorf("%d others have arrived", len(all))
	})
	return m, body
}
