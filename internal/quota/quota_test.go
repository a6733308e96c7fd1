package quota_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/quota"
	"quittance/test/await"
	"quittance/test/servers"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// watch is a clock that a test moves.
type watch struct{ offset atomic.Int64 }

func (w *watch) now() time.Time      { return epoch.Add(time.Duration(w.offset.Load())) }
func (w *watch) set(d time.Duration) { w.offset.Store(int64(d)) }

// questions passes requests on to Postgres and counts them.
type questions struct {
	*pgxpool.Pool
	asked, open, most atomic.Int32
}

func (q *questions) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	q.asked.Add(1)
	if open := q.open.Add(1); open > q.most.Load() {
		q.most.Store(open)
	}
	return answer{q.Pool.QueryRow(ctx, sql, args...), q}
}

type answer struct {
	pgx.Row
	q *questions
}

func (a answer) Scan(dest ...any) error {
	defer a.q.open.Add(-1)
	return a.Row.Scan(dest...)
}

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	_, pool := servers.Database(t)
	return pool
}

func instance(t *testing.T, pg quota.Querier, now func() time.Time) *quota.Reads {
	t.Helper()
	r, err := quota.New(quota.Config{Postgres: pg, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func admit(t *testing.T, r *quota.Reads, key string, limit int) (quota.Allowance, bool) {
	t.Helper()
	a, ok, err := r.Admit(t.Context(), key, limit)
	if err != nil {
		t.Fatal(err)
	}
	return a, ok
}

// spend reads until the first refusal and returns the number of reads.
func spend(t *testing.T, r *quota.Reads, key string, limit int) int {
	t.Helper()
	n := 0
	for {
		if _, ok := admit(t, r, key, limit); !ok {
			return n
		}
		n++
	}
}

func TestOneInstanceAlone(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(12 * time.Second)
	pg := &questions{Pool: database(t)}
	r, key := instance(t, pg, w.now), uuid.NewString()
	for n := 1; n <= 600; n++ {
		a, ok := admit(t, r, key, 600)
		if want := (quota.Allowance{Limit: 600, Remaining: 600 - n, Reset: 48 * time.Second}); !ok || a != want {
			t.Fatalf("read %d: %+v, %v", n, a, ok)
		}
	}
	for range 100 {
		if a, ok := admit(t, r, key, 600); ok || a != (quota.Allowance{Limit: 600, Reset: 48 * time.Second}) {
			t.Fatalf("read 601: %+v, %v", a, ok)
		}
	}
	t.Logf("600 reads and 100 refusals asked Postgres %d times", pg.asked.Load())
	if pg.asked.Load() > 60 {
		t.Errorf("Postgres was asked %d times", pg.asked.Load())
	}
	if _, ok := admit(t, r, uuid.NewString(), 600); !ok {
		t.Error("another key has no quota of its own")
	}
	// A higher limit counts at once.
	if n := spend(t, r, key, 650); n != 50 {
		t.Errorf("50 more were granted, %d were admitted", n)
	}
	if _, ok := admit(t, r, key, 10); ok {
		t.Error("a limit below what was read admits")
	}
}

// Four instances with many callers each read with one key for several minutes. Together
// they admit exactly the limit.
func TestInstancesTogether(t *testing.T) {
	t.Parallel()
	var w watch
	pool := database(t)
	var instances []*questions
	var reads []*quota.Reads
	for range 4 {
		pg := &questions{Pool: pool}
		instances = append(instances, pg)
		reads = append(reads, instance(t, pg, w.now))
	}
	key := uuid.NewString()
	for minute, limit := range []int{600, 1, 3, 7, 30, 600, 5000} {
		w.set(time.Duration(minute) * time.Minute)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for _, r := range reads {
			for range 16 {
				wg.Go(func() {
					for {
						_, ok, err := r.Admit(t.Context(), key, limit)
						if err != nil {
							t.Error(err)
						}
						if !ok {
							return
						}
						admitted.Add(1)
					}
				})
			}
		}
		wg.Wait()
		if n := admitted.Load(); n != int64(limit) {
			t.Errorf("limit %d: %d reads were admitted", limit, n)
		}
	}
	for _, pg := range instances {
		if pg.most.Load() != 1 {
			t.Errorf("%d questions about one key were open at once", pg.most.Load())
		}
	}
}

// An instance that reads little leases little.
func TestIdleInstanceHoldsLittleBack(t *testing.T) {
	t.Parallel()
	var w watch
	pool := database(t)
	idle, busy, key := instance(t, pool, w.now), instance(t, pool, w.now), uuid.NewString()
	for range 3 {
		admit(t, idle, key, 600)
	}
	if n := spend(t, busy, key, 600); n < 596 || n > 597 {
		t.Errorf("after 3 reads elsewhere %d of 600 were left", n)
	}
}

func TestMinutes(t *testing.T) {
	t.Parallel()
	var w watch
	pool := database(t)
	r, key := instance(t, pool, w.now), uuid.NewString()
	for _, at := range []time.Duration{30 * time.Second, time.Minute, 2*time.Minute - time.Nanosecond, 24 * time.Hour} {
		w.set(at)
		want := 40
		if at == 2*time.Minute-time.Nanosecond {
			want = 0 // still in the minute before
		}
		if n := spend(t, r, key, 40); n != want {
			t.Errorf("at %v %d reads were admitted, want %d", at, n, want)
		}
	}
	// Unspent reads of a lease end with the minute.
	w.set(25 * time.Hour)
	for range 5 { // leases of 1, 1, 2 and 4
		admit(t, r, key, 40)
	}
	w.set(26 * time.Hour)
	if n := spend(t, r, key, 40); n != 40 {
		t.Errorf("in the next minute %d reads were admitted", n)
	}

	// An instance whose clock is behind spends from the minute of the other instances,
	// before and after it notices.
	var late watch
	late.set(26*time.Hour - time.Second)
	behind := instance(t, pool, late.now)
	if n := spend(t, behind, key, 40); n != 0 {
		t.Errorf("behind, %d reads were admitted beyond the limit", n)
	}
	w.set(26*time.Hour + time.Minute)
	late.set(26*time.Hour + 59*time.Second)
	for range 10 {
		admit(t, r, key, 40)
	}
	n := spend(t, behind, key, 40)
	late.set(26*time.Hour + 61*time.Second)
	if n += spend(t, behind, key, 40) + spend(t, r, key, 40); n != 30 {
		t.Errorf("after 10 of 40 reads %d were left", n)
	}
}

// While Postgres does not answer, no read is admitted. All waiting callers get the error
// together. A read that fails is not counted.
func TestPostgresDoesNotAnswer(t *testing.T) {
	t.Parallel()
	var w watch
	pool := database(t)
	pg := &questions{Pool: pool}
	r, key := instance(t, pg, w.now), uuid.NewString()
	admit(t, r, key, 40)
	asked := pg.asked.Load()

	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE read_quota`); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var failed, given atomic.Int32
	read := func(ctx context.Context) {
		switch _, ok, err := r.Admit(ctx, key, 40); {
		case errors.Is(err, context.Canceled):
			given.Add(1)
		case err != nil && !ok:
			failed.Add(1)
		}
	}
	wg.Go(func() { read(t.Context()) })
	await.Until(t, "Postgres is asked", func() bool { return pg.asked.Load() > asked })
	for range 50 {
		wg.Go(func() { read(t.Context()) })
	}
	for range 10 {
		wg.Go(func() { read(gone) })
	}
	cancel() // a caller that ended does not wait
	wg.Wait()
	if given.Load() != 10 || failed.Load() != 51 {
		t.Errorf("%d gave up, %d failed", given.Load(), failed.Load())
	}
	if n := pg.asked.Load() - asked; n > 5 {
		t.Errorf("Postgres was asked %d times meanwhile", n)
	}
	// The abandoned request has also ended in Postgres.
	await.Until(t, "the abandoned request ends", func() bool {
		var waiting int
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'read_quota'::regclass`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting == 0
	})
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := spend(t, r, key, 40); n != 39 {
		t.Errorf("after one read of 40, %d were left", n)
	}
}

// A request for a lease is slow: its caller ends, and the minute ends before the answer
// comes. The other waiting callers are still served. A lease of the old minute is not
// spent in the new one.
func TestAnswerComesLate(t *testing.T) {
	t.Parallel()
	var w watch
	pool := database(t)
	pg := &questions{Pool: pool}
	r, key := instance(t, pg, w.now), uuid.NewString()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE read_quota`); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var admitted atomic.Int32
	wg.Go(func() {
		if _, ok, _ := r.Admit(gone, key, 40); ok { // the caller has ended
			admitted.Add(1)
		}
	})
	await.Until(t, "Postgres is asked", func() bool { return pg.asked.Load() > 0 })
	w.set(time.Minute)
	for range 5 {
		wg.Go(func() {
			_, ok, err := r.Admit(t.Context(), key, 40)
			if err != nil || !ok {
				t.Errorf("a waiting caller is not served: %v, %v", ok, err)
			}
			admitted.Add(1)
		})
	}
	time.Sleep(20 * time.Millisecond) // most callers wait by now
	cancel()
	time.Sleep(20 * time.Millisecond) // a request that ended with its caller would have ended by now
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := int(admitted.Load()) + spend(t, r, key, 40); n != 40 {
		t.Errorf("in the new minute %d reads were admitted", n)
	}
}

// An instance does not remember keys that it does not serve any more.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	var w watch
	r := instance(t, database(t), w.now)
	for range 20 {
		admit(t, r, uuid.NewString(), 30)
	}
	w.set(time.Minute)
	if _, ok := admit(t, r, uuid.NewString(), 30); !ok || r.Windows() > 1 {
		t.Errorf("the instance remembers %d keys of the minute before", r.Windows()-1)
	}
}

func BenchmarkAdmit(b *testing.B) {
	_, pool := servers.Database(b)
	for _, limit := range []int{600, 1_000_000_000} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			r, err := quota.New(quota.Config{Postgres: pool, Now: func() time.Time { return epoch }})
			if err != nil {
				b.Fatal(err)
			}
			key := uuid.NewString()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, _, err := r.Admit(b.Context(), key, limit); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
