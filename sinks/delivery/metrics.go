package delivery

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/deliveries"
)

// counters of one kind. Planners and workers of a process that share a
// registerer share them.
type counters struct {
	planned     prometheus.Counter
	unaddressed prometheus.Counter
	poison      prometheus.Counter
	attempts    *prometheus.CounterVec // outcome
	deferred    *prometheus.CounterVec // reason
	inFlight    *prometheus.GaugeVec   // lane
	waiting     prometheus.Gauge
	breakers    *prometheus.GaugeVec // state
	duration    prometheus.Histogram
	latency     prometheus.Histogram
}

func newCounters(reg prometheus.Registerer, kind deliveries.Kind) *counters {
	labels := prometheus.Labels{"kind": string(kind)}
	counter := func(name, help string) prometheus.Counter {
		return Register(reg, prometheus.NewCounter(prometheus.CounterOpts{Namespace: "quittance", Subsystem: "delivery", Name: name, Help: help, ConstLabels: labels}))
	}
	counterVec := func(name, help, label string) *prometheus.CounterVec {
		return Register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "quittance", Subsystem: "delivery", Name: name, Help: help, ConstLabels: labels}, []string{label}))
	}
	gaugeVec := func(name, help, label string) *prometheus.GaugeVec {
		return Register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "quittance", Subsystem: "delivery", Name: name, Help: help, ConstLabels: labels}, []string{label}))
	}
	c := &counters{
		planned:     counter("planned_total", "Deliveries made from notifications."),
		unaddressed: counter("unaddressed_total", "Notifications without a configured destination."),
		poison:      counter("poison_total", "Records that cannot be decoded."),
		attempts:    counterVec("attempts_total", "Calls by outcome.", "outcome"),
		deferred:    counterVec("deferred_total", "Deliveries deferred without an attempt, by reason.", "reason"),
		inFlight:    gaugeVec("in_flight", "Calls under way by lane.", "lane"),
		waiting: Register(reg, prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "quittance", Subsystem: "delivery", Name: "waiting", Help: "Deliveries in mailboxes, not yet under way.", ConstLabels: labels,
		})),
		breakers: gaugeVec("breakers", "Destinations whose breaker is in a state other than closed.", "state"),
		duration: Register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "quittance", Subsystem: "delivery", Name: "call_duration_seconds", Help: "Duration of calls.", ConstLabels: labels,
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15},
		})),
		latency: Register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "quittance", Subsystem: "delivery", Name: "latency_seconds", Help: "From the event to its acceptance.", ConstLabels: labels,
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 5, 30, 60, 300, 3600, 86400},
		})),
	}
	// All series exist from the start, so that alerts on them work before the first
	// event.
	for _, o := range deliveries.Outcomes {
		if o != deliveries.OutcomeDeferred {
			c.attempts.WithLabelValues(string(o))
		}
	}
	for _, reason := range deliveries.Reasons {
		c.deferred.WithLabelValues(reason)
	}
	for _, lane := range []string{laneGood, laneSlow} {
		c.inFlight.WithLabelValues(lane)
	}
	for _, state := range []string{breakerNames[breakerOpen], breakerNames[breakerProbing]} {
		c.breakers.WithLabelValues(state)
	}
	return c
}

// Register registers a collector, or returns the one that is already registered
// under its name.
func Register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	var taken prometheus.AlreadyRegisteredError
	if err := reg.Register(c); errors.As(err, &taken) {
		if there, ok := taken.ExistingCollector.(C); ok {
			return there
		}
	}
	return c
}
