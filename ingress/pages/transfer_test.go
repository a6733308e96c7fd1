package pages_test

import (
	"testing"
	"time"

	"quittance/checkout"
)

// transferable gives a session that lasts five days a bank transfer beside mobile money.
func transferable(s *checkout.Session) {
	s.ExpiresAt = s.ExpiresAt.Add(96 * time.Hour)
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferBankTransfer, Channel: checkout.ChannelBankTransfer, Fee: 250})
}

// The page shows where to transfer which sum with which text, and loads itself again. After the transfer it is the receipt.
func TestBankTransfer(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", transferable)
	s := w.Session(id)
	b := browse(t, server).get("/c/"+id).want(200, "Virement bancaire", "un à trois jours ouvrés")
	b.forward("offer", checkout.OfferBankTransfer).want(200, "Payez par virement bancaire", "Trésor public", "Banque d’essai", "CG39 3001 1000 1010 1345 1300 019",
		"5"+narrow+"250"+narrow+"FCFA", "4821\u00a00933\u00a07715\u00a00264", "ne payez pas une seconde fois", "Avis de paiement").
		holds(`data-live="/c/` + id + `/live"`)
	if s := w.Session(id); s.Collection != nil || len(w.collected()) > 0 {
		t.Fatalf("money was reserved or asked for: %+v", s.Collection)
	}
	b.link("Changer le moyen de paiement").want(200, "MTN Mobile Money", "Virement bancaire")
	browse(t, server).get("/c/"+id+"/notice?lang=fr").want(200, "Titulaire du compte", "Trésor public", "CG39 3001 1000 1010 1345 1300 019")

	w.Do(id, checkout.Credit{
		CollectionID: "0d5c0f3c-5b0d-4d52-8a3f-0c6a5f3c9d10", AgencyID: tenant, PaymentRef: s.PaymentRef, Amount: 5250, Currency: "XAF", Reference: "BK-1", Account: "banque", BookedAt: w.Time,
	})
	b.get("/c/"+id).want(200, "Paiement réussi")
}

// While people look at a transfer that does not fit, the page says so and offers no second payment.
func TestBankTransferThatDoesNotFit(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", transferable)
	s := w.Session(id)
	w.Do(id, checkout.Credit{
		CollectionID: "0d5c0f3c-5b0d-4d52-8a3f-0c6a5f3c9d11", AgencyID: tenant, PaymentRef: s.PaymentRef, Amount: 5249, Currency: "XAF", Reference: "BK-2", Account: "banque", BookedAt: w.Time,
	})
	b := browse(t, server).get("/c/"+id).want(200, "La banque a enregistré un virement qui ne correspond pas", "L’administration l’examine", "Ne payez pas")
	b.doesNotSay("Virement bancaire", "MTN Mobile Money")
	browse(t, server).get("/c/"+id+"?lang=en").want(200, "The bank has booked a transfer that does not match this request")
}

// A transfer takes days: with less than 72 h left the page offers the other means alone.
func TestBankTransferNeedsTime(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", transferable)
	w.Change(func() { w.Time = w.Time.Add(48*time.Hour + time.Second) })
	b := browse(t, server).get("/c/"+id+"?step=transfer&offer=bank_transfer").want(200, "Votre numéro mobile money")
	b.doesNotSay("irement bancaire")
	browse(t, server).get("/c/"+id+"/notice?lang=fr").want(200, "MTN Mobile Money").doesNotSay("irement")
}

// Somebody who knows the payment reference alone can transfer the money, too.
func TestBankTransferByReference(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.create("A-1", func(s *checkout.Session) {
		transferable(s)
		secretive(refs[0])(s)
	})
	anonymous(t, server).get("/p/"+refs[0]).want(200, "Virement bancaire").forward("offer", checkout.OfferBankTransfer).
		want(200, "Payez par virement bancaire", "Trésor public", "CG39 3001 1000 1010 1345 1300 019").discreet(w, id)
}
