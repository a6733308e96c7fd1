package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/sinks/delivery"
)

const (
	recoverEvery = time.Second
	// recoverAtMost bounds what one step makes due, whatever the rate.
	recoverAtMost = 5000
)

// Errors of recoveries, for errors.Is.
var (
	// ErrSuspended says that nothing is sent to the destination until it is
	// resumed, which makes everything due by itself.
	ErrSuspended = errors.New("the destination is suspended")
	// ErrNoRecovery says that none has that id.
	ErrNoRecovery = errors.New("no such recovery")
)

// RecoveryRequest says what to make due again: deliveries to the destination of
// events that occurred from Since to Until, not including, by the service's
// clock, which it has not accepted.
type RecoveryRequest struct {
	Kind          delivery.Kind
	DestinationID string
	Since, Until  time.Time
	// PerSecond bounds how many become due in a second.
	PerSecond int
}

// Recovery is a job that the schedule works through, whoever runs it: it goes on
// after a restart, from where it was.
type Recovery struct {
	ID string
	RecoveryRequest
	// Total is how many there were when it was asked for, Done how many have been
	// made due.
	Total, Done int64
	CreatedAt   time.Time
	FinishedAt  time.Time // zero while it runs
	Cancelled   bool
}

// Running says whether it has still to do.
func (r Recovery) Running() bool { return r.FinishedAt.IsZero() }

// recoverable picks the deliveries of a recovery behind its cursor.
const recoverable = `kind = $1 AND destination_id = $2 AND occurred_at >= $3 AND occurred_at < $4
	AND state IN ('waiting', 'needs_operator', 'exhausted') AND body IS NOT NULL`

// CountRecoverable is how many deliveries a request would make due.
func CountRecoverable(ctx context.Context, pool *pgxpool.Pool, req RecoveryRequest) (int64, error) {
	var n int64
	err := pool.QueryRow(ctx, `SELECT count(*) FROM deliveries WHERE `+recoverable, string(req.Kind), req.DestinationID, req.Since, req.Until).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("counting deliveries to recover: %w", err)
	}
	return n, nil
}

// StartRecovery asks for one. A destination has one at a time: started is false,
// and the running one returned, when there is one. now is the service's clock.
// ErrSuspended refuses it.
func StartRecovery(ctx context.Context, pool *pgxpool.Pool, req RecoveryRequest, now time.Time) (r Recovery, started bool, err error) {
	var suspended bool
	err = pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM delivery_destinations WHERE kind = $1 AND destination_id = $2 AND suspended_at IS NOT NULL)`,
		string(req.Kind), req.DestinationID).Scan(&suspended)
	if err != nil {
		return Recovery{}, false, fmt.Errorf("starting a recovery: %w", err)
	}
	if suspended {
		return Recovery{}, false, fmt.Errorf("starting a recovery: %w", ErrSuspended)
	}
	total, err := CountRecoverable(ctx, pool, req)
	if err != nil {
		return Recovery{}, false, err
	}
	id := uuid.Must(uuid.NewV7()).String()
	_, err = pool.Exec(ctx, `
		INSERT INTO delivery_recoveries (id, kind, destination_id, since, until, per_second, total, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, id, string(req.Kind), req.DestinationID, req.Since, req.Until, req.PerSecond, total, now)
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.ConstraintName == "delivery_recoveries_running":
		if err = pool.QueryRow(ctx, `SELECT id FROM delivery_recoveries WHERE kind = $1 AND destination_id = $2 AND finished_at IS NULL`,
			string(req.Kind), req.DestinationID).Scan(&id); err != nil {
			return Recovery{}, false, fmt.Errorf("finding the recovery that runs: %w", err)
		}
	case err != nil:
		return Recovery{}, false, fmt.Errorf("starting a recovery: %w", err)
	default:
		started = true
	}
	r, err = ReadRecovery(ctx, pool, id)
	return r, started, err
}

const recoveryColumns = `id, kind, destination_id, since, until, per_second, total, done, created_at, finished_at, cancelled`

func toRecovery(row pgx.CollectableRow) (Recovery, error) {
	var r Recovery
	var finished *time.Time
	err := row.Scan(&r.ID, &r.Kind, &r.DestinationID, &r.Since, &r.Until, &r.PerSecond, &r.Total, &r.Done, &r.CreatedAt, &finished, &r.Cancelled)
	r.Since, r.Until, r.CreatedAt = r.Since.UTC(), r.Until.UTC(), r.CreatedAt.UTC()
	if finished != nil {
		r.FinishedAt = finished.UTC()
	}
	return r, err
}

// ReadRecovery is a recovery as it stands. ErrNoRecovery when there is none.
func ReadRecovery(ctx context.Context, pool *pgxpool.Pool, id string) (Recovery, error) {
	return readRecovery(ctx, pool, `WHERE id = $1`, id)
}

