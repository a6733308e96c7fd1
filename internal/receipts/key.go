package receipts

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AnnouncedFor is how long a key is public before it signs. A page that works without
// network then knows the key of every receipt that it meets.
const AnnouncedFor = 30 * 24 * time.Hour

// Key is a public key. Test receipts have keys of their own.
type Key struct {
	// ID is the kid: test- or live- and 48 bits of the key's thumbprint (RFC 7638). The mode
	// in it is for readers; Live counts.
	ID     string
	Live   bool
	Public ed25519.PublicKey
	// From is when the key begins to sign. Until is when the next one took over; zero while
	// it signs. Both are compared with the time of the payment.
	From, Until time.Time
	// RevokedAt is when the key was declared stolen; zero if it was not.
	RevokedAt time.Time
}

// NewKey names a public key.
func NewKey(live bool, public ed25519.PublicKey, from time.Time) (Key, error) {
	if len(public) != ed25519.PublicKeySize {
		return Key{}, fmt.Errorf("public key has %d bytes, want %d", len(public), ed25519.PublicKeySize)
	}
	mode := "test-"
	if live {
		mode = "live-"
	}
	// RFC 7638: the required members in alphabetical order (RFC 8037, section 2).
	thumbprint := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return Key{ID: mode + base64.RawURLEncoding.EncodeToString(thumbprint[:6]), Live: live, Public: public, From: from}, nil
}

// signs reports whether the key signs payments of the time. Seconds count, as in tokens.
func (k Key) signs(at time.Time) bool {
	return at.Unix() >= k.From.Unix() && (k.Until.IsZero() || at.Unix() < k.Until.Unix())
}

// Keys are all keys of an installation: announced, signing, retired and revoked ones. The
// zero value knows none. It is safe for concurrent use as long as nobody changes it.
type Keys []Key

// ErrNoKey says that no key signs receipts of a mode and time.
var ErrNoKey = errors.New("no key signs receipts of this mode and time: `quittance receipts keys list` shows the keys")

// Signing returns the key of a mode that signs the receipts of payments that were recorded at a time. It stays the same
// after a rotation, so a receipt that is made again has the same bytes. A revoked key goes
// on signing the payments of its time: their tokens are verified online.
func (ks Keys) Signing(live bool, recordedAt time.Time) (Key, error) {
	i := slices.IndexFunc(ks, func(k Key) bool { return k.Live == live && k.signs(recordedAt) })
	if i < 0 {
		return Key{}, ErrNoKey
	}
	return ks[i], nil
}

// Find returns the key with the id.
func (ks Keys) Find(id string) (Key, bool) {
	i := slices.IndexFunc(ks, func(k Key) bool { return k.ID == id })
	if i < 0 {
		return Key{}, false
	}
	return ks[i], true
}

// jwk is a key in a JWK set (RFC 7517, RFC 8037). nbf and exp are those of the historical keys
// of OpenID Federation 1.0; a JOSE library ignores them. mode is ours.
type jwk struct {
	Type  string `json:"kty"`
	Curve string `json:"crv"`
	X     string `json:"x"`
	ID    string `json:"kid"`
	Use   string `json:"use"`
	Alg   string `json:"alg"`
	Mode  string `json:"mode"`
	From  int64  `json:"nbf"`
	Until int64  `json:"exp,omitempty"`
}

// JWKS returns the document for /.well-known/jwks.json: every key that is public at the
// time, in the order of From. Revoked keys are not in it: whoever has no network must not
// trust what they sign.
func (ks Keys) JWKS(now time.Time) []byte {
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: []jwk{}}
	sorted := slices.SortedStableFunc(slices.Values(ks), func(a, b Key) int {
		if c := a.From.Compare(b.From); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	for _, k := range sorted {
		if now.Before(k.From.Add(-AnnouncedFor)) || !k.RevokedAt.IsZero() {
			continue
		}
		out := jwk{Type: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(k.Public), ID: k.ID, Use: "sig", Alg: algorithm, Mode: "test", From: k.From.Unix()}
		if k.Live {
			out.Mode = "live"
		}
		if !k.Until.IsZero() {
			out.Until = k.Until.Unix()
		}
		set.Keys = append(set.Keys, out)
	}
	body, err := json.Marshal(set)
	if err != nil {
		panic(err) // texts and numbers only
	}
	return body
}

// ParseJWKS reads the document of [Keys.JWKS], for a command that verifies with the keys of
// a running service. It refuses a set with anything that is no key of ours.
func ParseJWKS(body []byte) (Keys, error) {
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, fmt.Errorf("reading a key set: %w", err)
	}
	var out Keys
	for i, j := range set.Keys {
		public, err := base64.RawURLEncoding.Strict().DecodeString(j.X)
		if err != nil || j.Type != "OKP" || j.Curve != "Ed25519" || j.Alg != algorithm || j.Mode != "live" && j.Mode != "test" {
			return nil, fmt.Errorf("keys[%d] is not an Ed25519 key of receipts", i)
		}
		k, err := NewKey(j.Mode == "live", public, time.Unix(j.From, 0).UTC())
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		if _, twice := out.Find(k.ID); twice || k.ID != j.ID {
			return nil, fmt.Errorf("keys[%d]: the kid is not that of the key, or occurs twice", i)
		}
		if j.Until != 0 {
			k.Until = time.Unix(j.Until, 0).UTC()
		}
		out = append(out, k)
	}
	return out, nil
}
