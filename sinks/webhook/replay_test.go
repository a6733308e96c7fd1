package webhook_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
)

// An endpoint is added after events that it should have had, while calls to another one
// hang. A replay sends the missing deliveries to the first endpoint once, however often it
// runs, and sends nothing twice. Accepted deliveries are sent again only in a named
// redelivery, once for each name.
func TestReplayFillsGapsOnly(t *testing.T) {
	t.Parallel()
	b := bench(t)
	quick, slow := deliverytest.NewReceiver(t, eventID), deliverytest.NewReceiver(t, eventID)
	var hang atomic.Bool
	release := make(chan struct{})
	hung := make(chan struct{}, 100)
	slow.Answer(func(_ http.ResponseWriter, r *http.Request) {
		if hang.Load() {
			hung <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "slow", URL: slow.URL})
	cfg := config(t, b, e)
	stop := deliverytest.Start(t, b.Schedule(t))
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg))

	begun := time.Now()
	first, then := ids("a", 15), ids("b", 5)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", first)...)
	b.Notify(t, schemas.TopicWebhooks, false, notifications(b, "app", ids("aborted", 3))...)
	deliverytest.Eventually(t, "the first are accepted", func() bool { return b.State(t, webhook.Kind, first[14], "slow") == "delivered" })
	hang.Store(true)
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", then)...)
	for range then {
		<-hung
	}
	e.add("app", registry.WebhookEndpoint{ID: "quick", URL: quick.URL})

	store := deliveries.NewStore(b.Pool, deliveries.Kinds{webhook.Registration(e)})
	replay := func(redelivery, only string, dry bool) (deliveries.Replayed, error) {
		return store.Replay(t.Context(), deliverytest.Actor, deliveries.Replay{
			Kafka: b.Kafka, Codec: b.Codec, Kind: webhook.Kind, Since: begun, Until: time.Now().Add(time.Second), Now: b.Now,
			Bodies: deliverytest.Bodies(), Redelivery: redelivery, Only: only, DryRun: dry,
		})
	}
	want := deliveries.Replayed{Events: 20, Made: 20, Accepted: 15, UnderWay: 5}
	deliverytest.Eventually(t, "the planner's offsets are committed", func() bool {
		got, err := replay("", "", true)
		return err == nil && got.Events == want.Events
	})
	for _, dry := range []bool{true, false} {
		if got, err := replay("", "", dry); err != nil || got != want {
			t.Fatalf("dry %v: %+v, %v; want %+v", dry, got, err, want)
		}
	}
	all := slices.Concat(first, then)
	deliverytest.Eventually(t, "the new endpoint has all", func() bool { return len(quick.Count()) == len(all) })
	deliverytest.Eventually(t, "and that is on record", func() bool {
		return !slices.ContainsFunc(all, func(id string) bool { return b.State(t, webhook.Kind, id, "quick") != "delivered" })
	})
	hang.Store(false)
	close(release)
	deliverytest.Eventually(t, "so has the slow one", func() bool {
		return !slices.ContainsFunc(then, func(id string) bool { return b.State(t, webhook.Kind, id, "slow") != "delivered" })
	})
	deliverytest.Eventually(t, "and its offsets are committed", func() bool {
		got, err := replay("", "", true)
		return err == nil && got == deliveries.Replayed{Events: 20, Accepted: 40}
	})
	if got, err := replay("", "", false); err != nil || got.Made != 0 {
		t.Fatalf("once more: %+v, %v", got, err)
	}
	for name, r := range map[string]*deliverytest.Receiver{"quick": quick, "slow": slow} {
		for id, n := range r.Count() {
			if n != 1 {
				t.Errorf("%s has %s %d times", name, id, n)
			}
		}
		if n := len(r.Count()); n != len(all) {
			t.Errorf("%s has %d events, want %d", name, n, len(all))
		}
	}

	// The integrator has lost accepted events and asks for them.
	for _, made := range []int64{20, 0} {
		got, err := replay("restored backup", "quick", false)
		if err != nil || got.Made != made {
			t.Fatalf("again: %+v, %v; want %d made", got, err, made)
		}
		deliverytest.Eventually(t, "all came again", func() bool { return len(quick.Got()) == 2*len(all) })
	}
	twice := map[string]int{}
	for _, id := range all {
		twice[id] = 2
	}
	if !maps.Equal(quick.Count(), twice) || len(slow.Got()) != len(all) {
		t.Errorf("quick has %v, slow %d", quick.Count(), len(slow.Got()))
	}

	// Support sends one event again, or those of one session: no neighbour goes with it.
	for name, of := range map[string]deliveries.Replay{"one event": {EventID: first[3]}, "one session": {SessionIDs: []string{"session of nobody"}}} {
		of.Kafka, of.Codec, of.Kind, of.Since, of.Until, of.Now, of.Redelivery = b.Kafka, b.Codec, webhook.Kind, begun, time.Now().Add(time.Second), b.Now, name
		of.Bodies = deliverytest.Bodies()
		made := map[string]int64{"one event": 2}[name]
		if got, err := store.Replay(t.Context(), deliverytest.Actor, of); err != nil || got.Made != made || got.Events != made/2 {
			t.Fatalf("%s: %+v, %v; want %d made", name, got, err, made)
		}
	}
	deliverytest.Eventually(t, "one event came again", func() bool { return quick.Count()[first[3]] == 3 && slow.Count()[first[3]] == 2 })
	if len(quick.Got()) != 2*len(all)+1 || len(slow.Got()) != len(all)+1 {
		t.Errorf("quick got %d, slow %d: neighbours were sent", len(quick.Got()), len(slow.Got()))
	}

	// While outcomes are not applied it is unknown what is delivered.
	stop()
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", ids("c", 1))...)
	deliverytest.Eventually(t, "an outcome that nobody applies", func() bool { return quick.Count()["evt_c00000"] == 1 && slow.Count()["evt_c00000"] == 1 })
	deliverytest.Eventually(t, "it is recorded", func() bool {
		n := 0
		for _, a := range b.Attempts(t) {
			if a.Delivery.EventID == "evt_c00000" {
				n++
			}
		}
		return n == 2
	})
	var refused *operation.Error
	if got, err := replay("", "", false); !errors.As(err, &refused) || refused.Code != deliveries.CodeBehind || got.Made != 0 {
		t.Errorf("without a schedule: %+v, %v", got, err)
	}
}

