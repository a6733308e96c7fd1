package deliveries

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"quittance/internal/operation"
)

// RecoverEvery is the interval between two calls of AdvanceRecoveries.
const RecoverEvery = time.Second

// recoverAtMost is the largest number of deliveries that one step makes due.
const recoverAtMost = 5000

// RecoveryRequest selects the deliveries to make due again: the deliveries of events
// from Since (inclusive) to Until (exclusive), by the service's clock, that the
// destination has not accepted.
type RecoveryRequest struct {
	Kind          Kind
	DestinationID string
	Since, Until  time.Time
	// PerSecond is the largest number of deliveries that become due in a second.
	PerSecond int
}

// Recovery is a job that any running schedule advances. It survives restarts.
type Recovery struct {
	ID string
	RecoveryRequest
	// Total is the number of deliveries at the start. Done is the number that were
	// made due.
	Total, Done int64
	CreatedAt   time.Time
	FinishedAt  time.Time // zero while it runs
	Cancelled   bool
}

// Running reports whether the recovery has not finished.
func (r Recovery) Running() bool { return r.FinishedAt.IsZero() }

// recoverable selects the deliveries of a recovery.
const recoverable = `kind = $1 AND destination_id = $2 AND occurred_at >= $3 AND occurred_at < $4
	AND state IN ('waiting', 'needs_operator', 'exhausted') AND body IS NOT NULL`

// CountRecoverable returns the number of deliveries that a request would make due.
func (s *Store) CountRecoverable(ctx context.Context, req RecoveryRequest) (n int64, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM deliveries WHERE `+recoverable, req.Kind, req.DestinationID, req.Since, req.Until).Scan(&n)
	return n, failed("counting deliveries to recover", err)
}

// StartRecovery starts a recovery. A destination has one at a time: when one is
// already running, started is false and r is the running one. now is the service's
// clock. A suspended destination is refused.
func (s *Store) StartRecovery(ctx context.Context, actor operation.Actor, req RecoveryRequest, now time.Time) (r Recovery, started bool, err error) {
	total, err := s.CountRecoverable(ctx, req)
	if err != nil {
		return Recovery{}, false, err
	}
	id := uuid.Must(uuid.NewV7()).String()
	err = s.tx(ctx, "starting a recovery", func(tx pgx.Tx) error {
		at, err := lockDestination(ctx, tx, req.Kind, req.DestinationID)
		if err == nil {
			err = at.refuseSuspended()
		}
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO delivery_recoveries (id, kind, destination_id, since, until, per_second, total, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (kind, destination_id) WHERE finished_at IS NULL DO NOTHING`,
			id, req.Kind, req.DestinationID, req.Since, req.Until, req.PerSecond, total, now)
		if started = tag.RowsAffected() > 0; err != nil || !started {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "recovery.start", Subject: id, Detail: map[string]any{
			"kind": req.Kind, "destination": req.DestinationID, "since": req.Since, "until": req.Until, "per_second": req.PerSecond, "total": total,
		}})
	})
	if err != nil {
		return Recovery{}, false, err
	}
	if started {
		r, err = s.ReadRecovery(ctx, id)
	} else {
		r, err = s.readRecovery(ctx, `WHERE kind = $1 AND destination_id = $2 AND finished_at IS NULL`, req.Kind, req.DestinationID)
	}
	return r, started, err
}

// ReadRecovery returns a recovery. An unknown id is refused.
func (s *Store) ReadRecovery(ctx context.Context, id string) (Recovery, error) {
	return s.readRecovery(ctx, `WHERE id = $1`, id)
}

// LatestRecovery returns a destination's newest recovery. A destination without one is
// refused.
func (s *Store) LatestRecovery(ctx context.Context, kind Kind, destinationID string) (Recovery, error) {
	return s.readRecovery(ctx, `WHERE kind = $1 AND destination_id = $2 ORDER BY id DESC LIMIT 1`, kind, destinationID)
}

