package cashin_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"quittance/internal/cashin"
	"quittance/internal/operation"
	"quittance/test/registries"
	"quittance/test/servers"
)

func (h *house) counter(pool *pgxpool.Pool) *cashin.Usage {
	h.t.Helper()
	u, err := cashin.NewUsage(cashin.UsageConfig{Pool: pool, Log: servers.Logger(h.t)})
	if err != nil {
		h.t.Fatal(err)
	}
	return u
}

func (h *house) usage(agency string, since time.Time) cashin.UsageReport {
	h.t.Helper()
	r, err := cashin.ReadUsage(h.t.Context(), h.Pool, cashin.UsageFilter{Agency: agency, Since: since})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// Two instances add to the same rows, at once and repeatedly. Nothing is written before a
// flush, and a flush that fails loses nothing.
func TestUsage(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	ctx := t.Context()
	a, b := h.counter(h.Pool), h.counter(h.Pool)
	shop, other := cashin.Principal{PairID: "p", ApplicationID: registries.AppA}, cashin.Principal{PairID: "q", ApplicationID: registries.AppB, Live: true}
	midnight := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC) // of the 22nd in Brazzaville
	a.Count(shop, "/init-checkout", 200, midnight.Add(-time.Second))
	a.Count(shop, "/init-checkout", 429, midnight.Add(time.Hour))
	b.Count(shop, "/init-checkout", 502, midnight)
	b.Count(shop, "/partners/payments", 200, midnight.Add(2*time.Hour))
	b.Count(other, "/init-checkout", 200, midnight.Add(3*time.Hour))
	if r := h.usage("", midnight); len(r.Applications) != 0 {
		t.Errorf("written before a flush: %+v", r)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	a.Flush(ended) // fails
	done := make(chan struct{})
	for _, u := range []*cashin.Usage{a, b} {
		go func() { u.Flush(ctx); done <- struct{}{} }()
	}
	<-done
	<-done
	a.Flush(ctx) // has nothing left
	a.Count(shop, "/init-checkout", 200, midnight.Add(time.Minute))
	a.Flush(ctx)

	r := h.usage("impots", midnight)
	if len(r.Applications) != 2 || r.Since != "2026-11-22" {
		t.Fatalf("%+v", r)
	}
	last, first := r.Applications[0], r.Applications[1] // who called last comes first
	if last.Application != "Autre" || !last.Live || last.Calls != (cashin.Calls{Calls: 1}) || !last.Inactive || last.InForce {
		t.Errorf("%+v", last)
	}
	if first.Application != "Boutique" || first.Agency != "impots" || first.Calls != (cashin.Calls{Calls: 4, Refused: 1, Failed: 1}) ||
		!first.FirstAt.Equal(midnight.Add(-time.Second)) || !first.LastAt.Equal(midnight.Add(2*time.Hour)) {
		t.Errorf("%+v", first)
	}
	if want := []cashin.UsageDay{
		{Day: "2026-11-22", Route: "/init-checkout", Calls: cashin.Calls{Calls: 3, Refused: 1, Failed: 1}}, {Day: "2026-11-22", Route: "/partners/payments", Calls: cashin.Calls{Calls: 1}},
	}; !slices.Equal(first.Days, want) {
		t.Errorf("days %+v", first.Days)
	}
	if r := h.usage("", midnight.Add(-time.Second)); r.Applications[1].Calls.Calls != 5 || len(r.Applications[1].Days) != 3 {
		t.Errorf("from the 21st: %+v", r.Applications[1])
	}

	// Credentials in force are listed although nobody calls with them.
	h.create("Boutique")
	if r := h.usage("", midnight.AddDate(0, 0, 5)); len(r.Applications) != 2 || !r.Applications[1].InForce || r.Applications[1].Calls.Calls != 0 || r.Applications[1].LastAt.IsZero() {
		t.Errorf("%+v", r.Applications)
	}
	var refused *operation.Error
	if _, err := cashin.ReadUsage(ctx, h.Pool, cashin.UsageFilter{Agency: "nobody", Since: midnight}); !errors.As(err, &refused) || refused.Code != "agency.unknown" || refused.Field != "agency" {
		t.Errorf("an unknown agency: %v", err)
	}
}

// An instance writes at its interval.
func TestUsageIsWritten(t *testing.T) {
	t.Parallel()
	h := setUp(t)
	u, err := cashin.NewUsage(cashin.UsageConfig{Pool: h.Pool, Log: servers.Logger(t), Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	u.Count(cashin.Principal{ApplicationID: registries.AppA}, "/init-checkout", 200, h.watch.Now())
	for deadline := time.Now().Add(10 * time.Second); len(h.usage("", h.watch.Now()).Applications) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the call is not written")
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
