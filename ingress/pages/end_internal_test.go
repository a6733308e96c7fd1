package pages

import (
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
)

// Money that was given back no longer arrived late or was paid: the page says that it was
// returned, whatever else is true of the session.
func TestEndOfASession(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	approved := &checkout.Collection{Status: checkout.CollectionApproved}
	for name, c := range map[string]struct {
		s    checkout.Session
		want page.State
	}{
		"open":                   {checkout.Session{Status: checkout.StatusOpen, ExpiresAt: now.Add(time.Hour)}, ""},
		"over, and not ended":    {checkout.Session{Status: checkout.StatusOpen, ExpiresAt: now}, page.StateExpired},
		"paid":                   {checkout.Session{Status: checkout.StatusCompleted, Collection: approved}, page.StateCompleted},
		"late":                   {checkout.Session{Status: checkout.StatusExpired, Collection: approved}, page.StateLate},
		"undecided":              {checkout.Session{Status: checkout.StatusExpired, Collection: &checkout.Collection{Status: checkout.CollectionUndecided}}, page.StateUndecided},
		"paid and given back":    {checkout.Session{Status: checkout.StatusCompleted, Collection: approved, ReversedAt: now}, page.StateReversed},
		"late and given back":    {checkout.Session{Status: checkout.StatusExpired, Collection: approved, ReversedAt: now}, page.StateReversed},
		"another amount is kept": {checkout.Session{Status: checkout.StatusFailed, Collection: &checkout.Collection{Status: checkout.CollectionUndecided, Mismatched: true}}, page.StateMismatched},
	} {
		if got := end(c.s, now); got != c.want {
			t.Errorf("%s: the page is %q, want %q", name, got, c.want)
		}
	}
}
