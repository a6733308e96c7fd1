package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/secret"
)

// GrantKey lets a platform key act for more agencies, by id or slug. It changes all keys in
// force of the key's rotation, and returns them, the oldest first. Agencies that the keys
// have are no error, and changed is false if there are no others. now is the time of the
// service's clock. A refusal is an *operation.Error with the field id or agency. After an
// error nothing has changed.
func GrantKey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, agencies []string, now time.Time) (granted []KeyEntry, changed bool, err error) {
	return regrant(ctx, pool, keys, actor, "key.grant", id, now, func(t *Tx) (func(Key) (agencies, withdrawn []string), error) {
		add, err := t.grant(agencies)
		return func(k Key) ([]string, []string) {
			return with(k.AgencyIDs, add), without(k.Withdrawn, add)
		}, err
	})
}

// UngrantKey withdraws agencies from a platform key, on every instance within a second, and
// from all keys in force of its rotation. A registry file does not grant them again; GrantKey
// does. Otherwise it is like GrantKey. A key with no other agency is refused: revoke it.
func UngrantKey(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, id string, agencies []string, now time.Time) (granted []KeyEntry, changed bool, err error) {
	return regrant(ctx, pool, keys, actor, "key.ungrant", id, now, func(t *Tx) (func(Key) (agencies, withdrawn []string), error) {
		remove, err := t.agencies(agencies)
		return func(k Key) ([]string, []string) {
			return without(k.AgencyIDs, remove), with(k.Withdrawn, remove)
		}, err
	})
}

// regrant changes the grants of a platform key and of all keys in force of its rotation.
func regrant(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, action, id string, now time.Time, plan func(*Tx) (func(Key) (agencies, withdrawn []string), error)) (granted []KeyEntry, changed bool, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		named, err := t.apiKey(id)
		switch {
		case err != nil:
			return err
		case !named.Platform():
			return operation.Refuse("key.not_platform", "id", operation.Args{"id": named.ID, "owner": t.entry(named).Owner()})
		case !named.InForce(now):
			return operation.Refuse("key.grants_over", "id", operation.Args{"id": named.ID, "state": named.State(now)})
		}
		apply, err := plan(t)
		if err != nil {
			return err
		}
		var ids []string
		for _, k := range t.rotation(named) {
			if !k.InForce(now) {
				continue
			}
			ids = append(ids, k.ID)
			agencies, withdrawn := apply(k)
			if slices.Equal(agencies, k.AgencyIDs) && slices.Equal(withdrawn, k.Withdrawn) {
				continue
			}
			if len(agencies) == 0 {
				return operation.Refuse("key.last_agency", "agency", operation.Args{"id": k.ID})
			}
			changed = true
			if err := t.q.UpdateGrant(ctx, db.UpdateGrantParams{ID: k.ID, Agencies: agencies, Withdrawn: withdrawn}); err != nil {
				return fmt.Errorf("changing the agencies of key %s: %w", k.ID, err)
			}
		}
		if _, err := t.reread(ctx, named.ID); err != nil {
			return err
		}
		for _, id := range ids {
			granted = append(granted, t.entry(t.keys[t.digests[id]]))
		}
		if !changed {
			return nil
		}
		return t.record(ctx, actor, action, named, map[string]any{"agencies": t.entry(t.keys[t.digests[named.ID]]).Agencies, "keys": ids})
	})
	if err != nil {
		return nil, false, fmt.Errorf("changing the agencies of a key: %w", err)
	}
	return granted, changed, nil
}

// agencies finds the ids of agencies by id or slug.
func (t *Tx) agencies(named []string) ([]string, error) {
	if len(named) == 0 {
		return nil, operation.Refuse("key.without_agencies", "agency", nil)
	}
	var out []string
	for _, name := range named {
		a, err := t.agency(name)
		if err != nil {
			return nil, err
		}
		out = with(out, []string{a.ID})
	}
	return out, nil
}

// rotation returns the key, the keys from which it was rotated and those that were rotated
// from it, the oldest first.
func (s *snapshot) rotation(k Key) []Key {
	for k.Replaces != "" {
		k = s.keys[s.digests[k.Replaces]]
	}
	next := map[string]Key{}
	for _, o := range s.byAge {
		if o.Replaces != "" {
			next[o.Replaces] = o
		}
	}
	out := []Key{k}
	for o, ok := next[k.ID]; ok; o, ok = next[o.ID] {
		out = append(out, o)
	}
	return out
}

// ListRotation returns a platform key, the keys from which it was rotated and those that were
// rotated from it, the oldest first. It is empty if no key has the id.
func ListRotation(ctx context.Context, pool *pgxpool.Pool, id string) ([]KeyEntry, error) {
	var out []KeyEntry
	parsed, _ := form.CanonicalUUID(id)
	err := view(ctx, pool, nil, func(s *snapshot) {
		named, ok := s.keys[s.digests[parsed]]
		if !ok || !named.Platform() {
			return
		}
		for _, k := range s.rotation(named) {
			out = append(out, s.entry(k))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the rotation of a key: %w", err)
	}
	return out, nil
}

// SeedGrant gives a platform key and all keys of its rotation the agencies and the quota of
// a registry file, except keys for which own is true. Nil leaves a value unchanged. withheld
// are agencies that the file names and that an operator has withdrawn: they stay withdrawn.
func (t *Tx) SeedGrant(ctx context.Context, k Key, agencyIDs []string, reads *int64, own func(Key) bool) (withheld []string, err error) {
	for _, o := range t.rotation(k) {
		if o.ID != k.ID && own(o) {
			continue
		}
		agencies := agencyIDs
		if agencies != nil {
			agencies = without(agencies, o.Withdrawn)
			withheld = with(withheld, without(agencyIDs, agencies))
		}
		if err := t.q.UpdateGrant(ctx, db.UpdateGrantParams{ID: o.ID, Agencies: agencies, ReadsPerMinute: reads}); err != nil {
			return nil, fmt.Errorf("changing the agencies of key %s: %w", o.ID, err)
		}
	}
	return withheld, nil
}

// with returns a list with the missing ones of others.
func with(list, others []string) []string {
	out := append([]string{}, list...)
	for _, o := range others {
		if !slices.Contains(out, o) {
			out = append(out, o)
		}
	}
	return out
}

// without returns a list without others. It is never nil.
func without(list, others []string) []string {
	out := []string{}
	for _, o := range list {
		if !slices.Contains(others, o) {
			out = append(out, o)
		}
	}
	return out
}
