package clock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/dev/clock"
	"quittance/test/await"
	"quittance/test/servers"
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	_, pool := servers.Database(t)
	return pool
}

func follow(t *testing.T, pool *pgxpool.Pool) *clock.Clock {
	t.Helper()
	c, err := clock.Follow(t.Context(), pool, servers.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
	return c
}

func ahead(c *clock.Clock) time.Duration { return time.Until(c.Now()).Round(time.Second) }

func TestAdvanceReachesFollowers(t *testing.T) {
	t.Parallel()
	pool := database(t)
	a, b := follow(t, pool), follow(t, pool)
	if d := ahead(a); d != 0 || a.Now().Location() != time.UTC {
		t.Errorf("at first the clock is %v ahead, in %v", d, a.Now().Location())
	}
	for _, step := range []struct{ d, total time.Duration }{{24 * time.Hour, 24 * time.Hour}, {0, 24 * time.Hour}, {90 * time.Minute, 25*time.Hour + 30*time.Minute}} {
		total, err := clock.Advance(t.Context(), pool, step.d)
		if err != nil || total != step.total {
			t.Fatalf("Advance(%v) = %v, %v", step.d, total, err)
		}
		if !await.Within(time.Second, func() bool { return ahead(a) == step.total && ahead(b) == step.total }) {
			t.Fatalf("a second after Advance the followers are %v and %v ahead, want %v", ahead(a), ahead(b), step.total)
		}
	}
	// The offset survives a restart: a new process starts with it.
	if c := follow(t, pool); ahead(c) != 25*time.Hour+30*time.Minute {
		t.Errorf("a new follower is %v ahead", ahead(c))
	}
}

func TestNeverBackwards(t *testing.T) {
	t.Parallel()
	pool := database(t)
	for _, d := range []time.Duration{-time.Second, clock.MaxOffset + time.Hour} {
		if _, err := clock.Advance(t.Context(), pool, d); !errors.Is(err, clock.ErrAdvance) {
			t.Errorf("Advance(%v): %v", d, err)
		}
	}
	if _, err := clock.Advance(t.Context(), pool, clock.MaxOffset); err != nil {
		t.Fatal(err)
	}
	if _, err := clock.Advance(t.Context(), pool, time.Hour); !errors.Is(err, clock.ErrAdvance) {
		t.Errorf("beyond the greatest offset: %v", err)
	}
	c := follow(t, pool)
	// The stored offset becomes smaller, for instance in a restored backup.
	if _, err := pool.Exec(t.Context(), `UPDATE developer_clock SET offset_ms = 0`); err != nil {
		t.Fatal(err)
	}
	time.Sleep(600 * time.Millisecond) // two looks at Postgres, which change nothing that could be awaited
	if c.Offset() != clock.MaxOffset {
		t.Errorf("the clock went back to %v", c.Offset())
	}
}

func TestKeepsItsOffsetWhilePostgresIsAway(t *testing.T) {
	t.Parallel()
	pool := database(t)
	if _, err := clock.Advance(t.Context(), pool, time.Hour); err != nil {
		t.Fatal(err)
	}
	c := follow(t, pool)
	pool.Close()
	time.Sleep(600 * time.Millisecond) // two looks at Postgres, which change nothing that could be awaited
	if ahead(c) != time.Hour {
		t.Errorf("%v ahead", ahead(c))
	}
	if _, err := clock.Follow(t.Context(), pool, servers.Logger(t)); err == nil {
		t.Error("Follow succeeds although the offset cannot be read")
	}
}

// A time of the clock is found among the records of Kafka, which have the machine's time: a
// time that the clock has jumped over is the moment of the jump.
func TestMachineTime(t *testing.T) {
	t.Parallel()
	pool := database(t)
	c := follow(t, pool)
	at := func(clocks time.Time) time.Time {
		t.Helper()
		m, err := c.Machine(t.Context(), clocks)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	begun := time.Now().UTC()
	if m := at(begun); !m.Equal(begun) {
		t.Errorf("before any move %v is %v", begun, m)
	}
	for range 2 {
		if _, err := clock.Advance(t.Context(), pool, 24*time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	done := time.Now().UTC()
	for name, ago := range map[string]time.Duration{"jumped over first": 30 * time.Hour, "jumped over last": time.Hour} {
		if m := at(done.Add(48*time.Hour - ago)); m.Before(begun) || m.After(done) {
			t.Errorf("%s: %v ago is %v, want a time between %v and %v", name, ago, m, begun, done)
		}
	}
	if m := at(done.Add(48*time.Hour + time.Minute)); !m.Equal(done.Add(time.Minute)) {
		t.Errorf("after the moves: %v, want %v", m, done.Add(time.Minute))
	}
	if m := at(begun.Add(-time.Hour)); !m.Equal(begun.Add(-time.Hour)) {
		t.Errorf("before the moves: %v, want %v", m, begun.Add(-time.Hour))
	}
}
