package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/schemas/record"
)

// Withdrawn is the state of an import that two people have withdrawn: nothing of it counts any more, but for lines
// that another accepted import has.
const Withdrawn Decision = "withdrawn"

// WithdrawalState is the state of a withdrawal.
type WithdrawalState string

// The states of a withdrawal.
const (
	WithdrawalRequested WithdrawalState = "requested" // waits for another person
	WithdrawalAgreed    WithdrawalState = "agreed"    // approved on a page; CarryOut carries it out within a day
	WithdrawalApproved  WithdrawalState = "approved"  // is being carried out, or was interrupted
	WithdrawalDone      WithdrawalState = "done"
	WithdrawalRejected  WithdrawalState = "rejected"
)

// Withdrawal is the request of a person to withdraw an import that was accepted by mistake. Another person approves
// it, which carries it out.
type Withdrawal struct {
	ID, ImportID string
	registry.StatementAccountKey
	State  WithdrawalState
	Reason string
	// RequestedBy and DecidedBy are names of staff; DecidedBy is empty before the decision.
	RequestedBy, DecidedBy string
	RequestedAt, DecidedAt time.Time // UTC; DecidedAt is zero before the decision
	// Statements are those of the import.
	Statements []Facts

	// Requester is the id of who requested it.
	Requester string

	pact        pact
	importState string
	partition   int32
	from        int64
}

// Until is when the request ends unless it is approved, and after the approval on a page when it ends unless it is carried out.
func (w *Withdrawal) Until() time.Time {
	if w.State == WithdrawalAgreed {
		return w.DecidedAt.Add(requestLife)
	}
	return w.RequestedAt.Add(requestLife)
}

// decision returns the withdrawal as a decision by two people.
func (w *Withdrawal) decision() casework.Decision {
	d := casework.Decision{State: casework.DecisionProposed, ProposedBy: w.Requester, ProposedAt: w.RequestedAt, Life: requestLife}
	switch w.State {
	case WithdrawalRequested:
	case WithdrawalAgreed, WithdrawalApproved, WithdrawalDone:
		d.State = casework.DecisionApproved
	case WithdrawalRejected:
		d.State = casework.DecisionRejected
	}
	return d
}

// refused says that the withdrawal was decided before.
func (w *Withdrawal) refused() error {
	return operation.Refuse("statement.withdrawal_decided", "id", operation.Args{"state": string(w.State), "name": w.DecidedBy})
}

// days returns the first and the last day of the import's statements; empty if they have none.
func (w *Withdrawal) days() (first, last string) {
	for _, f := range w.Statements {
		if f.From != "" && (first == "" || f.From < first) {
			first = f.From
		}
		last = max(last, f.To)
	}
	return first, last
}

// entry returns the entry of the audit table about a step of the withdrawal.
func (w *Withdrawal) entry(action string) operation.Entry {
	detail := map[string]any{
		"agency_id": w.AgencyID, "mode": registry.Mode(w.Live), "account": w.Code, "withdrawal": w.ID, "reason": w.Reason, "requested_by": w.RequestedBy,
	}
	if w.DecidedBy != "" {
		detail["decided_by"] = w.DecidedBy
	}
	return operation.Entry{Action: action, Subject: w.ImportID, AgencyID: w.AgencyID, Detail: detail}
}

// RequestWithdrawal requests to withdraw an accepted import of open days. A refusal is an *operation.Error: the import
// is unknown or not accepted, its days are closed, or a later statement continues it.
func (s *Store) RequestWithdrawal(ctx context.Context, by By, importID, reason string, now time.Time) (w Withdrawal, err error) {
	id, err := uuid.Parse(importID)
	if err != nil {
		return w, operation.Refuse("statement.unknown", "id", nil)
	}
	if !form.IsLine(reason, maxReason) {
		return w, operation.Refuse("statement.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	err = doing("requesting a withdrawal", s.withImport(ctx, importOf, id, by, now, func(tx pgx.Tx) error {
		w = Withdrawal{}
		request, err := by.newID()
		if err != nil {
			return err
		}
		staff, err := identity.LockStaff(ctx, tx, s.cfg.Keys, by.Staff.ID)
		if err != nil {
			return err
		}
		return decisions.Propose(ctx, tx, decisions.Step{
			By: staff[by.Staff.ID].Person(), Actor: by.actor(), At: by.at(now),
			Store: func() (operation.Entry, error) {
				if _, err := tx.Exec(ctx, `INSERT INTO statement_withdrawals (id, import_id, state, reason, requested_by, requested_at) VALUES ($1, $2, $3, $4, $5, $6)`,
					request, id, WithdrawalRequested, reason, by.Staff.ID, by.at(now)); err != nil {
					return operation.Entry{}, asOnce(err)
				}
				if w, err = oneWithdrawal(ctx, tx, request); err == nil {
					err = by.still(ctx, tx, identity.MayPropose, w.AgencyID)
				}
				if err == nil {
					err = s.withdrawable(ctx, tx, &w, "")
				}
				if err == nil {
					err = w.alone(ctx, tx, now)
				}
				if err != nil {
					return operation.Entry{}, err
				}
				signed, err := by.sign(ctx, tx, s.cfg.Keys, w.pact, casework.DecisionProposed, now, false)
				if err == nil {
					_, err = tx.Exec(ctx, `UPDATE statement_withdrawals SET digest = $2, requested_signature = $3, requested_proof = $4 WHERE id = $1`, w.ID, signed.digest, signed.signature, signed.proof)
				}
				return signed.noted(w.entry("statements.withdraw.request")), err
			},
		})
	}))
	return w, err
}

