package checkout_test

import (
	"testing"
	"time"

	"quittance/checkout"
)

// The labels of dues, who owes them and the citizen's account stayed after an erasure, and an
// erasure found nothing to do for a session that had only them.
func TestErasedPortalSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	paid := func(id string) checkout.Session {
		s := w.cart(id, "due-"+id, "second-"+id)
		for i := range s.Items {
			s.Items[i].Label = "Patente of somebody"
		}
		wantCode(t, w.make(s, false), checkout.CodeOK)
		w.pay(id)
		w.accept(id, 0)
		w.accept(id, 1)
		return w.sessions[id]
	}
	erase := func(id string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: id, Do: checkout.Erase{By: "officer"}})
	}
	check := func(s checkout.Session, citizen string) {
		t.Helper()
		if s.CitizenID != citizen || s.HoldsPersonalData() != (citizen != "") || len(s.Items) != 2 {
			t.Errorf("the session is %+v", s)
		}
		for _, item := range s.Items {
			if item.Label != "" || (item.SubjectRef != "") != (citizen != "") || item.ERPDueRef == "" || item.Amount != 2500 || item.TransactionID == "" || item.Confirmation.Status != checkout.ConfirmationAccepted {
				t.Errorf("an item is %+v", item)
			}
		}
	}
	before := paid("a")
	if a := erase("a"); a.Code != checkout.CodeOK || a.Replayed {
		t.Errorf("answered %+v", a)
	}
	check(w.sessions["a"], "")
	if before.Items[0].Label == "" {
		t.Error("the erasure changed a session that somebody else holds")
	}
	if a := erase("a"); !a.Replayed {
		t.Errorf("again: %+v", a)
	}
	// Thirty days after its end a session shows its payment to the citizen's account, and the
	// ERP may be told of it again. Nothing else of the citizen stays.
	paid("b")
	w.advance(30 * 24 * time.Hour)
	if !w.sessions["b"].Archived {
		t.Fatal("it is not archived")
	}
	check(w.sessions["b"], "citizen")
	if a := erase("b"); a.Code != checkout.CodeOK || a.Replayed {
		t.Errorf("answered %+v", a)
	}
	check(w.sessions["b"], "")
}

// Whoever owes a due is named to the ERP, also if the payment is honoured after the archiving,
// and after an erasure while the ERP has not accepted it.
func TestERPIsToldWhoOwes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	subjects := func(id string) string { return w.sessions[id].Items[0].SubjectRef }
	erase := func(id string) { w.ask(checkout.Command{SessionID: id, Do: checkout.Erase{By: "officer"}}) }
	w.make(w.cart("late", "D"), false)
	w.request("late")
	w.advance(40 * 24 * time.Hour)
	w.outcome("late", checkout.Outcome{Status: checkout.OutcomeApproved, Amount: 2575, Currency: "XAF"})
	erase("late")
	for _, c := range w.sessions["late"].Cases {
		if c.Kind == checkout.CaseLatePayment {
			wantCode(t, w.resolve("late", c.ID, checkout.ResolutionHonour), checkout.CodeOK)
		}
	}
	if s := w.sessions["late"]; !s.Paid() || !s.Archived || subjects("late") != "NIU-1" {
		t.Errorf("the session is %+v", s)
	}
	w.make(w.cart("a", "E"), false)
	w.pay("a")
	erase("a")
	if subjects("a") != "NIU-1" || w.sessions["a"].HoldsPersonalData() {
		t.Errorf("before the acceptance: %+v", w.sessions["a"])
	}
	w.accept("a", 0)
	if !w.sessions["a"].HoldsPersonalData() {
		t.Error("a second erasure finds nothing")
	}
	erase("a")
	if subjects("a") != "" {
		t.Errorf("after the acceptance: %+v", w.sessions["a"])
	}
}
