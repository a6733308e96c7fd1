package identity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/form"
	"quittance/internal/identity/internal/db"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Clerk takes cash at a counter of an agency.
type Clerk struct {
	AgencyID string
	// Code identifies the clerk within the agency. Sessions and events hold it, so it never
	// changes.
	Code string
	Name string
	// Counter is the desk or place.
	Counter string
	// Active is false for a clerk whose keys are not valid at present.
	Active bool
	// PaymentLimit is the largest total of one payment that the clerk may put on record,
	// DayLimit the largest sum of a local day in a mode, over all keys of the clerk. They
	// are minor units of XAF; zero is no limit. The processors hold them.
	PaymentLimit, DayLimit int64
	CreatedAt              time.Time
	// Forged means that the row of the clerk is not as it was signed: the clerk takes no cash.
	Forged bool
}

// InForce reports whether the clerk's keys may be valid.
func (c Clerk) InForce() bool { return c.Active && !c.Forged }

func toClerk(r clerkRow, forged bool) Clerk {
	return Clerk{
		AgencyID: r.AgencyID, Code: r.Code, Name: r.Name, Counter: r.Counter, Active: r.Active,
		PaymentLimit: r.PaymentLimit, DayLimit: r.DayLimit, CreatedAt: r.CreatedAt, Forged: forged,
	}
}

const maxName = 200

// MaxClerkLimit is the largest limit of a clerk, in minor units.
const MaxClerkLimit = 1 << 53

// ClerkEntry is a clerk as operators see it.
type ClerkEntry struct {
	Clerk
	Agency string // its slug
	Keys   []Key  // oldest first
}

// Ref names the clerk among all clerks: impots/c01.
func (c ClerkEntry) Ref() string { return c.Agency + "/" + c.Code }

// MintedClerkKey is a new key of a clerk with its secret. The secret is not stored: show
// it once.
type MintedClerkKey struct {
	ClerkEntry
	Key    Key
	Secret secret.Text
}

// ClerkRequest asks for a key of a clerk.
type ClerkRequest struct {
	Agency string // by id or slug
	Code   string
	// Name and Counter are required for a new clerk. An empty one leaves that of a known
	// clerk unchanged.
	Name, Counter string
	Live          bool
}

// ListClerks lists all clerks by agency and code.
func ListClerks(ctx context.Context, pool *pgxpool.Pool) ([]ClerkEntry, error) {
	var out []ClerkEntry
	err := view(ctx, pool, nil, func(s *snapshot) {
		for _, c := range s.clerks {
			out = append(out, s.clerkEntry(c))
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing clerks: %w", err)
	}
	slices.SortFunc(out, func(a, b ClerkEntry) int { return strings.Compare(a.Ref(), b.Ref()) })
	return out, nil
}

// AddClerk creates a key of a clerk, and the clerk if the agency has none with that code.
// now is the time of the service's clock. A refusal is an *operation.Error with the field
// agency, code, name or counter. After an error nothing has changed.
func AddClerk(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, req ClerkRequest, now time.Time) (MintedClerkKey, error) {
	var minted MintedClerkKey
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		agency, err := t.agency(req.Agency)
		if err != nil {
			return err
		}
		known, _ := t.findClerk(agency.Slug, req.Code)
		clerk := Clerk{AgencyID: agency.ID, Code: req.Code, Name: cmp.Or(req.Name, known.Name), Counter: cmp.Or(req.Counter, known.Counter)}
		switch {
		case !registry.IsSlug(clerk.Code):
			return operation.Refuse("clerk.code_malformed", "code", nil)
		case !form.IsLine(clerk.Name, maxName):
			return operation.Refuse("clerk.name_malformed", "name", operation.Args{"most": maxName})
		case !form.IsLine(clerk.Counter, maxName):
			return operation.Refuse("clerk.counter_malformed", "counter", operation.Args{"most": maxName})
		}
		key := Key{Live: req.Live, ClerkAgencyID: agency.ID, ClerkCode: req.Code}
		if others := t.inForce(key); len(others) >= MaxKeys {
			return operation.Refuse("clerk.too_many_keys", "code", operation.Args{"clerk": known.Ref(), "live": req.Live, "keys": described(others)})
		}
		if err := t.PutClerk(ctx, clerk, ClerkSettings{}); err != nil {
			return err
		}
		k, err := t.mint(ctx, key)
		if err != nil {
			return err
		}
		minted.Key, minted.Secret = k.Key, k.Secret
		minted.ClerkEntry, _ = t.findClerk(agency.Slug, req.Code)
		return t.record(ctx, actor, "clerk.add_key", k.Key, map[string]any{"clerk": minted.Ref()})
	})
	if err != nil {
		return MintedClerkKey{}, fmt.Errorf("adding a clerk: %w", err)
	}
	return minted, nil
}

