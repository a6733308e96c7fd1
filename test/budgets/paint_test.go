package budgets_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"quittance/dev/bench/live"
	"quittance/dev/bench/measure"
	"quittance/test/harness"

	"github.com/google/uuid"
)

// Budgets of the first views of the hosted page and of the portal, on a cheap phone and a slow line.
const (
	firstViewBytes    = 8_000 // of all answers, headers included
	firstViewRequests = 3
	firstPaint        = 1500 * time.Millisecond // at 400 ms, 400 kbit/s and a processor six times slower
)

// tries is how often a time is measured at most, since the machine may be busy for a
// moment. One measurement within the budget is enough.
const tries = 3

// firstView holds the first view of a page against its budgets and returns a line of the
// report. The browser has the cookie NAME=VALUE, or none.
func firstView(t *testing.T, name, url, cookie string) (report string) {
	t.Helper()
	best := time.Hour
	harness.Browse(t, 3*time.Minute, "paint.mjs", map[string]any{
		"first": map[string]any{"url": url, "cookie": cookie, "within": firstPaint.Milliseconds(), "tries": tries},
	}, func(line []byte) {
		var told struct {
			Paint     int64             `json:"paint"`
			Requests  int               `json:"requests"`
			Bytes     int               `json:"bytes"`
			Encodings map[string]string `json:"encodings"`
		}
		if err := json.Unmarshal(line, &told); err != nil {
			t.Fatalf("the browser's %q: %v", line, err)
		}
		t.Logf("%s: %s", name, line)
		best = min(best, time.Duration(told.Paint)*time.Millisecond)
		report = fmt.Sprintf("%s requests=%d bytes=%d paint_ms=%d", name, told.Requests, told.Bytes, best.Milliseconds())
		if told.Bytes > firstViewBytes || told.Requests > firstViewRequests || told.Requests == 0 {
			t.Errorf("%s takes %d bytes in %d requests, want %d in %d", name, told.Bytes, told.Requests, firstViewBytes, firstViewRequests)
		}
		for of, encoding := range told.Encodings {
			if encoding != "br" {
				t.Errorf("%s is sent as %q", of, encoding)
			}
		}
	})
	if best > firstPaint {
		t.Errorf("%s is first painted after %v at best, want %v", name, best, firstPaint)
	}
	return report
}

// paidIsShown opens a page in the browser for each payment, approves the payments and
// returns how soon each page showed the receipt.
func paidIsShown(t *testing.T, u *harness.Up, payments int) (took []time.Duration) {
	t.Helper()
	var waiting []harness.Session
	for range payments {
		s := order(t, u, "paid-"+uuid.NewString())
		u.Citizen(s.ID).Pay(t, live.Phone)
		waiting = append(waiting, s)
	}
	var pages []map[string]any
	for _, s := range waiting {
		pages = append(pages, map[string]any{"url": s.CheckoutURL, "collection": u.Collected(t, s).ID})
	}
	harness.Browse(t, 3*time.Minute, "paint.mjs", map[string]any{
		"paid": map[string]any{"payments": pages, "control": u.URL(harness.AtSimulators, "/control")},
	}, func(line []byte) {
		var told struct {
			Paid float64 `json:"paid"`
		}
		if err := json.Unmarshal(line, &told); err != nil {
			t.Fatalf("the browser's %q: %v", line, err)
		}
		took = append(took, time.Duration(told.Paid)*time.Millisecond)
	})
	if len(took) != payments {
		t.Fatalf("%d receipts were shown, want %d", len(took), payments)
	}
	t.Logf("paid and shown: median %v, p95 %v, longest %v", measure.Percentile(took, 0.5), measure.Percentile(took, 0.95), slices.Max(took))
	return took
}
