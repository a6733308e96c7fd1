package webhook_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// A receiver lost what it had answered 2xx to, and its integrator asks for the event again: it comes
// with the same id and the same bytes, to the endpoints that were named. A delivery that waits is
// made at once instead of a second one; an endpoint that had none gets its first.
func TestRedeliver(t *testing.T) {
	t.Parallel()
	b := bench(t)
	accepting, failing, later := deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID)
	failing.Status(500)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "accepting", URL: accepting.URL})
	e.add("app", registry.WebhookEndpoint{ID: "failing", URL: failing.URL})
	e.add("another app", registry.WebhookEndpoint{ID: "later", URL: later.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, b.Schedule(t))
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg))
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{webhook.Registration(e)})

	n := b.Notification("evt_lost", "app")
	ref := deliveries.EventRef{ID: n.EventID, OccurredAt: n.OccurredAt}
	states := func() string {
		found, err := store.OfEvents(t.Context(), webhook.Kind, ref)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, d := range found {
			out = append(out, fmt.Sprint(d.DestinationID, " ", d.State, " ", d.HTTPStatus))
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	if got := states(); got != "" {
		t.Errorf("before the event: %s", got)
	}
	b.Notify(t, schemas.TopicWebhooks, true, n, b.Notification("evt_other", "app"))
	deliverytest.Eventually(t, "the first attempts", func() bool { return states() == "accepting delivered 200, failing waiting 500" })
	again := func(name string, to ...string) {
		t.Helper()
		if err := store.Redeliver(t.Context(), deliverytest.Actor, deliveries.Redelivery{Kind: webhook.Kind, Notification: n, Destinations: to, Bodies: deliverytest.Bodies(), Name: name}, b.Now()); err != nil {
			t.Fatal(err)
		}
	}
	failing.Status(204)
	again("one", "accepting", "failing", "later")
	deliverytest.Eventually(t, "each has it", func() bool {
		return states() == "accepting delivered 200, accepting delivered 200, failing delivered 204, later delivered 200"
	})
	again("two", "accepting")
	deliverytest.Eventually(t, "once more", func() bool { return accepting.Count()[n.EventID] == 3 })
	for _, got := range accepting.Got() {
		if id := got.Header.Get("webhook-id"); id == n.EventID && string(got.Body) != string(n.Body) {
			t.Errorf("the body is %s, want %s", got.Body, n.Body)
		}
	}
	if count := []int{failing.Count()[n.EventID], later.Count()[n.EventID], accepting.Count()["evt_other"]}; !slices.Equal(count, []int{2, 1, 1}) {
		t.Errorf("the others got %v", count)
	}
	// Nothing is sent to a suspended endpoint; it gets the event when it is resumed.
	if _, _, err := store.Suspend(t.Context(), deliverytest.Actor, webhook.Kind, "later", b.Now()); err != nil {
		t.Fatal(err)
	}
	again("three", "later")
	found, err := store.OfEvents(t.Context(), webhook.Kind, ref)
	waiting := slices.IndexFunc(found, func(d deliveries.Delivery) bool { return d.State == deliveries.StateWaiting })
	if err != nil || waiting < 0 || !found[waiting].Suspended || found[waiting].DestinationID != "later" {
		t.Errorf("%+v, %v", found, err)
	}
	var audited int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit WHERE action = 'delivery.redeliver' AND subject = $1`, n.EventID).Scan(&audited); err != nil || audited != 3 {
		t.Errorf("%d redeliveries are in the audit table, %v", audited, err)
	}
}
