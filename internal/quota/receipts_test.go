package quota_test

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/quota"
)

// A paid session sends its receipt to whoever is named on its page. Without limits somebody who has paid once
// could send messages to any address, as many as they like: a session and an address have three a day each, over
// all instances, and networks have limits of their own. The same message again is no other one.
func TestReceiptsAskedFor(t *testing.T) {
	t.Parallel()
	var w watch
	w.set(time.Hour)
	pool := database(t)
	hash := func(text string) [sha256.Size]byte { return sha256.Sum256([]byte("key " + text)) }
	instances := []*quota.Receipts{{Postgres: pool, Hash: hash, Now: w.now}, {Postgres: pool, Hash: hash, Now: w.now}}
	n := 0
	ask := func(session, address, client string) (quota.ReceiptRequest, bool) {
		t.Helper()
		n++
		q := quota.ReceiptRequest{MessageID: fmt.Sprint("msg_", n), SessionID: session, Address: address, Client: client}
		ok, err := instances[n%2].Begin(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return q, ok
	}
	const client = "192.0.2.1"
	// At once, to addresses of one session.
	var admitted atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ok, err := instances[i%2].Begin(t.Context(), quota.ReceiptRequest{MessageID: fmt.Sprint("msg_at_once_", i), SessionID: "chs_1", Address: fmt.Sprint("a", i), Client: client})
			if err != nil {
				t.Error(err)
			}
			if ok {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if admitted.Load() != quota.ReceiptsPerSession {
		t.Errorf("%d receipts of one session at once, want %d", admitted.Load(), quota.ReceiptsPerSession)
	}
	// One address, of sessions of its own.
	var last quota.ReceiptRequest
	for i := range quota.ReceiptsPerAddress {
		var ok bool
		if last, ok = ask(fmt.Sprint("chs_of_", i), "phone|061", client); !ok {
			t.Fatalf("receipt %d of an address is refused", i+1)
		}
	}
	if _, ok := ask("chs_other", "phone|061", client); ok {
		t.Error("an address gets a fourth receipt in a day")
	}
	if _, ok := ask("chs_other", "phone|062", client); !ok {
		t.Error("another address gets none")
	}
	if ok, err := instances[0].Begin(t.Context(), last); err != nil || !ok {
		t.Errorf("the same message again: %v, %v", ok, err)
	}
	// One subscriber of IPv6; its neighbour is another.
	for i := range quota.ReceiptsPerSubscriber {
		if _, ok := ask(fmt.Sprint("chs_six_", i), fmt.Sprint("six", i), "2001:db8:1:1::"); !ok {
			t.Fatalf("receipt %d of a network is refused", i+1)
		}
	}
	if _, ok := ask("chs_six", "six", "2001:db8:1:1::"); ok {
		t.Error("a network gets more than its limit")
	}
	if _, ok := ask("chs_six", "six", "2001:db8:1:2::"); !ok {
		t.Error("another network gets none")
	}
	// A day later all is forgotten.
	w.set(26 * time.Hour)
	if _, ok := ask("chs_1", "phone|061", client); !ok {
		t.Error("a day later a receipt is refused")
	}
	for range 10 {
		ask("chs_"+fmt.Sprint(n), fmt.Sprint("later", n), client)
	}
	var rows int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM receipt_requests WHERE at < $1`, w.now().Add(-24*time.Hour)).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d requests of more than a day ago are kept, %v", rows, err)
	}
}
