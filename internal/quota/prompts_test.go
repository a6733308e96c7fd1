package quota_test

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/quota"
)

func prompt(w *watch) quota.Prompt {
	return quota.Prompt{CollectionID: uuid.NewString(), SessionID: "chs_1", EndsAt: w.now().Add(5 * time.Minute)}
}

// Whoever knew a number could make its phone ring as often as they liked. A number gets three
// prompts in ten minutes and ten a day, over all instances, and one at a time. The same
// confirmation again is no other prompt.
func TestPrompts(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(time.Hour)
	pool := database(t)
	hash := func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("key " + text)) }
	p, other := &quota.Prompts{Postgres: pool, Hash: hash, Now: w.now}, &quota.Prompts{Postgres: pool, Hash: hash, Now: w.now}
	begin := func(number string, q quota.Prompt) quota.Prompted {
		t.Helper()
		out, err := p.Begin(t.Context(), number, q)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := prompt(&w)
	var added atomic.Int32
	var wg sync.WaitGroup
	for n := range 8 { // at once, by two instances
		wg.Go(func() {
			q := first
			if n > 3 {
				q.CollectionID = uuid.NewString()
			}
			out, err := []*quota.Prompts{p, other}[n%2].Begin(t.Context(), "+242 06 600 00 01", q)
			if err != nil {
				t.Error(err)
			}
			if out.Added {
				added.Add(1)
			}
		})
	}
	wg.Wait()
	if added.Load() != 1 {
		t.Fatalf("%d prompts at once, want 1", added.Load())
	}
	another := begin("066000001", prompt(&w))
	if another.Admitted || another.Open == nil || another.Open.SessionID != "chs_1" {
		t.Fatalf("a second prompt beside an open one: %+v", another)
	}
	open := *another.Open
	if again := begin("242066000001", open); !again.Admitted || again.Added {
		t.Errorf("the same confirmation again: %+v", again)
	}
	if out := begin("066000002", prompt(&w)); !out.Added {
		t.Errorf("another number: %+v", out)
	}
	at := time.Hour
	end := func(q quota.Prompt) {
		t.Helper()
		if err := p.End(t.Context(), q.CollectionID); err != nil {
			t.Fatal(err)
		}
	}
	end(open)
	for n := range 2 {
		q := prompt(&w)
		if out := begin("066000001", q); !out.Added {
			t.Fatalf("prompt %d: %+v", n+2, out)
		}
		end(q)
	}
	if out := begin("066000001", prompt(&w)); out.Admitted || out.Wait <= 9*time.Minute || out.Wait > quota.PromptWindow {
		t.Errorf("a fourth prompt in ten minutes: %+v", out)
	}
	// What was not sent does not count, and the day has ten.
	sent := 3
	for n := 1; sent < quota.PromptsPerDay; n++ {
		at += 11 * time.Minute
		w.set(at)
		q := prompt(&w)
		if out := begin("066000001", q); !out.Added {
			t.Fatalf("prompt %d: %+v", sent+1, out)
		}
		if n%2 == 0 {
			if err := p.Withdraw(t.Context(), q.CollectionID); err != nil {
				t.Fatal(err)
			}
			continue
		}
		end(q)
		sent++
	}
	at += 11 * time.Minute
	w.set(at)
	if out := begin("066000001", prompt(&w)); out.Admitted || out.Wait < 20*time.Hour {
		t.Errorf("an eleventh prompt in a day: %+v", out)
	}
	w.set(26 * time.Hour)
	if out := begin("066000001", prompt(&w)); !out.Added {
		t.Errorf("a day later: %+v", out)
	}
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM payment_prompts WHERE at < $1`, w.now().Add(-24*time.Hour)).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d prompts of more than a day ago are kept, %v", rows, err)
	}
}
