package intake

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/internal/statements"
)

// Decision is what people decide about a file in quarantine. It is the state of the import from then on. It counts with
// their signatures only: without them the file is in quarantine, whatever its row says.
type Decision string

// Decisions.
const (
	// Dismissed means that the accepted statement of the file's id was right. Nothing of the file counts.
	Dismissed Decision = "dismissed"
	// Released means that the file is right. Imported again within a day, it is accepted beside the accepted statement of its
	// id, and the lines of both count: a line that both have with other content is a break, and one that only the accepted
	// statement has stays. Of an accepted file it means that its statement is the account's last one again, after another
	// version of it.
	Released Decision = "released"
)

// Dismiss ends the quarantine of a file, by one person, with what keys sign: on a page, or in a group that approves with
// passkeys, by a passkey. The file is kept. One that was released may be dismissed until it is imported again. now is the time
// of the service's clock, in UTC. A refusal is an *operation.Error with the field id or reason, or one of
// identity.Acting.Prove. So it is of all that people decide here.
func Dismiss(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, importID, reason string, now time.Time) error {
	return doing("dismissing a file", pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		agency, state, err := lockImport(ctx, tx, by.Staff, importID, reason)
		if err == nil {
			err = by.still(ctx, tx, identity.MayApprove, agency)
		}
		if err != nil {
			return err
		}
		if state == string(Dismissed) { // one that nobody has signed may be dismissed by a person
			if believed, err := believed(ctx, tx, keys, importID, Dismissed, now); err != nil || believed {
				return errors.Join(err, operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": state}))
			}
		} else if state != string(statements.VerdictQuarantined) && state != string(Released) {
			return operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": state})
		}
		_, err = propose(ctx, tx, keys, by, importID, reason, Dismissed, now, func(r Release) error {
			return setState(ctx, tx, r.ImportID, string(Dismissed), by.Staff.Name, reason, r.RequestedAt)
		})
		return err
	}))
}

