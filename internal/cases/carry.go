package cases

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/operation"
)

// Approved is an approved proposal that is to be carried out.
type Approved struct {
	CaseID string
	Number int
	// SessionID is empty for a case without a session.
	SessionID  string
	Resolution casework.Resolution
	Reference  string
	Reason     string
	Proposer   string // who proposed it
	Decider    string // who approved it
	DecidedBy  string // the id of that person
	DecidedAt  time.Time
	// Agreement has the signed steps. Claim does not read it.
	Agreement casework.Agreement `db:"-"`
}

// Command returns the command that carries the proposal out. It is idempotent.
func (a Approved) Command(at time.Time) checkout.Command {
	return checkout.Command{At: at, SessionID: a.SessionID, Do: a.resolution()}
}

func (a Approved) resolution() checkout.Resolve {
	return checkout.Resolve{
		CaseID: a.CaseID, Resolution: a.Resolution, Reference: a.Reference, Reason: a.Reason, By: a.Proposer, ApprovedBy: a.Decider,
		Number: a.Number, Digest: a.Agreement.Digest, Proposed: a.Agreement.Proposed, Approved: a.Agreement.Approved,
	}
}

// Closed reports whether the proposal has closed the case.
func (a Approved) Closed(c Case) bool {
	return c.Resolution == a.Resolution && c.Reference == a.Reference && c.ClosedBy == a.Proposer
}

// Claim returns up to n approved proposals whose approval is noted, and that nobody has
// tried for the time again; those that nobody has tried come first, so that proposals without an answer hold
// up no others. The caller has that time to try them. A case without a session
// must have its row. The matcher carries out those of its own cases (Ended).
func (s *Store) Claim(ctx context.Context, n int, again time.Duration) ([]Approved, error) {
	return s.claim(ctx, `session_id IS NOT NULL OR EXISTS (SELECT FROM cases c WHERE c.id = case_id AND c.kind <> ALL ($3))`, n, again)
}

// ClaimOfMatcher returns, like Claim, approved proposals that wait for the matcher.
func (s *Store) ClaimOfMatcher(ctx context.Context, n int, again time.Duration) ([]Approved, error) {
	return s.claim(ctx, `session_id IS NULL AND EXISTS (SELECT FROM cases c WHERE c.id = case_id AND c.kind = ANY ($3) AND c.ended_at IS NULL)`, n, again)
}

func (s *Store) claim(ctx context.Context, which string, n int, again time.Duration) ([]Approved, error) {
	rows, _ := s.pool.Query(ctx, `
		UPDATE case_proposals p SET tried_at = now()
		FROM (SELECT case_id, number FROM case_proposals
			WHERE state = 'approved' AND noted = 2 AND (tried_at IS NULL OR tried_at <= now() - $2::interval)
				AND (`+which+`)
			ORDER BY tried_at NULLS FIRST, decided_at, case_id LIMIT $1 FOR UPDATE SKIP LOCKED) due
		WHERE p.case_id = due.case_id AND p.number = due.number
		RETURNING p.case_id, p.number, coalesce(p.session_id, ''), p.resolution, p.reference, p.reason, p.proposer, p.decider, p.decided_by, p.decided_at`, n, again, ofMatcher)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Approved])
	if err != nil {
		return nil, fmt.Errorf("claiming approved proposals: %w", err)
	}
	return out, nil
}

// Answered records the answer to a proposal: that of the processor or of the matcher, or of the sink for
// other cases without a session. In the audit table the service has refused it, not the person who
// approved. A proposal that has ended already stays as it is. A refusal is a step of its own, which ClaimNotes returns, unless the case
// has ended: then its end says why.
func (s *Store) Answered(ctx context.Context, a Approved, code checkout.Code, now time.Time) error {
	state, refusal := ProposalCarriedOut, ""
	if code != checkout.CodeOK {
		state, refusal = ProposalRefused, string(code)
	}
	return s.tx(ctx, "recording the answer to a proposal", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE case_proposals SET state = $3, refusal = $4, finished_at = $5,
				noted = CASE WHEN $4 <> '' AND EXISTS (SELECT FROM cases WHERE id = $1 AND (resolution IS NOT NULL OR ended_at IS NOT NULL)) THEN 3 ELSE noted END
			WHERE case_id = $1 AND number = $2 AND state = 'approved'`,
			a.CaseID, a.Number, string(state), refusal, now)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		actor := operation.Actor{Kind: operation.ActorPerson, Name: a.DecidedBy}
		detail := map[string]any{"proposal": a.Number, "resolution": a.Resolution, "refusal": refusal}
		if state == ProposalRefused {
			actor, detail["approved_by"] = operation.Actor{Kind: operation.ActorService, Name: "cases"}, a.DecidedBy
		}
		agency, err := agencyOf(ctx, tx, a.CaseID)
		if err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "case." + string(state), Subject: a.CaseID, AgencyID: agency, Detail: detail})
	})
}

// agencyOf returns the agency of a case; empty for a case without one, or that is not known.
func agencyOf(ctx context.Context, tx pgx.Tx, caseID string) (agency string, err error) {
	err = tx.QueryRow(ctx, `SELECT coalesce((SELECT agency_id FROM cases WHERE id = $1), '')`, caseID).Scan(&agency)
	return agency, err
}
