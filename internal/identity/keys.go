package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// MaxKeys is the number of keys in force that an application or a clerk may have in a
// mode, for rotation with overlap (contract docs/design/decisions.md § 3). It does not limit platform
// keys, because each of them has its own set of agencies.
const MaxKeys = 2

// MaxReadsPerMinute is the largest quota of a platform key.
const MaxReadsPerMinute = registry.MaxPerMinute

// Key is a key of an application, the platform, a clerk or a member of staff, without its
// secret.
type Key struct {
	ID            string
	Live          bool
	ApplicationID string // of an application's key
	// AgencyIDs are granted to a platform key, with a quota of ReadsPerMinute. A key of an
	// application has those of the application.
	AgencyIDs      []string
	ReadsPerMinute int
	// Withdrawn are agencies that an operator has withdrawn from a platform key. A registry
	// file does not grant them again.
	Withdrawn []string
	// Replaces is the id of the key from which it was rotated; empty for none.
	Replaces string
	// ClerkAgencyID and ClerkCode name the holder of a clerk's key.
	ClerkAgencyID, ClerkCode string
	// StaffID names the holder of a key of staff.
	StaffID    string
	CreatedAt  time.Time
	RevokedAt  time.Time // zero: not revoked
	EndsAt     time.Time // end of the overlap of its rotation; zero: not rotated
	LastUsedAt time.Time // in whole seconds, some seconds late; zero: never
	// Forged means that the row of the key is not as it was signed: the key is not valid.
	Forged bool
	reads  *int64 // ReadsPerMinute as it is stored; nil: the default
	demo   bool   // of the demo registry
}

