package connector

import (
	"encoding/json"
	"fmt"
)

// Redirect is the operator's page on which the payer goes on (contract, "Card
// payment": next_action.redirect). Whoever has it can pay, so it is stored sealed and
// prints nothing of its content.
type Redirect struct {
	URL           string `json:"url"`
	TransactionID string `json:"transaction_id"`
	ClientToken   string `json:"client_token"`
	Environment   string `json:"checkout_environment"`
}

// String hides the redirect from logs.
func (Redirect) String() string { return "redirect" }

// GoString is String, for %#v.
func (Redirect) GoString() string { return "redirect" }

// redirectLabel names the use of the key under which redirects are sealed.
const redirectLabel = "redirect"

// Sealer seals; *secret.Keys is one.
type Sealer interface {
	Seal(label string, plaintext, aad []byte) ([]byte, error)
}

// Opener opens what a Sealer sealed; *secret.Keys is one.
type Opener interface {
	Open(label string, ciphertext, aad []byte) ([]byte, error)
}

// SealRedirect is the redirect as a ciphertext that opens for this session and
// collection only.
func SealRedirect(s Sealer, sessionID, collectionID string, r Redirect) ([]byte, error) {
	plain, err := json.Marshal(r) //nolint:gosec // sealed in the next line
	if err == nil {
		var sealed []byte
		if sealed, err = s.Seal(redirectLabel, plain, callbackData(sessionID, collectionID)); err == nil {
			return sealed, nil
		}
	}
	return nil, fmt.Errorf("sealing a redirect: %w", err)
}

// OpenRedirect opens what SealRedirect sealed.
func OpenRedirect(o Opener, sessionID, collectionID string, sealed []byte) (Redirect, error) {
	var r Redirect
	plain, err := o.Open(redirectLabel, sealed, callbackData(sessionID, collectionID))
	if err == nil {
		err = json.Unmarshal(plain, &r)
	}
	if err != nil {
		return Redirect{}, fmt.Errorf("opening a redirect: %w", err)
	}
	return r, nil
}
