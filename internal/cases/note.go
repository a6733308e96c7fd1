package cases

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
)

// Note is a step of a proposal that no event records yet: it was proposed, approved or
// rejected.
type Note struct {
	CaseID     string
	Number     int
	SessionID  string
	Step       checkout.ProposalStep
	Resolution checkout.Resolution
	Reference  string
	Reason     string // of the proposal, or of its rejection
	By         string // the name of who did it
	// Steps is the number of steps that events record before this one.
	Steps int
}

// Command returns the command that makes the step an event. It is idempotent.
func (n Note) Command(at time.Time) checkout.Command {
	return checkout.Command{At: at, SessionID: n.SessionID, Do: checkout.NoteProposal{
		CaseID: n.CaseID, Number: n.Number, Step: n.Step, Resolution: n.Resolution, Reference: n.Reference, Reason: n.Reason, By: n.By,
	}}
}

// ClaimNotes returns the next step of up to n cases that have one and that nobody has tried
// for the time again. The caller has that time to try them. The steps of a case come in
// order: one of them only when all before it are noted. Proposals about cases without a
// session have no events.
func (s *Store) ClaimNotes(ctx context.Context, n int, again time.Duration) ([]Note, error) {
	rows, _ := s.pool.Query(ctx, `
		UPDATE case_proposals p SET note_tried_at = now()
		FROM (SELECT case_id, number FROM case_proposals d
			WHERE session_id IS NOT NULL AND noted < 2 AND (noted = 0 OR decided_at IS NOT NULL)
				AND (note_tried_at IS NULL OR note_tried_at <= now() - $2::interval)
				AND NOT EXISTS (SELECT FROM case_proposals e
					WHERE e.case_id = d.case_id AND e.number < d.number AND e.noted < 2 AND (e.noted = 0 OR e.decided_at IS NOT NULL))
			ORDER BY proposed_at, case_id LIMIT $1 FOR UPDATE SKIP LOCKED) due
		WHERE p.case_id = due.case_id AND p.number = due.number
		RETURNING p.case_id, p.number, p.session_id,
			CASE WHEN p.noted = 0 THEN 'proposed' WHEN p.state = 'rejected' THEN 'rejected' ELSE 'approved' END,
			p.resolution, p.reference, CASE WHEN p.noted = 1 AND p.state = 'rejected' THEN p.decision ELSE p.reason END,
			CASE WHEN p.noted = 0 THEN p.proposer ELSE p.decider END, p.noted`, n, again)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Note])
	if err != nil {
		return nil, fmt.Errorf("claiming steps of proposals: %w", err)
	}
	return out, nil
}

// Noted records that the processor has answered the command of a step. The next step of
// the proposal can be claimed at once.
func (s *Store) Noted(ctx context.Context, n Note) error {
	_, err := s.pool.Exec(ctx, `UPDATE case_proposals SET noted = $3 + 1, note_tried_at = NULL WHERE case_id = $1 AND number = $2 AND noted = $3`, n.CaseID, n.Number, n.Steps)
	if err != nil {
		return fmt.Errorf("recording the event of a proposal: %w", err)
	}
	return nil
}
