package intake

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
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
	// proofs are the ids of the passkeys' proofs of the two steps; empty for a step with a key.
	proofs [2]string
}

// newPact returns a pact of a row. A step of nobody has no person.
func newPact(kind, id, agencyID string, digest []byte, content map[string]string, one, two casework.Signed, proofs [2]string) pact {
	p := pact{casework.Agreement{Kind: kind, Subject: id, Digest: digest}, agencyID, content, proofs}
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

func (p pact) terms(at time.Time) casework.Terms {
	return casework.Terms{Digest: casework.Digest(p.content), AgencyID: p.agencyID, Life: requestLife, Now: at, NeedsTwo: true}
}

// requested returns why the request does not count, as an *operation.Error; nil if it does. Another error says that it is not
// known.
func (p pact) requested(ctx context.Context, tx pgx.Tx, keys *secret.Keys, now time.Time) error {
	return p.one(ctx, tx, keys, now, false)
}

// dismissed returns why the dismissal of one person does not count, as requested does.
func (p pact) dismissed(ctx context.Context, tx pgx.Tx, keys *secret.Keys, now time.Time) error {
	return p.one(ctx, tx, keys, now, true)
}

func (p pact) one(ctx context.Context, tx pgx.Tx, keys *secret.Keys, now time.Time, last bool) error {
	if err := p.CheckProposal(p.terms(now), decisions.Verify(keys)); err != nil {
		return p.refusal(err)
	}
	return p.proven(ctx, tx, keys, casework.DecisionProposed, p.Proposed, p.proofs[0], now, last)
}

// agreed returns why what two people are said to have agreed on is not carried out at a time, as an *operation.Error; nil if
// it is. now is the present. Another error says that it is not known.
func (p pact) agreed(ctx context.Context, tx pgx.Tx, keys *secret.Keys, at, now time.Time) error {
	if err := p.Check(p.terms(at), decisions.Verify(keys)); err != nil {
		return p.refusal(err)
	}
	if err := p.proven(ctx, tx, keys, casework.DecisionProposed, p.Proposed, p.proofs[0], now, false); err != nil {
		return err
	}
	return p.proven(ctx, tx, keys, casework.DecisionApproved, p.Approved, p.proofs[1], now, true)
}

// proven returns why no key and no passkey of the person proves a signed step. A command has checked the person's key; the last
// step of a group that approves with passkeys needs one all the same. What the pages have signed counts with the proof of a
// passkey only, which is not dated ahead, of a person who was in force then.
func (p pact) proven(ctx context.Context, tx pgx.Tx, keys *secret.Keys, verdict casework.DecisionState, s *casework.Signed, proof string, now time.Time, last bool) error {
	statement := p.Statement(verdict, *s)
	if proof == "" && decisions.ByCommand(keys, statement, s.Signature) {
		if !last {
			return nil
		}
		needs, err := identity.NeedsPasskeys(ctx, tx, s.Group, s.At)
		if err != nil || !needs {
			return err
		}
		return p.refusal(identity.ErrNotProven)
	}
	fault, err := identity.Proves(ctx, tx, keys, proof, statement, *s, now)
	if err == nil && fault != nil {
		err = p.refusal(fault)
	}
	return err
}

// carriedOutAt returns the time of the approval, at which a withdrawal began; now if there is none.
func (p pact) carriedOutAt(now time.Time) time.Time {
	if p.Approved == nil {
		return now
	}
	return p.Approved.At
}

func (p pact) refusal(err error) error {
	return operation.Refuse("statement.not_believed", "id", operation.Args{"what": p.Kind, "why": err.Error()})
}

// holds reports whether a check of a pact has refused nothing. err is what it did not find out.
func holds(check error) (bool, error) {
	if errors.As(check, new(*operation.Error)) {
		return false, nil
	}
	return check == nil, check
}
