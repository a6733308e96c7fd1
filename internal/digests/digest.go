package digests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/notify"
)

const (
	// Every is the length of a window.
	Every = 15 * time.Minute
	// Repeat is the time after which something that is still there is said again.
	Repeat = 24 * time.Hour
	// Life is the age of the window after which a digest that could not be sent is given up. By
	// then its items are said again.
	Life = Repeat
	// PerDay is the greatest number of digests that a member of staff gets in 24 hours. It is
	// the limit of every address, so that no digest waits at it.
	PerDay = notify.PerDay
	// kept is how long windows and digests stay.
	kept = 7 * 24 * time.Hour
)

// Window returns the beginning of the window of a time, in UTC.
func Window(now time.Time) time.Time { return now.UTC().Truncate(Every) }

// Topic says what an Item is about.
type Topic string

// The topics.
const (
	TopicCase     Topic = "case"     // a proposal waits for approval
	TopicERP      Topic = "erp"      // an ERP does not accept confirmations
	TopicOperator Topic = "operator" // an operator does not answer
	TopicStaff    Topic = "staff"    // a person was made on the command line, for a group that has had people before
	TopicPasskeys Topic = "passkeys" // the passkeys of an invited person were confirmed
	TopicOutage   Topic = "outage"   // a passkey alone signs in until a time, because an identity provider is away
)

// Item is one thing that a member of staff is told.
type Item struct {
	Topic Topic
	// Subject is what it is about: the id of a case, the name of an ERP, an operator.
	Subject string
	// Detail is shown beside it, such as the kind of the case and the slug of its agency. It
	// holds no personal data. It may be empty.
	Detail string
	// Since is when it began. Together with Topic and Subject it tells items apart.
	Since time.Time
}

// key tells the items of a member of staff apart.
func (i Item) key() string {
	return string(i.Topic) + "|" + i.Subject + "|" + i.Since.UTC().Format(time.RFC3339Nano)
}

// Digest is what a member of staff is told in a window.
type Digest struct {
	StaffID string
	Window  time.Time
	Items   []Item
	// SentBefore is when an earlier digest was sent to the person last; zero: never, or more
	// than a week ago.
	SentBefore time.Time
}

// itemRow is an Item in the column items.
type itemRow struct {
	Topic   Topic     `json:"topic"`
	Subject string    `json:"subject"`
	Detail  string    `json:"detail,omitempty"`
	Since   time.Time `json:"since"`
}

// Store is the tables of digests. It is safe for concurrent use; several processes may use the
// same tables.
type Store struct{ pool *pgxpool.Pool }

// NewStore makes a store on a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

// Made is what Make did.
type Made struct {
	// Window is true when this call has made the window, false when it or a later one was made
	// before.
	Window bool
	// Digests is the number of digests that it made, and Withheld that of members of staff who
	// have had as many as they may get.
	Digests, Withheld int
}

