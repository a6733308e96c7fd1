package ministry

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/problem"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/test/registries"
	"quittance/test/servers"
)

// An instance that is cut off from Postgres does not know which keys are revoked, and took
// revoked keys for as long as that lasted.
func TestCutOffFromPostgres(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	h.Seed(t, registries.Full)
	reg, err := registry.Open(t.Context(), registry.Config{Pool: h.Pool, Keys: h.Keys, Log: servers.Logger(t), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	stale, err := identity.Open(t.Context(), identity.Config{Registry: reg, Pool: h.Pool, Keys: h.Keys, Log: servers.Logger(t), Now: time.Now, MaxAge: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(Config{Registry: testOnly{reg}, Identities: stale, Now: time.Now, Log: servers.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(problem.WithRequestID)
	a.Routes(r)
	for _, key := range []string{registries.KeyTest, "sk_test_unknown00000000000000"} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+"/checkout/sessions", nil)
		req.Header.Set("Authorization", "Bearer "+key)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		var p problem.Document
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusServiceUnavailable || p.Code != "generic.unavailable" ||
			w.Header().Get("Retry-After") != "10" || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.16s: %d %v %s (%v)", key, w.Code, w.Header(), w.Body, err)
		}
	}
}
