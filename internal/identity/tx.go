package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Tx changes identities within a transaction of the registry.
type Tx struct {
	tx     *registry.Tx // nil: read only
	reg    *registry.Snapshot
	q      *db.Queries
	keys   []Key // oldest first
	rows   map[registry.Digest]Key
	reads  map[string]*int32 // quotas of platform keys, as they are stored
	clerks []Clerk           // by agency and code
}

// Within begins to change identities in a transaction of the registry.
func Within(ctx context.Context, tx *registry.Tx) (*Tx, error) {
	t := &Tx{tx: tx, reg: tx.Before, q: db.New(tx)}
	return t, t.read(ctx)
}

// change runs do in a transaction of its own.
func change(ctx context.Context, pool *pgxpool.Pool, now time.Time, do func(*Tx) error) error {
	return registry.Change(ctx, pool, nil, now, func(tx *registry.Tx) error {
		t, err := Within(ctx, tx)
		if err != nil {
			return err
		}
		return do(t)
	})
}

// read reads all identities as they are now.
func (t *Tx) read(ctx context.Context) error {
	clerks, err := t.q.Clerks(ctx)
	if err != nil {
		return fmt.Errorf("reading clerks: %w", err)
	}
	keys, err := t.q.Keys(ctx)
	if err != nil {
		return fmt.Errorf("reading keys: %w", err)
	}
	t.clerks, t.keys, t.rows, t.reads = nil, nil, map[registry.Digest]Key{}, map[string]*int32{}
	for _, r := range clerks {
		t.clerks = append(t.clerks, toClerk(r))
	}
	for _, r := range keys {
		k := toKey(r)
		t.keys = append(t.keys, k)
		t.rows[registry.Digest(r.Hash)], t.reads[k.ID] = k, r.ReadsPerMinute
	}
	return nil
}

// KeyBySecret finds a key by its secret.
func (t *Tx) KeyBySecret(s secret.Text) (Key, bool) {
	k, ok := t.rows[registry.DigestOf(s)]
	return k, ok
}

// InForce counts the keys in force of a key's holder, of its mode. Those of the
// platform are not counted.
func (t *Tx) InForce(k Key) int { return len(t.inForce(k)) }

func (t *Tx) inForce(of Key) (out []Key) {
	if of.Platform() {
		return nil
	}
	for _, k := range t.keys {
		if k.SameHolder(of) && k.Live == of.Live && k.InForce(t.tx.Now) {
			out = append(out, k)
		}
	}
	return out
}

// AddKey stores a key of somebody's with a secret, and gives it an id. reads is
// the quota of a platform key; nil: the default.
func (t *Tx) AddKey(ctx context.Context, k Key, s secret.Text, reads *int32) (id string, err error) {
	digest := registry.DigestOf(s)
	row := db.InsertKeyParams{
		ID: newID(), Hash: digest[:], Live: k.Live, Agencies: append([]string{}, k.AgencyIDs...), ReadsPerMinute: reads, CreatedAt: t.tx.Now,
		ApplicationID: given(k.ApplicationID), ClerkAgencyID: given(k.ClerkAgencyID), ClerkCode: given(k.ClerkCode),
	}
	if err := t.q.InsertKey(ctx, row); err != nil {
		return "", fmt.Errorf("storing the key: %w", err)
	}
	return row.ID, nil
}

func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// UpdateGrant changes what a platform key is granted: nil stays as it is.
func (t *Tx) UpdateGrant(ctx context.Context, id string, agencyIDs []string, reads *int32) error {
	return t.q.UpdateGrant(ctx, db.UpdateGrantParams{ID: id, Agencies: agencyIDs, ReadsPerMinute: reads})
}

// mint makes a new key of the holder, mode and grants of another.
func (t *Tx) mint(ctx context.Context, like Key, reads *int32) (MintedKey, error) {
	s := like.family().mint(like.Live)
	id, err := t.AddKey(ctx, like, s, reads)
	if err != nil {
		return MintedKey{}, err
	}
	e, err := t.again(ctx, id)
	return MintedKey{KeyEntry: e, Secret: s}, err
}

// end lets a key end after a while, or revokes it when that is zero.
func (t *Tx) end(ctx context.Context, k Key, after time.Duration) (KeyEntry, error) {
	at := t.tx.Now.Add(after)
	var err error
	if after == 0 {
		err = t.q.RevokeKey(ctx, db.RevokeKeyParams{ID: k.ID, RevokedAt: &at})
	} else {
		err = t.q.EndKey(ctx, db.EndKeyParams{ID: k.ID, EndsAt: &at})
	}
	if err != nil {
		return KeyEntry{}, fmt.Errorf("ending key %s: %w", k.ID, err)
	}
	return t.again(ctx, k.ID)
}

// again is a key as the database has it now.
func (t *Tx) again(ctx context.Context, id string) (KeyEntry, error) {
	if err := t.read(ctx); err != nil {
		return KeyEntry{}, err
	}
	i := slices.IndexFunc(t.keys, func(k Key) bool { return k.ID == id })
	return t.entry(t.keys[i]), nil
}

// entry is an API key with the names of its holder.
func (t *Tx) entry(k Key) KeyEntry {
	e, agencies := KeyEntry{Key: k}, k.AgencyIDs
	if a, ok := t.reg.Applications[k.ApplicationID]; ok {
		e.Application, e.Inactive, e.ReadsPerMinute, agencies = a.Name, !a.Active, a.ReadsPerMinute, []string{a.AgencyID}
	}
	for _, id := range agencies {
		if a, ok := t.reg.Agencies[id]; ok {
			e.Agencies = append(e.Agencies, a.Slug)
		}
	}
	return e
}

func (t *Tx) record(ctx context.Context, actor operation.Actor, action string, k Key, detail map[string]any) error {
	return operation.Record(ctx, t.tx, actor, t.tx.Now, operation.Entry{Action: action, Subject: k.ID, Detail: detail})
}