// Make makes the digests of a window, unless it is made. find returns everything that there is
// now, by id of staff; Make leaves out what was said before. After an error the window is not
// made, or, after an error of Postgres, it may be.
func (s *Store) Make(ctx context.Context, window time.Time, find func(context.Context) (map[string][]Item, error)) (done Made, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		// Another instance that makes the window holds its row: this waits for the end of it.
		tag, err := tx.Exec(ctx, `INSERT INTO digest_windows (window_at) SELECT $1 WHERE NOT EXISTS (SELECT FROM digest_windows WHERE window_at >= $1) ON CONFLICT DO NOTHING`, window)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		done.Window = true
		found, err := find(ctx)
		if err != nil {
			return err
		}
		for _, staffID := range slices.Sorted(maps.Keys(found)) {
			if err := done.add(ctx, tx, staffID, window, found[staffID]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Made{}, fmt.Errorf("making digests: %w", err)
	}
	return done, nil
}

// add makes the digest of a member of staff, if there is something to say.
func (m *Made) add(ctx context.Context, tx pgx.Tx, staffID string, window time.Time, items []Item) error {
	var said []string
	var had int
	err := tx.QueryRow(ctx, `SELECT (SELECT coalesce(array_agg(item), '{}') FROM digest_items WHERE staff_id = $1 AND told_at > $2),
		(SELECT count(*) FROM digests WHERE staff_id = $1 AND window_at > $3)`, staffID, window.Add(-Repeat), window.Add(-24*time.Hour)).Scan(&said, &had)
	if err != nil {
		return err
	}
	var rows []itemRow
	var keys []string
	for _, i := range items {
		if !slices.Contains(said, i.key()) {
			rows, keys = append(rows, itemRow(i)), append(keys, i.key())
		}
	}
	switch {
	case len(rows) == 0:
		return nil
	case had >= PerDay:
		m.Withheld++
		return nil
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO digests (staff_id, window_at, items) VALUES ($1, $2, $3)`, staffID, window, text); err != nil {
		return err
	}
	m.Digests++
	_, err = tx.Exec(ctx, `INSERT INTO digest_items (staff_id, item, told_at) SELECT $1, item, $2 FROM unnest($3::text[]) item
		ON CONFLICT (staff_id, item) DO UPDATE SET told_at = $2`, staffID, window, keys)
	return err
}

// TellAtOnce adds a digest of one item for each of the staff, which is sent with the next look at those that wait. It
// is part of the caller's transaction, and outside the windows and the number of digests of a day. now is the time of
// the service's clock.
func TellAtOnce(ctx context.Context, tx pgx.Tx, staffIDs []string, item Item, now time.Time) error {
	text, err := json.Marshal([]itemRow{itemRow(item)})
	if err != nil {
		return err
	}
	if now.Equal(Window(now)) {
		now = now.Add(time.Microsecond) // this is never in one digest with the items of a window
	}
	// Two people may be made at the same time of the clock.
	_, err = tx.Exec(ctx, `INSERT INTO digests (staff_id, window_at, items) SELECT staff_id, $2, $3 FROM unnest($1::uuid[]) staff_id
		ON CONFLICT (staff_id, window_at) DO UPDATE SET items = digests.items || excluded.items WHERE digests.sent_at IS NULL`, staffIDs, now, text)
	if err != nil {
		return fmt.Errorf("telling staff at once: %w", err)
	}
	return nil
}

// maxUnsent is the number of digests that cannot be sent after which Tell gives up for now.
const maxUnsent = 5

// Tell takes the digests that wait, gives each to send, and records it as sent when send returns
// nil. Several instances may call it at once; each digest is with one of them. After an error or
// the death of a process a digest is given to send again, with the same items. One that cannot be
// sent does not hold up the others. now is the time of the service's clock.
func (s *Store) Tell(ctx context.Context, now func() time.Time, send func(context.Context, Digest) error) (sent int, err error) {
	var errs []error
	last := Digest{StaffID: "00000000-0000-0000-0000-000000000000", Window: now().Add(-Life)}
	for len(errs) < maxUnsent && ctx.Err() == nil {
		found, err := s.tellNext(ctx, &last, now, send)
		switch {
		case err != nil:
			errs = append(errs, err)
		case found:
			sent++
		}
		if !found {
			break
		}
	}
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return sent, fmt.Errorf("sending digests: %w", err)
	}
	return sent, nil
}

// tellNext sends the first digest after last, and moves last. found is false when there is none,
// or Postgres is away.
func (s *Store) tellNext(ctx context.Context, last *Digest, now func() time.Time, send func(context.Context, Digest) error) (found bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var d Digest
		var text []byte
		var before *time.Time
		err := tx.QueryRow(ctx, `
			SELECT d.staff_id::text, d.window_at, d.items, (SELECT max(b.sent_at) FROM digests b WHERE b.staff_id = d.staff_id)
			FROM digests d WHERE d.sent_at IS NULL AND (d.window_at, d.staff_id) > ($1, $2) ORDER BY d.window_at, d.staff_id LIMIT 1 FOR UPDATE OF d SKIP LOCKED`,
			last.Window, last.StaffID).Scan(&d.StaffID, &d.Window, &text, &before)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		d.Window = d.Window.UTC()
		found, last.StaffID, last.Window = true, d.StaffID, d.Window
		if before != nil {
			d.SentBefore = before.UTC()
		}
		var rows []itemRow
		if err := json.Unmarshal(text, &rows); err != nil {
			return fmt.Errorf("reading a digest: %w", err)
		}
		for _, r := range rows {
			d.Items = append(d.Items, Item(r))
		}
		if err := send(ctx, d); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE digests SET sent_at = $3 WHERE staff_id = $1 AND window_at = $2`, d.StaffID, d.Window, now())
		return err
	})
	return found, err
}

// OldestUnsent returns the window of the oldest digest that waits to be sent; zero: none.
func (s *Store) OldestUnsent(ctx context.Context, now time.Time) (time.Time, error) {
	var at *time.Time
	if err := s.pool.QueryRow(ctx, `SELECT min(window_at) FROM digests WHERE sent_at IS NULL AND window_at > $1`, now.Add(-Life)).Scan(&at); err != nil {
		return time.Time{}, fmt.Errorf("reading the oldest digest: %w", err)
	}
	if at == nil {
		return time.Time{}, nil
	}
	return at.UTC(), nil
}

// Sweep deletes what says nothing any more.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for sql, before := range map[string]time.Time{
		`DELETE FROM digest_windows WHERE window_at < $1`: now.Add(-kept),
		`DELETE FROM digests WHERE window_at < $1`:        now.Add(-kept),
		`DELETE FROM digest_items WHERE told_at < $1`:     now.Add(-2 * Repeat),
	} {
		if _, err := s.pool.Exec(ctx, sql, before); err != nil {
			return fmt.Errorf("deleting old digests: %w", err)
		}
	}
	return nil
}