func toKey(r keyRow, forged bool) Key {
	return Key{
		ID: r.ID, Live: r.Live, ApplicationID: value(r.ApplicationID), AgencyIDs: r.Agencies, ReadsPerMinute: cmp.Or(int(value(r.ReadsPerMinute)), registry.DefaultReadsPerMinute),
		ClerkAgencyID: value(r.ClerkAgencyID), ClerkCode: value(r.ClerkCode), StaffID: value(r.StaffID), CreatedAt: r.CreatedAt,
		RevokedAt: value(r.RevokedAt), EndsAt: value(r.EndsAt), LastUsedAt: value(r.LastUsedAt), reads: r.ReadsPerMinute,
		Withdrawn: r.Withdrawn, Replaces: value(r.Replaces), Forged: forged,
		demo: secret.IsDemoDigest([32]byte(r.Hash)),
	}
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// KeyState is the state of a key.
type KeyState string

// The states of a key. A key that is active or ending is in force.
const (
	KeyStateActive  KeyState = "active"
	KeyStateEnding  KeyState = "ending"  // rotated, the overlap is running
	KeyStateEnded   KeyState = "ended"   // rotated, the overlap is over
	KeyStateRevoked KeyState = "revoked" // in whatever state it was before
)

// State returns the key's state at a time of the service's clock.
func (k Key) State(now time.Time) KeyState {
	switch {
	case !k.RevokedAt.IsZero():
		return KeyStateRevoked
	case k.EndsAt.IsZero():
		return KeyStateActive
	case now.Before(k.EndsAt):
		return KeyStateEnding
	}
	return KeyStateEnded
}

// InForce reports whether the key is valid at a time of the service's clock, provided
// that its holder is active.
func (k Key) InForce(now time.Time) bool {
	s := k.State(now)
	return s == KeyStateActive || s == KeyStateEnding
}

// Platform reports whether the key is the platform's.
func (k Key) Platform() bool { return k.api() && k.ApplicationID == "" }

// api reports whether the key is an application's or the platform's.
func (k Key) api() bool { return k.ClerkCode == "" && k.StaffID == "" }

func (k Key) clerk() clerkID { return clerkID{k.ClerkAgencyID, k.ClerkCode} }

func (k Key) family() Family {
	switch {
	case k.ClerkCode != "":
		return ClerkKeys
	case k.StaffID != "":
		return StaffKeys
	}
	return APIKeys
}

// SameHolder reports whether two keys belong to the same application, clerk or member of
// staff, or both to the platform.
func (k Key) SameHolder(o Key) bool {
	return k.ApplicationID == o.ApplicationID && k.clerk() == o.clerk() && k.StaffID == o.StaffID
}

// KeyEntry is an API key as operators see it: with names, without its secret.
type KeyEntry struct {
	Key
	// Application is the name of its application; empty for a platform key.
	Application string
	// Inactive means that the application is not active: the key is not valid then,
	// whatever its state.
	Inactive bool
	// Agencies by slug: that of the application, or those granted to a platform key.
	Agencies []string
}

// entry returns an API key with the names of its holder.
func (s *snapshot) entry(k Key) KeyEntry {
	e, agencies := KeyEntry{Key: k}, k.AgencyIDs
	if a, ok := s.registry.Applications[k.ApplicationID]; ok {
		e.Application, e.Inactive, e.ReadsPerMinute, agencies = a.Name, !a.Active, a.ReadsPerMinute, []string{a.AgencyID}
	}
	for _, id := range agencies {
		if a, ok := s.registry.Agencies[id]; ok {
			e.Agencies = append(e.Agencies, a.Slug)
		}
	}
	return e
}

// Owner names the holder of the key.
func (k KeyEntry) Owner() string {
	if k.Platform() {
		return "platform for " + strings.Join(k.Agencies, ", ")
	}
	return k.Application + " (" + strings.Join(k.Agencies, ", ") + ")"
}

// MintedKey is a new key with its secret. The secret is not stored: show it once.
type MintedKey struct {
	KeyEntry
	Secret secret.Text
}

// KeyRequest asks for a key of an application or of the platform.
type KeyRequest struct {
	// Application by its id, or by its name if the name is unique; empty for a platform
	// key.
	Application string
	// Agencies to grant to a platform key, by id or slug.
	Agencies []string
	Live     bool
	// ReadsPerMinute of a platform key; registry.DefaultReadsPerMinute when zero. A key of
	// an application has the quota of the application.
	ReadsPerMinute int
}

// ListKeys lists all API keys: those of the platform, then those of applications by
// name. Keys of one holder are sorted by age, the oldest first.
func ListKeys(ctx context.Context, pool *pgxpool.Pool) ([]KeyEntry, error) {
	var out []KeyEntry
	err := view(ctx, pool, nil, func(s *snapshot) {
		for _, k := range s.byAge {
			if k.api() {
				out = append(out, s.entry(k))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing keys: %w", err)
	}
	slices.SortStableFunc(out, func(a, b KeyEntry) int {
		return cmp.Or(strings.Compare(a.Application, b.Application), strings.Compare(a.ApplicationID, b.ApplicationID))
	})
	return out, nil
}

// DemoKey is a key of the demo registry.
type DemoKey struct {
	Key
	Owner string // "Guichet fiscal (impots)", or "clerk impots/c01"
}

// DemoKeys lists the keys in force that are of the demo registry, the oldest first.
func (i *Identities) DemoKeys() (out []DemoKey) {
	s, now := i.current.Load(), i.cfg.Now()
	for _, k := range s.byAge {
		if !k.demo || !k.InForce(now) {
			continue
		}
		owner := s.entry(k).Owner()
		if k.ClerkCode != "" {
			owner = "clerk " + s.clerkEntry(s.clerks[k.clerk()]).Ref()
		}
		out = append(out, DemoKey{k, owner})
	}
	return out
}

// CreateKey creates an API key. now is the time of the service's clock. A refusal is an
// *operation.Error with the field application, agency or reads-per-minute. After an
// error nothing has changed.
func CreateKey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, req KeyRequest, now time.Time) (MintedKey, error) {
	var minted MintedKey
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		key := Key{Live: req.Live}
		var err error
		if req.Application != "" {
			app, err := t.registry.FindClient(req.Application)
			if err != nil {
				return err
			}
			key.ApplicationID = app.ID
			if others := t.inForce(key); len(others) >= MaxKeys {
				return operation.Refuse("key.too_many", "application", operation.Args{"owner": t.entry(key).Owner(), "live": req.Live, "keys": described(others), "most": MaxKeys})
			}
		} else {
			if key.AgencyIDs, err = t.grant(req.Agencies); err != nil {
				return err
			}
			if req.ReadsPerMinute < 0 || req.ReadsPerMinute > MaxReadsPerMinute {
				return operation.Refuse("key.reads_out_of_range", "reads-per-minute", operation.Args{"most": MaxReadsPerMinute})
			}
			if req.ReadsPerMinute > 0 {
				n := int64(req.ReadsPerMinute)
				key.reads = &n
			}
		}
		if minted, err = t.mint(ctx, key); err != nil {
			return err
		}
		return t.record(ctx, actor, "key.create", minted.Key, map[string]any{"owner": minted.Owner()})
	})
	if err != nil {
		return MintedKey{}, fmt.Errorf("creating a key: %w", err)
	}
	return minted, nil
}

// RevokeKey revokes an API key, on every instance within a second. A key that was
// revoked before keeps the time of its revocation, and changed is false. now is the time
// of the service's clock. A refusal is an *operation.Error with the field id. After an
// error nothing has changed.
func RevokeKey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, now time.Time) (revoked KeyEntry, changed bool, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		known, err := t.apiKey(id)
		if err != nil {
			return err
		}
		changed = known.RevokedAt.IsZero()
		if changed {
			if err := t.record(ctx, actor, "key.revoke", known, nil); err != nil {
				return err
			}
		}
		revoked, err = t.end(ctx, known, 0)
		return err
	})
	if err != nil {
		return KeyEntry{}, false, fmt.Errorf("revoking a key: %w", err)
	}
	return revoked, changed, nil
}

