package page_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"

	"quittance/checkout/page"
	"quittance/money"
)

// failureCodes are those of contract docs/design/decisions.md § 6, verbatim.
var failureCodes = []string{
	"collect.rejected", "collect.approval_timeout", "collect.insufficient_funds",
	"collect.payer_limit_reached", "collect.payer_not_found", "collect.wrong_pin", "collect.amount_invalid",
	"collect.payee_unavailable", "collect.operator_unavailable", "collect.operator_error", "card.declined",
	"card.authentication_failed", "card.abandoned",
}

var once = sync.OnceValues(page.New)

func renderer(t *testing.T) *page.Renderer {
	t.Helper()
	r, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// full is a View with the fields of every state.
func full(state page.State, lang money.Language) page.View {
	xaf, _ := money.Lookup("XAF")
	now := time.Date(2026, 11, 1, 14, 27, 22, 0, time.UTC)
	return page.View{
		Lang: lang, State: state, Test: true,
		Agency: "Direction générale des impôts", Service: "Contribution de la patente", Description: "Patente 2026",
		Logo: []byte("\x89PNG"), Counters: []string{"Hall d’accueil", "Annexe"},
		Contact:    page.Contact{Address: "Avenue de l’Indépendance, Brazzaville", Phone: "+242 22 000 00 00", Email: "contact@impots.example", Hours: "du lundi au vendredi, de 8 h à 15 h"},
		PaymentRef: "4821093377150264", Currency: xaf, Due: 5000, Fee: 75, Total: 5075,
		Offers: []page.Offer{
			{ID: "momo", Kind: page.KindMobileMoney, Fee: 75, FeeKnown: true},
			{ID: "momo_b", Kind: page.KindMobileMoney},
			{ID: "card", Kind: page.KindCard},
			{ID: "cash_agency", Kind: page.KindCash},
			{ID: "bank_transfer", Kind: page.KindTransfer},
		},
		Transfer: page.Transfer{Holder: "Trésor public", Bank: "Banque d’essai", IBAN: "CG3930011000101013451300019"},
		Offer:    "momo_b", OfferLabel: "Airtel Money", Phone: "06 600 00 01", Payer: "+242066000001",
		Hidden: []page.Field{{Name: "step", Value: "next"}, {Name: "attempt", Value: "01K9"}},
		Now:    now, WindowEnds: now.Add(4*time.Minute + 37*time.Second), USSD: "*105#",
		Version: "7", LiveURL: "/c/chs_1/live",
		Receipt:     page.Receipt{NoticeRef: "AV20260000012345", OperatorRef: "23503452", PaidAt: now},
		FailureCode: "collect.approval_timeout", Send: &page.Send{Action: "/c/chs_1/send", Payer: true},
		Action: "/c/chs_1", CancelAction: "/c/chs_1/cancel", SelfURL: "/c/chs_1?lang=fr",
		CancelFields: []page.Field{{Name: "step", Value: "phone"}, {Name: "offer", Value: "momo_b"}},
		Refresh:      page.Refresh{After: 10 * time.Second, URL: "/c/chs_1?lang=fr&reloads=4#status"},
		BackURL:      "/c/chs_1?step=phone", OffersURL: "/c/chs_1?step=offers", LanguageURL: "/c/chs_1?lang=en",
		SuccessURL: "https://guichet.example/merci", CancelURL: "https://guichet.example/retour",
	}
}

// embedded is the Embed of a page in a frame.
func embedded() *page.Embed {
	return &page.Embed{
		Parent: "https://guichet.example", Script: "/c/assets/frame.000000000000.js", Layout: "compact",
		TokenURL: "/api/v1/embed/chs_1/completion-token", ReceiptURL: "/c/chs_1?lang=fr",
	}
}

func render(t *testing.T, v page.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := renderer(t).Render(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func everyPage(t *testing.T, check func(t *testing.T, v page.View, html string, root *element)) {
	t.Helper()
	for _, state := range page.States {
		for _, lang := range money.Languages {
			for n := range 4 {
				v := full(state, lang)
				name := string(state) + "/" + string(lang)
				if n&1 > 0 {
					v.Embed = embedded()
					name += "/embed"
				}
				if n&2 > 0 {
					v.Errors = []page.FieldError{{Field: page.FieldPhone, Code: page.ErrorPhoneInvalid}, {Field: page.FieldOffer, Code: page.ErrorOfferMissing}, {Code: page.ErrorTryAgain}}
					name += "/faulty"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					html := render(t, v)
					check(t, v, html, parse(t, html))
				})
			}
		}
	}
}

// Text browsers and scripts rely on this: the first button of the first form goes forward,
// and the only other form is the citizen's cancel.
func TestForms(t *testing.T) {
	t.Parallel()
	everyPage(t, func(t *testing.T, v page.View, _ string, root *element) {
		forms := root.all("form")
		steps := v.State == page.StateChoose || v.State == page.StatePhone || v.State == page.StateReview
		if v.State == page.StateCash || v.State == page.StateTransfer || v.State == page.StateCancel {
			method := map[page.State]string{page.StateCash: "get", page.StateTransfer: "get", page.StateCancel: "post"}[v.State]
			if len(forms) != 1 || !strings.HasSuffix(forms[0].attr["action"], "/cancel") || forms[0].attr["method"] != method {
				t.Fatalf("%d forms, want the citizen's cancel alone, by %s", len(forms), method)
			}
			return
		}
		if v.State == page.StateReference {
			if len(forms) != 1 || forms[0].attr["method"] != "get" || forms[0].attr["action"] != v.Action {
				t.Fatalf("%d forms, want the one of the reference", len(forms))
			}
			return
		}
		if v.State == page.StateCompleted && v.Embed == nil {
			if len(forms) != 2 || forms[0].attr["action"] != v.Send.Action || forms[1].attr["action"] != v.Send.Action || forms[0].attr["method"] != "post" || forms[1].attr["method"] != "post" {
				t.Fatalf("%d forms, want those that send the receipt", len(forms))
			}
			return
		}
		if !steps {
			if len(forms) != 0 {
				t.Fatalf("%d forms, want none", len(forms))
			}
			return
		}
		if len(forms) != 2 {
			t.Fatalf("%d forms, want the forward form and the citizen's cancel", len(forms))
		}
		forward, cancel := forms[0], forms[1]
		if forward.attr["method"] != "post" || forward.attr["action"] != v.Action {
			t.Errorf("forward form is %v", forward.attr)
		}
		// One press cancelled. Now it asks.
		if cancel.attr["method"] != "get" || !strings.HasSuffix(cancel.attr["action"], "/cancel") {
			t.Errorf("cancel form is %v", cancel.attr)
		}
		var asked []string
		for _, input := range cancel.all("input") {
			asked = append(asked, input.attr["name"]+"="+input.attr["value"])
		}
		if want := []string{"lang=" + string(v.Lang), "step=phone", "offer=momo_b"}; !slices.Equal(asked, want) {
			t.Errorf("the question gets %q, want %q", asked, want)
		}
		sent := map[string]string{}
		for _, input := range forward.all("input") {
			if input.attr["type"] == "hidden" {
				sent[input.attr["name"]] = input.attr["value"]
			}
		}
		if sent["step"] != "next" || sent["attempt"] != "01K9" || sent[page.FieldLanguage] != string(v.Lang) {
			t.Errorf("hidden fields are %v", sent)
		}
		button := forward.all("button")[0]
		if kind := button.attr["type"]; kind != "" && kind != "submit" {
			t.Errorf("first button is %v, which does not submit", button.attr)
		}
		var offers []string
		for _, e := range append(forward.all("button"), forward.all("input")...) {
			if e.attr["name"] == page.FieldOffer {
				offers = append(offers, e.attr["value"])
			}
		}
		var want []string
		if v.State == page.StateChoose {
			want = []string{"momo", "momo_b", "card", "cash_agency", "bank_transfer"}
		}
		if !slices.Equal(offers, want) {
			t.Errorf("offers are %v, want %v", offers, want)
		}
		phones := 0
		for _, input := range forward.all("input") {
			if input.attr["type"] == "tel" {
				phones++
				if input.attr["name"] != page.FieldPhone || input.attr["value"] != v.Phone {
					t.Errorf("number is %v", input.attr)
				}
			}
		}
		if want := map[bool]int{true: 1}[v.State == page.StatePhone]; phones != want {
			t.Errorf("%d inputs for a number, want %d", phones, want)
		}
		if n := len(root.all("select")); n != 0 {
			t.Errorf("%d selects", n)
		}
	})
}

// The question before a cancel says that the reference dies, if there is a counter at all.
func TestCancelQuestion(t *testing.T) {
	t.Parallel()
	for lang, words := range map[money.Language][]string{
		money.French:  {"Annuler ce paiement", "ne sera plus acceptée au guichet", "Non, continuer le paiement"},
		money.English: {"Cancel this payment?", "no longer accept the reference", "No, go on with the payment"},
	} {
		v := full(page.StateCancel, lang)
		main := parse(t, render(t, v)).byID("main")
		if main.all("h1")[0].text() == "" || !strings.Contains(main.text(), words[0]) || !strings.Contains(main.text(), words[1]) || !strings.Contains(main.text(), grouped) {
			t.Errorf("the question reads %q", main.text())
		}
		if back := main.byClass("button"); back.text() != words[2] || back.attr["href"] != v.BackURL {
			t.Errorf("the way back is %q to %s", back.text(), back.attr["href"])
		}
		v.Offers = v.Offers[:3]
		if main := parse(t, render(t, v)).byID("main"); strings.Contains(main.text(), words[1]) {
			t.Errorf("without a counter it reads %q", main.text())
		}
	}
}

// grouped is the reference of a full View as every page writes it.
const grouped = "4821\u00a00933\u00a07715\u00a00264"

// Numbers have one spelling on all pages, and no amount, reference or number of a phone
// breaks inside.
func TestNumbersHaveOneSpelling(t *testing.T) {
	t.Parallel()
	spaces := regexp.MustCompile(`[\s\x{a0}\x{202f}]`)
	everyPage(t, func(t *testing.T, v page.View, html string, root *element) {
		main := root.byID("main").text()
		if strings.Contains(main, v.PaymentRef) {
			t.Error("the reference is not in groups")
		}
		for _, n := range root.all("") {
			if n.name == "input" || len(n.children) != 1 || n.children[0].name != "" || slices.Contains([]string{"style", "script", "title"}, n.name) {
				continue
			}
			text := n.text()
			for _, number := range []string{"\u202fFCFA", "FCFA\u00a0", grouped, "+242"} {
				if strings.Contains(text, number) && !slices.Contains(strings.Fields(n.attr["class"]), "n") && n.attr["id"] != "phone-hint" && n.attr["id"] != "phone-fault" && n.name != "li" && n.attr["href"] != "#phone" {
					t.Errorf("<%s> may break %q", n.name, text)
				}
			}
		}
		if digits := spaces.ReplaceAllString(main, ""); strings.Contains(digits, "066000001") && !strings.Contains(main, "+242\u00a006\u00a0600\u00a000\u00a001") && v.State != page.StatePhone {
			t.Errorf("the number is written otherwise: %q", main)
		}
	})
	for phone, want := range map[string]string{
		"066000001":          "+242\u00a006\u00a0600\u00a000\u00a001",
		"06.600.00.01":       "+242\u00a006\u00a0600\u00a000\u00a001",
		"242066000001":       "+242\u00a006\u00a0600\u00a000\u00a001",
		"00242 06 600 00 01": "+242\u00a006\u00a0600\u00a000\u00a001",
		"+33 1 23 45 67 89":  "+33 1 23 45 67 89",
		"12":                 "12",
		"":                   "",
	} {
		if got := page.GroupPhone(phone); got != want {
			t.Errorf("GroupPhone(%q) = %q, want %q", phone, got, want)
		}
	}
}

// A number of another operator on offer is pointed out by both names.
func TestNumberOfAnotherOperator(t *testing.T) {
	t.Parallel()
	for lang, want := range map[money.Language]string{
		money.French:  "Ce numéro appartient à MTN Mobile Money. Vous avez choisi Airtel Money.",
		money.English: "This number belongs to MTN Mobile Money. You chose Airtel Money.",
	} {
		v := full(page.StatePhone, lang)
		v.OfferLabel = ""
		v.Errors = []page.FieldError{{Field: page.FieldPhone, Code: page.ErrorOperatorOther, Offer: "momo"}}
		if text := parse(t, render(t, v)).byID("phone-fault").text(); !strings.Contains(text, want) {
			t.Errorf("the page says %q", text)
		}
	}
}

func TestNoOffers(t *testing.T) {
	t.Parallel()
	v := full(page.StateChoose, money.French)
	v.Offers, v.Action = nil, ""
	html := render(t, v)
	if !strings.Contains(html, "Aucun moyen de paiement n’est configuré") {
		t.Error("page does not say that no means of payment is configured")
	}
	if forms := parse(t, html).all("form"); len(forms) != 1 || !strings.HasSuffix(forms[0].attr["action"], "/cancel") {
		t.Error("want the citizen's cancel as the only form")
	}
}

// The agency's texts are in French on every page. An English page says so, so that a screen reader
// does not read them as English.
func TestLanguageOfTheAgencysTexts(t *testing.T) {
	t.Parallel()
	theirs := regexp.MustCompile(`Direction générale|Contribution de la|Patente 2026|Avenue de|du lundi|Hall d’accueil`)
	var check func(t *testing.T, e *element, lang string)
	check = func(t *testing.T, e *element, lang string) {
		if lang = cmp.Or(e.attr["lang"], lang); e.name == "title" || e.name == "style" {
			return
		}
		if e.name == "" && theirs.MatchString(e.content) && lang != "fr" {
			t.Errorf("%q is marked as %q", e.content, lang)
		}
		for _, c := range e.children {
			check(t, c, lang)
		}
	}
	for _, state := range page.States {
		v := full(state, money.English)
		v.Items = []page.Item{{Label: "Patente 2026", Amount: 3000}, {Label: "Contribution de la vignette", Amount: 2000}}
		v.Receipt.Links = []page.ReceiptLink{{URL: "/r", Label: "Patente 2026", Name: "AV1"}}
		check(t, parse(t, render(t, v)), "")
		v.Items = nil
		check(t, parse(t, render(t, v)), "")
	}
}

// Somebody with a slip could not compare its reference with the page.
func TestReferenceOnTheStepsOfTheReference(t *testing.T) {
	t.Parallel()
	for _, state := range []page.State{page.StateChoose, page.StatePhone, page.StateReview} {
		v := full(state, money.French)
		for _, by := range []bool{false, true} {
			v.ByReference = by
			if main := parse(t, render(t, v)).byID("main").text(); strings.Contains(main, grouped) != by {
				t.Errorf("%s by reference %v: %q", state, by, main)
			}
		}
	}
}

// « Ne payez pas encore » stood for a day without a date, and after it.
func TestUndecidedHasADate(t *testing.T) {
	t.Parallel()
	for lang, want := range map[money.Language][2]string{
		money.French:  {"le 2 novembre 2026 à 15:32, l’administration en sera informée", "Adressez-vous à elle avec la référence de paiement"},
		money.English: {"by 2 November 2026, 15:32, the agency will be told", "Ask the agency, with the payment reference"},
	} {
		v := full(page.StateUndecided, lang)
		for n, at := range []time.Time{time.Date(2026, 11, 2, 14, 32, 0, 0, time.UTC), {}} {
			v.ReportedAt = at
			if main := parse(t, render(t, v)).byID("main").text(); !strings.Contains(main, want[n]) {
				t.Errorf("reported at %v: %q", at, main)
			}
		}
	}
}

// Back from the bank's page, the page asked for two seconds to go there once more.
func TestBackFromTheBank(t *testing.T) {
	t.Parallel()
	for lang, again := range map[money.Language]string{money.French: "Continuer sur la page de la banque", money.English: "Go on to the bank’s page"} {
		v := full(page.StateWaiting, lang)
		v.Kind, v.Redirect = page.KindCard, "https://acquirer.example/pay?token=t"
		for _, back := range []bool{false, true} {
			v.Returned = back
			main := parse(t, render(t, v)).byID("main")
			if strings.Contains(main.text(), again) == back {
				t.Errorf("returned %v: %q", back, main.text())
			}
			button := main.byClass("button").attr["href"]
			if want := map[bool]string{false: v.Redirect, true: v.SelfURL}[back]; button != want {
				t.Errorf("returned %v: the button leads to %s, want %s", back, button, want)
			}
		}
	}
}

// Assistive technology and keyboards can use each page.
func TestAccessibleStructure(t *testing.T) {
	t.Parallel()
	everyPage(t, func(t *testing.T, v page.View, html string, root *element) {
		if got := root.all("html")[0].attr["lang"]; got != string(v.Lang) {
			t.Errorf("page is in %q, want %q", got, v.Lang)
		}
		for _, name := range []string{"h1", "main", "title"} {
			if n := len(root.all(name)); n != 1 {
				t.Errorf("%d <%s>, want 1", n, name)
			}
		}
		ids := map[string]*element{}
		for _, e := range root.all("") {
			if id := e.attr["id"]; id != "" {
				if ids[id] != nil {
					t.Errorf("id %q twice", id)
				}
				ids[id] = e
			}
		}
		labelled := map[string]bool{}
		for _, label := range root.all("label") {
			labelled[label.attr["for"]] = strings.TrimSpace(label.text()) != ""
		}
		for _, input := range root.all("input") {
			if input.attr["type"] != "hidden" && !labelled[input.attr["id"]] {
				t.Errorf("input %v without a label", input.attr)
			}
			for ref := range strings.FieldsSeq(input.attr["aria-describedby"]) {
				if ids[ref] == nil {
					t.Errorf("input is described by %q, which is not there", ref)
				}
			}
		}
		for _, e := range append(root.all("a"), root.all("button")...) {
			if strings.TrimSpace(e.text()) == "" {
				t.Errorf("<%s> %v without words", e.name, e.attr)
			}
			if target, ok := strings.CutPrefix(e.attr["href"], "#"); ok && ids[target] == nil {
				t.Errorf("link to #%s, which is not there", target)
			}
		}
		if v.State == page.StateWaiting {
			if status := ids["status"]; status == nil || status.attr["role"] != "status" {
				t.Error("no live region for the status")
			}
		}
		// Only without JavaScript does a page load itself again.
		want := 0
		if (v.State == page.StateWaiting || v.State == page.StateCash || v.State == page.StateTransfer || v.State == page.StateBusy) && v.Embed == nil {
			want = 1
		}
		const refresh = `<noscript><meta http-equiv="refresh" content="10;url=/c/chs_1?lang=fr&amp;reloads=4#status"></noscript>`
		if got, all := strings.Count(html, refresh), strings.Count(html, "http-equiv"); got != want || all != want {
			t.Errorf("the page loads itself again %d times, %d as wanted", all, got)
		}
		if want > 0 && ids["status"] == nil {
			t.Error("no status to return to")
		}
	})
}

func TestErrorSummary(t *testing.T) {
	t.Parallel()
	for _, lang := range money.Languages {
		for _, code := range page.ErrorCodes {
			v := full(page.StatePhone, lang)
			v.Errors = []page.FieldError{{Field: page.FieldPhone, Code: code, Offer: "momo"}}
			root := parse(t, render(t, v))
			summary := root.byID("errors")
			if summary == nil || summary.attr["role"] != "alert" || summary.attr["tabindex"] != "-1" {
				t.Fatalf("%s: no summary that takes the focus", code)
			}
			link := summary.all("a")[0]
			if link.attr["href"] != "#phone" || len(link.text()) < 10 {
				t.Errorf("%s: summary links %v, %q", code, link.attr, link.text())
			}
			if fault := root.byID("phone-fault"); fault == nil || fault.text() != link.text() {
				t.Errorf("%s: fault is not told at the field", code)
			}
			if input := root.byID("phone"); input.attr["aria-invalid"] != "true" {
				t.Errorf("%s: field is not marked", code)
			}
		}
	}
	v := full(page.StateReview, money.English)
	v.Errors = []page.FieldError{{Field: page.FieldPhone, Message: "Words of the caller."}}
	summary := parse(t, render(t, v)).byID("errors")
	if len(summary.all("a")) != 0 || !strings.Contains(summary.text(), "Words of the caller.") {
		t.Errorf("summary of a field that is not on the page is %q", summary.text())
	}
}

func TestEveryFailureHasWords(t *testing.T) {
	t.Parallel()
	for _, lang := range money.Languages {
		seen := map[string]string{}
		for _, code := range failureCodes {
			v := full(page.StateFailed, lang)
			v.FailureCode = code
			root := parse(t, render(t, v))
			said := root.byID("main").all("strong")[0].text()
			if other, taken := seen[said]; taken || len(said) < 15 {
				t.Errorf("%s reads %q in %s, like %q", code, said, lang, other)
			}
			seen[said] = code
			if strings.Contains(root.text(), code) {
				t.Errorf("%s shows its code", code)
			}
			if link := root.byClass("button"); link == nil || link.attr["href"] != v.CancelURL {
				t.Errorf("%s: no way to start again at %s", code, v.CancelURL)
			}
		}
		v := full(page.StateFailed, lang)
		v.FailureCode = "collect.of_tomorrow"
		if said := parse(t, render(t, v)).byID("main").all("strong")[0].text(); seen[said] != "collect.operator_error" {
			t.Errorf("an unknown code reads %q in %s", said, lang)
		}
	}
}

// When money was or may have been taken, the page says what to keep, and no link leads to
// a second payment.
func TestDoNotPayAgain(t *testing.T) {
	t.Parallel()
	for lang, again := range map[money.Language]string{money.French: "Ne payez pas de nouveau", money.English: "Do not pay again"} {
		for _, state := range []page.State{page.StateUndecided, page.StateLate, page.StateMismatched, page.StateReview} {
			v := full(state, lang)
			if state == page.StateReview {
				v.Errors = []page.FieldError{{Code: page.ErrorOrderPaid}}
			}
			root := parse(t, render(t, v))
			main := root.byID("main")
			if !strings.Contains(main.text(), again) || !strings.Contains(main.text(), grouped) {
				t.Errorf("%s in %s says %q", state, lang, main.text())
			}
			if got := strings.Contains(main.text(), v.Receipt.OperatorRef); got != (state != page.StateReview) {
				t.Errorf("%s in %s shows the operator's reference: %v", state, lang, got)
			}
			if n := len(main.all("form")) + len(main.all("button")); n != 0 {
				t.Errorf("%s in %s has %d forms and buttons, want none", state, lang, n)
			}
			var links, want []string
			for _, a := range main.all("a") {
				if !strings.HasPrefix(a.attr["href"], "tel:") && !strings.HasPrefix(a.attr["href"], "mailto:") {
					links = append(links, a.attr["href"])
				}
			}
			if state == page.StateUndecided {
				want = []string{v.SelfURL}
			}
			if !slices.Equal(links, want) {
				t.Errorf("%s in %s links %q, want %q", state, lang, links, want)
			}
			// What the operator reported is another amount.
			if got := strings.Contains(main.text(), "FCFA"); got != (state == page.StateUndecided || state == page.StateLate) {
				t.Errorf("%s in %s shows an amount: %v", state, lang, got)
			}
		}
	}
}

func TestAmountsAreShown(t *testing.T) {
	t.Parallel()
	for lang, want := range map[money.Language][]string{
		money.French:  {"5\u202f000\u202fFCFA", "75\u202fFCFA", "5\u202f075\u202fFCFA"},
		money.English: {"FCFA\u00a05,000", "FCFA\u00a075", "FCFA\u00a05,075"},
	} {
		for _, state := range []page.State{page.StateReview, page.StateWaiting, page.StateCompleted} {
			var got []string
			for _, dd := range parse(t, render(t, full(state, lang))).all("dd") {
				if strings.Contains(dd.text(), "FCFA") {
					got = append(got, dd.text())
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s shows %q, want %q", state, got, want)
			}
		}
		if due := parse(t, render(t, full(page.StateChoose, lang))).byClass("amount"); due.text() != want[0] {
			t.Errorf("choose shows %q, want %q", due.text(), want[0])
		}
		button := parse(t, render(t, full(page.StateReview, lang))).all("form")[0].all("button")[0]
		if !strings.HasSuffix(button.text(), want[2]) {
			t.Errorf("confirm reads %q, want the total", button.text())
		}
	}
}

func TestTheNumberIsMasked(t *testing.T) {
	t.Parallel()
	everyPage(t, func(t *testing.T, v page.View, html string, _ *element) {
		shown := v.State == page.StatePhone || v.State == page.StateReview
		digits := regexp.MustCompile(`[\s\x{a0}]`).ReplaceAllString(html, "")
		if got := strings.Contains(digits, "066000001"); got != shown {
			t.Errorf("number shown in full: %v, want %v", got, shown)
		}
	})
	for phone, want := range map[string]string{
		"+242066000001": "+242\u00a006\u00a0•••\u00a0••\u00a001",
		"242066000001":  "+242\u00a006\u00a0•••\u00a0••\u00a001",
		"06 600 00 01":  "+242\u00a006\u00a0•••\u00a0••\u00a001",
		"+33123456789":  "•••",
		"0660001":       "•••",
		"":              "•••",
	} {
		if got := page.MaskPhone(phone); got != want {
			t.Errorf("MaskPhone(%q) = %q, want %q", phone, got, want)
		}
	}
}

// While a collection is in flight, the citizen can neither cancel it nor begin another.
func TestWaiting(t *testing.T) {
	t.Parallel()
	v := full(page.StateWaiting, money.French)
	root := parse(t, render(t, v))
	live := root.byID("live")
	if live.attr["data-live"] != v.LiveURL || live.attr["data-version"] != "7" || live.attr["data-left"] != "277" {
		t.Errorf("live status is %v", live.attr)
	}
	for _, want := range []string{"environ 5 minutes", "15:31, heure de Brazzaville", "*105#"} {
		if !strings.Contains(root.text(), want) {
			t.Errorf("page does not say %q", want)
		}
	}
	if check := root.byClass("button"); check.text() != "Vérifier" || check.attr["href"] != v.SelfURL {
		t.Errorf("no « Vérifier »: %v", check)
	}

	v.WindowEnds = v.Now.Add(59 * time.Second)
	if !strings.Contains(parse(t, render(t, v)).text(), "moins d’une minute") {
		t.Error("the last minute is not told")
	}
	v.WindowEnds = v.Now
	root = parse(t, render(t, v))
	if root.byID("clock") != nil || !strings.Contains(root.byID("status").text(), "Le délai est écoulé") {
		t.Error("the end of the window is not told")
	}
	v.WindowEnds, v.LiveURL, v.SelfURL, v.USSD, v.Payer = time.Time{}, "", "", "", ""
	root = parse(t, render(t, v))
	if root.byID("clock") != nil || root.byID("live").attr["data-live"] != "" {
		t.Error("a clock or a live status that was not given")
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	v := full(page.StateCompleted, money.French)
	text := parse(t, render(t, v)).text()
	for _, want := range []string{"TEST", grouped, v.Receipt.NoticeRef, v.Receipt.OperatorRef, "1er novembre 2026 à 15:27", "Airtel Money", v.Agency} {
		if !strings.Contains(text, want) {
			t.Errorf("receipt lacks %q", want)
		}
	}
	v.Test, v.Lang = false, money.English
	text = parse(t, render(t, v)).text()
	if strings.Contains(text, "TEST") || !strings.Contains(text, "1 November 2026, 15:27") {
		t.Errorf("live receipt in English is %s", text)
	}
}

// The texts of integrators and citizens are escaped.
func TestHostileTextIsEscaped(t *testing.T) {
	t.Parallel()
	const attack = `"'><script src=//evil.example></script><img src=x onerror=alert(1)>{{.Agency}}`
	everyPage(t, func(t *testing.T, v page.View, _ string, _ *element) {
		v.Redirect = "https://acquirer.example/pay"
		intact := parse(t, render(t, v))
		plain, scripts := len(intact.all("")), len(intact.all("script"))
		v.Agency, v.Service, v.Description, v.PaymentRef, v.OfferLabel = attack, attack, attack, attack, attack
		v.Phone, v.Payer, v.USSD, v.Version, v.FailureCode = attack, "•"+attack, attack, attack, attack
		v.Receipt.NoticeRef, v.Receipt.OperatorRef = attack, attack
		v.Contact, v.Counters = page.Contact{Address: attack, Phone: attack, Email: attack, Hours: attack}, []string{attack}
		v.Hidden = []page.Field{{Name: "step", Value: attack}, {Name: attack, Value: ""}}
		v.Offers = slices.Clone(v.Offers)
		for i := range v.Offers {
			v.Offers[i].ID, v.Offers[i].Label = attack, attack
		}
		v.SuccessURL, v.CancelURL, v.Redirect = "javascript:alert(1)", "javascript:alert(1)", "javascript:alert(1)"
		for i := range v.Errors {
			v.Errors[i].Message = attack
		}
		html := render(t, v)
		root := parse(t, html)
		if n := len(root.all("script")); n != scripts {
			t.Errorf("%d scripts, want %d", n, scripts)
		}
		if got := len(root.all("")); v.State != page.StateFailed && got != plain {
			t.Errorf("%d elements, want %d", got, plain)
		}
		if len(root.all("img")) != len(intact.all("img")) || strings.Contains(html, "javascript:") {
			t.Error("attack went through")
		}
	})
}

// The dues of a cart are listed with their amounts in the place of a description.
func TestItems(t *testing.T) {
	t.Parallel()
	everyPage(t, func(t *testing.T, v page.View, _ string, _ *element) {
		described := strings.Contains(render(t, v), "Patente 2026")
		v.Items = []page.Item{{Label: `Taxe <d’enseigne>`, Amount: 2000}, {Label: "Solde", Amount: 3000}}
		html := render(t, v)
		text := strings.ReplaceAll(parse(t, html).text(), "\u202f", " ")
		if strings.Contains(html, "Patente 2026") || strings.Contains(html, "<d’enseigne>") {
			t.Error("the page has the description, or markup of a label")
		}
		for _, part := range []string{"Taxe <d’enseigne>", "Solde", map[money.Language]string{money.French: "2 000", money.English: "2,000"}[v.Lang]} {
			if described != strings.Contains(text, part) {
				t.Errorf("%q: %v, and a description %v:\n%s", part, !described, described, html)
			}
		}
	})
}

// The first view of the hosted page has at most 8 kB with brotli in at most three requests,
// with the largest logo that a registry file gives. A frame has two more scripts. The page
// has no inline script and loads nothing from other origins.
func TestFirstView(t *testing.T) {
	t.Parallel()
	assets, sizes := renderer(t).Assets(), map[string]int{}
	for _, a := range assets {
		sizes[a.Path] = compressed(t, a.Body)
	}
	noise := rand.NewChaCha8([32]byte{})
	logo := make([]byte, 1536) // nothing compresses it
	_, _ = noise.Read(logo)
	everyPage(t, func(t *testing.T, v page.View, _ string, _ *element) {
		v.Logo = logo
		for n := range 20 {
			v.Items = append(v.Items, page.Item{Label: fmt.Sprint("Contribution de la patente, solde de l’exercice ", 2000+n), Amount: int64(1000 * n)})
		}
		html := render(t, v)
		root := parse(t, html)
		size := compressed(t, []byte(html))
		var fetched []string
		for _, e := range root.all("") {
			for name, value := range e.attr {
				if strings.HasPrefix(name, "on") || name == "style" || name == "srcset" {
					t.Errorf("<%s %s>", e.name, name)
				}
				if (name == "src" || e.name == "link" && name == "href") && !strings.HasPrefix(value, "data:") {
					fetched = append(fetched, value)
				}
			}
			if e.name == "script" && strings.TrimSpace(e.text()) != "" {
				t.Error("inline script")
			}
			if sum := sha256.Sum256([]byte(e.text())); e.name == "style" && !strings.Contains(page.ContentSecurityPolicy(), base64.StdEncoding.EncodeToString(sum[:])) {
				t.Error("the policy does not know the style")
			}
		}
		want := []string{assets[0].Path}
		if v.Embed != nil {
			want = []string{v.Embed.Script, assets[1].Path, assets[0].Path}
		}
		if !slices.Equal(fetched, want) {
			t.Errorf("page fetches %v, want %v", fetched, want)
		}
		for _, path := range want {
			size += sizes[path]
		}
		most := 8_000
		if v.Embed != nil {
			most = 10_000
		}
		if size > most {
			t.Errorf("first view is %d bytes, want at most %d", size, most)
		}
		if v.State == page.StateWaiting || v.State == page.StateChoose {
			t.Logf("first view: %d bytes by brotli in %d requests", size, 1+len(fetched))
		}
	})
	for _, a := range assets {
		if !strings.HasPrefix(a.Path, page.AssetPrefix) || !regexp.MustCompile(`\.[0-9a-f]{12}\.js$`).MatchString(a.Path) {
			t.Errorf("asset is named %s", a.Path)
		}
	}
}

// The page's script only learns that the session changed. It has no words for outcomes,
// sends no messages and stores nothing. The frame's script knows the present page, but only
// the messaging script can send messages to the parent page.
func TestScriptTellsNobody(t *testing.T) {
	t.Parallel()
	for i, a := range renderer(t).Assets() {
		words := []string{"postMessage", "parent.", "window.parent", "opener", "window.top", "paid", "cookie", "Storage", "innerHTML", "eval", "sendBeacon", "http:", "https:", "@import", "url("}
		if i < 1 {
			words = append(words, "parent", "completed")
		}
		for _, word := range words {
			if bytes.Contains(a.Body, []byte(word)) {
				t.Errorf("%s says %q", a.Path, word)
			}
		}
	}
	everyPage(t, func(t *testing.T, v page.View, html string, _ *element) {
		if strings.Contains(strings.ToLower(html), "paid") && v.State != page.StatePaid {
			t.Error("page says paid")
		}
	})
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for _, h := range page.Headers() {
		got[h.Name] = regexp.MustCompile(`'sha256-[^']{44}'`).ReplaceAllString(h.Value, "'hash'")
	}
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'hash'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"Cache-Control":           "no-store",
		"Referrer-Policy":         "no-referrer",
		"X-Content-Type-Options":  "nosniff",
		"Content-Type":            "text/html; charset=utf-8",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A View that would make a misleading page is refused.
func TestIncompleteViewsAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*page.View){
		"no state":          func(v *page.View) { v.State = "" },
		"no currency":       func(v *page.View) { v.Currency = money.Currency{} },
		"no agency":         func(v *page.View) { v.Agency = "" },
		"wrong total":       func(v *page.View) { v.Total++ },
		"no action":         func(v *page.View) { v.Action = "" },
		"cancel elsewhere":  func(v *page.View) { v.CancelAction = "/c/chs_1/cancel?lang=fr" },
		"negative due":      func(v *page.View) { v.Due, v.Total = -5000, -4925 },
		"no cancel":         func(v *page.View) { v.State, v.CancelAction = page.StateCancel, "" },
		"no way back":       func(v *page.View) { v.State, v.BackURL = page.StateCancel, "" },
		"undecided total":   func(v *page.View) { v.State, v.Total = page.StateUndecided, v.Total+1 },
		"late total":        func(v *page.View) { v.State, v.Total = page.StateLate, v.Total+1 },
		"live but no place": func(v *page.View) { v.State, v.SelfURL = page.StateWaiting, "" },
	} {
		v := full(page.StateReview, money.French)
		spoil(&v)
		var b bytes.Buffer
		if err := renderer(t).Render(&b, v); !errors.Is(err, page.ErrView) || b.Len() != 0 {
			t.Errorf("%s: error is %v after %d bytes", name, err, b.Len())
		}
	}
}

func TestPagesWithoutASession(t *testing.T) {
	t.Parallel()
	for _, state := range []page.State{page.StateUnknown, page.StateUnavailable} {
		html := render(t, page.View{State: state})
		if parse(t, html).all("html")[0].attr["lang"] != "fr" {
			t.Errorf("%s is not in French by default", state)
		}
		// These pages show nothing of a session, even if the View has it.
		if html := render(t, full(state, money.French)); strings.Contains(html, "impôts") || strings.Contains(html, "4821093377150264") {
			t.Errorf("%s speaks of a session", state)
		}
	}
}

func TestNegotiate(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		asked, header string
		want          money.Language
	}{
		{"", "", money.French},
		{"en", "fr", money.English},
		{"fr", "en", money.French},
		{"de", "en-GB,en;q=0.9", money.English},
		{"", "fr-CG,fr;q=0.9,en;q=0.8", money.French},
		{"", "ln,en;q=0.8,fr;q=0.7", money.English},
		{"", "en;q=0.5, fr;q=0.5", money.English},
		{"", "de, *;q=0.5", money.French},
		{"", "en;q=0", money.French},
		{"", "en;q=x", money.French},
		{"", ",;,=;q=", money.French},
	} {
		if got := page.Negotiate(row.asked, row.header); got != row.want {
			t.Errorf("Negotiate(%q, %q) = %s, want %s", row.asked, row.header, got, row.want)
		}
	}
}

func compressed(t *testing.T, body []byte) int {
	t.Helper()
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, 5) // the level that the server uses
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

// element is a node of a parsed page; one without a name is text.
type element struct {
	name     string
	attr     map[string]string
	content  string
	children []*element
}

// parse reads a page as nested elements and fails the test for a tag that is not closed.
func parse(t *testing.T, html string) *element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &element{name: "#root"}
	open := []*element{root}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("parsing page: %v", err)
		}
		top := open[len(open)-1]
		switch token := token.(type) {
		case xml.StartElement:
			e := &element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				if _, twice := e.attr[a.Name.Local]; twice {
					t.Errorf("<%s> has %s twice", e.name, a.Name.Local)
				}
				e.attr[a.Name.Local] = a.Value
			}
			top.children = append(top.children, e)
			open = append(open, e)
		case xml.EndElement:
			if top.name != token.Name.Local {
				t.Fatalf("<%s> is closed by </%s>", top.name, token.Name.Local)
			}
			open = open[:len(open)-1]
		case xml.CharData:
			top.children = append(top.children, &element{content: string(token)})
		}
	}
	return root
}

