package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/casework"
	"quittance/internal/decisions"
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/statements"
)

// ReleaseState is the state of a release.
type ReleaseState string

// The states of a release.
const (
	ReleaseRequested ReleaseState = "requested" // waits for another person
	ReleaseAgreed    ReleaseState = "agreed"    // approved on a page, of an accepted import: CarryOut makes its statement the last one
	ReleaseApproved  ReleaseState = "approved"
	ReleaseRejected  ReleaseState = "rejected"
)

// Release is the request of a person to release a file from quarantine, which takes in money. Another person approves it;
// then the file is accepted if it is imported within a day.
type Release struct {
	ID, ImportID string
	registry.StatementAccountKey
	State  ReleaseState
	Reason string
	// RequestedBy and DecidedBy are names of staff; DecidedBy is empty before the decision.
	RequestedBy, DecidedBy string
	RequestedAt, DecidedAt time.Time // UTC; DecidedAt is zero before the decision
	// Statements are those of the import.
	Statements []Facts

	// Requester is the id of who requested it.
	Requester string

	verdict     Decision
	importState string
	pact        pact
}

// Until is when the request ends unless it is approved, and after the approval when the file is in quarantine again unless it
// is imported, or when nobody makes the statement the last one any more.
func (r *Release) Until() time.Time {
	if r.State == ReleaseApproved || r.State == ReleaseAgreed {
		return r.DecidedAt.Add(requestLife)
	}
	return r.RequestedAt.Add(requestLife)
}

// decision returns the release as a decision by two people.
func (r *Release) decision() casework.Decision {
	d := casework.Decision{State: casework.DecisionProposed, ProposedBy: r.Requester, ProposedAt: r.RequestedAt, Life: requestLife}
	switch r.State {
	case ReleaseRequested:
	case ReleaseApproved, ReleaseAgreed:
		d.State = casework.DecisionApproved
	case ReleaseRejected:
		d.State = casework.DecisionRejected
	}
	return d
}

// entry returns the entry of the audit table about a step.
func (r *Release) entry(action string) operation.Entry {
	detail := map[string]any{"agency_id": r.AgencyID, "mode": registry.Mode(r.Live), "account": r.Code, "decision": r.ID, "reason": r.Reason, "requested_by": r.RequestedBy}
	if r.DecidedBy != "" {
		detail["decided_by"] = r.DecidedBy
	}
	return operation.Entry{Action: action, Subject: r.ImportID, AgencyID: r.AgencyID, Detail: detail}
}

// RequestRelease requests to release a file from quarantine, or to make an earlier version of the account's last statement
// the last one again, with what keys sign. A refusal is an *operation.Error with the field id or reason.
func RequestRelease(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, importID, reason string, now time.Time) (r Release, err error) {
	err = doing("requesting a release", pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		agency, state, err := lockImport(ctx, tx, by.Staff, importID, reason)
		if err == nil {
			err = by.still(ctx, tx, identity.MayPropose, agency)
		}
		if err == nil {
			err = mayBeReleased(ctx, tx, keys, importID, state, now)
		}
		if err != nil {
			return err
		}
		r, err = propose(ctx, tx, keys, by, importID, reason, Released, now, func(Release) error { return nil })
		return err
	}))
	return r, err
}

// mayBeReleased returns why an import cannot be released; nil if it can. One that is said to be released, or dismissed, and
// that nobody has signed is in quarantine.
func mayBeReleased(ctx context.Context, tx pgx.Tx, keys *secret.Keys, importID, state string, now time.Time) error {
	switch Decision(state) {
	case Decision(statements.VerdictAccepted):
		_, _, err := earlierVersion(ctx, tx, importID, "")
		return err
	case Decision(statements.VerdictQuarantined):
		return releasable(ctx, tx, importID)
	case Released, Dismissed:
		done, err := believed(ctx, tx, keys, importID, Decision(state), now)
		switch {
		case err != nil:
			return err
		case !done:
			return releasable(ctx, tx, importID)
		}
	case Withdrawn: // it is imported again
	}
	return operation.Refuse("statement.not_quarantined", "id", operation.Args{"state": state})
}

