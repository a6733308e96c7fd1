package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// maxKeys is how many keys of a mode an application has in force at a time, for
// rotation with overlap (contract decisions § 3). Platform keys are not counted:
// each is a grant of its own, to its own set of agencies.
const maxKeys = 2

// KeyEntry is a key as operators see it: with names, without its secret.
type KeyEntry struct {
	Key
	// Application is the name of its application; empty for a platform key.
	Application string
	// Inactive says that the application is not active: the key opens nothing
	// meanwhile, whatever its state.
	Inactive bool
	// Agencies by slug: the application's, or those that a platform key is
	// granted.
	Agencies []string
}

// Owner names whom the key belongs to.
func (k KeyEntry) Owner() string {
	if k.Platform() {
		return "platform for " + strings.Join(k.Agencies, ", ")
	}
	return k.Application + " (" + strings.Join(k.Agencies, ", ") + ")"
}

// MintedKey is a new key with its secret, which is stored nowhere: to be shown
// once.
type MintedKey struct {
	KeyEntry
	Secret secret.Text
}

// KeyRequest says which key to make: an application's, or one of the platform.
type KeyRequest struct {
	// Application by id or by its name, if no other has it; empty for a platform
	// key.
	Application string
	// Agencies that a platform key is granted, by id or slug.
	Agencies []string
	Live     bool
	// ReadsPerMinute of a platform key; DefaultReadsPerMinute when zero. An
	// application's key has its application's.
	ReadsPerMinute int
}

// KeyError says why a key cannot be made or changed, in words for the operator
// who asked. It never holds a secret.
type KeyError struct {
	// Field that is wrong: application, agency, reads-per-minute, overlap or id.
	Field   string
	Message string
}

// Error is the message.
func (e *KeyError) Error() string { return e.Message }

func keyError(field, format string, args ...any) error {
	return &KeyError{Field: field, Message: fmt.Sprintf(format, args...)}
}

// ListKeys lists all keys by owner, the oldest first: the platform's, then those
// of applications by name.
func ListKeys(ctx context.Context, pool *pgxpool.Pool) ([]KeyEntry, error) {
	var k *keyring
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		k, err = readKeyring(ctx, db.New(tx))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	slices.SortStableFunc(k.entries, func(a, b KeyEntry) int {
		return strings.Compare(a.Application+"\x00"+a.ApplicationID, b.Application+"\x00"+b.ApplicationID)
	})
	return k.entries, nil
}

// CreateKey makes a key. now is the service's clock. Errors that are the
// operator's to mend are a KeyError; whatever the error, nothing changed.
func CreateKey(ctx context.Context, pool *pgxpool.Pool, req KeyRequest, now time.Time) (MintedKey, error) {
	var minted MintedKey
	err := changeKeys(ctx, pool, now, func(k *keyring) error {
		key := Key{Live: req.Live, AgencyIDs: []string{}}
		var reads *int32
		var err error
		if req.Application != "" {
			app, err := k.application(req.Application)
			if err != nil {
				return err
			}
			if others := k.inForce(app.ID, req.Live, ""); len(others) >= maxKeys {
				return keyError("application", "%s has %s in force already, and %d is the most; replace one with `quittance keys rotate KEY_ID --overlap 0`, or end one with `quittance keys revoke KEY_ID`",
					k.owner(app), naming(others, req.Live), maxKeys)
			}
			key.ApplicationID = app.ID
		} else {
			if key.AgencyIDs, err = k.grant(req.Agencies); err != nil {
				return err
			}
			if req.ReadsPerMinute < 0 || req.ReadsPerMinute > maxPerMinute {
				return keyError("reads-per-minute", "must be from 1 to %d", maxPerMinute)
			}
			if req.ReadsPerMinute > 0 {
				n := int64(req.ReadsPerMinute)
				reads = narrow(&n)
			}
		}
		minted, err = k.mint(ctx, key, reads)
		return err
	})
	if err != nil {
		return MintedKey{}, fmt.Errorf("creating a key: %w", err)
	}
	return minted, nil
}

// RevokeKey ends a key for good, on every instance within a second. A key that
// was revoked before keeps that time: changed is false then. now is the
// service's clock. Errors are as with CreateKey.
func RevokeKey(ctx context.Context, pool *pgxpool.Pool, id string, now time.Time) (revoked KeyEntry, changed bool, err error) {
	err = changeKeys(ctx, pool, now, func(k *keyring) error {
		known, err := k.find(id)
		if err != nil {
			return err
		}
		changed = known.RevokedAt.IsZero()
		revoked, err = k.end(ctx, known, 0)
		return err
	})
	if err != nil {
		return KeyEntry{}, false, fmt.Errorf("revoking a key: %w", err)
	}
	return revoked, changed, nil
}

