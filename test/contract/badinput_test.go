package contract_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"quittance/test/harness"

	"github.com/google/uuid"
)

// fault is a field at fault in a problem document.
type fault struct {
	Field   string `json:"field"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// refused checks that an answer is the problem document of docs/design/decisions.md § 2. It returns the
// fields at fault.
func refused(t *testing.T, a harness.Answer, status int, code string) []fault {
	t.Helper()
	if a.Status != status {
		t.Fatalf("answered %d %s, want %d %s", a.Status, a.Body, status, code)
	}
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q", got)
	}
	var p map[string]json.RawMessage
	a.Into(t, &p)
	text := func(member string) (s string) {
		if err := json.Unmarshal(p[member], &s); err != nil || s == "" {
			t.Errorf("%s is %s, want a text, in %s", member, p[member], a.Body)
		}
		return s
	}
	if got := text("code"); got != code {
		t.Errorf("code is %q, want %q", got, code)
	}
	if string(p["status"]) != strconv.Itoa(status) {
		t.Errorf("status is %s, want %d", p["status"], status)
	}
	if id := text("request_id"); id != a.Header.Get("X-Request-Id") {
		t.Errorf("request_id is %q, but X-Request-Id %q", id, a.Header.Get("X-Request-Id"))
	}
	if text("type"); text("detail") != text("message") || text("title") == "" {
		t.Errorf("detail and message differ in %s", a.Body)
	}
	var faults []fault
	if err := json.Unmarshal(p["errors"], &faults); err != nil || faults == nil {
		t.Errorf("errors is %s, want a list", p["errors"])
	}
	for _, f := range faults {
		if f.Field == "" || f.Rule == "" || f.Message == "" {
			t.Errorf("errors has %+v", f)
		}
	}
	for _, secret := range []string{harness.GuichetKey, harness.GuichetLiveKey, harness.DouanesKey, harness.PlatformKey} {
		if strings.Contains(string(a.Body), secret) {
			t.Errorf("the answer repeats a key: %s", a.Body)
		}
	}
	return faults
}

// Every faulty request is refused with a problem document that names the fault and its
// mend. No session is created.
func TestBadInput(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an installation")
	}
	t.Parallel()
	u := harness.Shared(t)
	order := func(name string) string { return name + "-" + uuid.NewString()[:8] }
	t.Run("requests", func(t *testing.T) { badRequests(t, u, order("bad-input")) })
	t.Run("all faults at once", func(t *testing.T) { allFaults(t, u) })
	t.Run("unknown and foreign sessions", func(t *testing.T) { foreignSessions(t, u, order("of-guichet")) })
	t.Run("keys and orders", func(t *testing.T) { keysAndOrders(t, u, order("once"), order("twice")) })
	t.Run("pages and callbacks", func(t *testing.T) { badAddresses(t, u, order("addresses")) })
}

func badRequests(t *testing.T, u *harness.Up, order string) {
	good := fmt.Sprintf(`{"order_id":%q,"amount":5000}`, order)
	const (
		list   = ""
		some   = "/chs_0000000000000000000000000000000000000000"
		cancel = some + "/cancel"
		create = http.MethodPost
		read   = http.MethodGet
	)
	for _, c := range []struct {
		name    string
		method  string
		path    string
		body    string
		headers []string // pairs that replace the usual ones; an empty value removes one
		status  int
		code    string
	}{
		{"malformed JSON", create, list, `{"order_id":`, nil, 400, "generic.malformed_json"},
		{"no body", create, list, ``, nil, 400, "generic.malformed_json"},
		{"no object", create, list, `[]`, nil, 400, "generic.malformed_json"},
		{"two values", create, list, good + good, nil, 400, "generic.malformed_json"},
		{"no UTF-8", create, list, "{\"order_id\":\"\xff\",\"amount\":1}", nil, 400, "generic.malformed_json"},
		{"oversize", create, list, `{"order_id":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 413, "generic.body_too_large"},
		{"text", create, list, good, []string{"Content-Type", "text/plain"}, 415, "generic.unsupported_media_type"},
		{"a form", create, list, good, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "generic.unsupported_media_type"},
		{"no media type", create, list, good, []string{"Content-Type", ""}, 415, "generic.unsupported_media_type"},
		{"no key", create, list, good, []string{"Authorization", ""}, 401, "generic.unauthorized"},
		{"no key to read", read, list, "", []string{"Authorization", ""}, 401, "generic.unauthorized"},
		{"wrong key", create, list, good, []string{"Authorization", "Bearer sk_test_Guichet0000000000000000000"}, 401, "generic.unauthorized"},
		{"wrong prefix", create, list, good, []string{"Authorization", "Bearer pk_test_GuichetDemoKey00000000000"}, 401, "generic.unauthorized"},
		{"key without its end", create, list, good, []string{"Authorization", "Bearer sk_test_GuichetDemoKey0000000000"}, 401, "generic.unauthorized"},
		{"another scheme", create, list, good, []string{"Authorization", "Basic " + harness.GuichetKey}, 401, "generic.unauthorized"},
		{"no idempotency key", create, list, good, []string{"Idempotency-Key", ""}, 400, "idempotency.key_required"},
		{"long idempotency key", create, list, good, []string{"Idempotency-Key", strings.Repeat("k", 256)}, 400, "idempotency.key_invalid"},
		{"unknown parameter", read, "?order=1", "", nil, 400, "generic.invalid_query"},
		{"repeated parameter", read, "?order_id=1&order_id=2", "", nil, 400, "generic.invalid_query"},
		{"page zero", read, "?page=0", "", nil, 400, "generic.invalid_query"},
		{"unknown status", read, "?status=paid", "", nil, 400, "generic.invalid_query"},
		{"malformed query", read, "?order_id=%zz", "", nil, 400, "generic.invalid_query"},
		{"unknown parameter of one", read, some + "?expand=all", "", nil, 400, "generic.invalid_query"},
		{"platform key without agency", create, list, good, []string{"Authorization", "Bearer " + harness.PlatformKey}, 422, "generic.validation_failed"},
		{"agency that is not granted", create, list, `{"order_id":"1","amount":1,"tenant_id":"018f0000-0000-7000-8000-0000000000ff"}`, []string{"Authorization", "Bearer " + harness.PlatformKey}, 403, "generic.forbidden"},
		{"agency of others", create, list, `{"order_id":"1","amount":1,"tenant_id":"` + harness.DouanesAgency + `"}`, nil, 422, "generic.validation_failed"},
		{"PUT on all", http.MethodPut, list, good, nil, 405, "generic.method_not_allowed"},
		{"DELETE on one", http.MethodDelete, some, "", nil, 405, "generic.method_not_allowed"},
		{"PATCH on one", http.MethodPatch, some, good, nil, 405, "generic.method_not_allowed"},
		{"GET on cancel", read, cancel, "", nil, 405, "generic.method_not_allowed"},
		{"no such path", read, some + "/refund", "", nil, 404, "generic.not_found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			headers := map[string]string{
				"Authorization": "Bearer " + harness.GuichetKey, "Content-Type": "application/json", "Idempotency-Key": uuid.NewString(),
			}
			for i := 0; i+1 < len(c.headers); i += 2 {
				headers[c.headers[i]] = c.headers[i+1]
			}
			var pairs []string
			for name, value := range headers {
				if value != "" {
					pairs = append(pairs, name, value)
				}
			}
			a := u.Call(t, c.method, u.Sessions(c.path), c.body, pairs...)
			faults := refused(t, a, c.status, c.code)
			if wants := c.code == "generic.invalid_query" || c.status == 422; wants == (len(faults) == 0) {
				t.Errorf("%d fields at fault in %s", len(faults), a.Body)
			}
			if c.status == 401 && a.Header.Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
			if c.status != 405 {
				return
			}
			allow := strings.Split(strings.Join(a.Header.Values("Allow"), ", "), ", ")
			slices.Sort(allow)
			want := map[string][]string{list: {"GET", "HEAD", "POST"}, some: {"GET", "HEAD"}, cancel: {"POST"}}[c.path]
			if !slices.Equal(allow, want) {
				t.Errorf("Allow is %q, want %q", allow, want)
			}
		})
	}
	var p struct {
		Total int `json:"total"`
	}
	u.Call(t, http.MethodGet, u.Sessions("?order_id="+order), "", "Authorization", "Bearer "+harness.GuichetKey).Into(t, &p)
	if p.Total != 0 {
		t.Errorf("%d sessions were created by refused requests", p.Total)
	}
}

