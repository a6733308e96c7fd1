package cashin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// Prefixes of minted credentials. Partners read both as opaque texts.
const (
	prefixKeyTest    = "ak_test_"
	prefixKeyLive    = "ak_live_"
	prefixSecretTest = "as_test_"
	prefixSecretLive = "as_live_"
	prefixToken      = "oat_"
)

// Pair is an application's access to the surface, without its secrets.
type Pair struct {
	ID            string
	ApplicationID string
	Live          bool
	CreatedAt     time.Time
	RevokedAt     time.Time // zero: in force
}

// Entry is a pair as operators see it.
type Entry struct {
	Pair
	// Application is the name of its application, Agency the slug of its agency.
	Application, Agency string
	// Inactive means that the application is not active: the pair opens nothing then.
	Inactive bool
}

// Minted is a new pair with its secrets, which are shown once.
type Minted struct {
	Entry
	APIKey, SecretKey secret.Text
}

// Create mints the pair of an application that has none in force. application is its id or
// unique name, now the time of the service's clock. A refusal is an *operation.Error with
// the field application. After an error nothing has changed.
func Create(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, application string, live bool, now time.Time) (Minted, error) {
	minted, err := replace(ctx, pool, keys, actor, application, now, func(_ context.Context, t *Tx, current *Pair) (bool, string, error) {
		if current != nil {
			return false, "", operation.Refuse("cashin.in_force", "application", operation.Args{"id": current.ID, "live": current.Live})
		}
		return live, "cashin.create", nil
	})
	if err != nil {
		return Minted{}, fmt.Errorf("creating a pair: %w", err)
	}
	return minted, nil
}

// Rotate replaces the pair of an application by a new one. The old pair and all tokens of
// it end at once. live is the mode of the new pair; nil keeps the mode. Errors are as in
// Create.
func Rotate(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, application string, live *bool, now time.Time) (Minted, error) {
	minted, err := replace(ctx, pool, keys, actor, application, now, func(ctx context.Context, t *Tx, current *Pair) (bool, string, error) {
		if current == nil {
			return false, "", operation.Refuse("cashin.none", "application", nil)
		}
		mode := current.Live
		if live != nil {
			mode = *live
		}
		return mode, "cashin.rotate", t.revoke(ctx, *current)
	})
	if err != nil {
		return Minted{}, fmt.Errorf("rotating a pair: %w", err)
	}
	return minted, nil
}

// replace mints a pair after prepare, which returns its mode and the action to record.
func replace(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, application string, now time.Time, prepare func(context.Context, *Tx, *Pair) (live bool, action string, err error)) (Minted, error) {
	var out Minted
	err := change(ctx, pool, keys, application, now, func(t *Tx, app registry.Application) error {
		var current *Pair
		if p, ok := t.InForce(app.ID); ok {
			current = &p
		}
		live, action, err := prepare(ctx, t, current)
		if err != nil {
			return err
		}
		key, secretKey := prefixKeyTest, prefixSecretTest
		if live {
			key, secretKey = prefixKeyLive, prefixSecretLive
		}
		out = Minted{APIKey: secret.Mint(key), SecretKey: secret.Mint(secretKey)}
		pair, err := t.Add(ctx, app.ID, live, out.APIKey, out.SecretKey)
		if err != nil {
			return err
		}
		out.Entry = t.entry(pair)
		return operation.Record(ctx, t.tx, actor, now, operation.Entry{Action: action, Subject: pair.ID, AgencyID: app.AgencyID, Detail: map[string]any{
			"application": app.ID, "mode": registry.Mode(live),
		}})
	})
	return out, err
}

// Revoke ends the pair of an application and all of its tokens at once. Errors are as in
// Create.
func Revoke(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, application string, now time.Time) (Entry, error) {
	var out Entry
	err := change(ctx, pool, keys, application, now, func(t *Tx, app registry.Application) error {
		p, ok := t.InForce(app.ID)
		if !ok {
			return operation.Refuse("cashin.none", "application", nil)
		}
		if err := t.revoke(ctx, p); err != nil {
			return err
		}
		p.RevokedAt = now
		out = t.entry(p)
		return operation.Record(ctx, t.tx, actor, now, operation.Entry{Action: "cashin.revoke", Subject: p.ID, AgencyID: app.AgencyID, Detail: map[string]any{"application": app.ID}})
	})
	if err != nil {
		return Entry{}, fmt.Errorf("revoking a pair: %w", err)
	}
	return out, nil
}

// List lists all pairs, those of an application together, the newest first.
func List(ctx context.Context, pool *pgxpool.Pool) (out []Entry, err error) {
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, s *registry.Snapshot) error {
		pairs, err := read(ctx, tx)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			out = append(out, entry(s, p.Pair))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing pairs: %w", err)
	}
	return out, nil
}

