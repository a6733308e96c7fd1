package web_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"quittance/ingress/problem"
	"quittance/ingress/web"
)

// The routers are composed as those of the edge: one with whole paths, one that is mounted
// and has the rest of its paths, and plain handlers.
func TestRequestsByRoute(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	r := chi.NewRouter()
	r.Use(problem.WithRequestID, web.Measure(reg))
	whole := chi.NewRouter()
	whole.Get("/api/sessions/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	r.Handle("/api/*", whole)
	r.Route("/c", func(r chi.Router) {
		r.Get("/{id}/live", func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("a stream cannot be flushed: %v", err)
			}
		})
	})
	r.Get("/panics", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })

	metrics := func(accept string) string {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept", accept)
		promhttp.HandlerFor(reg, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, r)
		return w.Body.String()
	}
	const plain, open = "text/plain", "application/openmetrics-text; version=1.0.0"
	if text := metrics(plain); !strings.Contains(text, "\nquittance_ingress_errors_total 0\n") {
		t.Errorf("before the first error there is no 0:\n%s", text)
	}
	var id string
	for _, request := range [][2]string{
		{http.MethodGet, "/api/sessions/chs_secret"},
		{http.MethodGet, "/c/chs_secret/live"},
		{http.MethodGet, "/nowhere/secret"},
		{"SECRET", "/c/chs_secret/live"},
		{http.MethodGet, "/panics"},
	} {
		func() {
			defer func() { _ = recover() }()
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), request[0], request[1], http.NoBody))
			id = cmp.Or(id, w.Header().Get(problem.RequestIDHeader)) // of the first
		}()
	}
	text := metrics(plain)
	for _, want := range []string{
		`_count{method="GET",route="/api/sessions/{id}",status="503"} 1`,
		`_count{method="GET",route="/c/{id}/live",status="200"} 1`,
		`_count{method="GET",route="none",status="404"} 1`,
		`_count{method="other",route=`,
		`_count{method="GET",route="/panics",status="500"} 1`,
		"\nquittance_ingress_errors_total 2\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	examples := metrics(open)
	if strings.Contains(text+examples, "secret") || strings.Contains(text+examples, "SECRET") {
		t.Errorf("a path or a made-up method is a label:\n%s\n%s", text, examples)
	}
	if !regexp.MustCompile(`route="/api/sessions/\{id\}",status="503",le="[^"]*"\} 1 # \{request_id="` + id + `"\}`).MatchString(examples) {
		t.Errorf("no example has the id %s of the answer:\n%s", id, examples)
	}
}
