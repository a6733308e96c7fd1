package secret

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const (
	configured = "configured"
	absent     = "absent"
)

// Text is a secret in plain text, such as a bearer token or a webhook's secret.
// It prints, logs and marshals as "configured" or, when empty, "absent"; Reveal
// is the only way to its value. Copies are cheap. Compare with Equal, not with ==.
type Text struct {
	// Behind a pointer, because fmt prints unexported fields of a struct
	// without asking their type.
	value *string
}

// NewText makes a Text.
func NewText(value string) Text {
	if value == "" {
		return Text{}
	}
	return Text{&value}
}

// Reveal returns the secret. Use it on the wire, never in a log, an error or a metric.
func (t Text) Reveal() string {
	if t.value == nil {
		return ""
	}
	return *t.value
}

// Empty reports whether the text is empty.
func (t Text) Empty() bool { return t.value == nil }

// Equal compares two secrets in time that depends only on their lengths.
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// String returns "configured", or "absent" for an empty text.
func (t Text) String() string {
	if t.value == nil {
		return absent
	}
	return configured
}

// Format prints the result of String for every verb.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue logs the result of String.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText writes the result of String.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// randomLength is the number of base62 digits that hold 256 random bits: 43 × log₂ 62 = 256.03.
const randomLength = 43

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Mint makes a new secret: the prefix ("sk_test_", "whsec_", …) and 256 random
// bits in base62 (contract docs/design/decisions.md § 3).
func Mint(prefix string) Text {
	out := make([]byte, 0, len(prefix)+randomLength)
	out = append(out, prefix...)
	var buf [64]byte
	for {
		_, _ = rand.Read(buf[:]) // never fails: the program ends instead
		for _, b := range buf {
			// 248 is the greatest multiple of 62 in a byte. Larger values would make the
			// first digits more frequent.
			if b >= 248 {
				continue
			}
			out = append(out, base62[b%62])
			if len(out) == len(prefix)+randomLength {
				return NewText(string(out))
			}
		}
	}
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}
