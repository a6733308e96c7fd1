package barrier

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	barrier  *prometheus.HistogramVec
	failures *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	with := promauto.With(reg)
	m := &metrics{
		barrier: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quittance_readmodel_barrier_seconds", Help: "Time that reads waited for the read model, by outcome.",
			Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5},
		}, []string{"outcome"}),
		failures: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_readmodel_barrier_failures_total", Help: "Failed questions of the read barrier, by the server asked (broker, postgres).",
		}, []string{"asked"}),
	}
	for _, outcome := range []string{"passed", "behind", "gone"} {
		m.barrier.WithLabelValues(outcome)
	}
	for _, asked := range []string{"broker", "postgres"} {
		m.failures.WithLabelValues(asked)
	}
	return m
}

func (m *metrics) waited(d time.Duration, err error) {
	outcome := "passed"
	switch {
	case errors.Is(err, ErrBehind):
		outcome = "behind"
	case err != nil:
		outcome = "gone"
	}
	m.barrier.WithLabelValues(outcome).Observe(d.Seconds())
}

func (m *metrics) failed(asked string) { m.failures.WithLabelValues(asked).Inc() }
