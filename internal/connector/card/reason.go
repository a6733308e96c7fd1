package card

import (
	"fmt"
	"net/http"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
)

// failures maps the acquirer's final statuses to failure codes (contract docs/design/decisions.md § 6).
var failures = map[string]checkout.FailureCode{
	"declined":              checkout.FailureCardDeclined,
	"authentication_failed": checkout.FailureCardAuthentication,
	"abandoned":             checkout.FailureCardAbandoned,
	"expired":               checkout.FailureCardAbandoned, // the citizen did nothing on the page
}

// refusals lists the codes of definite refusals. After another code the request may be
// tried again.
var refusals = map[string]checkout.FailureCode{
	"currency_not_supported": checkout.FailureAmountInvalid,
	"amount_not_supported":   checkout.FailureAmountInvalid,
	"merchant_inactive":      checkout.FailurePayeeUnavailable,
}

// notFound is the code for a reference without a transaction of the merchant.
const notFound = "transaction_not_found"

// toStatus reads the acquirer's statuses. An unknown status is an error, not a decision.
func toStatus(status string) (checkout.OutcomeStatus, checkout.FailureCode, error) {
	switch status {
	case "approved":
		return checkout.OutcomeApproved, "", nil
	case "pending", "processing":
		return checkout.OutcomePending, "", nil
	}
	if f, ok := failures[status]; ok {
		return checkout.OutcomeRefused, f, nil
	}
	return "", "", fmt.Errorf("unknown status %q", code(status))
}

// refusalOfRequest reads the answer to a request as a refusal. It returns false when the
// answer is not a definite refusal.
func refusalOfRequest(a connector.Answer) (connector.Outcome, bool) {
	c := errorCode(a)
	f, ok := refusals[c]
	if !ok || a.Status != http.StatusBadRequest && a.Status != http.StatusUnprocessableEntity {
		return connector.Outcome{}, false
	}
	return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: f, Reason: c}, true
}

// errorCode returns the code of an error answer; "" when there is none.
func errorCode(a connector.Answer) string {
	var e struct {
		Code string `json:"code"`
	}
	if a.Decode(&e) != nil {
		return ""
	}
	return code(e.Code)
}

// code returns s if it has the form of a code, small letters and underscores, else "".
// Prose and numbers are never passed on, because they may be a card's.
func code(s string) string {
	const longest = 40
	if len(s) > longest || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return s
}
