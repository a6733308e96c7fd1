package pi

import (
	"cmp"
	"strings"

	"quittance/checkout"
	"quittance/internal/connector"
)

// known lists reasons by which the switch says that it has an instruction of our id: it is our own.
// The profile says DU03.
var known = map[string]bool{"AM05": true, "DU01": true, "DU02": true, "DU03": true, "DU04": true, "DU05": true}

// aborted says that the settlement timed out: the money may still move, whatever the status.
const aborted = "AB03"

// undecided lists reasons after which the payer of a request may have paid, whatever the status: the
// settlement timed out, or the request was accepted or paid already.
var undecided = map[string]bool{aborted: true, "ALAC": true, "APAR": true}

// failures maps reasons of ISO 20022 not to pay a request to failure codes (contract
// docs/design/decisions.md § 6). A reason that is missing here is collect.operator_error.
var failures = map[string]checkout.FailureCode{
	"ARFR": checkout.FailureRejected,
	"ARJR": checkout.FailureRejected,
	"BE05": checkout.FailureRejected,
	"RR07": checkout.FailureRejected,
	"FR01": checkout.FailureRejected,
	"AEXR": checkout.FailureApprovalTimeout,
	"AG07": checkout.FailureInsufficientFunds,
	"AM02": checkout.FailurePayerLimitReached,
	"AM14": checkout.FailurePayerLimitReached,
	"AM21": checkout.FailurePayerLimitReached,
	"BE23": checkout.FailurePayerNotFound,
	"AC01": checkout.FailurePayerNotFound,
	"AC04": checkout.FailurePayerNotFound,
	"AC06": checkout.FailurePayerNotFound,
	"BE01": checkout.FailurePayerNotFound,
	"AM09": checkout.FailureAmountInvalid,
	"AG11": checkout.FailurePayeeUnavailable, // the agency's institution is suspended
	"AG10": checkout.FailureOperatorError,    // the payer's
	"AB08": checkout.FailureOperatorError,
}

func failure(reason string) checkout.FailureCode {
	return cmp.Or(failures[reason], checkout.FailureOperatorError)
}

// refusals are the reasons of ISO 20022 not to pay somebody. Reasons that are missing here, such as
// a fatal error in the settlement (AB04) or at the payee's institution (AB09), are no proof that
// nobody was paid.
var refusals = map[string]connector.PayoutCause{
	"AG07": connector.CauseFunds,          // the agency's account
	"AM04": connector.CauseFunds,          // what the agency's institution has lodged with the switch
	"AM02": connector.CausePayee,          // above what the switch pays at once
	"AM21": connector.CausePayeeOrAccount, // a limit that the institution has agreed with its client, without saying which
	"AC06": connector.CausePayeeOrAccount, // a blocked account, without saying whose
	"AG01": connector.CausePayeeOrAccount, // forbidden on this type of account, without saying whose
	"BE23": connector.CausePayee,          // nobody has the alias
	"AC01": connector.CausePayee,
	"AC03": connector.CausePayee,
	"AC04": connector.CausePayee,
	"AC07": connector.CausePayee,
	"BE01": connector.CausePayee,
	"FR01": connector.CausePayee,
	"RR04": connector.CausePayee,
	"AG11": connector.CausePayee,    // the payee's institution is suspended
	"AB08": connector.CauseOperator, // the payee's institution cannot be reached
	"AG10": connector.CauseAccount,  // the agency's institution is suspended
}

// reason returns s if it has the form of a reason of ISO 20022, else "". Prose is never passed on,
// because it may hold a name or a number.
func reason(s string) string {
	if len(s) != 4 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return ""
	}
	if strings.Trim(s, "0123456789") == "" {
		return ""
	}
	return s
}

// word returns s if it has the form of a status of the profile, else "".
func word(s string) string {
	if len(s) > 20 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return s
}
