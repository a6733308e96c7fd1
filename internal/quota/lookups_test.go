package quota_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/quota"
)

// Instances count the look-ups of a client and those of unknown references together, exactly,
// by the minute. A reference that is found counts for its client alone.
func TestLookups(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(10 * time.Second)
	pool := database(t)
	const perClient, unknown = 30, 45
	var instances [3]*quota.Lookups
	for n := range instances {
		instances[n] = &quota.Lookups{Postgres: pool, Now: w.now, PerClient: perClient, Unknown: unknown}
	}
	flood := func(client string, calls int, found bool) int {
		var admitted atomic.Int32
		var wg sync.WaitGroup
		for n := range calls {
			wg.Go(func() {
				q, until, ok, err := instances[n%len(instances)].Begin(t.Context(), client)
				switch {
				case err != nil:
					t.Error(err)
				case !ok && (until <= 0 || until > time.Minute):
					t.Errorf("a refused look-up may come again in %v", until)
				case ok:
					admitted.Add(1)
					if !found {
						return
					}
					if err := q.Found(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return int(admitted.Load())
	}
	if n := flood("192.0.2.1", 60, false); n != perClient {
		t.Errorf("a client looked up %d references in a minute, want %d", n, perClient)
	}
	if n := flood("2001:db8::/64", 10, true); n != 10 {
		t.Errorf("another client looked up %d known references, want 10", n)
	}
	guessed := perClient
	for n := range 10 {
		guessed += flood(fmt.Sprint("198.51.100.", n), 4, false)
	}
	if guessed != unknown {
		t.Errorf("all clients looked up %d unknown references in a minute, want %d", guessed, unknown)
	}
	if n := flood("203.0.113.1", 1, true); n != 0 {
		t.Error("a reference is looked up although too many unknown ones were")
	}
	w.set(time.Minute)
	if n := flood("192.0.2.1", 5, true); n != 5 {
		t.Errorf("%d look-ups in the next minute, want 5", n)
	}
	w.set(time.Hour)
	if n := flood("192.0.2.9", 1, true); n != 1 {
		t.Errorf("%d look-ups an hour later, want 1", n)
	}
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM reference_lookups`).Scan(&rows); err != nil || rows > 3 {
		t.Errorf("%d rows of earlier minutes are kept, %v", rows, err)
	}
}
