package registry

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
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/checkout/money"
	"quittance/internal/connector"
	"quittance/internal/registry/internal/db"
	"quittance/internal/secret"
)

// ErrUnauthorized says that a key opens nothing: malformed, unknown, revoked,
// ended, or of an application that is not active. The reasons wrap it; callers answer all
// of them with 401 (contract decisions § 2).
var ErrUnauthorized = errors.New("key opens nothing")

// Reasons for ErrUnauthorized, for metrics and logs.
var (
	ErrKeyUnknown          = fmt.Errorf("%w: unknown", ErrUnauthorized)
	ErrKeyRevoked          = fmt.Errorf("%w: revoked", ErrUnauthorized)
	ErrKeyEnded            = fmt.Errorf("%w: rotated, and the overlap is over", ErrUnauthorized)
	ErrApplicationInactive = fmt.Errorf("%w: its application is not active", ErrUnauthorized)
)

const (
	prefixTest = "sk_test_"
	prefixLive = "sk_live_"
)

// presented is what a key looks like at all; the minted ones have 43 digits.
var presented = regexp.MustCompile(`^sk_(?:test|live)_[0-9A-Za-z]{20,200}$`)

const (
	// poll is how long a change may stay unseen when its notification is lost.
	poll = 500 * time.Millisecond
	// patience bounds every question to Postgres.
	patience = 3 * time.Second
	retry    = 250 * time.Millisecond
)

// Config of a Registry.
type Config struct {
	Pool *pgxpool.Pool
	Keys *secret.Keys
	Log  *slog.Logger
	// Now is the time in UTC; it decides which webhook secrets have expired and
	// which rotated keys have ended.
	Now func() time.Time
	// UsesEvery is how often Run writes down when keys were last used; 10 s when
	// zero.
	UsesEvery time.Duration
	// Simulators is where they listen, in developer mode: a missing test account
	// means them then. Empty outside developer mode.
	Simulators string
	// Operators are those whose accounts are known.
	Operators connector.Table
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Registry is the registry in memory. It is safe for concurrent use.
type Registry struct {
	cfg      Config
	current  atomic.Pointer[snapshot]
	syncedAt atomic.Int64 // Unix nanoseconds of the machine's clock
	uses     uses
	// clerkUses are those of clerks' keys.
	clerkUses uses
	reloads   *prometheus.CounterVec
}

// Open reads the registry. It fails while Postgres is away; Run does not.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("opening the registry: Pool, Keys, Log and Now are required")
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	cfg.UsesEvery = cmp.Or(cfg.UsesEvery, 10*time.Second)
	r := &Registry{cfg: cfg}
	with := promauto.With(cfg.Metrics)
	r.reloads = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_registry_reloads_total", Help: "Times the registry was read from Postgres, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "failed"} {
		r.reloads.WithLabelValues(outcome)
	}
	if err := r.reload(ctx); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_registry_age_seconds", Help: "Seconds since Postgres last confirmed that the registry in memory is the current one.",
	}, func() float64 { return r.Age().Seconds() })
	return r, nil
}

// Run follows changes until ctx ends, and returns nil then. A change is seen
// within a second; while Postgres is away the last snapshot stays. It also writes
// down when keys were last used, in batches and once more at the end.
func (r *Registry) Run(ctx context.Context) error {
	var writing sync.WaitGroup
	defer writing.Wait()
	// Beside: a write that hangs must not keep a revocation waiting.
	writing.Go(func() { r.writeUses(ctx) })
	failing := false
	for {
		err := r.follow(ctx, func() {
			if failing {
				r.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "registry is followed again")
			}
			failing = false
		})
		if ctx.Err() != nil {
			return nil
		}
		if !failing {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "registry cannot be followed, going on with what was read", slog.Any("error", err))
		}
		failing = true
		r.reloads.WithLabelValues("failed").Inc()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

// follow listens and polls over one connection until it fails. well is called
// whenever the snapshot is known to be current.
func (r *Registry) follow(ctx context.Context, well func()) error {
	conn, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// It listens: closed, not given back.
		c := conn.Hijack()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(ctx)
	}()
	q := db.New(conn)
	for {
		asking, cancel := context.WithTimeout(ctx, patience)
		revision, err := q.Revision(asking)
		cancel()
		if err != nil {
			return fmt.Errorf("reading the registry's revision: %w", err)
		}
		// Another one, not a later one: a restored backup counts from lower.
		if revision != r.current.Load().revision {
			if err := r.reload(ctx); err != nil {
				return err
			}
		}
		r.syncedAt.Store(time.Now().UnixNano())
		well()
		waiting, cancel := context.WithTimeout(ctx, poll)
		_, err = conn.Conn().WaitForNotification(waiting)
		cancel()
		if err != nil && !pgconn.Timeout(err) {
			return fmt.Errorf("waiting for changes of the registry: %w", err)
		}
	}
}

