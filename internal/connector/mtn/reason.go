package mtn

import (
	"cmp"
	"strings"

	"quittance/checkout"
)

// failures maps MTN's reasons to failure codes (contract docs/design/decisions.md § 6). A reason that is
// missing here is collect.operator_error.
var failures = map[string]checkout.FailureCode{
	"APPROVAL_REJECTED":             checkout.FailureRejected,
	"REJECTED":                      checkout.FailureRejected,
	"EXPIRED":                       checkout.FailureApprovalTimeout,
	"COULD_NOT_PERFORM_TRANSACTION": checkout.FailureApprovalTimeout,
	"NOT_ENOUGH_FUNDS":              checkout.FailureInsufficientFunds,
	"PAYER_LIMIT_REACHED":           checkout.FailurePayerLimitReached,
	"PAYER_NOT_FOUND":               checkout.FailurePayerNotFound,
	"PAYEE_NOT_ALLOWED_TO_RECEIVE":  checkout.FailurePayeeUnavailable,
	"SERVICE_UNAVAILABLE":           checkout.FailureOperatorUnavailable,
	"INTERNAL_PROCESSING_ERROR":     checkout.FailureOperatorError,

	// Not in the table of the decisions: faults of the merchant account, which the payer
	// cannot mend.
	"PAYEE_NOT_FOUND":                checkout.FailurePayeeUnavailable,
	"NOT_ALLOWED":                    checkout.FailurePayeeUnavailable,
	"NOT_ALLOWED_TARGET_ENVIRONMENT": checkout.FailurePayeeUnavailable,
	"INVALID_CALLBACK_URL_HOST":      checkout.FailurePayeeUnavailable,
	"INVALID_CURRENCY":               checkout.FailurePayeeUnavailable,
}

// undecided lists reasons that are not failures, whatever the status.
var undecided = map[string]bool{"PENDING": true, "ONGOING": true, "DELAYED": true}

// passing lists reasons that report a problem of MTN, not of the payment, in the answer to
// a request. The same request may succeed a moment later.
var passing = map[string]bool{"SERVICE_UNAVAILABLE": true, "INTERNAL_PROCESSING_ERROR": true}

func failure(reason string) checkout.FailureCode {
	return cmp.Or(failures[reason], checkout.FailureOperatorError)
}

// code returns s if it has the form of a code of MTN, else "". Prose may contain a number
// and is never passed on.
func code(s string) string {
	const longest = 64
	if len(s) > longest || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return ""
	}
	return s
}
