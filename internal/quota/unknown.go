package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Unknown counts the unknown references that each key looked up in the present UTC hour,
// over all instances together, so that nobody finds references by trying. It is safe for
// concurrent use.
type Unknown struct {
	// Postgres, with the migrations of internal/postgres.
	Postgres Querier
	// Now is the time in UTC.
	Now func() time.Time
	// Most is the number of unknown references that a key may look up in an hour.
	Most int
}

const countedUnknown = `SELECT count FROM unknown_references WHERE key_id = $1 AND hour >= $2`

// Exhausted reports whether the key has looked up Most unknown references in this hour, and
// the time until the next hour begins. Look-ups that run at the same time may together
// exceed Most by their number. An error means that Postgres did not answer in time.
func (u *Unknown) Exhausted(ctx context.Context, keyID string) (until time.Duration, exhausted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := u.Now()
	hour := now.Truncate(time.Hour)
	count := 0
	err = u.Postgres.QueryRow(ctx, countedUnknown, keyID, hour).Scan(&count)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, false, fmt.Errorf("counting unknown references: %w", err)
	}
	return hour.Add(time.Hour).Sub(now), count >= u.Most, nil
}

const noteUnknown = `INSERT INTO unknown_references AS u (key_id, hour, count) VALUES ($1, $2, 1)
ON CONFLICT (key_id) DO UPDATE SET
    hour  = GREATEST(u.hour, excluded.hour),
    count = CASE WHEN u.hour < excluded.hour THEN 1 ELSE u.count + 1 END
RETURNING count`

// Note counts an unknown reference that the key looked up.
func (u *Unknown) Note(ctx context.Context, keyID string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	count := 0
	if err := u.Postgres.QueryRow(ctx, noteUnknown, keyID, u.Now().Truncate(time.Hour)).Scan(&count); err != nil {
		return fmt.Errorf("counting an unknown reference: %w", err)
	}
	return nil
}
