package journeys_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/document"
	"quittance/checkout/money"
	"quittance/internal/papers"
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
	n, err := document.NewNotice(lang, document.Slip{
		Session: s, Agency: paperAgency(), Taxpayer: document.MaskName("Élise Mbemba"), Base: "https://pay.example",
		Dues: []document.Due{{Original: 250_000, DueOn: galleryTime}, {Original: 150_000, AllowPartial: true, Minimum: 10_000}},
	})
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
		if lang == money.French {
			add("notice.test", lang, []int{320}, false, notice(func(*checkout.Session) {}))
			add("notice.long", lang, []int{320}, false, notice(longest))
		}
	}
}
