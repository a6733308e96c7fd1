package receipts

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	algorithm = "EdDSA"
	tokenType = "quittance+jwt" //nolint:gosec // a name, no secret
	// maxToken is longer than any token of ours, which has about 500 characters.
	maxToken = 4096
)

// encoding refuses padding, line breaks and unused bits, so a token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// header returns the only header that a token of a key has.
func header(kid string) string {
	return `{"alg":"` + algorithm + `","kid":"` + kid + `","typ":"` + tokenType + `"}`
}

// Signer signs tokens with one key. It is safe for concurrent use.
type Signer struct {
	key     Key
	private ed25519.PrivateKey
}

// NewSigner takes a key and its private part.
func NewSigner(k Key, private ed25519.PrivateKey) (*Signer, error) {
	if len(private) != ed25519.PrivateKeySize || !k.Public.Equal(private.Public()) {
		return nil, fmt.Errorf("the private part is not that of the key %s", k.ID)
	}
	return &Signer{k, private}, nil
}

// Key returns the public part.
func (s *Signer) Key() Key { return s.key }

// Sign returns the token of claims. The same claims give the same token. The key must be
// the one that [Keys.Signing] returns for the time at which the payment was recorded.
func (s *Signer) Sign(c Claims) (string, error) {
	if !s.key.signs(c.Issued()) {
		return "", fmt.Errorf("the key %s does not sign payments that were recorded at %s", s.key.ID, c.Issued().Format(time.RFC3339))
	}
	var claims bytes.Buffer
	enc := json.NewEncoder(&claims)
	enc.SetEscapeHTML(false) // shorter
	if err := enc.Encode(c); err != nil {
		return "", fmt.Errorf("encoding the claims of a receipt: %w", err)
	}
	signed := encoding.EncodeToString([]byte(header(s.key.ID))) + "." + encoding.EncodeToString(bytes.TrimSpace(claims.Bytes()))
	return signed + "." + encoding.EncodeToString(ed25519.Sign(s.private, []byte(signed))), nil
}

// Errors of [Keys.Verify], for errors.Is.
var (
	// ErrNotOurs: the text is no token of a receipt of this service.
	ErrNotOurs = errors.New("not a receipt of this service")
	// ErrForged: the text looks like a token, and its signature or its header is not the
	// key's, or it dates from a time at which the key did not sign.
	ErrForged = errors.New("the signature of the receipt is not valid")
	// ErrUnknownKey: no key has this kid. A newer key set may have it.
	ErrUnknownKey = errors.New("the key of the receipt is unknown here")
	// ErrVersion: the token is signed and of a later version than this program reads.
	ErrVersion = errors.New("the receipt is of a later version")
)

// Verified is a token whose signature is the key's.
type Verified struct {
	Claims Claims
	Key    Key
}

// Test reports whether it is a test receipt, which is worth nothing. The key says so,
// never the token.
func (v Verified) Test() bool { return !v.Key.Live }

// Revoked reports whether the signature proves nothing, because somebody else has the key.
// Then every claim must agree with the record, see [Claims.Agrees].
func (v Verified) Revoked() bool { return !v.Key.RevokedAt.IsZero() }

// Verify returns what a token says. An empty issuer is any: the keys are then all that is known
// of the service. It needs no network and no clock, so a wrong clock
// changes nothing. The caller looks at Test, at Revoked, and for a reversal of the payment.
// Surrounding white space, and the address of the QR code before the token, are ignored.
func (ks Keys) Verify(issuer, text string) (Verified, error) {
	token := strings.TrimSpace(text)
	if _, fragment, found := strings.Cut(token, "#"); found {
		token = fragment
	}
	parts := strings.Split(token, ".")
	if len(token) > maxToken || len(parts) != 3 {
		return Verified{}, ErrNotOurs
	}
	head, err := encoding.DecodeString(parts[0])
	if err != nil {
		return Verified{}, ErrNotOurs
	}
	var named struct {
		Kid string `json:"kid"`
	}
	if json.Unmarshal(head, &named) != nil || named.Kid == "" {
		return Verified{}, ErrNotOurs
	}
	key, known := ks.Find(named.Kid)
	if !known {
		// Another header cannot be ours, whatever the key.
		if string(head) != header(named.Kid) {
			return Verified{}, ErrNotOurs
		}
		return Verified{}, ErrUnknownKey
	}
	signature, err := encoding.DecodeString(parts[2])
	if err != nil || string(head) != header(key.ID) || !ed25519.Verify(key.Public, []byte(parts[0]+"."+parts[1]), signature) {
		return Verified{}, ErrForged
	}
	claims, err := readClaims(parts[1])
	switch {
	case err != nil:
		return Verified{}, err
	case issuer != "" && claims.Issuer != issuer:
		return Verified{}, ErrNotOurs
	case !claims.dated() || !key.signs(claims.Issued()):
		return Verified{}, ErrForged // a stolen key that was retired cannot sign new payments
	}
	return Verified{claims, key}, nil
}

// readClaims reads claims whose signature was verified.
func readClaims(part string) (c Claims, err error) {
	body, err := encoding.DecodeString(part)
	if err != nil {
		return Claims{}, ErrForged
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return Claims{}, ErrForged
	}
	if c.Version < 1 || c.Version > Version {
		return Claims{}, ErrVersion
	}
	return c, nil
}

// Address returns what the QR code of a receipt holds. base is the address of the pages,
// without a slash at its end. The token is in the fragment, which browsers do not send.
func Address(base, token string) string { return base + "/q#" + token }
