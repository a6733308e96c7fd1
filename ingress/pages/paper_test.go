package pages_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
	"quittance/internal/personal"
)

// A taxpayer prints the notice of an open session from the page of the counter.
func TestNotice(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	w.payer = "Élise Mbemba"
	id := w.create("A-1", func(s *checkout.Session) {
		every(s)
		s.CustomerSealed = []byte(s.ID + "/066000002")
	})
	b := browse(t, server).get("/c/" + id + "?step=cash&offer=cash_agency")
	b.link("Avis de paiement à imprimer").want(200, "Avis de paiement", "Direction générale des impôts", "Avenue de l’Indépendance", reference, "AV20260000012345", "É••• M•••", "5"+narrow+"000"+narrow+"FCFA",
		"MTN Mobile Money", "5"+narrow+"075"+narrow+"FCFA", "Espèces au guichet", "Ne payez à aucun autre numéro.", "Ceci n’est pas un reçu.", "22 novembre 2026 à 10:00", "Partie à remettre au guichet", "TEST")
	b.doesNotSay("Élise", "Mbemba", "internal note", "066000002")
	b.holds(`<svg class="qr"`, `id="print" hidden`)
	if policy := b.answer.Get("Content-Security-Policy"); !strings.Contains(policy, "frame-ancestors 'none'") || policy == page.ContentSecurityPolicy() {
		t.Errorf("the policy of the page is %s", policy)
	}
	b.link("English").want(200, "Payment notice", "This is not a receipt.", "22 November 2026, 10:00").link("Download as PDF")
	pdf := func(name string) []byte {
		t.Helper()
		if b.status != 200 || b.answer.Get("Content-Type") != "application/pdf" || b.answer.Get("Content-Disposition") != `attachment; filename="`+name+`.pdf"` || !strings.HasPrefix(b.html, "%PDF-1.") {
			t.Fatalf("%d %v", b.status, b.answer)
		}
		return []byte(b.html)
	}
	pdf("notice-AV20260000012345")
	french := pdf2(b, id)
	pdf("avis-AV20260000012345")
	if !bytes.Equal(french, pdf2(b, id)) {
		t.Error("the same notice has other bytes")
	}
	b.get("/c/"+id+"/notice").link("Retour").want(200, "Comment voulez-vous payer")

	// An offer without an account or a counter is not on the notice.
	w.Change(func() { delete(w.takes, checkout.OfferCashAgency) })
	b.get("/c/"+id+"/notice").want(200, "MTN Mobile Money").doesNotSay("Espèces")
}

func pdf2(b *browser, id string) []byte {
	return []byte(b.get("/c/" + id + "/notice.pdf").html)
}

// The notice of a cart says what the agency's ERP says of each due; without the ERP it says
// what the session knows.
func TestNoticeOfDues(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", w.erp.Cart(start, "TP-1001-A", "TP-1001-B"))
	b := browse(t, server).get("/c/"+id+"/notice").want(200, "Minimum", "Échéance", "Montant initial")
	b.doesNotSay("pénalités")
	w.erp.Control(`{"away": true}`)
	w.Change(func() { w.Time = w.Time.Add(time.Hour) })
	b.get("/c/"+id+"/notice").want(200, "Avis de paiement")
}

// The notice of a due with penalties says by how much it is above the original amount.
func TestNoticeOfPenalties(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	w.erp.Control(`{"change": {"TP-1001-C": {"outstanding_minor": 18500}}}`)
	id := w.create("A-1", w.erp.Cart(start, "TP-1001-C"))
	b := browse(t, server).get("/c/"+id+"/notice").want(200, "Montant initial 15\u202f000", "Reste dû 18\u202f500", "De plus que le montant initial (pénalités, intérêts) 3\u202f500")
	b.get("/c/"+id+"/notice?lang=en").want(200, "More than the original amount (penalties, interest)", "3,500")
}

