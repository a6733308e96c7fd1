package batchseal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"quittance/internal/receipts"
	"quittance/internal/secret"
)

// Labels of the derived keys that sign papers and results of batches.
const (
	LabelLive = "papers of live batches"
	LabelTest = "papers of test batches"
)

// Labels has all labels.
func Labels() []string { return []string{LabelLive, LabelTest} }

func labelOf(live bool) string {
	if live {
		return LabelLive
	}
	return LabelTest
}

const (
	tokenType  = "quittance-batch+jwt"  //nolint:gosec // a name, no secret
	exportType = "quittance-export+jws" //nolint:gosec // a name, no secret
	maxToken   = 4096
	// Version is the version of the claims.
	Version = 1
)

// Path is where the service publishes the key set.
const Path = "/.well-known/batches-jwks.json"

// encoding refuses padding, line breaks and unused bits, so a token has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Kind is what a token stands on.
type Kind string

// The kinds.
const (
	KindCertificate Kind = "certificate" // of an approved batch
	KindAdvice      Kind = "advice"      // of a paid line
)

// Claims are what a token says of a batch or of a line of one. It has no name and no account. Times are in seconds.
type Claims struct {
	Version  int    `json:"v"`
	Kind     Kind   `json:"k"`
	Issuer   string `json:"iss"` // host of the pages
	IssuedAt int64  `json:"iat"` // as of when it says this
	Agency   string `json:"t"`   // slug
	BatchRef string `json:"br"`
	Revision int    `json:"rv"`
	Amount   int64  `json:"a"` // of the batch or the line, minor units
	Currency string `json:"c"`
	// State is that of the batch, or paid or returned.
	State string `json:"st"`

	// Of a certificate.
	Batch  string `json:"b,omitempty"` // id
	Count  int    `json:"n,omitempty"`
	Digest string `json:"d,omitempty"` // of what was signed, base64url
	Held   int    `json:"h,omitempty"` // 1 for a batch that is held

	// Of an advice.
	LineRef     string `json:"lr,omitempty"`
	PayoutRef   string `json:"pr,omitempty"`
	OperatorRef string `json:"or,omitempty"`
	PaidAt      int64  `json:"pd,omitempty"`
	ReturnedAt  int64  `json:"rd,omitempty"`
}

// Digest returns the bytes of the digest that a certificate names.
func Digest(claim string) ([]byte, error) { return encoding.DecodeString(claim) }

// DigestClaim writes a digest as a certificate names it.
func DigestClaim(digest [32]byte) string { return encoding.EncodeToString(digest[:]) }

// Keys returns the public keys of both modes.
func Keys(keys *secret.Keys) (out receipts.Keys, err error) {
	for _, live := range []bool{true, false} {
		for _, public := range keys.PublicKeys(labelOf(live)) {
			k, err := receipts.NewKey(live, public.Key, time.Unix(0, 0).UTC())
			if err != nil {
				return nil, fmt.Errorf("naming a key of papers: %w", err)
			}
			out = append(out, k)
		}
	}
	return out, nil
}

// Signer signs papers and results. It is safe for concurrent use.
type Signer struct {
	keys *secret.Keys
	kids map[bool]string // by mode
}

// ErrNoKey says that the newest master key is marked open, or that the process holds no key of papers.
var ErrNoKey = errors.New("no key signs papers of batches: the newest master key is marked open, or is not held")

// NewSigner makes a Signer of the newest keys. The error is ErrNoKey.
func NewSigner(keys *secret.Keys) (*Signer, error) {
	s := &Signer{keys, map[bool]string{}}
	for _, live := range []bool{true, false} {
		_, id, err := keys.SignDetached(labelOf(live), nil)
		if err != nil {
			return nil, ErrNoKey
		}
		for _, public := range keys.PublicKeys(labelOf(live)) {
			if public.ID != id {
				continue
			}
			k, err := receipts.NewKey(live, public.Key, time.Unix(0, 0).UTC())
			if err != nil {
				return nil, err
			}
			s.kids[live] = k.ID
		}
		if s.kids[live] == "" {
			return nil, ErrNoKey
		}
	}
	return s, nil
}

// header returns the only header that a signature of a key has.
func header(kid, typ string) string {
	return `{"alg":"EdDSA","kid":"` + kid + `","typ":"` + typ + `"}`
}

