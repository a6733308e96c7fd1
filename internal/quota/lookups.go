package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Executor is the part of a Postgres pool that Lookups uses.
type Executor interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Lookups limits the look-ups of references by people without an account, in a UTC minute and
// exactly over all instances together: those of each client, and those of unknown references
// by everybody, so that nobody finds references by trying. It is safe for concurrent use.
type Lookups struct {
	// Postgres, with the migrations of internal/postgres.
	Postgres Executor
	// Now is the time in UTC.
	Now func() time.Time
	// PerClient is the number of look-ups of one client, Unknown that of unknown references
	// by all clients.
	PerClient, Unknown int
}

// Lookup is one look-up that Begin admitted.
type Lookup struct {
	lookups *Lookups
	minute  time.Time
}

// everybody is the row of the unknown references. No client has this name.
const everybody = "unknown"

const (
	// countLookup returns no row when the limit is reached. The minute never goes back.
	countLookup = `INSERT INTO reference_lookups AS l (who, minute, count) VALUES ($1, $2, 1)
ON CONFLICT (who) DO UPDATE SET
    minute = GREATEST(l.minute, excluded.minute),
    count  = CASE WHEN l.minute < excluded.minute THEN 1 ELSE l.count + 1 END
WHERE l.minute < excluded.minute OR l.count < $3
RETURNING minute, xmax = 0`

	uncountLookup = `UPDATE reference_lookups SET count = count - 1 WHERE who = $1 AND minute = $2 AND count > 0`

	// forgetLookups deletes more rows than a new client adds, so that the table stays small
	// without a task of its own. It never waits for a row that somebody else counts in.
	forgetLookups = `DELETE FROM reference_lookups WHERE who IN (
    SELECT who FROM reference_lookups WHERE minute < $1 AND who <> '` + everybody + `' ORDER BY minute LIMIT 20 FOR UPDATE SKIP LOCKED)`

	// keptLookups is more than the clocks of instances differ.
	keptLookups = 10 * time.Minute
)

// Begin counts a look-up of a client (web.Client) as one of an unknown reference, until Found.
// ok is false when a limit is reached; until is then the time until the next minute begins. An
// error means that Postgres did not answer in time.
func (l *Lookups) Begin(ctx context.Context, client string) (q Lookup, until time.Duration, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := l.Now()
	minute := now.Truncate(time.Minute)
	until = minute.Add(time.Minute).Sub(now)
	q.lookups = l
	_, added, ok, err := l.count(ctx, "client "+client, minute, l.PerClient)
	if err != nil || !ok {
		return Lookup{}, until, false, err
	}
	if added {
		if _, err := l.Postgres.Exec(ctx, forgetLookups, now.Add(-keptLookups)); err != nil {
			return Lookup{}, until, false, fmt.Errorf("forgetting look-ups of references: %w", err)
		}
	}
	if q.minute, _, ok, err = l.count(ctx, everybody, minute, l.Unknown); err != nil || !ok {
		return Lookup{}, until, false, err
	}
	return q, 0, true, nil
}

// count counts one look-up of the row. at is the row's minute, added that the row is new.
func (l *Lookups) count(ctx context.Context, who string, minute time.Time, most int) (at time.Time, added, ok bool, err error) {
	err = l.Postgres.QueryRow(ctx, countLookup, who, minute, most).Scan(&at, &added)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return time.Time{}, false, false, nil
	case err != nil:
		return time.Time{}, false, false, fmt.Errorf("counting look-ups of references: %w", err)
	}
	return at, added, true, nil
}

// Found says that the reference is known: the look-up counts for its client alone.
func (q Lookup) Found(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := q.lookups.Postgres.Exec(ctx, uncountLookup, everybody, q.minute); err != nil {
		return fmt.Errorf("counting look-ups of references: %w", err)
	}
	return nil
}
