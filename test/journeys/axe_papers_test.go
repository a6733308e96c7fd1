package journeys_test

import (
	"bytes"
	"crypto/ed25519"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/paper"
	"quittance/document"
	"quittance/internal/papers"
	"quittance/internal/receipts"
	"quittance/money"
)

// paperAgency is who the papers are of.
func paperAgency() document.Agency {
	return document.Agency{
		Name: "Direction générale des impôts et des domaines", Address: "Avenue de l’Indépendance, BP 181, Brazzaville", Logo: demoLogo(),
		Phone: "+242 22 281 00 00", Email: "contact@impots.example", Hours: "du lundi au vendredi, de 8 h à 15 h",
	}
}

// paperSession is an open session of two dues.
func paperSession() checkout.Session {
	return checkout.Session{
		ID: "chs_1", Amount: 280_000, Currency: "XAF", CitizenID: "1", Status: checkout.StatusOpen, PaymentRef: "4821093377150264",
		CreatedAt: galleryTime, ExpiresAt: galleryTime.Add(90 * 24 * time.Hour),
		Items: []checkout.Item{
			{SubjectRef: "NIU-2026-00004711", Label: "Taxe foncière 2026, parcelle 12 bis, Poto-Poto", ServiceLabel: "Contribution foncière", Amount: 250_000, Outstanding: 250_000, TransactionID: "019ab1c2-0000-7abc-8def-0123456789ab", NoticeRef: "AV20260000012345"},
			{SubjectRef: "NIU-2026-00004711", Label: "Patente 2026", Amount: 30_000, Outstanding: 120_000, TransactionID: "019ab1c2-0000-7abc-8def-0123456789ac", NoticeRef: "AV20260000067890"},
		},
		Offers: []checkout.Offer{
			{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 2_500},
			{ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: 7_500},
			{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash},
		},
	}
}

// paperNotice is the notice of the session.
func paperNotice(t *testing.T, lang money.Language, change func(*checkout.Session)) document.Notice {
	t.Helper()
	s := paperSession()
	change(&s)
	n, err := document.NewNotice(lang, paper.Slip(lang, s, document.Slip{
		Agency: paperAgency(), Taxpayer: document.MaskName("Élise Mbemba"), Base: "https://pay.example",
		Dues: []document.Due{{Original: 250_000, DueOn: galleryTime}, {Original: 150_000, AllowPartial: true, Minimum: 10_000}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// longest has the longest texts and amounts that a session can have.
func longest(s *checkout.Session) {
	for i := range s.Items {
		s.Items[i].Label, s.Items[i].ServiceLabel = strings.Repeat("Régularisation ", 13), strings.Repeat("W", 200)
		s.Items[i].Amount, s.Items[i].Outstanding = 1<<52, 1<<53-1
	}
	s.Amount = 1<<53 - 1 - 2500
}

// papers adds the pages of the papers.
func (g *gallery) papers(t *testing.T, script string) {
	t.Helper()
	sheets, err := papers.NewPages(script)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for _, h := range sheets.Headers() {
		header.Set(h.Name, h.Value)
	}
	add := func(name string, lang money.Language, widths []int, pictured bool, body []byte) {
		v := view{name: name + "-" + string(lang), widths: widths, pictured: pictured, page: &answered{header, body}}
		seen := tour{v}
		if pictured && lang == money.French {
			seen = append(seen, v.in("print"), v.in(large))
		}
		g.tours = append(g.tours, seen)
	}
	for _, lang := range money.Languages {
		links := papers.Links{PDF: "/c/chs_1/notice.pdf", Language: "/c/chs_1/notice?lang=en", Back: "/c/chs_1"}
		notice := func(change func(*checkout.Session)) []byte {
			var b bytes.Buffer
			if err := sheets.Notice(&b, paperNotice(t, lang, change), links); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		add("notice", lang, auditWidths, true, notice(func(s *checkout.Session) { s.Live = true }))
		for _, r := range paperReceipts {
			if r.french && lang != money.French {
				continue
			}
			paper, address := paperReceipt(t, lang, r.change)
			var b bytes.Buffer
			if err := sheets.Receipt(&b, paper, address, links); err != nil {
				t.Fatal(err)
			}
			add(r.name, lang, r.widths, r.pictured, b.Bytes())
		}
		if lang == money.French {
			add("notice.test", lang, []int{320}, false, notice(func(*checkout.Session) {}))
			add("notice.long", lang, []int{320}, false, notice(longest))
		}
	}
}

// paidPaper is a session with what its receipt says beyond it.
type paidPaper struct {
	document.Payment
	Session checkout.Session
}

// paperReceipts are the looks of receipts.
var paperReceipts = []struct {
	name     string
	widths   []int
	french   bool
	pictured bool
	change   func(*paidPaper)
}{
	{"receipt", auditWidths, false, true, func(p *paidPaper) { p.Session.Live = true }},
	{"receipt.reversed", pictureWidths, true, true, func(p *paidPaper) {
		p.Session.ReversedAt, p.Erased = galleryTime.Add(48*time.Hour), true
		p.Session.Items[0].Confirmation.Status = checkout.ConfirmationAwaited
	}},
	{"receipt.long", []int{320}, true, false, func(p *paidPaper) {
		p.Payer = "\u202eمحمد عبد الله 🎉 " + strings.Repeat("W", 500)
		longest(&p.Session)
		p.Issuer = document.Issuer{Title: strings.Repeat("W", 80), Mention: strings.Repeat("Article ", 30), Accountant: strings.Repeat("W", 120)}
	}},
}

// paperReceipt is the receipt of a payment, with the address of its token.
func paperReceipt(t *testing.T, lang money.Language, change func(*paidPaper)) (document.Receipt, string) {
	t.Helper()
	p := paidPaper{Session: paperSession(), Payment: document.Payment{
		Agency: paperAgency(), Payer: "Mbemba Ngouabi, Élise", CheckAddress: "pay.example/q",
		Issuer: document.Issuer{Title: "Quittance", Mention: "Délivrée en application de l’article 412 du code général des impôts.", Accountant: "Le receveur principal des impôts"},
	}}
	p.Session.Status, p.Session.EndedAt = checkout.StatusCompleted, galleryTime
	p.Session.Items = p.Session.Items[:1]
	p.Session.Items[0].Fee = 2_500
	p.Session.Collection = &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Amount: 252_500, Fee: 2_500, OperatorRef: "23503452", DecidedAt: galleryTime}
	change(&p)
	r, err := document.NewReceipt(lang, paper.Payment(lang, p.Session, "", p.Payment))
	if err != nil {
		t.Fatal(err)
	}
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	key, err := receipts.NewKey(p.Session.Live, private.Public().(ed25519.PublicKey), time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := receipts.NewSigner(key, private)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := receipts.NewClaims("pay.example", "impots", p.Session, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return r, receipts.Address("https://pay.example", token)
}
