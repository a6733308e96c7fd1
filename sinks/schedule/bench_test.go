package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/internal/deliveries"
	"quittance/schemas/record"
)

// BenchmarkApply writes batches of 2,000 outcomes for 50 destinations to
// Postgres: new deliveries, half of which are delivered.
func BenchmarkApply(b *testing.B) {
	house := bench(b)
	const atOnce = 2000
	var outcomes []*record.Attempt
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		outcomes = outcomes[:0]
		for i := range atOnce {
			result := deliveries.OutcomeDelivered
			if i%2 == 0 {
				result = deliveries.OutcomeFailed
			}
			a := outcome(house, fmt.Sprintf("evt_%d_%d", n, i), fmt.Sprintf("d%d", i%50), result, 0, 1, house.Now().Add(time.Hour))
			a.HTTPStatus, a.Delivery.Body = 200, append(a.Delivery.Body, make([]byte, 450)...)
			outcomes = append(outcomes, a)
		}
		b.StartTimer()
		if err := house.Store.Apply(b.Context(), outcomes, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*atOnce/b.Elapsed().Seconds(), "outcomes/s")
}
