package intake

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/form"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// requestLife is how long a request waits for its approval, and how long its requester may read the file
// after that.
const requestLife = 24 * time.Hour

// OriginalRequest is a person's request to read the file of an import. The file has names and numbers of
// payers, so another person must approve it.
type OriginalRequest struct {
	ID, ImportID string
	registry.StatementAccountKey
	Reason string
	// RequestedBy and ApprovedBy are names of staff; ApprovedBy is empty before the approval.
	RequestedBy, ApprovedBy string
	RequestedAt, ApprovedAt time.Time // UTC; ApprovedAt is zero before the approval

	requester string // id
	digest    string
	pact      pact
}

// Until is when the request ends: it cannot be approved any more, or the file cannot be read any more.
func (r OriginalRequest) Until() time.Time {
	if r.ApprovedBy != "" {
		return r.ApprovedAt.Add(requestLife)
	}
	return r.RequestedAt.Add(requestLife)
}

// decision returns the request as a decision by two people.
func (r OriginalRequest) decision() casework.Decision {
	d := casework.Decision{State: casework.DecisionProposed, ProposedBy: r.requester, ProposedAt: r.RequestedAt, Life: requestLife}
	if r.ApprovedBy != "" {
		d.State = casework.DecisionApproved
	}
	return d
}

// RequestOriginal makes a request of a person for the file of an import, which keys sign. The error is an
// *operation.Error with the field id or reason for bad input.
func RequestOriginal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by identity.Staff, origin, importID, reason string, now time.Time) (OriginalRequest, error) {
	var r OriginalRequest
	id, err := uuid.Parse(importID)
	if err != nil {
		return r, operation.Refuse("statement.unknown", "id", nil)
	}
	if !form.IsLine(reason, maxReason) {
		return r, operation.Refuse("statement.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var agency string
		var kept bool
		err := tx.QueryRow(ctx, `SELECT agency_id::text, EXISTS (SELECT FROM statement_originals o WHERE o.id = i.id) FROM statement_imports i WHERE id = $1 AND state <> 'pending'`, id).Scan(&agency, &kept)
		switch {
		case errors.Is(err, pgx.ErrNoRows), err == nil && !by.ActsFor(agency):
			return operation.Refuse("statement.unknown", "id", nil)
		case err != nil:
			return err
		case !kept:
			return operation.Refuse("statement.original_deleted", "id", nil)
		}
		staff, err := identity.LockStaff(ctx, tx, keys, by.ID)
		if err != nil {
			return err
		}
		return decisions.Propose(ctx, tx, decisions.Step{
			By: staff[by.ID].Person(), Actor: by.Actor(origin), At: now,
			Store: func() (operation.Entry, error) {
				request := uuid.Must(uuid.NewV7())
				_, err := tx.Exec(ctx, `INSERT INTO statement_original_requests (id, import_id, reason, requested_by, requested_at)
					VALUES ($1, $2, $3, $4, $5)`, request, id, reason, by.ID, now)
				if err == nil {
					r, err = oneRequest(ctx, tx, request.String(), "")
				}
				if err != nil {
					return operation.Entry{}, err
				}
				digest, signature, err := r.pact.sign(keys, casework.DecisionProposed, by, now)
				if err == nil {
					_, err = tx.Exec(ctx, `UPDATE statement_original_requests SET digest = $2, requested_signature = $3 WHERE id = $1`, request, digest, signature)
				}
				return r.entry("statements.original.request"), err
			},
		})
	})
	if err != nil {
		return r, fmt.Errorf("requesting the file of an import: %w", err)
	}
	return r, nil
}

// ApproveOriginal approves a request, by another person than the requester, with what keys sign. From then on the
// requester can read the file for a day. The error is an *operation.Error if that is not possible.
func ApproveOriginal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by identity.Staff, origin, requestID string, now time.Time) (OriginalRequest, error) {
	var r OriginalRequest
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		r, err = oneRequest(ctx, tx, requestID, " FOR UPDATE OF r")
		switch {
		case err != nil:
			return err
		case !by.ActsFor(r.AgencyID):
			return operation.Refuse("statement.request_unknown", "id", nil)
		}
		staff, err := identity.LockStaff(ctx, tx, keys, by.ID, r.requester)
		if err != nil {
			return err
		}
		if err := identity.ApprovesWithKey(ctx, tx, by.AgencyID, now); err != nil {
			return err
		}
		return decisions.Approve(ctx, tx, decisions.Step{
			Decision: r.decision(), Proposer: staff[r.requester].Person(), By: staff[by.ID].Person(), Actor: by.Actor(origin), At: now,
			Refusals: map[error]error{
				casework.ErrDecided:    operation.Refuse("statement.request_approved", "id", operation.Args{"name": r.ApprovedBy}),
				casework.ErrLapsed:     operation.Refuse("statement.request_over", "id", nil),
				casework.ErrSamePerson: operation.Refuse("statement.second_person", "", nil),
			},
			Store: func() (operation.Entry, error) {
				_, signature, err := r.pact.sign(keys, casework.DecisionApproved, by, now)
				if err == nil {
					err = r.pact.requested(keys, now)
				}
				if err == nil {
					_, err = tx.Exec(ctx, `UPDATE statement_original_requests SET approved_by = $2, approved_at = $3, approved_signature = $4 WHERE id = $1`, r.ID, by.ID, now, signature)
				}
				if err == nil {
					r, err = oneRequest(ctx, tx, requestID, "")
				}
				return r.entry("statements.original.approve"), err
			},
		})
	})
	if err != nil {
		return r, fmt.Errorf("approving a request for a file: %w", err)
	}
	return r, nil
}

