package journeys_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hostedOffers are the demo application's offers in XAF, in their order.
var hostedOffers = []string{"momo", "momo_b", "cash_agency", "switch", "bank_transfer"}

// portalOffers are those of the demo agency's citizen portal.
var portalOffers = []string{"momo", "momo_b", "cash_agency"}

// visitor is a row of the table: what a citizen does, which pages must be shown, and what
// the systems must know in the end.
type visitor struct {
	name     string
	scenario string   // scenario of journeys.mjs; pay when empty
	offer    string   // momo when empty
	answers  []string // what the citizen enters
	at       string   // page on which the scenario's event happens
	decision string   // of the operator, afterwards
	clock    int      // above 0 if the row needs the clock moved, see journeys.mjs
	url      string   // instead of the session's own page
	euros    bool     // 60.00 EUR instead of 5,000 XAF
	portal   bool     // a session of the citizen portal
	change   string   // of its due, in JSON, for the scenario dueChanges
	hosted   bool     // not in a frame: the row is about tabs, the way back, or an error page
	only     string   // the only way, unless QUITTANCE_JOURNEYS is set; empty for all ways

	pages    string // in order; a page shown again counts once; x? may be missing
	noScript string // pages without a script, if they differ
	embedded string // pages in a frame, if they differ
	other    string // pages in the second tab
	status   string // by the API; empty without a session
	event    string // event of the session's end in the integrator's inbox; empty for none
	failure  string // failure code of that event
	late     bool   // checkout.late_payment follows
	collect  int    // number of collections at operators and counter; for cards see acquired
	check    func(t *testing.T, v visitor, seen []shown)
}

// spellings are the ways to write a magic number; %s is its last two digits.
var spellings = map[string][]string{
	"momo":   {"06 600 00 %s", "0660000%s", "+242 06 600 00 %s", "06-600-00-%s", "00242 0660000%s", "06.600.00.%s"},
	"momo_b": {"05 500 00 %s", "0550000%s", "+242 05 500 00 %s", "05-500-00-%s", "00242 0550000%s", "05.500.00.%s"},
	"switch": {"04 400 00 %s", "0440000%s", "+242 04 400 00 %s"},
	"card":   {"4000 0000 0000 00%s", "40000000000000%s", "4000-0000-0000-00%s"},
}

func number(offer, nn string, spelling int) string {
	return fmt.Sprintf(spellings[offer][spelling%len(spellings[offer])], nn)
}

// toReview are a mobile money payer's pages up to the confirmation.
const toReview = "choose phone review "

// byPhone returns a payment with each magic number (docs/developing/simulators.md).
func byPhone(offer string) []visitor {
	rows := []visitor{
		{name: "01 approved at once", pages: "waiting? completed"},
		{name: "02 approved after 5 s", pages: "waiting completed"},
		{name: "03 never answers", pages: "waiting undecided", scenario: "undecided", clock: 1, failure: "collect.approval_timeout"},
		{name: "04 rejected", pages: "waiting? failed", failure: "collect.rejected"},
		{name: "05 insufficient funds", pages: "waiting? failed", failure: "collect.insufficient_funds"},
		{name: "06 payer limit", pages: "waiting? failed", failure: "collect.payer_limit_reached"},
		{name: "07 unknown payer", pages: "waiting? failed", failure: "collect.payer_not_found"},
		{name: "08 callback lost", pages: "waiting completed"},
		{name: "09 callback twice", pages: "waiting? completed"},
		{name: "10 approved late", pages: "waiting undecided late", scenario: "late", clock: 1, failure: "collect.approval_timeout", late: true},
		{name: "11 operator answers 500", pages: "waiting? completed"},
		{name: "12 ambiguous", pages: "waiting completed"},
		{name: "13 wrong PIN", pages: "waiting? failed", failure: "collect.rejected"},
	}
	for i := range rows {
		v := &rows[i]
		nn := v.name[:2]
		v.offer, v.answers, v.pages, v.collect = offer, []string{number(offer, nn, i)}, toReview+v.pages, 1
		if offer == "momo_b" && nn == "13" {
			v.failure = "collect.wrong_pin" // MTN has no such reason
		}
		if offer == "momo_b" && nn == "07" {
			v.collect = 0 // Airtel refuses the request
		}
	}
	return ended(offer, rows)
}

