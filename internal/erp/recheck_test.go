package erp_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/erp"
	"quittance/test/erps"
)

// Before a portal session is paid, the ERP is asked again for each of its dues.
func TestRecheck(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		control string
		edit    func(*checkout.Session)
		later   time.Duration
		want    erp.Recheck
	}{
		"the same":                     {want: erp.RecheckUnchanged, later: time.Hour},
		"another label":                {control: `{"change": {"TP-1001-A": {"label": "Autre libellé"}}}`, want: erp.RecheckUnchanged},
		"less":                         {control: `{"change": {"TP-1001-A": {"outstanding_minor": 40000}}}`, want: erp.RecheckChanged},
		"more":                         {control: `{"change": {"TP-1002-A": {"outstanding_minor": 26000, "original_minor": 26000}}}`, want: erp.RecheckChanged},
		"paid elsewhere":               {control: `{"change": {"TP-1001-A": {"outstanding_minor": 0}}}`, want: erp.RecheckChanged},
		"gone":                         {control: `{"change": {"TP-1001-A": null}}`, want: erp.RecheckChanged},
		"another currency":             {control: `{"change": {"TP-1001-A": {"currency": "EUR"}}}`, want: erp.RecheckChanged},
		"broken":                       {control: `{"misbehave": ["minimum_above_outstanding"]}`, want: erp.RecheckChanged},
		"no partial payment any more":  {control: `{"change": {"TP-1001-B": {"allow_partial": false}}}`, edit: part, want: erp.RecheckChanged},
		"a minimum above the part":     {control: `{"change": {"TP-1001-B": {"minimum_amount_minor": 20001}}}`, edit: part, want: erp.RecheckChanged},
		"a part that stays possible":   {control: `{"change": {"TP-1001-B": {"minimum_amount_minor": 20000}}}`, edit: part, want: erp.RecheckUnchanged},
		"away, pulled 15 minutes ago":  {control: `{"away": true}`, later: 15 * time.Minute, want: erp.RecheckUnchanged},
		"away, pulled before that":     {control: `{"away": true}`, later: 15*time.Minute + time.Second, want: erp.RecheckUnknown},
		"a page instead of an answer":  {control: `{"misbehave": ["html"]}`, later: time.Hour, want: erp.RecheckUnknown},
		"a ministry's session":         {control: `{"change": {"TP-1001-A": null}}`, edit: func(s *checkout.Session) { s.CitizenID = "" }, want: erp.RecheckUnchanged},
		"a session in payment":         {control: `{"change": {"TP-1001-A": null}}`, edit: func(s *checkout.Session) { s.Collection = &checkout.Collection{} }, want: erp.RecheckUnchanged},
		"an ended session":             {control: `{"change": {"TP-1001-A": null}}`, edit: func(s *checkout.Session) { s.Status = checkout.StatusExpired }, want: erp.RecheckUnchanged},
		"an agency whose ERP has gone": {edit: func(s *checkout.Session) { s.TenantID = "b" }, later: time.Hour, want: erp.RecheckUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := start
			e := erps.Start(t, "a", func() time.Time { return now })
			s := checkout.Session{ID: "s", TenantID: "a", Currency: "XAF", Status: checkout.StatusOpen}
			e.Cart(now, "TP-1001-A", "TP-1001-B", "TP-1002-A")(&s) // two subjects
			if c.edit != nil {
				c.edit(&s)
			}
			if c.control != "" {
				e.Control(c.control)
			}
			now = now.Add(c.later)
			if got := e.Recheck(t.Context(), s); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// part pays a part of the second due.
func part(s *checkout.Session) {
	s.Items = slices.Clone(s.Items)
	s.Items[1].Amount = 20_000
}

// A later good answer counts as the pull of the session's creation does. A shared answer never
// does: each payment asks anew.
func TestRecheckRemembersItsOwnAnswers(t *testing.T) {
	t.Parallel()
	var minutes atomic.Int64
	start := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	e := erps.Start(t, "a", func() time.Time { return start.Add(time.Duration(minutes.Load()) * time.Minute) })
	s := checkout.Session{ID: "s", TenantID: "a", Currency: "XAF", Status: checkout.StatusOpen}
	e.Cart(start, "TP-1001-A")(&s)
	check := func(at int64, want erp.Recheck) {
		t.Helper()
		minutes.Store(at)
		if got := e.Recheck(t.Context(), s); got != want {
			t.Errorf("after %d minutes: %s, want %s", at, got, want)
		}
	}
	check(20, erp.RecheckUnchanged)
	e.Control(`{"away": true}`)
	check(35, erp.RecheckUnchanged)
	check(36, erp.RecheckUnknown)
	other := s
	other.ID = "t"
	if got := e.Recheck(t.Context(), other); got != erp.RecheckUnknown {
		t.Errorf("the answer for one session serves another: %s", got)
	}
	e.Control(`{"away": false}`)
	if a, err := e.List(t.Context(), "a", false, "TP-1001"); err != nil || a.Status != erp.SourceOK {
		t.Fatalf("%+v, %v", a, err)
	}
	e.Control(`{"change": {"TP-1001-A": null}}`)
	check(36, erp.RecheckChanged) // the answer of List is a moment old
}

// An answer that comes late is waited for, up to the limit of a call.
func TestRecheckOfASlowERP(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	e := erps.Start(t, "a", func() time.Time { return start })
	s := checkout.Session{ID: "s", TenantID: "a", Currency: "XAF", Status: checkout.StatusOpen}
	e.Cart(start.Add(-time.Hour), "TP-1001-A")(&s)
	e.Control(`{"delay": "500ms"}`)
	if got := e.Recheck(t.Context(), s); got != erp.RecheckUnchanged {
		t.Errorf("an answer after half a second: %s", got)
	}
	e.Control(`{"delay": "6s"}`)
	s.ID = "t" // the first one was confirmed a moment ago
	if got := e.Recheck(t.Context(), s); got != erp.RecheckUnknown {
		t.Errorf("no answer: %s", got)
	}
}
