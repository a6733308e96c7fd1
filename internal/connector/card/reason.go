package card

import (
	"fmt"
	"net/http"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
)

// failures maps the acquirer's final statuses onto ours (contract decisions § 6):
// the one table.
var failures = map[string]checkout.FailureCode{
	"declined":              checkout.FailureCardDeclined,
	"authentication_failed": checkout.FailureCardAuthentication,
	"abandoned":             checkout.FailureCardAbandoned,
	"expired":               checkout.FailureCardAbandoned, // nobody did anything on the page
}

// refusals are the codes with which an acquirer refuses a transaction for good.
// Other codes refuse nothing: the request may be tried again.
var refusals = map[string]checkout.FailureCode{
	"currency_not_supported": checkout.FailureAmountInvalid,
	"amount_not_supported":   checkout.FailureAmountInvalid,
	"merchant_inactive":      checkout.FailurePayeeUnavailable,
}

// notFound is the code of a reference that the merchant has no transaction of.
const notFound = "transaction_not_found"

// toStatus reads the acquirer's statuses. Any other word is an error, not a decision.
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
	return "", "", fmt.Errorf("status %q is none of the protocol's", code(status))
}

// refusalOfRequest is the answer to a request as a refusal; false when it is no
// definite one.
func refusalOfRequest(a connector.Answer) (connector.Outcome, bool) {
	c := errorCode(a)
	f, ok := refusals[c]
	if !ok || a.Status != http.StatusBadRequest && a.Status != http.StatusUnprocessableEntity {
		return connector.Outcome{}, false
	}
	return connector.Outcome{Status: checkout.OutcomeRefused, FailureCode: f, Reason: c}, true
}

// errorCode is the code of an answer that is an error, empty when there is none.
func errorCode(a connector.Answer) string {
	var e struct {
		Code string `json:"code"`
	}
	if a.Decode(&e) != nil {
		return ""
	}
	return code(e.Code)
}

// code is s if it looks like a code of the acquirer, small letters and underscores, else
// empty: prose and numbers, which may be a card's, are never passed on.
func code(s string) string {
	const longest = 40
	if len(s) > longest || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return s
}
