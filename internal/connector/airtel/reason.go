package airtel

import (
	"cmp"
	"net/http"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
)

// failures maps Airtel's codes to failure codes (contract docs/design/decisions.md § 6). With the status
// TF, a code that is missing here is collect.operator_error.
var failures = map[string]checkout.FailureCode{
	"DP00800001008": checkout.FailureRejected,
	"DP00800001005": checkout.FailureApprovalTimeout, // the payer entered no PIN
	"DP00800001024": checkout.FailureApprovalTimeout,
	"DP00800001029": checkout.FailureApprovalTimeout,
	"TE":            checkout.FailureApprovalTimeout,
	"DP00800001007": checkout.FailureInsufficientFunds,
	"DP00800001003": checkout.FailurePayerLimitReached,
	"DP00800001002": checkout.FailureWrongPIN,
	"DP00800001004": checkout.FailureAmountInvalid,
	"DP00800001010": checkout.FailurePayeeUnavailable,

	// Not in the table of the decisions. A number that Airtel does not accept:
	"ESB000033": checkout.FailurePayerNotFound,
	"ESB000036": checkout.FailurePayerNotFound,
	// A wrong PIN, found by the gateway:
	"ROUTER115": checkout.FailureWrongPIN,
	// Faults of the merchant account, which the payer cannot mend:
	"ESB000034": checkout.FailurePayeeUnavailable,
	"ESB000035": checkout.FailurePayeeUnavailable,
	"ESB000039": checkout.FailurePayeeUnavailable,
	"ROUTER001": checkout.FailurePayeeUnavailable,
	"ROUTER005": checkout.FailurePayeeUnavailable,
	"ROUTER006": checkout.FailurePayeeUnavailable,
	"ROUTER007": checkout.FailurePayeeUnavailable,
	"ROUTER112": checkout.FailurePayeeUnavailable,
	"ROUTER119": checkout.FailurePayeeUnavailable,
	// Failures without a reason:
	"DP00800001009": checkout.FailureOperatorError,
	"ESB000011":     checkout.FailureOperatorError,
}

// noRefusalOfRequest lists codes that end a payment but do not refuse a request. The payer
// was not asked yet, so the time-out is Airtel's own.
var noRefusalOfRequest = map[string]bool{"DP00800001024": true, "DP00800001029": true, "TE": true}

// submitted lists codes that are not failures, whatever the status: Airtel has the payment
// and its outcome is open.
var submitted = map[string]bool{"DP00800001000": true, "DP00800001006": true}

// duplicate lists codes that mean that Airtel has a payment of this id.
var duplicate = map[string]bool{"ESB000041": true}

// notFound lists codes that mean that Airtel has no payment of this id.
var notFound = map[string]bool{"DP00800001025": true, "ESB000045": true}

// payerUnknown with status 400 refuses a request because the number has no Airtel Money
// account. The same code with TF means that the payer entered no PIN.
const payerUnknown = "DP00800001005"

// refusalOfRequest reads the answer to a request as a refusal. It returns false when the
// answer is not a definite refusal. A code that is in no table is not definite, because
// Airtel calls several of its general codes ambiguous.
func refusalOfRequest(status int, e envelope) (connector.Outcome, bool) {
	for _, c := range e.codes() {
		if status == http.StatusBadRequest && c == payerUnknown {
			return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailurePayerNotFound, Reason: c}, true
		}
		if noRefusalOfRequest[c] {
			return connector.Outcome{}, false
		}
		if f, ok := failures[c]; ok {
			return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: f, Reason: c}, true
		}
	}
	return connector.Outcome{}, false
}

func failure(reason string) checkout.FailureCode {
	return cmp.Or(failures[reason], checkout.FailureOperatorError)
}

// code returns s if it has the form of a code of Airtel, capital letters and then digits,
// else "". Prose and numbers are never passed on, because they may be the payer's.
func code(s string) string {
	const longest = 16
	digits := strings.TrimLeft(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	if len(s) > longest || len(digits) == len(s) || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return s
}