// RotateKey makes a key with the owner, mode and grants of another, which ends
// after the overlap; at once, by being revoked, when that is zero. now is the
// service's clock. Errors are as with CreateKey.
func RotateKey(ctx context.Context, pool *pgxpool.Pool, id string, overlap time.Duration, now time.Time) (minted MintedKey, replaced KeyEntry, err error) {
	err = changeKeys(ctx, pool, now, func(k *keyring) error {
		if overlap < 0 {
			return keyError("overlap", "must not be negative: 0 ends the old key at once")
		}
		old, err := k.find(id)
		if err != nil {
			return err
		}
		switch old.State(now) {
		case KeyStateActive:
		case KeyStateEnding:
			return keyError("id", "key %s was rotated already and ends at %s; rotate the key that replaced it, or end this one with `quittance keys revoke %s`",
				old.ID, old.EndsAt.Format(time.RFC3339), old.ID)
		case KeyStateEnded, KeyStateRevoked:
			return keyError("id", "key %s is %s; make a new one with `quittance keys create`", old.ID, old.State(now))
		}
		if !old.Platform() && overlap > 0 {
			if others := k.inForce(old.ApplicationID, old.Live, old.ID); 2+len(others) > maxKeys {
				return keyError("id", "key %s cannot overlap with a new one: %s has another of its mode in force, %s, and %d is the most; end that one with `quittance keys revoke %s`, or replace this one at once with --overlap 0",
					old.ID, old.Owner(), others[0].describe(), maxKeys, others[0].ID)
			}
		}
		if minted, err = k.mint(ctx, old.Key, k.reads[old.ID]); err != nil {
			return err
		}
		replaced, err = k.end(ctx, old, overlap)
		return err
	})
	if err != nil {
		return MintedKey{}, KeyEntry{}, fmt.Errorf("rotating a key: %w", err)
	}
	return minted, replaced, nil
}

// changeKeys runs a change in a transaction of its own, after whatever else
// changes the registry: what it counts stays true until it commits.
func changeKeys(ctx context.Context, pool *pgxpool.Pool, now time.Time, change func(*keyring) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if _, err := q.LockRevision(ctx); err != nil {
			return fmt.Errorf("locking the registry: %w", err)
		}
		k, err := readKeyring(ctx, q)
		if err != nil {
			return err
		}
		k.now = now
		return change(k)
	})
}

// keyring is all keys with their owners, in one transaction.
type keyring struct {
	q            *db.Queries
	now          time.Time
	agencies     []db.Agency
	applications []db.Application
	entries      []KeyEntry
	reads        map[string]*int32 // of platform keys, as they are stored
}

func readKeyring(ctx context.Context, q *db.Queries) (*keyring, error) {
	k := &keyring{q: q, reads: map[string]*int32{}}
	var err error
	if k.agencies, err = q.Agencies(ctx); err != nil {
		return nil, fmt.Errorf("reading agencies: %w", err)
	}
	if k.applications, err = q.Applications(ctx); err != nil {
		return nil, fmt.Errorf("reading applications: %w", err)
	}
	rows, err := q.APIKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading API keys: %w", err)
	}
	for _, r := range rows {
		k.entries = append(k.entries, k.entry(toKey(r)))
		k.reads[r.ID] = r.ReadsPerMinute
	}
	return k, nil
}

func (k *keyring) entry(key Key) KeyEntry {
	e, agencies := KeyEntry{Key: key}, key.AgencyIDs
	for _, a := range k.applications {
		if a.ID == key.ApplicationID {
			e.Application, e.Inactive, e.ReadsPerMinute, agencies = a.Name, !a.Active, int(a.ReadsPerMinute), []string{a.AgencyID}
		}
	}
	for _, a := range k.agencies {
		if slices.Contains(agencies, a.ID) {
			e.Agencies = append(e.Agencies, a.Slug)
		}
	}
	return e
}

// find is a key by its id. What is no id is not repeated: it may be a secret.
func (k *keyring) find(id string) (KeyEntry, error) {
	parsed, ok := form.CanonicalUUID(id)
	if !ok {
		return KeyEntry{}, keyError("id", "that is no id of a key, which looks like 018f0000-0000-7000-8000-0000000000aa; `quittance keys list` shows them")
	}
	for _, e := range k.entries {
		if e.ID == parsed {
			return e, nil
		}
	}
	return KeyEntry{}, keyError("id", "no key has the id %s; `quittance keys list` shows them", parsed)
}

// inForce are an application's keys of a mode that open something, but for one.
func (k *keyring) inForce(applicationID string, live bool, butFor string) []KeyEntry {
	var out []KeyEntry
	for _, e := range k.entries {
		if e.ApplicationID == applicationID && e.Live == live && e.ID != butFor && e.InForce(k.now) {
			out = append(out, e)
		}
	}
	return out
}

