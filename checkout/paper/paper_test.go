package paper_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/paper"
	"quittance/document"
	"quittance/money"
)

var paidAt = time.Date(2026, 11, 1, 9, 30, 0, 0, time.UTC)

// payment is a session with what its receipt says beyond it.
type payment struct {
	document.Payment
	Session       checkout.Session
	TransactionID string
}

func (p payment) receipt(lang money.Language) (document.Receipt, error) {
	return document.NewReceipt(lang, paper.Payment(lang, p.Session, p.TransactionID, p.Payment))
}

func notice(lang money.Language, s checkout.Session, slip document.Slip) (document.Notice, error) {
	return document.NewNotice(lang, paper.Slip(lang, s, slip))
}

// paid is a completed ministry session that the operator took money for.
func paid() payment {
	return payment{
		Payment: document.Payment{Agency: document.Agency{Name: "Direction générale des impôts"}, Payer: "Élise Mbemba", CheckAddress: "paiement.example.cg/q"},
		Session: checkout.Session{
			Live: true, Status: checkout.StatusCompleted, OrderID: "DOSSIER-7", Amount: 5_000, Currency: "XAF", ServiceLabel: "Vignette", Description: "Véhicule 123 AB 4",
			TransactionID: "019ab1c2-0000-7abc-8def-0123456789ab", NoticeRef: "AV20260000012345", PaymentRef: "4821903344556672", EndedAt: paidAt,
			Collection: &checkout.Collection{
				OfferID: checkout.OfferMomoB, Channel: checkout.ChannelMobileMoney, Status: checkout.CollectionApproved, Amount: 5_100, Fee: 100, OperatorRef: "OP1", DecidedAt: paidAt.Add(time.Minute),
			},
		},
	}
}

// text is everything that a paper says.
func text(t *testing.T, paper any, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("\u00a0", " ", "\u202f", " ").Replace(fmt.Sprintf("%+v", paper))
}

func receipt(t *testing.T, lang money.Language, p payment) (string, document.Receipt) {
	t.Helper()
	r, err := p.receipt(lang)
	return text(t, r, err), r
}

// A receipt of a payment that stands says who paid what, when and how, in both languages.
func TestReceipt(t *testing.T) {
	t.Parallel()
	got, r := receipt(t, money.French, paid())
	for _, want := range []string{
		"Reçu de paiement", "Direction générale des impôts", "Élise Mbemba", "Vignette", "Véhicule 123 AB 4", "DOSSIER-7", "5 000 FCFA", "100 FCFA", "5 100 FCFA",
		"cinq mille cent francs CFA", "1er novembre 2026 à 10:30", "Airtel Money", "OP1", "4821 9033 4455 6672", "AV20260000012345", "paiement.example.cg/q",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the receipt does not say %q: %s", want, got)
		}
	}
	if r.Stamp != "" || r.Mark != "" || len(r.Notes) > 0 || r.Accountant.Value != "" || r.Name != "recu-AV20260000012345" || !r.Date.Equal(paidAt) {
		t.Errorf("receipt: %+v", r)
	}
	english, _ := receipt(t, money.English, paid())
	for _, want := range []string{"Payment receipt", "FCFA 5,100", "five thousand one hundred CFA francs", "1 November 2026, 10:30"} {
		if !strings.Contains(english, want) {
			t.Errorf("the English receipt does not say %q: %s", want, english)
		}
	}
}