// RejectWithdrawal rejects a request; whoever made it takes it back so.
func (s *Store) RejectWithdrawal(ctx context.Context, by By, withdrawalID string, now time.Time) (w Withdrawal, err error) {
	id, err := uuid.Parse(withdrawalID)
	if err != nil {
		return w, operation.Refuse("statement.withdrawal_unknown", "id", nil)
	}
	err = doing("rejecting a withdrawal", s.withImport(ctx, importOfWithdrawal, id, by, now, func(tx pgx.Tx) (err error) {
		if w, err = oneWithdrawal(ctx, tx, withdrawalID); err != nil {
			return err
		}
		if err := by.mayEnd(ctx, tx, w.Requester, w.AgencyID, now); err != nil {
			return err
		}
		return s.decided(ctx, tx, &w, by, now, func(step decisions.Step) error {
			step.Store = func() (operation.Entry, error) {
				if w.State != WithdrawalRequested {
					return operation.Entry{}, casework.ErrDecided
				}
				err := w.change(ctx, tx, `UPDATE statement_withdrawals SET state = $2, decided_by = $3, decided_at = $4 WHERE id = $1 AND state = 'requested'`, id, WithdrawalRejected, by.Staff.ID, now)
				if err == nil {
					w, err = oneWithdrawal(ctx, tx, withdrawalID)
				}
				return w.entry("statements.withdraw.reject"), err
			}
			return decisions.Reject(ctx, tx, step)
		})
	}))
	return w, err
}

// change makes a change of a row that waits. The refusal says who has decided it meanwhile.
func (w *Withdrawal) change(ctx context.Context, tx pgx.Tx, statement string, args ...any) error {
	tag, err := tx.Exec(ctx, statement, args...)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	decided, err := oneWithdrawal(ctx, tx, w.ID)
	if err != nil {
		return err
	}
	return decided.refused()
}

// alone refuses a withdrawal of an import while another one of it is agreed or being carried out. It is no part of withdrawable:
// of two that are agreed all the same one is carried out.
func (w *Withdrawal) alone(ctx context.Context, tx pgx.Tx, now time.Time) error {
	others, err := withdrawals(ctx, tx, `w.import_id = $1 AND w.id <> $2 AND (w.state = 'approved' OR w.state = 'agreed' AND w.decided_at >= $3) LIMIT 1`, w.ImportID, w.ID, now.Add(-requestLife))
	if err != nil || len(others) == 0 {
		return err
	}
	return others[0].refused()
}

// decided takes a step of a withdrawal that waits. The step has all but what it stores.
func (s *Store) decided(ctx context.Context, tx pgx.Tx, w *Withdrawal, by By, now time.Time, take func(decisions.Step) error) error {
	staff, err := identity.LockStaff(ctx, tx, s.cfg.Keys, by.Staff.ID, w.Requester)
	if err != nil {
		return err
	}
	return take(decisions.Step{
		Decision: w.decision(), Proposer: staff[w.Requester].Person(), By: staff[by.Staff.ID].Person(), Actor: by.actor(), At: by.at(now),
		Refusals: map[error]error{
			casework.ErrDecided:    w.refused(),
			casework.ErrLapsed:     operation.Refuse("statement.withdrawal_over", "id", nil),
			casework.ErrSamePerson: operation.Refuse("statement.withdrawal_second_person", "", nil),
		},
	})
}

