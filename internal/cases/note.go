package cases

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/checkout"
)

// Note is a step of a proposal that no event records yet: it was proposed, approved or
// rejected, it has lapsed, or it was approved and then refused.
type Note struct {
	CaseID string
	Number int
	// SessionID is empty for a case without a session.
	SessionID  string
	Step       casework.DecisionState
	Resolution casework.Resolution
	Reference  string
	Reason     string // of the proposal, or of its rejection; the code of its refusal
	By         string // the name of who did it; empty if the proposal lapsed or was refused
	At         time.Time
	// Agreement has the signed steps. ClaimNotes does not read it.
	Agreement casework.Agreement `db:"-"`
	// Steps is the number of steps that events record before this one.
	Steps int
}

// Command returns the command that makes the step an event. It is idempotent.
func (n Note) Command(at time.Time) checkout.Command {
	return checkout.Command{At: at, SessionID: n.SessionID, Do: n.proposal()}
}

func (n Note) proposal() checkout.NoteProposal {
	do := checkout.NoteProposal{
		CaseID: n.CaseID, Number: n.Number, Step: n.Step, Resolution: n.Resolution, Reference: n.Reference, Reason: n.Reason, By: n.By,
	}
	switch n.Step {
	case casework.DecisionProposed:
		do.Digest, do.Proposed = n.Agreement.Digest, n.Agreement.Proposed
	case casework.DecisionApproved:
		do.Digest, do.Proposed = n.Agreement.Digest, n.Agreement.Approved
	case casework.DecisionRejected, casework.DecisionLapsed, casework.DecisionRefused:
	}
	return do
}

// ClaimNotes returns the next step of up to n cases that have one and that nobody has tried
// for the time again. The caller has that time to try them. The steps of a case come in
// order: one of them only when all before it are noted. The opening of a case without a
// session must be recorded.
func (s *Store) ClaimNotes(ctx context.Context, n int, again time.Duration) ([]Note, error) {
	rows, _ := s.pool.Query(ctx, `
		UPDATE case_proposals p SET note_tried_at = now()
		FROM (SELECT case_id, number FROM case_proposals d
			WHERE (noted < 2 OR noted = 2 AND state = 'refused') AND (noted = 0 OR decided_at IS NOT NULL OR state = 'lapsed')
				AND (note_tried_at IS NULL OR note_tried_at <= now() - $2::interval)
				AND (session_id IS NOT NULL OR EXISTS (SELECT FROM cases c WHERE c.id = d.case_id AND c.recorded))
				AND NOT EXISTS (SELECT FROM case_proposals e
					WHERE e.case_id = d.case_id AND e.number < d.number AND (e.noted < 2 OR e.noted = 2 AND e.state = 'refused') AND (e.noted = 0 OR e.decided_at IS NOT NULL OR e.state = 'lapsed'))
			ORDER BY proposed_at, case_id LIMIT $1 FOR UPDATE SKIP LOCKED) due
		WHERE p.case_id = due.case_id AND p.number = due.number
		RETURNING p.case_id, p.number, coalesce(p.session_id, ''),
			CASE WHEN p.noted = 0 THEN 'proposed' WHEN p.noted = 2 THEN 'refused' WHEN p.state IN ('rejected', 'lapsed') THEN p.state ELSE 'approved' END,
			p.resolution, p.reference, CASE WHEN p.noted = 1 AND p.state = 'rejected' THEN p.decision WHEN p.noted = 2 THEN p.refusal ELSE p.reason END,
			CASE p.noted WHEN 0 THEN p.proposer WHEN 2 THEN '' ELSE p.decider END, CASE p.noted WHEN 0 THEN p.proposed_at WHEN 2 THEN p.finished_at ELSE coalesce(p.decided_at, p.finished_at) END, p.noted`, n, again)
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Note])
	if err != nil {
		return nil, fmt.Errorf("claiming steps of proposals: %w", err)
	}
	return out, nil
}

// Noted records that a step is an event: the processor has answered its command, or
// cases.events has it. The next step of
// the proposal can be claimed at once.
func (s *Store) Noted(ctx context.Context, n Note) error {
	_, err := s.pool.Exec(ctx, `UPDATE case_proposals SET noted = $3 + 1, note_tried_at = NULL WHERE case_id = $1 AND number = $2 AND noted = $3`, n.CaseID, n.Number, n.Steps)
	if err != nil {
		return fmt.Errorf("recording the event of a proposal: %w", err)
	}
	return nil
}

// Unrecorded returns up to n cases without a session whose opening is not in cases.events,
// as far as the topic has been read.
func (s *Store) Unrecorded(ctx context.Context, n int) ([]Case, error) {
	rows, _ := s.pool.Query(ctx, `SELECT `+read+` FROM cases WHERE NOT in_session AND NOT recorded ORDER BY opened_at, id LIMIT $1`, n)
	list, err := pgx.CollectRows(rows, toCase)
	if err != nil {
		return nil, fmt.Errorf("listing cases that no event records: %w", err)
	}
	return list, nil
}

