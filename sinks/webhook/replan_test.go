package webhook_test

import (
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// A planner dies between the acknowledgement of its deliveries and the commit of its
// offsets. Its successor plans the same notifications again: some deliveries are already
// accepted, some are under way, some wait for their next attempt. None is sent a second
// time because of that.
func TestPlannedTwiceIsSentOnce(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own, failing := deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID)
	failing.Status(http.StatusInternalServerError)
	var hang atomic.Bool
	release, hung := make(chan struct{}), make(chan struct{}, 100)
	own.Answer(func(_ http.ResponseWriter, r *http.Request) {
		if hang.Load() {
			hung <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL})
	e.add("other", registry.WebhookEndpoint{ID: "failing", URL: failing.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Worker(t, cfg), b.Schedule(t))
	stop := deliverytest.Start(t, deliverytest.Planner(t, cfg))

	state := func(id, to string) string { return b.State(t, webhook.Kind, id, to) }
	done, waiting, under := ids("d", 40), ids("w", 3), ids("u", 5)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", done)...)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "other", waiting)...)
	deliverytest.Eventually(t, "accepted, and waiting for the next attempt", func() bool {
		return !slices.ContainsFunc(done, func(id string) bool { return state(id, "own") != "delivered" }) &&
			!slices.ContainsFunc(waiting, func(id string) bool { return state(id, "failing") != "waiting" })
	})
	hang.Store(true)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", under)...)
	for range under {
		<-hung
	}
	stop()

	adm := kadm.NewClient(b.Client)
	group, topic := b.Kafka.Prefix+"webhook-planner", b.Kafka.Prefix+schemas.TopicWebhooks
	back := kadm.Offsets{}
	for p := range int32(2) {
		back.AddOffset(topic, p, 0, -1)
	}
	deliverytest.Eventually(t, "its offsets are not committed", func() bool { return adm.CommitAllOffsets(t.Context(), group, back) == nil })
	all := len(done) + len(waiting) + len(under)
	if n := len(b.Records(t, schemas.TopicWebhooksDeliveries)); n != all {
		t.Fatalf("%d deliveries stand on the topic for %d events", n, all)
	}
	deliverytest.Start(t, deliverytest.Planner(t, cfg))
	deliverytest.Eventually(t, "all is planned again", func() bool { return len(b.Records(t, schemas.TopicWebhooksDeliveries)) == 2*all })
	fresh := ids("f", 10) // behind all of it, and sent
	hang.Store(false)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", fresh)...)
	deliverytest.Eventually(t, "what comes behind is sent", func() bool {
		return !slices.ContainsFunc(fresh, func(id string) bool { return state(id, "own") != "delivered" })
	})
	close(release)
	deliverytest.Eventually(t, "what was under way is accepted", func() bool {
		return !slices.ContainsFunc(under, func(id string) bool { return state(id, "own") != "delivered" })
	})
	settled(t, b)
	for _, r := range []*deliverytest.Receiver{own, failing} {
		for id, n := range r.Count() {
			if n != 1 {
				t.Errorf("%s came %d times", id, n)
			}
		}
	}
}
