package connector

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"quittance/internal/secret"
)

// Account is an agency's merchant account with an operator, in one mode. Each
// connector has an Account type of its own: a comparable struct that embeds BaseURL,
// so that it prints as its address alone.
type Account interface {
	// Fingerprint tells one merchant account from another without its secrets, which
	// may be rotated. An operator tells about a collection only to the account that
	// asked for it. Running collections hold fingerprints: they must never change.
	Fingerprint() string
}

// BaseURL is the address of an operator's API for one account.
type BaseURL string

// At is the address of a path of the API.
func (b BaseURL) At(path string) string { return strings.TrimRight(string(b), "/") + path }

// String is an account without its secrets.
func (b BaseURL) String() string { return "account at " + string(b) }

// GoString is String, for %#v.
func (b BaseURL) GoString() string { return b.String() }

// MarshalText is String, for JSON.
func (b BaseURL) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// LogValue is String, for slog.
func (b BaseURL) LogValue() slog.Value { return slog.StringValue(b.String()) }

// Fingerprint is the fingerprint of an account at an address; parts are what else
// identifies it there.
func Fingerprint(base BaseURL, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{string(base)}, parts...), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Fields are the fields of an account by name, besides its address. The registry
// reads them from a registry file or from Postgres.
type Fields interface {
	// Text is a required field that is no secret: ASCII without spaces.
	Text(name string) string
	// Secret is a required field that is a secret. A registry file may hold it in
	// plain text in developer mode only.
	Secret(name string) secret.Text
	// Flag is a flag, off unless set. It is not sealed: what a session may be made of
	// must not depend on a master key.
	Flag(name string) bool
}

// StoredFields are Fields as the registry stores them: texts and secrets sealed
// together, flags beside them. They print no field. The zero value has none.
type StoredFields struct {
	sealed map[string]secret.Text
	flags  []string // that are on, in the order of reading
}

// NewStoredFields are these texts and secrets by name, and these flags.
func NewStoredFields(sealed map[string]string, flags []string) StoredFields {
	s := StoredFields{sealed: map[string]secret.Text{}, flags: flags}
	for name, value := range sealed {
		s.sealed[name] = secret.NewText(value)
	}
	return s
}

// Reveal is texts and secrets in plain text, to be sealed.
func (s StoredFields) Reveal() map[string]string {
	out := map[string]string{}
	for name, value := range s.sealed {
		out[name] = value.Reveal()
	}
	return out
}

// Flags are the names of the flags that are on.
func (s StoredFields) Flags() []string { return append([]string{}, s.flags...) }

// Equal says whether both hold the same.
func (s StoredFields) Equal(other StoredFields) bool {
	return maps.EqualFunc(s.sealed, other.sealed, secret.Text.Equal) && slices.Equal(s.flags, other.flags)
}

// Text is the field of that name; empty where there is none.
func (s StoredFields) Text(name string) string { return s.sealed[name].Reveal() }

// Secret is the field of that name; empty where there is none.
func (s StoredFields) Secret(name string) secret.Text { return s.sealed[name] }

// Flag is the flag of that name.
func (s StoredFields) Flag(name string) bool { return slices.Contains(s.flags, name) }

// recorder passes fields on and notes what is read.
type recorder struct {
	from Fields
	to   *StoredFields
}

// Text notes a text.
func (r recorder) Text(name string) string {
	value := r.from.Text(name)
	r.to.sealed[name] = secret.NewText(value)
	return value
}

// Secret notes a secret.
func (r recorder) Secret(name string) secret.Text {
	value := r.from.Secret(name)
	r.to.sealed[name] = value
	return value
}

// Flag notes a flag.
func (r recorder) Flag(name string) bool {
	on := r.from.Flag(name)
	if on {
		r.to.flags = append(r.to.flags, name)
	}
	return on
}
