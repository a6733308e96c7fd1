package checkout_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
)

const partly = checkout.EventPartiallyReversed

// request asks for a refund of some dues of a session.
func (w *world) refundOf(id string, transactions ...string) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, Do: checkout.OpenRefundRequest{By: "staff one", Reason: "r", TransactionIDs: transactions}})
}

// paidCart makes a cart of three dues and pays it: 7,500 and a fee of 75, so that each due is 2,525.
func (w *world) paidCart(id string) {
	w.t.Helper()
	wantCode(w.t, w.make(w.cart(id, "D", "E", "F"), false), checkout.CodeOK)
	w.pay(id)
	if s := w.sessions[id]; !s.Paid() {
		w.t.Fatalf("the cart is %s", s.Status)
	}
}

func (w *world) wantKept(id string, transactions ...string) {
	w.t.Helper()
	var got []string
	for _, due := range w.sessions[id].Kept() {
		got = append(got, due.TransactionID)
	}
	if !slices.Equal(got, transactions) {
		w.t.Errorf("%s keeps the money of %v, want %v", id, got, transactions)
	}
}

// returns are what the events of a session gave back, a text for each.
func (w *world) returns(id string) (out []string) {
	for _, e := range w.events {
		if e.SessionID != id || e.Type != partly && e.Type != returned {
			continue
		}
		var sum int64
		for _, due := range e.Returned() {
			sum += due.Total()
		}
		out = append(out, fmt.Sprint(e.Type, " ", sum, " ", e.Session.Paid()))
	}
	return out
}

// One due of a cart is given back, then another one, then the last. Integrators are told of each,
// and once that nothing is paid any more.
func TestRefundByItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paidCart("a")
	one := w.refundOf("a", "t-a-1")
	wantCode(t, one, checkout.CodeOK)
	if c := w.openCase("a"); c.Amount != 2525 || !slices.Equal(c.TransactionIDs, []string{"t-a-1"}) {
		t.Errorf("the request is %+v", c)
	}
	wantReplay(t, w.refundOf("a", "t-a-1"), checkout.CodeOK)
	wantCode(t, w.refundOf("a", "t-a-1", "t-a"), checkout.CodeRefundRequested)
	wantCode(t, w.refundOf("a"), checkout.CodeRefundRequested)
	wantCode(t, w.refundOf("a", "elsewhere"), checkout.CodeDueUnknown)
	wantCode(t, w.refundOf("a", ""), checkout.CodeDueUnknown)
	other := w.refundOf("a", "t-a-2") // beside the first
	wantCode(t, w.resolve("a", one.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
	w.wantKept("a", "t-a", "t-a-2")
	wantCode(t, w.refundOf("a", "t-a-1"), checkout.CodeDueReturned)
	if s := w.sessions["a"]; !s.Paid() || !s.ReversedAt.IsZero() || w.orders[checkout.OrderKeyOf(s)].PaidSessionID != "a" {
		t.Errorf("after one due: %+v", s)
	}
	wantCode(t, w.resolve("a", other.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
	w.wantKept("a", "t-a")
	rest := w.refundOf("a")
	wantCode(t, w.resolve("a", rest.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
	w.wantKept("a")
	if s := w.sessions["a"]; s.Paid() || s.ReversedAt.IsZero() || w.orders[checkout.OrderKeyOf(s)].PaidSessionID != "" {
		t.Errorf("after all dues: %+v", s)
	}
	want := []string{fmt.Sprint(partly, " 2525 true"), fmt.Sprint(partly, " 2525 true"), fmt.Sprint(returned, " 2525 false")}
	if got := w.returns("a"); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	var told [][]string
	for _, c := range w.sessions["a"].Cases {
		if c.Kind == checkout.CaseReversal {
			told = append(told, c.TransactionIDs)
		}
	}
	if fmt.Sprint(told) != "[[t-a-1] [t-a-2] [t-a]]" {
		t.Errorf("a person tells the ERP of %v", told)
	}
}

// An ERP refuses one due of a cart for good. Its case ends with a refund of that due: the others stay
// paid and confirmed.
func TestRefundOfARefusedConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paidCart("a")
	w.accept("a", 0)
	w.accept("a", 2)
	answer := func(a checkout.ConfirmationAnswer) checkout.Answer {
		w.advance(time.Second)
		return w.ask(checkout.Command{SessionID: "a", Do: checkout.Confirmed{TransactionID: "t-a-1", Answer: a, AnsweredAt: w.now, Reason: "http_422"}})
	}
	wantCode(t, answer(checkout.AnswerRefused), checkout.CodeOK)
	refused := w.openCase("a")
	if refused.Kind != checkout.CaseConfirmation || refused.Amount != 2525 {
		t.Fatalf("the case is %+v", refused)
	}
	// While somebody has asked for its refund, that request is the money's exit.
	request := w.refundOf("a", "t-a-1")
	wantCode(t, w.resolve("a", refused.ID, checkout.ResolutionRefund), checkout.CodeCaseNotAllowed)
	wantCode(t, w.resolve("a", request.CaseID, casework.ResolutionAcknowledge), checkout.CodeOK)
	wantCode(t, w.resolve("a", refused.ID, checkout.ResolutionRefund), checkout.CodeOK)
	w.wantKept("a", "t-a", "t-a-2")
	// The due is claimed until a person has told the ERP, and free then.
	wantClaim(t, w.make(w.cart("b", "E"), false), ofCart, checkout.DueRecording)
	reversal := w.openCase("a")
	if reversal.Kind != checkout.CaseReversal || reversal.Amount != 2525 {
		t.Fatalf("the case is %+v", reversal)
	}
	// A late refusal, and a failure, open nothing any more.
	wantCode(t, answer(checkout.AnswerRefused), checkout.CodeOK)
	w.advance(48 * time.Hour)
	if c := w.openCase("a"); c.ID != reversal.ID {
		t.Errorf("another case: %+v", c)
	}
	wantCode(t, w.resolve("a", reversal.ID, casework.ResolutionAcknowledge), checkout.CodeOK)
	wantCode(t, w.make(w.cart("b", "E"), false), checkout.CodeOK)
	wantClaim(t, w.make(w.cart("c", "D"), false), ofCart, checkout.DueRecording) // paid, and the list is older
	if s := w.sessions["a"]; s.Items[0].Confirmation.Status != checkout.ConfirmationAccepted || s.Items[1].Confirmation.Status != checkout.ConfirmationRecorded {
		t.Errorf("confirmations: %+v", s.Items)
	}
}

// The confirmation of the only due of a payment is refused: the refund reverses the payment.
func TestRefundOfTheOnlyDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.make(w.ministry("a", "D"), false)
	w.pay("a")
	w.advance(time.Second)
	w.ask(checkout.Command{SessionID: "a", Do: checkout.Confirmed{TransactionID: "t-a", Answer: checkout.AnswerRefused, AnsweredAt: w.now, Reason: "http_422"}})
	wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
	if got := w.returns("a"); !slices.Equal(got, []string{fmt.Sprint(returned, " 5075 false")}) {
		t.Errorf("told %q", got)
	}
}

// The operator contradicts its approval of a cart: while that case is open, no due is given back by
// another one, and its refund gives back what is left.
func TestContradictedCart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paidCart("a")
	one := w.refundOf("a", "t-a-1")
	two := w.refundOf("a", "t-a-2")
	wantCode(t, w.resolve("a", one.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
	w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
	wantCode(t, w.resolve("a", two.CaseID, checkout.ResolutionRefund), checkout.CodeCaseNotAllowed)
	for _, c := range w.sessions["a"].Cases {
		if c.Open() && c.Kind == checkout.CaseMismatch {
			wantCode(t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeOK)
		}
	}
	w.wantKept("a")
	if got := w.returns("a"); !slices.Equal(got, []string{fmt.Sprint(partly, " 2525 true"), fmt.Sprint(returned, " 5050 false")}) {
		t.Errorf("told %q", got)
	}
	if c, _ := w.sessions["a"].Case(two.CaseID); c.Resolution != checkout.ResolutionSuperseded {
		t.Errorf("the second request is %+v", c)
	}
}

// Cash of a cart of which a due was given back by staff is not given back by a clerk as a whole.
func TestCashOfAPartlyReversedCart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.cart("a", "D", "E")
	s.Offers = []checkout.Offer{{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash}}
	w.make(s, false)
	w.desk("c01").reserve("a", "k1")
	w.ask(checkout.Command{SessionID: "a", Do: checkout.Take{CollectionID: "k1", By: "c01", Total: 5000, Desk: "Hall"}})
	wantCode(t, w.resolve("a", w.refundOf("a", "t-a-1").CaseID, checkout.ResolutionRefund), checkout.CodeOK)
	wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Reverse{CollectionID: "k1", By: "c02"}}), checkout.CodeCaseClosed)
	w.wantKept("a", "t-a")
}

