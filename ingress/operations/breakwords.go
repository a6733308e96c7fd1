package operations

import (
	"strings"

	"quittance/money"
)

// What a break of the matcher says in French. The matcher stores a text of a few English words, for analysts and commands, and for
// cases that exist: the text is the code of its reason (docs/design/reconciliation.md, "What a break says").
var frenchBreaks = map[string]string{
	"several receipts fit the line":                                                    "Plusieurs encaissements correspondent à la ligne.",
	"several lines have the same reference and amount":                                 "Plusieurs lignes ont la même référence et le même montant.",
	"several receipts and lines have the same reference and amount":                    "Plusieurs encaissements et plusieurs lignes ont la même référence et le même montant.",
	"several rows have the same amount and day":                                        "Plusieurs lignes ont le même montant et le même jour.",
	"the references of the line name different receipts":                               "Les références de la ligne désignent des encaissements différents.",
	"the operator took back what it had paid":                                          "L’opérateur a repris ce qu’il avait versé.",
	"the receipt is settled already: by a line with a stronger reference, or for good": "L’encaissement est déjà rapproché\u00a0: par une ligne dont la référence est plus sûre, ou définitivement.",
	"the line has the amount without the fee":                                          "La ligne porte le montant sans les frais.",
	"the currencies differ":                                                            "Les monnaies diffèrent.",
	"the amounts differ":                                                               "Les montants diffèrent.",
	"the operator reversed a payout: find out who has the money":                       "L’opérateur a annulé un versement\u00a0: cherchez qui détient la somme.",
	"the line names a payout and is none":                                              "La ligne désigne un versement et n’en est pas un.",
	"money of a payout came back that no statement has":                                "La somme d’un versement est revenue, et aucun relevé n’a ce versement.",
	"the money of a payout came back":                                                  "La somme d’un versement est revenue.",
	"a part of the money of a payout came back":                                        "Une partie de la somme d’un versement est revenue.",
	"more than a payout came back, or in another currency":                             "Une somme supérieure à un versement est revenue, ou dans une autre monnaie.",
	"the statement has a payout that its operator refused":                             "Le relevé a un versement que son opérateur a refusé.",
	"the operator's payout is not the sum of its lines":                                "Le virement de l’opérateur n’est pas la somme de ses lignes.",
	"the payout differs from the lines of its cut-off window":                          "Le virement diffère des lignes de sa période.",
	"nothing that is expected fits the line":                                           "Aucune somme attendue ne correspond à la ligne.",
	"a charge that belongs to no payment":                                              "Des frais ne se rattachent à aucun paiement.",
	"no line fits within the days of grace":                                            "Aucune ligne ne correspond dans le délai prévu.",
}

// openedBecause says in the person's language why a case was opened. A break whose resolution was refused ends in the reason that it
// had before.
func (v *visit) openedBecause(reason string) string {
	if text := v.w.Case.Reasons[reason]; text != "" || v.Lang != money.French {
		return said(v.w.Case.Reasons, reason)
	}
	if text := frenchBreaks[reason]; text != "" {
		return text
	}
	for english, text := range frenchBreaks {
		if strings.HasSuffix(reason, ": "+english) {
			return v.w.Case.NotCarriedOut + " " + text
		}
	}
	return reason
}
