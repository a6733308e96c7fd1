package intake

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/statements"
)

// Agreed is what two people have agreed on pages, and what became of it: the withdrawal of an import, or that the
// statement of an accepted import is the account's last one again.
type Agreed struct {
	// Of is the verdict: Withdrawn or Released.
	Of           Decision
	ID, ImportID string
	// Lines is how many lines of a withdrawal do not count any more.
	Lines int
	// Err is why it was not carried out; nil if it was.
	Err error
}

// CarryOut carries out what two people have agreed on pages within the last day, the oldest first. Before, it settles the
// withdrawals that were interrupted: those that are done then come first, the others are carried out like all. It verifies the signatures
// and the proofs of the passkeys of both. What is refused stays agreed, until its day is over. It acts for nobody: the
// people have decided. now is the time of the service's clock. The error is of the database alone.
func (s *Store) CarryOut(ctx context.Context, now time.Time) (out []Agreed, err error) {
	settled, err := s.settleWithdrawals(ctx, now)
	if err != nil {
		return nil, err
	}
	rows, err := s.cfg.Pool.Query(ctx, `SELECT id::text, import_id::text, $2, decided_at FROM statement_withdrawals WHERE state = 'agreed' AND decided_at >= $1
		UNION ALL SELECT id::text, import_id::text, $3, decided_at FROM statement_exits WHERE state = 'agreed' AND verdict = 'released' AND decided_at >= $1 ORDER BY 4, 1`,
		now.Add(-requestLife), Withdrawn, Released)
	if err != nil {
		return nil, fmt.Errorf("reading what people have agreed on: %w", err)
	}
	out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Agreed, err error) {
		var at time.Time
		err = row.Scan(&a.ID, &a.ImportID, &a.Of, &at)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what people have agreed on: %w", err)
	}
	for i := range out {
		a := &out[i]
		if a.Of == Withdrawn {
			_, a.Lines, a.Err = s.carryOutWithdrawal(ctx, By{}, uuid.MustParse(a.ID), now)
		} else {
			a.Err = s.carryOutRelease(ctx, a.ID, now)
		}
	}
	return append(settled, out...), nil
}

// settleWithdrawals settles the accounts with a withdrawal that was interrupted. It returns the withdrawals that are done then,
// and those that cannot be settled now, with the error.
func (s *Store) settleWithdrawals(ctx context.Context, now time.Time) (out []Agreed, err error) {
	rows, _ := s.cfg.Pool.Query(ctx, `SELECT id::text, import_id::text FROM statement_withdrawals WHERE state = 'approved' ORDER BY decided_at, id`)
	interrupted, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Agreed, error) {
		a := Agreed{Of: Withdrawn}
		return a, row.Scan(&a.ID, &a.ImportID)
	})
	if err != nil {
		return nil, fmt.Errorf("reading what was interrupted: %w", err)
	}
	for _, a := range interrupted {
		var state WithdrawalState
		a.Err = doing("settling a withdrawal", s.holding(ctx, importOfWithdrawal, uuid.MustParse(a.ID), By{}, now, func(tx pgx.Tx, _ *ledger) error {
			return tx.QueryRow(ctx, `SELECT w.state, (SELECT count(*) FROM statement_withdrawn_lines l WHERE l.withdrawal_id = w.id) FROM statement_withdrawals w WHERE w.id = $1`, a.ID).Scan(&state, &a.Lines)
		}))
		if a.Err != nil || state == WithdrawalDone {
			out = append(out, a)
		}
	}
	return out, nil
}

// carryOutRelease makes the statement of an accepted import the account's last one again.
func (s *Store) carryOutRelease(ctx context.Context, id string, now time.Time) error {
	return doing("making an earlier statement the last one", pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		r, err := lockRelease(ctx, tx, id)
		if err != nil {
			return err
		}
		if r.State != ReleaseAgreed || r.importState != string(statements.VerdictAccepted) {
			return operation.Refuse("statement.release_decided", "id", operation.Args{"state": string(r.State), "name": r.DecidedBy})
		}
		if err := r.pact.agreed(ctx, tx, s.cfg.Keys, now, now); err != nil {
			return err
		}
		if err := restore(ctx, tx, r.ImportID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE statement_exits SET state = $2 WHERE id = $1`, r.ID, ReleaseApproved); err != nil {
			return err
		}
		return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorService, Name: "statements"}, now, r.entry("statements.release.carry_out"))
	}))
}