func (r *Registry) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := r.cfg.Pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	if _, err := conn.Exec(ctx, "LISTEN registry"); err != nil {
		conn.Release()
		return nil, fmt.Errorf("listening for changes of the registry: %w", err)
	}
	return conn, nil
}

func (r *Registry) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var s *snapshot
	err := pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		s, err = load(ctx, db.New(tx), r.cfg.Keys)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the registry: %w", err)
	}
	if len(s.locked) > 0 {
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "secrets of the registry do not open: is a master key missing in QUITTANCE_MASTER_KEYS?", slog.Any("locked", s.locked))
	}
	r.current.Store(s)
	r.syncedAt.Store(time.Now().UnixNano())
	r.reloads.WithLabelValues("ok").Inc()
	return nil
}

// Age is how long ago Postgres confirmed that the snapshot is the current one.
func (r *Registry) Age() time.Duration { return time.Since(time.Unix(0, r.syncedAt.Load())) }

// Principal is who presented a key.
type Principal struct {
	KeyID    string
	Live     bool
	Platform bool
	// ApplicationID of an application key; empty for a platform key.
	ApplicationID string
	// AgencyIDs that the key may act for: those granted to a platform key, the
	// application's own for an application key.
	AgencyIDs      []string
	ReadsPerMinute int
}

// Grants tells whether the principal may act for an agency.
func (p Principal) Grants(agencyID string) bool { return slices.Contains(p.AgencyIDs, agencyID) }

// AuthenticateKey finds who a key belongs to, by its hash: comparing it leaks no
// time that tells anything about a stored key. It notes the use of the key and
// asks nobody. Errors are ErrUnauthorized.
func (r *Registry) AuthenticateKey(key string) (Principal, error) {
	if !presented.MatchString(key) {
		return Principal{}, ErrKeyUnknown
	}
	s := r.current.Load()
	found, ok := s.keys[sha256.Sum256([]byte(key))]
	if !ok || found.Live != strings.HasPrefix(key, prefixLive) {
		return Principal{}, ErrKeyUnknown
	}
	now := r.cfg.Now()
	switch found.State(now) {
	case KeyStateRevoked:
		return Principal{}, ErrKeyRevoked
	case KeyStateEnded:
		return Principal{}, ErrKeyEnded
	case KeyStateActive, KeyStateEnding:
	}
	if found.Platform() {
		r.uses.note(found.ID, now)
		return Principal{KeyID: found.ID, Live: found.Live, Platform: true, AgencyIDs: found.AgencyIDs, ReadsPerMinute: found.ReadsPerMinute}, nil
	}
	a := s.applications[found.ApplicationID]
	if !a.Active {
		return Principal{}, ErrApplicationInactive
	}
	r.uses.note(found.ID, now)
	return Principal{KeyID: found.ID, Live: found.Live, ApplicationID: a.ID, AgencyIDs: []string{a.AgencyID}, ReadsPerMinute: a.ReadsPerMinute}, nil
}

// Keys lists all API keys, oldest first.
func (r *Registry) Keys() []Key {
	s := r.current.Load()
	out := make([]Key, len(s.keyOrder))
	for i, h := range s.keyOrder {
		out[i] = s.keys[h]
	}
	return out
}

// Platform is what belongs to the platform as a whole.
func (r *Registry) Platform() Platform { return r.current.Load().platform }

// Agency finds an agency by its id.
func (r *Registry) Agency(id string) (Agency, bool) {
	a, ok := r.current.Load().agencies[id]
	return a, ok
}

// AgencyBySlug finds an agency by its slug.
func (r *Registry) AgencyBySlug(slug string) (Agency, bool) {
	s := r.current.Load()
	a, ok := s.agencies[s.slugs[slug]]
	return a, ok
}

// Agencies lists all agencies by slug.
func (r *Registry) Agencies() []Agency {
	s := r.current.Load()
	out := make([]Agency, 0, len(s.agencies))
	for _, a := range s.agencies {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Agency) int { return strings.Compare(a.Slug, b.Slug) })
	return out
}

