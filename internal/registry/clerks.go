package registry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// ErrClerkInactive is a reason for ErrUnauthorized.
var ErrClerkInactive = fmt.Errorf("%w: its clerk is not active", ErrUnauthorized)

const (
	prefixClerkTest = "ck_test_"
	prefixClerkLive = "ck_live_"
)

// presentedClerk is what a clerk's key looks like at all, as presented.
var presentedClerk = regexp.MustCompile(`^ck_(?:test|live)_[0-9A-Za-z]{20,200}$`)

// Clerk takes cash at a counter of an agency.
type Clerk struct {
	AgencyID string
	// Code tells the agency's clerks apart, in sessions and events too, for ever.
	Code string
	Name string
	// Counter is the desk or place.
	Counter string
	// Active is false for a clerk whose keys open nothing meanwhile.
	Active    bool
	CreatedAt time.Time
}

// ClerkKey is a key of a clerk, without its secret.
type ClerkKey struct {
	ID         string
	Live       bool
	AgencyID   string
	ClerkCode  string
	CreatedAt  time.Time
	RevokedAt  time.Time // zero: not revoked
	LastUsedAt time.Time // to the second, some seconds late; zero: never
}

// InForce tells whether the key opens anything, its clerk being active.
func (k ClerkKey) InForce() bool { return k.RevokedAt.IsZero() }

// ClerkPrincipal is the clerk who presented a key, and the mode that it opens.
type ClerkPrincipal struct {
	Clerk
	KeyID string
	Live  bool
	// AgencyName is what citizens call the agency.
	AgencyName string
}

// AuthenticateClerk finds whose a clerk's key is, as AuthenticateKey does. Errors
// are ErrUnauthorized.
func (r *Registry) AuthenticateClerk(key string) (ClerkPrincipal, error) {
	if !presentedClerk.MatchString(key) {
		return ClerkPrincipal{}, ErrKeyUnknown
	}
	found, ok := r.current.Load().clerkKeys[sha256.Sum256([]byte(key))]
	if !ok || found.Live != strings.HasPrefix(key, prefixClerkLive) {
		return ClerkPrincipal{}, ErrKeyUnknown
	}
	return r.clerkOf(found)
}

// ClerkByKey finds whose key has that id: for who has presented the key before.
// It notes the use of the key. Errors are ErrUnauthorized.
func (r *Registry) ClerkByKey(keyID string) (ClerkPrincipal, error) {
	s := r.current.Load()
	found, ok := s.clerkKeys[s.clerkKeyIDs[keyID]]
	if !ok || found.ID != keyID {
		return ClerkPrincipal{}, ErrKeyUnknown
	}
	return r.clerkOf(found)
}

func (r *Registry) clerkOf(k ClerkKey) (ClerkPrincipal, error) {
	s := r.current.Load()
	clerk := s.clerks[codeKey{k.AgencyID, k.ClerkCode}]
	switch {
	case !k.InForce():
		return ClerkPrincipal{}, ErrKeyRevoked
	case !clerk.Active:
		return ClerkPrincipal{}, ErrClerkInactive
	}
	r.clerkUses.note(k.ID, r.cfg.Now())
	return ClerkPrincipal{Clerk: clerk, KeyID: k.ID, Live: k.Live, AgencyName: s.agencies[k.AgencyID].Name}, nil
}

// TakesCash says whether somebody can take cash for the agency in that mode: an
// active clerk with a key in force.
func (r *Registry) TakesCash(agencyID string, live bool) bool {
	return r.current.Load().cashDesks[desk{agencyID, live}]
}

// desk is where an agency takes cash, of one mode.
type desk struct {
	agencyID string
	live     bool
}

// ApplicationsOf are the ids of an agency's applications, active or not, sorted.
func (r *Registry) ApplicationsOf(agencyID string) []string {
	return slices.Clone(r.current.Load().byAgency[agencyID])
}

func (s *snapshot) loadClerks(ctx context.Context, q *db.Queries, _ *secret.Keys) error {
	clerks, err := q.Clerks(ctx)
	if err != nil {
		return fmt.Errorf("reading clerks: %w", err)
	}
	for _, r := range clerks {
		s.clerks[codeKey{r.AgencyID, r.Code}] = toClerk(r)
	}
	keys, err := q.ClerkKeys(ctx)
	if err != nil {
		return fmt.Errorf("reading clerks' keys: %w", err)
	}
	for _, r := range keys {
		s.clerkKeys[hash(r.Hash)] = toClerkKey(r)
		s.clerkKeyIDs[r.ID] = hash(r.Hash)
		if k := toClerkKey(r); k.InForce() && s.clerks[codeKey{k.AgencyID, k.ClerkCode}].Active {
			s.cashDesks[desk{k.AgencyID, k.Live}] = true
		}
	}
	return nil
}

