package cashin_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/cashin"
	"quittance/internal/commands"
	"quittance/test/registries"
)

const (
	item    = `{"number":"1","name":"Cahier","price":10.50,"quantity":2}`
	initial = `{"externalNumber":"case-1","amount":5000,"items":[` + item + `]}`
	payment = `{"externalNumber":"case-1","amount":5000,"provider":"mobile_money_a","customer":{"phone":"066000001"},"items":[` + item + `]}`
)

// with returns a body with fields replaced or added; an empty value removes the field.
func with(body string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		field, value := `"`+pairs[i]+`":`, pairs[i+1]
		at := strings.Index(body, field)
		if at < 0 {
			body = body[:1] + field + value + "," + body[1:]
			continue
		}
		end := at + len(field)
	value:
		for depth := 0; end < len(body); end++ {
			switch c := body[end]; {
			case c == '{' || c == '[':
				depth++
			case (c == '}' || c == ']') && depth > 0:
				depth--
			case depth == 0 && (c == ',' || c == '}'):
				break value
			}
		}
		if value == "" {
			body = body[:at] + strings.TrimPrefix(body[end:], ",")
			body = strings.ReplaceAll(body, ",}", "}")
			continue
		}
		body = body[:at] + field + value + body[end:]
	}
	return body
}

func (w *world) init(prefix, token, body string) response {
	w.t.Helper()
	return w.send(http.MethodPost, prefix+"/init-checkout", token, body)
}

func (w *world) pay(token, body string) response {
	w.t.Helper()
	return w.send(http.MethodPost, "/api/partners/payments", token, body)
}

