package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/test/harness"

	"github.com/google/uuid"
)

const (
	secIdentifiers = "Identifiers"
	secSession     = "Checkout session"
	secCreate      = "POST /checkout/sessions"
	secFields      = "Session create request fields"
	secAmounts     = "Amount semantics"
	secGet         = "GET /checkout/sessions/{id}"
	secList        = "GET /checkout/sessions"
	secCancel      = "POST /checkout/sessions/{id}/cancel"
	secNotice      = "GET /checkout/sessions/{id}/notice"
	secReceipt     = "GET /checkout/sessions/{id}/receipt"
	secVerify      = "verify-completion"
	secToken       = "Completion token"
	secStates      = "States and transitions"
	secAuth        = "Authentication"
	secEvents      = "Events"
	secRedelivery  = "Events of a session"
	secErrors      = "Errors"
	secLimits      = "Limits"
	secVersioning  = "Versioning"
)

// accepts checks that a field of a creation takes these values, given as JSON.
func accepts(field string, values ...string) func(*testing.T, *contract) {
	return func(t *testing.T, c *contract) {
		for _, v := range values {
			if a := c.create(t, taxKey, c.with(fmt.Sprintf("%q:%s", field, v))); a.Status != http.StatusCreated {
				t.Errorf("%s %.80s: %d %s", field, v, a.Status, a.Body)
			}
		}
	}
}

// refuses checks that a field of a creation does not take these values, given as JSON.
func refuses(field string, values ...string) func(*testing.T, *contract) {
	return func(t *testing.T, c *contract) {
		for _, v := range values {
			only(t, c.create(t, taxKey, c.with(fmt.Sprintf("%q:%s", field, v))), field)
		}
	}
}

func both(all ...func(*testing.T, *contract)) func(*testing.T, *contract) {
	return func(t *testing.T, c *contract) {
		for _, f := range all {
			f(t, c)
		}
	}
}

func text(n int) string { return strconv.Quote(strings.Repeat("é", n)) }

