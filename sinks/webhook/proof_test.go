package webhook_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/deliveries"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/schemas/origin"
	"quittance/schemas/record"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// put writes a record as somebody who may write the topic.
func put(t *testing.T, b *deliverytest.Bench, topic string, r record.Record) {
	t.Helper()
	cl, err := b.Kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	value, err := b.Codec.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	out := &kgo.Record{Topic: b.Kafka.Prefix + topic, Key: []byte("own"), Value: value}
	if a, ok := r.(*record.Attempt); ok { // somebody who has the key of the worker, too
		deliverytest.SignOutcome(out, a.Delivery.Kind)
	}
	if err := cl.ProduceSync(t.Context(), out).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// Whoever could write webhooks.deliveries, or deliveries.attempts in the name of the worker, had a worker sign any body with an
// endpoint's secret. Nothing is sent now that the processor has not made for that endpoint's owner. It is
// in the poison topic, in the schedule for a person, and the true event can be sent once more.
func TestForgedBodyIsNotSigned(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own, other := deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", ApplicationID: "app", URL: own.URL})
	e.add("other", registry.WebhookEndpoint{ID: "theirs", ApplicationID: "other", URL: other.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), b.Schedule(t))

	own.Status(500)
	n := b.Notification("evt_true", "app")
	b.Notify(t, schemas.TopicWebhooks, true, n)
	deliverytest.Eventually(t, "the first attempt failed", func() bool { return b.State(t, webhook.Kind, "evt_true", "own") == deliveries.StateWaiting })
	forged := func(event string, change func(d *record.Delivery)) *record.Delivery {
		f := b.Notification(event, "app")
		origin.SignBody(schemas.TopicWebhooks, f, deliverytest.Bodies())
		d := deliveries.Plan(webhook.Kind, f, "own")
		change(d)
		d.DeliveryID = deliveries.ID(webhook.Kind, d.EventID, d.DestinationID)
		return d
	}
	paid := []byte(`{"event":"checkout.completed","paid":true,"amount":1}`)
	attacks := []*record.Delivery{
		forged("evt_unsigned", func(d *record.Delivery) { d.Mac = nil }),
		forged("evt_body", func(d *record.Delivery) { d.Body = paid }),
		forged("evt_id", func(d *record.Delivery) { d.EventID = "evt_1d" }),
		forged("evt_theirs", func(d *record.Delivery) { d.DestinationID = "theirs" }),
	}
	for _, d := range attacks {
		put(t, b, schemas.TopicWebhooksDeliveries, d)
	}
	// An outcome of a call that nobody made has the schedule put a body on the topic.
	scheduled := forged("evt_attempt", func(d *record.Delivery) { d.Body = paid })
	put(t, b, schemas.TopicAttempts, &record.Attempt{Delivery: *scheduled, Outcome: string(deliveries.OutcomeFailed), At: b.Now(), HTTPStatus: 500, NextAttemptAt: b.Now()})
	deliverytest.Eventually(t, "all forged ones wait for a person", func() bool {
		for _, d := range append(slices.Clone(attacks), scheduled) {
			if b.State(t, webhook.Kind, d.EventID, d.DestinationID) != deliveries.StateNeedsOperator {
				return false
			}
		}
		return true
	})
	if poison := b.Records(t, schemas.TopicPoisonDeliveries); len(poison) != len(attacks)+1 {
		t.Errorf("%d records in the poison topic, want %d", len(poison), len(attacks)+1)
	}

	// The true one went through the schedule's table and keeps its proof there.
	own.Status(204)
	b.Advance(time.Hour)
	deliverytest.Eventually(t, "the true one is delivered", func() bool { return b.State(t, webhook.Kind, "evt_true", "own") == deliveries.StateDelivered })
	if got := own.Count(); len(got) != 1 || got["evt_true"] < 2 {
		t.Errorf("the endpoint got %v", got)
	}
	if got := own.Got(); got[len(got)-1].Body != string(n.Body) {
		t.Errorf("the endpoint got %s", got[len(got)-1].Body)
	}

	// What a forged record has put in the place of a true one is sent once more from the event.
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{webhook.Registration(e)})
	if err := store.Redeliver(t.Context(), deliverytest.Actor, deliveries.Redelivery{
		Kind: webhook.Kind, Notification: b.Notification("evt_body", "app"), Destinations: []string{"own"}, Bodies: deliverytest.Bodies(), Name: "x",
	}, b.Now()); err != nil {
		t.Fatal(err)
	}
	deliverytest.Eventually(t, "it is sent once more", func() bool { return own.Count()["evt_body"] == 1 })
	if got := other.Count(); !maps.Equal(got, map[string]int{}) {
		t.Errorf("the other application's endpoint got %v", got)
	}
}

// Deliveries of the release before have no proof. With --accept-unproven-bodies they are sent; altered ones
// are not.
func TestUnprovenBodiesOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	b := bench(t)
	own := deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", ApplicationID: "app", URL: own.URL})
	cfg := config(t, b, e)
	cfg.AcceptUnproven = true
	deliverytest.Start(t, deliverytest.Worker(t, cfg), b.Schedule(t))
	old := deliveries.Plan(webhook.Kind, b.Notification("evt_old", "app"), "own")
	forged := deliveries.Plan(webhook.Kind, b.Notification("evt_forged", "app"), "own")
	forged.Mac = make([]byte, 32)
	put(t, b, schemas.TopicWebhooksDeliveries, forged)
	put(t, b, schemas.TopicWebhooksDeliveries, old)
	deliverytest.Eventually(t, "both have an outcome", func() bool {
		return b.State(t, webhook.Kind, "evt_old", "own") == deliveries.StateDelivered && b.State(t, webhook.Kind, "evt_forged", "own") == deliveries.StateNeedsOperator
	})
	if got := own.Count(); !maps.Equal(got, map[string]int{"evt_old": 1}) {
		t.Errorf("the endpoint got %v", got)
	}
}
