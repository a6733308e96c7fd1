package cashin_test

import (
	"crypto/sha256"
	"errors"
	"testing"

	"quittance/internal/cashin"
	"quittance/test/registries"
)

// Whoever can write to Postgres inserts, edits or revives a pair or a token. It opens nothing.
func TestForgedAccessOpensNothing(t *testing.T) {
	t.Parallel()
	const token = "oat_TheTokenOfAThief000000000000000000000000000"
	key, secretKey, hash := sha256.Sum256([]byte("ak_test_thief")), sha256.Sum256([]byte("as_test_thief")), sha256.Sum256([]byte(token))
	for name, forge := range map[string]func(*house, cashin.Minted){
		"another secret": func(h *house, _ cashin.Minted) {
			h.Exec(h.t, `UPDATE cashin_pairs SET api_key_hash = $1, secret_hash = $2`, key[:], secretKey[:])
		},
		"an inserted pair": func(h *house, _ cashin.Minted) {
			h.Exec(h.t, `UPDATE cashin_pairs SET revoked_at = now()`)
			h.Exec(h.t, `INSERT INTO cashin_pairs (id, application_id, live, api_key_hash, secret_hash, created_at, signature) SELECT gen_random_uuid(), application_id, live, $1, $2, created_at, signature FROM cashin_pairs`, key[:], secretKey[:])
		},
		"a token of another pair": func(h *house, m cashin.Minted) {
			h.Exec(h.t, `INSERT INTO cashin_tokens (hash, pair_id, expires_at) VALUES ($1, $2, now() + interval '100 years')`, hash[:], m.ID)
		},
		"a token with the proof of another": func(h *house, m cashin.Minted) {
			h.generate(m)
			h.Exec(h.t, `INSERT INTO cashin_tokens (hash, pair_id, expires_at, mac) SELECT $1, pair_id, expires_at, mac FROM cashin_tokens`, hash[:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setUp(t)
			m := h.create("Boutique")
			forge(h, m)
			if _, right, err := h.one.Check(t.Context(), "ak_test_thief", "as_test_thief"); err != nil || right {
				t.Errorf("the pair opens: %v", err)
			}
			if !h.refused(token) {
				t.Error("the token opens")
			}
		})
	}
}

// A revoked pair that somebody revives, a test pair that becomes a live one, and an application that is
// switched on by SQL open nothing; nor do their tokens.
func TestEditedAccessOpensNothing(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"live":                 `UPDATE cashin_pairs SET live = true`,
		"another application":  `UPDATE cashin_pairs SET application_id = '018f0000-0000-7000-8000-00000000000b'`,
		"application switched": `UPDATE applications SET offers = '{cash_agency}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := setUp(t)
			m := h.create("Boutique")
			token := h.generate(m)
			h.Exec(t, sql)
			if _, _, err := generate(t.Context(), h.one, m.APIKey.Reveal(), m.SecretKey.Reveal()); !errors.Is(err, cashin.ErrUnauthorized) {
				t.Errorf("the pair opens: %v", err)
			}
			if !h.refused(token) {
				t.Error("the token opens")
			}
		})
	}
	h := setUp(t)
	m := h.create("Boutique")
	if _, err := cashin.Revoke(t.Context(), h.Pool, h.Keys, registries.Actor, "Boutique", h.watch.Now()); err != nil {
		t.Fatal(err)
	}
	h.Exec(t, `UPDATE cashin_pairs SET revoked_at = NULL`)
	if _, _, err := generate(t.Context(), h.one, m.APIKey.Reveal(), m.SecretKey.Reveal()); !errors.Is(err, cashin.ErrUnauthorized) {
		t.Errorf("a revived pair opens: %v", err)
	}
}
