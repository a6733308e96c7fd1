package identity

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/internal/secret"
)

// withKeys returns identities with these keys of one application.
func withKeys(keys ...string) *Identities {
	i := &Identities{cfg: Config{Now: func() time.Time { return time.Unix(1_700_000_000, 0).UTC() }}, age: func() time.Duration { return 0 }}
	s := &snapshot{
		registry: &registry.Snapshot{Applications: map[string]registry.Application{"app": {ID: "app", AgencyID: "agency", Active: true}}},
		keys:     map[registry.Digest]Key{},
	}
	for _, k := range keys {
		s.keys[sha256.Sum256([]byte(k))] = Key{ID: k, ApplicationID: "app", Live: strings.HasPrefix(k, APIKeys.Live)}
	}
	i.current.Store(s)
	return i
}

// A text that is not a key is refused. A key is valid in its own mode only.
func FuzzAuthenticateKey(f *testing.F) {
	test, live := "sk_test_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg", "sk_live_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefg"
	// The registry knows these texts, but they do not have the form of a key.
	odd := []string{"", "sk_test_", "sk_test_short", "sk_test_" + strings.Repeat("a", 201), "sk_test_0123456789 ABCDEFGHIJ", "pk_test_0123456789ABCDEFGHIJ", test + "\n"}
	r := withKeys(append(odd, test, live)...)
	for _, key := range append(odd, test, live, strings.ToLower(test), strings.Replace(test, "test", "live", 1)+"x", "Bearer "+test, test+"\x00", "sk_live_é123456789012345678901") {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		p, err := r.AuthenticateKey(key)
		if key == test || key == live {
			if err != nil || p.KeyID != key || p.Live != (key == live) {
				t.Fatalf("%q: %+v, %v", key, p, err)
			}
			return
		}
		if !errors.Is(err, ErrUnauthorized) || p.KeyID != "" {
			t.Fatalf("%q: %+v, %v", key, p, err)
		}
		if len(key) > 8 && strings.Contains(err.Error(), key) {
			t.Fatalf("the error repeats %q", key)
		}
	})
}

func BenchmarkAuthenticateKey(b *testing.B) {
	key := secret.Mint(APIKeys.Test).Reveal()
	r := withKeys(key)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.AuthenticateKey(key); err != nil {
				b.Fatal(err)
			}
		}
	})
}
