package citizen_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/citizen"
)

// Every call that changes something is refused unless it comes from our own origin: all
// routes of the router, so that a new one cannot forget the rule.
func TestForeignOrigins(t *testing.T) {
	t.Parallel()
	w := serve(t)
	b := w.signedIn(1)
	routes := changing(t)
	if len(routes) < 4 {
		t.Fatalf("only %d routes change something", len(routes))
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		path = strings.ReplaceAll(strings.TrimPrefix(path, citizen.Prefix), "{id}", "7")
		for name, header := range map[string]http.Header{
			"neither header":        {},
			"another site":          {"Sec-Fetch-Site": {"cross-site"}, "Origin": {publicURL}},
			"a sibling":             {"Sec-Fetch-Site": {"same-site"}},
			"typed by hand":         {"Sec-Fetch-Site": {"none"}},
			"another origin":        {"Origin": {"https://evil.example"}},
			"another scheme":        {"Origin": {"http://pay.example"}},
			"another port":          {"Origin": {"https://pay.example:444"}},
			"no origin":             {"Origin": {"null"}},
			"an origin with a tail": {"Origin": {publicURL + ".evil.example"}},
		} {
			b.header = header
			a := b.call(method, path, object{})
			if a.status != http.StatusForbidden || a.text("code") != citizen.CodeForeignOrigin {
				t.Errorf("%s from %s answers %d %s", route, name, a.status, a.text("code"))
			}
		}
		for name, header := range map[string]http.Header{
			"our page":                {"Sec-Fetch-Site": {"same-origin"}},
			"our page, older browser": {"Origin": {publicURL}},
			"our page, with its port": {"Origin": {"https://PAY.example:443"}},
		} {
			b.header = header
			if a := b.call(method, path, `{"x":1}`); a.status == http.StatusForbidden {
				t.Errorf("%s from %s answers %s", route, name, a.raw)
			}
		}
		b = w.signedIn(1 + len(w.sent)) // a call may have signed out
	}
	b.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
	b.want(b.call(http.MethodGet, "/me", nil), http.StatusOK, "") // SameSite=Lax keeps the cookie of another site's calls back
}

// changing returns the routes of the API with a method other than GET and HEAD.
func changing(t *testing.T) (routes []string) {
	t.Helper()
	err := chi.Walk(citizen.Router(t), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodGet && method != http.MethodHead {
			routes = append(routes, method+" "+route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return routes
}
