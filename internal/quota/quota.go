// Package quota counts the reads of each key, exactly, over all instances of
// ingress together: never more than its limit in a UTC minute (contract decisions
// § 2).
//
// The count is one row a key in Postgres. An instance takes from it in leases and
// spends a lease in memory, so that a busy key does not ask at every read: each
// lease is as large as what the instance has spent in this minute, at most an
// eighth of what is left. So it begins with one, doubles while the key is busy
// here, and becomes one again towards the end, where instances share the last
// reads evenly. What an instance leases and does not spend is lost for the
// minute: never more than what it did spend.
//
// The minute of a key begins when the first instance's clock says so, and never
// goes back; one that is behind spends from the new minute.
package quota

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// patience bounds every question to Postgres: a read that waits longer is better
// refused.
const patience = 2 * time.Second

// Querier is what Reads need of Postgres; a pool is one.
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

// Reads is the quota of reads, as one instance takes part in it. It is safe for
// concurrent use.
type Reads struct {
	cfg     Config
	windows sync.Map // key id → *window; bounded by the keys that there are
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

// Allowance is where a key stands, for RateLimit headers.
type Allowance struct {
	// Limit of a minute.
	Limit int
	// Remaining reads of this minute, as this instance last heard: exact while
	// only one serves the key, else there may be fewer.
	Remaining int
	// Reset is how long until the next minute begins, above zero. Of a refusal it
	// is the time to wait.
	Reset time.Duration
}

// Admit counts one read of a key (registry.Principal.KeyID) and tells whether it
// is within the limit of the minute, which is at least 1. It asks Postgres now
// and then, for all callers of a key at once; an error means that Postgres did
// not answer in time, or that ctx ended: the read is neither admitted nor
// counted.
func (r *Reads) Admit(ctx context.Context, keyID string, limit int) (Allowance, bool, error) {
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
			// Others wait for the answer: the end of this caller's request is not
			// the end of theirs.
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

// window is a key's minute at this instance.
type window struct {
	mu     sync.Mutex
	minute time.Time
	lease  int       // reads left of the last lease
	spent  int       // reads admitted here
	others int       // reads that nobody had leased at the last lease
	full   int       // the limit at which Postgres had no more; 0: it had
	asking *question // nil: nobody is
}

// question is one lease that is being asked for.
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
	ask  // ask the question that is returned, then try again
	wait // somebody asks it, then try again
)

// take spends one read if there is one. The clock is read here, so that a lease
// is never spent in another minute than its own.
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

// turn begins a minute that is later than the current one.
func (w *window) turn(minute time.Time) {
	if minute.After(w.minute) {
		w.minute, w.lease, w.spent, w.others, w.full = minute, 0, 0, 0, 0
	}
}

// grant is a lease: as much as is wanted, at most an eighth of what is left, at
// least one while there is one. No row: nothing is left.
const grant = `INSERT INTO read_quota AS q (key_id, minute, taken, granted)
VALUES ($1, $2, LEAST($3, GREATEST(1, $4::integer / 8)), LEAST($3, GREATEST(1, $4::integer / 8)))
ON CONFLICT (key_id) DO UPDATE SET
    minute  = GREATEST(q.minute, excluded.minute),
    taken   = CASE WHEN q.minute < excluded.minute THEN excluded.taken ELSE q.taken + LEAST($3, GREATEST(1, ($4 - q.taken) / 8)) END,
    granted = CASE WHEN q.minute < excluded.minute THEN excluded.granted ELSE LEAST($3, GREATEST(1, ($4 - q.taken) / 8)) END
WHERE q.minute < excluded.minute OR q.taken < $4
RETURNING minute, taken, granted`

// lease asks Postgres and answers the question.
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
		if w.minute.Equal(q.minute) { // else it was the last minute that had no more
			w.full = limit
		}
	case err == nil:
		// Another instance's clock may have begun the next minute; and this one's
		// may have gone on meanwhile, then the lease is lost.
		w.turn(minute.UTC())
		if w.minute.Equal(minute) {
			w.lease, w.others = granted, max(0, limit-taken)
		}
	}
}
