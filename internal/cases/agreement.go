package cases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/operation"
)

// Agreement is a proposal with its signed steps, and what it must fit to be carried out.
type Agreement struct {
	casework.Agreement
	Terms    casework.Terms
	proposer standing
	approver standing
	// unproposed is why the passkey of whoever proposed does not prove it; empty if it does, or if a command has signed it.
	unproposed identity.ProofFault
	// unapproved is why the passkey of whoever approved does not prove it; empty if it does, or if the group approved
	// with keys at that time.
	unapproved identity.ProofFault
}

// standing says from when to when a person may act.
type standing struct {
	from, until time.Time // until is zero without an end
}

func (s standing) at(t time.Time) bool {
	return !s.from.IsZero() && !t.Before(s.from.Truncate(time.Millisecond)) && (s.until.IsZero() || t.Before(s.until))
}

// Check returns why the agreement is not carried out; checkout.CodeOK if it is.
func (a Agreement) Check(verify casework.Verify) checkout.Code {
	err := a.Agreement.Check(a.Terms, verify)
	if err == nil && (!a.proposer.at(a.Proposed.At) || !a.proposer.at(a.Approved.At) || !a.approver.at(a.Approved.At)) {
		err = casework.ErrRevoked
	}
	if err == nil && (a.unproposed != "" || a.unapproved != "") {
		return checkout.CodeNotProven
	}
	return checkout.ApprovalCode(err)
}

// CheckProposal returns why the proposal does not count; checkout.CodeOK if it does.
func (a Agreement) CheckProposal(verify casework.Verify) checkout.Code {
	err := a.Agreement.CheckProposal(a.Terms, verify)
	if err == nil && !a.proposer.at(a.Proposed.At) {
		err = casework.ErrRevoked
	}
	if err == nil && a.unproposed != "" {
		return checkout.CodeNotProven
	}
	return checkout.ApprovalCode(err)
}

// decided returns what a proposal of the case decides on.
func (c Case) decided(number int, r casework.Resolution, reference, reason string) checkout.Decided {
	d := checkout.Decided{
		Case: c.Case, AgencyID: c.AgencyID, Mode: c.Mode, SessionID: c.SessionID, Number: number, Resolution: r, Reference: reference, Reason: reason, Finding: map[string]string{},
	}
	for _, name := range decisive() {
		if text := c.Evidence[name]; text != "" {
			d.Finding[name] = text
		}
	}
	return d
}

// decisive returns the names of the evidence of the matcher's cases on which people decide.
func decisive() []string {
	return []string{EvidenceFinding, EvidenceLedger, EvidenceFrom, EvidenceTo, EvidenceDigest}
}

// sign signs a step of a person about the proposal of a case, and notes it in the proposal.
func (p *Proposal) sign(by By, c Case, verdict casework.DecisionState, s casework.Signed) (*casework.Signed, error) {
	p.Digest = casework.Digest(c.decided(p.Number, p.Resolution, p.Reference, p.Reason).Content())
	a := casework.Agreement{Kind: checkout.DecisionOfCase, Subject: checkout.Subject(c.ID, p.Number), Digest: p.Digest}
	return decisions.Sign(by.Signer, a, verdict, s)
}

// Agreement reads a proposal with its signed steps. The terms are those of a time of the service's clock. While the
// case has no row, the error wraps ErrNoCase.
func (s *Store) Agreement(ctx context.Context, caseID string, number int, now time.Time) (a Agreement, err error) {
	err = s.tx(ctx, "reading what people agreed on", func(tx pgx.Tx) error {
		c, err := find(ctx, tx, nil, caseID, "")
		if errors.As(err, new(*operation.Error)) {
			return fmt.Errorf("%s: %w", caseID, ErrNoCase)
		}
		if err == nil {
			a, err = s.agreement(ctx, tx, c, number, now)
		}
		return err
	})
	return a, err
}

// ErrNoCase says that the sink has not read the opening of a case yet.
var ErrNoCase = errors.New("the case is not known yet")

