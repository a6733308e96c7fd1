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

	// Requester is the id of who requested it.
	Requester string
	// Readable says that the pages can open the file: the sink cases has verified the request, which was approved on a page.
	Readable bool

	digest string
	pact   pact
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
	d := casework.Decision{State: casework.DecisionProposed, ProposedBy: r.Requester, ProposedAt: r.RequestedAt, Life: requestLife}
	if r.ApprovedBy != "" {
		d.State = casework.DecisionApproved
	}
	return d
}

// RequestOriginal makes a request of a person for the file of an import, which keys sign. The error is an
// *operation.Error with the field id or reason for bad input.
func RequestOriginal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, importID, reason string, now time.Time) (r OriginalRequest, err error) {
	id, err := uuid.Parse(importID)
	if err != nil {
		return r, operation.Refuse("statement.unknown", "id", nil)
	}
	if !form.IsLine(reason, maxReason) {
		return r, operation.Refuse("statement.reason_malformed", "reason", operation.Args{"most": maxReason})
	}
	err = doing("requesting the file of an import", pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var agency string
		var kept bool
		err := tx.QueryRow(ctx, `SELECT agency_id::text, EXISTS (SELECT FROM statement_originals o WHERE o.id = i.id) FROM statement_imports i WHERE id = $1 AND state <> 'pending'`, id).Scan(&agency, &kept)
		switch {
		case errors.Is(err, pgx.ErrNoRows), err == nil && !by.Staff.ActsFor(agency):
			return operation.Refuse("statement.unknown", "id", nil)
		case err != nil:
			return err
		case !kept:
			return operation.Refuse("statement.original_deleted", "id", nil)
		}
		staff, err := identity.LockStaff(ctx, tx, keys, by.Staff.ID)
		if err == nil {
			err = by.still(ctx, tx, identity.MayPropose, agency)
		}
		if err != nil {
			return err
		}
		request, err := by.newID()
		if err != nil {
			return err
		}
		return decisions.Propose(ctx, tx, decisions.Step{
			By: staff[by.Staff.ID].Person(), Actor: by.actor(), At: by.at(now),
			Store: func() (operation.Entry, error) {
				_, err := tx.Exec(ctx, `INSERT INTO statement_original_requests (id, import_id, reason, requested_by, requested_at)
					VALUES ($1, $2, $3, $4, $5)`, request, id, reason, by.Staff.ID, by.at(now))
				if err == nil {
					r, err = oneRequest(ctx, tx, request, "")
				}
				if err != nil {
					return operation.Entry{}, asOnce(err)
				}
				s, err := by.sign(ctx, tx, keys, r.pact, casework.DecisionProposed, now, false)
				if err == nil {
					_, err = tx.Exec(ctx, `UPDATE statement_original_requests SET digest = $2, requested_signature = $3, requested_proof = $4 WHERE id = $1`, request, s.digest, s.signature, s.proof)
				}
				return s.noted(r.entry("statements.original.request")), err
			},
		})
	}))
	return r, err
}

// ApproveOriginal approves a request, by another person than the requester, with what keys sign. From then on the
// requester can read the file for a day. The error is an *operation.Error if that is not possible.
func ApproveOriginal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, requestID string, now time.Time) (r OriginalRequest, err error) {
	err = doing("approving a request for a file", pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		r, err = oneRequest(ctx, tx, requestID, " FOR UPDATE OF r")
		switch {
		case err != nil:
			return err
		case !by.Staff.ActsFor(r.AgencyID):
			return operation.Refuse("statement.request_unknown", "id", nil)
		}
		staff, err := identity.LockStaff(ctx, tx, keys, by.Staff.ID, r.Requester)
		if err == nil {
			err = by.still(ctx, tx, identity.MayApprove, r.AgencyID)
		}
		if err != nil {
			return err
		}
		return decisions.Approve(ctx, tx, decisions.Step{
			Decision: r.decision(), Proposer: staff[r.Requester].Person(), By: staff[by.Staff.ID].Person(), Actor: by.actor(), At: by.at(now),
			Refusals: map[error]error{
				casework.ErrDecided:    operation.Refuse("statement.request_approved", "id", operation.Args{"name": r.ApprovedBy}),
				casework.ErrLapsed:     operation.Refuse("statement.request_over", "id", nil),
				casework.ErrSamePerson: operation.Refuse("statement.second_person", "", nil),
			},
			Store: func() (operation.Entry, error) {
				if err := r.pact.requested(ctx, tx, keys, now); err != nil {
					return operation.Entry{}, err
				}
				s, err := by.sign(ctx, tx, keys, r.pact, casework.DecisionApproved, now, true)
				if err == nil {
					_, err = tx.Exec(ctx, `UPDATE statement_original_requests SET approved_by = $2, approved_at = $3, approved_signature = $4, approved_proof = $5 WHERE id = $1`, r.ID, by.Staff.ID, by.at(now), s.signature, s.proof)
				}
				if err == nil {
					r, err = oneRequest(ctx, tx, requestID, "")
				}
				return s.noted(r.entry("statements.original.approve")), err
			},
		})
	}))
	return r, err
}

