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

// stateDismissed is the state of a quarantined import that a person has dismissed.
const stateDismissed = "dismissed"

// Dismiss ends the quarantine of a file: the accepted statement of its id was right, and nothing
// of the file ever counts. The file is kept. origin is the machine of the person. now is the time
// of the service's clock. A refusal is an *operation.Error with the field id or reason.
func Dismiss(ctx context.Context, pool *pgxpool.Pool, by identity.Staff, origin, importID, reason string, now time.Time) error {
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
		if _, err := tx.Exec(ctx, `UPDATE statement_imports SET state = $2, dismissed_at = $3, dismissed_by = $4, dismissed_reason = $5 WHERE id = $1`, id, stateDismissed, now, by.Name, reason); err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.Actor(origin), now, operation.Entry{Action: "statements.dismiss", Subject: importID, Detail: map[string]any{"agency_id": agency, "account": code, "reason": reason}})
	})
	if err != nil {
		return fmt.Errorf("dismissing an import: %w", err)
	}
	return nil
}

// maxReason is the longest reason.
const maxReason = 500