// Recorded returns a case without a session whose opening is in cases.events; nil if there is none.
func (s *Store) Recorded(ctx context.Context) (*Case, error) {
	rows, _ := s.pool.Query(ctx, `SELECT `+read+` FROM cases WHERE NOT in_session AND recorded ORDER BY opened_at DESC, id LIMIT 1`)
	list, err := pgx.CollectRows(rows, toCase)
	if err != nil {
		return nil, fmt.Errorf("looking for a case that is recorded: %w", err)
	}
	if len(list) == 0 {
		return nil, nil //nolint:nilnil // none is no error
	}
	return &list[0], nil
}

// End is the end of a case by the matcher.
type End struct {
	Case
	// Agreed is what people had approved in the case, nil for nothing. Approved.CaseID is the case's.
	Agreed *Approved
	// Answered means that the end is recorded as the answer to Agreed.
	Answered bool
}

// Refusal returns the code with which the matcher has refused what people agreed on; empty if it has
// carried it out.
func (e End) Refusal() checkout.Code {
	switch {
	case e.EndedAs == ResolutionRefused:
		return checkout.Code(e.EndedReason)
	case e.Agreed != nil && e.EndedAs != e.Agreed.Resolution:
		return RefusalEnded
	}
	return ""
}

// ofCase is the columns of a row as it is read, of the table c.
var ofCase = "c." + strings.Join(strings.Split(strings.Join(strings.Fields(read), ""), ","), ", c.")

// Ended returns up to n cases that the matcher has ended and that are open, or in which what people
// agreed on has no answer. It leaves out those with a step of a proposal that no event records yet,
// which comes first.
func (s *Store) Ended(ctx context.Context, n int) ([]End, error) {
	rows, _ := s.pool.Query(ctx, `SELECT `+ofCase+`, coalesce(p.number, 0), coalesce(p.state, ''), coalesce(p.resolution, ''), coalesce(p.reference, ''), coalesce(p.reason, ''),
			coalesce(p.proposer, ''), coalesce(p.decider, ''), coalesce(p.decided_by::text, ''), coalesce(p.decided_at, c.ended_at)
		FROM (SELECT `+read+` FROM cases c WHERE ended_at IS NOT NULL AND recorded
				AND (resolution IS NULL OR EXISTS (SELECT FROM case_proposals p WHERE p.case_id = c.id AND p.state = 'approved'))
				AND NOT EXISTS (SELECT FROM case_proposals p WHERE p.case_id = c.id AND (p.noted = 0 OR p.noted = 1 AND p.state = 'approved'))
			ORDER BY ended_at, id LIMIT $1) c
		LEFT JOIN LATERAL (SELECT number, state, resolution, reference, reason, proposer, decider, decided_by, decided_at FROM case_proposals
			WHERE case_id = c.id AND state IN ('approved', 'carried_out', 'refused') ORDER BY number DESC LIMIT 1) p ON true
		ORDER BY c.ended_at, c.id`, n)
	list, err := pgx.CollectRows(rows, toEnd)
	if err != nil {
		return nil, fmt.Errorf("listing cases that the matcher has ended: %w", err)
	}
	return list, nil
}

// endRow is a row of Ended.
type endRow struct {
	row
	Number                                              int // 0 for none
	State                                               ProposalState
	Agreed, Evidence, Why, Proposer, Decider, DecidedBy string
	DecidedAt                                           time.Time
}

func toEnd(r pgx.CollectableRow) (End, error) {
	stored, err := pgx.RowToStructByPos[endRow](r)
	if err != nil {
		return End{}, err
	}
	e := End{Answered: stored.State != ProposalApproved}
	if stored.Number > 0 {
		e.Agreed = &Approved{
			CaseID: stored.ID, Number: stored.Number, Resolution: casework.Resolution(stored.Agreed), Reference: stored.Evidence, Reason: stored.Why,
			Proposer: stored.Proposer, Decider: stored.Decider, DecidedBy: stored.DecidedBy, DecidedAt: stored.DecidedAt,
		}
	}
	e.Case, err = fromRow(stored.row)
	return e, err
}

// Lapse ends the open proposals that can no longer be approved. now is the time of the
// service's clock.
func (s *Store) Lapse(ctx context.Context, now time.Time) error {
	// A proposal that somebody decides about at this moment is left alone.
	_, err := s.pool.Exec(ctx, `
		UPDATE case_proposals p SET state = 'lapsed', finished_at = $1
		FROM (SELECT o.case_id, o.number FROM case_proposals o JOIN staff m ON m.id = o.proposed_by
			WHERE o.state = 'open' AND (m.revoked_at IS NOT NULL OR m.suspended_at IS NOT NULL OR o.proposed_at <= $2) FOR UPDATE OF o SKIP LOCKED) over
		WHERE p.case_id = over.case_id AND p.number = over.number`, now, now.Add(-lapsesAfter))
	if err != nil {
		return fmt.Errorf("ending proposals that have lapsed: %w", err)
	}
	return nil
}