// bySwitch returns requests to pay over the regional switch, whose outcomes are found by enquiries alone.
func bySwitch() []visitor {
	rows := []visitor{
		{name: "01 approved at once", pages: "waiting completed"},
		{name: "04 rejected", pages: "waiting failed", failure: "collect.rejected"},
		{name: "10 approved late", pages: "waiting undecided late", scenario: "late", clock: 1, failure: "collect.approval_timeout", late: true},
	}
	for i := range rows {
		v := &rows[i]
		v.offer, v.answers, v.pages, v.collect = "switch", []string{number("switch", v.name[:2], i)}, "choose number review "+v.pages, 1
	}
	return ended("switch", rows)
}

// byCard returns a payment with each button and each magic card of the acquirer's page.
// The currency is the euro, for which the card is the only offer.
func byCard() []visitor {
	rows := []visitor{
		{name: "approved", answers: []string{"approve"}, pages: "bankwait? completed"},
		{name: "declined", answers: []string{"decline"}, pages: "bankwait? failed", failure: "card.declined"},
		{name: "authentication failed", answers: []string{"fail_authentication"}, pages: "bankwait? failed", failure: "card.authentication_failed"},
		{name: "abandoned", answers: []string{"abandon"}, pages: "bankwait? failed", failure: "card.abandoned"},
		{name: "02 approved after 5 s", pages: "bankwait completed"},
		{name: "03 never answers", pages: "bankwait undecided? failed", scenario: "abandoned", clock: 2, failure: "card.abandoned"},
		{name: "05 insufficient funds", pages: "bankwait? failed", failure: "card.declined"},
		{name: "06 limit", pages: "bankwait? failed", failure: "card.declined"},
		{name: "07 unknown card", pages: "bankwait? failed", failure: "card.declined"},
		{name: "08 callback lost", pages: "bankwait completed"},
		{name: "09 callback twice", pages: "bankwait? completed"},
		{name: "10 approved late", pages: "bankwait undecided late", scenario: "late", clock: 2, failure: "card.abandoned", late: true},
		{name: "12 being processed", pages: "bankwait completed"},
	}
	for i := range rows {
		v := &rows[i]
		v.offer, v.euros = "card", true
		if v.answers == nil {
			v.answers = []string{number("card", v.name[:2], i)}
		}
		// A script goes to the bank's page by itself. Without a script the page has a link.
		// From a frame the bank's page opens in a tab of its own.
		_, outcome, _ := strings.Cut(v.pages, " ")
		v.pages, v.noScript, v.embedded = "review bank "+v.pages, "review bankwait bank "+v.pages, "review bankwait "+outcome
	}
	return ended("card", rows)
}

// byCash returns payments at a counter, decided by a clerk or by nobody.
func byCash() []visitor {
	rows := ended("cash", []visitor{
		{name: "paid at the counter", scenario: "counter", offer: "cash_agency", collect: 1, pages: "choose cash counter completed"},
		{
			name: "the clerk gives it up", scenario: "counterGivesUp", offer: "cash_agency", answers: []string{number("momo", "01", 0)}, collect: 2,
			pages: "choose cash counter cash? " + toReview + "waiting? completed",
		},
	})
	return append(rows, visitor{
		name: "cash nobody pays", scenario: "overAtCounter", offer: "cash_agency", clock: 1,
		pages: "choose cash expired", status: "expired", event: "checkout.expired",
	}, visitor{
		name: "cash paid late", scenario: "counterLate", offer: "cash_agency", clock: 1, collect: 1,
		pages: "choose cash counter expired late", embedded: "choose cash counter choose? expired", status: "expired", event: "checkout.expired", late: true,
	})
}

