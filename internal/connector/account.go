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
	// Fingerprint identifies the merchant at its operator; see the function Fingerprint. An
	// operator answers enquiries about a collection only to the merchant who asked for it.
	// Running collections hold fingerprints, so they must never change.
	Fingerprint() string
}

// EarlierAccount is an Account whose fingerprint had another form in earlier releases.
// Undecided collections may still name it.
type EarlierAccount interface {
	Account
	// EarlierFingerprint returns the fingerprint in the earlier form.
	EarlierFingerprint() string
}

// Is reports whether a fingerprint, in the present or in the earlier form, is the account's.
func Is(a Account, fingerprint string) bool {
	if fingerprint == "" || a == nil {
		return false
	}
	earlier, ok := a.(EarlierAccount)
	return fingerprint == a.Fingerprint() || ok && fingerprint == earlier.EarlierFingerprint()
}

// BaseURL is the address of an operator's API for one account.
type BaseURL string

// At is the address of a path of the API.
func (b BaseURL) At(path string) string { return strings.TrimRight(string(b), "/") + path }

// String returns the address without the account's secrets.
func (b BaseURL) String() string { return "account at " + string(b) }

// GoString is String, for %#v.
func (b BaseURL) GoString() string { return b.String() }

// MarshalText is String, for JSON.
func (b BaseURL) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// LogValue is String, for slog.
func (b BaseURL) LogValue() slog.Value { return slog.StringValue(b.String()) }

// Fingerprint returns the fingerprint of an account: of its operator, of the operator's
// environment if its account names one, and of the merchant's own number or name there. It
// contains neither the address of the API nor credentials, because a correction of those
// leaves the merchant, and the merchant's collections, as they are.
func Fingerprint(operator, environment, merchant string) string {
	return fingerprint("account", operator, environment, merchant)
}

// EarlierFingerprint returns the fingerprint that the first release made of an address and
// of what identifies an account there.
func EarlierFingerprint(base BaseURL, parts ...string) string {
	return fingerprint(append([]string{string(base)}, parts...)...)
}

func fingerprint(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// AccountType is the type of the accounts that agencies have with one operator for one
// purpose.
type AccountType struct {
	// Name stands for the operator and the purpose wherever accounts are kept: an agency has
	// one account of a name in each mode. It is the key in registry files and in Postgres,
	// and sealed fields are bound to it, so it never changes. It is unique among all
	// operators. Accounts of an operator with one offer have the id of the offer as name.
	Name string
	// Read reads the operator's fields of an account.
	Read func(base BaseURL, fields Fields) Account
	// Simulated are the fields of the account that an agency has with the developer's
	// simulators.
	Simulated func(agencyID, agencySlug string) map[string]string
}

// Store reads the operator's fields of an account into the form that is stored.
func (t AccountType) Store(fields Fields) StoredFields {
	out := StoredFields{sealed: map[string]secret.Text{}}
	t.Read("", recorder{fields, &out})
	return out
}

// Fields are the fields of an account by name, without its address. The registry reads
// them from a registry file or from Postgres.
type Fields interface {
	// Text returns a required field that is not secret: ASCII without spaces.
	Text(name string) string
	// Secret returns a required secret. A registry file may hold it in plain text in
	// developer mode only.
	Secret(name string) secret.Text
	// ReportSecret returns the secret that proves the operator's reports and does nothing else; empty
	// for an account that has none of its own.
	ReportSecret(name string) secret.Text
	// Flag returns a flag, false unless set. Flags are not sealed, because the offers of a
	// session depend on them and must not depend on a master key.
	Flag(name string) bool
}

// StoredFields are Fields in the form that the registry stores: texts and secrets are
// sealed together, flags are not. They print no field. The zero value has no fields.
type StoredFields struct {
	sealed map[string]secret.Text
	flags  []string // those that are on, in the order of reading
	// reports are the names of those of sealed that tell whose a report is and prove it.
	reports []string
}

// NewStoredFields makes StoredFields of texts and secrets by name, and of flags.
func NewStoredFields(sealed map[string]string, flags []string) StoredFields {
	s := StoredFields{sealed: map[string]secret.Text{}, flags: flags}
	for name, value := range sealed {
		s.sealed[name] = secret.NewText(value)
	}
	return s
}

// Reveal returns texts and secrets in plain text, to be sealed.
func (s StoredFields) Reveal() map[string]string {
	out := map[string]string{}
	for name, value := range s.sealed {
		out[name] = value.Reveal()
	}
	return out
}

// Reports returns what tells whose a report is and proves it, in plain text: texts and report secrets,
// not the secrets of calls. Only what AccountType.Store made knows which they are.
func (s StoredFields) Reports() map[string]string {
	out := map[string]string{}
	for _, name := range s.reports {
		if value := s.sealed[name]; !value.Empty() {
			out[name] = value.Reveal()
		}
	}
	return out
}

// Flags lists the names of the flags that are on.
func (s StoredFields) Flags() []string { return append([]string{}, s.flags...) }

// Equal reports whether both hold the same fields.
func (s StoredFields) Equal(other StoredFields) bool {
	return maps.EqualFunc(s.sealed, other.sealed, secret.Text.Equal) && slices.Equal(s.flags, other.flags)
}

// Text returns the field of that name; empty where there is none.
func (s StoredFields) Text(name string) string { return s.sealed[name].Reveal() }

// Secret returns the field of that name; empty where there is none.
func (s StoredFields) Secret(name string) secret.Text { return s.sealed[name] }

// ReportSecret returns the field of that name; empty where there is none.
func (s StoredFields) ReportSecret(name string) secret.Text { return s.sealed[name] }

// Flag returns the flag of that name.
func (s StoredFields) Flag(name string) bool { return slices.Contains(s.flags, name) }

// recorder passes fields on and records those that are read.
type recorder struct {
	from Fields
	to   *StoredFields
}

// Text records a text.
func (r recorder) Text(name string) string {
	value := r.from.Text(name)
	r.to.sealed[name] = secret.NewText(value)
	r.to.reports = append(r.to.reports, name)
	return value
}

// Secret records a secret.
func (r recorder) Secret(name string) secret.Text {
	value := r.from.Secret(name)
	r.to.sealed[name] = value
	return value
}

// ReportSecret records a report secret, if the account has one.
func (r recorder) ReportSecret(name string) secret.Text {
	value := r.from.ReportSecret(name)
	if !value.Empty() {
		r.to.sealed[name] = value
		r.to.reports = append(r.to.reports, name)
	}
	return value
}

// Flag records a flag.
func (r recorder) Flag(name string) bool {
	on := r.from.Flag(name)
	if on {
		r.to.flags = append(r.to.flags, name)
	}
	return on
}
