package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"quittance/disbursement/policy"
)

// Batch is what approvers sign of a batch.
type Batch struct {
	Batch    string // id
	BatchRef string
	Revision int
	Agency   string // id
	Mode     string // live or test
	Currency string
	Date     string // local date
	Maker    string // id of the person
	// Count of lines, Sum of their amounts and the Largest of them, in minor units.
	Count        int
	Sum, Largest int64
	Root         Hash
	Accounts     []Account
	ApproveUntil time.Time // UTC, whole seconds
	PayUntil     string    // local date
	// Policy is the version of the policy, and Levels what it demands of this batch.
	Policy int64
	Levels []policy.Level
	// RPID is the relying party of the passkeys, Origin that of the pages.
	RPID, Origin string
}

// Account is a payout account of a batch and its lines' sum.
type Account struct {
	Code, Fingerprint string
	Count             int
	Sum               int64
}

// Form returns the signed form of a batch, canonical JSON without the line before it. The error is ErrText.
func (b Batch) Form() ([]byte, error) {
	accounts, levels := list{}, list{}
	for _, a := range b.Accounts {
		accounts = append(accounts, object{"code": a.Code, "count": int64(a.Count), "fingerprint": a.Fingerprint, "sum": a.Sum})
	}
	for _, l := range b.Levels {
		persons := list{}
		for _, p := range l.Persons {
			keys := list{}
			for _, k := range p.Keys {
				keys = append(keys, hex.EncodeToString(k[:]))
			}
			persons = append(persons, without(object{"for": p.For, "id": p.ID, "keys": keys}))
		}
		levels = append(levels, object{"needed": int64(l.Needed), "persons": persons})
	}
	return canonical(object{
		"accounts": accounts, "agency": b.Agency, "approve_until": b.ApproveUntil.UTC().Format(time.RFC3339), "batch": b.Batch, "batch_ref": b.BatchRef,
		"count": int64(b.Count), "currency": b.Currency, "date": b.Date, "largest": b.Largest, "maker": b.Maker, "mode": b.Mode, "origin": b.Origin,
		"pay_until": b.PayUntil, "policy": object{"levels": levels, "version": b.Policy}, "revision": int64(b.Revision), "root": b.Root.String(),
		"rp_id": b.RPID, "sum": b.Sum,
	})
}

// Digest returns the SHA-256 of the line "quittance disbursement v1" and the form of the batch. The error is ErrText.
func (b Batch) Digest() (Hash, error) { return hashed("quittance disbursement v1\n", b.Form) }

// Verdict is what a person says about a batch.
type Verdict string

// The verdicts. Hold and stop need no signature: they pay nothing.
const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
	Release Verdict = "release"
	Resume  Verdict = "resume"
)

// Step is what a person signs.
type Step struct {
	Digest Hash
	// Level of an approval, from 1. Of a release and of a resumption it is the number of times that the batch was held, so
	// that an older signature does not undo a later hold. 0 of a rejection.
	Level   int
	Person  string // id
	Verdict Verdict
}

// Statement returns the SHA-256 of the line "quittance approval v1" and the form of the step. It ends the challenge that
// a passkey signs. The error is ErrText.
func (s Step) Statement() (Hash, error) {
	return hashed("quittance approval v1\n", func() ([]byte, error) {
		return canonical(object{"digest": s.Digest.String(), "level": int64(s.Level), "person": s.Person, "verdict": string(s.Verdict)})
	})
}

// Settlement is a decision about a line of which it is not certain whether it was paid. Two people sign it.
type Settlement struct {
	Digest   Hash // of the batch
	Position int
	// Number counts the decisions about the line from 1, so that no signature serves twice.
	Number int
	// Status, Attempt and Doubt are those of the line as the person saw it: its status, its last attempt, and the attempt
	// whose answer contradicts it, 0 for none.
	Status         string
	Attempt, Doubt int
	// Outcome is paid or refused; refused says that no attempt can pay any more.
	Outcome   string
	Reference string // of the evidence
}

// Statement returns the SHA-256 of the line "quittance settlement v1" and the form of the settlement with the id of the
// person who signs. The error is ErrText.
func (s Settlement) Statement(person string) (Hash, error) {
	return hashed("quittance settlement v1\n", func() ([]byte, error) {
		return canonical(object{
			"attempt": int64(s.Attempt), "digest": s.Digest.String(), "doubt": int64(s.Doubt), "number": int64(s.Number), "outcome": s.Outcome,
			"person": person, "position": int64(s.Position), "reference": s.Reference, "status": s.Status,
		})
	})
}

// Change is a change of an agency's roster or policy, which two people sign.
type Change struct {
	Agency string // id
	// Number counts the changes of the agency from 1, so that no signature serves twice.
	Number int64
	// Content is the change as named texts.
	Content map[string]string
	Person  string // id
}

// Statement returns the SHA-256 of the line "quittance roster v1" and the form of the change. The error is ErrText.
func (c Change) Statement() (Hash, error) {
	content := object{}
	for name, text := range c.Content {
		content[name] = text
	}
	return hashed("quittance roster v1\n", func() ([]byte, error) {
		return canonical(object{"agency": c.Agency, "change": content, "number": c.Number, "person": c.Person})
	})
}

func hashed(line string, form func() ([]byte, error)) (Hash, error) {
	j, err := form()
	if err != nil {
		return Hash{}, err
	}
	return sha256.Sum256(append([]byte(line), j...)), nil
}