// A session that cannot be paid from a notice has none: its own page says why.
func TestNoNotice(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)
	paid := w.create("A-1", nil)
	b.toReview(paid).forward()
	w.outcome(paid, checkout.OutcomeApproved, "")
	cancelled := w.create("A-2", nil)
	w.Do(cancelled, checkout.Cancel{By: checkout.ByIntegrator})
	framed := w.create("A-3", inFrame)
	old := w.create("A-4", nil)
	for _, paper := range []string{"notice", "notice.pdf"} {
		b.get("/c/"+paid+"/"+paper).want(http.StatusConflict, "Paiement réussi")
		b.get("/c/"+cancelled+"/"+paper).want(http.StatusConflict, "Paiement annulé")
		b.get("/c/"+framed+"/"+paper).want(http.StatusConflict, "Comment voulez-vous payer")
		b.get("/c/chs_nobody/"+paper).want(http.StatusNotFound, "Page introuvable")
		// Nobody has the notice by the reference, or in a frame.
		b.get("/p/4821093377150264/" + paper).want(http.StatusNotFound)
	}
	if b.get("/c/" + framed + "?step=cash&offer=cash_agency"); strings.Contains(b.html, "/notice") {
		t.Error("an embedded session has a notice")
	}
	w.Change(func() { w.Time = w.Time.Add(25 * time.Hour) })
	b.get("/c/"+old+"/notice.pdf").want(http.StatusConflict, "Cette demande de paiement a expiré")
}

// Texts of others break neither the page nor the PDF of a notice.
func TestHostileNotice(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	w.payer = "\u202eمحمد 🎉 <script> " + strings.Repeat("W", 500)
	id := w.create("A-1", func(s *checkout.Session) {
		s.Description, s.ServiceLabel = `<script>alert(1)</script>"'&`, strings.Repeat("né\u0301", 160)
		s.OrderID, s.Amount, s.Offers[0].Fee = strings.Repeat("W", 200), 1<<53-1-75, 75
		s.CustomerSealed = []byte(s.ID + "/066000002")
	})
	b := browse(t, server).get("/c/"+id+"/notice").want(200, "<script>alert(1)</script>", "9"+narrow+"007"+narrow+"199"+narrow+"254"+narrow+"740"+narrow+"991"+narrow+"FCFA", "م•••")
	if len(b.root.all("script")) != 1 || strings.Contains(b.html, "\u202e") || strings.Contains(b.html, "WWW•") {
		t.Error("the page has somebody else's markup")
	}
	if b.get("/c/" + id + "/notice.pdf"); b.status != 200 || !strings.HasPrefix(b.html, "%PDF-") {
		t.Errorf("the file is answered %d", b.status)
	}
}

// transactions are the ids of the dues in these tests.
var transactions = []string{"019ab1c2-0000-7abc-8def-0123456789ab", "019ab1c2-0000-7abc-8def-0123456789ac"}

// paidSession is a session that a citizen paid by phone.
func paidSession(t *testing.T, w *world, b *browser, order string, change func(*checkout.Session)) string {
	t.Helper()
	id := w.create(order, func(s *checkout.Session) {
		s.TransactionID, s.CustomerSealed = transactions[0], []byte(s.ID+"/066000002")
		if change != nil {
			change(s)
		}
	})
	b.toReview(id).forward().want(200, "Confirmez sur votre téléphone")
	w.outcome(id, checkout.OutcomeApproved, "")
	return id
}

// file returns the PDF of an address.
func file(b *browser, path, name string) string {
	b.t.Helper()
	if b.get(path); b.status != 200 || b.answer.Get("Content-Type") != "application/pdf" || b.answer.Get("Content-Disposition") != `attachment; filename="`+name+`.pdf"` || !strings.HasPrefix(b.html, "%PDF-1.") {
		b.t.Fatalf("%s: %d %v", path, b.status, b.answer)
	}
	return b.html
}

