package assertion_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"quittance/disbursement/assertion"
)

var party = assertion.Party{RPID: "staff.example", Origin: "https://staff.example"}

// made is what an authenticator signs, and with which key.
type made struct {
	client  map[string]any
	data    []byte
	signer  crypto.Signer
	hash    crypto.Hash
	corrupt bool
}

func (m made) assertion(t *testing.T) assertion.Assertion {
	t.Helper()
	client, err := json.Marshal(m.client)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(m.signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(client)
	message := slices.Concat(m.data, sum[:])
	signed := message
	if m.hash != 0 {
		h := m.hash.New()
		h.Write(message)
		signed = h.Sum(nil)
	}
	signature, err := m.signer.Sign(rand.Reader, signed, m.hash)
	if err != nil {
		t.Fatal(err)
	}
	if m.corrupt {
		signature[len(signature)-1] ^= 1
	}
	return assertion.Assertion{PublicKey: spki, ClientData: client, AuthenticatorData: m.data, Signature: signature}
}

func honest(signer crypto.Signer, hash crypto.Hash, statement [32]byte) made {
	host := sha256.Sum256([]byte(party.RPID))
	return made{
		client: map[string]any{
			"type": "webauthn.get", "origin": party.Origin, "crossOrigin": false,
			"challenge": base64.RawURLEncoding.EncodeToString(slices.Concat(make([]byte, 32), statement[:])),
		},
		data: slices.Concat(host[:], []byte{5, 0, 0, 0, 1}), signer: signer, hash: hash,
	}
}

func key[K crypto.Signer](t *testing.T) func(k K, err error) K {
	return func(k K, err error) K {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
}

// Each of the three kinds of keys verifies, and nothing of an assertion can be changed.
func TestVerify(t *testing.T) {
	t.Parallel()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	statement := sha256.Sum256([]byte("statement"))
	for name, m := range map[string]made{
		"ES256": honest(key[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), crypto.SHA256, statement),
		"RS256": honest(key[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048)), crypto.SHA256, statement),
		"EdDSA": honest(ed, 0, statement),
	} {
		if err := m.assertion(t).Verify(party, statement); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for want, change := range map[error]func(*made){
			assertion.ErrClientData:  func(m *made) { m.client["type"] = "webauthn.create" },
			assertion.ErrOrigin:      func(m *made) { m.client["origin"] = "https://staff.example.org" },
			assertion.ErrChallenge:   func(m *made) { m.client["challenge"] = base64.RawURLEncoding.EncodeToString(statement[:]) },
			assertion.ErrParty:       func(m *made) { m.data[0] ^= 1 },
			assertion.ErrNotPresent:  func(m *made) { m.data[32] = 4 },
			assertion.ErrNotVerified: func(m *made) { m.data[32] = 1 },
			assertion.ErrNotSigned:   func(m *made) { m.corrupt = true },
		} {
			n := honest(m.signer, m.hash, statement)
			change(&n)
			if err := n.assertion(t).Verify(party, statement); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		framed := honest(m.signer, m.hash, statement)
		framed.client["crossOrigin"] = true
		if err := framed.assertion(t).Verify(party, statement); !errors.Is(err, assertion.ErrOrigin) {
			t.Errorf("%s in a frame of another origin: %v", name, err)
		}
		if err := m.assertion(t).Verify(party, sha256.Sum256([]byte("another"))); !errors.Is(err, assertion.ErrChallenge) {
			t.Errorf("%s: another statement: %v", name, err)
		}
		for _, size := range []int{0, 32, 36} {
			short := m.assertion(t)
			short.AuthenticatorData = short.AuthenticatorData[:size]
			if err := short.Verify(party, statement); !errors.Is(err, assertion.ErrParty) {
				t.Errorf("%s of %d bytes: %v", name, size, err)
			}
		}
	}
}

// Other kinds of keys, and short ones, sign nothing here.
func TestOtherKeys(t *testing.T) {
	t.Parallel()
	statement := sha256.Sum256([]byte("statement"))
	for name, m := range map[string]made{
		"ES384":    honest(key[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), crypto.SHA384, statement),
		"RSA 1024": honest(key[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 1024)), crypto.SHA256, statement),
	} {
		if err := m.assertion(t).Verify(party, statement); !errors.Is(err, assertion.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a := honest(key[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), crypto.SHA256, statement).assertion(t)
	a.PublicKey = a.PublicKey[1:]
	if err := a.Verify(party, statement); !errors.Is(err, assertion.ErrKey) {
		t.Errorf("%v", err)
	}
}
