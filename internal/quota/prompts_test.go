package quota_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"quittance/internal/network"
	"quittance/internal/quota"
)

func prompt(w *watch) quota.Prompt {
	return quota.Prompt{CollectionID: uuid.NewString(), SessionID: "chs_1", Share: quota.ShareTyped, EndsAt: w.now().Add(5 * time.Minute)}
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

// One client could make one phone after the other ring, each within the limits of its number.
func TestPromptsOfANetwork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		client func(n int) string
		most   int
		other  string
	}{
		"subscriber": {func(int) string { return "2001:db8:1:2::/64" }, quota.PromptsPerSubscriber, "2001:db8:1:3::/64"},
		"site":       {func(n int) string { return fmt.Sprintf("2001:db8:1:%x::/64", n) }, network.SiteClients * quota.PromptsPerSubscriber, "2001:db8:2::/64"},
		"shared":     {func(int) string { return "198.51.100.7" }, quota.PromptsPerShared, "198.51.100.8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w watch
			w.set(time.Hour)
			pool := database(t)
			p := &quota.Prompts{Postgres: pool, Now: w.now, Hash: func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("key " + text)) }}
			begin := func(n int, client string) quota.Prompted {
				t.Helper()
				q := prompt(&w)
				q.Client = client
				out, err := p.Begin(t.Context(), fmt.Sprintf("06%07d", n), q)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			for n := range c.most {
				if out := begin(n, c.client(n)); !out.Added {
					t.Fatalf("prompt %d: %+v", n+1, out)
				}
			}
			if out := begin(c.most, c.client(c.most)); out.Admitted || !out.Network || out.Wait <= 0 || out.Wait > quota.PromptWindow {
				t.Errorf("prompt %d: %+v", c.most+1, out)
			}
			if out := begin(c.most+1, c.other); !out.Added {
				t.Errorf("a prompt from another network: %+v", out)
			}
			w.set(time.Hour + quota.PromptWindow)
			if out := begin(c.most, c.client(c.most)); !out.Added {
				t.Errorf("ten minutes later: %+v", out)
			}
			var rows string
			if err := pool.QueryRow(t.Context(), `SELECT string_agg(p::text, ' ') FROM payment_prompts p`).Scan(&rows); err != nil || strings.Contains(rows, "198.51") || strings.Contains(rows, "2001:db8") {
				t.Errorf("an address is kept, %v", err)
			}
		})
	}
}

// A stranger who knew a number had it refused to its owner, three times in ten minutes and ten in a day. The owner's
// own session has a share: neither one network nor 300 of them take it, however long they go on, and the phone
// rings no more often than the shares say.
func TestStrangersTakeNothingOfTheOwner(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(n int) string{
		"one network, the owner's": func(int) string { return "198.51.100.7" },
		"300 networks":             func(n int) string { return fmt.Sprintf("2001:%x::/64", 0xdb8+n%300) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w watch
			w.set(time.Hour)
			p := &quota.Prompts{Postgres: database(t), Now: w.now, Hash: func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("key " + text)) }}
			begin := func(share quota.Share, client string) quota.Prompted {
				t.Helper()
				q := prompt(&w)
				q.Share, q.Client = share, client
				out, err := p.Begin(t.Context(), "066000001", q)
				if err != nil {
					t.Fatal(err)
				}
				return out
			}
			rings := 0
			strangers := func() {
				for n := range 300 {
					if begin(quota.ShareTyped, client(n)).Added {
						rings++
					}
				}
			}
			for _, share := range []quota.Share{quota.ShareGiven, quota.ShareProven} {
				strangers() // one is open now, and stays so
				if out := begin(share, "198.51.100.7"); !out.Added {
					t.Errorf("%s: the owner is refused: %+v", share, out)
				}
			}
			// Each share has its own limits: the owner's are no way to make a phone ring.
			if out := begin(quota.ShareGiven, "198.51.100.7"); out.Admitted || out.Open == nil {
				t.Errorf("a second prompt of a share beside an open one: %+v", out)
			}
			given := 1
			for at := time.Hour; at < 24*time.Hour; at += 4 * time.Minute {
				w.set(at)
				for n := range 10 {
					if begin(quota.ShareTyped, client(n)).Added {
						rings++
					}
					if begin(quota.ShareGiven, client(n)).Added {
						given++
					}
				}
			}
			if rings > quota.PromptsPerDay || given > quota.PromptsPerDay {
				t.Errorf("the phone rings %d times in a day for strangers and %d times for given sessions, want %d at most", rings, given, quota.PromptsPerDay)
			}
			if out := begin(quota.ShareProven, "198.51.100.7"); !out.Added {
				t.Errorf("after a day of strangers the owner is refused: %+v", out)
			}
		})
	}
}

// A network that has sent its prompts to numbers that were typed keeps nobody in it from paying by a phone of
// their own.
func TestFullNetworkAdmitsOwners(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(time.Hour)
	p := &quota.Prompts{Postgres: database(t), Now: w.now, Hash: func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("key " + text)) }}
	begin := func(n int, share quota.Share) quota.Prompted {
		t.Helper()
		q := prompt(&w)
		q.Client, q.Share = "2001:db8:1:2::/64", share
		out, err := p.Begin(t.Context(), fmt.Sprintf("06%07d", n), q)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for n := range quota.PromptsPerSubscriber {
		begin(n, quota.ShareGiven) // these do not fill the network
	}
	for n := range quota.PromptsPerSubscriber {
		if out := begin(100+n, ""); !out.Added {
			t.Fatalf("prompt %d: %+v", n, out)
		}
	}
	if out := begin(200, quota.ShareTyped); !out.Network {
		t.Errorf("one more typed number: %+v", out)
	}
	if out := begin(200, quota.ShareGiven); !out.Added {
		t.Errorf("an own session in a full network: %+v", out)
	}
}
