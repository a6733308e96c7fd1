package journal

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/journal"
)

type metrics struct {
	batch    prometheus.Histogram
	duration prometheus.Histogram
	entries  *prometheus.CounterVec // type
	errors   prometheus.Counter
	poison   prometheus.Counter
	oldest   atomic.Int64 // of the records in hand, Unix milliseconds; 0 when there are none
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	const namespace, subsystem = "quittance", "journal"
	m := &metrics{
		batch: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "batch_entries", Help: "Entries of a batch.",
			Buckets: []float64{1, 10, 100, 500, 1000, 2000, 5000, 10000, 20000},
		}),
		duration: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "insert_duration_seconds", Help: "Duration of inserts that succeeded.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		entries: f.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "entries_total", Help: "Entries inserted; again counts again.",
		}, []string{"type"}),
		errors: f.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "insert_errors_total", Help: "Inserts that failed and were tried again.",
		}),
		poison: f.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "poison_total", Help: "Records that cannot be decoded or kept.",
		}),
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "lag_seconds",
		Help: "Age of the oldest record read that is not in the journal yet; 0 when there is none.",
	}, m.lag)
	for _, t := range journal.EntryTypes {
		m.entries.WithLabelValues(string(t))
	}
	return m
}

func (m *metrics) lag() float64 {
	at := m.oldest.Load()
	if at == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMilli(at)).Seconds())
}