// ApproveWithdrawal approves the request of another person, and carries it out: the lines of the import that no other
// accepted import has do not count any more, and the account goes on from the statement before. On a page it is agreed, and
// CarryOut does that. Errors that are no *operation.Error are about this attempt, which may be repeated.
func (s *Store) ApproveWithdrawal(ctx context.Context, by By, withdrawalID string, now time.Time) (w Withdrawal, lines int, err error) {
	id, err := uuid.Parse(withdrawalID)
	if err != nil {
		return w, 0, operation.Refuse("statement.withdrawal_unknown", "id", nil)
	}
	if by.Acting.SignedIn() {
		w, err = s.agree(ctx, by, id, now)
		return w, 0, doing("approving a withdrawal", err)
	}
	return s.carryOutWithdrawal(ctx, by, id, now)
}

// carryOutWithdrawal approves a withdrawal that waits, or takes one on which two people have agreed, and carries it out.
func (s *Store) carryOutWithdrawal(ctx context.Context, by By, id uuid.UUID, now time.Time) (w Withdrawal, lines int, err error) {
	err = s.holding(ctx, importOfWithdrawal, id, by, now, func(tx pgx.Tx, l *ledger) (err error) {
		if w, err = oneWithdrawal(ctx, tx, id.String()); err != nil {
			return err
		}
		t := &taking{ledger: l, Withdrawal: &w, id: id, by: by}
		lines, err = t.carryOut(ctx, tx)
		return err
	})
	if err != nil {
		return w, 0, doing("withdrawing an import", err)
	}
	w.State = WithdrawalDone
	return w, lines, nil
}

// agree stores the approval of a page, which writes no statement.
func (s *Store) agree(ctx context.Context, by By, id uuid.UUID, now time.Time) (w Withdrawal, err error) {
	err = s.withImport(ctx, importOfWithdrawal, id, by, now, func(tx pgx.Tx) (err error) {
		if w, err = oneWithdrawal(ctx, tx, id.String()); err != nil {
			return err
		}
		if err := by.still(ctx, tx, identity.MayApprove, w.AgencyID); err != nil {
			return err
		}
		return s.decided(ctx, tx, &w, by, now, func(step decisions.Step) error {
			step.Store = func() (operation.Entry, error) {
				actor, err := json.Marshal(step.Actor)
				if err == nil {
					err = w.pact.requested(ctx, tx, s.cfg.Keys, now)
				}
				if err == nil {
					err = s.withdrawable(ctx, tx, &w, "")
				}
				if err == nil {
					err = w.alone(ctx, tx, now)
				}
				if err != nil {
					return operation.Entry{}, err
				}
				signed, err := by.sign(ctx, tx, s.cfg.Keys, w.pact, casework.DecisionApproved, now, true)
				if err == nil {
					err = w.change(ctx, tx, `UPDATE statement_withdrawals SET state = $2, decided_by = $3, decided_at = $4, actor = $5, decided_signature = $6, decided_proof = $7 WHERE id = $1 AND state = 'requested'`,
						id, WithdrawalAgreed, by.Staff.ID, step.At, actor, signed.signature, signed.proof)
				}
				if err == nil {
					w, err = oneWithdrawal(ctx, tx, w.ID)
				}
				if err == nil {
					err = w.pact.agreed(ctx, tx, s.cfg.Keys, now, now)
				}
				return signed.noted(w.entry("statements.withdraw.approve")), err
			}
			return decisions.Approve(ctx, tx, step)
		})
	})
	return w, err
}

const (
	importOf           = `SELECT agency_id::text, live, code FROM statement_imports WHERE id = $1 AND state <> 'pending'`
	importOfWithdrawal = `SELECT agency_id::text, live, code FROM statement_imports WHERE id = (SELECT import_id FROM statement_withdrawals WHERE id = $1)`
)

// withImport takes a step of a withdrawal that writes no statement, with a lock of the import. With a key it holds the ledger
// first and settles what was interrupted before, as carrying out does; a page may not write the ledger.
func (s *Store) withImport(ctx context.Context, query string, id uuid.UUID, by By, now time.Time, do func(pgx.Tx) error) error {
	locked := func(tx pgx.Tx) error {
		lock := `SELECT lock_statement_import($1)`
		if query == importOfWithdrawal {
			lock = `SELECT lock_statement_import(import_id) FROM statement_withdrawals WHERE id = $1`
		}
		if _, err := tx.Exec(ctx, lock, id); err != nil {
			return fmt.Errorf("locking an import: %w", err)
		}
		return do(tx)
	}
	if !by.Acting.SignedIn() {
		return s.holding(ctx, query, id, by, now, func(tx pgx.Tx, _ *ledger) error { return locked(tx) })
	}
	if _, err := s.accountOf(ctx, query, id, by); err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.cfg.Pool, locked)
}

