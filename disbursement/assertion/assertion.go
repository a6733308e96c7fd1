// Package assertion verifies signatures of passkeys with the standard library alone, from their bytes: whoever checks a
// batch later needs neither the service nor a library of Web Authentication (Web Authentication Level 3, § 7.2).
package assertion

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
)

// ChallengeSize is the size of a challenge: 32 random bytes and the statement.
const ChallengeSize = 32 + sha256.Size

// Assertion is what an authenticator has signed.
type Assertion struct {
	// PublicKey is the passkey's, as SubjectPublicKeyInfo (RFC 5280).
	PublicKey []byte
	// ClientData is the browser's JSON, AuthenticatorData the authenticator's bytes, Signature that over both.
	ClientData, AuthenticatorData, Signature []byte
}

// Party is whose pages the passkey is for.
type Party struct {
	RPID   string // such as staff.example
	Origin string // such as https://staff.example
}

// Reasons why an assertion proves nothing.
var (
	ErrClientData  = errors.New("the browser's data is not an assertion's")
	ErrChallenge   = errors.New("another statement was signed")
	ErrOrigin      = errors.New("the page was of another origin")
	ErrParty       = errors.New("the passkey is of another host")
	ErrNotPresent  = errors.New("nobody pressed the authenticator")
	ErrNotVerified = errors.New("the authenticator has not verified the person")
	ErrKey         = errors.New("the public key is none of ES256, RS256 and EdDSA")
	ErrNotSigned   = errors.New("the signature does not hold")
)

// Flags of the authenticator's data.
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
)

// authenticatorSize is the size of the authenticator's data without extensions: the host, flags and a counter.
const authenticatorSize = sha256.Size + 1 + 4

// minRSA is the shortest RSA key, in bits.
const minRSA = 2048

// KeyHash returns the SHA-256 of the public key, by which rosters name it.
func (a Assertion) KeyHash() [sha256.Size]byte { return sha256.Sum256(a.PublicKey) }

// Verify returns why the assertion is no signature of its public key over the statement, made on a page of the party
// with the person verified; nil if it is. It does not know whose key it is.
func (a Assertion) Verify(p Party, statement [sha256.Size]byte) error {
	var client struct {
		Type        string `json:"type"`
		Challenge   string `json:"challenge"`
		Origin      string `json:"origin"`
		CrossOrigin bool   `json:"crossOrigin"`
	}
	if json.Unmarshal(a.ClientData, &client) != nil || client.Type != "webauthn.get" {
		return ErrClientData
	}
	challenge, err := base64.RawURLEncoding.Strict().DecodeString(client.Challenge)
	host := sha256.Sum256([]byte(p.RPID))
	switch {
	case err != nil || len(challenge) != ChallengeSize || !slices.Equal(challenge[32:], statement[:]):
		return ErrChallenge
	case client.Origin != p.Origin || client.CrossOrigin:
		return ErrOrigin
	case len(a.AuthenticatorData) < authenticatorSize || !slices.Equal(a.AuthenticatorData[:32], host[:]):
		return ErrParty
	case a.AuthenticatorData[32]&flagPresent == 0:
		return ErrNotPresent
	case a.AuthenticatorData[32]&flagVerified == 0:
		return ErrNotVerified
	}
	return a.signed()
}

// signed verifies the signature over the authenticator's data and the SHA-256 of the browser's.
func (a Assertion) signed() error {
	client := sha256.Sum256(a.ClientData)
	message := slices.Concat(a.AuthenticatorData, client[:])
	sum := sha256.Sum256(message)
	parsed, err := x509.ParsePKIXPublicKey(a.PublicKey)
	if err != nil {
		return ErrKey
	}
	holds := false
	switch k := parsed.(type) {
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return ErrKey
		}
		holds = ecdsa.VerifyASN1(k, sum[:], a.Signature)
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return ErrKey
		}
		holds = rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], a.Signature) == nil
	case ed25519.PublicKey:
		holds = ed25519.Verify(k, message, a.Signature)
	default:
		return ErrKey
	}
	if !holds {
		return ErrNotSigned
	}
	return nil
}
