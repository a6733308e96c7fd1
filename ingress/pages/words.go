package pages

import (
	"fmt"

	"quittance/checkout/money"
)

// undecidedMessage is for a confirmation that must wait for an earlier payment
// of the same order: its session has ended, the operator's word is outstanding.
func undecidedMessage(lang money.Language) string {
	if lang == money.English {
		return "We are still checking with the operator whether an earlier payment for this request went through. " +
			"Nothing has been taken now. Try again in a minute."
	}
	return "Nous vérifions encore auprès de l’opérateur si un paiement précédent pour cette demande a abouti. " +
		"Rien n’a été débité maintenant. Réessayez dans une minute."
}

// paidMessage is for an order whose money has arrived, though too late for its
// session: it must not be taken a second time.
func paidMessage(lang money.Language, paymentRef string) string {
	if lang == money.English {
		return fmt.Sprintf("A payment for this request has already been received. "+
			"Do not pay a second time: ask the agency, with the reference %s.", paymentRef)
	}
	return fmt.Sprintf("Un paiement pour cette demande a déjà été reçu. "+
		"Ne payez pas une seconde fois : adressez-vous à l’administration, avec la référence %s.", paymentRef)
}