var creationStatements = []statement{
	{secIdentifiers, "session_id / id: chs_..., appears in /c/{session_id} and /embed/{session_id}", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		matches(t, "id", s["id"], `^chs_[0-9a-z]{20,}$`)
		equal(t, "checkout_url", s["checkout_url"], c.URL(harness.AtService, "/c/"+s["id"].(string)))
		equal(t, "embed_checkout_url", s["embed_checkout_url"], c.URL(harness.AtService, "/embed/"+s["id"].(string)))
	}},
	{secIdentifiers, "client_secret: chs_secret_..., shown once at creation", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		matches(t, "client_secret", s["client_secret"], `^chs_secret_[0-9A-Za-z]{32,}$`)
		for _, a := range []harness.Answer{c.get(t, taxKey, "/"+s["id"].(string)), c.get(t, taxKey, "?order_id="+s["order_id"].(string)), c.cancel(t, taxKey, s["id"], "")} {
			if strings.Contains(string(a.Body), "chs_secret_") {
				t.Errorf("client_secret is shown again in %s", a.Body)
			}
		}
	}},
	{secIdentifiers, "payment_ref: 16 digits, distinct from order_id and notice_id", func(t *testing.T, c *contract) {
		refs := map[any]bool{}
		for range 20 {
			s := c.created(t, taxKey, c.with(""))
			matches(t, "payment_ref", s["payment_ref"], `^\d{16}$`)
			refs[s["payment_ref"]] = true
		}
		equal(t, "different references", len(refs), 20)
	}},
	{secSession, "status open, paid false, echo of order_id, amount and currency at creation", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, `{"order_id":"echo-é","amount":4200,"currency":"XAF"}`)
		equal(t, "session", []any{s["order_id"], s["amount"], s["currency"], s["status"], s["paid"]}, []any{"echo-é", 4200, "XAF", "open", false})
	}},
	{secSession, "embed_checkout_url and client_secret are null unless embedded", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		equal(t, "embed_checkout_url and client_secret", []any{s["embed_checkout_url"], s["client_secret"]}, []any{nil, nil})
	}},
	{secSession, "expires_at: ISO 8601, default 24 hours", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		if left := time.Until(parseTime(t, s["expires_at"])); left < 23*time.Hour+58*time.Minute || left > 24*time.Hour+time.Minute {
			t.Errorf("the session expires in %v, want 24 hours", left)
		}
	}},
	{secCreate, "response 201: the session resource", func(t *testing.T, c *contract) {
		a := c.create(t, taxKey, c.with(""))
		equal(t, "status", a.Status, http.StatusCreated)
		equal(t, "Content-Type", a.Header.Get("Content-Type"), "application/json")
		matches(t, "Location", a.Header.Get("Location"), `^/api/v1/checkout/sessions/chs_`)
		matches(t, "X-Request-Id", a.Header.Get("X-Request-Id"), uuidPattern)
	}},
	{secCreate, "required header: Idempotency-Key", func(t *testing.T, c *contract) {
		post := func(key ...string) harness.Answer {
			return c.Call(t, http.MethodPost, c.Sessions(""), c.with(""), append([]string{"Authorization", "Bearer " + taxKey, "Content-Type", "application/json"}, key...)...)
		}
		refused(t, post(), 400, "idempotency.key_required")
		refused(t, post("Idempotency-Key", strings.Repeat("k", 256)), 400, "idempotency.key_invalid")
		refused(t, post("Idempotency-Key", "clé"), 400, "idempotency.key_invalid")
		equal(t, "255 characters", post("Idempotency-Key", uuid.NewString()+strings.Repeat("k", 219)).Status, 201)
	}},
	{secCreate, "§ 1: same key, same body as canonical JSON: the first answer again, Idempotent-Replayed", func(t *testing.T, c *contract) {
		key, order := uuid.NewString(), c.order()
		one := c.keyed(t, taxKey, key, fmt.Sprintf(`{"order_id":%q,"amount":700,"mode":"embedded"}`, order))
		two := c.keyed(t, taxKey, key, fmt.Sprintf(` { "mode":"embedded","amount":700,"order_id":%q}`, order))
		equal(t, "statuses", []int{one.Status, two.Status}, []int{201, 201})
		equal(t, "Idempotent-Replayed", []string{one.Header.Get("Idempotent-Replayed"), two.Header.Get("Idempotent-Replayed")}, []string{"", "true"})
		equal(t, "body", string(two.Body), string(one.Body)) // with client_secret, while the session is open
		var s map[string]any
		one.Into(t, &s)
		c.cancel(t, taxKey, s["id"], "")
		var again map[string]any
		c.keyed(t, taxKey, key, fmt.Sprintf(`{"order_id":%q,"amount":700,"mode":"embedded"}`, order)).Into(t, &again)
		equal(t, "replay after the end", []any{again["id"], again["status"], again["client_secret"]}, []any{s["id"], "open", nil})
	}},
	{secCreate, "§ 1: same key, other body: 409 idempotency.key_reused", func(t *testing.T, c *contract) {
		key := uuid.NewString()
		c.keyed(t, taxKey, key, c.with(""))
		refused(t, c.keyed(t, taxKey, key, c.with("")), 409, "idempotency.key_reused")
	}},
	{secCreate, "§ 1: same key, first call still running: answered with its answer", func(t *testing.T, c *contract) {
		key, body := uuid.NewString(), c.with("")
		answers := make([]harness.Answer, 8)
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() { answers[i] = c.keyed(t, taxKey, key, body) })
		}
		all.Wait()
		first := 0
		for _, a := range answers {
			equal(t, "answer", []any{a.Status, string(a.Body)}, []any{201, string(answers[0].Body)})
			if a.Header.Get("Idempotent-Replayed") == "" {
				first++
			}
		}
		equal(t, "first answers", first, 1)
	}},
	{secCreate, "§ 1: a refusal that depends on configuration is replayed; a refusal of form leaves the key unused", func(t *testing.T, c *contract) {
		key, body := uuid.NewString(), c.with(`"service_code":"vignette_2019"`)
		only(t, c.keyed(t, taxKey, key, body), "service_code")
		again := c.keyed(t, taxKey, key, body)
		only(t, again, "service_code")
		equal(t, "Idempotent-Replayed", again.Header.Get("Idempotent-Replayed"), "true")
		key = uuid.NewString()
		only(t, c.keyed(t, taxKey, key, c.with(`"mode":"popup"`)), "mode")
		equal(t, "mended", c.keyed(t, taxKey, key, c.with("")).Status, 201)
	}},
	{secCreate, "§ 1: order_id has an open session: 409 checkout.order_open", func(t *testing.T, c *contract) {
		body := c.with("")
		s, key := c.created(t, taxKey, body), uuid.NewString()
		for range 2 { // the second answer is a replay
			p := refusedBody(t, c.keyed(t, taxKey, key, body), 409, "checkout.order_open")
			equal(t, "the session that has the order", p["session_id"], s["id"])
			matches(t, "detail", p["detail"], s["id"].(string))
		}
	}},
	{secCreate, "§ 1: order_id has a completed session: 409 checkout.order_paid", func(t *testing.T, c *contract) {
		body := c.with("")
		s := c.created(t, taxKey, body)
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		equal(t, "the session that paid it", refusedBody(t, c.create(t, taxKey, body), 409, "checkout.order_paid")["session_id"], s["id"])
	}},
	{secCreate, "§ 1: keys and orders are scoped to application and mode", func(t *testing.T, c *contract) {
		key, body := uuid.NewString(), c.with("")
		var ids []any
		for _, k := range []string{taxKey, taxLiveKey, customsKey} {
			var s map[string]any
			if a := c.keyed(t, k, key, body); a.Status != 201 || a.Header.Get("Idempotent-Replayed") != "" {
				t.Errorf("creation: %d %s", a.Status, a.Body)
			} else {
				a.Into(t, &s)
			}
			ids = append(ids, s["id"])
		}
		slices.SortFunc(ids, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		equal(t, "different sessions", len(slices.Compact(ids)), 3)
		refused(t, c.create(t, taxSecondKey, body), 409, "checkout.order_open") // another key of the application
	}},
	{secCreate, "embedded mode requires configured embed origins; without them: 422 embed.origins_required", func(t *testing.T, c *contract) {
		refused(t, c.create(t, customsKey, c.with(`"mode":"embedded"`)), 422, "embed.origins_required")
		equal(t, "status with origins", c.create(t, taxKey, c.with(`"mode":"embedded"`)).Status, 201)
	}},
	{secCreate, "§ 1: no offer with a configured account in that mode and currency: 422 checkout.no_channel", func(t *testing.T, c *contract) {
		key, body := uuid.NewString(), c.with("")
		for replay, want := range []string{"", "true"} {
			a := c.keyed(t, customsLive, key, body) // developer mode simulates test accounts only
			faults := refused(t, a, 422, "checkout.no_channel")
			if len(faults) != 1 || faults[0].Field != "currency" || a.Header.Get("Idempotent-Replayed") != want {
				t.Errorf("answer %d: %+v, Idempotent-Replayed %q", replay, faults, a.Header.Get("Idempotent-Replayed"))
			}
		}
		equal(t, "in test mode", c.create(t, customsKey, body).Status, 201)
		only(t, c.create(t, customsLive, c.with(`"currency":"EUR"`)), "currency")                   // taken by no offer at all
		refused(t, c.create(t, taxLiveKey, c.with(`"currency":"EUR"`)), 422, "checkout.no_channel") // the clerk takes XAF only
		equal(t, "cash", c.create(t, taxLiveKey, c.with("")).Status, 201)
	}},
	{secCreate, "currency outside the supported list: 422 generic.validation_failed", both(refuses("currency", `"XOF"`, `"ZZZ"`, `"eur"`, `"EU"`, `7`), func(t *testing.T, c *contract) {
		only(t, c.create(t, customsKey, c.with(`"currency":"EUR"`)), "currency") // the application has no card offer
	})},
	{secCreate, "with a platform-scope key the body carries tenant_id and may carry service_code", func(t *testing.T, c *contract) {
		only(t, c.create(t, portalKey, c.with("")), "tenant_id")
		only(t, c.create(t, portalKey, c.with(`"tenant_id":"`+customsAgency+`","service_code":"patente"`)), "service_code") // a service of another agency
		s := c.created(t, portalKey, c.with(`"tenant_id":"`+taxAgency+`","service_code":"patente"`))
		equal(t, "its integrator sees it", c.get(t, taxKey, "/"+s["id"].(string)).Status, 200)
		refused(t, c.create(t, portalKey, c.with(`"tenant_id":"`+otherAgency+`"`)), 403, "generic.forbidden")
	}},
	{secFields, "order_id: string, 1-200, required, unique per application", both(accepts("customer_id", `"x"`), func(t *testing.T, c *contract) {
		only(t, c.create(t, taxKey, `{"amount":1}`), "order_id")
		for _, v := range []string{`""`, text(201), `7`, `null`, `["a"]`, `"a\u0000"`} {
			only(t, c.create(t, taxKey, `{"amount":1,"order_id":`+v+`}`), "order_id")
		}
		equal(t, "200 characters", c.create(t, taxKey, `{"amount":1,"order_id":`+text(200)+`}`).Status, 201)
	})},
	{secFields, "amount: integer > 0, required, minor units", func(t *testing.T, c *contract) {
		only(t, c.create(t, taxKey, `{"order_id":"x"}`), "amount")
		for _, v := range []string{`0`, `-1`, `1.5`, `1e3`, `"5000"`, `null`, `true`, `9007199254740992`, `99999999999999999999999`} {
			only(t, c.create(t, taxKey, fmt.Sprintf(`{"order_id":%q,"amount":%s}`, c.order(), v)), "amount")
		}
		equal(t, "one", c.create(t, taxKey, fmt.Sprintf(`{"order_id":%q,"amount":1}`, c.order())).Status, 201)
	}},
	{secFields, "currency: ISO 4217, default XAF", func(t *testing.T, c *contract) {
		equal(t, "currency", c.created(t, taxKey, c.with(""))["currency"], "XAF")
	}},
	{secFields, "mode: hosted or embedded, default hosted", both(accepts("mode", `"hosted"`, `"embedded"`, `null`), refuses("mode", `"popup"`, `""`, `1`), func(t *testing.T, c *contract) {
		equal(t, "mode", c.created(t, taxKey, c.with(""))["mode"], "hosted")
	})},
	{secFields, "tenant_id: UUID; an application key may send its own agency's; any other is a 422", both(accepts("tenant_id", `"`+taxAgency+`"`), refuses("tenant_id", `"impots"`, `"`+customsAgency+`"`, `4`))},
	{secFields, "service_code: 1-50, must reference an active catalogue service", both(accepts("service_code", `"patente"`), refuses("service_code", `"vignette_2019"`, `"unknown"`, `""`, text(51)))},
	{secFields, "description: 1-200", both(accepts("description", text(1), text(200), `null`), refuses("description", `""`, text(201)))},
	{secFields, "note: 1-500, invisible to the citizen", both(accepts("note", text(500)), refuses("note", `""`, text(501)), func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"note":"for-the-agency-only","description":"for-the-citizen"`))
		page := c.Citizen(s["id"].(string)).Page(t)
		if strings.Contains(page, "for-the-agency-only") || !strings.Contains(page, "for-the-citizen") {
			t.Error("the page shows the note or lacks the description")
		}
	})},
	{secFields, "customer: object { name?, email?, phone? }", both(
		accepts("customer", `{}`, `{"name":"A. C."}`, `{"email":"a@b.example"}`, `{"name":"A","email":"a@b.example","phone":"+242066000001"}`, `null`),
		refuses("customer", `[]`, `"A"`),
		func(t *testing.T, c *contract) {
			only(t, c.create(t, taxKey, c.with(`"customer":{"email":"nobody"}`)), "customer.email")
			only(t, c.create(t, taxKey, c.with(`"customer":{"mail":"a@b.example"}`)), "customer.mail")
		})},
	{secFields, "customer_id: 1-200", both(accepts("customer_id", text(200)), refuses("customer_id", `""`, text(201)))},
	{secFields, "metadata: string to string, max 20 keys, key max 64, value max 500", func(t *testing.T, c *contract) {
		object := func(n, key, value int) string {
			m := map[string]string{}
			for i := range n {
				m[fmt.Sprintf("%02d", i)+strings.Repeat("k", key-2)] = strings.Repeat("v", value)
			}
			b, _ := json.Marshal(m)
			return string(b)
		}
		accepts("metadata", object(20, 64, 500), `{"empty":""}`, `{}`, `null`)(t, c)
		refuses("metadata", object(21, 3, 1), `[]`, `"x"`)(t, c)
		for fields, at := range map[string]string{
			`{"case":7}`: "metadata.case", `{"case":null}`: "metadata.case", `{"case":"` + strings.Repeat("v", 501) + `"}`: "metadata.case", `{"":"v"}`: `metadata.""`,
		} {
			only(t, c.create(t, taxKey, c.with(`"metadata":`+fields)), at)
		}
	}},
	{secFields, "success_url, cancel_url: URL, max 2048; absolute https, with test keys also http; no userinfo", func(t *testing.T, c *contract) {
		for _, field := range []string{"success_url", "cancel_url"} {
			accepts(field, `"https://guichet.example/merci?x=1#y"`, `"http://guichet.example"`, `"https://guichet.example/`+strings.Repeat("a", 2024)+`"`)(t, c)
			refuses(field, `"/merci"`, `"javascript:alert(1)"`, `"https://u:p@guichet.example"`, `"https://"`, `"https://guichet.example/`+strings.Repeat("a", 2025)+`"`)(t, c)
			only(t, c.create(t, taxLiveKey, c.with(`"`+field+`":"http://guichet.example"`)), field)
		}
	}},
	{secFields, "§ 2: unknown fields are refused", refuses("ordre", `"x"`)},
	{secFields, "§ 2: all faults in one answer, of form and of configuration together", func(t *testing.T, c *contract) {
		faults := refused(t, c.create(t, customsKey, `{"order_id":"","amount":0,"currency":"EUR","service_code":"patente","zz":1}`), 422, "generic.validation_failed")
		var fields []string
		for _, f := range faults {
			fields = append(fields, f.Field)
		}
		slices.Sort(fields)
		equal(t, "fields", fields, []string{"amount", "currency", "order_id", "service_code", "zz"})
	}},
	{secAmounts, "mobile money and agency: XAF; card: the contract's list", func(t *testing.T, c *contract) {
		for _, code := range strings.Fields("XAF USD EUR GBP AUD CAD CHF DKK NOK SEK PLN HUF CZK RON BGN MXN BRL ARS CLP COP PEN INR SGD HKD TWD KRW JPY NZD ZAR ILS TRY AED SAR THB MYR PHP IDR VND") {
			equal(t, code, c.created(t, taxKey, c.with(`"currency":"`+code+`"`))["currency"], code)
		}
	}},
	{secAmounts, "the amount excludes service fees", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		_, w := c.webhook(t, "tax", s["id"], "checkout.completed")
		equal(t, "amount, fee, total", []any{w["amount"], w["fee_amount"], w["total_amount"]}, []any{5000, 75, 5075})
	}},
}

var readStatements = []statement{
	{secGet, "returns one session, same shape as create", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		var got map[string]any
		c.get(t, taxKey, "/"+s["id"].(string)).Into(t, &got)
		s["client_secret"] = nil
		equal(t, "session", got, s)
	}},
	{secGet, "404: a foreign and an unknown id have the same answer", func(t *testing.T, c *contract) {
		s := c.created(t, customsKey, c.with(""))
		foreign := refusedBody(t, c.get(t, taxKey, "/"+s["id"].(string)), 404, "checkout.session_not_found")
		for _, id := range []string{"chs_00000000000000000000000000000000000000000", "chs_x", "x", "%00", "..%2f..", strings.Repeat("a", 3000)} {
			equal(t, id, refusedBody(t, c.get(t, taxKey, "/"+id), 404, "checkout.session_not_found"), foreign)
		}
	}},
	{secGet, "optional query tenant_id for platform keys; without it every granted agency is searched", func(t *testing.T, c *contract) {
		s := c.created(t, customsKey, c.with(""))
		id := "/" + s["id"].(string)
		equal(t, "statuses", []int{
			c.get(t, portalKey, id).Status, c.get(t, portalKey, id+"?tenant_id="+customsAgency).Status, c.get(t, portalKey, id+"?tenant_id="+taxAgency).Status,
		}, []int{200, 200, 404})
		refused(t, c.get(t, portalKey, id+"?tenant_id="+otherAgency), 403, "generic.forbidden")
		only(t, c.get(t, taxKey, id+"?tenant_id="+customsAgency), "tenant_id")
		refused(t, c.get(t, taxKey, id+"?tenant_id=impots"), 400, "generic.invalid_query")
		refused(t, c.get(t, taxKey, id+"?page=1"), 400, "generic.invalid_query")
	}},
	{secList, "{ items[], page, page_size, total }; page default 1, page_size default by configuration", func(t *testing.T, c *contract) {
		_, page := c.list(t, customsKey, "?order_id=nothing")
		equal(t, "page", page, map[string]any{"items": []any{}, "page": 1, "page_size": 20, "total": 0})
	}},
	{secList, "newest first by id; pages without gaps or repetitions", func(t *testing.T, c *contract) {
		customer := uuid.NewString()
		var made []string
		for range 7 {
			made = append(made, c.created(t, taxKey, c.with(`"customer_id":"`+customer+`"`))["id"].(string))
			time.Sleep(2 * time.Millisecond) // ids are ordered by millisecond
		}
		slices.Reverse(made)
		var got []string
		for page := range 4 {
			ids, p := c.list(t, taxKey, fmt.Sprintf("?customer_id=%s&page_size=2&page=%d", customer, page+1))
			equal(t, "total", p["total"], 7)
			got = append(got, ids...)
		}
		equal(t, "ids", got, made)
	}},
	{secList, "filters order_id, status, customer_id, payment_ref, exact", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"customer_id":"filter-Ç"`))
		id := []string{s["id"].(string)}
		order := s["order_id"].(string)
		for query, want := range map[string][]string{
			"?order_id=" + order: id, "?order_id=" + strings.ToUpper(order): nil, "?order_id=" + order + "&status=open": id, "?order_id=" + order + "&status=completed": nil,
			"?customer_id=filter-%C3%87": id, "?customer_id=filter": nil, "?payment_ref=" + s["payment_ref"].(string): id, "?payment_ref=1": nil,
			"?order_id=" + order + "&customer_id=x": nil, "?tenant_id=" + taxAgency + "&order_id=" + order: id,
		} {
			got, _ := c.list(t, taxKey, query)
			equal(t, query, got, want)
		}
	}},
	{secList, "shows a session after its creation is answered, and its end after its cancellation is answered", func(t *testing.T, c *contract) {
		for range 20 {
			s := c.created(t, taxKey, c.with(""))
			order := s["order_id"].(string)
			ids, _ := c.list(t, taxKey, "?order_id="+order+"&status=open")
			c.cancel(t, taxKey, s["id"], "")
			open, _ := c.list(t, taxKey, "?order_id="+order+"&status=open")
			if len(ids) != 1 || len(open) != 0 {
				t.Errorf("open after creation %v, after cancellation %v", ids, open)
			}
		}
	}},
	{secList, "tenant_id: platform key context; without it all granted agencies", func(t *testing.T, c *contract) {
		customer := uuid.NewString()
		c.created(t, taxKey, c.with(`"customer_id":"`+customer+`"`))
		c.created(t, customsKey, c.with(`"customer_id":"`+customer+`"`))
		count := func(key, query string) int { ids, _ := c.list(t, key, "?customer_id="+customer+query); return len(ids) }
		equal(t, "seen", []int{count(portalKey, ""), count(portalKey, "&tenant_id="+taxAgency), count(taxKey, "")}, []int{2, 1, 1})
		refused(t, c.get(t, portalKey, "?tenant_id="+otherAgency), 403, "generic.forbidden")
	}},
	{secList, "400: unknown, repeated or malformed query parameters, all in one answer", func(t *testing.T, c *contract) {
		for query, fields := range map[string][]string{
			"?page=0": {"page"}, "?page=x": {"page"}, "?page_size=0": {"page_size"}, "?page_size=101": {"page_size"}, "?status=paid": {"status"},
			"?order_id=": {"order_id"}, "?order_id=" + strings.Repeat("a", 201): {"order_id"}, "?customer_id=" + strings.Repeat("a", 201): {"customer_id"},
			"?payment_ref=" + strings.Repeat("1", 17): {"payment_ref"}, "?tenant_id=x": {"tenant_id"}, "?ordre=1": {"ordre"}, "?page=1&page=2": {"page"},
			"?page=0&status=paid&z=1": {"status", "page", "z"}, "?order_id=%zz": {"query"}, "?order_id=%ff": {"order_id"},
		} {
			var got []string
			for _, f := range refused(t, c.get(t, taxKey, query), 400, "generic.invalid_query") {
				got = append(got, f.Field)
			}
			equal(t, query, got, fields)
		}
	}},
	{secCancel, "200: session with status cancelled and paid false; emits checkout.cancelled", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		var got map[string]any
		a := c.cancel(t, taxKey, s["id"], "")
		a.Into(t, &got)
		equal(t, "answer", []any{a.Status, got["status"], got["paid"]}, []any{200, "cancelled", false})
		_, w := c.webhook(t, "tax", s["id"], "checkout.cancelled")
		equal(t, "webhook", []any{w["status"], w["paid"]}, []any{"cancelled", false})
	}},
	{secCancel, "409 (already terminal), also for concurrent cancellations", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		statuses := make([]int, 4)
		var all sync.WaitGroup
		for i := range statuses {
			all.Go(func() { statuses[i] = c.cancel(t, taxKey, s["id"], "").Status })
		}
		all.Wait()
		slices.Sort(statuses)
		equal(t, "statuses", statuses, []int{200, 409, 409, 409})
		refused(t, c.cancel(t, taxKey, s["id"], ""), 409, "checkout.session_ended")
	}},
	{secCancel, "works on every open session, also with a collection in flight; a success afterwards is a late payment", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		c.Citizen(s["id"].(string)).Pay(t, "06 600 00 99")
		paying := c.Collected(t, harness.Session{PaymentRef: s["payment_ref"].(string)})
		equal(t, "status", c.cancel(t, taxKey, s["id"], "").Status, 200)
		c.Control(t, "collections/"+paying.ID+"/approve", "")
		_, w := c.webhook(t, "tax", s["id"], "checkout.late_payment")
		body, _ := json.Marshal(w)
		c.conforms(t, "LatePaymentEvent", body)
		equal(t, "webhook", []any{w["status"], w["paid"], w["total_amount"]}, []any{"cancelled", false, 5075})
		refused(t, c.cancel(t, taxKey, s["id"], ""), 409, "checkout.session_ended")
	}},
	{secCancel, "404: a foreign or unknown id; tenant_id as for reading", func(t *testing.T, c *contract) {
		s := c.created(t, customsKey, c.with(""))
		refused(t, c.cancel(t, taxKey, s["id"], ""), 404, "checkout.session_not_found")
		refused(t, c.cancel(t, taxKey, "chs_x", ""), 404, "checkout.session_not_found")
		refused(t, c.cancel(t, portalKey, s["id"], "?tenant_id="+taxAgency), 404, "checkout.session_not_found")
		refused(t, c.cancel(t, portalKey, s["id"], "?tenant_id="+otherAgency), 403, "generic.forbidden")
		equal(t, "by the portal", c.cancel(t, portalKey, s["id"], "").Status, 200)
	}},
	{secStates, "after expiry, failure or cancellation the same order_id may be used with a new session", func(t *testing.T, c *contract) {
		body := c.with("")
		one := c.created(t, taxKey, body)
		c.cancel(t, taxKey, one["id"], "")
		two := c.created(t, taxKey, body)
		c.settle(t, taxKey, two, "06 600 00 05", "failed")
		three := c.created(t, taxKey, body)
		if one["payment_ref"] == two["payment_ref"] || two["payment_ref"] == three["payment_ref"] {
			t.Error("a payment_ref is used twice")
		}
		ids, _ := c.list(t, taxKey, "?order_id="+one["order_id"].(string))
		equal(t, "sessions of the order", len(ids), 3)
	}},
	{secStates, "mobile money collect refused: failed, with its failure_code", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		c.settle(t, taxKey, s, "06 600 00 04", "failed")
		_, w := c.webhook(t, "tax", s["id"], "checkout.failed")
		equal(t, "failure_code", w["failure_code"], "collect.rejected")
		refused(t, c.cancel(t, taxKey, s["id"], ""), 409, "checkout.session_ended")
	}},
}