// What became of a payment changes what its receipt says, and nothing else does.
func TestStatesOfReceipts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      func(*payment)
		says, lacks []string
	}{
		"reversed": {func(p *payment) { p.Session.ReversedAt = paidAt.Add(48 * time.Hour) }, []string{"ANNULÉE", "annulée le 3 novembre 2026", "ne vaut plus preuve"}, nil},
		"test":     {func(p *payment) { p.Session.Live = false }, []string{"TEST", "sans valeur"}, nil},
		"awaited":  {func(p *payment) { p.Session.Confirmation.Status = checkout.ConfirmationAwaited }, []string{"Enregistrement en cours"}, nil},
		"refused":  {func(p *payment) { p.Session.Confirmation.Status = checkout.ConfirmationRefused }, []string{"Enregistrement en cours"}, nil},
		"accepted": {func(p *payment) { p.Session.Confirmation.Status = checkout.ConfirmationAccepted }, nil, []string{"Enregistrement"}},
		"recorded": {func(p *payment) { p.Session.Confirmation.Status = checkout.ConfirmationRecorded }, nil, []string{"Enregistrement"}},
		"erased":   {func(p *payment) { p.Erased = true }, []string{"Duplicata"}, []string{"Élise"}},
		"issuer": {func(p *payment) {
			p.Issuer = document.Issuer{Title: "Quittance", Mention: "Article 412", Accountant: "Le trésorier-payeur"}
		}, []string{"Quittance", "Article 412", "Le trésorier-payeur"}, []string{"Reçu de paiement"}},
		"cash": {func(p *payment) {
			p.Session.Collection.Channel, p.Session.Collection.OfferID = checkout.ChannelCash, checkout.OfferCashAgency
			p.Session.Collection.Account, p.Session.Collection.Clerk = "Guichet 3", "A. Okemba"
		}, []string{"Espèces au guichet", "Guichet 3", "A. Okemba"}, nil},
		"mobile money with a clerk": {func(p *payment) { p.Session.Collection.Clerk = "A. Okemba" }, nil, []string{"Okemba"}},
		"late":                      {func(p *payment) { p.Session.Late = true }, []string{"10:31"}, []string{"10:30"}},
		"portal":                    {func(p *payment) { p.Session.CitizenID = "1" }, nil, []string{"DOSSIER-7"}},
		"partial": {func(p *payment) {
			p.Session.Items = []checkout.Item{{Label: "Patente", SubjectRef: "NIU-00004711", Amount: 5_000, Outstanding: 9_000, TransactionID: "1", NoticeRef: "AV1", Fee: 0}}
		}, []string{"Paiement partiel", "Patente", "…4711"}, []string{"NIU"}},
		"short reference": {func(p *payment) {
			p.Session.Items = []checkout.Item{{Label: "Patente", SubjectRef: "TP-1001", Amount: 5_000, TransactionID: "1", NoticeRef: "AV1"}}
		}, nil, []string{"1001"}},
	} {
		p := paid()
		c.change(&p)
		got, _ := receipt(t, money.French, p)
		for _, want := range c.says {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the receipt does not say %q: %s", name, want, got)
			}
		}
		for _, not := range c.lacks {
			if strings.Contains(got, not) {
				t.Errorf("%s: the receipt says %q: %s", name, not, got)
			}
		}
	}
}

// Each due of a cart has its receipt, with its part of the fee.
func TestReceiptsOfCart(t *testing.T) {
	t.Parallel()
	p := paid()
	p.Session.Items = []checkout.Item{
		{Label: "Une", Amount: 3_000, Fee: 60, TransactionID: "1", NoticeRef: "AV1"},
		{Label: "Autre", Amount: 2_000, Fee: 40, TransactionID: "2", NoticeRef: "AV2"},
	}
	p.TransactionID = "2"
	got, _ := receipt(t, money.French, p)
	if !strings.Contains(got, "2 040 FCFA") || !strings.Contains(got, "AV2") || strings.Contains(got, "Une") {
		t.Errorf("receipt of the second due: %s", got)
	}
	p.TransactionID = "3"
	if _, err := p.receipt(money.French); !errors.Is(err, document.ErrUnpaid) {
		t.Errorf("a due of nobody: %v", err)
	}
}