// ApproveRelease approves the request of another person, with what keys sign, and carries it out: the file is accepted when it
// is imported within a day, or the accepted statement is the account's last one again. On a page the latter is agreed, and
// CarryOut does it. A refusal is an *operation.Error.
func ApproveRelease(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, releaseID string, now time.Time) (Release, error) {
	return decideRelease(ctx, pool, keys, by, releaseID, now, "approving a release", func(tx pgx.Tx, r *Release, step decisions.Step) error {
		if err := by.still(ctx, tx, identity.MayApprove, r.AgencyID); err != nil {
			return err
		}
		step.Store = func() (operation.Entry, error) {
			if err := mayBeReleased(ctx, tx, keys, r.ImportID, r.importState, now); err != nil {
				return operation.Entry{}, err
			}
			if err := r.pact.requested(ctx, tx, keys, now); err != nil {
				return operation.Entry{}, err
			}
			s, err := by.sign(ctx, tx, keys, r.pact, casework.DecisionApproved, now, true)
			state, again := ReleaseApproved, r.importState == string(statements.VerdictAccepted)
			if again && by.Acting.SignedIn() {
				state = ReleaseAgreed
			}
			if err == nil {
				_, err = tx.Exec(ctx, `UPDATE statement_exits SET state = $2, decided_by = $3, decided_at = $4, decided_signature = $5, decided_proof = $6 WHERE id = $1`, r.ID, state, by.Staff.ID, by.at(now), s.signature, s.proof)
			}
			if err == nil {
				*r, err = oneExit(ctx, tx, r.ID, "")
			}
			if err == nil {
				err = r.pact.agreed(ctx, tx, keys, now, now)
			}
			switch {
			case err != nil, state == ReleaseAgreed:
			case again:
				err = restore(ctx, tx, r.ImportID)
			default:
				err = setState(ctx, tx, r.ImportID, string(Released), r.RequestedBy, r.Reason, r.DecidedAt)
			}
			return s.noted(r.entry("statements.release")), err
		}
		return decisions.Approve(ctx, tx, step)
	})
}

// RejectRelease rejects a request; whoever made it takes it back so. A refusal is an *operation.Error.
func RejectRelease(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, releaseID string, now time.Time) (Release, error) {
	return decideRelease(ctx, pool, keys, by, releaseID, now, "rejecting a release", func(tx pgx.Tx, r *Release, step decisions.Step) error {
		if err := by.mayEnd(ctx, tx, r.Requester, r.AgencyID, now); err != nil {
			return err
		}
		step.Store = func() (operation.Entry, error) {
			if r.State != ReleaseRequested {
				return operation.Entry{}, casework.ErrDecided
			}
			_, err := tx.Exec(ctx, `UPDATE statement_exits SET state = $2, decided_by = $3, decided_at = $4 WHERE id = $1`, r.ID, ReleaseRejected, by.Staff.ID, now)
			if err == nil {
				*r, err = oneExit(ctx, tx, r.ID, "")
			}
			return r.entry("statements.release.reject"), err
		}
		return decisions.Reject(ctx, tx, step)
	})
}

// decideRelease takes a step of a release that waits. The step has all but what it stores.
func decideRelease(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, by By, releaseID string, now time.Time, what string, take func(pgx.Tx, *Release, decisions.Step) error) (r Release, err error) {
	err = doing(what, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) (err error) {
		if r, err = lockRelease(ctx, tx, releaseID); err != nil {
			return err
		}
		if !by.Staff.ActsFor(r.AgencyID) {
			return operation.Refuse("statement.release_unknown", "id", nil)
		}
		staff, err := identity.LockStaff(ctx, tx, keys, by.Staff.ID, r.Requester)
		if err != nil {
			return err
		}
		return take(tx, &r, decisions.Step{
			Decision: r.decision(), Proposer: staff[r.Requester].Person(), By: staff[by.Staff.ID].Person(), Actor: by.actor(), At: by.at(now),
			Refusals: map[error]error{
				casework.ErrDecided:    operation.Refuse("statement.release_decided", "id", operation.Args{"state": string(r.State), "name": r.DecidedBy}),
				casework.ErrLapsed:     operation.Refuse("statement.release_over", "id", nil),
				casework.ErrSamePerson: operation.Refuse("statement.release_second_person", "", nil),
			},
		})
	}))
	return r, err
}

