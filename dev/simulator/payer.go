package simulator

import (
	"strings"
	"time"
)

// cause is why a payment was refused, in no operator's words; each operator has
// a table of its own words for them.
type cause string

const (
	causeRejected          cause = "rejected"
	causeInsufficientFunds cause = "insufficient_funds"
	causeLimitReached      cause = "limit_reached"
	causeUnknownPayer      cause = "unknown_payer"
	causeWrongPIN          cause = "wrong_pin"
)

// script is what a payer does with a request to pay. The zero value waits for
// /control and calls back once.
type script struct {
	decides   bool          // else only /control decides
	after     time.Duration // on the simulators' clock, from acceptance or the choice on the operator's page
	refusal   cause         // empty: approves
	ambiguous bool          // says neither yes nor no until it decides
	failFirst bool          // the first request of an id gets a 500 and is not registered
	callbacks int           // how often the operator calls back
}

// magicScript returns what the payer of a magic number does. local is the
// number as dialled inside the country; prefix holds all but the last two
// digits of an operator's magic numbers. Any other number waits for /control.
func (s *Simulator) magicScript(local, prefix string) script {
	nn, isMagic := strings.CutPrefix(local, prefix)
	if !isMagic || len(nn) != 2 {
		return script{callbacks: 1}
	}
	switch nn {
	case "01":
		return script{decides: true, callbacks: 1}
	case "02":
		return script{decides: true, after: s.cfg.ApprovalDelay, callbacks: 1}
	case "03":
		return script{}
	case "04":
		return script{decides: true, refusal: causeRejected, callbacks: 1}
	case "05":
		return script{decides: true, refusal: causeInsufficientFunds, callbacks: 1}
	case "06":
		return script{decides: true, refusal: causeLimitReached, callbacks: 1}
	case "07":
		return script{decides: true, refusal: causeUnknownPayer, callbacks: 1}
	case "08":
		return script{decides: true}
	case "09":
		return script{decides: true, callbacks: 2}
	case "10":
		return script{decides: true, after: s.cfg.ApprovalWindow + s.cfg.LateDelay, callbacks: 1}
	case "11":
		return script{decides: true, failFirst: true, callbacks: 1}
	case "12":
		return script{decides: true, after: s.cfg.AmbiguousDelay, ambiguous: true, callbacks: 1}
	case "13":
		return script{decides: true, refusal: causeWrongPIN, callbacks: 1}
	default:
		return script{callbacks: 1}
	}
}
