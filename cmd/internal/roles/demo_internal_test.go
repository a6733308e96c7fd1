package roles

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"quittance/internal/cashin"
	"quittance/internal/identity"
	"quittance/internal/registry"
	"quittance/test/registries"
	"quittance/test/servers"
)

// A production role does not start on a database with the demo registry, and its keys open
// nothing. Both were accepted.
func TestDemoSecretsAreRefused(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	text, err := os.ReadFile("../../../deploy/dev/registry.yaml")
	if err != nil {
		t.Fatal(err)
	}
	h.Seed(t, string(text))
	keys := []string{"sk_test_GuichetDemoKey00000000000", "sk_live_PlatformDemoKey0000000000"}
	const clerk = "ck_test_Guichet1DemoKey0000000000"
	production, developer := h.Open(t), h.Open(t, func(cfg *registries.Config) { cfg.Demo = true })
	for _, key := range keys {
		if _, err := production.AuthenticateKey(key); !errors.Is(err, identity.ErrKeyDemo) || !errors.Is(err, identity.ErrUnauthorized) {
			t.Errorf("%s: %v", key, err)
		}
		if _, err := developer.AuthenticateKey(key); err != nil {
			t.Errorf("%s in developer mode: %v", key, err)
		}
	}
	if _, err := production.AuthenticateClerk(clerk); !errors.Is(err, identity.ErrKeyDemo) {
		t.Errorf("%s: %v", clerk, err)
	}

	b := &Base{Settings: Settings{Program: "quittance"}, Pool: h.Pool, ctx: t.Context()}
	refused := func() string {
		t.Helper()
		i := h.Open(t)
		if err := b.refuseDemoSecrets(i.Registry, i.Identities); err != nil {
			return err.Error()
		}
		return ""
	}
	first := refused()
	if n := strings.Count(first, "\n"); n != 15 { // 6 keys, 2 of clerks, 3 endpoints, 2 ERPs, an account at the switch, a pair of a partner
		t.Errorf("%d secrets are named: %s", n, first)
	}
	for _, want := range []string{"of Guichet fiscal (impots): end it with `quittance keys revoke ", "of clerk impots/c02: end it with `quittance clerks revoke ", " --overlap 0`", "the ERP impots/test: ", "the cash-in credentials of Vente de timbres (impots): replace them with `quittance cashin rotate "} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is missing in %s", want, first)
		}
	}
	for _, s := range append(keys, clerk, "DemoErpToken", "whsec_", "ak_test_", "as_test_") {
		if strings.Contains(first, s) {
			t.Errorf("the error holds a secret: %s", first)
		}
	}
	b.PlainSecrets = true
	if err := refused(); err != "" {
		t.Errorf("in developer mode: %s", err)
	}
	b.PlainSecrets = false

	// What the error says mends it.
	i := h.Open(t)
	for _, k := range i.DemoKeys() {
		if k.ClerkCode != "" {
			_, _, err = identity.RevokeClerkKeys(t.Context(), h.Pool, h.Keys, registries.Actor, k.ID, registries.Epoch)
		} else {
			_, _, err = identity.RevokeKey(t.Context(), h.Pool, h.Keys, registries.Actor, k.ID, registries.Epoch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range i.DemoSecrets() {
		if s.EndpointID == "" {
			continue
		}
		if _, err := registry.RotateSecret(t.Context(), h.Pool, h.Keys, registries.Actor, s.EndpointID, 0, registries.Epoch); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := cashin.Rotate(t.Context(), h.Pool, h.Keys, registries.Actor, "Vente de timbres", nil, registries.Epoch); err != nil {
		t.Fatal(err)
	}
	h.Seed(t, strings.NewReplacer("DemoErpTokenImpots000000", "own-token-of-the-erp", "DemoErpTokenDouanes00000", "own-token-of-another", ": simulator\n", ": own-secret-of-the-account\n").Replace(string(text))) // undoes no revocation
	if err := refused(); err != "" {
		t.Errorf("after the mends: %s", err)
	}
}

// /readyz of an ingress that is cut off from Postgres says so, and is well again with
// Postgres.
func TestIngressIsNotReadyWithoutNews(t *testing.T) {
	t.Parallel()
	h := registries.SetUp(t)
	pool, gate := h.Gate(t)
	i := h.Open(t, func(cfg *registries.Config) { cfg.Pool, cfg.MaxAge = pool, time.Second })
	registries.Run(t, i)
	b := newBase(t.Context(), Settings{}, servers.Logger(t))
	b.Identities = i.Identities
	b.readyWithNews()
	if err := b.Unready(); err != nil {
		t.Fatal(err)
	}
	gate.Shut(true)
	registries.Within(t, 10*time.Second, "not ready", func() bool {
		err := b.Unready()
		return errors.Is(err, identity.ErrStale) && strings.Contains(err.Error(), "registry: no news from Postgres")
	})
	gate.Shut(false)
	registries.Within(t, 10*time.Second, "ready again", func() bool { return b.Unready() == nil })
}
