package checkout

// FailureCode says why a session failed (docs/design/decisions.md § 6). Integrators read it in
// checkout.failed.
type FailureCode string

// The failure codes.
const (
	FailureRejected             FailureCode = "collect.rejected"
	FailureApprovalTimeout      FailureCode = "collect.approval_timeout"
	FailureInsufficientFunds    FailureCode = "collect.insufficient_funds"
	FailurePayerLimitReached    FailureCode = "collect.payer_limit_reached"
	FailurePayerNotFound        FailureCode = "collect.payer_not_found"
	FailureWrongPIN             FailureCode = "collect.wrong_pin"
	FailureAmountInvalid        FailureCode = "collect.amount_invalid"
	FailurePayeeUnavailable     FailureCode = "collect.payee_unavailable"
	FailureOperatorUnavailable  FailureCode = "collect.operator_unavailable"
	FailureOperatorError        FailureCode = "collect.operator_error"
	FailureCardDeclined         FailureCode = "card.declined"
	FailureCardAuthentication   FailureCode = "card.authentication_failed"
	FailureCardAbandoned        FailureCode = "card.abandoned"
	failureUnknown              FailureCode = FailureOperatorError // for an outcome without a code
	failureMessageOperatorError             = "The operator reported an error."
)

// FailureCodes has all failure codes.
func FailureCodes() []FailureCode {
	return []FailureCode{
		FailureRejected, FailureApprovalTimeout, FailureInsufficientFunds, FailurePayerLimitReached,
		FailurePayerNotFound, FailureWrongPIN, FailureAmountInvalid, FailurePayeeUnavailable,
		FailureOperatorUnavailable, FailureOperatorError, FailureCardDeclined, FailureCardAuthentication,
		FailureCardAbandoned,
	}
}

// Message returns an English sentence for the integrator's log. It never repeats the
// operator's text, which may contain a phone number.
func (f FailureCode) Message() string {
	switch f {
	case FailureRejected:
		return "The payer rejected the payment."
	case FailureApprovalTimeout:
		return "The payer did not approve the payment in time."
	case FailureInsufficientFunds:
		return "The payer's balance is too low."
	case FailurePayerLimitReached:
		return "The payer has reached a limit of the operator."
	case FailurePayerNotFound:
		return "The number has no account with the operator."
	case FailureWrongPIN:
		return "The payer entered a wrong PIN."
	case FailureAmountInvalid:
		return "The operator does not accept this amount."
	case FailurePayeeUnavailable:
		return "The agency's merchant account cannot receive this payment."
	case FailureOperatorUnavailable:
		return "The operator could not be reached."
	case FailureOperatorError:
		return failureMessageOperatorError
	case FailureCardDeclined:
		return "The card was declined."
	case FailureCardAuthentication:
		return "The card holder's authentication did not succeed."
	case FailureCardAbandoned:
		return "The card payment was abandoned."
	}
	return failureMessageOperatorError
}
