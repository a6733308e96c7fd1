package pi

import (
	"strings"

	"quittance/internal/connector"
)

// known lists reasons by which the switch says that it has an instruction of our id: it is our own.
// The profile says DU03.
var known = map[string]bool{"AM05": true, "DU01": true, "DU02": true, "DU03": true, "DU04": true, "DU05": true}

// aborted says that the settlement timed out: the money may still move, whatever the status.
const aborted = "AB03"

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
