package casework

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Reasons why nobody may carry out what people are said to have agreed on. ErrSamePerson, ErrRevoked and
// ErrLapsed are others.
var (
	// ErrUnsigned says that a step has no signature that holds: no command that checked a person's key
	// has made it, or it was made for another decision.
	ErrUnsigned = errors.New("a step is not signed where a person's key was checked")
	// ErrOtherContent says that people agreed on something else than what stands there now.
	ErrOtherContent = errors.New("people agreed on other content")
	// ErrOtherGroup says that a person does not act for the agency.
	ErrOtherGroup = errors.New("a person does not act for the agency")
)

// Signed is a step of a decision, with the signature of the command that has checked the person's key.
type Signed struct {
	Person string // id
	Name   string
	Group  string    // id of the person's agency; empty for operations
	At     time.Time // UTC, whole milliseconds
	// Alone means that the person may decide without another one, as far as the command knows.
	Alone     bool
	Signature []byte
}

// Agreement is what one person proposed and another approved.
type Agreement struct {
	// Kind is the kind of the decision, such as case, and Subject the id of what is decided on.
	Kind, Subject string
	// Digest is that of the content that the people saw (Digest).
	Digest []byte
	// Proposed and Approved are the steps; nil for one that nobody has signed.
	Proposed, Approved *Signed
}

// Statement returns what a step of the agreement signs. It never changes for given values: signatures stay
// in events for ever.
func (a Agreement) Statement(verdict DecisionState, s Signed) []byte {
	return append([]byte("quittance decision v1\n"), canonical(map[string]any{
		"alone": s.Alone, "at": s.At.UTC().Format("2006-01-02T15:04:05.000Z"), "digest": hex.EncodeToString(a.Digest), "group": s.Group,
		"kind": a.Kind, "name": s.Name, "person": s.Person, "subject": a.Subject, "verdict": string(verdict),
	})...)
}

// Digest returns the SHA-256 of the canonical JSON of named texts: names sorted, no spaces. What cannot be stored as
// text is replaced, so that texts that were stored have the digest of those that were not.
func Digest(content map[string]string) []byte {
	storable := make(map[string]any, len(content))
	for name, text := range content {
		storable[name] = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	}
	sum := sha256.Sum256(canonical(storable))
	return sum[:]
}

// canonical returns a JSON object with sorted names, without spaces and escapes that JSON does not need.
func canonical(object map[string]any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(object) // texts and booleans always encode
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// ClocksDiffer is the most by which the clock of whoever signed may be ahead of that of whoever carries out. A step that is
// dated later is not believed: a passkey that does not approve yet could sign it.
const ClocksDiffer = time.Minute

// Verify reports whether a signature of a statement holds.
type Verify func(statement, signature []byte) bool

// Terms are what whoever carries an agreement out knows itself.
type Terms struct {
	// Digest is that of the content as it is now.
	Digest []byte
	// AgencyID is whose money it is; empty when only operations may decide.
	AgencyID string
	// Life is how long a proposal waits for its approval, and an approval for being carried out; for ever
	// when zero.
	Life time.Duration
	// Now is the time at which it is carried out.
	Now time.Time
	// Latest is the time after which no step can have been taken: the present, and ClocksDiffer. Zero for no bound.
	Latest time.Time
	// NeedsTwo means that nobody decides alone.
	NeedsTwo bool
}

// CheckProposal returns why the proposal does not count; nil if it does.
func (a Agreement) CheckProposal(t Terms, verify Verify) error {
	switch {
	case a.Proposed == nil || len(a.Proposed.Signature) == 0:
		return ErrUnsigned
	case !bytes.Equal(a.Digest, t.Digest):
		return ErrOtherContent
	}
	return a.check(DecisionProposed, a.Proposed, t, verify)
}

// CheckApproval returns why the approval alone does not count, whatever was proposed; nil if it does.
func (a Agreement) CheckApproval(t Terms, verify Verify) error {
	if a.Approved != nil && len(a.Approved.Signature) > 0 && !bytes.Equal(a.Digest, t.Digest) {
		return ErrOtherContent
	}
	return a.check(DecisionApproved, a.Approved, t, verify)
}

// Check returns why the agreement is not carried out; nil if it is: two people who act for the agency have signed the
// content as it is now, in time. One who may decide alone is enough.
func (a Agreement) Check(t Terms, verify Verify) error {
	if a.Proposed == nil || a.Approved == nil {
		return ErrUnsigned
	}
	if err := a.CheckProposal(t, verify); err != nil {
		return err
	}
	if err := a.CheckApproval(t, verify); err != nil {
		return err
	}
	same := a.Proposed.Person == a.Approved.Person || strings.EqualFold(spaced(a.Proposed.Name), spaced(a.Approved.Name))
	switch {
	case same && (t.NeedsTwo || !a.Approved.Alone):
		return ErrSamePerson
	case a.Approved.At.Before(a.Proposed.At), !t.Latest.IsZero() && a.Approved.At.After(t.Latest), t.Life > 0 && a.Approved.At.Sub(a.Proposed.At) > t.Life, t.Life > 0 && t.Now.Sub(a.Approved.At) > t.Life:
		return ErrLapsed
	}
	return nil
}

// spaced returns a name with single spaces. Two people never have names that are the same but for case and spaces.
func spaced(name string) string { return strings.Join(strings.Fields(name), " ") }

func (a Agreement) check(verdict DecisionState, s *Signed, t Terms, verify Verify) error {
	switch {
	case s == nil || len(s.Signature) == 0 || s.Person == "" || !verify(a.Statement(verdict, *s), s.Signature):
		return ErrUnsigned
	case s.Group != "" && s.Group != t.AgencyID:
		return ErrOtherGroup
	}
	return nil
}
