package counter_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quittance/ingress/counter"
	"quittance/internal/identity"
	"quittance/internal/operation"
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

func (a *ageing) Clerk(agencyID, code string) (identity.Clerk, bool) {
	return a.Load().Clerk(agencyID, code)
}

func (a *ageing) BeginClerkSession(ctx context.Context, keyID string) (string, error) {
	return a.Load().BeginClerkSession(ctx, keyID)
}

func (a *ageing) ClerkSession(ctx context.Context, id string) (identity.ClerkPrincipal, error) {
	return a.Load().ClerkSession(ctx, id)
}

func (a *ageing) EndClerkSession(ctx context.Context, id string) error {
	return a.Load().EndClerkSession(ctx, id)
}

func (a *ageing) SignInWithPIN(ctx context.Context, deviceID, code, pin string) (string, error) {
	return a.Load().SignInWithPIN(ctx, deviceID, code, pin)
}

func (a *ageing) RememberDevice(ctx context.Context, actor operation.Actor, clerk identity.ClerkPrincipal, session, deviceID, pin string) (string, error) {
	return a.Load().RememberDevice(ctx, actor, clerk, session, deviceID, pin)
}

func (a *ageing) ForgetDevice(ctx context.Context, actor operation.Actor, clerk identity.ClerkPrincipal) error {
	return a.Load().ForgetDevice(ctx, actor, clerk)
}

// An instance that is cut off from Postgres does not know which clerks' keys are revoked. It
// answers 503, and clerks stay signed in until it has news.
func TestCutOffFromPostgres(t *testing.T) {
	t.Parallel()
	var clerks ageing
	var cfg counter.Config
	w := serve(t, func(c *counter.Config) {
		clerks.Store(c.Identities.(*identity.Identities))
		c.Identities = &clerks
		cfg = *c
	})
	fresh := clerks.Load()
	stale, err := identity.Open(t.Context(), identity.Config{Registry: cfg.Registry.(*registry.Registry), Pool: w.pool, Keys: w.masters, Log: servers.Logger(t), Now: cfg.Now, MaxAge: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	s := w.create(nil)
	b := w.signedIn(c01)

	clerks.Store(stale)
	a := w.want(w.call(c01, http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef}), http.StatusServiceUnavailable, "generic.unavailable")
	if a.header.Get("Retry-After") != "10" {
		t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
	}
	w.want(w.call("ck_test_unknown0000000000000000", http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef}), http.StatusServiceUnavailable, "generic.unavailable")
	b.get("/counter/"+s.PaymentRef).want(http.StatusServiceUnavailable, "Rien n’a été")
	w.browse().get("/counter").post("/sign-in", "key", c01).want(http.StatusServiceUnavailable, "Rien n’a été")

	clerks.Store(fresh)
	b.get("/counter/"+s.PaymentRef).want(http.StatusOK, "Ce paiement n’est pas réglé")
	w.want(w.call(c01, http.MethodPost, "/reservations", object{"payment_ref": s.PaymentRef}), http.StatusCreated, "")
}
