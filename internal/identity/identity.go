package identity

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/registry"
	"quittance/internal/secret"
	"quittance/internal/signed"
)

// ErrUnauthorized says that a key is not valid: it is malformed, unknown, revoked or
// ended, or its holder is not active. The errors below wrap it. Callers answer all of
// them with 401 (contract docs/design/decisions.md § 2).
var ErrUnauthorized = errors.New("key is not valid")

// Reasons for ErrUnauthorized, for metrics and logs.
var (
	ErrKeyUnknown          = fmt.Errorf("%w: unknown", ErrUnauthorized)
	ErrKeyRevoked          = fmt.Errorf("%w: revoked", ErrUnauthorized)
	ErrKeyEnded            = fmt.Errorf("%w: rotated, and the overlap is over", ErrUnauthorized)
	ErrApplicationInactive = fmt.Errorf("%w: its application is not active", ErrUnauthorized)
	ErrClerkInactive       = fmt.Errorf("%w: its clerk is not active", ErrUnauthorized)
	ErrKeyDemo             = fmt.Errorf("%w: a secret of the demo registry, which is public", ErrUnauthorized)
	ErrKeyForged           = fmt.Errorf("%w: its row is not as it was signed", ErrUnauthorized)
	ErrStaffInactive       = fmt.Errorf("%w: its holder is not approved, or was revoked", ErrUnauthorized)
)

// ErrStale says that Postgres has not confirmed the identities for MaxAge, so that a
// revocation may be missing. Callers answer 503.
var ErrStale = errors.New("no news from Postgres about revoked keys")

// Config of Identities. Registry, Pool, Keys, Log and Now are required.
type Config struct {
	Registry *registry.Registry
	Pool     *pgxpool.Pool
	// Keys prove sign-ins of clerks (LabelSignIns), in a role that has that key. The rows of people and their keys
	// are verified with those of the registry; one that does not verify opens nothing.
	Keys *secret.Keys
	Log  *slog.Logger
	// Now returns the time in UTC. It decides which rotated keys have ended.
	Now func() time.Time
	// UsesEvery is the interval at which Run writes the last uses of keys; 10 s when zero.
	UsesEvery time.Duration
	// MaxAge is how long keys are valid after Postgres last confirmed them; 15 minutes when
	// zero.
	MaxAge time.Duration
	// PINCost is the cost of bcrypt for new PINs; 12 when zero, with which a comparison takes about a
	// quarter of a second. Tests that are not about it take the least.
	PINCost int
	// Demo accepts the keys of the demo registry, which are public.
	Demo bool
}

// Identities holds all identities in memory. It is safe for concurrent use.
type Identities struct {
	cfg     Config
	age     func() time.Duration // since Postgres confirmed the snapshot
	current atomic.Pointer[snapshot]
	uses    uses
	macs    *secret.MACs // nil in a role that signs no clerk in
}

// LabelSignIns is of the MACs of clerks' sessions and devices in the database, which the ingress writes.
const LabelSignIns = "clerk sign-ins"

// snapshot holds all identities at one revision of the registry. It does not change.
type snapshot struct {
	registry *registry.Snapshot
	keys     map[registry.Digest]Key
	digests  map[string]registry.Digest // by key id
	byAge    []Key                      // oldest first
	clerks   map[clerkID]Clerk
	staff    []Staff                 // oldest first
	contacts map[string]StaffContact // by id of staff
	refused  map[string]bool         // people with an address that does not verify, by id
	cash     map[cashDesk][]string   // names of the counters of active clerks with a key in force; each once, sorted
}

// clerkID names a clerk. The zero value names none.
type clerkID struct{ agencyID, code string }

type cashDesk struct {
	agencyID string
	live     bool
}

// Open reads all identities. From then on they are read together with the registry. It
// returns an error while Postgres is away.
func Open(ctx context.Context, cfg Config) (*Identities, error) {
	if cfg.Registry == nil || cfg.Pool == nil || cfg.Keys == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("opening identities: Registry, Pool, Keys, Log and Now are required")
	}
	cfg.UsesEvery = cmp.Or(cfg.UsesEvery, 10*time.Second)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, 15*time.Minute)
	cfg.PINCost = cmp.Or(cfg.PINCost, 12)
	i := &Identities{cfg: cfg, age: cfg.Registry.Age}
	if cfg.Keys.Holds(secret.Use{Purpose: secret.PurposeMAC, Label: LabelSignIns}) {
		var err error
		if i.macs, err = cfg.Keys.MACs(LabelSignIns); err != nil {
			return nil, fmt.Errorf("opening identities: %w", err)
		}
	}
	err := cfg.Registry.Join(ctx, func(ctx context.Context, tx pgx.Tx, reg *registry.Snapshot) (func(), error) {
		s, err := load(ctx, tx, reg, cfg.Registry.Verifier(), notVerified)
		return func() { i.current.Store(s) }, err
	})
	if err != nil {
		return nil, fmt.Errorf("opening identities: %w", err)
	}
	return i, nil
}

