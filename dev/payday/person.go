package payday

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"quittance/disbursement"
	"quittance/disbursement/assertion"
	"quittance/disbursement/digest"
)

// Host and origin of the passkeys.
const (
	rpID   = "staff.example"
	origin = "https://staff.example"
)

// Bits of the authenticator data: the person was present, and verified.
const presentAndVerified = 1 | 4

// person is somebody of an agency with a passkey.
type person struct {
	id   string
	key  ed25519.PrivateKey
	spki []byte
}

// newPerson makes a person whose key is made of the id.
func newPerson(id string) (person, error) {
	seed := sha256.Sum256([]byte("payday " + id))
	p := person{id: id, key: ed25519.NewKeyFromSeed(seed[:])}
	var err error
	if p.spki, err = x509.MarshalPKIXPublicKey(p.key.Public()); err != nil {
		return p, fmt.Errorf("making a passkey: %w", err)
	}
	return p, nil
}

// enrolled is the person as an agency enrols one.
func (p person) enrolled(roles ...string) disbursement.Enrolled {
	return disbursement.Enrolled{ID: p.id, Number: "n-" + p.id, Roles: roles, Keys: [][32]byte{sha256.Sum256(p.spki)}}
}

// sign signs a statement as a browser with the person's passkey does.
func (p person) sign(statement digest.Hash) (disbursement.Signed, error) {
	challenge := slices.Concat(make([]byte, 32), statement[:])
	client, err := json.Marshal(map[string]any{
		"type": "webauthn.get", "challenge": base64.RawURLEncoding.EncodeToString(challenge), "origin": origin, "crossOrigin": false,
	})
	if err != nil {
		return disbursement.Signed{}, fmt.Errorf("signing a statement: %w", err)
	}
	host, sum := sha256.Sum256([]byte(rpID)), sha256.Sum256(client)
	data := slices.Concat(host[:], []byte{presentAndVerified, 0, 0, 0, 1})
	return disbursement.Signed{Person: p.id, Assertion: assertion.Assertion{
		PublicKey: p.spki, ClientData: client, AuthenticatorData: data, Signature: ed25519.Sign(p.key, slices.Concat(data, sum[:])),
	}}, nil
}

// step signs what a person says of a batch.
func (p person) step(batch digest.Hash, level int, verdict digest.Verdict) (disbursement.Signed, error) {
	statement, err := digest.Step{Digest: batch, Level: level, Person: p.id, Verdict: verdict}.Statement()
	if err != nil {
		return disbursement.Signed{}, err
	}
	return p.sign(statement)
}

// change signs a change of the agency's people or policy.
func (p person) change(tenantID string, number int64, content map[string]string) (disbursement.Signed, error) {
	statement, err := digest.Change{Agency: tenantID, Number: number, Content: content, Person: p.id}.Statement()
	if err != nil {
		return disbursement.Signed{}, err
	}
	return p.sign(statement)
}
