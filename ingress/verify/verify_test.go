package verify_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"quittance/ingress/verify"
	"quittance/internal/operation"
	"quittance/internal/receipts"
	"quittance/internal/secret"
	"quittance/test/servers"
)

const host = "paiement.example.cg"

var now = time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)

// away are keys whose database is away.
type away struct{}

func (away) Keys(context.Context) (receipts.Keys, error) { return nil, errors.New("away") }

func routes(t *testing.T, keys verify.Keys) chi.Router {
	t.Helper()
	v, err := verify.New(verify.Config{Keys: keys, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	v.Routes(r)
	return r
}

// The key set is public, cached for minutes, and read by pages of any site.
func TestKeySet(t *testing.T) {
	t.Parallel()
	_, pool := servers.Database(t)
	master := secret.GenerateKeys()
	if err := receipts.EnsureKeys(t.Context(), pool, master, operation.Actor{Kind: operation.ActorService, Name: "test"}, now); err != nil {
		t.Fatal(err)
	}
	store, err := receipts.NewStore(receipts.StoreConfig{Pool: pool, Keys: master, PublicURL: "https://" + host})
	if err != nil {
		t.Fatal(err)
	}
	r := routes(t, store)
	get := func(r http.Handler, etag string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/.well-known/jwks.json", nil)
		req.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		return w
	}
	w := get(r, "")
	keys, err := receipts.ParseJWKS(w.Body.Bytes())
	if w.Code != http.StatusOK || err != nil || len(keys) != 2 {
		t.Fatalf("%d %s, %v", w.Code, w.Body, err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/jwk-set+json", "Cache-Control": "public, max-age=300, stale-if-error=86400", "Access-Control-Allow-Origin": "*",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if again := get(r, w.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("with the ETag: %d", again.Code)
	}
	if w := get(routes(t, away{}), ""); w.Code != http.StatusServiceUnavailable || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Retry-After") == "" {
		t.Errorf("without a database: %d %v", w.Code, w.Header())
	}
}