// refusedBody returns a problem document without its request_id.
func refusedBody(t *testing.T, a harness.Answer, status int, code string) map[string]any {
	t.Helper()
	refused(t, a, status, code)
	var p map[string]any
	a.Into(t, &p)
	delete(p, "request_id")
	return p
}

// notice asks for the notice of a session.
func (c *contract) notice(t *testing.T, key string, id any, query string) harness.Answer {
	t.Helper()
	return c.Call(t, http.MethodGet, c.Sessions(fmt.Sprintf("/%s/notice%s", id, query)), "", "Authorization", "Bearer "+key)
}

// noticeStatements are of docs/design/documents.md, not of the contract.
var noticeStatements = []statement{
	{secNotice, "200: a PDF of an open session, in French or in English; 409 after its end and for an embedded session", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		for query, name := range map[string]string{"": "avis", "?lang=fr": "avis", "?lang=en": "notice"} {
			a := c.notice(t, taxKey, s["id"], query)
			equal(t, "status", a.Status, 200)
			equal(t, "Content-Type", a.Header.Get("Content-Type"), "application/pdf")
			matches(t, "Content-Disposition", a.Header.Get("Content-Disposition"), `^attachment; filename="`+name+`-AV\d{14}\.pdf"$`)
			matches(t, "Cache-Control", a.Header.Get("Cache-Control"), "no-store")
			if !strings.HasPrefix(string(a.Body), "%PDF-1.") {
				t.Errorf("%q: %.40q", query, a.Body)
			}
		}
		refused(t, c.notice(t, taxKey, s["id"], "?lang=de"), 400, "generic.invalid_query")
		refused(t, c.notice(t, taxKey, "chs_x", ""), 404, "checkout.session_not_found")
		c.cancel(t, taxKey, s["id"], "")
		refused(t, c.notice(t, taxKey, s["id"], ""), 409, "checkout.no_notice")
		refused(t, c.notice(t, taxKey, c.created(t, taxKey, c.with(`"mode":"embedded"`))["id"], ""), 409, "checkout.no_notice")
	}},
}