func (s *Store) readRecovery(ctx context.Context, which string, args ...any) (Recovery, error) {
	const doing = "reading a recovery"
	found, err := collect[Recovery](ctx, s.pool, doing, `
		SELECT id, kind, destination_id, since, until, per_second, total, done, created_at, coalesce(finished_at, '0001-01-01Z'), cancelled
		FROM delivery_recoveries `+which, args...)
	switch {
	case err != nil:
		return Recovery{}, err
	case len(found) == 0:
		return Recovery{}, failed(doing, operation.Refuse(CodeNoRecovery, "", nil))
	}
	return found[0], nil
}

// CancelRecovery ends a recovery. Deliveries that it has made due stay due. now is the
// service's clock.
func (s *Store) CancelRecovery(ctx context.Context, actor operation.Actor, id string, now time.Time) error {
	return s.tx(ctx, "cancelling a recovery", func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE delivery_recoveries SET finished_at = $2, cancelled = true WHERE id = $1 AND finished_at IS NULL`, id, now)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "recovery.cancel", Subject: id})
	})
}

// AdvanceRecoveries makes the next deliveries of each running recovery due, as many as
// one interval of RecoverEvery allows. It returns the recoveries that have finished.
// now is the service's clock.
func (s *Store) AdvanceRecoveries(ctx context.Context, now time.Time) (finished []Recovery, err error) {
	rows, _ := s.pool.Query(ctx, `SELECT id FROM delivery_recoveries WHERE finished_at IS NULL ORDER BY id`) // the rows carry its error
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, id := range ids {
		r, err := s.advance(ctx, id, now)
		if err != nil {
			errs = append(errs, err)
		} else if !r.Running() {
			finished = append(finished, r)
		}
	}
	return finished, errors.Join(errs...)
}

// advance makes the next deliveries of a recovery due. The returned FinishedAt is set
// when the recovery has finished.
func (s *Store) advance(ctx context.Context, id string, now time.Time) (r Recovery, err error) {
	err = s.tx(ctx, "advancing a recovery", func(tx pgx.Tx) error {
		r = Recovery{ID: id}
		var cursorAt time.Time
		var cursorID string
		// No rows: another instance is advancing the recovery, or has just advanced it.
		err := tx.QueryRow(ctx, `
			SELECT kind, destination_id, since, until, per_second, coalesce(cursor_at, since), coalesce(cursor_id, '') FROM delivery_recoveries
			WHERE id = $1 AND finished_at IS NULL AND (advanced_at IS NULL OR advanced_at < clock_timestamp() - $2::interval * 0.9)
			FOR UPDATE SKIP LOCKED`, id, RecoverEvery).Scan(&r.Kind, &r.DestinationID, &r.Since, &r.Until, &r.PerSecond, &cursorAt, &cursorID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = lockDestinations(ctx, tx, [][]any{{r.Kind, r.DestinationID}})
		}
		if err != nil {
			return err
		}
		batch := min(r.PerSecond, recoverAtMost)
		list, err := collect[keyed](ctx, tx, "choosing deliveries", `
			SELECT occurred_on, delivery_id, occurred_at FROM deliveries
			WHERE `+recoverable+` AND (occurred_at, delivery_id) > ($5, $6)
			ORDER BY occurred_at, delivery_id LIMIT $7`, r.Kind, r.DestinationID, r.Since, r.Until, cursorAt, cursorID, batch)
		if err != nil {
			return err
		}
		n := len(list)
		if n > 0 {
			cursorAt, cursorID = list[n-1].At, list[n-1].ID
		}
		for len(list) > 0 {
			part := list[:ofOneDay(list)]
			if _, err := sendNow(ctx, tx, r.Kind, r.DestinationID, part, Retryable, now); err != nil {
				return err
			}
			list = list[len(part):]
		}
		if n < batch {
			r.FinishedAt = now
		}
		_, err = tx.Exec(ctx, `
			UPDATE delivery_recoveries SET done = done + $2, cursor_at = $3, cursor_id = $4, advanced_at = clock_timestamp(), finished_at = $5 WHERE id = $1`,
			id, n, cursorAt, cursorID, zeronull.Timestamptz(r.FinishedAt))
		return err
	})
	return r, err
}