// ended fills in the status and the event of rows: those without a failure are paid.
func ended(offer string, rows []visitor) []visitor {
	for i := range rows {
		v := &rows[i]
		v.name = offer + " " + v.name
		v.status = "failed"
		if v.failure == "" {
			v.status = "completed"
		}
		v.event = "checkout." + v.status
	}
	return rows
}

// otherwise returns everything that citizens do other than paying straight on.
func otherwise() []visitor {
	pays := func(nn string) []string { return []string{number("momo", nn, 0)} }
	// The payer of 77 waits for /control.
	completed := visitor{status: "completed", event: "checkout.completed", collect: 1, answers: pays("77"), pages: toReview + "waiting completed"}
	cancelled := visitor{status: "cancelled", event: "checkout.cancelled", answers: pays("01")}
	like := func(v visitor, change func(*visitor)) visitor { change(&v); return v }
	return []visitor{
		like(completed, func(v *visitor) { v.name, v.scenario = "waits and presses nothing", "waits" }),
		like(completed, func(v *visitor) { v.name, v.scenario = "double click on confirm", "doubleClick" }),
		like(completed, func(v *visitor) {
			v.name, v.scenario, v.other = "two tabs", "twoTabs", toReview+"waiting? completed"
			v.hosted = true
			v.answers = []string{number("momo", "77", 0), number("momo", "77", 1)}
		}),
		// With a script, loading the review again leads to the first step. Without one, the
		// browser sends the form again and shows the review.
		like(completed, func(v *visitor) {
			v.name, v.scenario = "reload at every page", "reload"
			v.hosted = true
			v.pages, v.noScript = toReview+toReview+"waiting completed", v.pages
		}),
		like(completed, func(v *visitor) {
			v.name, v.scenario = "back after confirming and at the end", "back"
			v.hosted = true
		}),
		like(completed, func(v *visitor) {
			v.name, v.scenario, v.hosted = "a link opened in another tab while it waits", "linkElsewhere", true
		}),
		like(completed, func(v *visitor) {
			v.name, v.scenario, v.check = "other language at every page", "languages", checkLanguages
			v.hosted = true
			v.pages = "choose phone review phone review waiting completed"
		}),
		like(completed, func(v *visitor) {
			v.name, v.scenario, v.check = "wrong numbers first", "faulty", checkFaulty
			v.answers = append(pays("77"), "", "12", "06 600 00 0x", "07 600 00 01")
		}),
		like(completed, func(v *visitor) {
			v.name, v.scenario, v.check = "the number is another operator’s", "approved", checkGuessed
			v.answers = []string{number("momo_b", "77", 0)}
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages = "cancels at the choice", "cancel", "choose", "choose question cancelled"
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages = "cancels at the number", "cancel", "phone", "choose phone question cancelled"
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages = "cancels at the review", "cancel", "review", toReview+"question cancelled"
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages, v.offer = "cancels with a reference for a counter", "cancel", "cash", "choose cash question cancelled", "cash_agency"
		}),
		// Only a script loads the page again by itself.
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages, v.offer = "integrator cancels while the citizen's cancel is on its way", "cancelSlow", "cash", "choose cash cancelled", "cash_agency"
			v.hosted = true
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages = "integrator cancels at the number", "cancelled", "phone", "choose phone cancelled"
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.pages = "integrator cancels at the review", "cancelled", "review", toReview+"cancelled"
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.decision = "integrator cancels, payer approves", "cancelledThen", "waiting", "approve"
			v.hosted = true
			v.answers, v.collect, v.late = pays("77"), 1, true
			v.pages, v.other, v.check = toReview+"waiting undecided late", toReview+"settled", checkUndecidedFirst
		}),
		like(cancelled, func(v *visitor) {
			v.name, v.scenario, v.at, v.decision = "integrator cancels, payer rejects", "cancelledThen", "waiting", "reject"
			v.hosted = true
			v.answers, v.collect = append(pays("77"), pays("01")...), 1
			v.pages, v.other, v.check = toReview+"waiting undecided cancelled", toReview+"waiting? completed", checkUndecidedFirst
		}),
		{name: "unknown session", hosted: true, scenario: "only", url: "/c/chs_00000000000000000000000000", pages: "unknown"},
		{name: "no session", hosted: true, scenario: "only", url: "/c/nothing", pages: "unknown"},
		{
			name: "expires at the number", scenario: "expired", at: "phone", clock: 1, answers: pays("01"),
			pages: "choose phone expired", status: "expired", event: "checkout.expired",
		},
		{
			name: "expires at the review", scenario: "expired", at: "review", clock: 1, answers: pays("01"),
			pages: toReview + "expired", status: "expired", event: "checkout.expired",
		},
		{
			name: "another amount is approved", scenario: "mismatched", clock: 1, answers: pays("77"), collect: 1,
			pages: toReview + "waiting mismatched", status: "failed", event: "checkout.failed", failure: "collect.operator_error",
		},
	}
}

