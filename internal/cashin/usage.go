package cashin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/money/localtime"
)

// DefaultUsageInterval is how often an instance writes the calls that it has counted.
const DefaultUsageInterval = 5 * time.Second

// UsageConfig of a Usage. Pool and Log are required.
type UsageConfig struct {
	// Pool, with the migrations of internal/postgres.
	Pool *pgxpool.Pool
	Log  *slog.Logger
	// Interval between writes; DefaultUsageInterval when 0.
	Interval time.Duration
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Usage counts the calls that one instance answers, by application, mode, local day and
// route. It adds up in memory and writes one statement an interval, so that a call costs no
// write. Instances add to the same rows. An instance that is killed loses what it has not
// written; a write whose outcome is unknown is repeated and may count twice. Safe for
// concurrent use.
type Usage struct {
	cfg      UsageConfig
	failures prometheus.Counter

	mu      sync.Mutex
	tallies map[usageKey]usageTally
	writing sync.Mutex // one write at a time
}

type usageKey struct {
	applicationID string
	live          bool
	day           string // local
	route         string
}

type usageTally struct {
	calls, refused, failed int64
	first, last            time.Time
}

func (t usageTally) plus(u usageTally) usageTally {
	if t.calls == 0 {
		return u
	}
	if u.first.Before(t.first) {
		t.first = u.first
	}
	if u.last.After(t.last) {
		t.last = u.last
	}
	t.calls, t.refused, t.failed = t.calls+u.calls, t.refused+u.refused, t.failed+u.failed
	return t
}

// NewUsage makes a counter.
func NewUsage(cfg UsageConfig) (*Usage, error) {
	if cfg.Pool == nil || cfg.Log == nil {
		return nil, errors.New("cash-in usage: Pool and Log are required")
	}
	cfg.Interval = cmp.Or(cfg.Interval, DefaultUsageInterval)
	return &Usage{cfg: cfg, tallies: map[usageKey]usageTally{}, failures: promauto.With(cfg.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "quittance_cashin_usage_failures_total", Help: "Writes of counted calls of the cash-in surface that failed and are tried again.",
	})}, nil
}

// Count counts one call of an application that was answered with a status.
func (u *Usage) Count(p Principal, route string, status int, at time.Time) {
	one := usageTally{calls: 1, first: at, last: at}
	switch {
	case status >= http.StatusInternalServerError:
		one.failed = 1
	case status >= http.StatusBadRequest:
		one.refused = 1
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(usageKey{p.ApplicationID, p.Live, localtime.Day(at), route}, one)
}

func (u *Usage) add(k usageKey, t usageTally) { u.tallies[k] = u.tallies[k].plus(t) }

// Run writes what was counted at each interval until ctx ends. The caller then calls Flush
// when the last call is answered.
func (u *Usage) Run(ctx context.Context) error {
	tick := time.NewTicker(u.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			u.Flush(ctx)
		}
	}
}

// Flush writes what was counted. If it fails, it says so in the log and the next Flush tries
// again.
func (u *Usage) Flush(ctx context.Context) {
	u.writing.Lock()
	defer u.writing.Unlock()
	u.mu.Lock()
	counted := u.tallies
	u.tallies = map[usageKey]usageTally{}
	u.mu.Unlock()
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := u.write(ctx, counted)
	if err == nil {
		return
	}
	u.failures.Inc()
	u.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "counted calls of the cash-in surface are not written yet", slog.Any("error", err))
	u.mu.Lock()
	defer u.mu.Unlock()
	for k, t := range counted {
		u.add(k, t)
	}
}

// write adds tallies to the rows, sorted so that two instances cannot deadlock.
func (u *Usage) write(ctx context.Context, counted map[usageKey]usageTally) error {
	keys := make([]usageKey, 0, len(counted))
	for k := range counted {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b usageKey) int {
		return cmp.Or(strings.Compare(a.applicationID, b.applicationID), cmp.Compare(modeRank(a.live), modeRank(b.live)), strings.Compare(a.day, b.day), strings.Compare(a.route, b.route))
	})
	var (
		applications, days, routes []string
		live                       []bool
		calls, refused, failed     []int64
		first, last                []time.Time
	)
	for _, k := range keys {
		t := counted[k]
		applications, live, days, routes = append(applications, k.applicationID), append(live, k.live), append(days, k.day), append(routes, k.route)
		calls, refused, failed, first, last = append(calls, t.calls), append(refused, t.refused), append(failed, t.failed), append(first, t.first), append(last, t.last)
	}
	_, err := u.cfg.Pool.Exec(ctx, `
		INSERT INTO cashin_usage AS u (application_id, live, day, route, calls, refused, failed, first_at, last_at)
		SELECT a::uuid, l, d::date, r, c, x, f, t0, t1
		FROM unnest($1::text[], $2::boolean[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::timestamptz[], $9::timestamptz[]) AS n (a, l, d, r, c, x, f, t0, t1)
		ON CONFLICT (application_id, live, day, route) DO UPDATE SET
			calls = u.calls + excluded.calls, refused = u.refused + excluded.refused, failed = u.failed + excluded.failed,
			first_at = LEAST(u.first_at, excluded.first_at), last_at = GREATEST(u.last_at, excluded.last_at)`,
		applications, live, days, routes, calls, refused, failed, first, last)
	if err != nil {
		return fmt.Errorf("writing counted calls: %w", err)
	}
	return nil
}

func modeRank(live bool) int {
	if live {
		return 1
	}
	return 0
}
