package journal

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/journal"
)

const namespace, subsystem = "quittance", "journal"

type metrics struct {
	batch    prometheus.Histogram
	duration prometheus.Histogram
	entries  *prometheus.CounterVec // type
	errors   prometheus.Counter
	poison   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
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
			Namespace: namespace, Subsystem: subsystem, Name: "entries_total", Help: "Entries inserted; an entry that is inserted again is counted again.",
		}, []string{"type"}),
		errors: f.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "insert_errors_total", Help: "Inserts that failed and were tried again.",
		}),
		poison: f.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: subsystem, Name: "poison_total", Help: "Records that cannot be decoded or kept.",
		}),
	}
	for _, t := range journal.EntryTypes {
		m.entries.WithLabelValues(t)
	}
	return m
}

func (m *metrics) exposeLag(reg prometheus.Registerer, lag func() float64) {
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Subsystem: subsystem, Name: "lag_seconds",
		Help: "Age of the oldest record read that is not in the journal yet; 0 when there is none.",
	}, lag)
}