// titles are the titles of the pages in French and English.
var titles = map[string]map[string]string{
	"choose":     {"fr": "Comment voulez-vous payer ?", "en": "How do you want to pay?"},
	"none":       {"fr": "Paiement impossible pour le moment", "en": "Payment is not possible at the moment"},
	"phone":      {"fr": "Votre numéro mobile money", "en": "Your mobile money number"},
	"number":     {"fr": "Votre numéro", "en": "Your number"},
	"review":     {"fr": "Vérifiez avant de payer", "en": "Check before you pay"},
	"waiting":    {"fr": "Confirmez sur votre téléphone", "en": "Confirm on your phone"},
	"bankwait":   {"fr": "Payez sur la page de la banque", "en": "Pay on the bank’s page"},
	"bank":       {"fr": "Paiement par carte (simulation)", "en": "Card payment (simulation)"},
	"question":   {"fr": "Annuler ce paiement ?", "en": "Cancel this payment?"},
	"cash":       {"fr": "Payez au guichet", "en": "Pay at a counter"},
	"counter":    {"fr": "Le guichet traite votre paiement", "en": "The counter is handling your payment"},
	"completed":  {"fr": "✓ Paiement réussi", "en": "✓ Payment successful"},
	"failed":     {"fr": "✕ Le paiement n’a pas abouti", "en": "✕ The payment did not go through"},
	"expired":    {"fr": "Cette demande de paiement a expiré", "en": "This payment request has expired"},
	"cancelled":  {"fr": "Paiement annulé", "en": "Payment cancelled"},
	"undecided":  {"fr": "Ne payez pas encore", "en": "Do not pay yet"},
	"late":       {"fr": "Paiement reçu hors délai", "en": "Payment received after the time limit"},
	"mismatched": {"fr": "Paiement à vérifier", "en": "Payment to be checked"},
	"settled":    {"fr": "Ne payez pas de nouveau", "en": "Do not pay again"},
	"unknown":    {"fr": "Page introuvable", "en": "Page not found"},
}

// called returns the page of a title; empty if there is none.
func called(title, lang string) string {
	for page, in := range titles {
		if in[lang] == title {
			return page
		}
	}
	return ""
}

// formsOf are the forms of each page, by the last part of their action. No other page has
// a form.
var formsOf = map[string][]string{
	"choose": {"offer", "cancel"}, "phone": {"phone", "cancel"}, "number": {"phone", "cancel"}, "review": {"pay", "cancel"}, "cash": {"cancel"}, "none": {"cancel"}, "question": {"cancel"},
}

// offerNames are the names of the offers on the pages.
var offerNames = map[string]map[string]string{
	"momo":          {"fr": "MTN Mobile Money", "en": "MTN Mobile Money"},
	"momo_b":        {"fr": "Airtel Money", "en": "Airtel Money"},
	"card":          {"fr": "Carte bancaire", "en": "Bank card"},
	"cash_agency":   {"fr": "Espèces au guichet", "en": "Cash at a counter"},
	"switch":        {"fr": "Autre compte ou portefeuille", "en": "Another account or wallet"},
	"bank_transfer": {"fr": "Virement bancaire", "en": "Bank transfer"},
}

