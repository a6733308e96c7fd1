package journeys_test

import (
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/citizen"
	"quittance/ingress/counter"
	"quittance/ingress/docs"
	"quittance/ingress/ministry"
	"quittance/test/servers"
)

// An integrator searches the documentation and copies a sample, in a real browser under the policy of the
// pages. Without scripts the pages are whole.
func TestDocsInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	r := chi.NewRouter()
	docs.Routes(servers.Logger(t), func() (*docs.Handler, error) {
		return docs.New(docs.Placeholder, ministry.OpenAPI(), counter.OpenAPI(), citizen.OpenAPI())
	})(r)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	runCases(t, "docs.mjs", map[string]any{"docs": server.URL})
}
