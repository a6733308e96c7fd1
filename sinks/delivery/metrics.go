package delivery

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/deliveries"
)

// counters of one kind. A planner and a worker that share a registerer share
// them.
type counters struct {
	planned     prometheus.Counter
	unaddressed prometheus.Counter
	poison      prometheus.Counter
	refused     prometheus.Counter
	unproven    prometheus.Counter
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
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Name: "quittance_delivery_" + name, Help: help, ConstLabels: labels}
	}
	counter := func(name, help string) prometheus.Counter {
		return register(reg, prometheus.NewCounter(prometheus.CounterOpts(opts(name, help))))
	}
	counterVec := func(name, help, label string) *prometheus.CounterVec {
		return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), []string{label}))
	}
	gaugeVec := func(name, help, label string) *prometheus.GaugeVec {
		return register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts(opts(name, help)), []string{label}))
	}
	histogram := func(name, help string, buckets ...float64) prometheus.Histogram {
		return register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "quittance_delivery_" + name, Help: help, ConstLabels: labels, Buckets: buckets,
		}))
	}
	c := &counters{
		planned:     counter("planned_total", "Deliveries made from notifications."),
		unaddressed: counter("unaddressed_total", "Notifications, and events that have one, without a configured destination."),
		poison:      counter("poison_total", "Records that cannot be decoded."),
		refused:     counter("bodies_refused_total", "Deliveries that are not sent because nothing proves that the processor made their body for their destination."),
		unproven:    counter("bodies_unproven_total", "Deliveries without a proof of their body that were accepted (--accept-unproven-bodies)."),
		attempts:    counterVec("attempts_total", "Calls by outcome; superseded: ended without a call, because a later event was accepted.", "outcome"),
		deferred:    counterVec("deferred_total", "Deliveries deferred without an attempt, by reason.", "reason"),
		inFlight:    gaugeVec("in_flight", "Calls under way by lane.", "lane"),
		waiting:     register(reg, prometheus.NewGauge(prometheus.GaugeOpts(opts("waiting", "Deliveries in mailboxes, not yet under way.")))),
		breakers:    gaugeVec("breakers", "Destinations whose breaker is in a state other than closed.", "state"),
		duration:    histogram("call_duration_seconds", "Duration of calls.", .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15),
		latency:     histogram("latency_seconds", "From the event to its acceptance.", .01, .025, .05, .1, .25, .5, 1, 5, 30, 60, 300, 3600, 86400),
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

// register registers a collector, or returns the one that is already registered
// under its name.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	var taken prometheus.AlreadyRegisteredError
	if err := reg.Register(c); errors.As(err, &taken) {
		if there, ok := taken.ExistingCollector.(C); ok {
			return there
		}
	}
	return c
}