// receipt asks for the receipts of a session.
func (c *contract) receipt(t *testing.T, id any, query, accept string) harness.Answer {
	t.Helper()
	return c.Call(t, http.MethodGet, c.Sessions(fmt.Sprintf("/%s/receipt%s", id, query)), "", "Authorization", "Bearer "+taxKey, "Accept", accept)
}

// receiptStatements are of docs/design/documents.md, not of the contract.
var receiptStatements = []statement{
	{secReceipt, "200: tokens as JSON, a file with Accept: application/pdf, always the same bytes; 409 before the payment", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"customer":{"name":"Élise Mbemba"}`))
		refused(t, c.receipt(t, s["id"], "", "*/*"), 409, "checkout.not_completed")
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		a := c.receipt(t, s["id"], "", "*/*")
		c.conforms(t, "Receipts", a.Body)
		var got struct {
			Items []struct {
				TransactionID string `json:"transaction_id"`
				Token, URL    string
			}
		}
		a.Into(t, &got)
		equal(t, "receipts", len(got.Items), 1)
		equal(t, "url", got.Items[0].URL, c.URL(harness.AtService, "/q#"+got.Items[0].Token))
		pdf := c.receipt(t, s["id"], "?lang=fr&transaction_id="+got.Items[0].TransactionID, "application/pdf")
		equal(t, "status", pdf.Status, 200)
		equal(t, "Content-Type", pdf.Header.Get("Content-Type"), "application/pdf")
		matches(t, "Content-Disposition", pdf.Header.Get("Content-Disposition"), `^attachment; filename="recu-AV\d{14}\.pdf"$`)
		hosted := c.Call(t, http.MethodGet, c.URL(harness.AtService, "/c/"+s["id"].(string)+"/receipt.pdf"), "")
		if !bytes.Equal(pdf.Body, hosted.Body) || !bytes.HasPrefix(pdf.Body, []byte("%PDF-1.")) {
			t.Error("the file of the citizen's page has other bytes")
		}
		equal(t, "fault", refused(t, c.receipt(t, s["id"], "?transaction_id="+uuid.NewString(), "application/pdf"), 422, "generic.validation_failed")[0].Field, "transaction_id")
	}},
}

var completionStatements = []statement{
	{secVerify, "response 200: session_id, order_id, status, paid, notice_id, tenant_id, metadata, service_code, service_label; in addition amount, currency and what is known of the payment", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded","service_code":"patente","metadata":{"case":"é"}`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		var got map[string]any
		c.verify(t, taxKey, `{"completion_token":"`+c.token(t, s)+`"}`).Into(t, &got)
		_, w := c.webhook(t, "tax", s["id"], "checkout.completed")
		equal(t, "answer", got, map[string]any{
			"session_id": s["id"], "order_id": s["order_id"], "status": "completed", "paid": true, "notice_id": w["notice_id"], "tenant_id": taxAgency,
			"metadata": map[string]any{"case": "é"}, "service_code": "patente", "service_label": "Contribution de la patente",
			"amount": s["amount"], "currency": s["currency"],
			"completed_at": w["completed_at"].(string)[:19] + "Z", "failed_at": nil, "reversed_at": nil, "failure_code": nil, "transaction_id": w["transaction_id"],
			"channel": w["channel"], "offer_id": w["offer_id"], "operator_ref": w["operator_ref"], "fee_amount": w["fee_amount"], "total_amount": w["total_amount"],
		})
		// A read tells the same.
		var read map[string]any
		c.get(t, taxKey, "/"+s["id"].(string)).Into(t, &read)
		for _, name := range []string{"completed_at", "failed_at", "reversed_at", "failure_code", "notice_id", "transaction_id", "channel", "offer_id", "operator_ref", "fee_amount", "total_amount", "metadata", "service_code", "service_label"} {
			equal(t, name+" of a read", read[name], got[name])
		}
		matches(t, "notice_id", got["notice_id"], uuidPattern)
	}},
	{secVerify, "replay after consumption returns 200 with the current state", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		body := `{"completion_token":"` + c.token(t, s) + `"}`
		one, two := c.verify(t, taxKey, body), c.verify(t, taxKey, body)
		equal(t, "statuses", []int{one.Status, two.Status}, []int{200, 200})
		equal(t, "Idempotent-Replayed", []string{one.Header.Get("Idempotent-Replayed"), two.Header.Get("Idempotent-Replayed")}, []string{"", "true"})
		equal(t, "body", string(two.Body), string(one.Body))
	}},
	{secVerify, "the latest twenty tokens of a session are valid; older ones are a 404 like an unknown one", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		var tokens []string
		for range 23 { // a page that is opened again and again
			tokens = append(tokens, c.token(t, s))
		}
		unknown := refusedBody(t, c.verify(t, taxKey, `{"completion_token":"cpt_x"}`), 404, "checkout.completion_token_not_found")
		for i, token := range tokens {
			a := c.verify(t, taxKey, `{"completion_token":"`+token+`"}`)
			if i < 3 {
				equal(t, "an old token", refusedBody(t, a, 404, "checkout.completion_token_not_found"), unknown)
			} else {
				equal(t, "a token", []string{fmt.Sprint(a.Status), a.Header.Get("Idempotent-Replayed")}, []string{"200", ""})
			}
		}
	}},
	{secVerify, "404 checkout.completion_token_not_found: unknown, malformed, of another application or mode, with the same answer", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		token := c.token(t, s)
		want := refusedBody(t, c.verify(t, customsKey, `{"completion_token":"`+token+`"}`), 404, "checkout.completion_token_not_found")
		for _, other := range []string{"cpt_", "x", token + "0", token[:len(token)-1], strings.ToUpper(token), strings.Repeat("c", 5000), token[:len(token)-1] + "0" + ""} {
			if other == token {
				continue
			}
			equal(t, other, refusedBody(t, c.verify(t, taxKey, `{"completion_token":"`+other+`"}`), 404, "checkout.completion_token_not_found"), want)
		}
		equal(t, "live", refusedBody(t, c.verify(t, taxLiveKey, `{"completion_token":"`+token+`"}`), 404, "checkout.completion_token_not_found"), want)
		equal(t, "its own", c.verify(t, taxKey, `{"completion_token":"`+token+`"}`).Status, 200)
	}},
	{secVerify, "order_id: optional; a token of another order is a 404 like an unknown one and is not consumed", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		body := `{"completion_token":"` + c.token(t, s) + `","order_id":%q}`
		unknown := refusedBody(t, c.verify(t, taxKey, `{"completion_token":"cpt_x"}`), 404, "checkout.completion_token_not_found")
		equal(t, "another", refusedBody(t, c.verify(t, taxKey, fmt.Sprintf(body, "another")), 404, "checkout.completion_token_not_found"), unknown)
		its := c.verify(t, taxKey, fmt.Sprintf(body, s["order_id"]))
		equal(t, "its own", []string{fmt.Sprint(its.Status), its.Header.Get("Idempotent-Replayed")}, []string{"200", ""})
		only(t, c.verify(t, taxKey, `{"completion_token":"cpt_x","order_id":""}`), "order_id")
		only(t, c.verify(t, taxKey, `{"completion_token":"cpt_x","order_id":"`+strings.Repeat("o", 201)+`"}`), "order_id")
	}},
	{secVerify, "completion_token: string, min length 1, required; tenant_id: UUID, required with a platform key", func(t *testing.T, c *contract) {
		for _, body := range []string{`{}`, `{"completion_token":""}`, `{"completion_token":null}`, `{"completion_token":7}`} {
			only(t, c.verify(t, taxKey, body), "completion_token")
		}
		only(t, c.verify(t, taxKey, `{"completion_token":"cpt_x","token":"x"}`), "token")
		only(t, c.verify(t, portalKey, `{"completion_token":"cpt_x"}`), "tenant_id")
		only(t, c.verify(t, taxKey, `{"completion_token":"cpt_x","tenant_id":"`+customsAgency+`"}`), "tenant_id")
		only(t, c.verify(t, taxKey, `{"completion_token":"cpt_x","tenant_id":"impots"}`), "tenant_id")
	}},
	{secVerify, "§ 2: 403 for a platform key that names an agency it is not granted", func(t *testing.T, c *contract) {
		refused(t, c.verify(t, portalKey, `{"completion_token":"cpt_x","tenant_id":"`+otherAgency+`"}`), 403, "generic.forbidden")
	}},
	{secVerify, "a platform key verifies what belongs to its agencies' integrators", func(t *testing.T, c *contract) {
		s := c.created(t, portalKey, c.with(`"mode":"embedded","tenant_id":"`+taxAgency+`"`))
		c.settle(t, portalKey, s, "06 600 00 01", "completed")
		body := `{"completion_token":"` + c.token(t, s) + `","tenant_id":"%s"}`
		refused(t, c.verify(t, portalKey, fmt.Sprintf(body, customsAgency)), 404, "checkout.completion_token_not_found")
		equal(t, "status", c.verify(t, portalKey, fmt.Sprintf(body, taxAgency)).Status, 200)
	}},
	{secToken, "§ 4: the frame asks with its client_secret once the session is completed; 409 checkout.not_completed before", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		refused(t, c.askToken(t, s["id"], s["client_secret"]), 409, "checkout.not_completed")
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		a, b := c.token(t, s), c.token(t, s)
		matches(t, "token", a, `^cpt_[0-9a-z]{51,}$`)
		if a == b {
			t.Error("two requests got the same token, want a new one each")
		}
		for _, token := range []string{b, a} {
			equal(t, "each is good", c.verify(t, taxKey, `{"completion_token":"`+token+`"}`).Status, 200)
		}
	}},
	{secToken, "§ 4: an unknown secret and that of another session are refused; a hosted session has none", func(t *testing.T, c *contract) {
		s, other := c.created(t, taxKey, c.with(`"mode":"embedded"`)), c.created(t, taxKey, c.with(`"mode":"embedded"`))
		for _, secret := range []any{other["client_secret"], "chs_secret_x", taxKey, "x"} {
			refused(t, c.askToken(t, s["id"], secret), 401, "generic.unauthorized")
		}
		hosted := c.created(t, taxKey, c.with(""))
		refused(t, c.askToken(t, hosted["id"], "chs_secret_x"), 404, "checkout.session_not_found")
		refused(t, c.askToken(t, "chs_x", "chs_secret_x"), 404, "checkout.session_not_found")
	}},
}

