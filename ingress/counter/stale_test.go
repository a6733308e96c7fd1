package counter_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quittance/ingress/counter"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/test/servers"
)

// ageing are the identities of an instance that may be cut off from Postgres.
type ageing struct {
	atomic.Pointer[identity.Identities]
}

func (a *ageing) AuthenticateClerk(key string) (identity.ClerkPrincipal, error) {
	return a.Load().AuthenticateClerk(key)
}

func (a *ageing) ClerkByKey(id string) (identity.ClerkPrincipal, error) {
	return a.Load().ClerkByKey(id)
}

// An instance that is cut off from Postgres does not know which clerks' keys are revoked. It
// answers 503, and clerks stay signed in until it has news.
func TestCutOffFromPostgres(t *testing.T) {
	t.Parallel()
	var clerks ageing
	var fresh, stale *identity.Identities
	w := serve(t, func(cfg *counter.Config) {
		reg := cfg.Registry.(*registry.Registry)
		fresh = cfg.Identities.(*identity.Identities)
		_, pool := servers.Database(t)
		var err error
		if stale, err = identity.Open(t.Context(), identity.Config{Registry: reg, Pool: pool, Log: servers.Logger(t), Now: cfg.Now, MaxAge: time.Nanosecond}); err != nil {
			t.Fatal(err)
		}
		clerks.Store(fresh)
		cfg.Identities = &clerks
	})
	s := w.create(nil)
	b := w.signedIn(c01)

	clerks.Store(stale)
	a := w.want(w.call(c01, http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef}), http.StatusServiceUnavailable, "generic.unavailable")
	if a.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
	}
	w.want(w.call("ck_test_unknown0000000000000000", http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef}), http.StatusServiceUnavailable, "generic.unavailable")
	b.get("/counter/"+s.PaymentRef).want(http.StatusServiceUnavailable, "Le service ne répond pas")
	w.browse().get("/counter").post("/sign-in", "key", c01).want(http.StatusServiceUnavailable, "Le service ne répond pas")

	clerks.Store(fresh)
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "Ce paiement n’est pas réglé")
	w.want(w.call(c01, http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef}), http.StatusCreated, "")
}