// Who paid opens the receipt from the page of the payment, and the same bytes again later. What
// becomes of the payment changes the receipt.
func TestReceipt(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	w.payer = "Élise Mbemba"
	b := browse(t, server)
	id := paidSession(t, w, b, "A-1", nil)
	b.get("/c/"+id).link("Reçu à imprimer ou à télécharger").want(200, "Quittance", "Direction générale des impôts", "Élise Mbemba", "Contribution de la patente", "Patente 2026", "A-1", "5"+narrow+"075"+narrow+"FCFA",
		"cinq mille soixante-quinze francs CFA", reference, "AV20260000012345", "23503452", "Article 412 du code.", "Le trésorier-payeur", "TEST", "sans valeur", "pay.example/q", "Transaction "+transactions[0])
	b.holds(`href="https://pay.example/q#eyJ`, `<svg class="qr"`)
	b.doesNotSay("066000002", "internal note", "ANNULÉE", "Duplicata")
	if policy := b.answer.Get("Content-Security-Policy"); policy == page.ContentSecurityPolicy() || b.answer.Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", b.answer)
	}
	b.link("English").want(200, "Paid on", "five thousand and seventy-five CFA francs").link("Back").want(200, "Payment successful")
	first := file(b, "/c/"+id+"/receipt.pdf", "recu-AV20260000012345")
	w.Change(func() { w.Time = w.Time.Add(48 * time.Hour) })
	if file(b, "/c/"+id+"/receipt.pdf?lang=fr&due="+transactions[0], "recu-AV20260000012345") != first {
		t.Error("the same receipt has other bytes later")
	}
	b.get("/c/"+id+"/receipt?due="+transactions[1]).want(404, "Page introuvable")

	// Contact data that cannot be opened now is not left out: it was not erased.
	w.Change(func() { w.unsealed = errors.New("the vault is away") })
	b.get("/c/" + id + "/receipt.pdf").want(503)
	w.Change(func() { w.unsealed = personal.ErrErased })
	b.get("/c/"+id+"/receipt").want(200, "Duplicata").doesNotSay("Élise")
	w.Change(func() { w.unsealed = nil })

	w.Do(id, checkout.Erase{By: "ops"})
	b.get("/c/"+id+"/receipt").want(200, "Duplicata", "Contribution de la patente").doesNotSay("Élise", "Patente 2026")
}

// Before the payment, and of a payment that failed, there is no receipt.
func TestNoReceipt(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)
	open := w.create("A-1", nil)
	refused := w.create("A-2", nil)
	b.toReview(refused).forward()
	w.outcome(refused, checkout.OutcomeRefused, reject)
	for _, paper := range []string{"receipt", "receipt.pdf"} {
		b.get("/c/"+open+"/"+paper).want(http.StatusConflict, "Votre numéro mobile money")
		b.get("/c/"+refused+"/"+paper).want(http.StatusConflict, "Le paiement n’a pas abouti")
		b.get("/c/chs_nobody/"+paper).want(http.StatusNotFound, "Page introuvable")
	}
}

// Each due of a cart has its own receipt.
func TestReceiptsOfACart(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	b := browse(t, server)
	cart := w.erp.Cart(start, "TP-1001-A", "TP-1001-B")
	id := paidSession(t, w, b, "A-1", func(s *checkout.Session) {
		cart(s)
		for i := range s.Items {
			s.Items[i].TransactionID = transactions[i]
		}
	})
	var notices []string
	for i, item := range w.Session(id).Dues() {
		b.get("/c/"+id).link("Reçu à imprimer ou à télécharger\u00a0: "+item.Label+" ("+item.NoticeRef+")").want(200, item.NoticeRef, item.Label, "Transaction "+transactions[i], "Enregistrement en cours")
		notices = append(notices, item.NoticeRef)
		file(b, "/c/"+id+"/receipt.pdf?due="+transactions[i], "recu-"+item.NoticeRef)
	}
	if len(notices) != 2 || notices[0] == notices[1] {
		t.Errorf("receipts of %v", notices)
	}
}

// By reference only the browser that paid gets the receipt, without the payer's name and what a
// slip does not show.
func TestReceiptByReference(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	w.payer = "Élise Mbemba"
	id := w.create("SECRET-ORDER", func(s *checkout.Session) {
		s.PaymentRef, s.TransactionID, s.CustomerSealed = refs[0], transactions[0], []byte(s.ID+"/066000002")
	})
	at := "/p/" + w.Session(id).PaymentRef
	payer, other := anonymous(t, server), anonymous(t, server)
	payer.get(at).forward("phone", "06 600 00 02").forward()
	w.outcome(id, checkout.OutcomeApproved, "")
	payer.get(at).link("Reçu à imprimer ou à télécharger").want(200, "Quittance", "Contribution de la patente", "AV20260000012345").
		doesNotSay("Élise", "SECRET-ORDER", "Patente 2026", id)
	if strings.Contains(payer.html, id) || payer.at.Path != at+"/receipt" {
		t.Error("the receipt leads to the session")
	}
	file(payer, at+"/receipt.pdf", "recu-AV20260000012345")
	for _, paper := range []string{"receipt", "receipt.pdf"} {
		other.get(at + "/" + paper).want(http.StatusConflict).doesNotSay("AV20260000012345")
	}
	if b := other.get(at); strings.Contains(b.html, "/receipt") {
		t.Error("somebody else is led to the receipt")
	}
}