// accountOf returns the account that a query finds, of which the person may decide.
func (s *Store) accountOf(ctx context.Context, query string, id uuid.UUID, by By) (key registry.StatementAccountKey, err error) {
	if s.cfg.Closed == nil {
		return key, errors.New("the store does not know which days are closed")
	}
	err = s.cfg.Pool.QueryRow(ctx, query, id).Scan(&key.AgencyID, &key.Live, &key.Code)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !by.Staff.ActsFor(key.AgencyID) {
		if query == importOf {
			return key, operation.Refuse("statement.unknown", "id", nil)
		}
		return key, operation.Refuse("statement.withdrawal_unknown", "id", nil)
	}
	return key, err
}

// holding does something while it holds the ledger of the account that a query finds, and settles what was interrupted
// before. It commits what do has written.
func (s *Store) holding(ctx context.Context, query string, id uuid.UUID, by By, now time.Time, do func(pgx.Tx, *ledger) error) error {
	key, err := s.accountOf(ctx, query, id, by)
	if err != nil {
		return err
	}
	l := s.ledgerOf(key, now)
	for again := true; again && err == nil; {
		err = pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
			if _, err := l.lock(ctx, tx); err != nil {
				return err
			}
			earlier, err := l.pending(ctx, tx)
			if err != nil {
				return err
			}
			if again = earlier != nil; !again {
				return do(tx, &l)
			}
			w, err := l.fence(ctx)
			if err != nil {
				return err
			}
			defer w.client.Close()
			return l.settle(ctx, tx, w, earlier)
		})
	}
	return err
}

// withdrawable returns why an import cannot be withdrawn; nil if it can. first is the first day of its lines, if they
// are known.
func (s *Store) withdrawable(ctx context.Context, tx pgx.Tx, w *Withdrawal, first string) error {
	if w.importState != string(statements.VerdictAccepted) {
		return operation.Refuse("statement.not_accepted", "id", operation.Args{"state": w.importState})
	}
	if from, _ := w.days(); first == "" || from != "" && from < first {
		first = from
	}
	accounts := []registry.StatementAccountKey{w.StatementAccountKey}
	var bank *string
	if err := tx.QueryRow(ctx, `SELECT settles_to FROM statement_accounts WHERE (agency_id, live, code) = ($1, $2, $3)`, w.AgencyID, w.Live, w.Code).Scan(&bank); err != nil {
		return fmt.Errorf("reading the account: %w", err)
	}
	if bank != nil { // whose closes count these lines, too
		accounts = append(accounts, registry.StatementAccountKey{AgencyID: w.AgencyID, Live: w.Live, Code: *bank})
	}
	for _, key := range accounts {
		to, err := s.cfg.Closed(ctx, key)
		if err != nil {
			return err
		}
		if first != "" && first <= to {
			return operation.Refuse("statement.days_closed", "id", operation.Args{"account": key.Code, "to": to})
		}
	}
	var later uuid.UUID
	var name string
	err := tx.QueryRow(ctx, `WITH own AS (SELECT min(number) AS number, bool_or(balanced) AS balanced, array_agg(statement_id) AS ids FROM statements WHERE import_id = $1)
		SELECT s.import_id, s.statement_id FROM statements s, own WHERE (s.agency_id, s.live, s.code) = ($2, $3, $4) AND s.import_id <> $1
		AND (SELECT min(number) FROM statements o WHERE o.import_id = s.import_id) > own.number AND (s.balanced AND own.balanced OR s.statement_id = ANY (own.ids))
		ORDER BY s.number DESC LIMIT 1`, w.ImportID, w.AgencyID, w.Live, w.Code).Scan(&later, &name)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("looking for a later statement: %w", err)
	}
	return operation.Refuse("statement.continued", "id", operation.Args{"statement": name, "import": later.String()})
}

// taking is a withdrawal that is carried out.
type taking struct {
	*ledger
	*Withdrawal
	id uuid.UUID
	by By // of an approval with a key
}