func (s *Signer) sign(live bool, typ, payload string) (head, signature string, err error) {
	head = encoding.EncodeToString([]byte(header(s.kids[live], typ)))
	raw, _, err := s.keys.SignDetached(labelOf(live), []byte(head+"."+payload))
	if err != nil {
		return "", "", fmt.Errorf("signing a paper of a batch: %w", err)
	}
	return head, encoding.EncodeToString(raw), nil
}

// Token returns the token of claims. The same claims give the same token.
func (s *Signer) Token(live bool, c Claims) (string, error) {
	var claims bytes.Buffer
	enc := json.NewEncoder(&claims)
	enc.SetEscapeHTML(false) // shorter
	if err := enc.Encode(c); err != nil {
		return "", fmt.Errorf("encoding the claims of a paper: %w", err)
	}
	payload := encoding.EncodeToString(bytes.TrimSpace(claims.Bytes()))
	head, signature, err := s.sign(live, tokenType, payload)
	return head + "." + payload + "." + signature, err
}

// Detached returns the JWS of a file without its content (RFC 7515, appendix F).
func (s *Signer) Detached(live bool, file []byte) (string, error) {
	head, signature, err := s.sign(live, exportType, encoding.EncodeToString(file))
	return head + ".." + signature, err
}

// Verified are claims that a key has signed.
type Verified struct {
	Claims Claims
	Key    receipts.Key
}

// Test reports whether the paper is worth nothing. The key says so, never the token.
func (v Verified) Test() bool { return !v.Key.Live }

// IsToken reports whether a text has the header of a token of a paper, signed or not.
func IsToken(text string) bool {
	head, _, _ := strings.Cut(tokenOf(text), ".")
	kid, ok := kidOf(head)
	plain, err := encoding.DecodeString(head)
	return ok && err == nil && string(plain) == header(kid, tokenType)
}

// tokenOf returns the token in what a code holds.
func tokenOf(text string) string {
	token := strings.TrimSpace(text)
	if _, fragment, found := strings.Cut(token, "#"); found {
		token = fragment
	}
	return token
}

func kidOf(head string) (kid string, ok bool) {
	var named struct {
		Kid string `json:"kid"`
	}
	plain, err := encoding.DecodeString(head)
	if err != nil || json.Unmarshal(plain, &named) != nil {
		return "", false
	}
	return named.Kid, named.Kid != ""
}

// verified returns the key that has signed.
func verified(keys receipts.Keys, typ, head, payload, signature string) (receipts.Key, error) {
	kid, ok := kidOf(head)
	plain, err := encoding.DecodeString(head)
	if !ok || err != nil || string(plain) != header(kid, typ) {
		return receipts.Key{}, receipts.ErrNotOurs
	}
	key, known := keys.Find(kid)
	if !known {
		return receipts.Key{}, receipts.ErrUnknownKey
	}
	raw, err := encoding.DecodeString(signature)
	if err != nil || !ed25519.Verify(key.Public, []byte(head+"."+payload), raw) {
		return receipts.Key{}, receipts.ErrForged
	}
	return key, nil
}

// Verify returns what the token of a paper says. An empty issuer is any. The errors are receipts.ErrNotOurs, ErrForged, ErrUnknownKey
// and ErrVersion. Surrounding white space, and the address of the code before the token, are ignored.
func Verify(keys receipts.Keys, issuer, text string) (Verified, error) {
	parts := strings.Split(tokenOf(text), ".")
	if len(tokenOf(text)) > maxToken || len(parts) != 3 {
		return Verified{}, receipts.ErrNotOurs
	}
	key, err := verified(keys, tokenType, parts[0], parts[1], parts[2])
	if err != nil {
		return Verified{}, err
	}
	var c Claims
	body, err := encoding.DecodeString(parts[1])
	switch {
	case err != nil || json.Unmarshal(body, &c) != nil:
		return Verified{}, receipts.ErrForged
	case c.Version != Version || c.Kind != KindCertificate && c.Kind != KindAdvice:
		return Verified{}, receipts.ErrVersion
	case issuer != "" && c.Issuer != issuer:
		return Verified{}, receipts.ErrNotOurs
	}
	return Verified{c, key}, nil
}

// VerifyDetached returns the key that has signed a file. The errors are those of Verify.
func VerifyDetached(keys receipts.Keys, signature string, file []byte) (receipts.Key, error) {
	parts := strings.Split(strings.TrimSpace(signature), ".")
	if len(parts) != 3 || parts[1] != "" {
		return receipts.Key{}, receipts.ErrNotOurs
	}
	return verified(keys, exportType, parts[0], encoding.EncodeToString(file), parts[2])
}
