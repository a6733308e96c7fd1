package erp_test

import (
	"slices"
	"testing"
	"time"

	erpclient "quittance/internal/erp"
	erptest "quittance/test/erps"
)

// BenchmarkDues asks the simulated ERP in turns from the process itself and over Kafka, and reports the medians and their
// difference, the cost of the way.
func BenchmarkDues(b *testing.B) {
	const agency = "018f0000-0000-7000-8000-000000000001"
	simulated, hop := erptest.Start(b, agency, time.Now), erptest.NewHop(b)
	hop.Answer(b, simulated)
	over, direct := hop.Client(b), caller()
	settings, _ := simulated.ERP(agency, false)
	took := map[erpclient.Asker][]time.Duration{}
	for b.Loop() {
		for _, asker := range []erpclient.Asker{direct, over} {
			begun := time.Now()
			dues, _, r := asker.Dues(b.Context(), settings, "TP-1001")
			if len(dues) != 3 {
				b.Fatalf("%+v, %+v", dues, r)
			}
			took[asker] = append(took[asker], time.Since(begun))
		}
	}
	median := func(of erpclient.Asker) float64 {
		slices.Sort(took[of])
		return float64(took[of][len(took[of])/2].Microseconds()) / 1000
	}
	tail := func(of erpclient.Asker) float64 {
		return float64(took[of][len(took[of])*99/100].Microseconds()) / 1000
	}
	b.ReportMetric(median(direct), "itself-p50-ms")
	b.ReportMetric(median(over), "hop-p50-ms")
	b.ReportMetric(tail(direct), "itself-p99-ms")
	b.ReportMetric(tail(over), "hop-p99-ms")
	b.ReportMetric(median(over)-median(direct), "cost-ms")
}