// carryOut writes the withdrawn records to Kafka and then the withdrawal to the ledger, in the steps of an import. It
// returns how many lines do not count any more.
func (t *taking) carryOut(ctx context.Context, tx pgx.Tx) (int, error) {
	var err error
	switch t.State {
	case WithdrawalRequested:
		err = t.pact.requested(ctx, tx, t.cfg.Keys, t.now)
	case WithdrawalAgreed:
		err = t.pact.agreed(ctx, tx, t.cfg.Keys, t.now, t.now)
	case WithdrawalApproved, WithdrawalDone, WithdrawalRejected:
		err = t.Withdrawal.refused()
	}
	if err != nil {
		return 0, err
	}
	if err := t.withdrawable(ctx, tx, t.Withdrawal, ""); err != nil {
		return 0, err
	}
	w, err := t.fence(ctx)
	if err != nil {
		return 0, err
	}
	defer w.client.Close()
	lines, heads, err := t.own(ctx, tx, w)
	if err != nil {
		return 0, err
	}
	// As in an import, the approval commits before the Kafka transaction begins.
	begin := t.approve
	if t.State == WithdrawalAgreed {
		begin = t.begin
	}
	if err := pgx.BeginFunc(ctx, t.cfg.Pool, func(tx pgx.Tx) error { return begin(ctx, tx, w, lines) }); err != nil {
		return 0, err
	}
	if err := t.after(stepPending); err != nil {
		return 0, err
	}
	if err := t.write(ctx, w, t.id, func(send func(record.Record) error) error {
		for _, r := range lines {
			if err := send(r); err != nil {
				return err
			}
		}
		for _, r := range heads {
			if err := send(r); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		if !errors.Is(err, errKilled) {
			err = errors.Join(err, t.abort(ctx, w, func(ctx context.Context, tx pgx.Tx) error { return undoWithdrawal(ctx, tx, t.id) }))
		}
		return 0, err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.patience)
	defer cancel()
	if err := t.commit(ending, w); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrWithdrawalUnknown, err)
	}
	if err := t.after(stepCommitted); err != nil {
		return 0, err
	}
	return len(lines), t.finishWithdrawal(ending, tx, w, &unsettled{id: t.id, partition: w.partition, from: w.end})
}

// ErrWithdrawalUnknown says that the broker did not confirm the end of the withdrawal.
var ErrWithdrawalUnknown = errors.New("the broker did not confirm the withdrawal, which may be done: approve it again, which completes it or says that it is done")

// own reads the records of the import, and returns those after which its lines and its statements do not count any
// more. A line that another accepted import has still counts, so that it has none.
func (t *taking) own(ctx context.Context, tx pgx.Tx, w *writer) (lines []*record.StatementLine, heads []*record.Statement, err error) {
	all := map[lineKey]*record.StatementLine{}
	first, last := t.days()
	err = t.recordsOf(ctx, w, t.Withdrawal, func(l *record.StatementLine) error {
		key, err := keyOf(l)
		if err != nil {
			return err
		}
		key.life = l.Life
		all[key] = l
		if last = max(last, l.Day); first == "" || l.Day < first {
			first = l.Day
		}
		return nil
	}, func(s *record.Statement) error {
		s.Withdrawn, s.ImportedAt = true, t.now
		heads = append(heads, s)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if err := t.withdrawable(ctx, tx, t.Withdrawal, first); err != nil {
		return nil, nil, err
	}
	others, err := importsOf(ctx, tx, t.Withdrawal, first, last)
	if err != nil {
		return nil, nil, err
	}
	for _, other := range others {
		if err := t.recordsOf(ctx, w, &other, func(l *record.StatementLine) error {
			key, err := keyOf(l)
			key.life = l.Life
			delete(all, key)
			return err
		}, nil); err != nil {
			return nil, nil, err
		}
	}
	for _, l := range all {
		l.Withdrawn, l.ImportedAt = true, t.now
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(a, b *record.StatementLine) int {
		return cmp.Or(cmp.Compare(a.StatementID, b.StatementID), cmp.Compare(a.Number, b.Number))
	})
	return lines, heads, nil
}

// approve approves the withdrawal, with the lines that do not count any more after it.
func (t *taking) approve(ctx context.Context, tx pgx.Tx, w *writer, lines []*record.StatementLine) error {
	// A page decides with this lock. The wait is bounded: another connection of ours holds the ledger, and a command that makes an
	// earlier statement the last one again holds the import and waits for the ledger. Postgres does not see that deadlock.
	if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = %d", (t.patience/6).Milliseconds())); err != nil {
		return fmt.Errorf("locking an import: %w", err)
	}
	if err := lockImportRow(ctx, tx, uuid.MustParse(t.ImportID)); err != nil {
		return err
	}
	return t.decided(ctx, tx, t.Withdrawal, t.by, t.now, func(step decisions.Step) error {
		step.Store = func() (operation.Entry, error) {
			actor, err := json.Marshal(step.Actor)
			if err != nil {
				return operation.Entry{}, err
			}
			if err := t.alone(ctx, tx, t.now); err != nil {
				return operation.Entry{}, err
			}
			signed, err := t.by.sign(ctx, tx, t.cfg.Keys, t.pact, casework.DecisionApproved, t.now, true)
			if err != nil {
				return operation.Entry{}, err
			}
			if err := t.change(ctx, tx, `UPDATE statement_withdrawals SET state = $2, decided_by = $3, decided_at = $4, partition = $5, from_offset = $6, actor = $7, decided_signature = $8 WHERE id = $1 AND state = 'requested'`,
				t.id, WithdrawalApproved, t.by.Staff.ID, t.now, w.partition, w.end, actor, signed.signature); err != nil {
				return operation.Entry{}, err
			}
			if err = t.note(ctx, tx, lines); err != nil {
				return operation.Entry{}, err
			}
			if *t.Withdrawal, err = oneWithdrawal(ctx, tx, t.ID); err == nil {
				err = t.pact.agreed(ctx, tx, t.cfg.Keys, t.now, t.now)
			}
			return t.entry("statements.withdraw.approve"), err
		}
		return decisions.Approve(ctx, tx, step)
	})
}

// begin begins a withdrawal on which two people have agreed on pages, with the lines that do not count any more after it.
func (t *taking) begin(ctx context.Context, tx pgx.Tx, w *writer, lines []*record.StatementLine) error {
	tag, err := tx.Exec(ctx, `UPDATE statement_withdrawals SET state = $2, partition = $3, from_offset = $4 WHERE id = $1 AND state = $5`, t.id, WithdrawalApproved, w.partition, w.end, WithdrawalAgreed)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrWithdrawalUnknown
	}
	if err != nil {
		return fmt.Errorf("beginning a withdrawal: %w", err)
	}
	return t.note(ctx, tx, lines)
}