func allFaults(t *testing.T, u *harness.Up) {
	a := u.Post(t, harness.GuichetKey, `{
		"amount": "5000", "currency": "XTS", "mode": "popup", "service_code": "vignette_2019", "tenant_id": "impots",
		"description": 7, "customer": {"email": "nobody", "fax": "1"}, "metadata": {"case": 12},
		"success_url": "/thanks", "cancel_url": "ftp://guichet.example/", "ammount": 5000}`)
	var fields []string
	for _, f := range refused(t, a, http.StatusUnprocessableEntity, "generic.validation_failed") {
		fields = append(fields, f.Field)
	}
	slices.Sort(fields)
	want := []string{
		"ammount", "amount", "cancel_url", "currency", "customer.email", "customer.fax", "description",
		"metadata.case", "mode", "order_id", "service_code", "success_url", "tenant_id",
	}
	if !slices.Equal(fields, want) {
		t.Errorf("the fields at fault are\n%q, want\n%q", fields, want)
	}
	// A fault that depends on the configuration has the same form.
	faults := refused(t, u.Post(t, harness.GuichetKey, `{"order_id":"1","amount":1,"service_code":"vignette_2019"}`), 422, "generic.validation_failed")
	if len(faults) != 1 || faults[0].Field != "service_code" {
		t.Errorf("the fields at fault are %v, want service_code", faults)
	}
}

