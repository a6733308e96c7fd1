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
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/secret"
	"quittance/internal/statements"
)

// Decision is what a person decides about a file in quarantine. It is the state of the import from then on.
type Decision string

// Decisions.
const (
	// Dismissed means that the accepted statement of the file's id was right. Nothing of the file ever counts.
	Dismissed Decision = "dismissed"
	// Released means that the file is right. Imported again, it is accepted beside the accepted statement of its id, and the
	// lines of both count: a line that both have with other content is a break, and one that only the accepted statement has
	// stays. Of an accepted file it means that its statement is the account's last one again, after another version of it.
	Released Decision = "released"
)

// actions are the decisions in the audit table.
var actions = map[Decision]string{Dismissed: "statements.dismiss", Released: "statements.release"}

// Decide ends the quarantine of a file. The file is kept. One that was released may be dismissed until it is imported again.
// origin is the machine of the person. now is the time of the service's clock. A refusal is an *operation.Error with the field id or reason.
func Decide(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by identity.Staff, origin, importID string, decision Decision, reason string, now time.Time) error {
	id, err := uuid.Parse(importID)
	if err != nil {
		return operation.Refuse("statement.unknown", "id", nil)
	}
	if !form.IsLine(reason, maxReason) {
		return operation.Refuse("statement.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var agency, code, state string
		err := tx.QueryRow(ctx, `SELECT agency_id::text, code, state FROM statement_imports WHERE id = $1 AND state <> 'pending' FOR UPDATE`, id).Scan(&agency, &code, &state)
		switch {
		case errors.Is(err, pgx.ErrNoRows), err == nil && !by.ActsFor(agency):
			return operation.Refuse("statement.unknown", "id", nil)
		case err != nil:
			return err
		}
		if _, err := identity.LockInForce(ctx, tx, keys, by); err != nil {
			return err
		}
		column := string(decision)
		if decision == Released && state == string(statements.VerdictQuarantined) {
			if err := releasable(ctx, tx, id); err != nil {
				return err
			}
		}
		switch {
		case state == string(statements.VerdictQuarantined), state == string(Released) && decision == Dismissed:
			_, err = tx.Exec(ctx, `UPDATE statement_imports SET state = $2, `+column+`_at = $3, `+column+`_by = $4, `+column+`_reason = $5 WHERE id = $1`, id, decision, now, by.Name, reason)
		case state == string(statements.VerdictAccepted) && decision == Released:
			err = restore(ctx, tx, id)
		default:
			err = operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": state})
		}
		if err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.Actor(origin), now, operation.Entry{Action: actions[decision], Subject: importID, AgencyID: agency, Detail: map[string]any{"agency_id": agency, "account": code, "reason": reason}})
	})
	if err != nil {
		return fmt.Errorf("deciding on a file in quarantine: %w", err)
	}
	return nil
}

// releasable returns why a file in quarantine cannot be released; nil if it can. The lines of a statement without ids would
// count twice beside those of the accepted statement of its id. Files that earlier releases quarantined do not say that
// they have no ids: their import says it.
func releasable(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
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

// restore makes the statement of an accepted import the account's last one again, after another version of it. Its lines are
// written already.
func restore(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	var mark, facts []byte
	if err := tx.QueryRow(ctx, `SELECT l.mark, i.plan -> 'statements' FROM statement_ledgers l JOIN statement_imports i USING (agency_id, live, code) WHERE i.id = $1 FOR UPDATE OF l`, id).Scan(&mark, &facts); err != nil {
		return err
	}
	var last ledgerMark
	var list []Facts
	if err := errors.Join(json.Unmarshal(mark, &last), json.Unmarshal(facts, &list)); err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(f Facts) bool {
		return f.ID == last.Last.ID && f.Page == last.Last.Page && f.Digest != last.Last.Digest && together(f.From, f.To, last.Last.From, last.Last.To)
	})
	if i < 0 {
		return operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": statements.VerdictAccepted})
	}
	last.Last = list[i]
	mark, err := json.Marshal(last)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE statement_ledgers l SET mark = $2 FROM statement_imports i WHERE i.id = $1 AND (l.agency_id, l.live, l.code) = (i.agency_id, i.live, i.code)`, id, mark); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO statements (agency_id, live, code, import_id, position, statement_id, page, sequence, last, from_day, to_day, balanced, opening, closing, currency, lines, net, digest)
		SELECT agency_id, live, code, import_id, position, statement_id, page, sequence, last, from_day, to_day, balanced, opening, closing, currency, lines, net, digest
		FROM statements WHERE import_id = $1 AND position = $2 LIMIT 1`, id, i+1)
	return err
}

// maxReason is the longest reason.
const maxReason = 500