// note notes the lines that do not count any more.
func (t *taking) note(ctx context.Context, tx pgx.Tx, lines []*record.StatementLine) error {
	rows := make([][]any, len(lines))
	for i, l := range lines {
		key, err := keyOf(l)
		if err != nil {
			return err
		}
		rows[i] = []any{t.id, key.id, int64(key.content)} //nolint:gosec // the bits count
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"statement_withdrawn_lines"}, []string{"withdrawal_id", "line_id", "content"}, pgx.CopyFromRows(rows)); err != nil {
		return fmt.Errorf("noting withdrawn lines: %w", err)
	}
	return nil
}

// undoWithdrawal makes a withdrawal whose records were not committed wait again: for its approval, or, if passkeys have approved
// it, to be carried out.
func undoWithdrawal(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	for _, statement := range []string{
		`DELETE FROM statement_withdrawn_lines WHERE withdrawal_id = $1`,
		`UPDATE statement_withdrawals SET state = 'requested', decided_by = NULL, decided_at = NULL, partition = NULL, from_offset = NULL, actor = NULL, decided_signature = NULL WHERE id = $1 AND state = 'approved' AND decided_proof IS NULL`,
		`UPDATE statement_withdrawals SET state = 'agreed', partition = NULL, from_offset = NULL WHERE id = $1 AND state = 'approved'`,
	} {
		if _, err := tx.Exec(ctx, statement, id); err != nil {
			return fmt.Errorf("undoing a withdrawal that was interrupted: %w", err)
		}
	}
	return nil
}

// finishWithdrawal makes an approved withdrawal done. The account goes on from the statement before. One that two people
// have not signed is done if Kafka has it: an earlier release that did not sign has carried it out, or its row was changed
// afterwards. Otherwise it waits for its approval again: somebody has written its row, and records of the account have its id.
func (l *ledger) finishWithdrawal(ctx context.Context, tx pgx.Tx, from *writer, u *unsettled) error {
	id := u.id
	w, err := oneWithdrawal(ctx, tx, id.String())
	if err != nil {
		return err
	}
	var refused *operation.Error
	carriedOut := false
	err = w.pact.agreed(ctx, tx, l.cfg.Keys, w.pact.carriedOutAt(l.now), l.now)
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if refused != nil {
		if carriedOut, err = l.carriedOut(ctx, tx, from, u, &w); err != nil {
			return err
		}
	}
	if refused != nil && !carriedOut {
		if err := undoWithdrawal(ctx, tx, id); err != nil {
			return err
		}
		entry := w.entry("statements.withdraw.refuse")
		entry.Detail["refusal"] = refused.Code
		return operation.Record(ctx, tx, operation.Actor{Kind: operation.ActorService, Name: "statements"}, l.now, entry)
	}
	var text []byte
	err = tx.QueryRow(ctx, `UPDATE statement_withdrawals SET state = 'done' WHERE id = $1 AND state = 'approved' RETURNING actor`, id).Scan(&text)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrWithdrawalUnknown
	}
	if err != nil {
		return fmt.Errorf("ending a withdrawal: %w", err)
	}
	for _, statement := range []string{
		`UPDATE statement_imports SET state = 'withdrawn' WHERE id = $1`,
		`DELETE FROM statements WHERE import_id = $1`,
	} {
		if _, err := tx.Exec(ctx, statement, w.ImportID); err != nil {
			return fmt.Errorf("ending a withdrawal: %w", err)
		}
	}
	if err := l.goBack(ctx, tx); err != nil {
		return err
	}
	entry := w.entry("statements.withdraw")
	if carriedOut {
		entry.Detail["unsigned"] = true
	}
	return operation.Record(ctx, tx, w.approver(!carriedOut, text), l.now, entry)
}