// lockRelease reads a release and locks it. The import is locked first, as by whoever proposes.
func lockRelease(ctx context.Context, tx pgx.Tx, releaseID string) (Release, error) {
	id, err := uuid.Parse(releaseID)
	if err != nil {
		return Release{}, operation.Refuse("statement.release_unknown", "id", nil)
	}
	if _, err := tx.Exec(ctx, `SELECT lock_statement_import(import_id) FROM statement_exits WHERE id = $1`, id); err != nil {
		return Release{}, fmt.Errorf("locking an import: %w", err)
	}
	return oneExit(ctx, tx, id.String(), " AND e.verdict = 'released' FOR UPDATE OF e")
}

// Releases returns the releases, the oldest first. Those of files that were accepted afterwards are in the audit table alone.
// agencyID selects an agency; all when it is empty.
func Releases(ctx context.Context, pool *pgxpool.Pool, agencyID string) ([]Release, error) {
	return exits(ctx, pool, `($1 = '' OR i.agency_id::text = $1) AND e.verdict = 'released' ORDER BY e.requested_at, e.id`, agencyID)
}

func oneExit(ctx context.Context, tx pgx.Tx, id, lock string) (Release, error) {
	list, err := exits(ctx, tx, "e.id = $1"+lock, id)
	if err == nil && len(list) == 0 {
		err = operation.Refuse("statement.release_unknown", "id", nil)
	}
	if err != nil {
		return Release{}, err
	}
	return list[0], nil
}

// exits reads decisions about files in quarantine: releases, and dismissals, whose proposal is all there is of them.
func exits(ctx context.Context, from querier, where string, args ...any) ([]Release, error) {
	rows, err := from.Query(ctx, `SELECT e.id::text, e.import_id::text, i.agency_id::text, i.live, i.code, e.verdict, e.state, e.reason, s.name, coalesce(d.name, ''), e.requested_at, coalesce(e.decided_at, 'epoch'),
			i.plan -> 'statements', s.id::text, i.state, i.digest,
			coalesce(s.agency_id::text, ''), coalesce(d.id::text, ''), coalesce(d.agency_id::text, ''), coalesce(e.digest, ''), coalesce(e.requested_signature, ''), coalesce(e.decided_signature, ''), coalesce(e.requested_proof::text, ''), coalesce(e.decided_proof::text, '')
		FROM statement_exits e JOIN statement_imports i ON i.id = e.import_id JOIN staff s ON s.id = e.requested_by LEFT JOIN staff d ON d.id = e.decided_by WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("reading decisions about files: %w", err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Release, err error) {
		var verdict Decision
		var file string
		var digest []byte
		var one, two casework.Signed
		var proofs [2]string
		if err = row.Scan(&r.ID, &r.ImportID, &r.AgencyID, &r.Live, &r.Code, &verdict, &r.State, &r.Reason, &r.RequestedBy, &r.DecidedBy, &r.RequestedAt, &r.DecidedAt,
			&r.Statements, &r.Requester, &r.importState, &file, &one.Group, &two.Person, &two.Group, &digest, &one.Signature, &two.Signature, &proofs[0], &proofs[1]); err != nil {
			return r, err
		}
		one.Person, one.Name, one.At, two.Name, two.At = r.Requester, r.RequestedBy, r.RequestedAt, r.DecidedBy, r.DecidedAt
		r.verdict = verdict
		kind := kindRelease
		if verdict == Dismissed {
			kind = kindDismissal
		}
		r.pact = newPact(kind, r.ID, r.AgencyID, digest, map[string]string{
			"import": r.ImportID, "agency": r.AgencyID, "mode": registry.Mode(r.Live), "account": r.Code, "reason": r.Reason, "file": file,
		}, one, two, proofs)
		if r.RequestedAt = r.RequestedAt.UTC(); r.DecidedBy == "" {
			r.DecidedAt = time.Time{}
		} else {
			r.DecidedAt = r.DecidedAt.UTC()
		}
		return r, nil
	})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("reading decisions about files: %w", err)
	}
	return list, nil
}
