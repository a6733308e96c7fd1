package papers_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/checkout/document"
	"quittance/checkout/money"
	"quittance/internal/papers"
)

// The bytes of a paper depend on nothing but its arguments. The sums were taken on one
// machine; this test runs on others. A change of the layout, of a library or of Go's
// compressor changes them on purpose: then set the new sums.
func TestGolden(t *testing.T) {
	t.Parallel()
	got := samples(t)
	for name, want := range map[string]string{
		"receipt-fr":       "8524a2fb040bec24c69521bd86a29389b7861dfe8b76e78763ac8c1e45753edb",
		"receipt-reversed": "f7cde558f838a114482bfb4a22f97792d51b91903d63c244cd2867693f7de930",
		"notice-fr":        "5987c6e2214a21095b9bee6b0f7553d53af8cc42faeb647e6e92f7cc04e5f5d7",
	} {
		if sum := fmt.Sprintf("%x", sha256.Sum256(got[name])); sum != want {
			t.Errorf("%s has the sum %s, want %s", name, sum, want)
		}
	}
	// Others make papers at the same time.
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for name, again := range samples(t) {
				if !bytes.Equal(again, got[name]) {
					t.Errorf("%s has other bytes the second time", name)
				}
			}
		})
	}
	group.Wait()
}

// A paper costs at most 10 ms of CPU. The best of several rounds counts, because other
// tests run on the same machine.
func TestCost(t *testing.T) {
	r, err := document.NewReceipt(money.French, payment(t))
	if err != nil {
		t.Fatal(err)
	}
	at := address(t, session())
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const papersEach = 10
	best := time.Hour
	for round := 0; round < 20 && (round < 3 || best > 10*time.Millisecond); round++ {
		before := used()
		for range papersEach {
			if _, err := papers.ReceiptPDF(r, at); err != nil {
				t.Fatal(err)
			}
		}
		best = min(best, (used()-before)/papersEach)
	}
	t.Logf("%s of CPU", best)
	if best > 10*time.Millisecond {
		t.Errorf("a receipt costs %s of CPU", best)
	}
}
