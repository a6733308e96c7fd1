// Package quota limits the reads of each key. The limit is exact over all instances of
// ingress together: a key never gets more than its limit in a UTC minute (contract
// docs/design/decisions.md § 2).
//
// Postgres holds one row for each key. An instance leases reads from the row and spends
// a lease in memory, so that a busy key does not ask Postgres at every read. A lease is
// as large as the number of reads that the instance has spent in this minute, and at
// most an eighth of the remaining reads. So the first lease is one read, leases double
// while the key is busy at this instance, and towards the limit they shrink to one read
// again, so that instances share the last reads evenly. Reads that an instance leases
// and does not spend are lost for the minute; they are never more than those it spent.
//
// The minute of a key begins when the first instance's clock reaches it, and never goes
// back. An instance whose clock is behind spends from the new minute.
package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// patience bounds every request to Postgres. A read that would wait longer is refused.
const patience = 2 * time.Second

// Querier is the part of a Postgres pool that Reads uses.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Config of Reads.
type Config struct {
	// Postgres, with the migrations of internal/postgres.
	Postgres Querier
	// Now is the time in UTC; it may jump forward.
	Now func() time.Time
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

// Reads is one instance's part of the quota of reads. It is safe for concurrent use.
type Reads struct {
	cfg     Config
	windows sync.Map // key id → *window, of the keys that were used lately
	swept   atomic.Int64
	leases  *prometheus.CounterVec
}

// New makes an instance's part of the quota.
func New(cfg Config) (*Reads, error) {
	if cfg.Postgres == nil || cfg.Now == nil {
		return nil, errors.New("making the read quota: Postgres and Now are required")
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	r := &Reads{cfg: cfg, leases: promauto.With(cfg.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_read_quota_leases_total", Help: "Leases of reads that this instance asked Postgres for, by outcome: granted, exhausted, failed.",
	}, []string{"outcome"})}
	for _, outcome := range []string{"granted", "exhausted", "failed"} {
		r.leases.WithLabelValues(outcome)
	}
	return r, nil
}

// Allowance is the state of a key's quota, for the RateLimit headers.
type Allowance struct {
	// Limit of a minute.
	Limit int
	// Remaining reads of this minute, as this instance last read them. The number is exact
	// while only one instance serves the key; otherwise fewer may remain.
	Remaining int
	// Reset is the time until the next minute begins, above zero. A refused caller waits
	// as long.
	Reset time.Duration
}

// Admit counts one read of a key (identity.Principal.KeyID) and reports whether it
// is within the limit of the minute. The limit is at least 1. When a new lease is
// needed, one request to Postgres serves all waiting callers of the key. An error means
// that Postgres did not answer in time, or that ctx ended; the read is then neither
// admitted nor counted.
func (r *Reads) Admit(ctx context.Context, keyID string, limit int) (Allowance, bool, error) {
	r.sweep(r.cfg.Now().Truncate(time.Minute))
	v, ok := r.windows.Load(keyID)
	if !ok {
		v, _ = r.windows.LoadOrStore(keyID, &window{})
	}
	w := v.(*window)
	for {
		allowance, verdict, asked := w.take(r.cfg.Now, limit)
		switch verdict {
		case admitted:
			return allowance, true, nil
		case refused:
			return allowance, false, nil
		case ask:
			// Other callers wait for the same answer, so it does not end with this caller's
			// request.
			r.lease(context.WithoutCancel(ctx), w, asked, keyID, limit)
		case wait:
		}
		select {
		case <-asked.done:
		case <-ctx.Done():
			return Allowance{}, false, fmt.Errorf("waiting for a lease of reads: %w", ctx.Err())
		}
		if asked.err != nil {
			return Allowance{}, false, asked.err
		}
	}
}

// sweep forgets, once a minute, the windows of minutes that are over. A caller that has such a
// window goes on with it and leases its reads from Postgres like any other.
func (r *Reads) sweep(minute time.Time) {
	before := r.swept.Load()
	if minute.Unix() <= before || !r.swept.CompareAndSwap(before, minute.Unix()) {
		return
	}
	r.windows.Range(func(keyID, v any) bool {
		w := v.(*window)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.asking == nil && w.minute.Before(minute) {
			r.windows.CompareAndDelete(keyID, w)
		}
		return true
	})
}

// window is a key's minute at this instance.
type window struct {
	mu     sync.Mutex
	minute time.Time
	lease  int       // reads left of the last lease
	spent  int       // reads admitted here
	others int       // reads that were not leased after the last lease
	full   int       // the limit at which Postgres had no reads left; 0: it had some
	asking *question // nil when no request to Postgres is under way
}

// question is one request for a lease.
type question struct {
	minute time.Time
	want   int
	done   chan struct{} // closed when it is answered
	err    error
}

type verdict int

const (
	admitted verdict = iota
	refused
	ask  // send the returned question, then try again
	wait // another caller sends the question: wait for its answer, then try again
)

// take spends one read of the lease if one is left. It reads the clock itself, so that
// a lease is only spent in its own minute.
func (w *window) take(clock func() time.Time, limit int) (Allowance, verdict, *question) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := clock()
	w.turn(now.Truncate(time.Minute))
	a := Allowance{Limit: limit, Reset: w.minute.Add(time.Minute).Sub(now)}
	switch {
	case w.lease > 0:
		w.lease--
		w.spent++
		a.Remaining = w.lease + w.others
		return a, admitted, nil
	case w.full >= limit:
		return a, refused, nil
	case w.asking != nil:
		return a, wait, w.asking
	}
	w.asking = &question{minute: w.minute, want: max(1, w.spent), done: make(chan struct{})}
	return a, ask, w.asking
}

