package budgets_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"quittance/dev/bench/live"
	"quittance/test/harness"
)

// What citizens wait for stays within the budgets: the paint of the first view, and the
// time until a citizen at a page is told that the payment is made. 500 citizens at once
// hold a stream, and 20 look at a browser. The test needs the machine for itself, so it
// runs only when QUITTANCE_BUDGETS_REPORT names the file of the report, as `make
// test/budgets` does.
func TestBudgets(t *testing.T) {
	// Approvals that come at once are harder on the browser than on the service, so they
	// are spread over time.
	const citizens, pages, pace = 500, 20, 20 * time.Millisecond
	file := os.Getenv("QUITTANCE_BUDGETS_REPORT")
	if file == "" {
		t.Skip("needs the machine for itself: `make test/budgets` runs it")
	}
	u := harness.NewUp(t)
	u.Registry = harness.WithoutQuota(t, u.Dir)
	u.Start(t)
	follow(t, u, 20, 0) // fills connection pools and caches
	report := firstView(t, "first_view", order(t, u, "first-view").CheckoutURL, "") + "\n" +
		firstView(t, "portal_first_view", u.URL(harness.AtService, "/portal"), "") + "\n" +
		firstView(t, "portal_passkey_first_view", fmt.Sprintf("http://localhost:%d/portal", u.Port), "quittance_passkey=used") + "\n"
	judge := func(what string, take func() live.Result) {
		for try := 1; ; try++ {
			r := take()
			t.Log(what, r)
			report += fmt.Sprintln(what, r)
			switch {
			case r.Soon():
				return
			case try == tries:
				t.Errorf("%s %v: told later than %v (p95)", what, r, live.Limit)
				return
			}
		}
	}
	judge(fmt.Sprintf("browser_pages=%d", pages), func() live.Result { return live.Result{Told: paidIsShown(t, u, pages)} })
	judge(fmt.Sprintf("live_citizens=%d every_ms=%d", citizens, pace.Milliseconds()), func() live.Result { return follow(t, u, citizens, pace) })
	if err := os.WriteFile(file, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
}

// follow measures how soon citizens at their streams are told. None may be left out.
func follow(t *testing.T, u *harness.Up, citizens int, pace time.Duration) live.Result {
	t.Helper()
	r, err := live.Measure(t.Context(), u.Requests(), citizens, pace)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Lost {
		t.Errorf("an update is lost: %v", err)
	}
	return r
}

// order creates a session that a citizen can pay by phone.
func order(t *testing.T, u *harness.Up, id string) harness.Session {
	t.Helper()
	s, err := live.Order(t.Context(), u.Requests(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