// RevokeClerkKeys revokes keys, on every instance within a second: the key with an id,
// or for AGENCY/CODE all keys of that clerk. ended are the keys that were in force until
// now. now is the time of the service's clock. A refusal is an *operation.Error with the
// field id. After an error nothing has changed.
func RevokeClerkKeys(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, which string, now time.Time) (clerk ClerkEntry, ended []Key, err error) {
	err = change(ctx, pool, keys, now, func(t *Tx) error {
		var keys []Key
		if clerk, keys, err = t.clerkKeys(which); err != nil {
			return err
		}
		for _, k := range keys {
			if !k.InForce(now) {
				continue
			}
			e, err := t.end(ctx, k, 0)
			if err == nil {
				err = t.record(ctx, actor, "clerk.revoke_key", k, map[string]any{"clerk": clerk.Ref()})
			}
			if err != nil {
				return err
			}
			ended = append(ended, e.Key)
		}
		clerk, _ = t.findClerk(clerk.Agency, clerk.Code)
		return nil
	})
	if err != nil {
		return ClerkEntry{}, nil, fmt.Errorf("revoking a clerk's key: %w", err)
	}
	return clerk, ended, nil
}

// clerkKeys finds the keys that RevokeClerkKeys revokes.
func (t *Tx) clerkKeys(which string) (ClerkEntry, []Key, error) {
	if agency, code, ok := strings.Cut(which, "/"); ok {
		c, found := t.findClerk(agency, code)
		if !found {
			return c, nil, operation.Refuse("clerk.unknown", "id", nil)
		}
		return c, c.Keys, nil
	}
	id, ok := form.CanonicalUUID(which)
	if !ok {
		return ClerkEntry{}, nil, operation.Refuse("clerk.not_a_name", "id", nil)
	}
	if k := t.keys[t.digests[id]]; k.ClerkCode != "" {
		return t.clerkEntry(t.clerks[k.clerk()]), []Key{k}, nil
	}
	return ClerkEntry{}, nil, operation.Refuse("clerk.key_unknown", "id", operation.Args{"id": id})
}

// ClerkSettings are what is changed of a clerk. Nil leaves a known clerk as it is; a new
// one is active and has no limits then.
type ClerkSettings struct {
	Active                 *bool
	PaymentLimit, DayLimit *int64 // zero is no limit
}

// PutClerk stores a clerk with settings, which replace those in c.
func (t *Tx) PutClerk(ctx context.Context, c Clerk, with ClerkSettings) error {
	if err := t.q.UpsertClerk(ctx, db.UpsertClerkParams{
		AgencyID: c.AgencyID, Code: c.Code, Name: c.Name, Counter: c.Counter, Active: with.Active,
		PaymentLimit: with.PaymentLimit, DayLimit: with.DayLimit, CreatedAt: t.tx.Now,
	}); err != nil {
		return fmt.Errorf("storing the clerk: %w", err)
	}
	return nil
}

// LimitClerk sets the limits of a clerk, AGENCY/CODE, for every instance within a second.
// A limit that is nil stays as it is; zero is no limit. now is the time of the service's
// clock. A refusal is an *operation.Error with the field id, per-payment or per-day. After
// an error nothing has changed.
func LimitClerk(ctx context.Context, pool *pgxpool.Pool, keys *secret.Keys, actor operation.Actor, which string, perPayment, perDay *int64, now time.Time) (ClerkEntry, error) {
	var limited ClerkEntry
	err := change(ctx, pool, keys, now, func(t *Tx) error {
		agency, code, _ := strings.Cut(which, "/")
		known, ok := t.findClerk(agency, code)
		detail := map[string]any{}
		for field, limit := range map[string]*int64{"per-payment": perPayment, "per-day": perDay} {
			if limit == nil {
				continue
			}
			if *limit < 0 || *limit > MaxClerkLimit {
				return operation.Refuse("clerk.limit_out_of_range", field, operation.Args{"most": int64(MaxClerkLimit)})
			}
			detail[field] = *limit
		}
		if !ok {
			return operation.Refuse("clerk.unknown", "id", nil)
		}
		if err := t.PutClerk(ctx, known.Clerk, ClerkSettings{PaymentLimit: perPayment, DayLimit: perDay}); err != nil {
			return err
		}
		if _, err := t.reread(ctx, ""); err != nil {
			return err
		}
		limited, _ = t.findClerk(agency, code)
		return operation.Record(ctx, t.tx, actor, t.tx.Now, operation.Entry{Action: "clerk.limit", Subject: known.Ref(), AgencyID: known.AgencyID, Detail: detail})
	})
	if err != nil {
		return ClerkEntry{}, fmt.Errorf("limiting a clerk: %w", err)
	}
	return limited, nil
}

// Clerk returns a clerk of an agency, whether the clerk is active or not.
func (i *Identities) Clerk(agencyID, code string) (Clerk, bool) {
	c, ok := i.current.Load().clerks[clerkID{agencyID, code}]
	return c, ok
}

func (s *snapshot) findClerk(slug, code string) (ClerkEntry, bool) {
	for _, c := range s.clerks {
		if c.Code == code && s.registry.Agencies[c.AgencyID].Slug == slug {
			return s.clerkEntry(c), true
		}
	}
	return ClerkEntry{}, false
}

func (s *snapshot) clerkEntry(c Clerk) ClerkEntry {
	e := ClerkEntry{Clerk: c, Agency: s.registry.Agencies[c.AgencyID].Slug}
	for _, k := range s.byAge {
		if k.clerk() == (clerkID{c.AgencyID, c.Code}) {
			e.Keys = append(e.Keys, k)
		}
	}
	return e
}
