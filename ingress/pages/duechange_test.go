package pages_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
)

// cart makes a session of the citizen portal with two dues, 65,000 together.
func (w *world) cart(order string, change func(*checkout.Session)) string {
	w.T.Helper()
	cart := w.erp.Cart(w.Now(), "TP-1001-A", "TP-1001-C")
	return w.create(order, func(s *checkout.Session) {
		cart(s)
		if change != nil {
			change(s)
		}
	})
}

// A cart is shown with its dues and their amounts before and after it is paid. A slip does not
// name them.
func TestACartIsListed(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.cart("A-1", func(s *checkout.Session) { s.PaymentRef, s.NoticeRef = refs[0], "AV20260000099999" })
	labels := []string{w.Session(id).Items[0].Label, w.Session(id).Items[1].Label}
	parts := []string{labels[0], "50\u202f000", labels[1], "15\u202f000"}
	b := browse(t, server).toReview(id).want(http.StatusOK, parts...)
	b.forward()
	w.outcome(id, checkout.OutcomeApproved, "")
	b.get("/c/"+id).want(http.StatusOK, append(parts, "Paiement réussi")...)
	slip := anonymous(t, server).get("/p/"+refs[0]).want(http.StatusOK, "65\u202f")
	if strings.Contains(slip.html, labels[0]) || strings.Contains(slip.html, labels[1]) {
		t.Errorf("the page of the slip names the dues:\n%s", slip.html)
	}
}

// A due that changes between checkout and payment cancels the session, and the page leads to
// the citizen's dues. Nobody is asked for money.
func TestDueChangesBeforeThePayment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ control, back, leads string }{
		"lower, from a portal of the agency's own": {`{"change": {"TP-1001-C": {"outstanding_minor": 10000}}}`, "https://impots.example/dettes", "https://impots.example/dettes"},
		"higher": {`{"change": {"TP-1001-A": {"outstanding_minor": 60000, "original_minor": 60000}}}`, "", "/portal"},
		"paid":   {`{"change": {"TP-1001-A": {"outstanding_minor": 0}}}`, "", "/portal"},
		"gone":   {`{"change": {"TP-1001-C": null}}`, "", "/portal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := serve(t)
			id := w.cart("A-1", func(s *checkout.Session) { s.CancelURL = c.back })
			b := browse(t, server).toReview(id)
			action, sent := b.form(0, nil)
			w.erp.Control(c.control)
			cancelled := func(b *browser) {
				t.Helper()
				b.want(http.StatusOK, "Paiement annulé", "a changé une somme", "Aucune somme n’a été débitée").nothingToPress("Retourner")
				for _, a := range b.root.all("a") {
					if a.text() == "Voir mes sommes dues" && a.attr["href"] == c.leads {
						return
					}
				}
				t.Errorf("no link to %s on\n%s", c.leads, b.html)
			}
			cancelled(b.forward())
			cancelled(b.get("/c/" + id))
			cancelled(b.request(http.MethodPost, action, sent)) // back, and pressed again
			b.link("English").want(http.StatusOK, "Payment cancelled", "has changed an amount", "See my dues")
			if s := w.Session(id); s.Status != checkout.StatusCancelled || s.CancelledBy != checkout.ByDueChange || s.Collection != nil || len(w.collected()) != 0 {
				t.Errorf("%s by %q, asked for %d", s.Status, s.CancelledBy, len(w.collected()))
			}
			w.create("A-2", w.erp.Cart(w.Now(), "TP-1002-B"))
		})
	}
}

// The script of a card payment expects the acquirer's address. Without one it sends the form as
// a browser without scripts does.
func TestDueChangesBeforeAScriptPays(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.cart("A-1", func(s *checkout.Session) {
		s.Offers = []checkout.Offer{{ID: checkout.OfferCard, Channel: checkout.ChannelCard, Fee: 75}}
	})
	b := browse(t, server).get("/c/"+id).want(http.StatusOK, "Vérifiez avant de payer")
	action, sent := b.form(0, nil)
	b.header.Set("Accept", "application/json")
	w.Change(func() { w.Time = w.Time.Add(time.Hour) })
	w.erp.Control(`{"away": true}`)
	b.request(http.MethodPost, action, sent).want(http.StatusServiceUnavailable, "ne répond pas")
	w.erp.Control(`{"away": false, "change": {"TP-1001-A": null}}`)
	b.request(http.MethodPost, action, sent)
	b.header.Del("Accept")
	b.request(http.MethodPost, action, sent).want(http.StatusOK, "Voir mes sommes dues")
	if len(w.collected()) != 0 {
		t.Error("money was asked for")
	}
}