// all lists the descendants of a name in document order, or every element.
func (e *element) all(name string) []*element {
	var found []*element
	for _, child := range e.children {
		if child.name != "" && (name == "" || child.name == name) {
			found = append(found, child)
		}
		found = append(found, child.all(name)...)
	}
	return found
}

func (e *element) first(match func(*element) bool) *element {
	for _, d := range e.all("") {
		if match(d) {
			return d
		}
	}
	return nil
}

func (e *element) byID(id string) *element {
	return e.first(func(d *element) bool { return d.attr["id"] == id })
}

func (e *element) byClass(class string) *element {
	return e.first(func(d *element) bool {
		return slices.Contains(strings.Fields(d.attr["class"]), class)
	})
}

func (e *element) text() string {
	var b strings.Builder
	b.WriteString(e.content)
	for _, child := range e.children {
		b.WriteString(child.text())
	}
	return b.String()
}

// Without network a confirmation ended in the browser's error, although the payment may have gone
// through. The script sends it, and says what to do, with the form's words.
func TestConfirmationWithoutNetwork(t *testing.T) {
	t.Parallel()
	for lang, want := range map[money.Language]string{money.French: "vous ne paierez pas deux fois", money.English: "you will not pay twice"} {
		everyForm := 0
		for _, state := range page.States {
			for _, form := range parse(t, render(t, full(state, lang))).all("form") {
				if lost := form.attr["data-lost"]; lost != "" {
					everyForm++
					if state != page.StateReview || form.attr["method"] != "post" || !strings.Contains(lost, want) {
						t.Errorf("%s in %s says %q", state, lang, lost)
					}
				}
			}
		}
		if everyForm != 1 {
			t.Errorf("%d forms are sent by the script, want the confirmation alone", everyForm)
		}
	}
}

