package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/web"
	"quittance/test/httpclient"
)

// A monitor asks with HEAD and got 405 from a service that was well. It gets what GET would, without the
// body, also through a router within a router; where there is no GET it gets 405.
func TestHead(t *testing.T) {
	t.Parallel()
	inner := chi.NewRouter()
	inner.Get("/api/one", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Method", r.Method)
		_, _ = io.WriteString(w, "text")
	})
	inner.Post("/api/two", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	outer := chi.NewRouter()
	outer.Use(web.Head)
	outer.Handle("/api/*", inner)
	server := httptest.NewServer(outer)
	t.Cleanup(server.Close)
	for path, want := range map[string]int{"/api/one": http.StatusOK, "/api/two": http.StatusMethodNotAllowed, "/api/three": http.StatusNotFound} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := httpclient.Default.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != want || len(body) > 0 {
			t.Errorf("%s: %d %q, %v", path, resp.StatusCode, body, err)
		}
		if want == http.StatusOK && (resp.ContentLength != 4 || resp.Header.Get("X-Method") != http.MethodGet) {
			t.Errorf("%s: %v, %d bytes", path, resp.Header, resp.ContentLength)
		}
	}
}
