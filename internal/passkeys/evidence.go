package passkeys

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"
)

// BeginProof returns the options with which a browser has one of an owner's passkeys sign a challenge of the
// caller's (PublicKeyCredentialRequestOptionsJSON, below publicKey). The challenge has 16 bytes at least.
func (p *Party) BeginProof(o Owner, challenge []byte) (json.RawMessage, error) {
	if p.party == nil {
		return nil, ErrUnavailable
	}
	options, _, err := p.party.BeginLogin(user{o}, webauthn.WithChallenge(challenge), webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, err
	}
	return json.Marshal(options)
}

// VerifyProof verifies that an answer proves a passkey of an owner over a challenge of BeginProof, as Verify does.
func (p *Party) VerifyProof(o Owner, challenge []byte, a Assertion) (proven Credential, fell bool, err error) {
	return p.verify(o, a, func(owner user) (*webauthn.Credential, error) {
		return p.party.ValidateLogin(owner, webauthn.SessionData{
			Challenge: base64.RawURLEncoding.EncodeToString(challenge), RelyingPartyID: p.party.Config.RPID, UserID: owner.ID[:],
			UserVerification: protocol.VerificationRequired,
		}, a.parsed)
	})
}

// Challenge is the challenge that the answer says to be of, not verified yet; nil for none.
func (a Assertion) Challenge() []byte {
	out, err := base64.RawURLEncoding.DecodeString(a.parsed.Response.CollectedClientData.Challenge)
	if err != nil {
		return nil
	}
	return out
}

// Evidence is what an authenticator has signed, for whoever verifies it later.
type Evidence struct {
	// ClientData is the JSON of the browser, AuthenticatorData the bytes of the authenticator (Web Authentication
	// Level 3, §§ 5.8.1 and 6.1), Signature that over both.
	ClientData, AuthenticatorData, Signature []byte
}

// Evidence returns what the authenticator has signed.
func (a Assertion) Evidence() Evidence {
	r := a.parsed.Raw.AssertionResponse
	return Evidence{bytes.Clone(r.ClientDataJSON), bytes.Clone(r.AuthenticatorData), bytes.Clone(r.Signature)}
}

// SPKI returns the public key of the passkey as SubjectPublicKeyInfo (RFC 5280). Keys of ECDSA, RSA and Ed25519 have that form.
func (c Credential) SPKI() ([]byte, error) {
	parsed, err := webauthncose.ParsePublicKey(c.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("reading the public key of a passkey: %w", err)
	}
	var key crypto.PublicKey
	switch k := parsed.(type) {
	case webauthncose.EC2PublicKeyData:
		if key, err = k.ToECDSA(); err != nil {
			return nil, fmt.Errorf("reading the public key of a passkey: %w", err)
		}
	case webauthncose.OKPPublicKeyData:
		key = ed25519.PublicKey(k.XCoord)
	case webauthncose.RSAPublicKeyData:
		key = &rsa.PublicKey{N: new(big.Int).SetBytes(k.Modulus), E: int(new(big.Int).SetBytes(k.Exponent).Int64())}
	default:
		return nil, errors.New("reading the public key of a passkey: its kind has no form as SubjectPublicKeyInfo")
	}
	return x509.MarshalPKIXPublicKey(key)
}

// Flags of the authenticator's data.
const (
	flagPresent  = 1 << 0
	flagVerified = 1 << 2
)

// Proves reports whether the evidence is a signature over a challenge, by the key (SubjectPublicKeyInfo), made at
// pages of a host, and with the user verified. It needs nothing but these bytes. A key of ECDSA signs with SHA-256 on P-256, SHA-384
// on P-384 and SHA-512 on P-521, as authenticators do; a key of RSA with PKCS #1 v1.5 and SHA-256.
func (e Evidence) Proves(key []byte, host string, challenge []byte) bool {
	var client struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(e.ClientData, &client) != nil || client.Type != "webauthn.get" ||
		subtle.ConstantTimeCompare([]byte(client.Challenge), []byte(base64.RawURLEncoding.EncodeToString(challenge))) != 1 {
		return false
	}
	of := sha256.Sum256([]byte(host))
	// The authenticator binds a passkey to the host, so that the origin in the browser's JSON adds nothing.
	if len(e.AuthenticatorData) < 37 || !bytes.Equal(e.AuthenticatorData[:32], of[:]) || e.AuthenticatorData[32]&flagPresent == 0 || e.AuthenticatorData[32]&flagVerified == 0 {
		return false
	}
	client256 := sha256.Sum256(e.ClientData)
	message := append(bytes.Clone(e.AuthenticatorData), client256[:]...)
	parsed, err := x509.ParsePKIXPublicKey(key)
	if err != nil {
		return false
	}
	switch k := parsed.(type) {
	case *ecdsa.PublicKey:
		h := crypto.SHA256
		switch k.Params().BitSize {
		case 384:
			h = crypto.SHA384
		case 521:
			h = crypto.SHA512
		}
		sum := h.New()
		sum.Write(message)
		return ecdsa.VerifyASN1(k, sum.Sum(nil), e.Signature)
	case ed25519.PublicKey:
		return ed25519.Verify(k, message, e.Signature)
	case *rsa.PublicKey:
		sum := sha256.Sum256(message)
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum[:], e.Signature) == nil
	}
	return false
}
