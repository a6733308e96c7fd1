package deliveries

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/schemas/origin"
)

// CountOutcomes has o count in metrics of whoever reads outcomes (NAME_outcomes_refused_total and
// NAME_outcomes_unproven_total): those that it refuses, by reason, and those without a proof that it accepts.
func CountOutcomes(with promauto.Factory, name string, o *origin.Outcomes) {
	refused := with.NewCounterVec(prometheus.CounterOpts{
		Name: name + "_outcomes_refused_total", Help: "Outcomes of deliveries that the worker of their kind has not proved: without a proof (unsigned), or with a wrong one (forged).",
	}, []string{"reason"})
	for _, reason := range origin.Reasons {
		refused.WithLabelValues(reason)
	}
	unproven := with.NewCounter(prometheus.CounterOpts{
		Name: name + "_outcomes_unproven_total", Help: "Outcomes of deliveries without a proof that were accepted (--accept-unproven-bodies).",
	})
	o.Refused = func(err error) { refused.WithLabelValues(origin.Reason(err)).Inc() }
	o.Unproven = unproven.Inc
}
