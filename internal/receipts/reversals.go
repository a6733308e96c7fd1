package receipts

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// reversalsType is the typ of a list. No token of a receipt has it, so neither counts as the
// other.
const reversalsType = "quittance-reversals+jwt"

// Reversals is the list of reversed payments whose receipts one key signed. It is signed with
// the same key.
type Reversals struct {
	Issuer string `json:"iss"`
	// At is as of when the list is complete, in seconds.
	At int64 `json:"iat"`
	// Count is the number of reversals. A reversal is never undone, so a list with a smaller
	// count is older, whatever clocks say.
	Count int `json:"n"`
	// Reversed has the times of the reversals in seconds, by the jti of the receipts.
	Reversed map[string]int64 `json:"reversed"`
}

// jws is a JWS in flattened JSON (RFC 7515, section 7.2.2).
type jws struct {
	Payload   string `json:"payload"`
	Protected string `json:"protected"`
	Signature string `json:"signature"`
}

func reversalsHeader(kid string) string {
	return `{"alg":"` + algorithm + `","kid":"` + kid + `","typ":"` + reversalsType + `"}`
}

// SignReversals returns the signed list, a JWS in flattened JSON.
func (s *Signer) SignReversals(r Reversals) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a list of reversals: %w", err)
	}
	out := jws{Payload: encoding.EncodeToString(payload), Protected: encoding.EncodeToString([]byte(reversalsHeader(s.key.ID)))}
	out.Signature = encoding.EncodeToString(ed25519.Sign(s.private, []byte(out.Protected+"."+out.Payload)))
	return json.Marshal(out)
}

// ErrReversals says that a list is not one that the key has signed for the issuer.
var ErrReversals = errors.New("not a list of reversals of this service")

// ReadReversals reads the list of a key that SignReversals made. An empty issuer is any. The
// error wraps ErrReversals, or ErrUnknownKey if the list's key is unknown.
func (ks Keys) ReadReversals(issuer string, body []byte) (kid string, r Reversals, err error) {
	var list jws
	if err := json.Unmarshal(body, &list); err != nil {
		return "", Reversals{}, fmt.Errorf("%w: %w", ErrReversals, err)
	}
	head, err := encoding.DecodeString(list.Protected)
	var named struct {
		Kid string `json:"kid"`
	}
	if err != nil || json.Unmarshal(head, &named) != nil || string(head) != reversalsHeader(named.Kid) {
		return "", Reversals{}, fmt.Errorf("%w: its header", ErrReversals)
	}
	key, ok := ks.Find(named.Kid)
	if !ok {
		return "", Reversals{}, ErrUnknownKey
	}
	signature, err := encoding.DecodeString(list.Signature)
	if err != nil || !ed25519.Verify(key.Public, []byte(strings.Join([]string{list.Protected, list.Payload}, ".")), signature) {
		return "", Reversals{}, fmt.Errorf("%w: its signature", ErrReversals)
	}
	payload, err := encoding.DecodeString(list.Payload)
	if err != nil || json.Unmarshal(payload, &r) != nil || issuer != "" && r.Issuer != issuer || r.Count != len(r.Reversed) {
		return "", Reversals{}, fmt.Errorf("%w: its content", ErrReversals)
	}
	return key.ID, r, nil
}