// Application finds an application by its id, active or not.
func (r *Registry) Application(id string) (Application, bool) {
	return r.resolved(r.current.Load().applications[id])
}

// IntegratorOf finds the application that gets an agency's platform-key sessions.
func (r *Registry) IntegratorOf(agencyID string) (Application, bool) {
	s := r.current.Load()
	return r.resolved(s.applications[s.integrators[agencyID]])
}

// ApplicationByCashinKey finds the application whose access to the deprecated
// surface has this apiKey.
func (r *Registry) ApplicationByCashinKey(apiKey string) (Application, bool) {
	s := r.current.Load()
	return r.resolved(s.applications[s.cashin[sha256.Sum256([]byte(apiKey))]])
}

func (r *Registry) resolved(a Application) (Application, bool) {
	if a.Cashin != nil && strings.HasPrefix(a.Cashin.WebhookURL, simulatorScheme) {
		access := *a.Cashin
		access.WebhookURL = fromStored(access.WebhookURL, r.cfg.Simulators)
		a.Cashin = &access
	}
	return a, a.ID != ""
}

// Applications lists all applications by id.
func (r *Registry) Applications() []Application {
	s := r.current.Load()
	out := make([]Application, 0, len(s.applications))
	for _, a := range s.applications {
		a, _ = r.resolved(a)
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b Application) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// AgencyOfApplication finds the agency that an application belongs to.
func (r *Registry) AgencyOfApplication(applicationID string) (Agency, bool) {
	s := r.current.Load()
	a, ok := s.agencies[s.applications[applicationID].AgencyID]
	return a, ok
}

// Endpoints are those that receive an event now: the application's and, for a
// session that a platform key made, the platform's. Whether one is suspended is
// not asked here: its deliveries are made and held.
func (r *Registry) Endpoints(applicationID string, platform, live bool, event string) []WebhookEndpoint {
	s, now := r.current.Load(), r.cfg.Now()
	var out []WebhookEndpoint
	add := func(owner string) {
		for _, id := range s.byOwner[owner] {
			if e := s.endpoints[id]; e.Wants(live, event) {
				out = append(out, e.at(now, r.cfg.Simulators))
			}
		}
	}
	if applicationID != "" {
		add(applicationID)
	}
	if platform {
		add("")
	}
	return out
}

// Endpoint finds a webhook endpoint by its id.
func (r *Registry) Endpoint(id string) (WebhookEndpoint, bool) {
	e, ok := r.current.Load().endpoints[id]
	if !ok {
		return WebhookEndpoint{}, false
	}
	return e.at(r.cfg.Now(), r.cfg.Simulators), true
}

// AllEndpoints lists every webhook endpoint by id.
func (r *Registry) AllEndpoints() []WebhookEndpoint {
	s, now := r.current.Load(), r.cfg.Now()
	out := make([]WebhookEndpoint, len(s.endpointIDs))
	for i, id := range s.endpointIDs {
		out[i] = s.endpoints[id].at(now, r.cfg.Simulators)
	}
	return out
}

// ERP is how an agency's ERP of a mode is reached; false when it has none.
func (r *Registry) ERP(agencyID string, live bool) (ERPSettings, bool) {
	e, ok := r.current.Load().erp[modeKey{agencyID, live}]
	e.BaseURL = fromStored(e.BaseURL, r.cfg.Simulators)
	return e, ok
}

// Service finds a service of an agency's catalogue by its code, active or not.
func (r *Registry) Service(agencyID, code string) (Service, bool) {
	s, ok := r.current.Load().services[codeKey{agencyID, code}]
	return s, ok
}

// ResolveService is the service of a due: the active one that its ERP code is
// mapped to, else the agency's default if it is active, else none (contract,
// "Service catalogue mapping").
func (r *Registry) ResolveService(agencyID, erpCode string) (Service, bool) {
	s := r.current.Load()
	for _, code := range []string{s.mappings[codeKey{agencyID, erpCode}], s.agencies[agencyID].DefaultService} {
		if service := s.services[codeKey{agencyID, code}]; service.Active {
			return service, true
		}
	}
	return Service{}, false
}

// Fee is what an agency charges for a channel and currency; false: no fee.
func (r *Registry) Fee(agencyID string, channel checkout.Channel, currency string) (money.Schedule, bool) {
	f, ok := r.current.Load().fees[feeKey{agencyID, string(channel), currency}]
	return f, ok
}
