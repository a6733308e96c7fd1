package intake

import (
	"time"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// Kinds of decisions about the files of statements, in what their steps sign.
const (
	kindWithdrawal = "statement_withdrawal"
	kindOriginal   = "statement_original"
	kindRelease    = "statement_release"
	kindDismissal  = "statement_dismissal"
)

// pact is what two people agree on about a file: the signed steps, as they are stored, and what they are about, as the
// rows say it now.
type pact struct {
	casework.Agreement
	agencyID string
	content  map[string]string
}

// newPact returns a pact of a row. A step of nobody has no person.
func newPact(kind, id, agencyID string, digest []byte, content map[string]string, one, two casework.Signed) pact {
	p := pact{casework.Agreement{Kind: kind, Subject: id, Digest: digest}, agencyID, content}
	for _, of := range []struct {
		to   **casework.Signed
		step casework.Signed
	}{{&p.Proposed, one}, {&p.Approved, two}} {
		if of.step.Person != "" {
			of.step.At = of.step.At.UTC().Truncate(time.Millisecond) // as it was signed
			*of.to = &of.step
		}
	}
	return p
}

// sign returns the signature of a step of a person, and the digest of what the person decides on.
func (p pact) sign(signer decisions.Signer, verdict casework.DecisionState, by identity.Staff, at time.Time) (digest, signature []byte, err error) {
	p.Digest = casework.Digest(p.content)
	s, err := decisions.Sign(signer, p.Agreement, verdict, casework.Signed{Person: by.ID, Name: by.Name, Group: by.AgencyID, At: at})
	if err != nil {
		return nil, nil, err
	}
	return p.Digest, s.Signature, nil
}

func (p pact) terms(now time.Time) casework.Terms {
	return casework.Terms{Digest: casework.Digest(p.content), AgencyID: p.agencyID, Life: requestLife, Now: now, NeedsTwo: true}
}

// requested returns why the request does not count, as an *operation.Error; nil if it does.
func (p pact) requested(v decisions.Verifier, now time.Time) error {
	return p.refusal(p.CheckProposal(p.terms(now), byCommand(v)))
}

// agreed returns why what two people are said to have agreed on is not carried out at a time, as an *operation.Error;
// nil if it is.
func (p pact) agreed(v decisions.Verifier, now time.Time) error {
	return p.refusal(p.Check(p.terms(now), byCommand(v)))
}

// byCommand verifies steps that commands have signed: no page signs such steps.
func byCommand(v decisions.Verifier) casework.Verify {
	return func(statement, signature []byte) bool { return decisions.ByCommand(v, statement, signature) }
}

// carriedOutAt returns the time of the approval, at which a withdrawal began; now if there is none.
func (p pact) carriedOutAt(now time.Time) time.Time {
	if p.Approved == nil {
		return now
	}
	return p.Approved.At
}

func (p pact) refusal(err error) error {
	if err == nil {
		return nil
	}
	return operation.Refuse("statement.not_believed", "id", operation.Args{"what": p.Kind, "why": err.Error()})
}
