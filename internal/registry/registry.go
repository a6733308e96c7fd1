package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/checkout"
	"quittance/internal/connector"
	"quittance/internal/registry/db"
	"quittance/internal/secret"
	"quittance/internal/signed"
	"quittance/money"
)

const (
	// poll is the time after which a change is seen even if its notification is lost.
	poll = 500 * time.Millisecond
	// patience is the time-out of each reading.
	patience = 3 * time.Second
	retry    = 250 * time.Millisecond
	// opening is the time-out of the first reading, which verifies every signature: ten thousand take
	// seconds on a busy machine.
	opening = time.Minute
)

// Config of a Registry.
type Config struct {
	Pool *pgxpool.Pool
	Keys *secret.Keys
	Log  *slog.Logger
	// Now returns the time in UTC. It decides which webhook secrets have expired.
	Now func() time.Time
	// Simulators is the address of the simulators in developer mode. They replace a
	// missing test account. Empty outside developer mode.
	Simulators string
	// Operators whose merchant accounts the registry can read.
	Operators connector.Table
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Registry is the registry in memory. It is safe for concurrent use.
type Registry struct {
	cfg      Config
	current  atomic.Pointer[Snapshot]
	syncedAt atomic.Int64 // Unix nanoseconds of the machine's clock
	reloads  *prometheus.CounterVec
	unlike   *prometheus.GaugeVec
	verifier *signed.Verifier

	reloading  sync.Mutex
	companions []Companion
	told       string // the findings that the log has
}

// Companion reads tables that refer to the registry and belong to another package. It
// reads in the transaction that has read s, so that both have the same revision.
// install is called after s became the current snapshot.
type Companion func(ctx context.Context, tx pgx.Tx, s *Snapshot) (install func(), err error)

// Open reads the registry. It returns an error while Postgres is away, and signed.ErrNotSigned or
// signed.ErrOtherKeys while no row can be used. Keys verify the rows: master keys, or those of a role.
func Open(ctx context.Context, cfg Config) (*Registry, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Log == nil || cfg.Now == nil {
		return nil, errors.New("opening the registry: Pool, Keys, Log and Now are required")
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	r := &Registry{cfg: cfg, verifier: signed.NewVerifier(cfg.Keys), told: fmt.Sprint([]string{}, []string{})}
	with := promauto.With(cfg.Metrics)
	r.reloads = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_registry_reloads_total", Help: "Times the registry was read from Postgres, by outcome.",
	}, []string{"outcome"})
	for _, outcome := range []string{"ok", "failed"} {
		r.reloads.WithLabelValues(outcome)
	}
	r.unlike = with.NewGaugeVec(prometheus.GaugeOpts{
		Name: "quittance_registry_rows_not_as_signed", Help: "Rows of Postgres that decide and are not as they were signed, by table; 1 more for a table from which rows were deleted or in which some were put back.",
	}, []string{"table"})
	if err := r.reload(ctx, opening); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	if err := r.current.Load().findings.Err(); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_registry_age_seconds", Help: "Seconds since Postgres last confirmed that the registry in memory is the current one.",
	}, func() float64 { return r.Age().Seconds() })
	return r, nil
}

