package deliveries_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/schemas/record"
	"quittance/sinks/delivery"
	"quittance/sinks/schedule"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// notices is a kind of delivery that only this test knows: its directory and its
// policy.
type notices struct{ calls atomic.Int32 }

func (*notices) Destinations(n *record.Notification) []string { return []string{"box-" + n.TenantID} }

func (*notices) Destination(id string) (deliveries.Destination, bool) {
	return deliveries.Destination{MaxInFlight: 2}, strings.HasPrefix(id, "box-")
}

// Send fails once.
func (k *notices) Send(context.Context, *record.Delivery) call.Result {
	if k.calls.Add(1) == 1 {
		return call.Result{Status: http.StatusInternalServerError}
	}
	return call.Result{Status: http.StatusOK}
}

func (*notices) Judge(_ *record.Delivery, r call.Result, now time.Time) delivery.Verdict {
	if r.OK() {
		return delivery.Verdict{Outcome: deliveries.OutcomeDelivered}
	}
	return delivery.Verdict{Outcome: deliveries.OutcomeFailed, NextAttemptAt: now.Add(time.Second), Unhealthy: true}
}

// A registered kind is planned, sent, retried by the schedule and replayed without further
// code.
func TestKindIsARegistration(t *testing.T) {
	t.Parallel()
	b := bench(t)
	k := &notices{}
	kind := deliveries.Registration{Kind: "notice", Notifications: "notices", Deliveries: "notices.deliveries", Directory: k}
	servers.CreateTopics(t, kadm.NewClient(b.Client), b.Kafka.Prefix, map[string]int32{kind.Notifications: 1, kind.Deliveries: 1})
	store := deliveries.NewStore(b.Pool, deliveries.Kinds{kind})
	s, err := schedule.New(schedule.Config{
		Kafka: b.Kafka, Codec: b.Codec, Deliveries: store, Outcomes: deliverytest.Outcomes(), Now: b.Now, Log: servers.Logger(t), Metrics: prometheus.NewRegistry(), Poll: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.Sender(kind, k)
	deliverytest.Start(t, deliverytest.Planner(t, cfg), deliverytest.Worker(t, cfg), s)

	begun := time.Now()
	b.Notify(t, kind.Notifications, true, b.Notification("evt_1", "app"))
	state := func() string { return b.State(t, kind.Kind, "evt_1", "box-agency") }
	deliverytest.Eventually(t, "accepted at the second call", func() bool { return state() == deliveries.StateDelivered })
	if n := k.calls.Load(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
	again := deliveries.Replay{
		Kafka: b.Kafka, Codec: b.Codec, Kind: kind.Kind, Since: begun.Add(-time.Second), Until: time.Now().Add(time.Second), Now: b.Now, Bodies: deliverytest.Bodies(), Redelivery: "lost",
	}
	deliverytest.Eventually(t, "replayed", func() bool {
		got, err := store.Replay(t.Context(), deliverytest.Actor, again)
		if err != nil {
			t.Fatal(err)
		}
		return got.Made == 1
	})
	deliverytest.Eventually(t, "accepted once more", func() bool { return k.calls.Load() == 3 })
	if _, _, err := store.Suspend(t.Context(), deliverytest.Actor, kind.Kind, "box-agency", b.Now()); refused(err) != deliveries.CodeNeverSuspended {
		t.Errorf("suspending: %v", err)
	}
}