func (k *keyring) owner(a db.Application) string { return k.entry(Key{ApplicationID: a.ID}).Owner() }

// application is the one with this id or, if no other has it, this name.
func (k *keyring) application(named string) (db.Application, error) {
	id, _ := form.CanonicalUUID(named)
	var found []db.Application
	var all, alike []string
	for _, a := range k.applications {
		line := a.ID + " " + k.owner(a)
		if a.ID == id {
			return a, nil
		}
		if a.Name == named {
			found = append(found, a)
			alike = append(alike, line)
		}
		all = append(all, line)
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return db.Application{}, keyError("application", "several applications have this name, give the id: %s", listing(alike))
	case len(all) == 0:
		return db.Application{}, keyError("application", "there are no applications yet: add one with `quittance seed FILE`")
	}
	return db.Application{}, keyError("application", "no application has this id or name; there are: %s", listing(all))
}

// grant resolves the agencies of a platform key.
func (k *keyring) grant(named []string) ([]string, error) {
	if len(named) == 0 {
		return nil, keyError("agency", "a platform key needs the agencies that it may act for")
	}
	var out, all []string
	for _, a := range k.agencies {
		all = append(all, a.Slug)
	}
	for _, name := range named {
		id, _ := form.CanonicalUUID(name)
		i := slices.IndexFunc(k.agencies, func(a db.Agency) bool { return a.ID == id || a.Slug == name })
		if i < 0 {
			return nil, keyError("agency", "no agency has the id or slug %q; there are: %s", shown(name), listing(all))
		}
		agency := k.agencies[i]
		if !slices.ContainsFunc(k.applications, func(a db.Application) bool { return a.AgencyID == agency.ID && a.Integrator }) {
			return nil, keyError("agency", "%s has no integrator application, so that platform keys cannot target it; mark one of its applications with integrator: true and apply the file with `quittance seed FILE`", agency.Slug)
		}
		if !slices.Contains(out, agency.ID) {
			out = append(out, agency.ID)
		}
	}
	return out, nil
}

// mint stores a new key of this one's owner, mode and grants.
func (k *keyring) mint(ctx context.Context, like Key, reads *int32) (MintedKey, error) {
	prefix := prefixTest
	if like.Live {
		prefix = prefixLive
	}
	minted := secret.Mint(prefix)
	digest := sha256.Sum256([]byte(minted.Reveal()))
	row := db.InsertAPIKeyParams{ID: newID(), Hash: digest[:], Live: like.Live, Agencies: like.AgencyIDs, ReadsPerMinute: reads, CreatedAt: k.now}
	if !like.Platform() {
		row.ApplicationID = &like.ApplicationID
	}
	if err := k.q.InsertAPIKey(ctx, row); err != nil {
		return MintedKey{}, fmt.Errorf("storing the key: %w", err)
	}
	e, err := k.again(ctx, row.ID)
	return MintedKey{KeyEntry: e, Secret: minted}, err
}

// end lets a key end after a while, or revokes it when that is zero.
func (k *keyring) end(ctx context.Context, e KeyEntry, after time.Duration) (KeyEntry, error) {
	var err error
	if after == 0 {
		err = k.q.RevokeAPIKey(ctx, db.RevokeAPIKeyParams{ID: e.ID, RevokedAt: &k.now})
	} else {
		at := k.now.Add(after)
		err = k.q.EndAPIKey(ctx, db.EndAPIKeyParams{ID: e.ID, EndsAt: &at})
	}
	if err != nil {
		return KeyEntry{}, fmt.Errorf("ending key %s: %w", e.ID, err)
	}
	return k.again(ctx, e.ID)
}

// again is a key as the database has it now.
func (k *keyring) again(ctx context.Context, id string) (KeyEntry, error) {
	fresh, err := readKeyring(ctx, k.q)
	if err != nil {
		return KeyEntry{}, err
	}
	return fresh.find(id)
}

func (k KeyEntry) describe() string {
	if k.EndsAt.IsZero() {
		return k.ID
	}
	return k.ID + " (ends at " + k.EndsAt.Format(time.RFC3339) + ")"
}

// naming is "2 test keys (A, B)".
func naming(keys []KeyEntry, live bool) string {
	var ids []string
	for _, k := range keys {
		ids = append(ids, k.describe())
	}
	return fmt.Sprintf("%d %s keys (%s)", len(keys), mode(live), strings.Join(ids, ", "))
}

// listing is the first of many, for a message.
func listing(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], "; ") + fmt.Sprintf("; and %d more", len(names)-most)
	}
	return strings.Join(names, "; ")
}

// shown is what an operator wrote, unless it is a secret in the wrong place.
func shown(s string) string {
	if strings.HasPrefix(s, "sk_") || len(s) > maxName {
		return "…"
	}
	return s
}