// refusalWords are parts of the texts that explain a failure.
var refusalWords = map[string]map[string]string{
	"collect.rejected":            {"fr": "Vous avez refusé le paiement", "en": "You refused the payment"},
	"collect.insufficient_funds":  {"fr": "ne suffit pas", "en": "not enough money"},
	"collect.payer_limit_reached": {"fr": "a atteint sa limite", "en": "has reached its limit"},
	"collect.payer_not_found":     {"fr": "pas de compte mobile money actif", "en": "no active mobile money account"},
	"collect.wrong_pin":           {"fr": "Code secret incorrect", "en": "The PIN is not correct"},
	"card.declined":               {"fr": "La banque a refusé la carte", "en": "The bank declined the card"},
	"card.authentication_failed":  {"fr": "n’a pas pu vérifier votre identité", "en": "could not verify your identity"},
	"card.abandoned":              {"fr": "a été abandonné", "en": "was abandoned"},
}

// checkLanguages checks that each page was shown in both languages.
func checkLanguages(t *testing.T, _ visitor, seen []shown) {
	langs := map[string]bool{}
	for _, s := range seen {
		langs[s.Step+" "+s.Lang] = true
	}
	for _, step := range []string{"phone", "waiting", "end"} { // the other language of the review shows the number's page
		for _, lang := range []string{"fr", "en"} {
			if !langs[step+" "+lang] {
				t.Errorf("page %s was not shown in %s", step, lang)
			}
		}
	}
}

// checkFaulty checks that each wrong number leads to a summary of errors with the focus.
func checkFaulty(t *testing.T, v visitor, seen []shown) {
	var wrong []shown
	for _, s := range seen {
		if len(s.Errors) > 0 {
			wrong = append(wrong, s)
		}
	}
	if len(wrong) != len(v.answers)-1 {
		t.Fatalf("%d pages name an error, want %d", len(wrong), len(v.answers)-1)
	}
	for i, s := range wrong {
		if s.Focus != "errors" {
			t.Errorf("after %q the focus is at %q, want the summary of errors", v.answers[i+1], s.Focus)
		}
		if len(s.Errors) != 1 || !slices.Contains(s.Links, "#phone") {
			t.Errorf("after %q the errors are %q and the links %q, want one error with a link to the field", v.answers[i+1], s.Errors, s.Links)
		}
	}
}

// checkUndecidedFirst checks that the second session refuses the confirmation while the
// first session's collection is undecided.
func checkUndecidedFirst(t *testing.T, _ visitor, seen []shown) {
	words := map[string]string{"fr": "Nous vérifions encore auprès de l’opérateur", "en": "We are still checking with the operator"}
	for _, s := range seen {
		if s.Tab == 1 && s.Step == "review" && len(s.Errors) == 1 && strings.Contains(s.Errors[0], words[s.Lang]) {
			return
		}
	}
	t.Error("the second session's page does not say that the first is undecided")
}

// checkGuessed checks that the page of the number says whose it is, and that the review
// names the operator of the number.
func checkGuessed(t *testing.T, _ visitor, seen []shown) {
	words := map[string]string{"fr": "Ce numéro appartient à Airtel Money. Vous avez choisi MTN Mobile Money.", "en": "This number belongs to Airtel Money. You chose MTN Mobile Money."}
	if !slices.ContainsFunc(seen, func(s shown) bool {
		return s.Step == "phone" && len(s.Errors) == 1 && strings.Contains(s.Errors[0], words[s.Lang])
	}) {
		t.Error("no page says whose number it is")
	}
	for _, s := range seen {
		if s.Step == "review" && s.List[wordsOf[s.Lang].offer] != "Airtel Money" {
			t.Errorf("the review of an Airtel number shows %v", s.List)
		}
	}
}
