package payment

import (
	"cmp"
	"strings"

	"quittance/checkout"
	"quittance/internal/notify"
	"quittance/money"
	"quittance/money/language"
)

// paymentWords name what a message says of a payment.
type paymentWords struct {
	Object, Dossier, Phone, Email, Hours string
	Payment                              string // where nothing says what it is for
	More                                 string // further dues
}

var paymentTexts = language.Table[paymentWords]{
	money.French: {
		Object: "Objet\u00a0: ", Dossier: "Numéro de dossier\u00a0: ", Phone: "Téléphone\u00a0: ", Email: "Courriel\u00a0: ", Hours: "Horaires\u00a0: ",
		Payment: "Paiement", More: " et autres",
	},
	money.English: {Object: "For: ", Dossier: "Case number: ", Phone: "Phone: ", Email: "Email: ", Hours: "Hours: ", Payment: "Payment", More: " and others"},
}

// longestObject is how many characters of what was paid an SMS has.
const longestObject = 40

// objectsOf are what a session pays, in the words of the agency or its integrator; empty after
// they were erased and where nobody gave any.
func objectsOf(s checkout.Session) (out []string) {
	for _, due := range s.Dues() {
		if label := line(cmp.Or(due.Label, s.Description, due.ServiceLabel)); label != "" {
			out = append(out, label)
		}
	}
	return out
}

// objectOf says in a few words what a session pays.
func objectOf(s checkout.Session, lang money.Language) string {
	w := paymentTexts.In(lang)
	all := objectsOf(s)
	if len(all) == 0 {
		return w.Payment
	}
	more := ""
	if len(all) > 1 {
		more = w.More
	}
	if r := []rune(all[0]); len(r) > longestObject-len(more) {
		return strings.TrimSpace(string(r[:longestObject-len(more)-1])) + "…" + more
	}
	return all[0] + more
}

// detailsOf are lines that say what a session pays, and its dossier number. The order of a cart
// is its first notice, which is no dossier.
func detailsOf(s checkout.Session, lang money.Language) string {
	w := paymentTexts.In(lang)
	var lines []string
	for _, object := range objectsOf(s) {
		lines = append(lines, w.Object+object)
	}
	if dossier := line(s.OrderID); dossier != "" && !s.Portal() && dossier != s.NoticeRef {
		lines = append(lines, w.Dossier+dossier)
	}
	if len(lines) == 0 {
		return w.Object + w.Payment
	}
	return strings.Join(lines, "\n")
}

// contact are lines that say how to reach the agency.
func (a Agency) contact(lang money.Language) string {
	w := paymentTexts.In(lang)
	lines := []string{a.Name}
	for _, given := range []struct{ label, text string }{{"", a.Address}, {w.Phone, a.Phone}, {w.Email, a.Email}, {w.Hours, a.Hours}} {
		if text := line(given.text); text != "" {
			lines = append(lines, given.label+text)
		}
	}
	return strings.Join(lines, "\n")
}

// line returns a text of somebody else in one line and without links, which no message may have.
func line(text string) string {
	return strings.Join(strings.Fields(notify.WithoutLinks(text)), " ")
}