// DemoPairs lists the pairs in force that are of the demo registry, which everybody can read.
func DemoPairs(ctx context.Context, pool *pgxpool.Pool) (out []Entry, err error) {
	err = registry.View(ctx, pool, "", func(tx pgx.Tx, s *registry.Snapshot) error {
		pairs, err := read(ctx, tx)
		for _, p := range pairs {
			if p.RevokedAt.IsZero() && (secret.IsDemoDigest(p.apiKey) || secret.IsDemoDigest(p.secretKey)) {
				out = append(out, entry(s, p.Pair))
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking for pairs of the demo registry: %w", err)
	}
	return out, nil
}

// Tx changes pairs within a transaction of the registry.
type Tx struct {
	tx    *registry.Tx
	pairs []stored
}

type stored struct {
	Pair
	apiKey, secretKey registry.Digest
}

// Within begins to change pairs in a transaction of the registry.
func Within(ctx context.Context, tx *registry.Tx) (*Tx, error) {
	pairs, err := read(ctx, tx)
	return &Tx{tx, pairs}, err
}

func read(ctx context.Context, tx pgx.Tx) (out []stored, err error) {
	err = signed.Read(ctx, tx, nil, "cashin_pairs", func(r pairRow, _ signed.Row) { out = append(out, toStored(r)) })
	return out, err
}

// pairRow is what is read of a row of cashin_pairs.
type pairRow struct {
	ID, ApplicationID      string
	Live                   bool
	ApiKeyHash, SecretHash []byte //nolint:revive // as the columns are called
	CreatedAt              time.Time
	RevokedAt              *time.Time
}

func toStored(r pairRow) stored {
	p := stored{
		Pair:   Pair{ID: r.ID, ApplicationID: r.ApplicationID, Live: r.Live, CreatedAt: r.CreatedAt},
		apiKey: registry.Digest(r.ApiKeyHash), secretKey: registry.Digest(r.SecretHash),
	}
	if r.RevokedAt != nil {
		p.RevokedAt = *r.RevokedAt
	}
	return p
}

// InForce returns the application's pair in force.
func (t *Tx) InForce(applicationID string) (Pair, bool) {
	i := slices.IndexFunc(t.pairs, func(p stored) bool { return p.ApplicationID == applicationID && p.RevokedAt.IsZero() })
	if i < 0 {
		return Pair{}, false
	}
	return t.pairs[i].Pair, true
}

// ByAPIKey finds a pair, in force or not, by its apiKey. same reports whether it has the
// secretKey.
func (t *Tx) ByAPIKey(apiKey, secretKey secret.Text) (p Pair, same, ok bool) {
	digest := registry.DigestOf(apiKey)
	i := slices.IndexFunc(t.pairs, func(p stored) bool { return p.apiKey == digest })
	if i < 0 {
		return Pair{}, false, false
	}
	return t.pairs[i].Pair, t.pairs[i].secretKey == registry.DigestOf(secretKey), true
}

// Replace makes a given pair the application's pair in force.
func (t *Tx) Replace(ctx context.Context, applicationID string, live bool, apiKey, secretKey secret.Text) error {
	if p, ok := t.InForce(applicationID); ok {
		if err := t.revoke(ctx, p); err != nil {
			return err
		}
	}
	_, err := t.Add(ctx, applicationID, live, apiKey, secretKey)
	return err
}

// Add stores a pair. The application has none in force.
func (t *Tx) Add(ctx context.Context, applicationID string, live bool, apiKey, secretKey secret.Text) (Pair, error) {
	p := stored{
		Pair:   Pair{ID: uuid.Must(uuid.NewV7()).String(), ApplicationID: applicationID, Live: live, CreatedAt: t.tx.Now},
		apiKey: registry.DigestOf(apiKey), secretKey: registry.DigestOf(secretKey),
	}
	err := t.tx.AddCashin(ctx, applicationID)
	if err == nil {
		_, err = t.tx.Exec(ctx, `INSERT INTO cashin_pairs (id, application_id, live, api_key_hash, secret_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
			p.ID, p.ApplicationID, p.Live, p.apiKey[:], p.secretKey[:], p.CreatedAt)
	}
	if err != nil {
		return Pair{}, fmt.Errorf("storing a pair: %w", err)
	}
	t.pairs = append(t.pairs, p)
	return p.Pair, nil
}

// revoke ends a pair and deletes its tokens.
func (t *Tx) revoke(ctx context.Context, p Pair) error {
	_, err := t.tx.Exec(ctx, `UPDATE cashin_pairs SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL`, p.ID, t.tx.Now)
	if err == nil {
		_, err = t.tx.Exec(ctx, `DELETE FROM cashin_tokens WHERE pair_id = $1`, p.ID)
	}
	if err != nil {
		return fmt.Errorf("revoking a pair: %w", err)
	}
	for i := range t.pairs {
		if t.pairs[i].ID == p.ID {
			t.pairs[i].RevokedAt = t.tx.Now
		}
	}
	return nil
}

func (t *Tx) entry(p Pair) Entry { return entry(t.tx.Before, p) }

func entry(s *registry.Snapshot, p Pair) Entry {
	a := s.Applications[p.ApplicationID]
	return Entry{Pair: p, Application: a.Name, Agency: s.Agencies[a.AgencyID].Slug, Inactive: !a.Active}
}

// change runs do in a transaction of its own, for an application by its id or unique name.
func change(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, application string, now time.Time, do func(*Tx, registry.Application) error) error {
	return registry.Change(ctx, pool, keys, now, func(tx *registry.Tx) error {
		app, err := tx.Before.FindClient(application)
		if err != nil {
			return err
		}
		t, err := Within(ctx, tx)
		if err != nil {
			return err
		}
		return do(t, app)
	})
}