// ReadOriginal writes the file of an approved request to w, for the person who requested it. Each
// reading is in the audit table before the first byte is written. What was written is the file only if
// the error is nil. The error is an *operation.Error if the person may not read it, and wraps ErrOriginal
// if the stored file is damaged.
func ReadOriginal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by identity.Staff, origin, requestID string, now time.Time, w io.Writer) error {
	var r OriginalRequest
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		r, err = oneRequest(ctx, tx, requestID, "")
		switch {
		case err != nil:
			return err
		case r.requester != by.ID:
			return operation.Refuse("statement.request_unknown", "id", nil)
		case r.ApprovedBy == "":
			return operation.Refuse("statement.request_waits", "id", operation.Args{"request": r.ID})
		case now.After(r.Until()):
			return operation.Refuse("statement.request_over", "id", nil)
		}
		if _, err := identity.LockInForce(ctx, tx, keys, by); err != nil {
			return err
		}
		if err := r.pact.agreed(keys, now); err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.Actor(origin), now, r.entry("statements.original.read"))
	})
	if err != nil {
		return fmt.Errorf("reading the file of an import: %w", err)
	}
	sum := sha256.New()
	if err := writeOriginal(ctx, pool, keys, uuid.MustParse(r.ImportID), io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != r.digest {
		return fmt.Errorf("%w: its SHA-256 is not that of the file that was imported", ErrOriginal)
	}
	return nil
}

// OriginalRequests returns the requests that wait or whose file can be read, the oldest first. agencyID
// selects an agency; all when it is empty.
func OriginalRequests(ctx context.Context, pool *pgxpool.Pool, agencyID string, now time.Time) ([]OriginalRequest, error) {
	return requests(ctx, pool, `($1 = '' OR i.agency_id::text = $1) AND coalesce(r.approved_at, r.requested_at) >= $2 ORDER BY r.requested_at, r.id`, agencyID, now.Add(-requestLife))
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// oneRequest reads a request by its id.
func oneRequest(ctx context.Context, tx pgx.Tx, id, lock string) (OriginalRequest, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return OriginalRequest{}, operation.Refuse("statement.request_unknown", "id", nil)
	}
	list, err := requests(ctx, tx, "r.id = $1"+lock, parsed)
	if err == nil && len(list) == 0 {
		err = operation.Refuse("statement.request_unknown", "id", nil)
	}
	if err != nil {
		return OriginalRequest{}, err
	}
	return list[0], nil
}

func requests(ctx context.Context, from querier, where string, args ...any) ([]OriginalRequest, error) {
	rows, err := from.Query(ctx, `SELECT r.id::text, r.import_id::text, i.agency_id::text, i.live, i.code, r.reason, s.name, coalesce(a.name, ''), r.requested_at, coalesce(r.approved_at, 'epoch'), s.id::text, i.digest,
			coalesce(s.agency_id::text, ''), coalesce(a.id::text, ''), coalesce(a.agency_id::text, ''), coalesce(r.digest, ''), coalesce(r.requested_signature, ''), coalesce(r.approved_signature, '')
		FROM statement_original_requests r JOIN statement_imports i ON i.id = r.import_id JOIN staff s ON s.id = r.requested_by LEFT JOIN staff a ON a.id = r.approved_by WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading requests for files: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r OriginalRequest, err error) {
		var digest []byte
		var one, two casework.Signed
		err = row.Scan(&r.ID, &r.ImportID, &r.AgencyID, &r.Live, &r.Code, &r.Reason, &r.RequestedBy, &r.ApprovedBy, &r.RequestedAt, &r.ApprovedAt, &r.requester, &r.digest,
			&one.Group, &two.Person, &two.Group, &digest, &one.Signature, &two.Signature)
		one.Person, one.Name, one.At, two.Name, two.At = r.requester, r.RequestedBy, r.RequestedAt, r.ApprovedBy, r.ApprovedAt
		r.pact = newPact(kindOriginal, r.ID, r.AgencyID, digest, map[string]string{ // by its digest: the file of a released import belongs to another import
			"agency": r.AgencyID, "mode": registry.Mode(r.Live), "account": r.Code, "reason": r.Reason, "file": r.digest,
		}, one, two)
		if r.RequestedAt = r.RequestedAt.UTC(); r.ApprovedBy == "" {
			r.ApprovedAt = time.Time{}
		} else {
			r.ApprovedAt = r.ApprovedAt.UTC()
		}
		return r, err
	})
}

// entry returns the entry of the audit table about an operation of the request.
func (r OriginalRequest) entry(action string) operation.Entry {
	return operation.Entry{Action: action, Subject: r.ImportID, AgencyID: r.AgencyID, Detail: map[string]any{
		"agency_id": r.AgencyID, "account": r.Code, "request": r.ID, "reason": r.Reason,
	}}
}