func (s *Store) agreement(ctx context.Context, tx pgx.Tx, c Case, number int, now time.Time) (a Agreement, err error) {
	var p Proposal
	var one, two casework.Signed
	var decidedAt *time.Time
	var proposedProof, decidedProof string
	a.Agreement = casework.Agreement{Kind: checkout.DecisionOfCase, Subject: checkout.Subject(c.ID, number), Proposed: &one}
	err = tx.QueryRow(ctx, `
		SELECT p.resolution, p.reference, p.reason, p.digest, p.proposed_by::text, p.proposer, p.proposed_at, coalesce(p.proposed_signature, ''), coalesce(p.proposed_proof::text, ''),
			coalesce(p.decided_by::text, ''), p.decider, p.decided_at, coalesce(p.decided_signature, ''), p.alone, coalesce(p.decided_proof::text, '')
		FROM case_proposals p WHERE p.case_id = $1 AND p.number = $2`, c.ID, number).Scan(
		&p.Resolution, &p.Reference, &p.Reason, &a.Digest, &one.Person, &one.Name, &one.At, &one.Signature, &proposedProof,
		&two.Person, &two.Name, &decidedAt, &two.Signature, &two.Alone, &decidedProof)
	if err != nil {
		return a, fmt.Errorf("reading proposal %d of %s: %w", number, c.ID, err)
	}
	one.At, two.At = one.At.UTC().Truncate(time.Millisecond), value(decidedAt).UTC().Truncate(time.Millisecond)
	if two.Person != "" {
		a.Approved = &two
	}
	if err := s.stands(ctx, tx, &one, &a.proposer); err != nil {
		return a, err
	}
	if err := s.stands(ctx, tx, &two, &a.approver); err != nil {
		return a, err
	}
	a.Terms = c.terms(number, p.Resolution, p.Reference, p.Reason, now)
	if two.Alone && s.keys != nil && !a.Terms.NeedsTwo {
		// Whoever signed may say so of any sum. The limit of the agency is read again.
		alone, err := s.mayAlone(ctx, tx, c, p.Resolution)
		if err != nil {
			return a, err
		}
		a.Terms.NeedsTwo = !alone
	}
	if a.unproposed, err = s.unproposed(ctx, tx, proposedProof, a.Statement(casework.DecisionProposed, one), one); err != nil {
		return a, err
	}
	if a.Approved != nil {
		a.unapproved, err = s.unapproved(ctx, tx, decidedProof, a.Statement(casework.DecisionApproved, two), two)
	}
	return a, err
}

// unproposed returns why the passkey of whoever proposed does not prove the step. A command has checked the person's key
// and needs no passkey, also in a group whose keys approve no more.
func (s *Store) unproposed(ctx context.Context, tx pgx.Tx, proof string, statement []byte, by casework.Signed) (identity.ProofFault, error) {
	if s.keys == nil || proof == "" && decisions.ByCommand(s.keys, statement, by.Signature) {
		return "", nil // without keys this process verifies nothing
	}
	return identity.Holds(ctx, tx, s.keys, proof, statement)
}

// unapproved returns why the passkey of whoever approved does not prove the step. One that a command has signed needs no
// passkey until two people of the group have passkeys that approve.
func (s *Store) unapproved(ctx context.Context, tx pgx.Tx, proof string, statement []byte, by casework.Signed) (identity.ProofFault, error) {
	if s.keys == nil {
		return "", nil // this process verifies nothing
	}
	if proof == "" && decisions.ByCommand(s.keys, statement, by.Signature) {
		needs, err := identity.NeedsPasskeys(ctx, tx, by.Group, by.At)
		if err != nil || !needs {
			return "", err
		}
	}
	return identity.Holds(ctx, tx, s.keys, proof, statement)
}

// stands reads the group of whoever took a step, and from when to when the person may act: never, if the row of the
// person is not as it was signed.
func (s *Store) stands(ctx context.Context, tx pgx.Tx, step *casework.Signed, of *standing) error {
	if step.Person == "" {
		return nil
	}
	staff, err := identity.StaffOf(ctx, tx, s.keys, step.Person)
	if m := staff[step.Person]; !m.Forged {
		step.Group, *of = m.AgencyID, standing{m.ApprovedAt, m.Until()}
	}
	return err
}

// terms returns what an agreement about a proposal of the case must fit at a time.
func (c Case) terms(number int, r casework.Resolution, reference, reason string, now time.Time) casework.Terms {
	exit, _ := Catalog().Exit(c.Kind, r)
	return casework.Terms{
		Digest: casework.Digest(c.decided(number, r, reference, reason).Content()), AgencyID: c.AgencyID, Life: lapsesAfter, Now: now, NeedsTwo: exit.NeedsTwo,
	}
}

// Unproven ends a proposal that does not count: it was not signed where a person's key was checked, or not as it stands
// there. The row stays, as refused with the code, and no event records a further step of it. ended is false if it had
// ended before, as rejected for example; it then stays so.
func (s *Store) Unproven(ctx context.Context, caseID string, number int, code checkout.Code, now time.Time) (ended bool, err error) {
	err = s.tx(ctx, "refusing a proposal", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE case_proposals SET state = $3, refusal = $4, finished_at = $5, noted = 3 WHERE case_id = $1 AND number = $2 AND state IN ('open', 'approved')`,
			caseID, number, string(ProposalRefused), string(code), now)
		if ended = tag.RowsAffected() > 0; err == nil && !ended {
			_, err = tx.Exec(ctx, `UPDATE case_proposals SET noted = 3 WHERE case_id = $1 AND number = $2`, caseID, number)
		}
		if err != nil || !ended {
			return err
		}
		agency, err := agencyOf(ctx, tx, caseID)
		if err != nil {
			return err
		}
		return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorService, Name: "cases"}, now, operation.Entry{
			Action: "case.refused", Subject: caseID, AgencyID: agency, Detail: map[string]any{"proposal": number, "refusal": code},
		})
	})
	return ended, err
}