func (w *world) status(token, number string) response {
	w.t.Helper()
	return w.send(http.MethodGet, "/api/v1/transactions/"+number+"/check-status", token, "")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.send(http.MethodPost, "/api/v1/generate-application-access-token", "", `{"apiKey":"`+w.pair.APIKey.Reveal()+`","secretKey":"`+w.pair.SecretKey.Reveal()+`","more":1}`)
	got := r.json(t)
	token, _ := got["token"].(string)
	if r.status != http.StatusOK || !slices.Equal(keys(got), []string{"expiresAt", "token"}) || !strings.HasPrefix(token, "oat_") || got["expiresAt"] != "2026-11-22T11:00:00.000Z" {
		t.Errorf("answered %d %s", r.status, r.body)
	}
	for _, prefix := range []string{"/api", "/api/v1"} { // a token is valid under both
		if r := w.send(http.MethodGet, prefix+"/partners/payment-gateways", token, ""); r.status != http.StatusOK {
			t.Errorf("%s: %d %s", prefix, r.status, r.body)
		}
	}
	if r := w.send(http.MethodPost, "/api/revoke-application-access-token", token, "", func(q *http.Request) { q.Header.Del("Content-Type") }); r.status != http.StatusOK || !slices.Equal(keys(r.json(t)), []string{"message"}) {
		t.Errorf("answered %d %s", r.status, r.body)
	}
	wantRefusal(t, w.send(http.MethodGet, "/api/partners/payment-gateways", token, ""), http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
	for _, path := range []string{"POST /revoke-application-access-token", "POST /init-checkout", "POST /partners/payments", "GET /transactions/T2611000001/check-status", "GET /partners/payment-gateways"} {
		method, path, _ := strings.Cut(path, " ")
		for _, token := range []string{"", "oat_x", w.pair.APIKey.Reveal(), token} {
			wantRefusal(t, w.send(method, "/api"+path, token, "not even JSON"), http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
		}
	}
}

func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bodies []string
	for _, pair := range [][2]string{{"ak_test_unknown", "x"}, {w.pair.APIKey.Reveal(), "wrong"}} {
		r := w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":"`+pair[0]+`","secretKey":"`+pair[1]+`"}`)
		wantRefusal(t, r, http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
		bodies = append(bodies, r.body)
	}
	if bodies[0] != bodies[1] {
		t.Errorf("the answers differ: %q", bodies)
	}
	wantFaults(t, w.send(http.MethodPost, "/api/generate-application-access-token", "", `{}`), "apiKey required", "secretKey required")
	wantFaults(t, w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":7,"secretKey":"`+strings.Repeat("x", 501)+`"}`), "apiKey type", "secretKey range")
	// Wrong credentials count against their client; what the form refuses does not.
	for range 3 {
		w.send(http.MethodPost, "/api/v1/generate-application-access-token", "", `{"apiKey":"`+w.pair.APIKey.Reveal()+`","secretKey":"wrong"}`)
	}
	r := w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":"another","secretKey":"x"}`)
	wantRefusal(t, r, http.StatusTooManyRequests, "E_TOO_MANY_REQUESTS")
	if r.header.Get("Retry-After") != "60" {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
}

// Whoever knew an apiKey locked its owner out of new tokens with five wrong secrets a minute, and
// the partner's payments ended with its last token. The right secret always counts for itself.
func TestWrongSecretsLockNobodyOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wrong := `{"apiKey":"` + w.pair.APIKey.Reveal() + `","secretKey":"wrong"}`
	for range 40 {
		w.send(http.MethodPost, "/api/generate-application-access-token", "", wrong)
	}
	for range 5 { // the quota of the contract, also from the network of the guesses
		w.token(w.pair)
	}
	right := `{"apiKey":"` + w.pair.APIKey.Reveal() + `","secretKey":"` + w.pair.SecretKey.Reveal() + `"}`
	wantRefusal(t, w.send(http.MethodPost, "/api/generate-application-access-token", "", right), http.StatusTooManyRequests, "E_TOO_MANY_REQUESTS")
}

// Whether anybody has an apiKey shows neither in the answers to wrong credentials nor in
// when they are refused with 429.
func TestGuessesTellNothing(t *testing.T) {
	t.Parallel()
	guesses := func(order ...int) (seen []string) {
		w := newWorld(t)
		keys := []string{w.pair.APIKey.Reveal(), "ak_test_nobody", "ak_test_nobody_else"}
		for _, i := range order {
			r := w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":"`+keys[i]+`","secretKey":"x"}`)
			seen = append(seen, fmt.Sprint(r.status, r.header.Get("Retry-After"), r.body))
		}
		return seen
	}
	const known, unknown, another = 0, 1, 2
	for _, row := range [][2][]int{
		{{known, known, known, known, known, known, known}, {unknown, unknown, unknown, unknown, unknown, unknown, unknown}},
		{{another, another, another, another, another, known}, {another, another, another, another, another, unknown}},
		{{known, known, known, known, known, another}, {unknown, unknown, unknown, unknown, unknown, another}},
	} {
		if a, b := guesses(row[0]...), guesses(row[1]...); !slices.Equal(a, b) {
			t.Errorf("answers %q to an apiKey that there is, %q to another", a, b)
		}
	}
	// A partner behind the same address as a guesser still gets its tokens.
	w := newWorld(t)
	for range 7 {
		w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":"ak_test_nobody","secretKey":"x"}`)
	}
	w.token(w.pair)
}

// Two tokens of an application at two instances, under both prefixes, share one quota.
func TestQuotas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := []string{w.token(w.pair), w.token(w.pair)}
	instances := []*httptest.Server{w.server, w.serve()}
	prefixes := []string{"/api", "/api/v1"}
	admitted := func(method, path, body string, calls int) (n int) {
		for i := range calls {
			w.server = instances[i%2]
			r := w.send(method, prefixes[i/2%2]+path, tokens[i/4%2], body)
			switch r.status {
			case http.StatusTooManyRequests:
				wantRefusal(t, r, http.StatusTooManyRequests, "E_TOO_MANY_REQUESTS")
			default:
				n++
			}
		}
		return n
	}
	for range 2 { // two minutes
		for _, row := range []struct {
			method, path, body string
			want               int
		}{
			{http.MethodPost, "/init-checkout", initial, 5},
			{http.MethodPost, "/partners/payments", payment, 5},
			{http.MethodGet, "/transactions/T2611000099/check-status", "", 30},
			{http.MethodGet, "/partners/payment-gateways", "", 30},
		} {
			if got := admitted(row.method, row.path, row.body, row.want+8); got != row.want {
				t.Errorf("%s: %d calls are admitted, want %d", row.path, got, row.want)
			}
		}
		w.minute()
	}
	for range 10 { // a form at fault does not count
		if r := w.init("/api", tokens[0], "{}"); r.status != http.StatusUnprocessableEntity {
			t.Errorf("answered %d %s", r.status, r.body)
		}
	}
	if r := w.init("/api", tokens[0], initial); r.status != http.StatusOK {
		t.Errorf("answered %d %s", r.status, r.body)
	}
	other := w.token(w.mint(registries.AppB)) // has a quota of its own
	for range 5 {
		w.init("/api", tokens[0], initial)
	}
	if r := w.init("/api", other, initial); r.status != http.StatusOK {
		t.Errorf("answered %d %s", r.status, r.body)
	}
}

// Calls count for the application of the token or the apiKey, with what they were answered.
// Calls of nobody do not count.
func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	generate := func(apiKey, secretKey string) {
		w.send(http.MethodPost, "/api/generate-application-access-token", "", `{"apiKey":"`+apiKey+`","secretKey":"`+secretKey+`"}`)
	}
	token := w.token(w.pair)
	generate(w.pair.APIKey.Reveal(), "wrong")
	generate("unknown", "wrong")
	w.init("/api", token, initial)
	w.init("/api/v1", token, "{}")
	w.init("/api", "oat_unknown", initial)
	w.status(token, "T2611000001")
	w.status(token, "T2611000099")
	w.send(http.MethodGet, "/api/partners/payments", token, "")
	w.send(http.MethodGet, "/api/nothing", token, "")
	w.change(func() { w.asked = commands.ErrUnavailable })
	w.status(token, "T2611000001")
	w.change(func() { w.asked = nil })
	if _, err := cashin.Revoke(t.Context(), w.house.Pool, w.house.Keys, registries.Actor, shop, w.watch.Now()); err != nil {
		t.Fatal(err)
	}
	generate(w.pair.APIKey.Reveal(), w.pair.SecretKey.Reveal()) // an old program still calls
	w.usage.Flush(t.Context())
	r, err := cashin.ReadUsage(t.Context(), w.house.Pool, cashin.UsageFilter{Since: start})
	if err != nil || len(r.Applications) != 1 || r.Applications[0].ApplicationID != shop || r.Applications[0].Live || r.Applications[0].InForce || !r.Applications[0].FirstAt.Equal(start) {
		t.Fatalf("%+v, %v", r, err)
	}
	want := []cashin.UsageDay{
		{Day: "2026-11-22", Route: "/generate-application-access-token", Calls: cashin.Calls{Calls: 3, Refused: 2}},
		{Day: "2026-11-22", Route: "/init-checkout", Calls: cashin.Calls{Calls: 2, Refused: 1}},
		{Day: "2026-11-22", Route: "/transactions/{number}/check-status", Calls: cashin.Calls{Calls: 3, Refused: 1, Failed: 1}},
	}
	if !slices.Equal(r.Applications[0].Days, want) {
		t.Errorf("counted %+v", r.Applications[0].Days)
	}
}

func TestInitCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	body := with(initial, "description", `"Frais de scolarité"`, "type", `"service"`, "unknown", `{"a":1}`,
		"customer", `{"full_name":"Mireille Okoko","address":"12 rue","phone":"call me"}`,
		"merchant", `{"redirectUrl":"https://partner.example/ok?x=1#done","backUrl":"https://SHOP.example:8443/back","webhookUrl":"http://partner.example.org/hook","coverUrl":"any","note":"n"}`)
	r := w.init("/api", token, body)
	got := r.json(t)
	if r.status != http.StatusOK || !slices.Equal(keys(got), []string{"externalNumber", "paymentId", "redirectUrl", "token"}) || got["externalNumber"] != "case-1" || got["paymentId"] != 1.0 {
		t.Fatalf("answered %d %s", r.status, r.body)
	}
	id, _ := got["token"].(string)
	if got["redirectUrl"] != "https://pay.example/c/"+id {
		t.Errorf("answered %s", r.body)
	}
	s := w.processor.Session(id)
	if s.Description != "Frais de scolarité" || s.Note != "n" || s.SuccessURL != "https://partner.example/ok?x=1#done" || s.CancelURL != "https://SHOP.example:8443/back" ||
		s.Cashin.WebhookURL != "http://partner.example.org/hook" || s.Cashin.Type != "service" || string(s.Cashin.Items) != "["+item+"]" || s.Customer != nil {
		t.Errorf("the session is %+v %+v", s, s.Cashin)
	}
	if len(s.Offers) != 4 || s.Offers[0].Fee != 100 || s.Currency != "XAF" || s.Mode != checkout.ModeHosted || !s.ExpiresAt.Equal(start.Add(24*time.Hour)) {
		t.Errorf("the session is %+v", s)
	}

	// The same externalNumber again: the same payment, with other contact data.
	again := w.init("/api/v1", token, with(initial, "amount", "6000", "customer", `{"full_name":"Paul","address":"rue","phone":"1"}`))
	if second := again.json(t); second["paymentId"] != got["paymentId"] || second["redirectUrl"] != got["redirectUrl"] || second["token"] != got["token"] {
		t.Errorf("answered %s, then %s", r.body, again.body)
	}
	if s := w.processor.Session(id); s.Amount != 6000 || s.Description != "" || s.Cashin.WebhookURL != "" {
		t.Errorf("the session is %+v %+v", s, s.Cashin)
	}
	status := w.status(token, "T2611000001").json(t)
	if customer, _ := status["customer"].(map[string]any); customer["full_name"] != "Paul" || customer["address"] != "rue" || customer["phone"] != "1" || len(customer) != 3 {
		t.Errorf("the customer is %v", status["customer"])
	}
	var foreign int
	if err := w.house.Pool.QueryRow(t.Context(), `SELECT count(*) FROM personal_keys WHERE session_id <> $1`, id).Scan(&foreign); err != nil || foreign != 0 {
		t.Errorf("%d keys of contact data belong to a session that was not made (%v): they would not be erased with the payment", foreign, err)
	}

	w.change(func() {
		w.off = map[string]bool{checkout.OfferMomo: true, checkout.OfferMomoB: true, checkout.OfferCard: true, checkout.OfferCashAgency: true}
	})
	wantRefusal(t, w.init("/api", token, with(initial, "externalNumber", `"case-2"`)), http.StatusForbidden, "PROVIDER_NOT_CONFIGURED")
}

func TestPartnersPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	for n, phone := range []string{"066000001", "+242066000001", "+24266000001", "06 600-00.01"} { // one number
		r := w.pay(token, with(payment, "customer", `{"phone":"`+phone+`"}`))
		got := r.json(t)
		if r.status != http.StatusOK || !slices.Equal(keys(got), []string{"amount", "externalNumber", "number", "paymentId", "provider", "status"}) ||
			got["number"] != fmt.Sprintf("T2611%06d", n+1) || got["paymentId"] != float64(n+1) || got["externalNumber"] != "case-1" || got["status"] != "pending" || got["amount"] != 5000.0 || got["provider"] != "mobile_money_a" {
			t.Errorf("%s: %d %s", phone, r.status, r.body)
			continue
		}
		q := w.processor.Requests[n]
		payer, err := w.personal.Payer(t.Context(), q.Session.ID, q.PayerSealed)
		if err != nil || payer != "242066000001" || q.Session.Collection.Amount != 5100 || q.Word == nil || *q.Word != (checkout.ReplyTo{CorrelationID: "word", Partition: 2}) {
			t.Errorf("%s: payer %q, %v, request %+v", phone, payer, err, q)
		}
		w.minute()
	}
	for body, code := range map[string]string{
		with(payment, "customer", `{"phone":"055000001"}`):        "INVALID_PHONE_NUMBER", // of the other operator
		with(payment, "customer", `{"phone":"+33612345678"}`):     "INVALID_PHONE_NUMBER",
		with(payment, "customer", `{"phone":"06600000"}`):         "INVALID_PHONE_NUMBER",
		with(payment, "customer", `{"phone":"00242066000001"}`):   "INVALID_PHONE_NUMBER",
		with(payment, "customer", `{"phone":"0660000010000000"}`): "INVALID_PHONE_NUMBER",
	} {
		w.minute()
		wantRefusal(t, w.pay(w.token(w.pair), body), http.StatusUnprocessableEntity, code)
	}
	w.minute()
	token = w.token(w.pair)
	wantRefusal(t, w.pay(token, with(payment, "provider", `"bank"`)), http.StatusNotFound, "PROVIDER_NOT_FOUND")
	w.change(func() { w.app.Cashin.Providers = []string{"mobile_money_b", "card_network_b"} })
	wantRefusal(t, w.pay(token, payment), http.StatusForbidden, "PROVIDER_NOT_CONFIGURED")
	w.change(func() { w.off[checkout.OfferMomoB] = true })
	wantRefusal(t, w.pay(token, with(payment, "provider", `"mobile_money_b"`)), http.StatusForbidden, "PROVIDER_NOT_CONFIGURED")
	requests := len(w.processor.Requests)
	r := w.pay(token, with(payment, "provider", `"card_network_b"`, "customer", "null")) // needs no phone
	if got := r.json(t); r.status != http.StatusOK || got["status"] != "pending" || got["provider"] != "card_network_b" || len(w.processor.Requests) != requests+1 {
		t.Errorf("answered %d %s", r.status, r.body)
	}
}

