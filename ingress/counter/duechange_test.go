package counter_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"quittance/checkout"
)

// cart makes a session of the citizen portal.
func (w *world) cart(refs ...string) checkout.Session {
	w.T.Helper()
	return w.create(w.erp.Cart(w.Now(), refs...))
}

// A clerk looks a payment up whose due has changed since the citizen made it. The payment is
// cancelled, and the clerk takes no cash.
func TestDueChangesBeforeTheReservation(t *testing.T) {
	t.Parallel()
	w := serve(t)
	changed, gone := w.cart("TP-1001-A", "TP-1001-C"), w.cart("TP-1002-A")
	w.erp.Control(`{"change": {"TP-1001-C": {"outstanding_minor": 10000}, "TP-1002-A": null}}`)
	w.want(w.reserve(c01, changed), http.StatusConflict, "counter.due_changed")
	w.want(w.reserve(c01, changed), http.StatusConflict, "checkout.session_ended")
	if s := w.Session(changed.ID); s.Status != checkout.StatusCancelled || s.CancelledBy != checkout.ByDueChange || s.Collection != nil {
		t.Errorf("%s by %q", s.Status, s.CancelledBy)
	}
	b := w.signedIn(c01)
	b.post("/look-up", "payment_ref", gone.PaymentRef).want(http.StatusConflict, "La somme due a changé", "n’acceptez pas d’espèces", "Le citoyen en fait un nouveau")
	english := w.cart("TP-1002-B")
	w.erp.Control(`{"change": {"TP-1002-B": {"outstanding_minor": 0}}}`)
	b.get("/counter?lang=en").post("/look-up", "payment_ref", english.PaymentRef).want(http.StatusConflict, "The due has changed", "take no cash")
}

// While the ERP does not answer, what it said at most 15 minutes ago counts. Later the clerk
// tries again.
func TestERPIsAwayBeforeTheReservation(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s, second := w.cart("TP-1001-A"), w.cart("TP-1002-A")
	w.erp.Control(`{"away": true}`)
	w.Change(func() { w.Time = w.Time.Add(15 * time.Minute) })
	w.held(c01, s)
	w.Change(func() { w.Time = w.Time.Add(time.Second) })
	a := w.want(w.reserve(c01, second), http.StatusServiceUnavailable, "counter.erp_unavailable")
	if after, err := strconv.Atoi(a.header.Get("Retry-After")); err != nil || after < 1 {
		t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
	}
	w.signedIn(c01).post("/look-up", "payment_ref", second.PaymentRef).want(http.StatusServiceUnavailable, "Le système de l’administration ne répond pas", "n’acceptez pas d’espèces")
	if now := w.Session(second.ID); now.Status != checkout.StatusOpen || now.Collection != nil {
		t.Errorf("%s, %+v", now.Status, now.Collection)
	}
	w.erp.Control(`{"away": false}`)
	w.held(c01, second)
}

// Cash for a reserved session counts, whatever the ERP says meanwhile: the agency has the money.
func TestDueChangesDuringTheReservation(t *testing.T) {
	t.Parallel()
	w := serve(t)
	s := w.cart("TP-1001-A")
	id := w.held(c01, s)
	w.erp.Control(`{"change": {"TP-1001-A": null}}`)
	if a := w.want(w.reserve(c01, s), http.StatusOK, ""); a.text("collection_id") != id {
		t.Errorf("the same look-up answers %s", a.raw)
	}
	w.want(w.reserve(c02, s), http.StatusConflict, "counter.reserved")
	total := w.Session(s.ID).Collection.Amount
	a := w.want(w.call(c01, http.MethodPost, "/payments", object{"payment_ref": s.PaymentRef, "collection_id": id, "total": total}), http.StatusOK, "")
	if a.text("status") != "completed" {
		t.Errorf("taken as %s", a.raw)
	}

	// A reservation that begins between the ERP's answer and the cancellation stays.
	w.erp.Control(`{"reset": true}`)
	s = w.cart("TP-1002-A")
	w.erp.Control(`{"change": {"TP-1002-A": null}}`)
	w.Change(func() {
		w.first = checkout.Reserve{CollectionID: "018f0000-0000-7000-8000-00000000c0c0", By: "c02", Window: 10 * time.Minute}
	})
	w.want(w.reserve(c01, s), http.StatusConflict, "counter.reserved")
	if now := w.Session(s.ID); now.Status != checkout.StatusOpen || now.Collection == nil {
		t.Errorf("%s, %+v", now.Status, now.Collection)
	}
}
