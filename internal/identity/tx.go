package identity

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// Tx changes identities within a transaction of the registry.
type Tx struct {
	*snapshot // what the database holds now
	tx        *registry.Tx
	q         *db.Queries
}

// Within begins to change identities in a transaction of the registry.
func Within(ctx context.Context, tx *registry.Tx) (*Tx, error) {
	s, err := load(ctx, tx, tx.Before, nil, tx.Forged)
	return &Tx{s, tx, db.New(tx)}, err
}

// change runs do in a transaction of its own.
func change(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, now time.Time, do func(*Tx) error) error {
	return registry.Change(ctx, pool, keys, now, func(tx *registry.Tx) error {
		t, err := Within(ctx, tx)
		if err != nil {
			return err
		}
		return do(t)
	})
}

// view runs show on the identities as they are now. With a verifier it says which rows do not verify.
func view(ctx context.Context, pool *pgxpool.Pool, v *signed.Verifier, show func(*snapshot)) error {
	forged := func(r signed.Row) bool { return v != nil && !r.Verified }
	return registry.View(ctx, pool, "", func(tx pgx.Tx, reg *registry.Snapshot) error {
		s, err := load(ctx, tx, reg, v, forged)
		if err == nil {
			show(s)
		}
		return err
	})
}

// KeyBySecret finds a key by its secret.
func (t *Tx) KeyBySecret(s secret.Text) (Key, bool) {
	k, ok := t.keys[registry.DigestOf(s)]
	return k, ok
}

// InForce counts the keys in force with the holder and mode of a key. It is zero for the
// platform.
func (t *Tx) InForce(k Key) int { return len(t.inForce(k)) }

func (t *Tx) inForce(of Key) (out []Key) {
	if of.Platform() {
		return nil
	}
	for _, k := range t.byAge {
		if k.SameHolder(of) && k.Live == of.Live && k.InForce(t.tx.Now) {
			out = append(out, k)
		}
	}
	return out
}

// AddKey stores a key with the holder, mode, agencies and predecessor of k, and gives it an
// id. reads is the quota of a platform key; nil means the default.
func (t *Tx) AddKey(ctx context.Context, k Key, s secret.Text, reads *int64) (id string, err error) {
	digest := registry.DigestOf(s)
	row := db.InsertKeyParams{
		ID: uuid.Must(uuid.NewV7()).String(), Hash: digest[:], Live: k.Live, Agencies: append([]string{}, k.AgencyIDs...), ReadsPerMinute: reads, CreatedAt: t.tx.Now,
		Withdrawn: append([]string{}, k.Withdrawn...), Replaces: given(k.Replaces),
		ApplicationID: given(k.ApplicationID), ClerkAgencyID: given(k.ClerkAgencyID), ClerkCode: given(k.ClerkCode), StaffID: given(k.StaffID),
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

// mint creates a key with the holder, mode and grants of another, which it replaces if the
// other has an id.
func (t *Tx) mint(ctx context.Context, like Key) (MintedKey, error) {
	s := like.family().mint(like.Live)
	like.Replaces = like.ID
	id, err := t.AddKey(ctx, like, s, like.reads)
	if err != nil {
		return MintedKey{}, err
	}
	e, err := t.reread(ctx, id)
	return MintedKey{KeyEntry: e, Secret: s}, err
}

// end gives a key an end after a time, or revokes it when that is zero.
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
	return t.reread(ctx, k.ID)
}

// reread reads all identities again and returns one API key.
func (t *Tx) reread(ctx context.Context, id string) (KeyEntry, error) {
	s, err := load(ctx, t.tx, t.registry, nil, t.tx.Forged)
	if err != nil {
		return KeyEntry{}, err
	}
	t.snapshot = s
	return t.entry(t.keys[t.digests[id]]), nil
}

func (t *Tx) record(ctx context.Context, actor operation.Actor, action string, k Key, detail map[string]any) error {
	return operation.Record(ctx, t.tx, actor, t.tx.Now, operation.Entry{Action: action, Subject: k.ID, AgencyID: t.agencyOf(k), Detail: detail})
}

// agencyOf returns the agency of the holder of a key; empty for operations and for a platform key of
// several agencies.
func (s *snapshot) agencyOf(k Key) string {
	switch {
	case k.ClerkCode != "":
		return k.ClerkAgencyID
	case k.StaffID != "":
		return s.member(k.StaffID).AgencyID
	case k.ApplicationID != "":
		return s.registry.Applications[k.ApplicationID].AgencyID
	case len(k.AgencyIDs) == 1:
		return k.AgencyIDs[0]
	}
	return ""
}
