package cashin_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"quittance/checkout"
	"quittance/internal/cashin"
	"quittance/test/registries"
)

// at returns the world as it answers at another instance. Both may be called at one time.
func (w *world) at(another *world) *world { return &world{t: w.t, server: another.server} }

// another runs a further instance.
func (w *world) another() *world {
	w.t.Helper()
	return w.at(&world{server: w.serve()})
}

// Two tokens of an application, at two instances and under both prefixes, are used at the
// same time: the quota is reached exactly.
func TestQuotaAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tokens := []string{w.token(w.pair), w.token(w.pair)}
	instances := []*world{w, w.another()}
	for _, row := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodPost, "/init-checkout", initial, 5},
		{http.MethodPost, "/partners/payments", payment, 5},
		{http.MethodGet, "/transactions/T2611000099/check-status", "", 30},
	} {
		var all sync.WaitGroup
		statuses := make([]int, row.want+11)
		for i := range statuses {
			all.Go(func() {
				prefix := []string{"/api", "/api/v1"}[i/2%2]
				statuses[i] = instances[i%2].send(row.method, prefix+row.path, tokens[i/4%2], row.body).status
			})
		}
		all.Wait()
		refused := 0
		for _, s := range statuses {
			if s == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused != 11 {
			t.Errorf("%s: %v: %d of %d calls are refused, want 11", row.path, statuses, refused, len(statuses))
		}
	}
}

// A token that is revoked at one instance, a pair that is rotated, and an application that is
// deactivated end at the other instance with the next request.
func TestEndsAtAnotherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.another()
	opens := func(at *world, token string) bool {
		t.Helper()
		r := at.send(http.MethodGet, "/api/v1/partners/payment-gateways", token, "")
		if r.status != http.StatusOK {
			wantRefusal(t, r, http.StatusUnauthorized, "E_UNAUTHORIZED_ACCESS")
		}
		return r.status == http.StatusOK
	}
	for name, end := range map[string]func(token string){
		"revocation": func(token string) {
			if r := w.send(http.MethodPost, "/api/revoke-application-access-token", token, ""); r.status != http.StatusOK {
				t.Errorf("answered %d %s", r.status, r.body)
			}
		},
		"rotation": func(string) {
			var err error
			if w.pair, err = cashin.Rotate(t.Context(), w.house.Pool, w.house.Keys, registries.Actor, shop, nil, w.watch.Now()); err != nil {
				t.Fatal(err)
			}
		},
		"deactivation": func(string) { w.house.Write(t, `UPDATE applications SET active = false WHERE id = $1`, shop) },
	} {
		w.house.Write(t, `UPDATE applications SET active = true WHERE id = $1`, shop)
		w.minute()
		token := w.token(w.pair)
		if !opens(other, token) {
			t.Errorf("%s: the token opens nothing at the other instance", name)
		}
		end(token)
		if opens(other, token) || opens(w, token) {
			t.Errorf("after a %s the token still opens an instance", name)
		}
	}
}

// Every status that the surface answers carries the headers; send checks them.
func TestHeadersOnEveryStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.token(w.pair)
	post := func(path, body string) response { return w.send(http.MethodPost, "/api"+path, token, body) }
	provoked := map[int]bool{}
	for _, row := range []struct {
		code string // of the refusal; empty: no refusal of three fields
		want int
		do   func() response
	}{
		{"", 200, func() response { return post("/init-checkout", initial) }},
		{"", 200, func() response { return w.send(http.MethodGet, "/api/partners/payment-gateways", token, "") }},
		{"E_BAD_REQUEST", 400, func() response { return post("/init-checkout", "{") }},
		{"E_UNAUTHORIZED_ACCESS", 401, func() response { return w.send(http.MethodPost, "/api/init-checkout", "", initial) }},
		{"PROVIDER_NOT_CONFIGURED", 403, func() response {
			w.change(func() { w.off[checkout.OfferMomo] = true })
			defer w.change(func() { w.off[checkout.OfferMomo] = false })
			return post("/partners/payments", payment)
		}},
		{"PROVIDER_NOT_FOUND", 404, func() response { return post("/partners/payments", with(payment, "provider", `"bank"`)) }},
		{"E_ROW_NOT_FOUND", 404, func() response { return w.status(token, "T2601000009") }},
		{"E_ROUTE_NOT_FOUND", 404, func() response { return post("/nothing", initial) }},
		{"E_METHOD_NOT_ALLOWED", 405, func() response { return w.send(http.MethodPatch, "/api/v1/init-checkout", token, initial) }},
		{"E_METHOD_NOT_ALLOWED", 405, func() response { return w.send(http.MethodOptions, "/api/partners/payments", "", "") }},
		{"E_REQUEST_ENTITY_TOO_LARGE", 413, func() response { return post("/init-checkout", `{"description":"`+strings.Repeat("x", 256<<10)+`"}`) }},
		{"E_UNSUPPORTED_MEDIA_TYPE", 415, func() response {
			return w.send(http.MethodPost, "/api/init-checkout", token, initial, func(q *http.Request) { q.Header.Del("Content-Type") })
		}},
		{"", 422, func() response { return post("/init-checkout", "{}") }},
		{"INVALID_PHONE_NUMBER", 422, func() response { return post("/partners/payments", with(payment, "customer", `{"phone":"x"}`)) }},
		{"GATEWAY_REQUEST_FAILED", 502, func() response {
			w.change(func() { w.said = checkout.CodeCollectionNotSent })
			return post("/partners/payments", payment)
		}},
		{"E_INTERNAL_ERROR", 500, func() response {
			w.change(func() { w.asked = errors.New("broken") })
			return post("/init-checkout", initial)
		}},
		{"E_INTERNAL_ERROR", 500, func() response { // a panic
			return post("/init-checkout", with(initial, "merchant", `{"webhookUrl":"https://`+panicking+`/"}`))
		}},
		{"E_TOO_MANY_REQUESTS", 429, func() response {
			for range 5 {
				post("/init-checkout", initial)
			}
			return post("/init-checkout", initial)
		}},
	} {
		r := row.do()
		if r.status != row.want {
			t.Errorf("answered %d %s, want %d", r.status, r.body, row.want)
		}
		if row.code != "" {
			wantRefusal(t, r, row.want, row.code)
		}
		provoked[r.status] = true
	}
	for _, status := range []int{200, 400, 401, 403, 404, 405, 413, 415, 422, 429, 500, 502} {
		if !provoked[status] {
			t.Errorf("%d is not provoked: %v", status, slices.Sorted(maps.Keys(provoked)))
		}
	}
}
