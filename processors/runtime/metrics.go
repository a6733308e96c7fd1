package runtime

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/processors/runtime/store"
)

// Outcomes of a transaction.
const (
	outcomeCommitted = "committed"
	// outcomeAborted: the group or the broker aborted it. It is repeated.
	outcomeAborted = "aborted"
	// outcomeRefused: a record could not be produced. It is repeated.
	outcomeRefused = "refused"
	// outcomeFailed: its error ended the membership.
	outcomeFailed = "failed"
)

type metrics struct {
	records, skipped, ticks, poison      prometheus.Counter
	transactions                         *prometheus.CounterVec
	size, seconds                        prometheus.Histogram
	restores, discarded, anomalies       *prometheus.CounterVec
	restoreSeconds                       prometheus.Histogram
	restoreRecords, memberships, retries prometheus.Counter
	assigned, active, ticksWaiting       prometheus.Gauge
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
		skipped:      counter("records_skipped_total", "Input records that were skipped because they are already applied."),
		ticks:        counter("ticks_total", "Deadlines decided and committed."),
		poison:       counter("poison_total", "Records and ticks sent to the poison topic."),
		retries:      counter("retries_total", "Calls of the processor that failed and were repeated."),
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
		discarded: vec("stores_discarded_total", "Local stores that were discarded, by reason.", "reason"),
		anomalies: vec("input_anomalies_total", "Input positions that do not fit the input, by kind: trimmed (records expired before they were decided), lost (the input ends before the last decided record), stateless (the group has offsets but there is no state).", "kind"),
		restoreSeconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: name("restore_seconds"), Help: "Time from the assignment of a partition to its restored state.",
			Buckets: []float64{.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300},
		}),
		restoreRecords: counter("restore_records_total", "Changelog records read by restores."),
		memberships:    counter("sessions_total", "Times the runtime joined its group with a new client."),
		assigned:       f.NewGauge(prometheus.GaugeOpts{Name: name("partitions_assigned"), Help: "Partitions assigned to this instance."}),
		active:         f.NewGauge(prometheus.GaugeOpts{Name: name("partitions_active"), Help: "Assigned partitions that are restored and decided."}),
		ticksWaiting:   f.NewGauge(prometheus.GaugeOpts{Name: name("poisoned_ticks_waiting"), Help: "Entries whose tick went to the poison topic and is tried again an hour later."}),
		lag:            f.NewGaugeVec(prometheus.GaugeOpts{Name: name("input_lag_records"), Help: "Offsets between the last decided record and the end of the input at the last fetch."}, []string{"partition"}),
	}
	// Export every series as 0 from the start: an alert on an increase does not see the
	// first event of a series that did not exist before.
	for vec, values := range map[*prometheus.CounterVec][]string{
		m.transactions: {outcomeCommitted, outcomeAborted, outcomeRefused, outcomeFailed},
		m.restores:     {"done", "failed", "cancelled"},
		m.discarded:    {discardedAhead, discardedTrimmed, discardedHistory, store.DiscardedDamaged, store.DiscardedStamp, store.DiscardedAge},
		m.anomalies:    {"trimmed", "lost", "stateless"},
	} {
		for _, v := range values {
			vec.WithLabelValues(v)
		}
	}
	return m
}