// A card is paid on the acquirer's page. The waiting page links to it, in a frame by a new
// window, and does not mention a phone.
func TestCard(t *testing.T) {
	t.Parallel()
	for _, lang := range money.Languages {
		v := full(page.StateReview, lang)
		v.Kind, v.Phone = page.KindCard, ""
		v.State = page.StateWaiting
		if root := parse(t, render(t, v)); root.first(func(e *element) bool { return strings.HasPrefix(e.attr["href"], "http") }) != nil {
			t.Error("a link to a page that is not known yet")
		}
		v.Redirect = "https://acquirer.example/pay?token=t"
		for _, e := range []*page.Embed{nil, embedded()} {
			v.Embed = e
			root := parse(t, render(t, v))
			link := root.first(func(d *element) bool { return d.attr["href"] == v.Redirect })
			if link == nil || (link.attr["target"] == "_blank") != (e != nil) || !strings.Contains(link.attr["rel"], "noreferrer") {
				t.Errorf("the way to the bank is %v", link)
			}
			if text := root.byID("main").text(); strings.Contains(text, "*105#") || strings.Contains(text, "PIN") || strings.Contains(text, "téléphone") {
				t.Errorf("a card page speaks of a phone: %s", text)
			}
		}
	}
}

func TestCash(t *testing.T) {
	t.Parallel()
	for lang, until := range map[money.Language]string{money.French: "1er novembre 2026 à 15:31", money.English: "1 November 2026, 15:31"} {
		v := full(page.StateCash, lang)
		v.ExpiresAt = v.WindowEnds
		root := parse(t, render(t, v))
		if ref := root.byClass("reference"); ref.text() != grouped {
			t.Errorf("the reference reads %q", ref.text())
		}
		if !strings.Contains(root.text(), until) {
			t.Errorf("the page does not say until when: %s", root.text())
		}
		if live := root.byID("live"); live.attr["data-live"] != v.LiveURL || live.attr["data-version"] != v.Version {
			t.Errorf("live status is %v", live.attr)
		}
		v.PaymentRef = ""
		if err := renderer(t).Render(io.Discard, v); !errors.Is(err, page.ErrView) {
			t.Errorf("a page without its reference: %v", err)
		}
	}
}

// Every page of a session names the agency with its logo, and says once how to reach it.
// The pages without a session know no agency.
func TestAgencyOnEveryPage(t *testing.T) {
	t.Parallel()
	everyPage(t, func(t *testing.T, v page.View, html string, root *element) {
		about := v.State != page.StateUnknown && v.State != page.StateUnavailable && v.State != page.StateReload && v.State != page.StateReference
		want := 0
		if about {
			want = 1
		}
		if n := len(root.all("img")); n != want {
			t.Errorf("%d logos, want %d", n, want)
		}
		for _, text := range []string{v.Contact.Email, "+242\u00a022\u00a0000\u00a000\u00a000", `href="tel:&#43;242220000000"`, `href="mailto:` + v.Contact.Email} {
			n := strings.Count(html, text)
			if text == v.Contact.Email {
				n-- // the link and its text
			}
			if n != want && !(n < 0 && !about) {
				t.Errorf("%q is there %d times, want %d", text, n, want)
			}
		}
		for _, text := range []string{v.Contact.Hours, v.Contact.Address} {
			if strings.Contains(html, text) != about {
				t.Errorf("%q is there: %v", text, !about)
			}
		}
	})
	v := full(page.StateFailed, money.French)
	v.Logo, v.Contact = nil, page.Contact{}
	if html := render(t, v); strings.Contains(html, "<img") || strings.Contains(html, `class="contact"`) {
		t.Error("an agency without contact has an empty one")
	}
}