// What is not paid has no receipt, what has ended has no notice.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, status := range checkout.Statuses() {
		p := paid()
		p.Session.Status = status
		if _, err := p.receipt(money.French); (err == nil) != (status == checkout.StatusCompleted) {
			t.Errorf("receipt of a session that is %s: %v", status, err)
		}
		if _, err := notice(money.French, p.Session, document.Slip{Agency: p.Agency}); (err == nil) != (status == checkout.StatusOpen) {
			t.Errorf("notice of a session that is %s: %v", status, err)
		}
	}
	p := paid()
	p.Agency.Name = ""
	if _, err := p.receipt(money.French); !errors.Is(err, document.ErrIncomplete) {
		t.Errorf("without a payee: %v", err)
	}
}

// A notice says what to pay, until when and how, and that it is no receipt.
func TestNotice(t *testing.T) {
	t.Parallel()
	s := paid().Session
	s.Status, s.Collection, s.CreatedAt, s.ExpiresAt = checkout.StatusOpen, nil, paidAt, paidAt.Add(90*24*time.Hour)
	s.Offers = []checkout.Offer{{ID: checkout.OfferMomo, Channel: checkout.ChannelMobileMoney, Fee: 100}, {ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash}}
	slip := document.Slip{Agency: paid().Agency, Taxpayer: "É••• M•••", Base: "https://paiement.example.cg", Dues: []document.Due{{Original: 9_000, AllowPartial: true, Minimum: 1_000, DueOn: paidAt}}}
	n, err := notice(money.French, s, slip)
	got := text(t, n, err)
	for _, want := range []string{
		"Avis de paiement", "AV20260000012345", "É••• M•••", "1er novembre 2026", "30 janvier 2027 à 10:30", "9 000 FCFA", "1 000 FCFA", "5 100 FCFA", "MTN Mobile Money", "Espèces au guichet",
		"4821 9033 4455 6672", "Ceci n’est pas un reçu.", "Ne payez à aucun autre numéro.", "Le montant à jour s’affiche au paiement.", "https://paiement.example.cg/p/4821903344556672",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the notice does not say %q: %s", want, got)
		}
	}
	if n.QR != "HTTPS://PAIEMENT.EXAMPLE.CG/P/4821903344556672" {
		t.Errorf("code: %s", n.QR)
	}
	// A whole payment has no minimum, and what is unknown is not shown.
	slip.Dues = []document.Due{{Minimum: 1_000}}
	n, err = notice(money.French, s, slip)
	if err != nil || n.Lines[0].Minimum != "" || n.Lines[0].Original != "" || n.Lines[0].DueOn != "" {
		t.Errorf("lines: %+v, %v", n.Lines, err)
	}
	s.Live = false
	n, err = notice(money.English, s, slip)
	if err != nil || n.Warnings[0] != "TEST notice, without value: pay nothing." || !strings.Contains(n.StubText, "TEST") {
		t.Errorf("a test notice: %+v, %v", n, err)
	}
	again, _ := notice(money.English, s, slip)
	if !reflect.DeepEqual(n, again) {
		t.Error("the same notice says something else")
	}
}

// A notice of a session in a frame would lead to a page that does not pay it.
func TestNoticeOfAFramedSession(t *testing.T) {
	t.Parallel()
	s := paid().Session
	s.Status, s.Mode = checkout.StatusOpen, checkout.ModeEmbedded
	if _, err := notice(money.French, s, document.Slip{Agency: paid().Agency}); !errors.Is(err, document.ErrFramed) {
		t.Errorf("error %v, want ErrFramed", err)
	}
}

// A notice says for every offer how to pay by it.
func TestWaysToPay(t *testing.T) {
	t.Parallel()
	s := paid().Session
	s.Status, s.Offers = checkout.StatusOpen, checkout.Offers
	for _, lang := range money.Languages {
		n, err := notice(lang, s, document.Slip{Agency: paid().Agency})
		if err != nil || len(n.Ways) != len(checkout.Offers) {
			t.Fatalf("ways %+v, %v", n.Ways, err)
		}
		for _, way := range n.Ways {
			if way.Name == "" || way.How == "" {
				t.Errorf("%s: nothing says how to pay by %+v", lang, way)
			}
		}
	}
}