// Reopen takes the dismissal of a file back, by one person: the file is in quarantine again, where nothing of it counts.
// It is possible while the file is kept. A refusal is an *operation.Error with the field id or reason.
func Reopen(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, importID, reason string, now time.Time) error {
	return doing("taking a dismissal back", pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		agency, state, err := lockImport(ctx, tx, by.Staff, importID, reason)
		if err == nil {
			err = by.still(ctx, tx, identity.MayDecide, agency)
		}
		if err != nil {
			return err
		}
		if state != string(Dismissed) {
			return operation.Refuse("statement.not_dismissed", "id", operation.Args{"state": state})
		}
		var kept, twice bool
		var code string
		if err := tx.QueryRow(ctx, `SELECT i.code, EXISTS (SELECT FROM statement_originals o WHERE o.id = i.id), EXISTS (SELECT FROM statement_imports a
				WHERE (a.agency_id, a.live, a.code, a.digest) = (i.agency_id, i.live, i.code, i.digest) AND a.state NOT IN ('pending', 'dismissed', 'withdrawn'))
			FROM statement_imports i WHERE i.id = $1`, importID).Scan(&code, &kept, &twice); err != nil {
			return err
		}
		switch {
		case !kept:
			return operation.Refuse("statement.original_deleted", "id", nil)
		case twice: // another process has accepted it meanwhile
			return operation.Refuse("statement.not_dismissed", "id", operation.Args{"state": statements.VerdictAccepted})
		}
		if _, err := identity.LockInForce(ctx, tx, keys, by.Staff); err != nil {
			return err
		}
		if err := quarantineAgain(ctx, tx, importID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE statement_exits SET state = 'rejected', decided_by = $2, decided_at = $3 WHERE import_id = $1 AND verdict = 'dismissed' AND state = 'approved'`, importID, by.Staff.ID, now); err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.actor(), now, operation.Entry{Action: "statements.reopen", Subject: importID, AgencyID: agency, Detail: map[string]any{"agency_id": agency, "account": code, "reason": reason}})
	}))
}

// lockImport locks an import for a decision of a person with a reason, and returns its agency and its state.
func lockImport(ctx context.Context, tx pgx.Tx, by identity.Staff, importID, reason string) (agency, state string, err error) {
	id, err := uuid.Parse(importID)
	if err != nil {
		return "", "", operation.Refuse("statement.unknown", "id", nil)
	}
	if !form.IsLine(reason, maxReason) {
		return "", "", operation.Refuse("statement.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	if err := lockImportRow(ctx, tx, id); err != nil {
		return "", "", err
	}
	err = tx.QueryRow(ctx, `SELECT agency_id::text, state FROM statement_imports WHERE id = $1 AND state <> 'pending'`, id).Scan(&agency, &state)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !by.ActsFor(agency) {
		return "", "", operation.Refuse("statement.unknown", "id", nil)
	}
	return agency, state, err
}

// lockImportRow locks the row of an import, if there is one, by a function of the owner: the pages may not write imports.
func lockImportRow(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	if _, err := tx.Exec(ctx, `SELECT lock_statement_import($1)`, id); err != nil {
		return fmt.Errorf("locking an import: %w", err)
	}
	return nil
}

// setState notes in the row of a file in quarantine what a person has decided, by a function of the owner.
func setState(ctx context.Context, tx pgx.Tx, importID, state, who, why string, at time.Time) error {
	if _, err := tx.Exec(ctx, `SELECT decide_statement_import($1, $2, $3, $4, $5)`, importID, state, who, why, at); err != nil {
		return fmt.Errorf("noting a decision about a file: %w", err)
	}
	return nil
}

// quarantineAgain puts a file back into quarantine.
func quarantineAgain(ctx context.Context, tx pgx.Tx, importID string) error {
	return setState(ctx, tx, importID, string(statements.VerdictQuarantined), "", "", time.Time{})
}

// propose stores a decision about a file with the signature of whoever proposes it, and does what follows from it at once.
func propose(ctx context.Context, tx pgx.Tx, keys *secret.Keys, by By, importID, reason string, verdict Decision, now time.Time, then func(Release) error) (r Release, err error) {
	staff, err := identity.LockStaff(ctx, tx, keys, by.Staff.ID)
	if err != nil {
		return r, err
	}
	state, action := ReleaseRequested, "statements.release.request"
	if verdict == Dismissed {
		state, action = ReleaseApproved, "statements.dismiss"
	}
	id, err := by.newID()
	if err != nil {
		return r, err
	}
	err = decisions.Propose(ctx, tx, decisions.Step{
		By: staff[by.Staff.ID].Person(), Actor: by.actor(), At: by.at(now),
		Store: func() (operation.Entry, error) {
			if _, err := tx.Exec(ctx, `INSERT INTO statement_exits (id, import_id, verdict, state, reason, requested_by, requested_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				id, importID, verdict, state, reason, by.Staff.ID, by.at(now)); err != nil {
				return operation.Entry{}, asOnce(err)
			}
			if r, err = oneExit(ctx, tx, id, ""); err != nil {
				return operation.Entry{}, err
			}
			s, err := by.sign(ctx, tx, keys, r.pact, casework.DecisionProposed, now, verdict == Dismissed)
			if err == nil {
				_, err = tx.Exec(ctx, `UPDATE statement_exits SET digest = $2, requested_signature = $3, requested_proof = $4 WHERE id = $1`, id, s.digest, s.signature, s.proof)
			}
			if err == nil {
				err = then(r)
			}
			return s.noted(r.entry(action)), err
		},
	})
	return r, err
}

const uniqueViolation = "23505"

// asOnce returns the refusal of a request whose id another one has: a page has sent it before, or somebody else did.
func asOnce(err error) error {
	var failed *pgconn.PgError
	if errors.As(err, &failed) && failed.Code == uniqueViolation {
		return operation.Refuse("record.changed", "", nil)
	}
	return err
}

// believed reports whether the people whom a decision about a file needs have signed it: two a release, of which one
// approved within the last day, and one a dismissal.
func believed(ctx context.Context, tx pgx.Tx, keys *secret.Keys, importID string, verdict Decision, now time.Time) (bool, error) {
	list, err := exits(ctx, tx, `e.import_id = $1 AND e.verdict = $2 AND e.state = 'approved'`, importID, verdict)
	if err != nil {
		return false, err
	}
	for _, r := range list {
		check := r.pact.agreed
		if verdict == Dismissed {
			check = func(ctx context.Context, tx pgx.Tx, keys *secret.Keys, _, now time.Time) error {
				return r.pact.dismissed(ctx, tx, keys, now)
			}
		}
		if held, err := holds(check(ctx, tx, keys, now, now)); err != nil || held {
			return held, err
		}
	}
	return false, nil
}

