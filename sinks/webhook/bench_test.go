package webhook_test

import (
	"sync/atomic"
	"testing"
	"time"

	"quittance/internal/registry"
	"quittance/schemas"
	"quittance/sinks/webhook"
	"quittance/test/await"
	deliverytest "quittance/test/deliveries"
)

// BenchmarkOneEndpoint sends b.N events to one endpoint with 64 calls at once: from the
// commit on webhooks through planning, signing, sending and recording to Postgres.
// Broker, database and receiver share the machine.
func BenchmarkOneEndpoint(b *testing.B) {
	house := bench(b)
	own := deliverytest.NewReceiver(b, eventID)
	e := newEndpoints()
	e.add("app", registry.WebhookEndpoint{ID: "own", URL: own.URL, MaxInFlight: 64})
	cfg := config(b, house, e)
	deliverytest.Start(b, deliverytest.Planner(b, cfg), deliverytest.Worker(b, cfg), house.Schedule(b))
	house.Notify(b, schemas.TopicWebhooks, true, house.Notification("evt_warm", "app"))
	deliverytest.Eventually(b, "warm", func() bool { return house.State(b, webhook.Kind, "evt_warm", "own") == "delivered" })
	events := notifications(house, "app", ids("n", b.N))
	for _, n := range events {
		n.Body = append(n.Body, make([]byte, 450)...)
	}
	var last atomic.Int64
	b.ResetTimer()
	for i := 0; i < len(events); i += 500 {
		house.Notify(b, schemas.TopicWebhooks, true, events[i:min(i+500, len(events))]...)
	}
	await.Until(b, "all delivered", func() bool { return len(own.Got()) > b.N })
	last.Store(int64(b.Elapsed()))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Duration(last.Load()).Seconds(), "deliveries/s")
	begun := time.Now()
	deliverytest.Eventually(b, "all on record", func() bool {
		var n int
		err := house.Pool.QueryRow(b.Context(), `SELECT count(*) FROM deliveries WHERE state = 'delivered'`).Scan(&n)
		return err == nil && n == b.N+1
	})
	b.ReportMetric(time.Since(begun).Seconds(), "s-behind")
	b.ReportMetric(float64(len(own.Got())-len(own.Count())), "doubles")
}
