package secret

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// ErrReferenceKey says that a reference key is malformed. Its text never holds key
// material.
var ErrReferenceKey = errors.New("reference key: want 32 bytes in base64, one key without an id, as `quittance secrets reference-key` prints it")

// ReferenceKey is the key of what must stay valid for ever, such as references that are
// printed and the MAC in session ids. It never rotates, opens no ciphertext and signs nobody
// in. It is safe for concurrent use and prints as "configured". The zero value holds no
// key; get one from ParseReferenceKey or GenerateReferenceKey.
type ReferenceKey struct {
	// Behind functions, for the reason given at Keys.
	key func() [KeySize]byte
	// carried is the key of the permutation of an installation that began before it had a
	// reference key; nil for another one.
	carried func() [KeySize]byte
}

// ParseReferenceKey reads 32 bytes in standard base64, or two such values with a colon
// between them: the key, and a permutation that it carries. The error is ErrReferenceKey.
func ParseReferenceKey(text string) (*ReferenceKey, error) {
	first, second, two := strings.Cut(strings.TrimSpace(text), ":")
	key, ok := parseKey(first)
	if !ok {
		return nil, ErrReferenceKey
	}
	k := newReferenceKey(key)
	if two {
		permutation, ok := parseKey(second)
		if !ok {
			return nil, ErrReferenceKey
		}
		return k.Carrying(permutation[:]), nil
	}
	return k, nil
}

func parseKey(text string) (key [KeySize]byte, ok bool) {
	raw, err := base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(raw) != KeySize {
		return key, false
	}
	return [KeySize]byte(raw), true
}

// GenerateReferenceKey makes a random key.
func GenerateReferenceKey() *ReferenceKey {
	var key [KeySize]byte
	_, _ = rand.Read(key[:]) // never returns an error: the program ends instead
	return newReferenceKey(key)
}

func newReferenceKey(key [KeySize]byte) *ReferenceKey {
	return &ReferenceKey{key: func() [KeySize]byte { return key }}
}

// Reveal returns the key in the form that ParseReferenceKey reads, to store it in the one
// file or environment variable that keeps it. It is empty for the zero value.
func (k *ReferenceKey) Reveal() string {
	if k.empty() {
		return ""
	}
	key := k.key()
	text := base64.StdEncoding.EncodeToString(key[:])
	if k.carried != nil {
		permutation := k.carried()
		text += ":" + base64.StdEncoding.EncodeToString(permutation[:])
	}
	return text
}

// labelPermutation is the label of the permutation of references.
const labelPermutation = "references"

// Permutation returns the key of the permutation of references: the one that the key
// carries, or its own. It is nil for the zero value. The caller owns the slice.
func (k *ReferenceKey) Permutation() []byte {
	if k.empty() || k.carried == nil {
		return k.Derive(labelPermutation)
	}
	permutation := k.carried()
	return permutation[:]
}

// Carrying returns the key with a permutation of 32 bytes from before, so that references
// stay unique: with another permutation a new counter would give a reference that is printed
// already. All other uses are those of the key alone.
func (k *ReferenceKey) Carrying(permutation []byte) *ReferenceKey {
	carried := [KeySize]byte(permutation)
	return &ReferenceKey{key: k.key, carried: func() [KeySize]byte { return carried }}
}

// Derive returns the key of one use, 32 bytes. It is the same for ever. It is nil for the
// zero value. The caller owns the slice.
func (k *ReferenceKey) Derive(label string) []byte {
	if k.empty() {
		return nil
	}
	key := k.key()
	out, err := hkdf.Key(sha256.New, key[:], nil, "quittance/v1/reference/"+label, KeySize)
	if err != nil {
		panic(err) // a FIPS build without SHA-256: see hkdfKey
	}
	return out
}

// MAC returns the HMAC-SHA256 of texts for one use, for ever the same. The function is safe
// for concurrent use and does not allocate.
func (k *ReferenceKey) MAC(label string) func(text string) [sha256.Size]byte {
	key := k.Derive(label)
	type state struct {
		mac       hash.Hash
		text, sum []byte
	}
	pool := sync.Pool{New: func() any { return &state{mac: hmac.New(sha256.New, key)} }}
	return func(text string) [sha256.Size]byte {
		s := pool.Get().(*state) //nolint:forcetypeassert // the pool holds nothing else
		defer pool.Put(s)
		s.mac.Reset()
		s.text = append(s.text[:0], text...)
		s.mac.Write(s.text)
		s.sum = s.mac.Sum(s.sum[:0])
		return [sha256.Size]byte(s.sum)
	}
}

func (k *ReferenceKey) empty() bool { return k == nil || k.key == nil }

// String returns "configured" and never shows the key.
func (k *ReferenceKey) String() string {
	if k.empty() {
		return absent
	}
	return configured
}

// Format prints the result of String for every verb.
func (k *ReferenceKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// LogValue logs the result of String.
func (k *ReferenceKey) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText writes the result of String. It cannot be used to store the key.
func (k *ReferenceKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }
