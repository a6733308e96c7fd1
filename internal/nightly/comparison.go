package nightly

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Comparison are the metrics of a job that compares two sides each night. Safe for concurrent use.
type Comparison[F ~string] struct {
	faults      []F
	differences *prometheus.GaugeVec // fault
	verified    prometheus.Gauge
}

// NewComparison registers how many rows differ, by fault, and the Unix time of the last comparison, which begins with
// that of the process.
func NewComparison[F ~string](reg prometheus.Registerer, differences, verified prometheus.GaugeOpts, faults ...F) *Comparison[F] {
	with := promauto.With(reg)
	c := &Comparison[F]{faults, with.NewGaugeVec(differences, []string{"fault"}), with.NewGauge(verified)}
	for _, f := range faults {
		c.differences.WithLabelValues(string(f))
	}
	c.verified.SetToCurrentTime()
	return c
}

// Found notes a comparison that has just been made. count returns how many rows have a fault.
func (c *Comparison[F]) Found(count func(F) int64) {
	for _, f := range c.faults {
		c.differences.WithLabelValues(string(f)).Set(float64(count(f)))
	}
	c.verified.SetToCurrentTime()
}
