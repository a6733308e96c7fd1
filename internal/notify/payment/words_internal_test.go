package payment

import (
	"testing"

	"quittance/checkout"
	"quittance/money"
)

// Messages did not say what was paid. What an integrator or an ERP wrote comes in one line, a cart
// names its dues, and what was erased is not made up.
func TestWhatWasPaid(t *testing.T) {
	t.Parallel()
	cart := checkout.Session{CitizenID: "c", OrderID: "AV1", NoticeRef: "AV1", Items: []checkout.Item{{Label: "Contribution de la patente, exercice 2026"}, {Label: "Foncier"}}}
	for name, c := range map[string]struct {
		s               checkout.Session
		object, details string
	}{
		"a description":    {checkout.Session{Description: "Patente\n2026", OrderID: "A-1", NoticeRef: "AV1"}, "Patente 2026", "Objet\u00a0: Patente 2026\nNuméro de dossier\u00a0: A-1"},
		"a service":        {checkout.Session{ServiceLabel: "Vignette", OrderID: "A-1"}, "Vignette", "Objet\u00a0: Vignette\nNuméro de dossier\u00a0: A-1"},
		"a cart":           {cart, "Contribution de la patente, e… et autres", "Objet\u00a0: Contribution de la patente, exercice 2026\nObjet\u00a0: Foncier"},
		"nothing is known": {checkout.Session{OrderID: "AV1", NoticeRef: "AV1"}, "Paiement", "Objet\u00a0: Paiement"},
	} {
		if got := objectOf(c.s, money.French); got != c.object || len([]rune(got)) > longestObject {
			t.Errorf("%s: the object is %q, want %q", name, got, c.object)
		}
		if got := detailsOf(c.s, money.French); got != c.details {
			t.Errorf("%s: the details are %q, want %q", name, got, c.details)
		}
	}
}
