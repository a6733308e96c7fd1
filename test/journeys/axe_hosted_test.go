package journeys_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"quittance/checkout/page"
	"quittance/money"
)

// look is a variant of the pages of some states.
type look struct {
	name     string
	states   []page.State // all when empty
	french   bool         // only in French, which has the longer words
	widths   []int        // auditWidths when empty
	pictured []page.State // states with pictures
	change   func(*page.View)
}

// looks are all variants. The first one has everything that a page can show.
var looks = []look{
	{name: "", pictured: page.States, change: func(*page.View) {}},
	{name: "faulty", widths: pictureWidths, states: []page.State{page.StateChoose, page.StatePhone, page.StateReview, page.StateReference, page.StateCompleted}, pictured: []page.State{page.StatePhone, page.StateReference, page.StateCompleted}, change: func(v *page.View) {
		if v.State == page.StateCompleted {
			v.Send.Typed, v.Errors = "06 612 34", []page.FieldError{{Field: page.FieldAddress, Code: page.ErrorAddressInvalid}}
			return
		}
		if v.State == page.StateReference {
			v.Typed, v.Errors = "4821 0933 7715 0265", []page.FieldError{{Field: page.FieldReference, Code: page.ErrorReferenceMistyped}}
			return
		}
		v.Errors = []page.FieldError{
			{Field: page.FieldPhone, Code: page.ErrorPhoneInvalid},
			{Field: page.FieldOffer, Code: page.ErrorOfferMissing},
			{Code: page.ErrorPreviousUndecided},
			{Code: page.ErrorDueInPayment},
		}
	}},
	{name: "sent", widths: pictureWidths, states: []page.State{page.StateCompleted}, pictured: []page.State{page.StateCompleted}, change: func(v *page.View) {
		v.Send.Asked = page.WayEmail
	}},
	{name: "paid", widths: pictureWidths, states: []page.State{page.StateReview}, pictured: []page.State{page.StateReview}, change: func(v *page.View) {
		v.Errors = []page.FieldError{{Code: page.ErrorOrderPaid}}
	}},
	// Paying by reference: no description and no cancel.
	{name: "by-reference", widths: pictureWidths, states: []page.State{page.StatePhone, page.StateReview}, pictured: []page.State{page.StatePhone}, change: func(v *page.View) {
		v.Description, v.SubjectEnds, v.CancelAction = "", []string{"1234", "6789"}, ""
	}},
	{name: "cart", widths: pictureWidths, states: []page.State{page.StateChoose, page.StateReview, page.StateCompleted}, change: func(v *page.View) {
		v.Items = []page.Item{{Label: "Contribution foncière, solde", Amount: v.Due - 2000}, {Label: "Taxe d’enseigne 2026", Amount: 2000}}
	}},
	{name: "dues", widths: pictureWidths, states: []page.State{page.StateReview, page.StateCancelled}, pictured: []page.State{page.StateReview, page.StateCancelled}, change: func(v *page.View) {
		v.DuesURL, v.Errors = "/portal", []page.FieldError{{Code: page.ErrorDuesUnknown}}
	}},
	{name: "none", widths: pictureWidths, states: []page.State{page.StateChoose}, pictured: []page.State{page.StateChoose}, change: func(v *page.View) { v.Offers = nil }},
	{name: "one", widths: pictureWidths, states: []page.State{page.StatePhone}, change: func(v *page.View) { v.OffersURL = "" }},
	{name: "other", widths: pictureWidths, states: []page.State{page.StatePhone}, pictured: []page.State{page.StatePhone}, change: func(v *page.View) {
		v.Errors = []page.FieldError{{Field: page.FieldPhone, Code: page.ErrorOperatorOther, Offer: "momo_b"}}
	}},
	{name: "dead-end", widths: pictureWidths, states: []page.State{page.StateFailed}, pictured: []page.State{page.StateFailed}, change: func(v *page.View) { v.CancelURL = "" }},
	{name: "card", widths: pictureWidths, states: anyOffer, pictured: []page.State{page.StateReview, page.StateWaiting}, change: asCard},
	{name: "cash", widths: pictureWidths, states: anyOffer, pictured: []page.State{page.StateWaiting}, change: func(v *page.View) {
		v.Kind, v.Offer, v.Phone, v.Payer, v.BackURL = page.KindCash, "cash_agency", "", "", ""
	}},
	{name: "switch", widths: pictureWidths, states: []page.State{page.StateChoose, page.StatePhone, page.StateReview, page.StateWaiting, page.StateFailed}, pictured: []page.State{page.StateChoose, page.StatePhone, page.StateWaiting}, change: asSwitch},
	{name: "over", widths: pictureWidths, states: []page.State{page.StateWaiting}, change: func(v *page.View) { v.WindowEnds = v.Now }},
	{name: "refused", widths: pictureWidths, states: []page.State{page.StateFailed}, change: func(v *page.View) { v.FailureCode = "collect.rejected" }},
	// The longest words and amounts.
	{name: "long", states: []page.State{page.StateChoose, page.StateReview, page.StateCompleted}, french: true, widths: []int{320}, change: func(v *page.View) {
		v.Agency = "Direction générale des impôts et des domaines, circonscription de Pointe-Noire"
		v.Service = "Contribution de la patente et des licences, régularisation des exercices antérieurs"
		v.Description = "https://guichet.example/demandes/2026/0001f3a8c5e94b0e9a1f5b7d2c6e8a90?exercice=2025-2026"
		v.Due, v.Fee, v.Total = 99_999_999_999_999, 5000, 100_000_000_004_999
	}},
	{name: "compact", widths: []int{320, 400}, pictured: []page.State{page.StateChoose, page.StateReview, page.StateWaiting, page.StateCompleted}, change: func(v *page.View) { v.Embed = inFrame("compact") }},
	{name: "large", widths: []int{1280}, change: func(v *page.View) { v.Embed = inFrame("large") }},
	{name: "compact-faulty", widths: []int{320}, states: []page.State{page.StateChoose, page.StatePhone, page.StateReview}, change: func(v *page.View) {
		v.Embed, v.Errors = inFrame("compact"), []page.FieldError{{Field: page.FieldPhone, Code: page.ErrorPhoneMissing}, {Code: page.ErrorFormStale}}
	}},
	{name: "compact-card", widths: []int{320}, states: []page.State{page.StateWaiting}, change: func(v *page.View) {
		asCard(v)
		v.Embed = inFrame("compact")
	}},
}

