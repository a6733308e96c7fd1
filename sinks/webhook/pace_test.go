package webhook_test

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// An endpoint with a rate gets at most that number of calls in any second, from the mailbox
// and from the schedule. Another endpoint does not wait for it.
func TestRate(t *testing.T) {
	t.Parallel()
	b := bench(t)
	paced, free := deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	const perSecond, n = 10, 90 // some 50 of them may wait in the mailbox, the others are put off
	e.add("app", registry.WebhookEndpoint{ID: "paced", URL: paced.URL, MaxPerSecond: perSecond})
	e.add("app", registry.WebhookEndpoint{ID: "free", URL: free.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", ids("r", n))...)
	deliverytest.Eventually(t, "the neighbour has all", func() bool { return len(free.Count()) == n })
	if got := len(paced.Count()); got == n {
		t.Error("the paced one has all as soon as the other")
	}
	deliverytest.Eventually(t, "so has the paced one", func() bool { return len(paced.Count()) == n })
	got := paced.Got()
	for i, first := range got {
		in := 0
		for _, g := range got[i:] {
			if g.At.Sub(first.At) < time.Second {
				in++
			}
		}
		if in > perSecond+2 { // a burst of one, and a call that was slow to arrive
			t.Fatalf("%d calls in a second", in)
		}
	}
	if len(got) != n {
		t.Errorf("%d calls for %d events", len(got), n)
	}
	deferred := 0
	for _, a := range b.Attempts(t) {
		if a.Reason == deliveries.ReasonRateLimited {
			deferred++
		}
	}
	if deferred == 0 {
		t.Error("nothing was put off: the mailbox holds more than its rate moves in seconds")
	}
}

// A receiver asks for two minutes without calls. It gets no call in that time, of any
// event. Then it gets one call first.
func TestRetryAfterHoldsTheEndpoint(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, eventID)
	var calls atomic.Int64
	r.Answer(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: r.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	b.Notify(t, schemas.TopicWebhooks, true, b.Notification("evt_first", "app"))
	state := func(id string) string { return b.State(t, webhook.Kind, id, "own") }
	deliverytest.Eventually(t, "told to wait", func() bool { return state("evt_first") == "waiting" })
	others := ids("w", 20)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", others)...)
	deliverytest.Eventually(t, "put off", func() bool { return state(others[19]) == "waiting" })
	b.Advance(115 * time.Second)
	time.Sleep(time.Second) // the schedule looks four times a second
	if n := calls.Load(); n != 1 {
		t.Fatalf("%d calls before the time that was asked for", n)
	}
	b.Advance(10 * time.Second)
	deliverytest.Eventually(t, "all", func() bool {
		b.Advance(10 * time.Second) // the first one waits for its step too
		for _, id := range append([]string{"evt_first"}, others...) {
			if state(id) != "delivered" {
				return false
			}
		}
		return true
	})
	if n := calls.Load(); n != 22 {
		t.Errorf("%d calls for 21 events, one of which was refused once", n)
	}
}

// An operator resumes an endpoint whose breaker is open. It is called at once.
func TestResumeClosesTheBreaker(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, eventID)
	r.Status(http.StatusInternalServerError)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: r.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))
	all := ids("s", 40)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", all)...)
	state := func(id string) string { return b.State(t, webhook.Kind, id, "own") }
	deliverytest.Eventually(t, "all failed or put off", func() bool {
		for _, id := range all {
			if state(id) != "waiting" {
				return false
			}
		}
		return true
	})
	if _, _, err := b.Store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "own", b.Now()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // the worker asks once a second
	r.Answer(nil)
	if _, due, err := b.Store.Resume(t.Context(), deliverytest.Actor, webhook.Kind, "own", b.Now(), nil); err != nil || due != len(all) {
		t.Fatalf("%d due, %v", due, err)
	}
	deliverytest.Eventually(t, "all delivered, without the clock being moved", func() bool {
		for _, id := range all {
			if state(id) != "delivered" {
				return false
			}
		}
		return true
	})
}