// notVerified is the rule of those who act upon rows: one that does not verify is forged.
func notVerified(r signed.Row) bool { return !r.Verified }

// load reads all identities. forged says of a row that it must not be used.
func load(ctx context.Context, tx pgx.Tx, reg *registry.Snapshot, v *signed.Verifier, forged func(signed.Row) bool) (*snapshot, error) {
	s := &snapshot{
		registry: reg, keys: map[registry.Digest]Key{}, digests: map[string]registry.Digest{},
		clerks: map[clerkID]Clerk{}, cash: map[cashDesk][]string{}, contacts: map[string]StaffContact{}, refused: map[string]bool{},
	}
	if err := errors.Join(
		signed.Read(ctx, tx, v, "clerks", func(r clerkRow, row signed.Row) {
			s.clerks[clerkID{r.AgencyID, r.Code}] = toClerk(r, forged(row))
		}),
		signed.Read(ctx, tx, v, "staff", func(r staffRow, row signed.Row) {
			s.staff = append(s.staff, toStaff(r, forged(row)))
		}),
		s.loadPortals(ctx, tx, v, forged),
		signed.Read(ctx, tx, v, "staff_contacts", func(r contactRow, row signed.Row) {
			if forged(row) {
				s.refused[r.StaffID] = true
				return
			}
			s.contacts[r.StaffID] = toStaffContact(r)
		}),
		signed.Read(ctx, tx, v, "api_keys", func(r keyRow, row signed.Row) {
			k := toKey(r, forged(row))
			s.keys[registry.Digest(r.Hash)], s.digests[r.ID], s.byAge = k, registry.Digest(r.Hash), append(s.byAge, k)
		}),
	); err != nil {
		return nil, err
	}
	for _, k := range s.byAge {
		desk, clerk := cashDesk{k.ClerkAgencyID, k.Live}, s.clerks[k.clerk()]
		if k.RevokedAt.IsZero() && !k.Forged && clerk.InForce() && !slices.Contains(s.cash[desk], clerk.Counter) {
			s.cash[desk] = append(s.cash[desk], clerk.Counter)
		}
	}
	for _, counters := range s.cash {
		slices.Sort(counters)
	}
	return s, nil
}

// Principal is the holder of a presented API key.
type Principal struct {
	KeyID    string
	Live     bool
	Platform bool
	// ApplicationID of an application key; empty for a platform key.
	ApplicationID string
	// AgencyIDs are the agencies for which the key may act: those granted to a platform
	// key, or that of the application.
	AgencyIDs      []string
	ReadsPerMinute int
}

// ClerkPrincipal is the clerk whose key was presented, with the mode of the key.
type ClerkPrincipal struct {
	Clerk
	KeyID string
	Live  bool
	// AgencyName is the name of the agency for citizens, Agency its slug.
	AgencyName, Agency string
	// Device is the id of the remembered device with which the clerk's session ends; empty
	// for none.
	Device string
}

// Ref names the clerk among all clerks: impots/c01.
func (c ClerkPrincipal) Ref() string { return c.Agency + "/" + c.Code }

// Family is a kind of key by its spelling: a prefix for each mode, and 20 to 200 letters
// and digits.
type Family struct {
	Test, Live string // prefixes
	pattern    *regexp.Regexp
}

// The families of keys.
var (
	APIKeys   = Family{"sk_test_", "sk_live_", regexp.MustCompile(`^sk_(?:test|live)_[0-9A-Za-z]{20,200}$`)}
	ClerkKeys = Family{"ck_test_", "ck_live_", regexp.MustCompile(`^ck_(?:test|live)_[0-9A-Za-z]{20,200}$`)}
	// StaffKeys have one spelling for both modes, and are stored as live.
	StaffKeys = Family{"st_", "st_", regexp.MustCompile(`^st_[0-9A-Za-z]{20,200}$`)}
)

// Mode returns the mode of a key of the family; ok is false for any other text.
func (f Family) Mode(key string) (live, ok bool) {
	return strings.HasPrefix(key, f.Live), f.pattern.MatchString(key)
}

// mint makes the secret of a new key.
func (f Family) mint(live bool) secret.Text {
	if live {
		return secret.Mint(f.Live)
	}
	return secret.Mint(f.Test)
}