var authenticationStatements = []statement{
	{secAuth, "401 for a missing or invalid key", func(t *testing.T, c *contract) {
		for _, value := range []string{"", "Bearer", "Bearer ", "Bearer sk_test_unknown0000000000000000", "Bearer sk_live_ContractTaxKey0000000000x", "Basic " + taxKey, taxKey, "Bearer " + taxKey + "x", "Bearer oat_x"} {
			var headers []string
			if value != "" {
				headers = []string{"Authorization", value}
			}
			a := c.Call(t, http.MethodGet, c.Sessions(""), "", headers...)
			refused(t, a, 401, "generic.unauthorized")
			matches(t, "WWW-Authenticate", a.Header.Get("WWW-Authenticate"), `^Bearer`)
		}
	}},
	{secAuth, "§ 3: test keys see test objects only, live keys live objects only", func(t *testing.T, c *contract) {
		test, live := c.created(t, taxKey, c.with("")), c.created(t, taxLiveKey, c.with(""))
		equal(t, "statuses", []int{
			c.get(t, taxKey, "/"+live["id"].(string)).Status, c.get(t, taxLiveKey, "/"+test["id"].(string)).Status,
			c.cancel(t, taxKey, live["id"], "").Status, c.cancel(t, taxLiveKey, test["id"], "").Status, c.get(t, taxLiveKey, "/"+live["id"].(string)).Status,
		}, []int{404, 404, 404, 404, 200})
		ids, _ := c.list(t, taxLiveKey, "?order_id="+test["order_id"].(string))
		equal(t, "test sessions in a live list", len(ids), 0)
	}},
	{secAuth, "embed origins: platform scope uses the platform's, application scope the application's", func(t *testing.T, c *contract) {
		equal(t, "customs has none, the platform has", []int{
			c.create(t, customsKey, c.with(`"mode":"embedded"`)).Status, c.create(t, portalKey, c.with(`"mode":"embedded","tenant_id":"`+customsAgency+`"`)).Status,
		}, []int{422, 201})
	}},
	{secErrors, "§ 2: problem documents with code, message, request_id and errors, X-Request-Id on every answer", func(t *testing.T, c *contract) {
		post := func(contentType, body string) harness.Answer {
			return c.Call(t, http.MethodPost, c.Sessions(""), body, "Authorization", "Bearer "+taxKey, "Content-Type", contentType, "Idempotency-Key", uuid.NewString())
		}
		refused(t, post("text/plain", c.with("")), 415, "generic.unsupported_media_type")
		refused(t, post("application/json", `{"note":"`+strings.Repeat("x", 64<<10)+`"}`), 413, "generic.body_too_large")
		for _, body := range []string{"", "{", "[]", "null", "{} {}", "\xff", `{"a":1,}`} {
			refused(t, post("application/json; charset=utf-8", body), 400, "generic.malformed_json")
		}
		if a := c.get(t, taxKey, ""); a.Header.Get("X-Request-Id") == "" {
			t.Error("the answer has no X-Request-Id")
		}
		p := refusedBody(t, c.get(t, taxKey, "/chs_x"), 404, "checkout.session_not_found")
		equal(t, "the page of the type", c.Call(t, http.MethodGet, p["type"].(string), "").Status, 200) // an absolute address
		// Messages name the cause.
		equal(t, "lower case", refused(t, c.create(t, taxKey, c.with(`"currency":"xaf"`)), 422, "generic.validation_failed")[0].Message, `currency must be in capital letters: "XAF".`)
		for begins, is := range map[string]string{"ck_": "the key of a clerk", "st_": "the key of a member of staff", "oat_": "a token of the deprecated cash-in API", "whsec_": "the secret of an endpoint"} {
			p := refusedBody(t, c.get(t, begins+"ContractUnknown0000000000000", ""), 401, "generic.unauthorized")
			equal(t, "detail", p["detail"], "What begins with "+begins+" is "+is+": send Authorization: Bearer sk_test_… or sk_live_….")
		}
	}},
	{secErrors, "§ 2: 405 with Allow; 404 for another path", func(t *testing.T, c *contract) {
		for _, r := range []struct{ method, path, allow string }{
			{"DELETE", "", "GET, HEAD, POST"},
			{"PUT", "/chs_x", "GET, HEAD"},
			{"GET", "/chs_x/cancel", "POST"},
			{"GET", "/verify-completion", "POST"},
			{"PATCH", "/verify-completion", "POST"},
			{"GET", "/chs_x/events/evt_x/redeliver", "POST"},
		} {
			a := c.Call(t, r.method, c.Sessions(r.path), "", "Authorization", "Bearer "+taxKey)
			equal(t, r.method+" "+r.path, []any{a.Status, strings.Join(a.Header.Values("Allow"), ", ")}, []any{405, r.allow})
		}
		refused(t, c.Call(t, http.MethodGet, c.URL(harness.AtService, "/api/v1/checkout"), ""), 404, "generic.not_found")
		refused(t, c.Call(t, http.MethodGet, c.URL(harness.AtService, "/api/v1/"), ""), 404, "generic.not_found")
		// Another version is no part of the deprecated surface, whose answers say that it ends.
		for _, path := range []string{"/api/v2", "/api/v2/checkout/sessions", "/api/v10/init-checkout"} {
			a := c.Call(t, http.MethodGet, c.URL(harness.AtService, path), "")
			refused(t, a, 404, "generic.not_found")
			equal(t, "Deprecation", a.Header.Get("Deprecation"), "")
		}
		// HEAD is answered as GET, without a body.
		s := c.created(t, taxKey, c.with(""))
		for _, path := range []string{"", "/" + s["id"].(string), "/chs_x", "/verify-completion"} {
			get, head := c.Call(t, http.MethodGet, c.Sessions(path), "", "Authorization", "Bearer "+taxKey), c.Call(t, http.MethodHead, c.Sessions(path), "", "Authorization", "Bearer "+taxKey)
			equal(t, "HEAD "+path, []any{head.Status, head.Header.Get("Content-Type"), head.Header["Allow"], len(head.Body)}, []any{get.Status, get.Header.Get("Content-Type"), get.Header["Allow"], 0})
		}
	}},
}