// While the ERP does not answer, what it said at most 15 minutes ago counts. Later the citizen
// tries again, with the same form.
func TestERPIsAwayBeforeThePayment(t *testing.T) {
	t.Parallel()
	for name, control := range map[string]string{"away": `{"away": true}`, "a page": `{"misbehave": ["html"]}`, "an error": `{"status": 500}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, server := serve(t)
			young, old := w.cart("A-1", nil), ""
			w.erp.Control(control)
			w.Change(func() { w.Time = w.Time.Add(15 * time.Minute) })
			browse(t, server).toReview(young).forward().want(http.StatusOK, "Confirmez sur votre téléphone")
			w.outcome(young, checkout.OutcomeRefused, reject)

			w.erp.Control(`{"reset": true}`)
			old = w.cart("A-2", nil)
			w.Change(func() { w.Time = w.Time.Add(15*time.Minute + time.Second) })
			w.erp.Control(control)
			b := browse(t, server).toReview(old)
			b.forward().want(http.StatusServiceUnavailable, "ne répond pas", "Aucune somme n’a été débitée par cette nouvelle confirmation", "Vérifiez avant de payer", "65")
			if b.answer.Get("Retry-After") == "" {
				t.Error("the answer does not say when to try again")
			}
			if s := w.Session(old); s.Status != checkout.StatusOpen || s.Collection != nil {
				t.Errorf("the session is %s", s.Status)
			}
			w.erp.Control(`{"reset": true}`)
			b.forward().want(http.StatusOK, "Confirmez sur votre téléphone")
			if n := len(w.collected()); n != 2 {
				t.Errorf("asked for money %d times, want 2", n)
			}
		})
	}
}

// What is being collected is never cancelled, however late the answer of the ERP: the change is
// then the ERP's own affair.
func TestDueChangesDuringThePayment(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.cart("A-1", nil)
	b := browse(t, server).toReview(id)
	other := browse(t, server).toReview(id)
	w.erp.Control(`{"change": {"TP-1001-A": null}}`)
	// Another tab has asked before the change, and its payment begins between the ERP's answer
	// and the cancellation.
	w.Change(func() {
		w.first = checkout.Collect{CollectionID: "another-tab", OfferID: checkout.OfferMomo, Total: 65_075, ApprovalWindow: 5 * time.Minute, SendWithin: time.Minute}
	})
	b.forward().want(http.StatusOK, "Confirmez sur votre téléphone")
	other.forward().want(http.StatusOK, "Confirmez sur votre téléphone")
	if s := w.Session(id); !s.InFlight() || s.Collection.ID != "another-tab" {
		t.Errorf("%s, %+v", s.Status, s.Collection)
	}
	w.outcome(id, checkout.OutcomeApproved, "")
	b.get("/c/"+id).want(http.StatusOK, "Paiement réussi")

	// The same confirmation again.
	w.erp.Control(`{"reset": true}`)
	id = w.create("A-2", w.erp.Cart(w.Now(), "TP-1002-A"))
	b = browse(t, server).toReview(id)
	action, sent := b.form(0, nil)
	b.forward().want(http.StatusOK, "Confirmez sur votre téléphone")
	w.erp.Control(`{"change": {"TP-1002-A": null}}`)
	b.request(http.MethodPost, action, sent).want(http.StatusOK, "Confirmez sur votre téléphone")
	if s := w.Session(id); !s.InFlight() {
		t.Errorf("%s", s.Status)
	}
}

// A ministry fixes its amounts itself: its sessions are paid without a question.
func TestMinistrySessionsAreNotRechecked(t *testing.T) {
	t.Parallel()
	w, server := serve(t)
	id := w.create("A-1", func(s *checkout.Session) {
		s.ERP, s.Metadata = true, map[string]string{checkout.MetadataERPDueRef: "gone"}
	})
	browse(t, server).toReview(id).forward().want(http.StatusOK, "Confirmez sur votre téléphone")
}

// Somebody who knows the payment reference alone reads the same, and nothing else.
func TestDueChangesBeforeAPaymentByReference(t *testing.T) {
	t.Parallel()
	w, server := serveReferences(t)
	id := w.cart("ORDER-SECRET", func(s *checkout.Session) { s.PaymentRef, s.NoticeRef = refs[0], "AV20260000099999" })
	b := anonymous(t, server).get("/p/"+refs[0]).want(http.StatusOK).discreet(w, id)
	b.forward("phone", "06 600 00 02").want(http.StatusOK, "Vérifiez avant de payer")
	w.erp.Control(`{"change": {"TP-1001-A": null}}`)
	// The due is checked before the total: another total has the same answer.
	action, sent := b.form(0, nil)
	if sent.Get("total") == "" {
		t.Fatal("the review has no total")
	}
	sent.Set("total", "1")
	b.request(http.MethodPost, action, sent).want(http.StatusOK, "Paiement annulé", "a changé une somme", "Aucune somme n’a été débitée").discreet(w, id)
	b.link("English").want(http.StatusOK, "See my dues").holds(`href="/portal"`).discreet(w, id)
	if s := w.Session(id); s.CancelledBy != checkout.ByDueChange || len(w.collected()) != 0 {
		t.Errorf("%s by %q", s.Status, s.CancelledBy)
	}
}