// AuthenticateKey finds the holder of an API key. It looks the key up by its hash, so
// that its duration reveals nothing about stored keys. It notes the use of the key and
// does not read the database. Errors are ErrUnauthorized and ErrStale.
func (i *Identities) AuthenticateKey(key string) (Principal, error) {
	s := i.current.Load()
	k, err := i.find(s, APIKeys, key)
	if err == nil {
		err = i.use(s, k)
	}
	if err != nil {
		return Principal{}, err
	}
	p := Principal{KeyID: k.ID, Live: k.Live, Platform: k.Platform(), ApplicationID: k.ApplicationID, AgencyIDs: k.AgencyIDs, ReadsPerMinute: k.ReadsPerMinute}
	if !p.Platform {
		a := s.registry.Applications[k.ApplicationID]
		p.AgencyIDs, p.ReadsPerMinute = []string{a.AgencyID}, a.ReadsPerMinute
	}
	return p, nil
}

// AuthenticateClerk finds the holder of a clerk's key in the same way.
func (i *Identities) AuthenticateClerk(key string) (ClerkPrincipal, error) {
	s := i.current.Load()
	k, err := i.find(s, ClerkKeys, key)
	if err != nil {
		return ClerkPrincipal{}, err
	}
	return i.clerk(s, k)
}

// ClerkByKey finds the holder of a clerk's key by the key's id. The clerk must have
// presented the key before. It notes the use of the key. Errors are ErrUnauthorized and
// ErrStale.
func (i *Identities) ClerkByKey(keyID string) (ClerkPrincipal, error) {
	if err := i.Fresh(); err != nil {
		return ClerkPrincipal{}, err
	}
	s := i.current.Load()
	k := s.keys[s.digests[keyID]]
	if k.ClerkCode == "" {
		return ClerkPrincipal{}, ErrKeyUnknown
	}
	return i.clerk(s, k)
}

func (i *Identities) clerk(s *snapshot, k Key) (ClerkPrincipal, error) {
	if err := i.use(s, k); err != nil {
		return ClerkPrincipal{}, err
	}
	agency := s.registry.Agencies[k.ClerkAgencyID]
	return ClerkPrincipal{Clerk: s.clerks[k.clerk()], KeyID: k.ID, Live: k.Live, AgencyName: agency.Name, Agency: agency.Slug}, nil
}

// Fresh returns ErrStale when Postgres has not confirmed the identities for MaxAge. Run of
// the registry makes them fresh again when Postgres is back.
func (i *Identities) Fresh() error {
	if age := i.age(); age > i.cfg.MaxAge {
		return fmt.Errorf("%w for %s; keys are valid for %s without", ErrStale, age.Round(time.Second), i.cfg.MaxAge)
	}
	return nil
}

// find returns the key with this text. A stale snapshot has no key, because it may lack the
// key as well as its revocation.
func (i *Identities) find(s *snapshot, f Family, key string) (Key, error) {
	if err := i.Fresh(); err != nil {
		return Key{}, err
	}
	return s.find(f, key)
}

// find returns the key with this text.
func (s *snapshot) find(f Family, key string) (Key, error) {
	live, ok := f.Mode(key)
	if !ok {
		return Key{}, ErrKeyUnknown
	}
	k, ok := s.keys[sha256.Sum256([]byte(key))]
	if !ok || k.Live != live {
		return Key{}, ErrKeyUnknown
	}
	return k, nil
}

// use notes the use of a valid key. The error says why a key is not valid.
func (i *Identities) use(s *snapshot, k Key) error {
	now := i.cfg.Now()
	if err := s.valid(k, now); err != nil {
		return err
	}
	if k.demo && !i.cfg.Demo {
		return ErrKeyDemo
	}
	i.uses.note(k.ID, now)
	return nil
}

// valid returns an error that says why a key is not valid.
func (s *snapshot) valid(k Key, now time.Time) error {
	state := k.State(now)
	switch {
	case k.Forged:
		return ErrKeyForged
	case state == KeyStateRevoked:
		return ErrKeyRevoked
	case state == KeyStateEnded:
		return ErrKeyEnded
	case k.ClerkCode != "" && !s.clerks[k.clerk()].InForce():
		return ErrClerkInactive
	case k.StaffID != "" && !s.member(k.StaffID).InForce():
		return ErrStaffInactive
	case k.ApplicationID != "" && !s.registry.Applications[k.ApplicationID].Active:
		return ErrApplicationInactive
	}
	return nil
}

// TakesCash reports whether the agency has an active clerk with a key in force in that
// mode.
func (i *Identities) TakesCash(agencyID string, live bool) bool {
	return len(i.Counters(agencyID, live)) > 0
}

// Counters returns the names of the counters at which clerks can take cash for the agency
// in that mode, sorted. Do not change the slice.
func (i *Identities) Counters(agencyID string, live bool) []string {
	return i.current.Load().cash[cashDesk{agencyID, live}]
}