// In a frame, links to other pages open new windows, and the scripts have the addresses
// that they need.
func TestEmbed(t *testing.T) {
	t.Parallel()
	everyPage(t, func(t *testing.T, v page.View, html string, root *element) {
		html1 := root.all("html")[0]
		if v.Embed == nil {
			if html1.attr["data-parent"] != "" || strings.Contains(html, "embed.") {
				t.Error("a hosted page knows of a frame")
			}
			return
		}
		if html1.attr["data-parent"] != v.Embed.Parent || (html1.attr["data-need"] == "navigate") != (v.State == page.StateReload) {
			t.Errorf("the messaging script is told %v", html1.attr)
		}
		if main := root.byID("main"); main.attr["data-state"] != string(v.State) || main.attr["data-token"] != v.Embed.TokenURL {
			t.Errorf("the page says of itself %v", main.attr)
		}
		for _, a := range root.all("a") {
			if strings.HasPrefix(a.attr["href"], "http") && a.attr["target"] != "_blank" {
				t.Errorf("the frame would be left to %s", a.attr["href"])
			}
		}
	})
}

// The pages of a refused, an expired and a cancelled payment say whether money was taken, under
// which reference, and what to do. None leads to the reference, by which an ended session can no
// longer be paid.
func TestMoneyOfAnUnpaidSession(t *testing.T) {
	t.Parallel()
	says := map[money.Language]struct{ none, doubt, again, ask string }{
		money.French:  {"Aucune somme n’a été débitée.", "ne payez pas une deuxième fois", "Recommencer sur le site de l’administration", "demandez un nouveau lien de paiement"},
		money.English: {"No money was taken.", "do not pay a second time", "Start again on the agency’s site", "ask the agency for a new payment link"},
	}
	for lang, say := range says {
		for _, state := range []page.State{page.StateFailed, page.StateExpired, page.StateCancelled} {
			for _, none := range []bool{false, true} {
				for _, back := range []string{"", "https://guichet.example/retour"} {
					v := full(state, lang)
					v.NotDebited, v.CancelURL = none, back
					html := render(t, v)
					main := parse(t, html).byID("main").text()
					if strings.Contains(main, say.none) != none || strings.Contains(main, say.doubt) == none || !strings.Contains(main, grouped) {
						t.Errorf("%s in %s, nothing debited %v: %q", state, lang, none, main)
					}
					if strings.Contains(main, say.again) != (back != "") || strings.Contains(main, say.ask) != (back == "") {
						t.Errorf("%s in %s, leading back to %q: %q", state, lang, back, main)
					}
					if strings.Contains(html, `href="/p`) {
						t.Errorf("%s in %s leads to the reference", state, lang)
					}
				}
			}
		}
	}
}
