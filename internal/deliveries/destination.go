package deliveries

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
)

// resumeAfter gives the workers, which ask once a second, time to learn that a
// destination is resumed: they would defer what came sooner.
const resumeAfter = 2 * time.Second

// Reasons of a suspension.
const (
	SuspendedGone     = "gone"     // it answered 410
	SuspendedFailing  = "failing"  // nothing but failures for five days
	SuspendedOperator = "operator" // a person suspended it
)

// DestinationStatus is what the store knows of a destination.
type DestinationStatus struct {
	Kind          Kind
	DestinationID string
	// Deliveries by state.
	Waiting, Queued, NeedsOperator, Exhausted int64
	// Oldest event that is waiting, queued or needs an operator; zero: none.
	Oldest time.Time
	// FailingSince is the first failure after the last success; zero: not failing.
	FailingSince time.Time
	// HoldUntil is until when nothing is sent. In the past: one delivery at a time
	// until one succeeds. Zero: not held.
	HoldUntil time.Time
	// SuspendedAt is since when nothing is sent until an operator resumes it, and
	// SuspendedReason why; zero: not suspended.
	SuspendedAt     time.Time
	SuspendedReason string
}

// Statuses are those of all destinations that ever had an outcome or were
// suspended, by kind and id.
func (s *Store) Statuses(ctx context.Context) ([]DestinationStatus, error) {
	// In three parts, one for each partial index of the deliveries.
	return collect[DestinationStatus](ctx, s.pool, "reading the status of destinations", `
		WITH open AS (
			SELECT kind, destination_id, state, count(*) AS n, min(occurred_at) AS oldest FROM deliveries WHERE state = 'waiting' GROUP BY 1, 2, 3
			UNION ALL
			SELECT kind, destination_id, state, count(*), min(occurred_at) FROM deliveries WHERE state = 'queued' GROUP BY 1, 2, 3
			UNION ALL
			SELECT kind, destination_id, state, count(*), min(occurred_at) FROM deliveries WHERE state IN ('needs_operator', 'exhausted') GROUP BY 1, 2, 3
		), counts AS (
			SELECT kind, destination_id, sum(n) FILTER (WHERE state = 'waiting') AS waiting, sum(n) FILTER (WHERE state = 'queued') AS queued,
				sum(n) FILTER (WHERE state = 'needs_operator') AS needs_operator, sum(n) FILTER (WHERE state = 'exhausted') AS exhausted,
				min(oldest) FILTER (WHERE state <> 'exhausted') AS oldest
			FROM open GROUP BY 1, 2
		)
		SELECT kind, destination_id, coalesce(c.waiting, 0)::bigint, coalesce(c.queued, 0)::bigint, coalesce(c.needs_operator, 0)::bigint,
			coalesce(c.exhausted, 0)::bigint, coalesce(c.oldest, '0001-01-01Z'), `+statusColumns+`
		FROM delivery_destinations d LEFT JOIN counts c USING (kind, destination_id) ORDER BY 1, 2`)
}

// statusColumns are the last fields of DestinationStatus.
const statusColumns = `coalesce(d.failing_since, '0001-01-01Z'), coalesce(d.hold_until, '0001-01-01Z'), coalesce(d.suspended_at, '0001-01-01Z'), coalesce(d.suspended_reason, '')`

// lockDestination locks a destination and returns its status without counts; a
// destination without a row has only its name.
func lockDestination(ctx context.Context, tx pgx.Tx, kind Kind, id string) (DestinationStatus, error) {
	s := DestinationStatus{Kind: kind, DestinationID: id}
	err := tx.QueryRow(ctx, `SELECT `+statusColumns+` FROM delivery_destinations d WHERE kind = $1 AND destination_id = $2 FOR UPDATE`, kind, id).
		Scan(&s.FailingSince, &s.HoldUntil, &s.SuspendedAt, &s.SuspendedReason)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return s, failed("locking a destination", err)
}

// refuseSuspended is an Error when the destination is suspended.
func (s DestinationStatus) refuseSuspended() error {
	if s.SuspendedAt.IsZero() {
		return nil
	}
	return operation.Refuse(CodeSuspended, "", operation.Args{"kind": s.Kind, "destination": s.DestinationID, "at": s.SuspendedAt})
}

// Suspend ends the sending to a destination within a second, until it is resumed.
// Its deliveries are kept for 30 days. A destination that is suspended already
// keeps the time and the reason: changed is false. now is the service's clock. It
// is refused for kinds that are never suspended.
func (s *Store) Suspend(ctx context.Context, actor operation.Actor, kind Kind, id string, now time.Time) (status DestinationStatus, changed bool, err error) {
	reg, err := s.kinds.Of(kind)
	if err != nil {
		return status, false, err
	}
	if !reg.Suspends {
		return status, false, operation.Refuse(CodeNeverSuspended, "id", operation.Args{"kind": kind})
	}
	err = s.tx(ctx, "suspending a destination", func(tx pgx.Tx) error {
		if err := insertDestinations(ctx, tx, [][]any{{kind, id}}); err != nil {
			return err
		}
		if status, err = lockDestination(ctx, tx, kind, id); err != nil {
			return err
		}
		if changed = status.SuspendedAt.IsZero(); !changed {
			return nil
		}
		status.SuspendedAt, status.SuspendedReason = now, SuspendedOperator
		if _, err := tx.Exec(ctx, `UPDATE delivery_destinations SET suspended_at = $3, suspended_reason = $4 WHERE kind = $1 AND destination_id = $2`,
			kind, id, now, SuspendedOperator); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "destination.suspend", Subject: id, Detail: map[string]any{"kind": kind}})
	})
	if err != nil {
		return DestinationStatus{}, false, err
	}
	return status, changed, nil
}

// Resume lets a destination have its deliveries again: it ends a suspension and a
// hold, forgets since when it has been failing, and makes all waiting deliveries
// due. was is the status before, due how many were waiting. now is the service's
// clock. An interrupted Resume can be repeated: the suspension ends last.
func (s *Store) Resume(ctx context.Context, actor operation.Actor, kind Kind, id string, now time.Time, progress Progress) (was DestinationStatus, due int, err error) {
	const doing = "resuming a destination"
	err = s.tx(ctx, doing, func(tx pgx.Tx) (err error) {
		was, err = lockDestination(ctx, tx, kind, id)
		return err
	})
	if err != nil {
		return DestinationStatus{}, 0, err
	}
	if due, err = s.makeDue(ctx, doing, actor, kind, id, StateWaiting, now, progress, nil); err != nil {
		return DestinationStatus{}, due, err
	}
	err = s.tx(ctx, doing, func(tx pgx.Tx) error {
		if err := lockDestinations(ctx, tx, [][]any{{kind, id}}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE delivery_destinations SET suspended_at = NULL, suspended_reason = NULL, resumed_at = $4, failing_since = NULL, hold_until = NULL, next_due_at = $3
			WHERE kind = $1 AND destination_id = $2`, kind, id, now.Add(resumeAfter), now); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "destination.resume", Subject: id, Detail: map[string]any{"kind": kind, "due": due}})
	})
	return was, due, err
}
