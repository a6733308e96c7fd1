package support

import (
	"quittance/casework"
	"quittance/checkout"
)

// Verdict is the short answer to "was it paid?".
type Verdict string

// The verdicts.
const (
	VerdictPaid        Verdict = "paid"
	VerdictReturned    Verdict = "returned"     // the money was given back
	VerdictUnderReview Verdict = "under_review" // money came that fits no open session; staff decide
	VerdictUndecided   Verdict = "undecided"    // the session ended, and the operator has not decided
	VerdictInProgress  Verdict = "in_progress"  // the payer, the operator or a clerk is asked
	VerdictOpen        Verdict = "open"         // nobody has tried to pay yet
	VerdictNotPaid     Verdict = "not_paid"
)

// Verdict returns the short answer for a payment.
func (p Payment) Verdict() Verdict {
	switch s := p.Session; {
	case !s.ReversedAt.IsZero():
		return VerdictReturned
	case s.Paid():
		return VerdictPaid
	case len(p.MoneyUnderReview()) > 0:
		return VerdictUnderReview
	case s.Status == checkout.StatusOpen && s.Collection.Final():
		return VerdictOpen
	case s.Status == checkout.StatusOpen:
		return VerdictInProgress
	case !s.Collection.Final():
		return VerdictUndecided
	}
	return VerdictNotPaid
}

// MoneyUnderReview returns the open cases of money that was reported and did not complete the
// session.
func (p Payment) MoneyUnderReview() []checkout.Case {
	return p.misfits("")
}

// WrittenOff returns the cases of such money that staff closed with evidence: it completed no
// session, and no refund of it is on record.
func (p Payment) WrittenOff() []checkout.Case {
	return p.misfits(casework.ResolutionWriteOff)
}

// misfits returns the cases with the resolution of money that did not complete the session.
func (p Payment) misfits(resolution casework.Resolution) (found []checkout.Case) {
	for _, c := range p.Session.Cases {
		switch c.Kind {
		case checkout.CaseLatePayment, checkout.CaseMismatch, checkout.CaseOrphan:
			if c.Resolution == resolution {
				found = append(found, c)
			}
		case checkout.CaseUndecided, checkout.CaseRefundRequest, checkout.CaseReversal, checkout.CaseConfirmation:
		}
	}
	return found
}
