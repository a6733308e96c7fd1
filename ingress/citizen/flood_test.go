package citizen_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/ingress/citizen"
	"quittance/test/await"
)

// flood sends requests for codes at the same time, over three instances, each by its own
// browser, and returns how many were answered with each status.
func (w *world) flood(instances []string, n int, client func(i int) string, body func(i int) object) map[int]int {
	w.t.Helper()
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 24)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			b := w.browse()
			b.base, b.client = instances[i%len(instances)], client(i)
			a := b.call(http.MethodPost, "/sign-in", body(i))
			mu.Lock()
			defer mu.Unlock()
			statuses[a.status]++
		})
	}
	wg.Wait()
	return statuses
}

// sentTo counts the codes that were handed over, by the beginning of the address. The limits
// are decided before an answer, and the message follows it.
func (w *world) sentTo(prefix string, want int) int {
	w.t.Helper()
	n := 0
	await.Within(5*time.Second, func() bool {
		n = 0
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, m := range w.sent {
			if strings.HasPrefix(m.To, prefix) {
				n++
			}
		}
		return n >= want
	})
	return n
}

// The limits of docs/design/citizen.md hold exactly over three instances under a flood.
func TestLimitsUnderAFlood(t *testing.T) {
	t.Parallel()
	w := serve(t)
	instances := []string{w.url, w.start(), w.start()}
	everyClient := func(i int) string { return fmt.Sprintf("%d.%d.0.1", 20+i/250, i%250) } // each in a network of its own
	holds := func(what string, statuses map[int]int, accepted, limited, sent, wantSent int) {
		t.Helper()
		t.Logf("%s: answers %v, codes sent %d", what, statuses, sent)
		if statuses[http.StatusAccepted] != accepted || statuses[http.StatusTooManyRequests] != limited || sent != wantSent {
			t.Errorf("%s: answers %v and %d codes, want %d times 202, %d times 429 and %d codes", what, statuses, sent, accepted, limited, wantSent)
		}
	}

	statuses := w.flood(instances, 60, everyClient, func(int) object { return object{"email": "one@example.org"} })
	holds("one address at once", statuses, 60, 0, w.sentTo("one@", 1), 1)

	statuses = w.flood(instances, 90, func(int) string { return "192.0.2.1" }, func(i int) object { return object{"email": fmt.Sprintf("four%d@example.org", i)} })
	holds("one IPv4 address", statuses, 60, 30, w.sentTo("four", 60), 60)
	statuses = w.flood(instances, 30, func(i int) string { return fmt.Sprintf("2001:db8:1:2::%x", i+1) }, func(i int) object { return object{"email": fmt.Sprintf("six%d@example.org", i)} })
	holds("one IPv6 /64", statuses, 10, 20, w.sentTo("six", 10), 10)

	statuses = w.flood(instances, 60, func(i int) string { return everyClient(1000 + i) }, func(i int) object { return object{"phone": fmt.Sprintf("06 655 %04d", i)} })
	holds("one prefix", statuses, 60, 0, w.sentTo("+24206655", 20), 20)

	// 20 are gone to the prefix above. Every further number has a prefix of its own.
	statuses = w.flood(instances, 260, func(i int) string { return everyClient(2000 + i) }, func(i int) object { return object{"phone": fmt.Sprintf("05 %03d 0001", 100+i)} })
	holds("the whole service, SMS in an hour", statuses, 260, 0, w.sentTo("+24205", 180), 180)
	statuses = w.flood(instances, 30, func(i int) string { return everyClient(3000 + i) }, func(i int) object { return object{"email": fmt.Sprintf("still%d@example.org", i)} })
	holds("then e-mail only", statuses, 30, 0, w.sentTo("still", 30), 30)

	// One address in an hour and in a day, whoever asks as often as possible.
	day := map[int]int{}
	for step := range 24 * 6 {
		for status, n := range w.flood(instances, 3, func(i int) string { return everyClient(4000 + 3*step + i) }, func(int) object { return object{"email": "day@mairie.example"} }) {
			day[status] += n
		}
		if step == 5 {
			if n := w.sentTo("day@", 5); n != 5 {
				t.Errorf("one address in an hour: %d codes, want 5", n)
			}
		}
		w.wait(10 * time.Minute)
	}
	holds("one address in a day", day, 3*24*6, 0, w.sentTo("day@", 10), 10)
}