// approver returns who has withdrawn the import, for the audit table: the person whose key has signed the approval, else the
// service. actor is the column of this name, which nobody signs: it tells the machine alone, and may be anything.
func (w *Withdrawal) approver(signed bool, actor []byte) operation.Actor {
	if !signed || w.pact.proofs[1] != "" {
		return operation.Actor{Kind: operation.ActorService, Name: "statements"}
	}
	var stored operation.Actor
	if err := json.Unmarshal(actor, &stored); err != nil {
		stored = operation.Actor{} // Kafka has the records: the withdrawal is done
	}
	return identity.Staff{ID: w.pact.Approved.Person}.Actor(stored.Origin)
}

// carriedOut reports whether Kafka has the records of a withdrawal, which whoever writes Postgres cannot make: all statements
// of its import, withdrawn, with its id. Then it notes the lines that these records take back, whatever was noted before.
func (l *ledger) carriedOut(ctx context.Context, tx pgx.Tx, from *writer, u *unsettled, w *Withdrawal) (bool, error) {
	left := slices.Clone(w.Statements)
	var lines [][]any
	reading, cancel := context.WithTimeout(ctx, transactionTimeout)
	defer cancel()
	err := l.cfg.Kafka.Read(reading, from.topic, map[int32]kafka.Span{u.partition: {From: u.from, To: from.end}}, nil, func(r *kgo.Record) (bool, error) {
		if !hasImport(r, w.ID) {
			return true, nil
		}
		name, err := l.cfg.Codec.NameOf(r.Value)
		if err != nil {
			return false, err
		}
		if name == (*record.Statement)(nil).Name() {
			var s record.Statement
			if err := l.cfg.Codec.Decode(r.Value, &s); err != nil {
				return false, err
			}
			left = slices.DeleteFunc(left, func(f Facts) bool {
				return s.Withdrawn && s.ImportID == w.ImportID && s.StatementID == f.ID && int(s.Page) == f.Page && s.Digest == f.Digest
			})
			return true, nil
		}
		var line record.StatementLine
		if err := l.cfg.Codec.Decode(r.Value, &line); err != nil || !line.Withdrawn || line.ImportID != w.ImportID {
			return err == nil, err
		}
		key, err := keyOf(&line)
		lines = append(lines, []any{u.id, key.id, int64(key.content)}) //nolint:gosec // the bits count
		return err == nil, err
	})
	if err != nil {
		return false, fmt.Errorf("reading the records of a withdrawal: %w", err)
	}
	if len(left) > 0 || len(w.Statements) == 0 {
		return false, nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM statement_withdrawn_lines WHERE withdrawal_id = $1`, u.id); err != nil {
		return false, fmt.Errorf("noting withdrawn lines: %w", err)
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"statement_withdrawn_lines"}, []string{"withdrawal_id", "line_id", "content"}, pgx.CopyFromRows(lines)); err != nil {
		return false, fmt.Errorf("noting withdrawn lines: %w", err)
	}
	return true, nil
}

// goBack makes the account's last statement one that is accepted: the present one if it is, else that of the latest
// import after which one was the last. The last covered day is that of the accepted statements.
func (l *ledger) goBack(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `SELECT mark -> 'last' FROM statement_ledgers WHERE (agency_id, live, code) = ($1, $2, $3)
		UNION ALL (SELECT i.plan -> 'mark' FROM statement_imports i WHERE (i.agency_id, i.live, i.code) = ($1, $2, $3) AND i.state = 'accepted'
			ORDER BY (SELECT min(s.number) FROM statements s WHERE s.import_id = i.id) DESC)`, l.account()...)
	if err != nil {
		return fmt.Errorf("reading the statements before: %w", err)
	}
	marks, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return fmt.Errorf("reading the statements before: %w", err)
	}
	var back ledgerMark
	for _, text := range marks {
		var last Facts
		if err := json.Unmarshal(text, &last); err != nil {
			return fmt.Errorf("reading the statements before: %w", err)
		}
		var accepted bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM statements WHERE (agency_id, live, code) = ($1, $2, $3) AND (statement_id, page, digest) = ($4, $5, $6))`,
			append(l.account(), last.ID, last.Page, last.Digest)...).Scan(&accepted); err != nil {
			return fmt.Errorf("reading the statements before: %w", err)
		}
		if accepted || last.ID == "" {
			back.Last = last
			break
		}
	}
	if err := tx.QueryRow(ctx, `SELECT coalesce(max(to_day), '') FROM statements WHERE (agency_id, live, code) = ($1, $2, $3)`, l.account()...).Scan(&back.To); err != nil {
		return fmt.Errorf("reading the last covered day: %w", err)
	}
	text, err := json.Marshal(back)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE statement_ledgers SET mark = $4 WHERE (agency_id, live, code) = ($1, $2, $3)`, append(l.account(), text)...); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// Withdrawals returns the withdrawals, the oldest first. agencyID selects an agency; all when it is empty.
func Withdrawals(ctx context.Context, pool *pgxpool.Pool, agencyID string) ([]Withdrawal, error) {
	return withdrawals(ctx, pool, `($1 = '' OR i.agency_id::text = $1) ORDER BY w.requested_at, w.id`, agencyID)
}

func oneWithdrawal(ctx context.Context, tx pgx.Tx, id string) (Withdrawal, error) {
	list, err := withdrawals(ctx, tx, "w.id = $1", id)
	if err == nil && len(list) == 0 {
		err = operation.Refuse("statement.withdrawal_unknown", "id", nil)
	}
	if err != nil {
		return Withdrawal{}, err
	}
	return list[0], nil
}

func withdrawals(ctx context.Context, from querier, where string, args ...any) ([]Withdrawal, error) {
	rows, err := from.Query(ctx, `SELECT w.id::text, w.import_id::text, i.agency_id::text, i.live, i.code, w.state, w.reason, s.name, coalesce(d.name, ''), w.requested_at, coalesce(w.decided_at, 'epoch'),
			i.plan -> 'statements', s.id::text, i.state, i.partition, i.from_offset,
			i.digest, coalesce(s.agency_id::text, ''), coalesce(d.id::text, ''), coalesce(d.agency_id::text, ''), coalesce(w.digest, ''), coalesce(w.requested_signature, ''), coalesce(w.decided_signature, ''),
			coalesce(w.requested_proof::text, ''), coalesce(w.decided_proof::text, '')
		FROM statement_withdrawals w JOIN statement_imports i ON i.id = w.import_id JOIN staff s ON s.id = w.requested_by LEFT JOIN staff d ON d.id = w.decided_by WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading withdrawals: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w Withdrawal, err error) {
		var file string
		var digest []byte
		var one, two casework.Signed
		var proofs [2]string
		if err = row.Scan(&w.ID, &w.ImportID, &w.AgencyID, &w.Live, &w.Code, &w.State, &w.Reason, &w.RequestedBy, &w.DecidedBy, &w.RequestedAt, &w.DecidedAt,
			&w.Statements, &w.Requester, &w.importState, &w.partition, &w.from, &file, &one.Group, &two.Person, &two.Group, &digest, &one.Signature, &two.Signature, &proofs[0], &proofs[1]); err != nil {
			return w, err
		}
		one.Person, one.Name, one.At, two.Name, two.At = w.Requester, w.RequestedBy, w.RequestedAt, w.DecidedBy, w.DecidedAt
		w.pact = newPact(kindWithdrawal, w.ID, w.AgencyID, digest, map[string]string{
			"import": w.ImportID, "agency": w.AgencyID, "mode": registry.Mode(w.Live), "account": w.Code, "reason": w.Reason,
			"file": file, "partition": strconv.Itoa(int(w.partition)), "offset": strconv.FormatInt(w.from, 10), // where the records are
		}, one, two, proofs)
		if w.RequestedAt = w.RequestedAt.UTC(); w.DecidedBy == "" {
			w.DecidedAt = time.Time{}
		} else {
			w.DecidedAt = w.DecidedAt.UTC()
		}
		return w, nil
	})
}