// The answer about another application's session is the same as about an unknown session.
func foreignSessions(t *testing.T, u *harness.Up, order string) {
	var own harness.Session
	u.Post(t, harness.GuichetKey, fmt.Sprintf(`{"order_id":%q,"amount":100}`, order)).Into(t, &own)
	notFound := func(a harness.Answer) string {
		refused(t, a, http.StatusNotFound, "checkout.session_not_found")
		return strings.ReplaceAll(string(a.Body), a.Header.Get("X-Request-Id"), "")
	}
	for _, how := range []struct{ method, path string }{{http.MethodGet, ""}, {http.MethodPost, "/cancel"}, {http.MethodGet, "/events"}, {http.MethodPost, "/events/evt_1/redeliver"}} {
		ask := func(key, id string) harness.Answer {
			return u.Call(t, how.method, u.Sessions("/"+id+how.path), "", "Authorization", "Bearer "+key)
		}
		last := own.ID[len(own.ID)-1]
		unknown := own.ID[:len(own.ID)-1] + string("0123456789"[(last+1)%10])
		answers := []string{
			notFound(ask(harness.GuichetKey, unknown)),
			notFound(ask(harness.GuichetKey, "nothing-like-it")),
			notFound(ask(harness.DouanesKey, own.ID)),
			notFound(ask(harness.GuichetLiveKey, own.ID)), // the key of the same application in the other mode
		}
		for _, text := range answers[1:] {
			if text != answers[0] {
				t.Errorf("%s: the answers to unknown sessions differ:\n%s\n%s", how.method, answers[0], text)
			}
		}
	}
	for _, key := range []string{harness.DouanesKey, harness.GuichetLiveKey} {
		a := u.Call(t, http.MethodGet, u.Sessions("?order_id="+order), "", "Authorization", "Bearer "+key)
		if a.Status != http.StatusOK || strings.Contains(string(a.Body), own.ID) {
			t.Errorf("the list for another key is %d %s, want it without the session", a.Status, a.Body)
		}
	}
	if s := u.Session(t, own.ID); s.Status != "open" {
		t.Errorf("the session is %s after another application's cancel, want it open", s.Status)
	}
}

