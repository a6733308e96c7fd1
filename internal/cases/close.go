package cases

import (
	"context"
	"crypto/sha256"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/casework"
	"quittance/internal/operation"
)

// CloseRequest proposes to close a period of an account.
type CloseRequest struct {
	AgencyID string
	Live     bool
	// Account is the code of the account. From and To are its local days, such as 2026-11-30.
	Account, From, To string
	// Digest is that of what the second person approves. Sums says it in words.
	Digest, Sums string
	Reason       string
}

// OpenClose opens the case of a close with the proposal of the person. An earlier case of the
// account that nobody has approved ends as withdrawn, unless its proposal still waits. now is the
// time of the service's clock. A refusal is an *operation.Error with the field id or reason.
func (s *Store) OpenClose(ctx context.Context, by By, req CloseRequest, now time.Time) (d Detail, err error) {
	now = now.UTC().Truncate(time.Millisecond)
	sum := sha256.Sum256([]byte(strings.Join([]string{"close", req.AgencyID, mode(req.Live), req.Account, req.To, req.Digest, now.Format(time.RFC3339Nano)}, "|")))
	c := Case{
		Case: casework.Case{
			ID: "case_" + strings.ToLower(idEncoding.EncodeToString(sum[:20])), Kind: KindClose,
			Reason: "days " + req.From + " to " + req.To + " of account " + req.Account, OpenedAt: now,
		},
		AgencyID: req.AgencyID, Mode: mode(req.Live), Clerks: []string{},
		Evidence: map[string]string{
			EvidenceTenant: req.AgencyID, EvidenceLedger: req.Account, EvidenceFrom: req.From, EvidenceTo: req.To, EvidenceDigest: req.Digest, EvidenceSums: req.Sums,
		},
	}
	c.Evidence[EvidenceFound] = c.Reason
	err = s.tx(ctx, "proposing a close", func(tx pgx.Tx) error {
		proposal := Request{CaseID: c.ID, Resolution: ResolutionClose, Reason: req.Reason}
		if _, err := proposal.check(c); err != nil {
			return err
		}
		if !by.Staff.ActsFor(req.AgencyID) {
			return operation.Refuse("case.not_yours", "", nil)
		}
		me, err := mayResolve(ctx, tx, s.keys, by, c)
		if err != nil {
			return err
		}
		if err := s.endCloses(ctx, tx, by, c, now); err != nil {
			return err
		}
		args, err := c.args()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, upsert, args...); err != nil {
			return err
		}
		p := Proposal{Number: 1, State: ProposalOpen, Resolution: ResolutionClose, Reason: req.Reason, ProposedBy: me.ID, ProposedAt: now}
		detail := map[string]any{"account": req.Account, "to": req.To, "digest": req.Digest}
		if err := propose(ctx, tx, by, c, p, p.step(by, me, now), detail); err != nil {
			return err
		}
		d, err = s.show(ctx, tx, &by.Staff, c.ID, now)
		return err
	})
	return d, err
}

// endCloses ends the open cases of closes of the account of c. It refuses while the proposal of one
// of them waits.
func (s *Store) endCloses(ctx context.Context, tx pgx.Tx, by By, c Case, now time.Time) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, "close "+c.AgencyID+" "+c.Mode+" "+c.Evidence[EvidenceLedger]); err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, `SELECT `+read+` FROM cases WHERE kind = $1 AND agency_id = $2 AND livemode = $3 AND evidence ->> $4 = $5 AND resolution IS NULL AND ended_at IS NULL ORDER BY id FOR UPDATE`,
		string(KindClose), c.AgencyID, c.Mode == mode(true), EvidenceLedger, c.Evidence[EvidenceLedger])
	earlier, err := pgx.CollectRows(rows, toCase)
	if err != nil {
		return err
	}
	for _, e := range earlier {
		d, err := s.show(ctx, tx, nil, e.ID, now)
		if err != nil {
			return err
		}
		for _, p := range d.Proposals {
			if p.State == ProposalOpen || p.State == ProposalApproved || p.State == ProposalCarriedOut {
				return operation.Refuse("case.close_waits", "id", operation.Args{"case": e.ID, "to": e.Evidence[EvidenceTo], "proposer": p.Proposer})
			}
		}
		if _, err := tx.Exec(ctx, `UPDATE cases SET ended_as = 'withdrawn', ended_at = $2 WHERE id = $1`, e.ID, now); err != nil {
			return err
		}
		if err := operation.Record(ctx, tx, by.actor(), now, entry("case.withdraw", e, map[string]any{"for": c.ID})); err != nil {
			return err
		}
	}
	return nil
}
