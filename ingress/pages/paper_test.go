package pages_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/checkout/page"
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
	w.erp.Control(`{"away": true}`)
	w.Change(func() { w.Time = w.Time.Add(time.Hour) })
	b.get("/c/"+id+"/notice").want(200, "Avis de paiement")
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