// Only the word that nothing was sent is a 502. A shutdown ends the wait.
func TestOperatorsWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	for _, said := range []checkout.Code{checkout.CodeCollectionAccepted, checkout.CodeCollectionRefused} {
		w.change(func() { w.said = said })
		if r := w.pay(token, payment); r.status != http.StatusOK || r.json(t)["status"] != "pending" {
			t.Errorf("%s: %d %s", said, r.status, r.body)
		}
	}
	w.change(func() { w.said = checkout.CodeCollectionNotSent })
	wantRefusal(t, w.pay(token, payment), http.StatusBadGateway, "GATEWAY_REQUEST_FAILED")
	w.change(func() { w.said = "" })
	time.AfterFunc(50*time.Millisecond, w.stop)
	begun := time.Now()
	if r := w.pay(token, payment); r.status != http.StatusOK || r.json(t)["status"] != "pending" || time.Since(begun) > 5*time.Second {
		t.Errorf("at a shutdown after %s: %d %s", time.Since(begun), r.status, r.body)
	}
	w.change(func() { w.asked = commands.ErrUnavailable }) // the processor is silent
	r := w.pay(token, payment)
	wantRefusal(t, r, http.StatusInternalServerError, "E_INTERNAL_ERROR")
	if r.header.Get("Retry-After") != "" || !strings.Contains(r.body, "may have begun") || w.patience < 20*time.Second {
		t.Errorf("a payment that may have begun is to be sent again after %s: %s", w.patience, r.body)
	}
	if r := w.init("/api", token, initial); r.status != http.StatusInternalServerError || r.header.Get("Retry-After") == "" || w.patience != 2*time.Second {
		t.Errorf("init-checkout of a silent processor after %s: %d %s", w.patience, r.status, r.body)
	}
}

func TestCheckStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	w.init("/api", token, with(initial, "type", `"ecommerce"`, "description", `"d <b>&"`))
	all := []string{
		"customer", "description", "externalNumber", "extraInfo", "financialTransactionId", "id", "number", "paidAmount", "paidAt", "paymentFailedReason", "paymentGateway",
		"paymentInfo", "paymentIntentId", "status", "totalAmount", "transactionItems", "type",
	}
	r := w.status(token, "T2611000001")
	got := r.json(t)
	if !slices.Equal(keys(got), all) || got["status"] != "created" || got["paidAmount"] != 5000.0 || got["totalAmount"] != 5000.0 || got["type"] != "ecommerce" || got["description"] != "d <b>&" {
		t.Errorf("answered %d %s", r.status, r.body)
	}
	if !strings.Contains(r.body, `"transactionItems":[`+item+`]`) {
		t.Errorf("the items are not as sent: %s", r.body)
	}
	for _, key := range []string{"customer", "extraInfo", "financialTransactionId", "paidAt", "paymentFailedReason", "paymentGateway", "paymentInfo", "paymentIntentId"} {
		if got[key] != nil {
			t.Errorf("%s is %v", key, got[key])
		}
	}
	paid := w.pay(token, payment).json(t)
	number, _ := paid["number"].(string)
	q := w.processor.Requests[0]
	if got := w.status(token, number).json(t); got["status"] != "pending" || got["totalAmount"] != 5100.0 || got["paidAmount"] != 5000.0 || got["id"] != paid["paymentId"] {
		t.Errorf("pending: %v", got)
	}
	w.processor.Do(q.Session.ID, checkout.Outcome{CollectionID: q.Session.Collection.ID, Source: checkout.SourceCallback, Status: checkout.OutcomeApproved, Amount: 5100, Currency: "XAF", OperatorRef: "OP-7"})
	r = w.status(token, number)
	got = r.json(t)
	gateway, _ := got["paymentGateway"].(map[string]any)
	if !slices.Equal(keys(got), all) || got["status"] != "completed" || got["paidAt"] != "2026-11-22T09:00:00.000Z" || got["financialTransactionId"] != "OP-7" ||
		!slices.Equal(keys(gateway), []string{"description", "id", "logo", "name"}) || gateway["id"] != 1.0 || gateway["logo"] != nil {
		t.Errorf("completed: %s", r.body)
	}

	unknown := w.status(token, "T2611000099")
	wantRefusal(t, unknown, http.StatusNotFound, "E_ROW_NOT_FOUND")
	other := w.token(w.mint(registries.AppB))
	for name, ask := range map[string]func() response{
		"foreign": func() response { return w.status(other, number) }, "malformed": func() response { return w.status(token, "T26") },
		"escaped": func() response { return w.status(token, "T2611%00000001") }, "a slash": func() response { return w.status(token, "T2611%2F000001") },
	} {
		var before int
		w.change(func() { before = w.asks })
		r := ask()
		w.change(func() {
			if n := w.asks - before; n != 1 { // as for an unknown number
				t.Errorf("%s: the processor is asked %d times", name, n)
			}
		})
		if r.status != unknown.status || r.body != unknown.body {
			t.Errorf("%s: %d %s, an unknown number: %s", name, r.status, r.body, unknown.body)
		}
	}
}