func toClerk(r db.Clerk) Clerk {
	return Clerk{AgencyID: r.AgencyID, Code: r.Code, Name: r.Name, Counter: r.Counter, Active: r.Active, CreatedAt: r.CreatedAt.UTC()}
}

func toClerkKey(r db.ClerkKey) ClerkKey {
	return ClerkKey{
		ID: r.ID, Live: r.Live, AgencyID: r.AgencyID, ClerkCode: r.ClerkCode,
		CreatedAt: r.CreatedAt.UTC(), RevokedAt: value(r.RevokedAt).UTC(), LastUsedAt: value(r.LastUsedAt).UTC(),
	}
}

// ClerkEntry is a clerk as operators see it.
type ClerkEntry struct {
	Clerk
	Agency string     // its slug
	Keys   []ClerkKey // oldest first
}

// Ref names the clerk among all: impots/c01.
func (c ClerkEntry) Ref() string { return c.Agency + "/" + c.Code }

// MintedClerkKey is a new key of a clerk with its secret, which is stored
// nowhere: to be shown once.
type MintedClerkKey struct {
	ClerkEntry
	Key    ClerkKey
	Secret secret.Text
}

// ClerkRequest says whom to give a key.
type ClerkRequest struct {
	Agency string // by id or slug
	Code   string
	// Name and Counter of a new clerk; of a known one what they become, unless
	// empty.
	Name, Counter string
	Live          bool
}

// ListClerks lists all clerks by agency and code.
func ListClerks(ctx context.Context, pool *pgxpool.Pool) ([]ClerkEntry, error) {
	var d *desks
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		d, err = readDesks(ctx, db.New(tx))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing clerks: %w", err)
	}
	slices.SortFunc(d.clerks, func(a, b ClerkEntry) int { return strings.Compare(a.Ref(), b.Ref()) })
	return d.clerks, nil
}

// AddClerk gives a clerk a key; a clerk whom the agency does not have yet comes
// with it. now is the service's clock. Errors that are the operator's to mend are
// a KeyError, with the fields agency, code, name and counter; whatever the error,
// nothing changed.
func AddClerk(ctx context.Context, pool *pgxpool.Pool, req ClerkRequest, now time.Time) (MintedClerkKey, error) {
	var minted MintedClerkKey
	err := changeDesks(ctx, pool, func(d *desks) error {
		agency, err := d.agency(req.Agency)
		if err != nil {
			return err
		}
		known, found := d.find(agency.Slug, req.Code)
		if req.Name == "" {
			req.Name = known.Name
		}
		if req.Counter == "" {
			req.Counter = known.Counter
		}
		switch {
		case !slugPattern.MatchString(req.Code):
			return keyError("code", "must be lower-case letters, digits and hyphens, a letter first, at most 63")
		case !form.IsLine(req.Name, maxName):
			return keyError("name", "must be 1 to %d printable characters; a new clerk needs one", maxName)
		case !form.IsLine(req.Counter, maxName):
			return keyError("counter", "must be 1 to %d printable characters: the desk or place; a new clerk needs one", maxName)
		}
		if inForce := known.inForce(req.Live); found && len(inForce) >= maxKeys {
			return keyError("code", "%s has %d %s keys in force already (%s), and that is the most; end one with `quittance clerks revoke KEY_ID`",
				known.Ref(), len(inForce), mode(req.Live), strings.Join(inForce, ", "))
		}
		if err := d.q.UpsertClerk(ctx, db.UpsertClerkParams{AgencyID: agency.ID, Code: req.Code, Name: req.Name, Counter: req.Counter, CreatedAt: now}); err != nil {
			return fmt.Errorf("storing the clerk: %w", err)
		}
		prefix := prefixClerkTest
		if req.Live {
			prefix = prefixClerkLive
		}
		id := newID()
		minted.Secret = secret.Mint(prefix)
		digest := sha256.Sum256([]byte(minted.Secret.Reveal()))
		if err := d.q.InsertClerkKey(ctx, db.InsertClerkKeyParams{
			ID: id, Hash: digest[:], AgencyID: agency.ID, ClerkCode: req.Code, Live: req.Live, CreatedAt: now,
		}); err != nil {
			return fmt.Errorf("storing the key: %w", err)
		}
		fresh, err := readDesks(ctx, d.q)
		if err != nil {
			return err
		}
		minted.ClerkEntry, _ = fresh.find(agency.Slug, req.Code)
		for _, k := range minted.Keys {
			if k.ID == id {
				minted.Key = k
			}
		}
		return nil
	})
	if err != nil {
		return MintedClerkKey{}, fmt.Errorf("adding a clerk: %w", err)
	}
	return minted, nil
}