// A guessed code: five tries of a code over three instances, at once.
func TestAGuessedCode(t *testing.T) {
	t.Parallel()
	w := serve(t)
	instances := []string{w.url, w.start(), w.start()}
	for wrong, status := range map[int]int{4: http.StatusNoContent, 5: http.StatusUnauthorized, 30: http.StatusUnauthorized} {
		b := w.browse()
		b.client = fmt.Sprintf("192.0.2.%d", wrong)
		typed, to := numbered(t, 100*wrong)
		b.want(b.call(http.MethodPost, "/sign-in", object{"phone": typed}), http.StatusAccepted, "")
		code := w.code(to)
		var wg sync.WaitGroup
		for i := range wrong {
			wg.Go(func() {
				guess := w.browse()
				guess.base, guess.cookies = instances[i%3], maps.Clone(b.cookies)
				n := fmt.Sprintf("%06d", i)
				if n == code {
					n = "999999"
				}
				if a := guess.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": n}); a.status != http.StatusUnauthorized || a.text("code") != citizen.CodeInvalid {
					t.Errorf("a guess answers %d %s", a.status, a.raw)
				}
			})
		}
		wg.Wait()
		if a := b.call(http.MethodPost, "/sign-in/verify", object{"phone": typed, "code": code}); a.status != status {
			t.Errorf("after %d wrong codes the right one answers %d, want %d", wrong, a.status, status)
		}
	}
}

// A flood of sign-ins that hangs in Postgres leaves connections for people who have signed in.
// It took them all, and their pages hung with it.
func TestPagesDuringAFloodOfSignIns(t *testing.T) {
	t.Parallel()
	w := serve(t)
	signedIn := w.signedIn(1)
	link := signedIn.link(agency, "TP-1001")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, `LOCK TABLE sign_in_requests, passkey_challenges`); err != nil {
		t.Fatal(err)
	}
	var statuses map[int]int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		statuses = w.flood([]string{w.url}, 24, func(i int) string { return fmt.Sprintf("192.0.2.%d", i) }, func(i int) object { return object{"email": fmt.Sprintf("flood%d@example.org", i)} })
	}()
	var hanging time.Time      // a time of Postgres at which sign-ins hang
	for hang := 0; hang < 2; { // the flood has the connections that it can get
		if err := tx.QueryRow(ctx, `SELECT count(*), clock_timestamp() FROM pg_locks WHERE relation = 'sign_in_requests'::regclass AND NOT granted`).Scan(&hang, &hanging); err != nil {
			t.Fatal(err)
		}
	}
	// The first call is answered before any of the flood, which waits at least two seconds, and
	// 60 are answered in the end.
	w.within(ctx, "me", func() { signedIn.call(http.MethodGet, "/me", nil) })
	var hang int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE relation = 'sign_in_requests'::regclass AND NOT granted AND a.xact_start < $1`, hanging).Scan(&hang); err != nil || hang < 2 {
		t.Errorf("%d sign-ins of the flood still hang after the first call of a signed-in person, %v", hang, err)
	}
	for range 30 {
		w.within(ctx, "me", func() {
			if a := signedIn.call(http.MethodGet, "/me", nil); a.status != http.StatusOK || !strings.Contains(a.raw, link) {
				t.Errorf("me answers %d %s", a.status, a.raw)
			}
		})
		w.within(ctx, "dues", func() {
			if a := signedIn.call(http.MethodGet, "/dues", nil); a.status != http.StatusOK {
				t.Errorf("dues answers %d %s", a.status, a.raw)
			}
		})
	}
	if a := w.browse().call(http.MethodPost, "/sign-in/passkey/begin", nil); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Errorf("beginning a sign-in with a passkey answers %d", a.status)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("the flood hangs as long as Postgres does")
	}
	t.Logf("the flood was answered %v while Postgres hung", statuses)
	if statuses[http.StatusTooManyRequests] != 24 {
		t.Errorf("the flood was answered %v, want 24 times 429", statuses)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	w.signedIn(2)
}

// within fails the test if do does not end before ctx.
func (w *world) within(ctx context.Context, what string, do func()) {
	w.t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-ctx.Done():
		w.t.Fatalf("%s is not answered while sign-ins hang", what)
	}
}
