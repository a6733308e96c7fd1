package journeys_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// receipts adds the page that checks receipts, with the verdicts of the service and with one of
// the script.
func (g *gallery) receipts(t *testing.T) {
	t.Helper()
	h := newTreasury(t, "https://paiement.example.cg")
	tokens, _ := h.tokens(t)
	r := h.routes(t)
	for _, path := range []string{"/q", "/q/", "/.well-known/jwks.json"} {
		g.mux.Handle("GET "+path, r)
	}
	for _, lang := range []string{"fr", "en"} {
		name := func(state string) string { return "receipts" + state + "-" + lang }
		g.tours = append(g.tours, tour{
			{name: name(""), path: "/q?lang=" + lang, widths: auditWidths, pictured: true},
			{name: name(".scanned"), run: `location.hash = "x.y.z"`, until: "#verdict[data-verdict]", widths: pictureWidths, pictured: true},
		})
		for _, c := range [][2]string{{".authentic", tokens["paid"]}, {".reversed", tokens["before"]}, {".test", tokens["test"]}, {".largest", tokens["largest"]}, {".false", "x"}, {".faulty", ""}} {
			state, token := c[0], c[1]
			status := http.StatusOK
			if token == "" {
				status = http.StatusUnprocessableEntity
			}
			form := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/q", strings.NewReader(url.Values{"lang": {lang}, "receipt": {token}}.Encode()))
			form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			g.tours = append(g.tours, tour{{name: name(state), widths: pictureWidths, pictured: true, page: pageOf(answerTo(t, r, form, status))}})
		}
	}
}
