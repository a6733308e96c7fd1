package receipts

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/secret"
)

// Codes of refused operations.
const (
	CodeAnnounced  = "receipt_key.announced"
	CodeUnknownKey = "receipt_key.unknown"
)

// KeyState says what a key does.
type KeyState string

// The states of keys.
const (
	KeyAnnounced KeyState = "announced" // public, and signs later
	KeySigning   KeyState = "signing"
	KeyRetired   KeyState = "retired" // public for ever; signs only again what was paid in its time
	KeyRevoked   KeyState = "revoked" // its receipts are compared with the record
)

// Entry is a key as operators see it.
type Entry struct {
	Key
	CreatedAt time.Time
}

// State returns the state of the key at a time.
func (e Entry) State(now time.Time) KeyState {
	switch {
	case !e.RevokedAt.IsZero():
		return KeyRevoked
	case e.signs(now):
		return KeySigning
	case e.From.After(now):
		return KeyAnnounced
	}
	return KeyRetired
}

// first is when the first key of a mode begins to sign: before every payment, so that what was
// paid before there were keys has receipts, too.
var first = time.Unix(0, 0).UTC()

// EnsureKeys makes the first key of each mode that has none. It signs at once. Roles that make
// receipts call it when they start, so that no operator has to.
func EnsureKeys(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, now time.Time) error {
	var some, all bool
	if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM receipt_keys WHERE live), EXISTS (SELECT FROM receipt_keys WHERE NOT live)`).Scan(&some, &all); err == nil && some && all {
		return nil // almost always: no lock is needed
	}
	return changeKeys(ctx, pool, func(tx pgx.Tx, entries []Entry) error {
		for _, live := range []bool{false, true} {
			if slices.ContainsFunc(entries, func(e Entry) bool { return e.Live == live }) {
				continue
			}
			if err := addKey(ctx, tx, firstKey, keys, actor, live, first, now); err != nil {
				return err
			}
		}
		return nil
	})
}

// RotateKeys makes the next key of each of the modes. It is public at once and signs what is
// paid from AnnouncedFor after now on; the first key of a mode signs at once. It returns the new
// keys. The refusal CodeAnnounced says that a key waits already. After an error nothing has
// changed.
func RotateKeys(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, modes []bool, now time.Time) (made []Entry, err error) {
	err = changeKeys(ctx, pool, func(tx pgx.Tx, entries []Entry) error {
		known := map[string]bool{}
		for _, e := range entries {
			known[e.ID] = true
		}
		for _, live := range modes {
			from := first
			for _, e := range entries {
				if e.Live != live {
					continue
				}
				if e.State(now) == KeyAnnounced {
					return operation.Refuse(CodeAnnounced, "mode", operation.Args{"kid": e.ID, "from": e.From, "mode": modeName(live)})
				}
				from = now.Add(AnnouncedFor).Truncate(time.Second)
			}
			if err := addKey(ctx, tx, furtherKey, keys, actor, live, from, now); err != nil {
				return err
			}
		}
		if entries, err = readEntries(ctx, tx); err != nil {
			return err
		}
		made = slices.DeleteFunc(entries, func(e Entry) bool { return known[e.ID] })
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("rotating the keys of receipts: %w", err)
	}
	return made, nil
}

// RevokeKey declares a key stolen. If it signs now, its successor signs a moment later: the key
// that is announced, or a new one. next is that key, or nil. changed is false if the key was
// revoked before. The refusal is CodeUnknownKey. After an error nothing has changed.
func RevokeKey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, kid string, now time.Time) (revoked Entry, next *Entry, changed bool, err error) {
	find := func(entries []Entry, is func(Entry) bool) *Entry {
		if i := slices.IndexFunc(entries, is); i >= 0 {
			return &entries[i]
		}
		return nil
	}
	named := func(e Entry) bool { return e.ID == kid }
	err = changeKeys(ctx, pool, func(tx pgx.Tx, entries []Entry) error {
		e := find(entries, named)
		switch {
		case e == nil:
			return operation.Refuse(CodeUnknownKey, "kid", nil)
		case !e.RevokedAt.IsZero():
			revoked = *e
			return nil
		}
		changed = true
		if _, err := tx.Exec(ctx, `UPDATE receipt_keys SET revoked_at = $2 WHERE kid = $1`, kid, now); err != nil {
			return err
		}
		if err := operation.Record(ctx, tx, actor, now, operation.Entry{Action: "receipt_key.revoke", Subject: kid}); err != nil {
			return err
		}
		if entries, err = readEntries(ctx, tx); err != nil {
			return err
		}
		from := now.Add(takeover).Truncate(time.Second)
		signs := func(o Entry) bool { return o.Live == e.Live && o.signs(from) }
		if signing := find(entries, signs); signing == nil || !signing.RevokedAt.IsZero() {
			waiting := find(entries, func(o Entry) bool { return o.Live == e.Live && o.State(now) == KeyAnnounced })
			if err := succeed(ctx, tx, keys, actor, e.Live, waiting, from, now); err != nil {
				return err
			}
			if entries, err = readEntries(ctx, tx); err != nil {
				return err
			}
			next = find(entries, signs)
		}
		revoked = *find(entries, named)
		return nil
	})
	if err != nil {
		return Entry{}, nil, false, fmt.Errorf("revoking a key of receipts: %w", err)
	}
	return revoked, next, changed, nil
}

// succeed makes the key that waits sign from a time on, or a new one if none waits.
func succeed(ctx context.Context, tx pgx.Tx, keys *secret.Keys, actor operation.Actor, live bool, waiting *Entry, from, now time.Time) error {
	if waiting == nil {
		return addKey(ctx, tx, furtherKey, keys, actor, live, from, now)
	}
	if _, err := tx.Exec(ctx, `UPDATE receipt_keys SET signs_from = $2 WHERE kid = $1`, waiting.ID, from); err != nil {
		return err
	}
	return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "receipt_key.advance", Subject: waiting.ID, Detail: map[string]any{"signs_from": from}})
}

// ListKeys lists all keys, those of a mode together, in the order in which they sign.
func ListKeys(ctx context.Context, pool *pgxpool.Pool) ([]Entry, error) {
	return readEntries(ctx, pool)
}

func readEntries(ctx context.Context, q querier) ([]Entry, error) {
	rows, err := readRows(ctx, q)
	if err != nil {
		return nil, err
	}
	keys, err := scheduled(rows)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(keys))
	for i, k := range keys {
		out[i] = Entry{k, rows[i].createdAt}
	}
	return out, nil
}

// changeKeys runs do in a transaction that no other change of the keys interrupts.
func changeKeys(ctx context.Context, pool *pgxpool.Pool, do func(tx pgx.Tx, entries []Entry) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('receipt keys', 0))`); err != nil {
			return err
		}
		entries, err := readEntries(ctx, tx)
		if err != nil {
			return err
		}
		return do(tx, entries)
	})
}

// The statements that store a key. Roles may only store the first one of a mode.
const (
	firstKey   = `SELECT first_receipt_key($1, $2, $3, $4, $5, $6, $7)`
	furtherKey = `INSERT INTO receipt_keys (id, kid, live, public, sealed, signs_from, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`
)

// addKey makes a key and stores it with one of the statements above.
func addKey(ctx context.Context, tx pgx.Tx, store string, keys *secret.Keys, actor operation.Actor, live bool, from, now time.Time) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key of receipts: %w", err)
	}
	k, err := NewKey(live, public, from)
	if err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	sealed, err := keys.Seal(SealedKeys.Label, private.Seed(), id[:])
	if err != nil {
		return fmt.Errorf("sealing a key of receipts: %w", err)
	}
	if _, err := tx.Exec(ctx, store,
		id, k.ID, live, []byte(public), sealed, from, now); err != nil {
		return fmt.Errorf("storing a key of receipts: %w", err)
	}
	return operation.Record(ctx, tx, actor, now, operation.Entry{Action: "receipt_key.create", Subject: k.ID, Detail: map[string]any{
		"mode": modeName(live), "signs_from": from,
	}})
}

func modeName(live bool) string {
	if live {
		return "live"
	}
	return "test"
}
