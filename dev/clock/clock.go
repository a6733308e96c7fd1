// Package clock is the developer's clock: the machine's time, moved forward by an
// offset that all processes of an installation share.
//
// The offset is a row in Postgres (table developer_clock), beside the moves that made it
// (developer_clock_moves). It survives restarts, only grows, and reaches every follower
// within half a second. It can jump by hours, so a component that waits for a moment looks at the clock at least once
// a second instead of sleeping until then.
package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/clock"
)

// interval is the time between a follower's readings of the offset.
const interval = 250 * time.Millisecond

// patience bounds one reading, so that a follower notices soon when Postgres is
// available again.
const patience = 2 * time.Second

// MaxOffset is the largest offset.
const MaxOffset = 100 * 365 * 24 * time.Hour

// ErrAdvance is the error of an advance that is negative or exceeds MaxOffset.
var ErrAdvance = errors.New("the clock only goes forward, and at most a hundred years")

// Clock tells the time of an installation. Follow makes one. It is safe for
// concurrent use.
type Clock struct {
	offset atomic.Int64 // nanoseconds; it only grows
	pool   *pgxpool.Pool
	log    *slog.Logger
}

// Follow returns a clock with the present offset, which Run keeps up to date. It fails when
// the offset cannot be read, because all processes of an installation must have the same
// time.
func Follow(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (*Clock, error) {
	c := &Clock{pool: pool, log: log}
	if err := c.read(ctx); err != nil {
		return nil, fmt.Errorf("reading the developer clock: %w", err)
	}
	return c, nil
}

// Now returns the time in UTC, without a monotonic reading.
func (c *Clock) Now() time.Time {
	return clock.Now().Add(c.Offset())
}

// Offset returns how far the clock is ahead of the machine's.
func (c *Clock) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// move is a change of the offset at a time of the machine's clock.
type move struct {
	At            time.Time
	Before, After time.Duration
}

// Machine returns the machine's time at a time of the clock, which Kafka's records have. A
// time that the clock has jumped over is the moment of the jump.
func (c *Clock) Machine(ctx context.Context, at time.Time) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, _ := c.pool.Query(ctx, `SELECT moved_at, before_ms, after_ms FROM developer_clock_moves ORDER BY id`)
	moves, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (m move, err error) {
		var before, after int64
		err = r.Scan(&m.At, &before, &after)
		m.Before, m.After = time.Duration(before)*time.Millisecond, time.Duration(after)*time.Millisecond
		return m, err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the moves of the developer clock: %w", err)
	}
	return machine(at, c.Offset(), moves), nil
}

// machine returns the machine's time at a time of a clock with moves, oldest first. offset
// is that of a clock that was never moved since the moves are recorded.
func machine(at time.Time, offset time.Duration, moves []move) time.Time {
	for _, m := range moves {
		if before := at.Add(-m.Before); before.Before(m.At) {
			return before
		}
		if at.Add(-m.After).Before(m.At) {
			return m.At.UTC()
		}
		offset = m.After
	}
	return at.Add(-offset)
}

// Run follows the offset until ctx ends, then returns nil. While Postgres is
// unavailable the offset stays as it is.
func (c *Clock) Run(ctx context.Context) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := c.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			c.log.LogAttrs(ctx, slog.LevelWarn, "developer clock cannot be read, keeping its offset", slog.Any("error", err))
		}
		failing = err != nil
	}
}

func (c *Clock) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var ms int64
	err := c.pool.QueryRow(ctx, `SELECT offset_ms FROM developer_clock`).Scan(&ms)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	for offset := (time.Duration(ms) * time.Millisecond).Nanoseconds(); ; {
		known := c.offset.Load()
		if offset <= known || c.offset.CompareAndSwap(known, offset) {
			return nil
		}
	}
}

// Reached waits until every follower that can read Postgres has read the offset after the call, or ctx ends.
func Reached(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(interval + 100*time.Millisecond):
	}
}

// Advance moves the clock of every follower forward by d, rounded down to a
// millisecond, and returns the whole offset. Errors are ErrAdvance and those of
// Postgres.
func Advance(ctx context.Context, pool *pgxpool.Pool, d time.Duration) (time.Duration, error) {
	if d < 0 || d > MaxOffset {
		return 0, fmt.Errorf("advancing the clock by %s: %w", d, ErrAdvance)
	}
	var ms int64
	err := pool.QueryRow(ctx, `
		WITH moved AS (
			INSERT INTO developer_clock AS c (offset_ms) VALUES ($1)
			ON CONFLICT (singleton) DO UPDATE SET offset_ms = c.offset_ms + excluded.offset_ms
			WHERE c.offset_ms + excluded.offset_ms <= $2
			RETURNING offset_ms
		), noted AS (
			INSERT INTO developer_clock_moves (moved_at, before_ms, after_ms) SELECT clock_timestamp(), offset_ms - $1, offset_ms FROM moved
		)
		SELECT offset_ms FROM moved`, d.Milliseconds(), MaxOffset.Milliseconds()).Scan(&ms)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("advancing the clock by %s: %w", d, ErrAdvance)
	}
	if err != nil {
		return 0, fmt.Errorf("advancing the clock: %w", err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}
