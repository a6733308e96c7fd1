package journeys_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/citizen"
	"quittance/ingress/counter"
	"quittance/ingress/docs"
	"quittance/ingress/ministry"
	"quittance/test/servers"
)

// docs adds the pages of the documentation: in French at the smallest width, in English at
// the largest.
func (g *gallery) docs(t *testing.T) {
	t.Helper()
	r := chi.NewRouter()
	docs.Routes(servers.Logger(t), func() (*docs.Handler, error) {
		return docs.New(docs.Placeholder, ministry.OpenAPI(), counter.OpenAPI(), citizen.OpenAPI())
	})(r)
	g.mux.Handle("GET /docs/", r) // the pages load their script and the search from there
	page := func(path string) *httptest.ResponseRecorder {
		return answerTo(t, r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody), http.StatusOK)
	}
	for lang, of := range map[string]struct {
		first string
		width int
	}{"fr": {"/docs/fr", 320}, "en": {"/docs", 1280}} {
		nav, _, _ := strings.Cut(page(of.first).Body.String(), "</nav>")
		links := regexp.MustCompile(`<li><a href="(/docs[^"#]*)"`).FindAllStringSubmatch(nav, -1)
		if len(links) < 10 {
			t.Fatalf("%s leads to %d pages", of.first, len(links))
		}
		for _, m := range links {
			name := "docs" + strings.ReplaceAll(strings.TrimPrefix(m[1], of.first), "/", ".") + "-" + lang
			g.tours = append(g.tours, tour{{name: name, widths: []int{of.width}, page: pageOf(page(m[1]))}})
		}
	}
}
