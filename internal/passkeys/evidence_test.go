package passkeys_test

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"testing"

	"github.com/descope/virtualwebauthn"
	"github.com/google/uuid"

	"quittance/internal/passkeys"
)

// What a passkey has signed is verified with the public key alone, years later. Each byte counts, and so does each
// thing that the signature is for.
func TestEvidence(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]virtualwebauthn.KeyType{"P-256": virtualwebauthn.KeyTypeEC2, "RSA": virtualwebauthn.KeyTypeRSA} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			party, err := passkeys.New("https://staff.example")
			if err != nil {
				t.Fatal(err)
			}
			rp := virtualwebauthn.RelyingParty{Name: "staff.example", ID: "staff.example", Origin: "https://staff.example"}
			owner := passkeys.Owner{ID: uuid.New(), Name: "Awa"}
			device, key := virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{UserHandle: owner.ID[:]}), virtualwebauthn.NewCredential(kind)
			options, challenge, err := party.BeginRegistration(owner)
			if err != nil {
				t.Fatal(err)
			}
			wish, err := virtualwebauthn.ParseAttestationOptions(string(options))
			if err != nil {
				t.Fatal(err)
			}
			made, err := party.Register(owner, challenge, []byte(virtualwebauthn.CreateAttestationResponse(rp, device, key, *wish)))
			if err != nil {
				t.Fatal(err)
			}
			owner.Credentials = []passkeys.Credential{made}
			device.AddCredential(key)

			statement := sha256.Sum256([]byte("a decision"))
			over := slices.Concat(bytes.Repeat([]byte{7}, 32), statement[:])
			if options, err = party.BeginProof(owner, over); err != nil {
				t.Fatal(err)
			}
			asked, err := virtualwebauthn.ParseAssertionOptions(string(options))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := passkeys.ParseAssertion([]byte(virtualwebauthn.CreateAssertionResponse(rp, device, key, *asked)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(answer.Challenge(), over) {
				t.Errorf("the answer names challenge %x", answer.Challenge())
			}
			if _, _, err := party.VerifyProof(owner, over, answer); err != nil {
				t.Error(err)
			}
			if _, _, err := party.VerifyProof(owner, bytes.Repeat([]byte{8}, 64), answer); err == nil {
				t.Error("an answer to another challenge is taken")
			}
			if _, _, err := party.VerifyProof(passkeys.Owner{ID: uuid.New(), Credentials: owner.Credentials}, over, answer); err == nil {
				t.Error("another person's passkey is taken")
			}
			public, err := made.SPKI()
			if err != nil {
				t.Fatal(err)
			}
			e := answer.Evidence()
			if !e.Proves(public, "staff.example", over) {
				t.Fatal("the evidence proves nothing")
			}
			if e.Proves(public, "pay.example", over) {
				t.Error("it proves for another host")
			}
			if e.Proves(public, "staff.example", over[1:]) {
				t.Error("it proves another challenge")
			}
			if e.Proves(public[1:], "staff.example", over) {
				t.Error("it proves with no key")
			}
			for part, bytesOf := range map[string]func(*passkeys.Evidence) *[]byte{
				"client data":        func(e *passkeys.Evidence) *[]byte { return &e.ClientData },
				"authenticator data": func(e *passkeys.Evidence) *[]byte { return &e.AuthenticatorData },
				"signature":          func(e *passkeys.Evidence) *[]byte { return &e.Signature },
			} {
				whole := *bytesOf(&e)
				for i := range whole {
					changed := e
					text := bytes.Clone(whole)
					text[i] ^= 1
					*bytesOf(&changed) = text
					if changed.Proves(public, "staff.example", over) {
						t.Errorf("%s: byte %d may differ", part, i)
					}
				}
				short := e
				*bytesOf(&short) = whole[:len(whole)-1]
				if short.Proves(public, "staff.example", over) {
					t.Errorf("%s: its last byte may be missing", part)
				}
			}
		})
	}
}