func TestGateways(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	r := w.send(http.MethodGet, "/api/partners/payment-gateways", token, "")
	want := `[{"id":1,"name":"mobile_money_a","phoneRequired":true,"commissionPercentage":0.015,"commissionValue":25,"logo":null},` +
		`{"id":2,"name":"mobile_money_b","phoneRequired":true,"commissionPercentage":0.015,"commissionValue":25,"logo":null},` +
		`{"id":3,"name":"card_network_a","phoneRequired":false,"commissionPercentage":0,"commissionValue":0,"logo":null},` +
		`{"id":4,"name":"card_network_b","phoneRequired":false,"commissionPercentage":0,"commissionValue":0,"logo":null}]`
	if r.status != http.StatusOK || strings.TrimSpace(r.body) != want {
		t.Errorf("answered %d %s", r.status, r.body)
	}
	w.change(func() {
		w.app.Cashin.Providers, w.off[checkout.OfferCard] = []string{"mobile_money_b", "card_network_a"}, true
	})
	if r := w.send(http.MethodGet, "/api/v1/partners/payment-gateways", token, ""); !strings.HasPrefix(r.body, `[{"id":2,`) || strings.Count(r.body, "id") != 1 {
		t.Errorf("answered %s", r.body)
	}
	w.change(func() { w.app.Cashin.Providers = nil })
	if r := w.send(http.MethodGet, "/api/partners/payment-gateways", token, ""); strings.TrimSpace(r.body) != "[]" {
		t.Errorf("answered %s", r.body)
	}
}

// The errors besides the contract's, under the prefix of this surface alone. The ministry
// API's answers have none of its headers.
func TestOtherErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	for _, path := range []string{"/api", "/api/", "/api/nothing", "/api/v2/init-checkout", "/api/init-checkout/", "/api/transactions/check-status"} {
		wantRefusal(t, w.send(http.MethodPost, path, token, initial), http.StatusNotFound, "E_ROUTE_NOT_FOUND")
	}
	for _, prefix := range []string{"/api", "/api/v1"} {
		r := w.send(http.MethodPut, prefix+"/init-checkout", "", initial)
		wantRefusal(t, r, http.StatusMethodNotAllowed, "E_METHOD_NOT_ALLOWED")
		if r.header.Get("Allow") != http.MethodPost {
			t.Errorf("Allow is %q", r.header.Get("Allow"))
		}
	}
	wantRefusal(t, w.init("/api", token, initial[1:]), http.StatusBadRequest, "E_BAD_REQUEST")
	wantRefusal(t, w.init("/api", token, `{"amount":1,"amount":2}`), http.StatusBadRequest, "E_BAD_REQUEST")
	wantRefusal(t, w.init("/api", token, `{"description":"`+strings.Repeat("x", 256<<10)+`"}`), http.StatusRequestEntityTooLarge, "E_REQUEST_ENTITY_TOO_LARGE")
	wantRefusal(t, w.send(http.MethodPost, "/api/init-checkout", token, initial, func(q *http.Request) { q.Header.Set("Content-Type", "text/plain") }), http.StatusUnsupportedMediaType, "E_UNSUPPORTED_MEDIA_TYPE")
	w.change(func() { w.asked = errors.New("broken") })
	wantRefusal(t, w.init("/api", token, initial), http.StatusInternalServerError, "E_INTERNAL_ERROR")

	resp, err := w.server.Client().Get(w.server.URL + "/api/v1/checkout/sessions")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Deprecation") != "" {
		t.Errorf("the ministry API answers %d with %v", resp.StatusCode, resp.Header)
	}
}

func TestExhaustedMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.processor.Change(func() {
		w.processor.Months[checkout.MonthKey{ApplicationID: shop, Month: "2611"}] = checkout.MaxNumber
	})
	token := w.token(w.pair)
	wantRefusal(t, w.init("/api", token, with(initial, "customer", `{"full_name":"P","address":"r","phone":"1"}`)), http.StatusInternalServerError, "E_INTERNAL_ERROR")
	var left int
	if err := w.house.Pool.QueryRow(t.Context(), `SELECT count(*) FROM personal_keys`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d keys of contact data are left, %v", left, err)
	}
}

// A token ends at once with its application and with its pair.
func TestDeactivatedApplication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	w.house.Write(t, `UPDATE applications SET active = false WHERE id = $1`, shop)
	wantRefusal(t, w.init("/api", token, initial), http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
	w.house.Write(t, `UPDATE applications SET active = true WHERE id = $1`, shop)
	if _, err := cashin.Revoke(t.Context(), w.house.Pool, w.house.Keys, registries.Actor, shop, w.watch.Now()); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, w.init("/api", token, initial), http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
}

func TestForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	items := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"number":"%d","name":"n","price":0,"quantity":0}`, i))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	long := func(n int) string { return `"` + strings.Repeat("é", n) + `"` }
	one := func(pairs ...string) string { return "[" + with(item, pairs...) + "]" }
	for _, row := range []struct {
		body   string
		faults []string
	}{
		{`{}`, []string{"amount required", "externalNumber required", "items required"}},
		{`{"externalNumber":null,"amount":null,"items":null}`, []string{"amount required", "externalNumber required", "items required"}},
		{with(initial, "externalNumber", `7`), []string{"externalNumber type"}},
		{with(initial, "externalNumber", `""`), []string{"externalNumber range"}},
		{with(initial, "externalNumber", long(201)), []string{"externalNumber range"}},
		{with(initial, "externalNumber", `"a\u0000b"`), []string{"externalNumber type"}},
		{with(initial, "externalNumber", `"\ud800"`), []string{"externalNumber type"}},
		{with(initial, "amount", `"5000"`), []string{"amount type"}},
		{with(initial, "amount", `5000.0`), []string{"amount type"}},
		{with(initial, "amount", `5e3`), []string{"amount type"}},
		{with(initial, "amount", `1.5`), []string{"amount type"}},
		{with(initial, "amount", `true`), []string{"amount type"}},
		{with(initial, "amount", `0`), []string{"amount range"}},
		{with(initial, "amount", `-1`), []string{"amount range"}},
		{with(initial, "amount", `2147483648`), []string{"amount range"}},
		{with(initial, "amount", `99999999999999999999`), []string{"amount range"}},
		{with(initial, "description", long(2001)), []string{"description range"}},
		{with(initial, "description", `[]`), []string{"description type"}},
		{with(initial, "type", `"shop"`), []string{"type enum"}},
		{with(initial, "type", `1`), []string{"type type"}},
		{with(initial, "items", `{}`), []string{"items type"}},
		{with(initial, "items", `[]`), []string{"items range"}},
		{with(initial, "items", items(51)), []string{"items range"}},
		{with(initial, "items", `[1]`), []string{"items.0 type"}},
		{with(initial, "items", "["+item+","+item+"]"), []string{"items distinct"}},
		{with(initial, "items", one("number", "")), []string{"items.0.number required"}},
		{with(initial, "items", one("number", long(65))), []string{"items.0.number range"}},
		{with(initial, "items", one("name", long(201))), []string{"items.0.name range"}},
		{with(initial, "items", one("price", `-0.01`)), []string{"items.0.price range"}},
		{with(initial, "items", one("price", `"1"`)), []string{"items.0.price type"}},
		{with(initial, "items", one("quantity", `null`)), []string{"items.0.quantity required"}},
		{with(initial, "customer", `"Paul"`), []string{"customer type"}},
		{with(initial, "customer", `{}`), []string{"customer.address required", "customer.full_name required", "customer.phone required"}},
		{with(initial, "merchant", `[]`), []string{"merchant type"}},
		{with(initial, "merchant", `{"note":`+long(2001)+`}`), []string{"merchant.note range"}},
	} {
		wantFaults(t, w.init("/api", token, row.body), row.faults...)
	}
	for _, row := range []struct {
		body   string
		faults []string
	}{
		{`{}`, []string{"amount required", "externalNumber required", "items required", "provider required"}},
		{with(payment, "provider", `7`), []string{"provider type"}},
		{with(payment, "provider", long(33)), []string{"provider range"}},
		{with(payment, "customer", ""), []string{"customer.phone required"}},
		{with(payment, "customer", `{}`), []string{"customer.phone required"}},
		{with(payment, "customer", `{"phone":66000001}`), []string{"customer.phone type"}},
		{with(payment, "amount", `0`), []string{"amount range"}},
	} {
		wantFaults(t, w.pay(token, row.body), row.faults...)
	}
	for _, body := range []string{
		with(initial, "amount", "1"), with(initial, "amount", "2147483647", "externalNumber", `"b"`), with(initial, "items", items(50), "externalNumber", `"c"`),
		with(initial, "items", one("price", "1e400", "quantity", "0.000"), "externalNumber", long(200), "description", `""`),
		with(initial, "customer", "null", "merchant", "null", "type", "null", "externalNumber", `"e"`),
	} {
		if r := w.init("/api", token, body); r.status != http.StatusOK {
			t.Errorf("%.200s: %d %s", body, r.status, r.body)
		}
	}
}

// Addresses of return are compared as origins, after parsing.
func TestReturnOrigins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	try := func(url string) response {
		return w.init("/api", token, with(initial, "merchant", fmt.Sprintf(`{"redirectUrl":%q}`, url)))
	}
	for _, url := range []string{
		"https://partner.example.evil.test/", "https://partner.example@evil.test/", "https://user@partner.example/", "http://partner.example/", "https://partner.example:8443/",
		"https://partner.example./", "//partner.example/", "https:partner.example", "https:///partner.example/", "https://evil.test#https://partner.example", "https://partner.example\\@evil.test/",
		"https://evil.test/https://partner.example", " https://partner.example/", "https://partner%2Eexample/", "https://partner.example%00.evil.test/", "javascript:alert(1)//https://partner.example",
		"https://shop.example/", "https://pártner.example/", "https://partner。example/", "https://partner.example\tx/",
	} {
		wantFaults(t, try(url), "merchant.redirectUrl url")
	}
	wantFaults(t, w.init("/api", token, with(initial, "merchant", `{"backUrl":"https://evil.test/","redirectUrl":7}`)), "merchant.backUrl url", "merchant.redirectUrl type")
	wantFaults(t, try("https://partner.example/"+strings.Repeat("x", 2048)), "merchant.redirectUrl range")
	for _, url := range []string{"https://partner.example", "HTTPS://Partner.Example:443/a?b=https://evil.test#c", "https://shop.example:8443/"} {
		if r := try(url); r.status != http.StatusOK {
			t.Errorf("%s: %d %s", url, r.status, r.body)
		}
	}
}

// A client is limited before its calls cost a query, whether its credentials are right, wrong or made up.
func TestClientsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	w.perClient = 0.3 // three at once
	w.server = w.serve()
	for range 3 {
		wantRefusal(t, w.send(http.MethodGet, "/api/partners/payment-gateways", "oat_"+strings.Repeat("x", 43), ""), http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
	}
	queries := w.house.Pool.Stat().AcquireCount()
	for _, of := range []string{token, "oat_" + strings.Repeat("x", 43)} {
		r := w.send(http.MethodGet, "/api/partners/payment-gateways", of, "")
		wantRefusal(t, r, http.StatusTooManyRequests, "E_TOO_MANY_REQUESTS")
		if r.header.Get("Retry-After") != "1" || r.header.Get("Sunset") == "" {
			t.Errorf("%v", r.header)
		}
	}
	if n := w.house.Pool.Stat().AcquireCount(); n != queries {
		t.Errorf("%d queries", n-queries)
	}
}

// A refused form costs little: numbers are short, and no name is resolved for it.
func TestRefusedFormsAreCheap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	w.names = map[string][]netip.Addr{}
	priced := func(price string) string {
		return with(initial, "items", "["+with(item, "price", price)+"]")
	}
	wantFaults(t, w.init("/api", token, priced(strings.Repeat("9", 41))), "items.0.price range")
	if r := w.init("/api", token, priced(strings.Repeat("9", 40))); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	}
	wantFaults(t, w.init("/api", token, with(with(initial, "amount", "0"), "merchant", `{"webhookUrl":"https://`+panicking+`/"}`)), "amount range")
}

// A webhook's address is public. Names are resolved, and checked again at each call.
func TestWebhookAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	w.names = map[string][]netip.Addr{
		"public.example.org": {netip.MustParseAddr("93.184.216.34")}, "private.example.org": {netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("10.0.0.7")},
		"local.example.org": {netip.MustParseAddr("127.0.0.1")}, "metadata.example.org": {netip.MustParseAddr("169.254.169.254")}, "mapped.example.org": {netip.MustParseAddr("::ffff:10.0.0.7")},
	}
	try := func(url string) response {
		return w.init("/api", token, with(initial, "merchant", fmt.Sprintf(`{"webhookUrl":%q}`, url)))
	}
	for _, url := range []string{
		"https://user:pw@public.example.org/", "https://localhost/", "https://127.0.0.1/", "https://127.1/", "https://0x7f000001/", "https://2130706433/", "https://[::1]/", "https://10.0.0.7/",
		"https://printer.local/", "https://intranet/", "https://public.example.org:8443/", "http://public.example.org:8080/", "ftp://public.example.org/", "https://private.example.org/", "https://local.example.org/",
		"https://metadata.example.org/", "https://mapped.example.org/", "http://private.example.org/", "http://127.0.0.1:8080/",
	} {
		wantFaults(t, try(url), "merchant.webhookUrl url")
	}
	if n := len(w.processor.Events); n != 0 {
		t.Errorf("%d events: a payment was created", n)
	}
	for _, url := range []string{"https://public.example.org/hook?a=1", "http://public.example.org/hook", "https://unresolvable.example.org/"} {
		if r := try(url); r.status != http.StatusOK {
			t.Errorf("%s: %d %s", url, r.status, r.body)
		}
	}
	live0 := true
	live, err := cashin.Rotate(t.Context(), w.house.Pool, w.house.Keys, registries.Actor, shop, &live0, w.watch.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.minute()
	token = w.token(live)
	wantFaults(t, try("http://public.example.org/hook"), "merchant.webhookUrl url")
	if r := try("https://public.example.org/hook"); r.status != http.StatusOK {
		t.Errorf("live: %d %s", r.status, r.body)
	}
}