var eventStatements = []statement{
	{secEvents, "checkout.completed carries the fields of decisions § 5, signed; x-service-event-id is its event_id", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"service_code":"patente","metadata":{"case":"4"}`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		m, w := c.webhook(t, "tax", s["id"], "checkout.completed")
		c.conforms(t, "CompletedEvent", []byte(m.Body))
		equal(t, "headers", []any{m.Headers["x-service-event-id"], m.Headers["webhook-id"], m.SignatureValid}, []any{w["event_id"], w["event_id"], true})
		equal(t, "fields", []any{w["application_id"], w["tenant_id"], w["order_id"], w["amount"], w["payment_ref"], w["metadata"], w["livemode"], w["channel"], w["offer_id"]},
			[]any{taxApp, taxAgency, s["order_id"], 5000, s["payment_ref"], map[string]any{"case": "4"}, false, "MOBILE_MONEY", "momo"})
		matches(t, "event_id", w["event_id"], "^evt_")
	}},
	{secEvents, "checkout.failed and checkout.cancelled carry complete payloads", func(t *testing.T, c *contract) {
		failed, cancelled := c.created(t, taxKey, c.with("")), c.created(t, taxKey, c.with(""))
		c.settle(t, taxKey, failed, "06 600 00 06", "failed")
		c.cancel(t, taxKey, cancelled["id"], "")
		m, _ := c.webhook(t, "tax", failed["id"], "checkout.failed")
		c.conforms(t, "FailedEvent", []byte(m.Body))
		m, _ = c.webhook(t, "tax", cancelled["id"], "checkout.cancelled")
		c.conforms(t, "CancelledEvent", []byte(m.Body))
	}},
	{secEvents, "an endpoint gets the events that it subscribes to, and no others", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(""))
		c.cancel(t, taxKey, s["id"], "")
		paid := c.created(t, taxKey, c.with(""))
		c.settle(t, taxKey, paid, "06 600 00 01", "completed")
		c.webhook(t, "tax", s["id"], "checkout.cancelled")
		c.webhook(t, "tax-completed", paid["id"], "checkout.completed")
		if body := c.Call(t, http.MethodGet, c.URL(harness.AtSimulators, "/inbox/tax-completed"), "").Body; strings.Contains(string(body), "checkout.cancelled") {
			t.Error("an endpoint got an event that it does not subscribe to")
		}
	}},
	{secEvents, "a platform key's session: to the agency's integrator application and to the platform's endpoints", func(t *testing.T, c *contract) {
		s := c.created(t, portalKey, c.with(`"tenant_id":"`+taxAgency+`"`))
		own := c.created(t, taxKey, c.with(""))
		c.settle(t, portalKey, s, "06 600 00 01", "completed")
		c.settle(t, taxKey, own, "06 600 00 01", "completed")
		m, _ := c.webhook(t, "portal", s["id"], "checkout.completed")
		equal(t, "signature", m.SignatureValid, true)
		c.webhook(t, "tax", s["id"], "checkout.completed")
		c.webhook(t, "tax", own["id"], "checkout.completed")
		if body := c.Call(t, http.MethodGet, c.URL(harness.AtSimulators, "/inbox/portal"), "").Body; strings.Contains(string(body), own["id"].(string)) {
			t.Error("the platform's endpoint got a session that the platform did not create")
		}
	}},
}

var limitStatements = []statement{
	{secLimits, "POST /checkout/sessions: 30 requests per minute per application (429 generic.rate_limited)", func(t *testing.T, c *contract) {
		for time.Now().Second() > 50 { // all requests must fall into one minute
			time.Sleep(200 * time.Millisecond)
		}
		key, body := uuid.NewString(), c.with("")
		first := c.keyed(t, quotaKey, key, body)
		equal(t, "headers", []string{first.Header.Get("RateLimit-Policy"), strings.SplitN(first.Header.Get("RateLimit"), ";t=", 2)[0]}, []string{`"creations";q=30;w=60`, `"creations";r=29`})
		only(t, c.create(t, quotaKey, c.with(`"mode":"x"`)), "mode") // does not count
		for range 29 {
			if a := c.create(t, quotaKey, c.with("")); a.Status != 201 {
				t.Fatalf("creation: %d %s", a.Status, a.Body)
			}
			equal(t, "replay, which does not count", c.keyed(t, quotaKey, key, body).Status, 201)
		}
		key = uuid.NewString()
		over := c.keyed(t, quotaKey, key, c.with(""))
		refused(t, over, 429, "generic.rate_limited")
		if wait, err := strconv.Atoi(over.Header.Get("Retry-After")); err != nil || wait < 1 || wait > 60 {
			t.Errorf("Retry-After is %q", over.Header.Get("Retry-After"))
		}
		matches(t, "RateLimit", over.Header.Get("RateLimit"), `^"creations";r=0;t=\d+$`)
		equal(t, "replay when the quota is used up", c.keyed(t, quotaKey, uuid.NewString(), body).Status, 429)
	}},
	{secLimits, "§ 2: reads 600 a minute per key, with RateLimit headers", func(t *testing.T, c *contract) {
		a := c.get(t, quotaKey, "")
		equal(t, "RateLimit-Policy", a.Header.Get("RateLimit-Policy"), `"reads";q=600;w=60`)
		matches(t, "RateLimit", a.Header.Get("RateLimit"), `^"reads";r=\d+;t=\d+$`)
		for time.Now().Second() > 40 {
			time.Sleep(200 * time.Millisecond)
		}
		counts := map[int]int{}
		var last harness.Answer
		for range 700 {
			last = c.Call(t, http.MethodGet, c.Sessions("/chs_x"), "", "Authorization", "Bearer "+quotaKey)
			counts[last.Status]++
		}
		if counts[404] > 600 || counts[429] < 100 || counts[404]+counts[429] != 700 {
			t.Errorf("answers by status: %v", counts)
		}
		refused(t, last, 429, "generic.rate_limited")
	}},
	{secVersioning, "the HTTP API is under /api/v1", func(t *testing.T, c *contract) {
		equal(t, "status", c.Call(t, http.MethodGet, c.URL(harness.AtService, "/api/v1/checkout/sessions"), "", "Authorization", "Bearer "+taxKey).Status, 200)
		refused(t, c.Call(t, http.MethodGet, c.URL(harness.AtService, "/api/v1/checkout/session"), "", "Authorization", "Bearer "+taxKey), 404, "generic.not_found")
	}},
}

// clockStatements come last, because they move the clock of the whole service.
var clockStatements = []statement{
	{secToken, "lifetime about 10 minutes: after it 410 for one never used, 409 checkout.completion_token_consumed for one used", func(t *testing.T, c *contract) {
		s := c.created(t, taxKey, c.with(`"mode":"embedded"`))
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		used, unused := c.token(t, s), c.token(t, s)
		equal(t, "used", c.verify(t, taxKey, `{"completion_token":"`+used+`"}`).Status, 200)
		c.Advance(t, 11*time.Minute)
		time.Sleep(2 * time.Second) // every role follows within a second
		refused(t, c.verify(t, taxKey, `{"completion_token":"`+used+`"}`), 409, "checkout.completion_token_consumed")
		refused(t, c.verify(t, taxKey, `{"completion_token":"`+unused+`"}`), 410, "checkout.completion_token_expired")
		equal(t, "a page that slept gets one", c.verify(t, taxKey, `{"completion_token":"`+c.token(t, s)+`"}`).Status, 200)
	}},
	{secStates, "session lifetime ends without payment: expired, webhook checkout.expired; the lifetime is the application's", func(t *testing.T, c *contract) {
		day, hour := c.created(t, taxKey, c.with(`"mode":"embedded"`)), c.created(t, customsKey, c.with(""))
		c.Advance(t, time.Hour+time.Minute)
		c.ends(t, customsKey, hour["id"].(string), "expired")
		c.ends(t, taxKey, day["id"].(string), "open")
		c.Advance(t, 23*time.Hour)
		c.ends(t, taxKey, day["id"].(string), "expired")
		m, _ := c.webhook(t, "tax", day["id"], "checkout.expired")
		c.conforms(t, "ExpiredEvent", []byte(m.Body))
		refused(t, c.cancel(t, taxKey, day["id"], ""), 409, "checkout.session_ended")
		refused(t, c.askToken(t, day["id"], day["client_secret"]), 409, "checkout.not_completed") // within ten minutes after its end
		c.created(t, taxKey, fmt.Sprintf(`{"order_id":%q,"amount":5000}`, day["order_id"]))
		c.Advance(t, 11*time.Minute)
		time.Sleep(2 * time.Second)
		refused(t, c.askToken(t, day["id"], day["client_secret"]), 401, "generic.unauthorized")
	}},
	{secCreate, "§ 1: keys are remembered 30 days, paid orders for ever", func(t *testing.T, c *contract) {
		key, paid := uuid.NewString(), c.with("")
		first := c.keyed(t, taxKey, key, paid)
		var s map[string]any
		first.Into(t, &s)
		c.settle(t, taxKey, s, "06 600 00 01", "completed")
		c.Advance(t, 29*24*time.Hour)
		time.Sleep(2 * time.Second)
		again := c.keyed(t, taxKey, key, paid)
		equal(t, "after 29 days", []string{again.Header.Get("Idempotent-Replayed"), string(again.Body)}, []string{"true", string(first.Body)})
		c.Advance(t, 2*24*time.Hour)
		time.Sleep(2 * time.Second)
		refused(t, c.keyed(t, taxKey, key, paid), 409, "checkout.order_paid")
		equal(t, "the key is new", c.keyed(t, taxKey, key+"-new", c.with("")).Status, 201)
	}},
}
