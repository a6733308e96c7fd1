package connector

import (
	"encoding/json"
	"fmt"
)

// Redirect is the operator's page on which the payer continues (contract, "Card payment":
// next_action.redirect). Anyone who has it can pay, so it is stored sealed and does not
// print its content.
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

// LabelRedirect is the label under which redirects are sealed.
const LabelRedirect = "redirect"

// Sealer seals values. *secret.Keys is a Sealer.
type Sealer interface {
	Seal(label string, plaintext, aad []byte) ([]byte, error)
}

// Opener opens sealed values. *secret.Keys is an Opener.
type Opener interface {
	Open(label string, ciphertext, aad []byte) ([]byte, error)
}

// SealRedirect seals a redirect so that it opens only for this session and collection.
func SealRedirect(s Sealer, sessionID, collectionID string, r Redirect) ([]byte, error) {
	plain, err := json.Marshal(r) //nolint:gosec // sealed in the next line
	if err == nil {
		var sealed []byte
		if sealed, err = s.Seal(LabelRedirect, plain, callbackData(sessionID, collectionID)); err == nil {
			return sealed, nil
		}
	}
	return nil, fmt.Errorf("sealing a redirect: %w", err)
}

// OpenRedirect opens a redirect that SealRedirect sealed.
func OpenRedirect(o Opener, sessionID, collectionID string, sealed []byte) (Redirect, error) {
	var r Redirect
	plain, err := o.Open(LabelRedirect, sealed, callbackData(sessionID, collectionID))
	if err == nil {
		err = json.Unmarshal(plain, &r)
	}
	if err != nil {
		return Redirect{}, fmt.Errorf("opening a redirect: %w", err)
	}
	return r, nil
}
