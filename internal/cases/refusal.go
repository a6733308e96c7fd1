package cases

import (
	"slices"

	"quittance/casework"
	"quittance/checkout"
)

// Codes of the matcher's refusals of what people agreed on.
const (
	// RefusalChanged says that rows of the finding have changed. A new case asks again.
	RefusalChanged = "finding.changed"
	// RefusalEnded says that the finding had ended before.
	RefusalEnded = "finding.ended"
)

// ofCloses is the codes with which the matcher refuses a close.
var ofCloses = []checkout.Code{
	"period.changed", "period.closed", "period.day_malformed", "period.not_over", "period.not_matched", "period.quarantined", "period.import_pending",
	"period.statement_missing", "period.statement_unproved", "period.rebuild_needed",
}

// Refusals returns the codes with which what people agreed on in a case of a kind can be refused after
// the approval: those of whoever carries it out, then those of the check of the agreement. Every text that
// tells an outcome to a person has words for each.
func Refusals(k casework.Kind) []checkout.Code {
	var out []checkout.Code
	switch {
	case k == KindClose:
		out = slices.Clone(ofCloses)
	case ByMatcher(k):
		out = []checkout.Code{RefusalChanged, RefusalEnded}
	case k == KindPoison:
		out = []checkout.Code{checkout.CodeCaseClosed}
	default:
		out = checkout.RefusalCodes()
	}
	return append(out, checkout.UnprovenCodes()...)
}