// ReadOriginal writes the file of an approved request to w, for the person who requested it. Each
// reading is in the audit table before the first byte is written. What was written is the file only if
// the error is nil. On a page it has the key that the sink cases has sealed for the request (Readings), else that of the file. The
// error is an *operation.Error if the person may not read it, and wraps ErrOriginal if the stored file is damaged.
func ReadOriginal(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, requestID string, now time.Time, w io.Writer) error {
	var r OriginalRequest
	var key []byte
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		r, err = oneRequest(ctx, tx, requestID, "")
		switch {
		case err != nil:
			return err
		case r.Requester != by.Staff.ID:
			return operation.Refuse("statement.request_unknown", "id", nil)
		case r.ApprovedBy == "":
			return operation.Refuse("statement.request_waits", "id", operation.Args{"request": r.ID})
		case now.After(r.Until()):
			return operation.Refuse("statement.request_over", "id", nil)
		}
		if _, err := identity.LockInForce(ctx, tx, keys, by.Staff); err != nil {
			return err
		}
		if err := by.still(ctx, tx, identity.MayPropose, r.AgencyID); err != nil {
			return err
		}
		if err := r.pact.agreed(ctx, tx, keys, now, now); err != nil {
			return err
		}
		if key, err = r.fileKey(ctx, tx, keys, by); err != nil {
			return err
		}
		return operation.Record(ctx, tx, by.actor(), now, r.entry("statements.original.read"))
	})
	if err != nil {
		return doing("reading the file of an import", err)
	}
	sum := sha256.New()
	if err := writeOriginal(ctx, pool, uuid.MustParse(r.ImportID), key, io.MultiWriter(w, sum)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != r.digest {
		return fmt.Errorf("%w: its SHA-256 is not that of the file that was imported", ErrOriginal)
	}
	return nil
}

// fileKey returns the key of the file: on a page that which was sealed for the request.
func (r OriginalRequest) fileKey(ctx context.Context, tx pgx.Tx, keys *secret.Keys, by By) ([]byte, error) {
	if !by.Acting.SignedIn() {
		return originalKey(ctx, tx, keys, uuid.MustParse(r.ImportID))
	}
	if !r.Readable {
		return nil, operation.Refuse("statement.file_not_ready", "id", nil)
	}
	var sealed []byte
	if err := tx.QueryRow(ctx, `SELECT reading FROM statement_original_requests WHERE id = $1`, r.ID).Scan(&sealed); err != nil {
		return nil, fmt.Errorf("%w: %w", errReading, err)
	}
	key, err := keys.Open(LabelReading, sealed, r.bound())
	if err != nil {
		return nil, unreadable(err)
	}
	return key, nil
}

// bound is what the key of a reading is bound to: the request and its file.
func (r OriginalRequest) bound() []byte { return []byte(r.ID + "/" + r.ImportID) }

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
			coalesce(s.agency_id::text, ''), coalesce(a.id::text, ''), coalesce(a.agency_id::text, ''), coalesce(r.digest, ''), coalesce(r.requested_signature, ''), coalesce(r.approved_signature, ''),
			coalesce(r.requested_proof::text, ''), coalesce(r.approved_proof::text, ''), r.reading IS NOT NULL
		FROM statement_original_requests r JOIN statement_imports i ON i.id = r.import_id JOIN staff s ON s.id = r.requested_by LEFT JOIN staff a ON a.id = r.approved_by WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading requests for files: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r OriginalRequest, err error) {
		var digest []byte
		var one, two casework.Signed
		var proofs [2]string
		err = row.Scan(&r.ID, &r.ImportID, &r.AgencyID, &r.Live, &r.Code, &r.Reason, &r.RequestedBy, &r.ApprovedBy, &r.RequestedAt, &r.ApprovedAt, &r.Requester, &r.digest,
			&one.Group, &two.Person, &two.Group, &digest, &one.Signature, &two.Signature, &proofs[0], &proofs[1], &r.Readable)
		one.Person, one.Name, one.At, two.Name, two.At = r.Requester, r.RequestedBy, r.RequestedAt, r.ApprovedBy, r.ApprovedAt
		r.pact = newPact(kindOriginal, r.ID, r.AgencyID, digest, map[string]string{ // by its digest: the file of a released import belongs to another import
			"agency": r.AgencyID, "mode": registry.Mode(r.Live), "account": r.Code, "reason": r.Reason, "file": r.digest,
		}, one, two, proofs)
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
