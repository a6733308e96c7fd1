package checkout

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/casework"
	"quittance/checkout"
)

// judge checks what staff agreed on before it is decided: whoever can write the commands has not the key with which the
// steps of people are signed.
type judge struct {
	verify  casework.Verify
	refused *prometheus.CounterVec // reason
}

func newJudge(verify casework.Verify, metrics prometheus.Registerer) *judge {
	j := &judge{verify, promauto.With(metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_processor_unproven_total", Help: "Resolutions of cases that were refused because people have not signed them as they stand there, by reason.",
	}, []string{"reason"})}
	for _, code := range checkout.UnprovenCodes() {
		j.refused.WithLabelValues(string(code))
	}
	return j
}

// refuses returns the answer to a resolution that people have not signed as it stands there. The resolution of a case that
// is closed, or not known, has no effect and is left to the decision.
func (j *judge) refuses(v checkout.View, cmd checkout.Command) (a checkout.Answer, refused bool) {
	do, ok := cmd.Do.(checkout.Resolve)
	if !ok {
		return a, false
	}
	s, ok := v.Session(cmd.SessionID)
	if !ok {
		return a, false
	}
	c, ok := s.Case(do.CaseID)
	if !ok || !c.Open() {
		return a, false
	}
	err := do.Agreement().Check(do.Terms(s, c, cmd.At), j.verify)
	if err == nil {
		return a, false
	}
	code := checkout.ApprovalCode(err)
	j.refused.WithLabelValues(string(code)).Inc()
	return checkout.Answer{Code: code, Session: &s}, true
}
