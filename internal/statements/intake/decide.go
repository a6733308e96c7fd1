package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
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
	// stays.
	Released Decision = "released"
)

// actions are the decisions in the audit table.
var actions = map[Decision]string{Dismissed: "statements.dismiss", Released: "statements.release"}

// Decide ends the quarantine of a file. The file is kept. origin is the machine of the person. now is the time
// of the service's clock. A refusal is an *operation.Error with the field id or reason.
func Decide(ctx context.Context, pool *pgxpool.Pool, by identity.Staff, origin, importID string, decision Decision, reason string, now time.Time) error {
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
		case state != string(statements.VerdictQuarantined):
			return operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": state})
		}
		if err := inForce(ctx, tx, by); err != nil {
			return err
		}
		column := string(decision)
		if _, err := tx.Exec(ctx, `UPDATE statement_imports SET state = $2, `+column+`_at = $3, `+column+`_by = $4, `+column+`_reason = $5 WHERE id = $1`, id, decision, now, by.Name, reason); err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.Actor(origin), now, operation.Entry{Action: actions[decision], Subject: importID, Detail: map[string]any{"agency_id": agency, "account": code, "reason": reason}})
	})
	if err != nil {
		return fmt.Errorf("deciding on a file in quarantine: %w", err)
	}
	return nil
}

// maxReason is the longest reason.
const maxReason = 500