// RevokeClerkKeys ends keys for good, on every instance within a second: the one
// with an id, or with AGENCY/CODE all that the clerk has. ended are those that
// were in force until now. now is the service's clock. Errors are as with
// AddClerk, with the field id.
func RevokeClerkKeys(ctx context.Context, pool *pgxpool.Pool, which string, now time.Time) (clerk ClerkEntry, ended []ClerkKey, err error) {
	err = changeDesks(ctx, pool, func(d *desks) error {
		var keys []ClerkKey
		if agency, code, ok := strings.Cut(which, "/"); ok {
			found := false
			if clerk, found = d.find(agency, code); !found {
				return keyError("id", "no agency has such a clerk; `quittance clerks list` shows them as AGENCY/CODE")
			}
			keys = clerk.Keys
		} else {
			id, ok := form.CanonicalUUID(which)
			if !ok {
				return keyError("id", "that is neither AGENCY/CODE, such as impots/c01, nor the id of a key; `quittance clerks list` shows them")
			}
			for _, c := range d.clerks {
				if i := slices.IndexFunc(c.Keys, func(k ClerkKey) bool { return k.ID == id }); i >= 0 {
					clerk, keys = c, c.Keys[i:i+1]
				}
			}
			if keys == nil {
				return keyError("id", "no clerk's key has the id %s; `quittance clerks list` shows them", id)
			}
		}
		for _, k := range keys {
			if !k.InForce() {
				continue
			}
			if err := d.q.RevokeClerkKey(ctx, db.RevokeClerkKeyParams{ID: k.ID, RevokedAt: &now}); err != nil {
				return fmt.Errorf("ending key %s: %w", k.ID, err)
			}
			k.RevokedAt = now
			ended = append(ended, k)
		}
		fresh, err := readDesks(ctx, d.q)
		if err == nil {
			clerk, _ = fresh.find(clerk.Agency, clerk.Code)
		}
		return err
	})
	if err != nil {
		return ClerkEntry{}, nil, fmt.Errorf("revoking a clerk's key: %w", err)
	}
	return clerk, ended, nil
}

// inForce are the ids of the clerk's keys of a mode that open something.
func (c ClerkEntry) inForce(live bool) (ids []string) {
	for _, k := range c.Keys {
		if k.Live == live && k.InForce() {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// desks are all clerks with their agencies, in one transaction.
type desks struct {
	q        *db.Queries
	agencies []db.Agency
	clerks   []ClerkEntry
}

// changeDesks runs a change as changeKeys does.
func changeDesks(ctx context.Context, pool *pgxpool.Pool, change func(*desks) error) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		q := db.New(tx)
		if _, err := q.LockRevision(ctx); err != nil {
			return fmt.Errorf("locking the registry: %w", err)
		}
		d, err := readDesks(ctx, q)
		if err != nil {
			return err
		}
		return change(d)
	})
}

func readDesks(ctx context.Context, q *db.Queries) (*desks, error) {
	d := &desks{q: q}
	var err error
	if d.agencies, err = q.Agencies(ctx); err != nil {
		return nil, fmt.Errorf("reading agencies: %w", err)
	}
	rows, err := q.Clerks(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading clerks: %w", err)
	}
	keys, err := q.ClerkKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading clerks' keys: %w", err)
	}
	for _, r := range rows {
		e := ClerkEntry{Clerk: toClerk(r)}
		for _, a := range d.agencies {
			if a.ID == r.AgencyID {
				e.Agency = a.Slug
			}
		}
		for _, k := range keys {
			if k.AgencyID == r.AgencyID && k.ClerkCode == r.Code {
				e.Keys = append(e.Keys, toClerkKey(k))
			}
		}
		d.clerks = append(d.clerks, e)
	}
	return d, nil
}

func (d *desks) find(slug, code string) (ClerkEntry, bool) {
	i := slices.IndexFunc(d.clerks, func(c ClerkEntry) bool { return c.Agency == slug && c.Code == code })
	if i < 0 {
		return ClerkEntry{}, false
	}
	return d.clerks[i], true
}

// agency is the one with this id or slug.
func (d *desks) agency(named string) (db.Agency, error) {
	id, _ := form.CanonicalUUID(named)
	var all []string
	for _, a := range d.agencies {
		if a.ID == id || a.Slug == named {
			return a, nil
		}
		all = append(all, a.Slug)
	}
	if len(all) == 0 {
		return db.Agency{}, keyError("agency", "there are no agencies yet: add one with `quittance seed FILE`")
	}
	return db.Agency{}, keyError("agency", "no agency has this id or slug; there are: %s", listing(all))
}