// lapsed reports whether one of the decisions about a file is a release that two people have signed and that is over.
func lapsed(ctx context.Context, tx pgx.Tx, keys *secret.Keys, decided []Release, now time.Time) (bool, error) {
	for _, r := range decided {
		if r.verdict != Released || r.State != ReleaseApproved || !now.After(r.Until()) {
			continue
		}
		if held, err := holds(r.pact.agreed(ctx, tx, keys, r.DecidedAt, now)); err != nil || held {
			return held, err
		}
	}
	return false, nil
}

// releasable returns why a file in quarantine cannot be released; nil if it can. The lines of a statement without ids would
// count twice beside those of the accepted statement of its id. Files that earlier releases quarantined do not say that
// they have no ids: their import says it.
func releasable(ctx context.Context, tx pgx.Tx, id string) error {
	var name string
	err := tx.QueryRow(ctx, `SELECT s.statement_id FROM statement_imports i, jsonb_array_elements(i.plan -> 'statements') f, statements s
		WHERE i.id = $1 AND f ->> 'twice' = 'true' AND (s.agency_id, s.live, s.code) = (i.agency_id, i.live, i.code) AND s.statement_id = f ->> 'id' AND s.page = (f ->> 'page')::int
		AND s.digest <> f ->> 'digest' AND (s.from_day = '' OR f ->> 'from' = '' OR s.from_day <= f ->> 'to' AND f ->> 'from' <= s.to_day) LIMIT 1`, id).Scan(&name)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return operation.Refuse("statement.positional", "id", operation.Args{"statement": name})
}

// earlierVersion returns the statement of an accepted import that is another version of the account's last one, and its
// number in the import. lock is that of the ledger; empty for none. A refusal says that there is none.
func earlierVersion(ctx context.Context, tx pgx.Tx, id, lock string) (last ledgerMark, number int, err error) {
	var mark, facts []byte
	if err := tx.QueryRow(ctx, `SELECT l.mark, i.plan -> 'statements' FROM statement_ledgers l JOIN statement_imports i USING (agency_id, live, code) WHERE i.id = $1 `+lock, id).Scan(&mark, &facts); err != nil {
		return last, 0, err
	}
	var list []Facts
	if err := errors.Join(json.Unmarshal(mark, &last), json.Unmarshal(facts, &list)); err != nil {
		return last, 0, err
	}
	i := slices.IndexFunc(list, func(f Facts) bool {
		return f.ID == last.Last.ID && f.Page == last.Last.Page && f.Digest != last.Last.Digest && together(f.From, f.To, last.Last.From, last.Last.To)
	})
	if i < 0 {
		return last, 0, operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": statements.VerdictAccepted})
	}
	last.Last = list[i]
	return last, i + 1, nil
}

// restore makes the statement of an accepted import the account's last one again, after another version of it. Its lines are
// written already.
func restore(ctx context.Context, tx pgx.Tx, id string) error {
	last, number, err := earlierVersion(ctx, tx, id, "FOR UPDATE OF l")
	if err != nil {
		return err
	}
	mark, err := json.Marshal(last)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE statement_ledgers l SET mark = $2 FROM statement_imports i WHERE i.id = $1 AND (l.agency_id, l.live, l.code) = (i.agency_id, i.live, i.code)`, id, mark); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO statements (agency_id, live, code, import_id, position, statement_id, page, sequence, last, from_day, to_day, balanced, opening, closing, currency, lines, net, digest)
		SELECT agency_id, live, code, import_id, position, statement_id, page, sequence, last, from_day, to_day, balanced, opening, closing, currency, lines, net, digest
		FROM statements WHERE import_id = $1 AND position = $2 LIMIT 1`, id, number)
	return err
}

// maxReason is the longest reason.
const maxReason = 500