// RotateKey creates an API key with the holder, mode and grants of another. Agencies that
// were withdrawn from the other are withdrawn from the new key, too. The other key ends after the overlap, or is revoked at once when the overlap is zero. now is the
// time of the service's clock. A refusal is an *operation.Error with the field id or
// overlap. After an error nothing has changed.
func RotateKey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, overlap time.Duration, now time.Time) (minted MintedKey, replaced KeyEntry, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		if overlap < 0 {
			return operation.Refuse("key.overlap_negative", "overlap", nil)
		}
		old, err := t.apiKey(id)
		if err != nil {
			return err
		}
		switch old.State(now) {
		case KeyStateActive:
		case KeyStateEnding:
			return operation.Refuse("key.rotated", "id", operation.Args{"id": old.ID, "ends_at": stamp(old.EndsAt)})
		case KeyStateEnded, KeyStateRevoked:
			return operation.Refuse("key.over", "id", operation.Args{"id": old.ID, "state": old.State(now)})
		}
		others := slices.DeleteFunc(t.inForce(old), func(k Key) bool { return k.ID == old.ID })
		if overlap > 0 && 2+len(others) > MaxKeys {
			return operation.Refuse("key.no_room_to_overlap", "id", operation.Args{
				"id": old.ID, "owner": t.entry(old).Owner(), "other": described(others[:1])[0], "other_id": others[0].ID, "most": MaxKeys,
			})
		}
		if minted, err = t.mint(ctx, old); err != nil {
			return err
		}
		if err := t.record(ctx, actor, "key.rotate", old, map[string]any{"overlap": overlap.String(), "new_key": minted.ID}); err != nil {
			return err
		}
		replaced, err = t.end(ctx, old, overlap)
		return err
	})
	if err != nil {
		return MintedKey{}, KeyEntry{}, fmt.Errorf("rotating a key: %w", err)
	}
	return minted, replaced, nil
}

// apiKey finds an API key by its id. The error does not repeat a text that is not an id,
// because it may be a secret.
func (t *Tx) apiKey(id string) (Key, error) {
	parsed, ok := form.CanonicalUUID(id)
	if !ok {
		return Key{}, operation.Refuse("key.not_an_id", "id", nil)
	}
	if k, ok := t.keys[t.digests[parsed]]; ok && k.api() {
		return k, nil
	}
	return Key{}, operation.Refuse("key.unknown", "id", operation.Args{"id": parsed})
}

// FindApplication returns an application by its id or by a unique name.
func FindApplication(ctx context.Context, pool *pgxpool.Pool, named string) (app registry.Application, err error) {
	failed := view(ctx, pool, nil, func(s *snapshot) {
		app, err = s.registry.FindApplication(named)
	})
	return app, errors.Join(failed, err)
}

// agency finds an agency by its id or slug.
func (t *Tx) agency(named string) (registry.Agency, error) { return t.registry.FindAgency(named) }

// grant resolves the agencies of a platform key.
func (t *Tx) grant(named []string) ([]string, error) {
	ids, err := t.agencies(named)
	for _, id := range ids {
		if t.registry.IntegratorOf(id) == "" {
			return nil, operation.Refuse("agency.without_integrator", "agency", operation.Args{"agency": t.registry.Agencies[id].Slug})
		}
	}
	return ids, err
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

// described lists keys for a refusal.
func described(keys []Key) (out []string) {
	for _, k := range keys {
		if k.EndsAt.IsZero() {
			out = append(out, k.ID)
		} else {
			out = append(out, k.ID+" (ends at "+stamp(k.EndsAt)+")")
		}
	}
	return out
}
