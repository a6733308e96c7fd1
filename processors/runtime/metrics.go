package runtime

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/processors/runtime/store"
)

// Outcomes of a transaction.
const (
	outcomeCommitted = "committed"
	// outcomeAborted: the group or the broker wanted it, it is done again.
	outcomeAborted = "aborted"
	// outcomeRefused: a record could not be produced, it is done again.
	outcomeRefused = "refused"
	// outcomeFailed: the membership ended with it.
	outcomeFailed = "failed"
)

type metrics struct {
	records, skipped, ticks, poison      prometheus.Counter
	transactions                         *prometheus.CounterVec
	size, seconds                        prometheus.Histogram
	restores, discarded, anomalies       *prometheus.CounterVec
	restoreSeconds                       prometheus.Histogram
	restoreRecords, memberships, retries prometheus.Counter
	assigned, active                     prometheus.Gauge
	lag                                  *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	name := func(n string) string { return prometheus.BuildFQName("quittance", "processor", n) }
	counter := func(n, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: name(n), Help: help})
	}
	vec := func(n, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: name(n), Help: help}, labels)
	}
	m := &metrics{
		records:      counter("records_total", "Input records decided and committed."),
		skipped:      counter("records_skipped_total", "Input records that had been applied before."),
		ticks:        counter("ticks_total", "Deadlines decided and committed."),
		poison:       counter("poison_total", "Records and ticks sent to the poison topic."),
		retries:      counter("retries_total", "Calls of the processor that failed and were tried again."),
		transactions: vec("transactions_total", "Transactions by outcome.", "outcome"),
		size: f.NewHistogram(prometheus.HistogramOpts{
			Name: name("transaction_records"), Help: "Input records and ticks of a transaction.",
			Buckets: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000},
		}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: name("transaction_seconds"), Help: "Time from the first decision to the merge of a transaction.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}),
		restores:  vec("restores_total", "Restores of a partition by outcome.", "outcome"),
		discarded: vec("stores_discarded_total", "Local stores that were thrown away, by reason.", "reason"),
		anomalies: vec("input_anomalies_total", "Positions in the input that the input does not have, by kind: trimmed (retention took records that were not decided), lost (the input ends before what was decided), stateless (offsets committed but no state).", "kind"),
		restoreSeconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: name("restore_seconds"), Help: "Time from the assignment of a partition to its restored state.",
			Buckets: []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300},
		}),
		restoreRecords: counter("restore_records_total", "Changelog records read by restores."),
		memberships:    counter("sessions_total", "Times the runtime joined its group with a fresh client."),
		assigned:       f.NewGauge(prometheus.GaugeOpts{Name: name("partitions_assigned"), Help: "Partitions assigned to this instance."}),
		active:         f.NewGauge(prometheus.GaugeOpts{Name: name("partitions_active"), Help: "Assigned partitions that are restored and decide."}),
		lag:            f.NewGaugeVec(prometheus.GaugeOpts{Name: name("input_lag_records"), Help: "Offsets between the end of the input, as of the last fetch, and what is decided."}, []string{"partition"}),
	}
	// What nothing has happened to yet is 0: an alert sees the first step only from
	// a 0 that it saw before.
	for vec, values := range map[*prometheus.CounterVec][]string{
		m.transactions: {outcomeCommitted, outcomeAborted, outcomeRefused, outcomeFailed},
		m.restores:     {"done", "failed", "cancelled"},
		m.discarded:    {discardedAhead, discardedTrimmed, store.DiscardedDamaged, store.DiscardedStamp, store.DiscardedAge},
		m.anomalies:    {"trimmed", "lost", "stateless"},
	} {
		for _, v := range values {
			vec.WithLabelValues(v)
		}
	}
	return m
}