// Run follows changes until ctx ends, then returns nil. It sees a change within a
// second. While Postgres is away the last snapshot stays.
func (r *Registry) Run(ctx context.Context) error {
	failing := false
	for {
		err := r.follow(ctx, func() {
			if failing {
				r.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "following changes of the registry again")
			}
			failing = false
		})
		if ctx.Err() != nil {
			return nil
		}
		if !failing {
			r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "following changes of the registry failed: the last snapshot stays in use", slog.Any("error", err))
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

// follow listens and polls over one connection until an error occurs. It calls well
// each time it finds the snapshot current.
func (r *Registry) follow(ctx context.Context, well func()) error {
	conn, err := r.acquire(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The connection still listens. Close it instead of returning it to the pool.
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
		// After the restore of a backup the revision may be lower.
		if revision != r.current.Load().Revision {
			if err := r.reload(ctx, patience); err != nil {
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

// Verifier verifies the rows that decide with the keys of the registry, and remembers those that it has verified: a
// companion reads rows again that the registry has read for its findings.
func (r *Registry) Verifier() *signed.Verifier { return r.verifier }

// Join adds a companion and reads everything again with it. Call Join before Run.
func (r *Registry) Join(ctx context.Context, c Companion) error {
	r.reloading.Lock()
	r.companions = append(r.companions, c)
	r.reloading.Unlock()
	return r.reload(ctx, opening)
}

// reload reads everything within a limit of time. What it has verified until then need not be verified
// again.
func (r *Registry) reload(ctx context.Context, limit time.Duration) error {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var s *Snapshot
	installs := make([]func(), len(r.companions))
	err := pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		if s, err = load(ctx, tx, loading{keys: r.cfg.Keys, simulators: r.cfg.Simulators, verifier: r.verifier}); err != nil {
			return err
		}
		for i, c := range r.companions {
			if installs[i], err = c(ctx, tx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the registry: %w", err)
	}
	r.tell(ctx, s.findings)
	if len(s.locked) > 0 {
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "secrets of the registry do not open: add the missing master key to QUITTANCE_MASTER_KEYS", slog.Any("locked", s.locked))
	}
	r.current.Store(s)
	for _, install := range installs {
		install()
	}
	r.syncedAt.Store(time.Now().UnixNano())
	r.reloads.WithLabelValues("ok").Inc()
	return nil
}

// tell counts what is not as it was signed, and logs it when it changes.
func (r *Registry) tell(ctx context.Context, f signed.Findings) {
	for table, n := range f.Counts() {
		r.unlike.WithLabelValues(table).Set(float64(n))
	}
	var rows []string
	for _, row := range f.Rows {
		rows = append(rows, row.ID.String())
	}
	if now := fmt.Sprint(rows, f.Lost); now != r.told {
		r.told = now
		if len(rows)+len(f.Lost) == 0 {
			r.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "all rows that decide are as they were signed")
			return
		}
		const shown = 20
		r.cfg.Log.LogAttrs(ctx, slog.LevelError, "rows that decide are not as they were signed and are not used: `quittance rows list` shows them",
			slog.Any("rows", rows[:min(len(rows), shown)]), slog.Int("count", len(rows)), slog.Any("tables_with_lost_rows", f.Lost))
	}
}

// Age is the time since Postgres last confirmed that the snapshot is current.
func (r *Registry) Age() time.Duration { return time.Since(time.Unix(0, r.syncedAt.Load())) }

// Revision returns the number of the registry in memory. Each change has a higher one, unless a backup was restored.
func (r *Registry) Revision() int64 { return r.current.Load().Revision }

// Platform returns the settings of the platform.
func (r *Registry) Platform() Platform { return r.current.Load().Platform }

// Agency finds an agency by its id.
func (r *Registry) Agency(id string) (Agency, bool) {
	a, ok := r.current.Load().Agencies[id]
	return a, ok
}

// Agencies lists all agencies by slug.
func (r *Registry) Agencies() []Agency {
	return sorted(r.current.Load().Agencies, func(a Agency) string { return a.Slug })
}

// Application finds an application by its id, active or not.
func (r *Registry) Application(id string) (Application, bool) {
	a, ok := r.current.Load().Applications[id]
	return a, ok
}

// Applications lists all applications by id.
func (r *Registry) Applications() []Application {
	return sorted(r.current.Load().Applications, func(a Application) string { return a.ID })
}

// ApplicationsOf lists the ids of an agency's applications, active or not, sorted.
func (r *Registry) ApplicationsOf(agencyID string) (ids []string) {
	for id, a := range r.current.Load().Applications {
		if a.AgencyID == agencyID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// IntegratorOf finds the application of an agency that owns the sessions created with
// platform keys.
func (r *Registry) IntegratorOf(agencyID string) (Application, bool) {
	s := r.current.Load()
	a, ok := s.Applications[s.integrators[agencyID]]
	return a, ok
}

// Endpoints lists the endpoints that receive an event now: those of the application
// and, if a platform key created the session, those of the platform. It includes
// suspended endpoints, because deliveries to them are planned and held.
func (r *Registry) Endpoints(applicationID string, platform, live bool, event string) []WebhookEndpoint {
	s := r.current.Load()
	var out []WebhookEndpoint
	add := func(owner string) {
		for _, e := range s.byOwner[owner] {
			if e.wants(live, event) {
				out = append(out, e.at(r.cfg.Now()))
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
	e := r.current.Load().endpoint(id)
	if e == nil {
		return WebhookEndpoint{}, false
	}
	return e.at(r.cfg.Now()), true
}

// AllEndpoints lists every webhook endpoint by id.
func (r *Registry) AllEndpoints() []WebhookEndpoint {
	var out []WebhookEndpoint
	for _, e := range r.current.Load().endpoints {
		out = append(out, e.at(r.cfg.Now()))
	}
	return out
}

// Directory returns what is known of destinations, from memory: their names are shown beside each payment. What changes a
// destination reads it from Postgres (ReadDirectory).
func (r *Registry) Directory() Directory { return r.current.Load().directory(r.cfg.Now()) }

// ERP returns the settings of an agency's ERP in a mode; false when it has none.
func (r *Registry) ERP(agencyID string, live bool) (ERPSettings, bool) {
	e, ok := r.current.Load().erp[modeKey{agencyID, live}]
	return e, ok
}

// Service finds a service of an agency's catalogue by its code, active or not.
func (r *Registry) Service(agencyID, code string) (Service, bool) {
	return r.current.Load().Service(agencyID, code)
}

// ResolveService finds the service of a due: the service to which its ERP code is
// mapped, or if that is not active the agency's default service, or if that is not
// active none (contract, "Service catalogue mapping"). A due whose mapping does not verify has
// none.
func (r *Registry) ResolveService(agencyID, erpCode string) (Service, bool) {
	s := r.current.Load()
	if s.closedMappings[codeKey{agencyID, erpCode}] {
		return Service{}, false // the default is not what the mapping said
	}
	for _, code := range []string{s.mappings[codeKey{agencyID, erpCode}], s.Agencies[agencyID].DefaultService} {
		if service := s.byCode[codeKey{agencyID, code}]; service.Active {
			return service, true
		}
	}
	return Service{}, false
}

// Fee returns an agency's fee for a channel and a currency; false when there is none.
func (r *Registry) Fee(agencyID string, channel checkout.Channel, currency string) (money.Schedule, bool) {
	f, ok := r.current.Load().fees[feeKey{agencyID, string(channel), currency}]
	return f, ok
}
