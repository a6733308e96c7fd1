package delivery

import (
	"testing"
	"time"
)

// An ERP answers 403 to one confirmation, for a reason of its own, and takes all others. Held as a
// whole it would be called every 15 minutes for ever.
func TestRefusalsOfOneDelivery(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var r refusals
	for n, want := range []struct{ first, own bool }{{first: true}, {first: true}, {own: true}} {
		if first, own := r.refused("one", now); first != want.first || own != want.own {
			t.Errorf("refusal %d: first %v, own %v, want %+v", n+1, first, own, want)
		}
		now = now.Add(time.Minute)
		r.took("another", now)
		now = now.Add(time.Minute)
	}
	if len(r.by) != 0 {
		t.Errorf("%d deliveries are remembered", len(r.by))
	}
}

// While nothing is accepted, no number of refusals is that of a delivery, and the first is told once.
func TestRefusalsOfCredentials(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var r refusals
	for round := range 2 { // the credentials are mended, and wrong once more
		for n := range 100 {
			first, own := r.refused([]string{"one", "two"}[n%2], now)
			if first != (n == 0) || own {
				t.Errorf("round %d, refusal %d: first %v, own %v", round, n+1, first, own)
			}
			now = now.Add(15 * time.Minute)
		}
		r.took("two", now)
		now = now.Add(time.Minute)
	}
}
