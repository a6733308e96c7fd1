package journal

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/schemas/origin"
)

// CountCaseEvents has h count in a metric of whoever reads cases.events (NAME_case_events_refused_total): records that the
// sink of cases has not proved, by reason.
func CountCaseEvents(with promauto.Factory, name string, h *origin.History) {
	refused := with.NewCounterVec(prometheus.CounterOpts{
		Name: name + "_case_events_refused_total", Help: "Events of cases without a session that the sink of cases has not proved: without a proof (unsigned), or with a wrong one (forged).",
	}, []string{"reason"})
	for _, reason := range origin.Reasons {
		refused.WithLabelValues(reason)
	}
	h.Refusing(func(err error) { refused.WithLabelValues(origin.Reason(err)).Inc() })
}
