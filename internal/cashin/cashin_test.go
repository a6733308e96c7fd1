package cashin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/internal/cashin"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/test/registries"
)

// house has a registry with one application, and a store of each of two instances.
type house struct {
	registries.House
	t        *testing.T
	watch    registries.Watch
	one, two *cashin.Store
}

const registry = `
agencies:
  - {id: 018f0000-0000-7000-8000-000000000001, slug: impots, name: X, applications: [
      {id: 018f0000-0000-7000-8000-00000000000a, name: Boutique},
      {id: 018f0000-0000-7000-8000-00000000000b, name: Autre, active: false}]}`

func setUp(t *testing.T) *house {
	t.Helper()
	h := &house{House: registries.SetUp(t), t: t}
	h.Seed(t, registry)
	h.one, h.two = h.store(false), h.store(false)
	return h
}

func (h *house) store(demo bool) *cashin.Store {
	h.t.Helper()
	s, err := cashin.New(cashin.Config{Pool: h.Pool, Keys: h.Keys, Now: h.watch.Now, Demo: demo})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) create(application string) cashin.Minted {
	h.t.Helper()
	m, err := cashin.Create(h.t.Context(), h.Pool, h.Keys, registries.Actor, application, false, h.watch.Now())
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

func (h *house) generate(m cashin.Minted) string {
	h.t.Helper()
	token, expires, err := generate(h.t.Context(), h.one, m.APIKey.Reveal(), m.SecretKey.Reveal())
	if err != nil {
		h.t.Fatal(err)
	}
	if want := h.watch.Now().Add(2 * time.Hour); !expires.Equal(want) {
		h.t.Errorf("the token expires at %s, want %s", expires, want)
	}
	return token.Reveal()
}

// generate checks credentials and generates a token, as the surface does.
func generate(ctx context.Context, s *cashin.Store, apiKey, secretKey string) (token secret.Text, expiresAt time.Time, err error) {
	p, right, err := s.Check(ctx, apiKey, secretKey)
	if err == nil && !right {
		err = cashin.ErrUnauthorized
	}
	if err != nil {
		return token, expiresAt, err
	}
	return s.Generate(ctx, p.PairID)
}

// refused reports whether both instances refuse a token.
func (h *house) refused(token string) bool {
	h.t.Helper()
	refused := 0
	for _, s := range []*cashin.Store{h.one, h.two} {
		_, err := s.Authenticate(h.t.Context(), token)
		switch {
		case errors.Is(err, cashin.ErrUnauthorized):
			refused++
		case err != nil:
			h.t.Fatal(err)
		}
	}
	if refused == 1 {
		h.t.Error("the instances disagree")
	}
	return refused > 0
}

func TestTokens(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	m := h.create("Boutique")
	a, b := h.generate(m), h.generate(m)
	if !strings.HasPrefix(a, "oat_") || a == b {
		t.Errorf("tokens are %d and %d characters", len(a), len(b))
	}
	p, err := h.two.Authenticate(t.Context(), a)
	if want := (cashin.Principal{PairID: m.ID, ApplicationID: registries.AppA}); err != nil || p != want {
		t.Errorf("principal %+v, %v", p, err)
	}
	for _, bad := range []string{"", "oat_", a + "x", strings.ToUpper(a), "oat_" + strings.Repeat("0", 43), m.APIKey.Reveal()} {
		if !h.refused(bad) {
			t.Errorf("%q is a token", bad)
		}
	}
	if err := h.one.RevokeToken(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if !h.refused(a) || h.refused(b) { // only the presented one, at every instance at once
		t.Error("a revocation ends another token, or not its own")
	}
	h.watch.Set(2*time.Hour - time.Second)
	if h.refused(b) {
		t.Error("the token ends before two hours")
	}
	h.watch.Set(2 * time.Hour)
	if !h.refused(b) {
		t.Error("the token is valid after two hours")
	}
	h.generate(m)
	var left int
	if err := h.Pool.QueryRow(t.Context(), `SELECT count(*) FROM cashin_tokens`).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d tokens are left, %v: expired ones are not deleted", left, err)
	}
}

// Nobody learns which part of the credentials is wrong.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	m := h.create("Boutique")
	other := h.create(registries.AppB) // not active
	for name, pair := range map[string][2]string{
		"unknown key": {"ak_test_unknown", m.SecretKey.Reveal()}, "wrong secret": {m.APIKey.Reveal(), "as_test_wrong"}, "empty secret": {m.APIKey.Reveal(), ""},
		"secret of another": {m.APIKey.Reveal(), other.SecretKey.Reveal()}, "inactive application": {other.APIKey.Reveal(), other.SecretKey.Reveal()},
	} {
		if _, _, err := generate(t.Context(), h.one, pair[0], pair[1]); !errors.Is(err, cashin.ErrUnauthorized) || err.Error() != cashin.ErrUnauthorized.Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
	token := h.generate(m)
	h.Write(t, `UPDATE applications SET active = false WHERE id = $1`, registries.AppA)
	if !h.refused(token) {
		t.Error("an application that is not active keeps its tokens")
	}
	h.Write(t, `UPDATE applications SET active = true WHERE id = $1`, registries.AppA)
	if h.refused(token) {
		t.Error("the token is lost")
	}
	if p, right, err := h.one.Check(t.Context(), m.APIKey.Reveal(), "wrong"); err != nil || right || p != (cashin.Principal{PairID: m.ID, ApplicationID: registries.AppA}) {
		t.Errorf("the key is of %+v, %v, %v", p, right, err)
	}
	if p, right, err := h.one.Check(t.Context(), "ak_test_unknown", "wrong"); err != nil || right || p != (cashin.Principal{}) {
		t.Errorf("an unknown key is of %+v, %v, %v", p, right, err)
	}
}

// A rotation and a revocation end the pair and all of its tokens at once, also a token that
// an instance was generating meanwhile.
func TestRotation(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	ctx := t.Context()
	first := h.create("Boutique")
	token := h.generate(first)
	live := true
	second, err := cashin.Rotate(ctx, h.Pool, h.Keys, registries.Actor, "Boutique", &live, h.watch.Now())
	if err != nil || !second.Live || second.ID == first.ID || second.APIKey.Equal(first.APIKey) {
		t.Fatalf("rotated to %+v, %v", second.Entry, err)
	}
	if !h.refused(token) {
		t.Error("a token survives the rotation")
	}
	h.Exec(t, `INSERT INTO cashin_tokens (hash, pair_id, expires_at) VALUES (sha256($1::bytea), $2, $3)`, []byte(token), first.ID, h.watch.Now().Add(time.Hour))
	if !h.refused(token) {
		t.Error("a token of an ended pair opens")
	}
	if _, _, err := generate(ctx, h.one, first.APIKey.Reveal(), first.SecretKey.Reveal()); !errors.Is(err, cashin.ErrUnauthorized) {
		t.Errorf("the old pair: %v", err)
	}
	again := h.generate(second)
	if p, err := h.two.Authenticate(ctx, again); err != nil || !p.Live {
		t.Errorf("principal %+v, %v", p, err)
	}
	if _, err := cashin.Revoke(ctx, h.Pool, h.Keys, registries.Actor, "Boutique", h.watch.Now()); err != nil {
		t.Fatal(err)
	}
	if !h.refused(again) {
		t.Error("a token survives the revocation")
	}

	refusedWith(t, code("cashin.none"), func() error {
		_, err := cashin.Revoke(ctx, h.Pool, h.Keys, registries.Actor, "Boutique", h.watch.Now())
		return err
	})
	refusedWith(t, code("cashin.none"), func() error {
		_, err := cashin.Rotate(ctx, h.Pool, h.Keys, registries.Actor, "Boutique", nil, h.watch.Now())
		return err
	})
	h.create("Boutique")
	refusedWith(t, code("cashin.in_force"), func() error {
		_, err := cashin.Create(ctx, h.Pool, h.Keys, registries.Actor, "Boutique", false, h.watch.Now())
		return err
	})
	refusedWith(t, code("application.unknown"), func() error {
		_, err := cashin.Create(ctx, h.Pool, h.Keys, registries.Actor, "Nobody", false, h.watch.Now())
		return err
	})
	entries, err := cashin.List(ctx, h.Pool)
	if err != nil || len(entries) != 3 || entries[0].Application != "Boutique" || entries[0].Agency != "impots" || !entries[0].RevokedAt.IsZero() || entries[2].RevokedAt.IsZero() {
		t.Errorf("pairs: %+v, %v", entries, err)
	}
	if got := strings.Join(h.Audited(t), " "); got != "registry.apply cashin.create cashin.rotate cashin.revoke cashin.create" {
		t.Errorf("the audit table has %s", got)
	}
}

type code string

func refusedWith(t *testing.T, want code, do func() error) {
	t.Helper()
	var refused *operation.Error
	if err := do(); !errors.As(err, &refused) || refused.Code != string(want) || refused.Field != "application" {
		t.Errorf("got %v, want %s", err, want)
	}
}

// The database holds no secret from which a pair or a token can be computed.
func TestOnlyHashesAreStored(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	m := h.create("Boutique")
	token := h.generate(m)
	for _, table := range []string{"cashin_pairs", "cashin_tokens", "cashin_access", "audit"} {
		var text string
		if err := h.Pool.QueryRow(t.Context(), `SELECT coalesce(string_agg(x::text, ' '), '') FROM `+table+` x`).Scan(&text); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{m.APIKey.Reveal(), m.SecretKey.Reveal(), token} {
			if strings.Contains(text, s) || strings.Contains(text, hex(s)) {
				t.Errorf("%s holds a secret in plain", table)
			}
		}
	}
}

func hex(s string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for _, c := range []byte(s) {
		b.WriteByte(digits[c>>4])
		b.WriteByte(digits[c&15])
	}
	return b.String()
}

// Outside developer mode a pair that everybody can read opens nothing.
func TestDemoPair(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	const public = "sk_test_GuichetDemoKey00000000000"
	if !secret.IsDemo(secret.NewText(public)) {
		t.Fatal("not a secret of the demo registry")
	}
	h.Seed(t, strings.Replace(registry, "name: Boutique", "name: Boutique, cashin: {mode: test, api_key: "+public+", secret_key: any}", 1))
	if _, _, err := generate(t.Context(), h.one, public, "any"); !errors.Is(err, cashin.ErrUnauthorized) {
		t.Errorf("production: %v", err)
	}
	if _, _, err := generate(t.Context(), h.store(true), public, "any"); err != nil {
		t.Errorf("developer mode: %v", err)
	}
}