// anyOffer are the states whose pages have words for each kind of offer.
var anyOffer = []page.State{page.StateReview, page.StateWaiting, page.StateCompleted, page.StateFailed, page.StateUndecided}

func asSwitch(v *page.View) {
	v.Offer, v.USSD, v.FailureCode = "switch", "", "collect.payer_not_found"
	v.Offers = append(slices.Clone(v.Offers), page.Offer{ID: "switch", Kind: page.KindMobileMoney})
}

func asCard(v *page.View) {
	v.Kind, v.Offer, v.Phone, v.Payer, v.BackURL = page.KindCard, "card", "", "", ""
	v.Redirect, v.FailureCode = "https://acquirer.example/pay/4f7c", "card.declined"
}

// inFrame describes a page in an integrator's frame. Its scripts are empty here, because
// no page around it answers.
func inFrame(layout string) *page.Embed {
	return &page.Embed{
		Parent: "https://guichet.example", Script: "/c/assets/frame.js", Layout: layout,
		TokenURL: "/embed/chs_1/completion-token", ReceiptURL: "/c/chs_1",
	}
}

// demoLogo is a logo as the registry makes it.
var demoLogo = sync.OnceValue(func() []byte {
	picture := image.NewPaletted(image.Rect(0, 0, 80, 80), color.Palette{color.Transparent, color.NRGBA{R: 10, G: 92, B: 58, A: 255}})
	for y := range 80 {
		for x := range 80 {
			if dx, dy := x-40, y-40; dx*dx+dy*dy < 1600 {
				picture.SetColorIndex(x, y, 1)
			}
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // to memory
	return b.Bytes()
})

// everything returns a View with every field set, also those of other states.
func everything(state page.State, lang money.Language) page.View {
	xaf, _ := money.Lookup("XAF")
	now := time.Date(2026, 11, 1, 14, 27, 22, 0, time.UTC)
	v := page.View{
		Lang: lang, State: state, Test: true,
		Agency: "Direction générale des impôts", Service: "Contribution de la patente", Description: "Patente 2026",
		Logo: demoLogo(), Counters: []string{"Hall d’accueil", "Annexe de Talangaï"},
		Contact: page.Contact{
			Address: "Avenue de l’Indépendance, Brazzaville", Phone: "+242 22 000 00 00", Email: "contact@impots.example", Hours: "du lundi au vendredi, de 8 h à 15 h",
		},
		PaymentRef: "4821093377150264", Currency: xaf, Due: 5000, Fee: 75, Total: 5075,
		Offers: []page.Offer{
			{ID: "momo", Kind: page.KindMobileMoney, Fee: 75, FeeKnown: true},
			{ID: "momo_b", Kind: page.KindMobileMoney, Fee: 75, FeeKnown: true},
			{ID: "card", Kind: page.KindCard, FeeKnown: true},
			{ID: "cash_agency", Kind: page.KindCash},
			{ID: "bank_transfer", Kind: page.KindTransfer, FeeKnown: true},
		},
		Offer: "momo", Kind: page.KindMobileMoney, Phone: "06 600 00 01", Payer: "+242066000001",
		Transfer: page.Transfer{Holder: "Trésor public, régie des impôts", Bank: "Banque d’essai du Congo", IBAN: "CG3930011000101013451300019"},
		PayURL:   "https://pay.example/p/4821093377150264", NoticeURL: "/c/chs_1/notice?lang=fr",
		Hidden: []page.Field{{Name: "attempt", Value: "01K9"}},
		Send:   &page.Send{Action: "/c/chs_1/send", Payer: true},
		Now:    now, WindowEnds: now.Add(4*time.Minute + 37*time.Second), USSD: "*105#", ExpiresAt: now.Add(24 * time.Hour),
		Version: "7", LiveURL: "/c/chs_1/live", FailureCode: "collect.approval_timeout",
		Receipt: page.Receipt{NoticeRef: "AV20260000012345", OperatorRef: "23503452", PaidAt: now, Links: []page.ReceiptLink{{URL: "/c/chs_1/receipt", Name: "AV20260000012345"}}},
		Action:  "/c/chs_1/next", CancelAction: "/c/chs_1/cancel", SelfURL: "/c/chs_1?lang=fr",
		CancelFields: []page.Field{{Name: "step", Value: "offers"}},
		Refresh:      page.Refresh{After: 5 * time.Second, URL: "/c/chs_1?lang=fr&reloads=1#status"},
		BackURL:      "/c/chs_1?step=phone", OffersURL: "/c/chs_1?step=offers", LanguageURL: "/c/chs_1?lang=en",
		SuccessURL: successURL, CancelURL: cancelURL,
	}
	switch state {
	case page.StateReload: // occurs only in a frame
		v.Embed = inFrame("compact")
	case page.StateUnknown, page.StateUnavailable:
		v.Test = false
	default:
	}
	return v
}

// otherwiseSeen are the pages that are also viewed on paper or in the reader's own colours.
// All are also viewed with large text, in French.
var otherwiseSeen = map[page.State]string{
	page.StateCash: "print", page.StateTransfer: "print", page.StateCompleted: "print", page.StateChoose: "forced", page.StateReview: "forced", page.StateWaiting: "forced",
}

// hostedTours returns all different hosted pages.
func hostedTours(t *testing.T, r *page.Renderer) (out []tour) {
	t.Helper()
	header := http.Header{}
	for _, h := range page.Headers() {
		header.Set(h.Name, h.Value)
	}
	same := map[string]bool{}
	for _, l := range looks {
		for _, state := range page.States {
			if len(l.states) > 0 && !slices.Contains(l.states, state) {
				continue
			}
			for _, lang := range money.Languages {
				if l.french && lang != money.French {
					continue
				}
				content := everything(state, lang)
				l.change(&content)
				var b bytes.Buffer
				if err := r.Render(&b, content); err != nil {
					t.Fatalf("%s %s: %v", state, l.name, err)
				}
				if same[b.String()] {
					continue
				}
				same[b.String()] = true
				name := string(state)
				if l.name != "" {
					name += "." + l.name
				}
				widths := l.widths
				if widths == nil {
					widths = auditWidths
				}
				v := view{
					name: name + "-" + string(lang), widths: widths, pictured: slices.Contains(l.pictured, state),
					page: &answered{header, b.Bytes()},
				}
				seen := tour{v}
				if media := otherwiseSeen[state]; media != "" && l.name == "" {
					seen = append(seen, v.in(media))
				}
				if lang == money.French && (l.name == "" || l.name == "long" || l.name == "compact") {
					big := v.in(large)
					big.pictured = l.name == "" && (state == page.StateReview || state == page.StateCash || state == page.StateCompleted)
					seen = append(seen, big)
				}
				out = append(out, seen)
			}
		}
	}
	return out
}
