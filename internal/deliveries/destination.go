package deliveries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// resumeAfter is the delay between a resumption and the first delivery. The workers
// ask for suspensions once a second and defer deliveries that come sooner.
const resumeAfter = 2 * time.Second

// Reasons of a suspension.
const (
	SuspendedGone     = "gone"     // it answered 410
	SuspendedFailing  = "failing"  // no success in five days
	SuspendedOperator = "operator" // a person suspended it
	SuspendedRemoved  = "removed"  // it was removed from the registry
)

// DestinationStatus is the status of a destination.
type DestinationStatus struct {
	Kind          Kind
	DestinationID string
	// Numbers of deliveries by state.
	Waiting, Queued, NeedsOperator, Exhausted int64
	// Oldest is the time of the oldest event that is waiting, queued or needs an
	// operator; zero: none.
	Oldest time.Time
	// FailingSince is the time of the first failure after the last success; zero: not
	// failing.
	FailingSince time.Time
	// HoldUntil is the end of a hold, during which nothing is sent. After the hold one
	// delivery at a time is sent until one succeeds. Zero: not held.
	HoldUntil time.Time
	// RefusedSince is the time since which the destination refuses our credentials; zero: it does
	// not. It is called every 15 minutes then.
	RefusedSince time.Time
	// SuspendedAt is the time of the suspension and SuspendedReason its reason.
	// Nothing is sent until an operator resumes the destination. Zero: not suspended.
	SuspendedAt     time.Time
	SuspendedReason string
}

// Statuses returns the status of every destination that ever had an outcome or was
// suspended, sorted by kind and id.
func (s *Store) Statuses(ctx context.Context) ([]DestinationStatus, error) {
	// The SELECTs of "open" correspond to the partial indexes of the deliveries.
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
const statusColumns = `coalesce(d.failing_since, '0001-01-01Z'), coalesce(d.hold_until, '0001-01-01Z'), coalesce(d.refused_since, '0001-01-01Z'), coalesce(d.suspended_at, '0001-01-01Z'), coalesce(d.suspended_reason, '')`

// lockDestination locks a destination's row and returns its status without numbers of
// deliveries. For a destination without a row it locks nothing, and the status has
// only kind and id.
func lockDestination(ctx context.Context, tx pgx.Tx, kind Kind, id string) (DestinationStatus, error) {
	s := DestinationStatus{Kind: kind, DestinationID: id}
	err := tx.QueryRow(ctx, `SELECT `+statusColumns+` FROM delivery_destinations d WHERE kind = $1 AND destination_id = $2 FOR UPDATE`, kind, id).
		Scan(&s.FailingSince, &s.HoldUntil, &s.RefusedSince, &s.SuspendedAt, &s.SuspendedReason)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return s, failed("locking a destination", err)
}

// refuseSuspended returns an operation.Error when the destination is suspended.
func (s DestinationStatus) refuseSuspended() error {
	switch {
	case s.SuspendedAt.IsZero():
		return nil
	case s.SuspendedReason == SuspendedRemoved:
		return operation.Refuse(CodeRemoved, "", operation.Args{"kind": s.Kind, "destination": s.DestinationID})
	}
	return operation.Refuse(CodeSuspended, "", operation.Args{"kind": s.Kind, "destination": s.DestinationID, "at": s.SuspendedAt})
}

// RemoveEndpoint ends a webhook endpoint of the registry, whose destination has a kind. It suspends the
// destination first, so that what is on its way stops, too. now is the service's clock. Refusals are
// those of registry.RemoveEndpoint; an endpoint that is unknown or removed is not suspended.
func (s *Store) RemoveEndpoint(ctx context.Context, keys *secret.Keys, actor operation.Actor, kind Kind, id string, now time.Time) (registry.EndpointEntry, error) {
	dir, err := registry.ReadDirectory(ctx, s.pool, "", now)
	if err != nil {
		return registry.EndpointEntry{}, fmt.Errorf("removing an endpoint: %w", err)
	}
	if e, ok := dir.Endpoint(id); ok && e.RemovedAt.IsZero() {
		if _, _, err := s.suspend(ctx, actor, kind, e.ID, SuspendedRemoved, now); err != nil {
			return registry.EndpointEntry{}, err
		}
	}
	return registry.RemoveEndpoint(ctx, s.pool, keys, actor, id, now)
}

// Suspend stops the sending to a destination within a second, until it is resumed.
// Its deliveries are kept for 30 days. If the destination is already suspended, its
// time and reason stay and changed is false. now is the service's clock. Kinds that
// are never suspended are refused.
func (s *Store) Suspend(ctx context.Context, actor operation.Actor, kind Kind, id string, now time.Time) (status DestinationStatus, changed bool, err error) {
	return s.suspend(ctx, actor, kind, id, SuspendedOperator, now)
}

func (s *Store) suspend(ctx context.Context, actor operation.Actor, kind Kind, id, reason string, now time.Time) (status DestinationStatus, changed bool, err error) {
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
		status.SuspendedAt, status.SuspendedReason = now, reason
		if _, err := tx.Exec(ctx, `UPDATE delivery_destinations SET suspended_at = $3, suspended_reason = $4 WHERE kind = $1 AND destination_id = $2`,
			kind, id, now, reason); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "destination.suspend", Subject: id, Detail: map[string]any{"kind": kind}})
	})
	if err != nil {
		return DestinationStatus{}, false, err
	}
	return status, changed, nil
}

// Resume restarts the sending to a destination: it ends a suspension and a hold,
// clears FailingSince, and makes all waiting deliveries due. was is the status before
// it, due the number of deliveries that were waiting. now is the service's clock. An
// interrupted Resume can be repeated, because it ends the suspension last.
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
			UPDATE delivery_destinations SET suspended_at = NULL, suspended_reason = NULL, resumed_at = $4, failing_since = NULL, hold_until = NULL, refused_since = NULL, next_due_at = $3
			WHERE kind = $1 AND destination_id = $2`, kind, id, now.Add(resumeAfter), now); err != nil {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "destination.resume", Subject: id, Detail: map[string]any{"kind": kind, "due": due}})
	})
	return was, due, err
}

// Failing is a destination that does not accept what is sent to it.
type Failing struct {
	DestinationID string
	// Since is the time of the first failure after the last success.
	Since time.Time
}

// Failing returns the destinations of a kind with a failure since their last success and a
// delivery that is tried again, sorted by id. A delivery that waits for an operator says nothing
// of its destination.
func (s *Store) Failing(ctx context.Context, kind Kind) ([]Failing, error) {
	return collect[Failing](ctx, s.pool, "reading failing destinations", `
		SELECT destination_id, failing_since FROM delivery_destinations x
		WHERE kind = $1 AND failing_since IS NOT NULL
			AND EXISTS (SELECT FROM deliveries d WHERE d.kind = x.kind AND d.destination_id = x.destination_id AND d.state = 'waiting')
		ORDER BY 1`, kind)
}