// refundSome adds a refund of some dues to a random history.
func refundSome(t *rapid.T, w *world, id string) {
	var ids []string
	for _, due := range w.sessions[id].Dues() {
		if rapid.Bool().Draw(t, "with "+due.TransactionID) {
			ids = append(ids, due.TransactionID)
		}
	}
	w.refundOf(id, ids...)
}

// returnInvariants: the money of each due is given back at most once, that of a session never beyond
// what was paid, and checkout.reversed comes once, when nothing is left.
func returnInvariants(t *rapid.T, w *world) {
	back, ended := map[string]bool{}, map[string]bool{}
	for _, e := range w.events {
		if e.Type != partly && e.Type != returned {
			continue
		}
		if ended[e.SessionID] {
			t.Fatalf("%s: %s after it was reversed", e.SessionID, e.Type)
		}
		if len(e.Returned()) == 0 {
			t.Fatalf("%s: %s gives nothing back", e.SessionID, e.Type)
		}
		for _, due := range e.Returned() {
			if back[due.TransactionID] {
				t.Fatalf("%s is given back twice", due.TransactionID)
			}
			back[due.TransactionID] = true
		}
		if ended[e.SessionID] = e.Type == returned; ended[e.SessionID] != (len(e.Session.Kept()) == 0) {
			t.Fatalf("%s: %s, and %d dues are left", e.SessionID, e.Type, len(e.Session.Kept()))
		}
	}
	for id, s := range w.sessions {
		for _, due := range s.Dues() {
			if s.Returned(due).IsZero() == back[due.TransactionID] {
				t.Fatalf("%s says that %s was given back at %s, the events say %v", id, due.TransactionID, s.Returned(due), back[due.TransactionID])
			}
		}
	}
}