// Rows of accepted deliveries are kept for 60 days. A replay of older events does not take them for missing:
// only a named redelivery sends them again.
func TestReplayOfForgottenDeliveries(t *testing.T) {
	t.Parallel()
	b := bench(t)
	r := deliverytest.NewReceiver(t, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "one", URL: r.URL})
	cfg := config(t, b, e)
	deliverytest.Start(t, b.Schedule(t))
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg))
	begun := time.Now()
	b.Notify(t, schemas.TopicWebhooks, true, notifications(b, "app", ids("a", 5))...)
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{webhook.Registration(e)})
	replay := func(redelivery string, days int) (deliveries.Replayed, error) {
		return store.Replay(t.Context(), deliverytest.Actor, deliveries.Replay{
			Kafka: b.Kafka, Codec: b.Codec, Kind: webhook.Kind, Since: begun, Until: time.Now().Add(time.Second), Now: func() time.Time { return b.Now().AddDate(0, 0, days) },
			Bodies: deliverytest.Bodies(), Redelivery: redelivery, Only: "one", DryRun: true,
		})
	}
	deliverytest.Eventually(t, "all are accepted", func() bool {
		got, err := replay("", 70)
		return err == nil && got == deliveries.Replayed{Events: 5, Accepted: 5}
	})
	if _, err := b.Pool.Exec(t.Context(), `DELETE FROM deliveries`); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		redelivery string
		days       int
		want       deliveries.Replayed
	}{
		{"", 70, deliveries.Replayed{Events: 5, Forgotten: 5}},
		{"", 50, deliveries.Replayed{Events: 5, Made: 5}},
		{"lost", 70, deliveries.Replayed{Events: 5, Made: 5}},
	} {
		if got, err := replay(test.redelivery, test.days); err != nil || got != test.want {
			t.Errorf("after %d days, redelivery %q: %+v, %v; want %+v", test.days, test.redelivery, got, err, test.want)
		}
	}
}