// turn begins a minute later than the current one.
func (w *window) turn(minute time.Time) {
	if minute.After(w.minute) {
		w.minute, w.lease, w.spent, w.others, w.full = minute, 0, 0, 0, 0
	}
}

// grant leases the wanted number of reads, at most an eighth of the remaining ones and
// at least one. It returns no row when no reads are left.
const grant = `INSERT INTO read_quota AS q (key_id, minute, taken, granted)
VALUES ($1, $2, LEAST($3, GREATEST(1, $4::integer / 8)), LEAST($3, GREATEST(1, $4::integer / 8)))
ON CONFLICT (key_id) DO UPDATE SET
    minute  = GREATEST(q.minute, excluded.minute),
    taken   = CASE WHEN q.minute < excluded.minute THEN excluded.taken ELSE q.taken + LEAST($3, GREATEST(1, ($4 - q.taken) / 8)) END,
    granted = CASE WHEN q.minute < excluded.minute THEN excluded.granted ELSE LEAST($3, GREATEST(1, ($4 - q.taken) / 8)) END
WHERE q.minute < excluded.minute OR q.taken < $4
RETURNING minute, taken, granted`

// lease requests a lease from Postgres and answers the question.
func (r *Reads) lease(ctx context.Context, w *window, q *question, keyID string, limit int) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var minute time.Time
	var taken, granted int
	err := r.cfg.Postgres.QueryRow(ctx, grant, keyID, q.minute, q.want, limit).Scan(&minute, &taken, &granted)
	none := errors.Is(err, pgx.ErrNoRows)
	switch {
	case none:
		r.leases.WithLabelValues("exhausted").Inc()
	case err != nil:
		q.err = fmt.Errorf("leasing reads: %w", err)
		r.leases.WithLabelValues("failed").Inc()
	default:
		r.leases.WithLabelValues("granted").Inc()
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking = nil
	close(q.done)
	switch {
	case none:
		if w.minute.Equal(q.minute) { // otherwise the earlier minute had no reads left
			w.full = limit
		}
	case err == nil:
		// Another instance's clock may have begun the next minute. If this instance's clock
		// has moved on as well, the lease is lost.
		w.turn(minute.UTC())
		if w.minute.Equal(minute) {
			w.lease, w.others = granted, max(0, limit-taken)
		}
	}
}