// LatestRecovery is a destination's newest. ErrNoRecovery when it never had one.
func LatestRecovery(ctx context.Context, pool *pgxpool.Pool, kind delivery.Kind, destinationID string) (Recovery, error) {
	return readRecovery(ctx, pool, `WHERE kind = $1 AND destination_id = $2 ORDER BY id DESC LIMIT 1`, string(kind), destinationID)
}

func readRecovery(ctx context.Context, pool *pgxpool.Pool, which string, args ...any) (Recovery, error) {
	rows, err := pool.Query(ctx, `SELECT `+recoveryColumns+` FROM delivery_recoveries `+which, args...)
	if err != nil {
		return Recovery{}, fmt.Errorf("reading a recovery: %w", err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, toRecovery)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoRecovery
	}
	if err != nil {
		return Recovery{}, fmt.Errorf("reading a recovery: %w", err)
	}
	return r, nil
}

// CancelRecovery ends one where it stands; what it has made due stays so. now is
// the service's clock.
func CancelRecovery(ctx context.Context, pool *pgxpool.Pool, id string, now time.Time) error {
	if _, err := pool.Exec(ctx, `UPDATE delivery_recoveries SET finished_at = $2, cancelled = true WHERE id = $1 AND finished_at IS NULL`, id, now); err != nil {
		return fmt.Errorf("cancelling a recovery: %w", err)
	}
	return nil
}

// recoveries advances each running one by a second's worth.
func (s *Schedule) recoveries(ctx context.Context) error {
	rows, err := s.cfg.Pool.Query(ctx, `SELECT id FROM delivery_recoveries WHERE finished_at IS NULL ORDER BY id`)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.advance(ctx, id))
	}
	return errors.Join(errs...)
}

// advance makes the next deliveries of a recovery due.
func (s *Schedule) advance(ctx context.Context, id string) error {
	return pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error {
		var kind, dest string
		var since, until time.Time
		var perSecond int
		var cursorAt *time.Time
		var cursorID *string
		// Another instance may be at it, or may just have been.
		err := tx.QueryRow(ctx, `
			SELECT kind, destination_id, since, until, per_second, cursor_at, cursor_id FROM delivery_recoveries
			WHERE id = $1 AND finished_at IS NULL AND (advanced_at IS NULL OR advanced_at < clock_timestamp() - $2::interval * 0.9)
			FOR UPDATE SKIP LOCKED`, id, recoverEvery).Scan(&kind, &dest, &since, &until, &perSecond, &cursorAt, &cursorID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("advancing a recovery: %w", err)
		}
		if err := lockDestinations(ctx, tx, []string{kind}, []string{dest}); err != nil {
			return err
		}
		if cursorAt == nil {
			cursorAt, cursorID = &since, new(string)
		}
		batch := min(perSecond, recoverAtMost)
		rows, err := tx.Query(ctx, `
			SELECT occurred_on, occurred_at, delivery_id FROM deliveries
			WHERE `+recoverable+` AND (occurred_at, delivery_id) > ($5, $6)
			ORDER BY occurred_at, delivery_id LIMIT $7`, kind, dest, since, until, cursorAt, cursorID, batch)
		if err != nil {
			return fmt.Errorf("finding deliveries to recover: %w", err)
		}
		var on []time.Time
		var ids []string
		var d, at time.Time
		var name string
		if _, err := pgx.ForEachRow(rows, []any{&d, &at, &name}, func() error {
			on, ids = append(on, d), append(ids, name)
			return nil
		}); err != nil {
			return fmt.Errorf("finding deliveries to recover: %w", err)
		}
		n := len(ids)
		if n > 0 {
			cursorAt, cursorID = &at, &name // of the last one
		}
		for begin, end := 0, 0; begin < n; begin = end {
			end = ofOneDay(on, begin)
			if _, err := sendNow(ctx, tx, delivery.Kind(kind), dest, on[begin], ids[begin:end], Retryable, s.cfg.Now()); err != nil {
				return err
			}
		}
		var finished *time.Time
		if n < batch {
			now := s.cfg.Now()
			finished = &now
			s.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "recovery is through", slog.String("recovery", id), slog.String("kind", kind), slog.String("destination", dest))
		}
		if _, err := tx.Exec(ctx, `
			UPDATE delivery_recoveries SET done = done + $2, cursor_at = $3, cursor_id = $4, advanced_at = clock_timestamp(), finished_at = $5 WHERE id = $1`,
			id, n, cursorAt, cursorID, finished); err != nil {
			return fmt.Errorf("advancing a recovery: %w", err)
		}
		return nil
	})
}
