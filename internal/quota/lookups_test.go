package quota_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/network"
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
	for n := range 3 {
		guessed += flood(fmt.Sprint("198.51.100.", n), 5, false)
	}
	if guessed != unknown {
		t.Errorf("all clients looked up %d unknown references in a minute, want %d", guessed, unknown)
	}
	guessed = 0
	for n := range 7 {
		guessed += flood(fmt.Sprint("198.51.100.", 10+n), 5, false)
	}
	if guessed != 7 {
		t.Errorf("7 other clients looked up %d unknown references above the limit, want one each", guessed)
	}
	// Above the limit of everybody, a client that has guessed is refused, also a known reference.
	if n := flood("198.51.100.1", 1, true); n != 0 {
		t.Error("a client that looked up unknown references looks up another although too many were")
	}
	// Others go on, and have one unknown reference in the hour.
	if n := flood("203.0.113.1", 10, true); n == 0 {
		t.Error("nobody looks up a reference, because of the unknown ones of others")
	}
	if n := flood("203.0.113.1", 1, true) + flood("203.0.113.1", 1, true); n != 2 {
		t.Errorf("a client that guessed nothing looked up %d of 2 known references", n)
	}
	if n := flood("203.0.113.1", 8, false); n != 1 {
		t.Errorf("a client looked up %d unknown references above the limit, want 1", n)
	}
	w.set(time.Minute)
	if n := flood("192.0.2.1", 5, true); n != 5 {
		t.Errorf("%d look-ups in the next minute, want 5", n)
	}
	// The guesses of the hour count in its other minutes.
	if n := flood("192.0.2.77", perClient, false) + flood("192.0.2.78", unknown-perClient, false); n != unknown {
		t.Errorf("%d unknown references in the next minute, want %d", n, unknown)
	}
	if n := flood("203.0.113.1", 1, false) + flood("192.0.2.1", 1, false); n != 0 {
		t.Errorf("clients that guessed in the hour look up %d unknown references above the limit", n)
	}
	w.set(2 * time.Hour)
	if n := flood("192.0.2.9", 1, true); n != 1 {
		t.Errorf("%d look-ups an hour later, want 1", n)
	}
	// A new client forgets 20 rows, and adds one of its own: the earlier ones end with the second.
	if n := flood("192.0.2.10", 1, true); n != 1 {
		t.Errorf("%d look-ups of a second client, want 1", n)
	}
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM reference_lookups`).Scan(&rows); err != nil || rows != 5 { // two clients, their two networks, everybody
		t.Errorf("%d rows are kept, want 5: %v", rows, err)
	}
}

// A /48 counts as a few clients, however many /64 it has, and above the limit of everybody as one.
func TestLookupsOfASite(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(10 * time.Second)
	l := &quota.Lookups{Postgres: database(t), Now: w.now, PerClient: 5, Unknown: 100}
	begin := func(client string) bool {
		_, _, ok, err := l.Begin(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	admitted := 0
	for n := range 40 {
		if begin(fmt.Sprintf("2001:db8:1:%x::/64", n)) {
			admitted++
		}
	}
	if admitted != network.SiteClients*5 {
		t.Errorf("a /48 looked up %d references in a minute, want %d", admitted, network.SiteClients*5)
	}
	if !begin("2001:db8:2::/64") {
		t.Error("another /48 is refused")
	}
	l.Unknown = 0
	if begin("2001:db8:2:7::/64") || !begin("2001:db8:3::/64") || begin("2001:db8:3:1::/64") {
		t.Error("a /48 has more than one unknown reference in an hour above the limit of everybody")
	}
}

// A provider's network adds no rows beyond its limit, however many addresses it has.
func TestLookupsOfAProvider(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(n int) string{
		"IPv6": func(n int) string { return fmt.Sprintf("2001:db8:%x::/64", n) },
		"IPv4": func(n int) string { return fmt.Sprintf("198.51.%d.%d", n%250, n/250) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w watch
			w.set(10 * time.Second)
			pool := database(t)
			l := &quota.Lookups{Postgres: pool, Now: w.now, PerClient: 2, Unknown: 1000}
			admitted := 0
			for n := range 400 {
				_, _, ok, err := l.Begin(t.Context(), client(n))
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					admitted++
				}
			}
			if want := 2 * network.ProviderClients; admitted != want {
				t.Errorf("a provider's network looked up %d references in a minute, want %d", admitted, want)
			}
			var rows int
			if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM reference_lookups`).Scan(&rows); err != nil || rows > 3*2*network.ProviderClients {
				t.Errorf("the flood made %d rows, %v", rows, err)
			}
			if _, _, ok, err := l.Begin(t.Context(), "203.0.113.1"); !ok || err != nil {
				t.Errorf("another network: %t, %v", ok, err)
			}
		})
	}
}