func keysAndOrders(t *testing.T, u *harness.Up, once, twice string) {
	key := uuid.NewString()
	post := func(key, body string) harness.Answer {
		return u.Call(t, http.MethodPost, u.Sessions(""), body,
			"Authorization", "Bearer "+harness.GuichetKey, "Content-Type", "application/json", "Idempotency-Key", key)
	}
	first := post(key, fmt.Sprintf(`{"order_id":%q,"amount":5000}`, once))
	if first.Status != http.StatusCreated || first.Header.Get("Idempotent-Replayed") != "" || first.Header.Get("X-Request-Id") == "" {
		t.Fatalf("creation: %d %v %s", first.Status, first.Header, first.Body)
	}
	again := post(key, fmt.Sprintf(` { "amount" : 5000, "order_id" : %q } `, once)) // the same JSON in other bytes
	if again.Status != http.StatusCreated || string(again.Body) != string(first.Body) || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the repeated creation: %d %v %s, want %s", again.Status, again.Header, again.Body, first.Body)
	}
	refused(t, post(key, fmt.Sprintf(`{"order_id":%q,"amount":5001}`, once)), http.StatusConflict, "idempotency.key_reused")
	refused(t, post(uuid.NewString(), fmt.Sprintf(`{"order_id":%q,"amount":5000}`, once)), http.StatusConflict, "checkout.order_open")

	var s harness.Session
	first.Into(t, &s)
	u.Citizen(s.ID).Pay(t, "06 600 00 01")
	u.Becomes(t, s.ID, "completed")
	refused(t, post(uuid.NewString(), fmt.Sprintf(`{"order_id":%q,"amount":5000}`, once)), http.StatusConflict, "checkout.order_paid")
	cancel := func(id string) harness.Answer {
		return u.Call(t, http.MethodPost, u.Sessions("/"+id+"/cancel"), "", "Authorization", "Bearer "+harness.GuichetKey)
	}
	refused(t, cancel(s.ID), http.StatusConflict, "checkout.session_ended")

	post(uuid.NewString(), fmt.Sprintf(`{"order_id":%q,"amount":5000}`, twice)).Into(t, &s)
	var cancelled harness.Session
	if a := cancel(s.ID); a.Status != http.StatusOK {
		t.Fatalf("cancel: %d %s", a.Status, a.Body)
	} else if a.Into(t, &cancelled); cancelled.Status != "cancelled" || cancelled.Paid {
		t.Errorf("cancel answers %s", a.Body)
	}
	refused(t, cancel(s.ID), http.StatusConflict, "checkout.session_ended")
	if a := post(uuid.NewString(), fmt.Sprintf(`{"order_id":%q,"amount":5000}`, twice)); a.Status != http.StatusCreated {
		t.Errorf("another session of a cancelled order: %d %s", a.Status, a.Body)
	}
}

func badAddresses(t *testing.T, u *harness.Up, order string) {
	s := u.Create(t, order)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "/c/chs_0000000000000000000000000000000000000000", "", 404},
		{http.MethodGet, "/c/nothing-like-it", "", 404},
		{http.MethodPost, "/c/nothing-like-it/pay", "", 404},
		{http.MethodPost, "/c/" + s.ID + "/phone", "offer=momo&phone=" + strings.Repeat("6", 20<<10), 413},
		{http.MethodPost, "/c/" + s.ID + "/phone", "offer=momo&phone=07+500+00+01", 422}, // the number of an operator without an offer
		{http.MethodPost, "/c/" + s.ID + "/pay", "offer=momo&phone=06+600+00+01", 422},   // the review was not shown
		{http.MethodPut, "/callbacks/nobody/" + s.ID + "/" + uuid.NewString(), "{}", 404},
		{http.MethodPut, "/callbacks/mtn/nothing-like-it/" + uuid.NewString(), "{}", 404},
		{http.MethodPut, "/callbacks/mtn/" + s.ID + "/nothing-like-it", "{}", 404},
	} {
		a := u.Call(t, c.method, u.URL(harness.AtService, c.path), c.body, "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
		if a.Status != c.status || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %.60s answers %d, want %d", c.method, c.path, a.Status, c.status)
		}
	}
	if c := u.Collections(t, s); len(c) != 0 {
		t.Errorf("the operator has %+v, want no collection", c)
	}
}
