package schedule_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/deliveries"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/sinks/erp"
	"quittance/sinks/schedule"
	"quittance/sinks/webhook"
	deliverytest "quittance/test/deliveries"
	"quittance/test/servers"
)

// The gauges show how late deliveries are, even without a planner and a worker. They
// distinguish untried deliveries from those that are retried, held or parked.
func TestOldestUndelivered(t *testing.T) {
	t.Parallel()
	b := bench(t)
	metrics := prometheus.NewRegistry()
	s, err := schedule.New(schedule.Config{
		Kafka: b.Kafka, Codec: b.Codec, Deliveries: b.Store, Outcomes: deliverytest.Outcomes(), Now: b.Now, Log: servers.Logger(t), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	hours := func() map[string]float64 {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			if f.GetName() == "quittance_delivery_oldest_undelivered_seconds" {
				for _, m := range f.GetMetric() {
					name := m.GetLabel()[0].GetValue() + " " + m.GetLabel()[1].GetValue()
					out[name] = (time.Duration(m.GetGauge().GetValue()) * time.Second).Truncate(time.Hour).Hours()
				}
			}
		}
		return out
	}
	deliverytest.Start(t, s)
	nothing := map[string]float64{
		"webhook untried": 0, "webhook retrying": 0, "webhook held": 0, "webhook needs_operator": 0,
		"erp untried": 0, "erp retrying": 0, "erp held": 0, "erp needs_operator": 0,
		"cashin untried": 0, "cashin retrying": 0, "cashin held": 0, "cashin needs_operator": 0,
	}
	deliverytest.Eventually(t, "nothing is late, and that is said", func() bool { return maps.Equal(hours(), nothing) })

	at := func(hoursAgo int, n *record.Notification) *record.Notification {
		n.OccurredAt = b.Now().Add(-time.Duration(hoursAgo)*time.Hour - time.Minute)
		return n
	}
	// One notification is aborted and one is not planned. On the topic of deliveries there is
	// one that no worker has read, behind one that the schedule has produced again.
	b.Notify(t, schemas.TopicWebhooks, false, at(50, b.Notification("evt_aborted", "app")))
	b.Notify(t, schemas.TopicWebhooks, true, at(3, b.Notification("evt_unplanned", "app")), at(2, b.Notification("evt_later", "app")))
	for i, hoursAgo := range []int{40, 5} {
		d := deliveries.Plan(erp.Kind, at(hoursAgo, b.Notification("tx", "app")), "agency/test")
		d.Round = int32(1 - i)
		value, err := b.Codec.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		produce(t, b, schemas.TopicERPDeliveries, d.DestinationID, value)
	}
	tried := func(event, destination string, o deliveries.Outcome, hoursAgo int) {
		a := outcome(b, event, destination, o, 0, 1, b.Now().Add(time.Hour))
		a.Delivery.OccurredAt = b.Now().Add(-time.Duration(hoursAgo)*time.Hour - time.Minute)
		outcomes(t, b, a)
	}
	tried("evt_a", "own", deliveries.OutcomeFailed, 7)
	tried("evt_b", "gone", deliveries.OutcomeFailed, 9)
	tried("evt_c", "own", deliveries.OutcomeNeedsOperator, 11)
	tried("evt_d", "own", deliveries.OutcomeDelivered, 30)
	tried("evt_e", "own", deliveries.OutcomeExhausted, 30)
	deliverytest.Eventually(t, "applied", func() bool {
		var n int
		err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM deliveries`).Scan(&n)
		return err == nil && n == 5
	})
	if _, err := b.Pool.Exec(t.Context(), `UPDATE delivery_destinations SET suspended_at = now(), suspended_reason = 'gone' WHERE destination_id = 'gone'`); err != nil {
		t.Fatal(err)
	}
	want := maps.Clone(nothing)
	maps.Copy(want, map[string]float64{"webhook untried": 3, "erp untried": 5, "webhook retrying": 7, "webhook held": 9, "webhook needs_operator": 11})
	deliverytest.Eventually(t, "all of it is told", func() bool { return maps.Equal(hours(), want) })
	if got := slices.Sorted(maps.Keys(hours())); len(got) != len(want) {
		t.Errorf("%v", got)
	}
}

// On a payday the planner of webhooks is behind a topic of which most events notify nobody. Reading it took longer than the gauges
// had, and those of all kinds kept their last values.
func TestASlowTopicLeavesTheOtherGauges(t *testing.T) {
	t.Parallel()
	b := bench(t)
	kinds := slices.Clone(b.Store.Kinds())
	for i := range kinds {
		if kinds[i].Kind == webhook.Kind {
			kinds[i].Sources = []deliveries.Source{{Topic: schemas.Disbursement.Events, Notifications: func(*schemas.Codec, []byte) ([]*record.Notification, error) {
				<-time.After(100 * time.Millisecond) // what takes long is reading
				return nil, nil
			}}}
		}
	}
	metrics := prometheus.NewRegistry()
	s, err := schedule.New(schedule.Config{
		Kafka: b.Kafka, Codec: b.Codec, Deliveries: deliveries.NewStore(b.Pool, kinds), Outcomes: deliverytest.Outcomes(), Now: b.Now, Log: servers.Logger(t), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 120 { // 12 seconds
		produce(t, b, schemas.Disbursement.Events, "agency", []byte("an event of a line"))
	}
	n := b.Notification("tx", "app")
	n.OccurredAt = b.Now().Add(-5 * time.Hour)
	b.Notify(t, schemas.TopicConfirmations, true, n)
	deliverytest.Start(t, s)
	gauge := func(kind string) (seconds float64, set bool) {
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "quittance_delivery_oldest_undelivered_seconds" && m.GetLabel()[0].GetValue() == kind && m.GetLabel()[1].GetValue() == "untried" {
					return m.GetGauge().GetValue(), true
				}
			}
		}
		return 0, false
	}
	deliverytest.Eventually(t, "the gauge of another kind", func() bool {
		hours, set := gauge("erp")
		return set && hours > 5*3600-60
	})
	if seconds, set := gauge("webhook"); !set || seconds <= 0 {
		t.Errorf("the gauge of the topic that is behind: %v, %v", seconds, set)
	}
	deliverytest.Eventually(t, "the topic is read to its end", func() bool {
		seconds, set := gauge("webhook")
		return set && seconds == 0
	})
}
