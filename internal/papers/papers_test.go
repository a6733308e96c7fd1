package papers_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
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

const host = "paiement.example.cg"

var paidAt = time.Date(2026, 11, 23, 9, 30, 15, 0, time.UTC)

func emblem(t testing.TB) []byte {
	t.Helper()
	out := image.NewPaletted(image.Rect(0, 0, 80, 80), color.Palette{color.Transparent, color.NRGBA{10, 92, 58, 255}, color.NRGBA{250, 200, 20, 255}})
	for y := range 80 {
		for x := range 80 {
			switch d := (x-40)*(x-40) + (y-40)*(y-40); {
			case d < 300:
				out.SetColorIndex(x, y, 2)
			case d < 1500:
				out.SetColorIndex(x, y, 1)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// shaded is a logo with so many colours and half transparent ones that it has no palette.
func shaded(t testing.TB) []byte {
	t.Helper()
	out := image.NewNRGBA(image.Rect(0, 0, 80, 40))
	for y := range 40 {
		for x := range 80 {
			out.SetNRGBA(x, y, color.NRGBA{R: uint8(3 * x), G: uint8(6 * y), B: 90, A: uint8(255 - 2*x)})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func agency(t testing.TB) document.Agency {
	return document.Agency{
		Name: "Direction générale des impôts et des domaines", Address: "Avenue de l’Indépendance, BP 181, Brazzaville", Logo: emblem(t),
		Phone: "+242 22 281 00 00", Email: "contact@impots.example.cg", Hours: "du lundi au vendredi, 8 h à 15 h",
	}
}

func session() checkout.Session {
	return checkout.Session{
		ID: "chs_1", TenantID: "018f0000-0000-7000-8000-000000000001", Live: true, Amount: 250_000, Currency: "XAF", CitizenID: "1",
		Status: checkout.StatusCompleted, CreatedAt: paidAt.Add(-time.Hour), ExpiresAt: paidAt.Add(90 * 24 * time.Hour), EndedAt: paidAt, PaymentRef: "4821903344556672",
		Items: []checkout.Item{{
			ERPDueRef: "D-1", SubjectRef: "NIU-2026-00004711", Label: "Taxe foncière 2026, parcelle 12 bis, Poto-Poto", ServiceLabel: "Contribution foncière", Amount: 250_000, Outstanding: 250_000,
			TransactionID: "019ab1c2-0000-7abc-8def-0123456789ab", NoticeRef: "AV20260000012345", Confirmation: checkout.Confirmation{Status: checkout.ConfirmationAccepted}, Fee: 2_500,
		}},
		Collection: &checkout.Collection{OfferID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Status: checkout.CollectionApproved, Amount: 252_500, Fee: 2_500, OperatorRef: "23503452", DecidedAt: paidAt},
		Offers: []checkout.Offer{
			{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 2_500},
			{ID: checkout.OfferMomoB, Channel: checkout.ChannelMobileMoney, Fee: 2_500},
			{ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: 7_500},
			{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash},
		},
	}
}

// paid is a session with what its receipt says beyond it.
type paid struct {
	document.Payment
	Session checkout.Session
}

func (p paid) receipt(lang money.Language) (document.Receipt, error) {
	return document.NewReceipt(lang, paper.Payment(lang, p.Session, "", p.Payment))
}

func payment(t testing.TB) paid {
	return paid{document.Payment{Agency: agency(t), Payer: "Mbemba Ngouabi, Élise", CheckAddress: host + "/q"}, session()}
}

// address signs the claims of the payment as the service does.
func address(t testing.TB, s checkout.Session) string {
	t.Helper()
	seed := byte(1)
	if !s.Live {
		seed = 2
	}
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	key, err := receipts.NewKey(s.Live, private.Public().(ed25519.PublicKey), paidAt.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := receipts.NewSigner(key, private)
	if err != nil {
		t.Fatal(err)
	}
	c, err := receipts.NewClaims(host, "impots", s, "")
	if err != nil {
		t.Fatal(err)
	}
	token, err := signer.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return receipts.Address("https://"+host, token)
}

func receipt(t testing.TB, lang money.Language, p paid) []byte {
	t.Helper()
	r, err := p.receipt(lang)
	if err != nil {
		t.Fatal(err)
	}
	pdf, err := papers.ReceiptPDF(r, address(t, p.Session))
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

// open is a session with what its notice says beyond it.
type open struct {
	document.Slip
	Session checkout.Session
}

func (o open) notice(lang money.Language) (document.Notice, error) {
	return document.NewNotice(lang, paper.Slip(lang, o.Session, o.Slip))
}

func slip(t testing.TB) open {
	s := session()
	s.Status, s.EndedAt, s.Collection = checkout.StatusOpen, time.Time{}, nil
	second := s.Items[0]
	second.Label, second.NoticeRef, second.Amount, second.Outstanding = "Patente 2026, boutique du marché Total", "AV20260000067890", 30_000, 120_000
	s.Items, s.Amount = append(s.Items, second), 280_000
	return open{Session: s, Slip: document.Slip{
		Agency: agency(t), Base: "https://" + host,
		Dues: []document.Due{{Original: 250_000, DueOn: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}, {Original: 150_000, AllowPartial: true, Minimum: 10_000}},
	}}
}

func notice(t testing.TB, lang money.Language, in open) []byte {
	t.Helper()
	n, err := in.notice(lang)
	if err != nil {
		t.Fatal(err)
	}
	pdf, err := papers.NoticePDF(n)
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

// samples are papers of all kinds, by name.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	out["receipt-fr"] = receipt(t, money.French, payment(t))
	english := payment(t)
	english.Agency.Logo = shaded(t)
	out["receipt-en"] = receipt(t, money.English, english)

	reversed := payment(t)
	reversed.Session.ReversedAt = paidAt.Add(26 * time.Hour)
	reversed.Erased = true
	out["receipt-reversed"] = receipt(t, money.French, reversed)

	test := payment(t)
	test.Session.Live = false
	test.Session.Items[0].Confirmation.Status = checkout.ConfirmationAwaited
	out["receipt-test"] = receipt(t, money.French, test)

	out["receipt-hostile"] = receipt(t, money.French, hostile(t))

	euro := payment(t)
	euro.Session.Currency, euro.Session.Items[0].Amount, euro.Session.Items[0].Fee, euro.Agency.Logo = "EUR", 1, 0, nil
	out["receipt-cent"] = receipt(t, money.French, euro)

	out["notice-fr"] = notice(t, money.French, slip(t))
	out["notice-en"] = notice(t, money.English, slip(t))
	many := slip(t)
	for i := range 18 {
		item := many.Session.Items[i%2]
		item.Label = fmt.Sprintf("%s, année %d", item.Label, 2000+i)
		many.Session.Items = append(many.Session.Items, item)
	}
	many.Session.Live = false
	out["notice-many"] = notice(t, money.French, many)
	out["notice-hostile"] = notice(t, money.French, hostileSlip(t))
	maps.Copy(out, batchSamples(t))
	return out
}

// hostile is a payment whose texts have everything that could break a layout.
func hostile(t testing.TB) paid {
	p := payment(t)
	p.Payer = "محمد عبد الله \u202eevil\u202c 🎉👨‍👩‍👧 Ɓoŋgo Ndɛ́mbɛ́ Nguyễn Thị Hằng " + strings.Repeat("W", 200) + strings.Repeat(" né\u0301\u0301\u0301\u0301e", 60)
	p.Session.Items[0].Label = strings.Repeat("Cotisation exceptionnelle ", 40)
	p.Session.Items[0].ServiceLabel = "\x00\x1b[31m<script>alert(1)</script>\n\nВторой (\\) \ufeff"
	p.Session.Items[0].Amount, p.Session.Items[0].Outstanding = 1<<53-1, 1<<53
	p.Session.Items[0].Fee = 1 // the total is 2^53
	p.Issuer = document.Issuer{Title: "Quittance du Trésor public", Mention: "Délivrée en application de l’article 412 du code général des impôts. " + strings.Repeat("Mention très longue. ", 30), Accountant: "Le trésorier-payeur général de Brazzaville"}
	p.Session.CitizenID, p.Session.OrderID = "", strings.Repeat("DOSSIER-", 25)
	p.Session.Collection.Channel, p.Session.Collection.OfferID = checkout.ChannelCash, checkout.OfferCashAgency
	p.Session.Collection.Account, p.Session.Collection.Clerk = "Guichet 3, Moungali", "A. Okemba"
	return p
}

// arabic is a name with marks that turn the direction of writing, and with emoji.
const arabic = "محمد عبد الله \u202eevil\u202c \u200f\u2067🎉👨‍👩‍👧\u2069"

// hostileSlip is a slip whose texts and amounts have everything that could break a layout.
func hostileSlip(t testing.TB) open {
	in := slip(t)
	in.Agency.Name = arabic + " Direction " + strings.Repeat("générale ", 60)
	in.Agency.Address, in.Agency.Hours = strings.Repeat("Avenue ", 80), strings.Repeat("W", 500)
	in.Taxpayer = document.MaskName(arabic + strings.Repeat("W", 500))
	in.Session.Items[0].Label, in.Session.Items[0].ServiceLabel = arabic+" Taxe", strings.Repeat("W", 500)
	in.Session.Items[0].Amount, in.Session.Items[0].Outstanding = 1<<53-30_001, 1<<53
	in.Session.Items[1].Label = strings.Repeat("Régularisation ", 40)
	in.Session.Amount = 1<<53 - 1
	in.Session.Offers[0].Fee = 1
	return in
}

// QUITTANCE_PAPERS names a folder into which the samples are written, to look at them.
func TestSamples(t *testing.T) {
	t.Parallel()
	for name, pdf := range samples(t) {
		if !bytes.HasPrefix(pdf, []byte("%PDF-1.")) || len(pdf) < 10_000 || len(pdf) > 120_000 {
			t.Errorf("%s has %d bytes", name, len(pdf))
		}
		if folder := os.Getenv("QUITTANCE_PAPERS"); folder != "" {
			if err := os.WriteFile(filepath.Join(folder, name+".pdf"), pdf, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("%s: %d bytes, %x", name, len(pdf), sha256.Sum256(pdf))
	}
}

func BenchmarkReceipt(b *testing.B) {
	r, err := payment(b).receipt(money.French)
	if err != nil {
		b.Fatal(err)
	}
	at := address(b, session())
	for b.Loop() {
		if _, err := papers.ReceiptPDF(r, at); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNotice(b *testing.B) {
	n, err := slip(b).notice(money.French)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := papers.NoticePDF(n); err != nil {
			b.Fatal(err)
		}
	}
}
