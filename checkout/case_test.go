package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
)

const (
	late      = checkout.EventLatePayment
	completed = checkout.EventCompleted
	failed    = checkout.EventFailed
	returned  = checkout.EventReversed
	opened    = checkout.EventCaseOpened
	resolved  = checkout.EventCaseResolved

	mismatched   = checkout.EventCollectionMismatched
	orphaned     = checkout.EventCollectionOrphaned
	contradicted = checkout.EventCollectionContradicted
	unreadable   = checkout.EventCollectionUnreadable
	reopened     = checkout.EventCollectionReopened
)

// openCase is the one open case of a session.
func (w *world) openCase(id string) checkout.Case {
	w.t.Helper()
	var open []checkout.Case
	for _, c := range w.sessions[id].Cases {
		if c.Open() {
			open = append(open, c)
		}
	}
	if len(open) != 1 {
		w.t.Fatalf("%s has open cases %+v, want one", id, open)
	}
	return open[0]
}

func (w *world) resolve(id, caseID string, r casework.Resolution) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, Do: checkout.Resolve{CaseID: caseID, Resolution: r, Reference: "ref", Reason: "reason", By: "staff one", ApprovedBy: "staff two"}})
}

// lateMoney makes the session with an approval after its window.
func (w *world) lateMoney(id, order string) {
	w.t.Helper()
	w.create(id, order)
	w.collect(id)
	w.advance(window)
	w.outcome(id, approved())
}

func (w *world) reported(id string, amount int64, currency string) {
	w.t.Helper()
	o := approved()
	o.Amount, o.Currency = amount, currency
	w.outcome(id, o)
}

// types are what an event log holds.
type types = []checkout.EventType

// caseTable is what is done, and what becomes of the session a.
var caseTable = []struct {
	name   string
	do     func(w *world)
	status checkout.Status
	paid   bool
	events types
}{
	{"a late payment is honoured: the session is completed, the order is paid", func(w *world) {
		w.lateMoney("a", "o")
		wantCode(w.t, w.create("b", "o"), checkout.CodeOrderUnderReview)
		c := w.openCase("a")
		if c.Kind != checkout.CaseLatePayment || c.Amount != 5075 || c.Currency != "XAF" {
			w.t.Errorf("the case is %+v", c)
		}
		w.advance(48 * time.Hour)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionHonour), checkout.CodeOK)
		wantReplay(w.t, w.resolve("a", c.ID, checkout.ResolutionHonour), checkout.CodeOK)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeCaseClosed)
		s := w.sessions["a"]
		if !s.Late || s.FailureCode != "" || !s.EndedAt.Equal(w.now) || !s.Collection.DecidedAt.Equal(w.now.Add(-48*time.Hour)) {
			w.t.Errorf("honoured as %+v with %+v", s, s.Collection)
		}
		wantCode(w.t, w.create("c", "o"), checkout.CodeOrderPaid)
	}, checkout.StatusCompleted, true, types{requested, failed, late, resolved, completed}},
	{"a late payment is refunded: the order is free", func(w *world) {
		w.lateMoney("a", "o")
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
		e := w.events[len(w.events)-1]
		if e.Detail[checkout.DetailWasCompleted] != "false" || e.Detail[checkout.DetailOrderPaid] != "false" || e.Detail[checkout.DetailReason] != "refunded" || e.Session.ReversalRef != "ref" {
			w.t.Errorf("reversed as %v", e.Detail)
		}
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, failed, late, resolved, returned}},
	{"a late payment is written off: the order is free, nobody is told of money given back", func(w *world) {
		w.lateMoney("a", "o")
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, casework.ResolutionWriteOff), checkout.CodeOK)
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, failed, late, resolved}},
	{"honouring cancels an open session of the order that waits for no money", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(window)
		w.create("b", "o")
		w.outcome("a", approved())
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
		w.want("b", checkout.StatusCancelled, created, checkout.EventCancelled)
	}, checkout.StatusCompleted, true, types{requested, failed, late, resolved, completed}},
	{"honouring is refused while another session of the order collects", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(window)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		w.create("b", "o")
		w.collect("b")
		w.outcome("a", approved())
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeInFlight)
		w.outcome("b", approved())
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOrderPaid)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
		if e := w.events[len(w.events)-1]; e.Detail[checkout.DetailOrderPaid] != "true" {
			w.t.Errorf("the order is paid by b, and the reversal says %v", e.Detail)
		}
	}, checkout.StatusFailed, false, types{requested, failed, checkout.EventCollectionRefused, late, resolved, returned}},
	{"more than the total is honoured, the surplus is an orphan", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.reported("a", 6000, "XAF")
		mismatch := w.openCase("a")
		wantCode(w.t, w.resolve("a", mismatch.ID, checkout.ResolutionHonour), checkout.CodeInFlight)
		w.advance(window)
		wantCode(w.t, w.resolve("a", mismatch.ID, checkout.ResolutionHonour), checkout.CodeOK)
		surplus := w.openCase("a")
		if surplus.Kind != checkout.CaseOrphan || surplus.Amount != 925 || surplus.Currency != "XAF" {
			w.t.Errorf("the surplus is %+v", surplus)
		}
		wantCode(w.t, w.resolve("a", surplus.ID, checkout.ResolutionRefund), checkout.CodeOK)
		w.outcome("a", approved()) // the operator corrects itself: the money is there already
		w.reported("a", 6000, "XAF")
	}, checkout.StatusCompleted, true, types{requested, checkout.EventCollectionMismatched, failed, resolved, completed, checkout.EventCollectionOrphaned, resolved}},
	{"less than the total, and another currency, are not honoured", func(w *world) {
		for i, m := range []struct {
			amount   int64
			currency string
		}{{5074, "XAF"}, {6000, "EUR"}, {5075, "EUR"}} {
			id, order := fmt.Sprint("m", i), fmt.Sprint("om", i)
			w.create(id, order)
			w.collect(id)
			w.advance(window)
			w.reported(id, m.amount, m.currency)
			wantCode(w.t, w.resolve(id, w.openCase(id).ID, checkout.ResolutionHonour), checkout.CodeCaseNotAllowed)
			wantCode(w.t, w.resolve(id, w.openCase(id).ID, checkout.ResolutionRefund), checkout.CodeOK)
			wantCode(w.t, w.create("n"+id, order), checkout.CodeOK)
		}
		w.create("a", "o")
	}, checkout.StatusOpen, false, nil},
	// It had two cases, and both could be refunded.
	{"late money that is refused afterwards is one case, and is given back once", func(w *world) {
		w.lateMoney("a", "o")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, Amount: 9000, Currency: "XAF"})
		c := w.openCase("a")
		if c.Kind != checkout.CaseLatePayment || !c.Contradicted {
			w.t.Errorf("the case is %+v", c)
		}
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeOK)
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, failed, late, contradicted, resolved, returned}},
	{"a refusal after a completion is no money to honour", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.outcome("a", approved())
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, Amount: 9000, Currency: "XAF"})
		w.outcome("a", approved()) // a delayed repeat is no news
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeCaseNotAllowed)
	}, checkout.StatusCompleted, true, types{requested, completed, mismatched}},
	// Reports after the first were swallowed.
	{"an approval of more than before is a surplus, which a further report replaces", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.outcome("a", approved())
		w.reported("a", 50750, "XAF")
		if c := w.openCase("a"); !c.Surplus() || c.Amount != 45675 {
			w.t.Errorf("the surplus is %+v", c)
		}
		w.reported("a", 6000, "XAF")
		w.reported("a", 50750, "XAF") // a delayed repeat is no news
		if c := w.openCase("a"); !c.Surplus() || c.Amount != 925 {
			w.t.Errorf("the surplus is %+v", c)
		}
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
		w.reported("a", 7000, "XAF") // 925 of it are given back
		if c := w.openCase("a"); !c.Surplus() || c.Amount != 1000 {
			w.t.Errorf("the surplus is %+v", c)
		}
	}, checkout.StatusCompleted, true, types{requested, completed, orphaned, resolved, orphaned, resolved, orphaned}},
	{"an approval of less than before is a notice, no other money", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.outcome("a", approved())
		w.reported("a", 50, "XAF")
		c := w.openCase("a")
		if !c.Notice() || c.Reported() || c.Amount != 50 {
			w.t.Errorf("the case is %+v", c)
		}
		w.reported("a", 5075, "EUR")
		c = w.openCase("a")
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionHonour), checkout.CodeCaseNotAllowed)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionAskAgain), checkout.CodeCaseNotAllowed)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeOK)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused}) // it is given back
	}, checkout.StatusCompleted, false, types{requested, completed, mismatched, resolved, mismatched, resolved, returned}},
	{"a mismatch is replaced by another one, and contradicted by a refusal", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(window)
		w.reported("a", 1, "XAF")
		w.reported("a", 50750, "XAF")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		c := w.openCase("a")
		if c.Kind != checkout.CaseMismatch || c.Amount != 50750 || c.Expected != 5075 || !c.Contradicted {
			w.t.Errorf("the case is %+v", c)
		}
		wantCode(w.t, w.create("b", "o"), checkout.CodeOrderUnderReview)
		wantCode(w.t, w.resolve("a", c.ID, casework.ResolutionWriteOff), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, failed, mismatched, resolved, mismatched, contradicted, resolved}},
	// It was a mismatch of 0, which nobody could honour, and nobody asked again after the end.
	{"an approval without a readable amount is asked on, and is a case when the session ends", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.reported("a", 0, "XAF")
		w.reported("a", 5075, "")
		w.advance(window)
		c := w.openCase("a")
		if c.Kind != checkout.CaseUndecided || !c.AmountUnknown || c.Amount != 0 || c.Expected != 5075 || w.sessions["a"].FailureCode != checkout.FailureOperatorError {
			w.t.Errorf("the case is %+v of %+v", c, w.sessions["a"])
		}
		asked := len(w.requests)
		w.advance(48 * time.Hour)
		if len(w.requests) == asked {
			w.t.Error("nobody asks any more")
		}
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
		wantCode(w.t, w.collect("b"), checkout.CodePreviousUndecided)
		w.outcome("a", approved())
		if c := w.openCase("a"); c.Kind != checkout.CaseLatePayment {
			w.t.Errorf("then %+v", c)
		}
	}, checkout.StatusFailed, false, types{requested, unreadable, failed, opened, resolved, late}},
	{"an unreadable approval that is refused afterwards blocks the order until a person decides", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.reported("a", 0, "")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		c := w.openCase("a")
		if !c.AmountUnknown || !c.Contradicted {
			w.t.Errorf("the case is %+v", c)
		}
		w.create("b", "o")
		wantCode(w.t, w.collect("b"), checkout.CodePreviousUndecided)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRefused), checkout.CodeOK)
		wantCode(w.t, w.collect("b"), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, unreadable, failed, opened, contradicted, resolved, checkout.EventCollectionRefused}},
	{"staff have the operator asked again: at once, and there is a case again after a day of silence", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(window)
		w.reported("a", 50, "XAF")
		asked := len(w.requests)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionAskAgain), checkout.CodeOK)
		if len(w.requests) != asked+1 {
			w.t.Errorf("%d enquiries, want one", len(w.requests)-asked)
		}
		w.create("b", "o")
		wantCode(w.t, w.collect("b"), checkout.CodePreviousUndecided)
		w.advance(24*time.Hour - time.Millisecond)
		w.cancel("b")
		if n := len(w.sessions["a"].Cases); n != 1 {
			w.t.Errorf("%d cases before a day is over", n)
		}
		w.advance(time.Millisecond)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionAskAgain), checkout.CodeOK)
		w.reported("a", 50, "XAF") // the answer that it had given before is an answer again
		if c := w.openCase("a"); c.Kind != checkout.CaseMismatch {
			w.t.Errorf("then %+v", c)
		}
	}, checkout.StatusFailed, false, types{requested, failed, mismatched, resolved, reopened, opened, resolved, reopened, mismatched}},
	{"an orphan that is reported again with another amount is one sum", func(w *world) {
		w.create("a", "o")
		for _, amount := range []int64{100, 100, 200, 100} {
			o := approved()
			o.CollectionID, o.Amount = "nobody's", amount
			w.outcome("a", o)
		}
		if c := w.openCase("a"); c.Amount != 200 || c.Proven {
			w.t.Errorf("the case is %+v", c)
		}
	}, checkout.StatusOpen, false, types{orphaned, resolved, orphaned}},
	// It stayed paid: no checkout.reversed, and no negative receipt.
	{"a completed payment that is refused afterwards is given back by a refund", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.outcome("a", approved())
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
	}, checkout.StatusCompleted, false, types{requested, completed, checkout.EventCollectionMismatched, resolved, returned}},
	{"undecided for a day: a case, once; the operator's word closes it", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(5*time.Minute + 24*time.Hour - time.Millisecond)
		if len(w.sessions["a"].Cases) != 0 {
			w.t.Error("a case before its time")
		}
		w.advance(time.Millisecond)
		c := w.openCase("a")
		if c.Kind != checkout.CaseUndecided || c.Amount != 5075 {
			w.t.Errorf("the case is %+v", c)
		}
		w.advance(28 * 24 * time.Hour)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionApproved), checkout.CodeCaseClosed)
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, failed, opened, resolved, checkout.EventCollectionRefused}},
	{"undecided is decided by hand: approved is a late payment, held even where the policy honours", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(25 * time.Hour)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, casework.ResolutionWriteOff), checkout.CodeCaseNotAllowed)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionApproved), checkout.CodeOK)
		if c := w.openCase("a"); c.Kind != checkout.CaseLatePayment {
			w.t.Errorf("then %+v", c)
		}
	}, checkout.StatusFailed, false, types{requested, failed, opened, resolved, late}},
	{"undecided is decided by hand: refused frees the order", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(25 * time.Hour)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefused), checkout.CodeOK)
		w.create("b", "o")
		wantCode(w.t, w.collect("b"), checkout.CodeOK)
	}, checkout.StatusFailed, false, types{requested, failed, opened, resolved, checkout.EventCollectionRefused}},
	{"an exact report after another amount replaces that case: one sum, one case", func(w *world) {
		w.create("a", "o")
		w.collect("a")
		w.advance(window)
		w.reported("a", 50, "XAF")
		w.reported("a", 5075, "XAF")
		if c := w.openCase("a"); c.Kind != checkout.CaseLatePayment {
			w.t.Errorf("the case is %+v", c)
		}
	}, checkout.StatusFailed, false, types{requested, failed, checkout.EventCollectionMismatched, resolved, late}},
	{"staff ask for a refund of a completed payment, and record it", func(w *world) {
		w.create("a", "o")
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff one", Reason: "wrong taxpayer"}}), checkout.CodeNotCompleted)
		w.collect("a")
		w.outcome("a", approved())
		a := w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff one", Reason: "wrong taxpayer"}})
		wantCode(w.t, a, checkout.CodeOK)
		wantReplay(w.t, w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff two", Reason: "again"}}), checkout.CodeOK)
		wantCode(w.t, w.create("b", "o"), checkout.CodeOrderPaid)
		if a.CaseID != w.openCase("a").ID {
			w.t.Errorf("told %s, is %s", a.CaseID, w.openCase("a").ID)
		}
		wantCode(w.t, w.resolve("a", a.CaseID, checkout.ResolutionHonour), checkout.CodeCaseNotAllowed)
		wantCode(w.t, w.resolve("a", a.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
		if e := w.events[len(w.events)-1]; e.Detail[checkout.DetailWasCompleted] != "true" {
			w.t.Errorf("reversed as %v", e.Detail)
		}
		wantCode(w.t, w.create("c", "o"), checkout.CodeOK)
	}, checkout.StatusCompleted, false, types{requested, completed, opened, resolved, returned}},
	{"the refund of a payment that the ERP knows is a case for a person", func(w *world) {
		s := draft("a", "o")
		s.Metadata = map[string]string{checkout.MetadataERPDueRef: "due-1"}
		w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
		w.collect("a")
		w.outcome("a", approved())
		a := w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff one", Reason: "charge-back"}})
		w.resolve("a", a.CaseID, checkout.ResolutionRefund)
		c := w.openCase("a")
		if c.Kind != checkout.CaseReversal {
			w.t.Errorf("the case is %+v", c)
		}
		wantCode(w.t, w.resolve("a", c.ID, casework.ResolutionAcknowledge), checkout.CodeOK)
	}, checkout.StatusCompleted, false, types{requested, completed, opened, resolved, returned, opened, resolved}},
	{"an unknown case, and another application's session", func(w *world) {
		w.lateMoney("a", "o")
		wantCode(w.t, w.resolve("a", "case_x", checkout.ResolutionRefund), checkout.CodeCaseNotFound)
		wantCode(w.t, w.resolve("none", "case_x", checkout.ResolutionRefund), checkout.CodeSessionNotFound)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, "something else"), checkout.CodeCaseNotAllowed)
	}, checkout.StatusFailed, false, types{requested, failed, late}},
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, row := range caseTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			row.do(w)
			w.want("a", row.status, append(types{created}, row.events...)...)
			if s := w.sessions["a"]; s.Paid() != row.paid {
				t.Errorf("paid %v, want %v", s.Paid(), row.paid)
			}
		})
	}
}

// An agency that honours late payments does so only where nothing is in doubt.
func TestPolicyHonoursLatePayments(t *testing.T) {
	t.Parallel()
	honoured := func(w *world, id string) bool {
		o := approved()
		o.HonourLate, o.ApprovedAt = true, w.now
		w.outcome(id, o)
		return w.sessions[id].Paid()
	}
	undated := func(w *world, id string) bool {
		o := approved()
		o.HonourLate = true
		w.outcome(id, o)
		return w.sessions[id].Paid()
	}
	begin := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t)
		w.create("a", "o")
		w.collect("a")
		return w
	}
	for name, c := range map[string]struct {
		do   func(w *world) bool
		want bool
	}{
		"timed out":  {func(w *world) bool { w.advance(window); return honoured(w, "a") }, true},
		"after 24 h": {func(w *world) bool { w.advance(window + 24*time.Hour); return honoured(w, "a") }, true},
		"after more": {func(w *world) bool { w.advance(window + 24*time.Hour + time.Second); return honoured(w, "a") }, false},
		"cancelled":  {func(w *world) bool { w.cancel("a"); return honoured(w, "a") }, false},
		"refused before": {func(w *world) bool {
			w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
			return honoured(w, "a")
		}, false},
		"another session is open": {func(w *world) bool { w.advance(window); w.create("b", "o"); return honoured(w, "a") }, false},
		"another sum of the order is held": {func(w *world) bool {
			w.advance(window)
			w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
			w.create("b", "o")
			w.collect("b")
			w.advance(window)
			w.reported("a", 5075, "XAF")
			return honoured(w, "b")
		}, false},
		"no date, and no policy":   {func(w *world) bool { w.advance(window); w.reported("a", 5075, "XAF"); return w.sessions["a"].Paid() }, false},
		"no date, within the hour": {func(w *world) bool { w.advance(window + time.Hour); return undated(w, "a") }, true},
		"no date, after the hour": {func(w *world) bool {
			w.advance(window + time.Hour + time.Millisecond)
			return undated(w, "a")
		}, false},
		// An acquirer's date of 1970 passed for in time.
		"an absurd date, after the hour": {func(w *world) bool {
			w.advance(window + 2*time.Hour)
			o := approved()
			o.HonourLate, o.ApprovedAt = true, time.Unix(0, 0).UTC()
			w.outcome("a", o)
			return w.sessions["a"].Paid()
		}, false},
		// Staff had given the reported sum back, and the operator then corrected its report.
		"another sum of the session was given back": {func(w *world) bool {
			w.reported("a", 6000, "XAF")
			w.advance(window)
			w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund)
			return honoured(w, "a")
		}, false},
		// A clerk's cash of the same session was in a case of its own, which blocks the order.
		"cash of the session is a case": {func(w *world) bool {
			w.withCash("b", "cash")
			w.desk("c01").reserve("b", "k1")
			w.advance(counterWindow)
			w.collect("b")
			wantCode(w.t, w.desk("c01").take("b", "k1"), checkout.CodeCase)
			w.advance(window)
			return honoured(w, "b")
		}, false},
		"its only report was corrected": {func(w *world) bool {
			w.reported("a", 6000, "XAF")
			w.advance(window)
			return honoured(w, "a")
		}, true},
		"dated in time, told late": {func(w *world) bool {
			w.advance(window)
			at := w.now
			w.advance(72 * time.Hour)
			o := approved()
			o.HonourLate, o.ApprovedAt = true, at
			w.outcome("a", o)
			return w.sessions["a"].Paid()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := begin(t)
			if got := c.do(w); got != c.want {
				t.Errorf("paid %v, want %v", got, c.want)
			}
			if s := w.sessions["a"]; s.Collection.Status == checkout.CollectionApproved && !s.Paid() {
				w.openCase("a") // held
			}
		})
	}
}

// Reversed cash was "paid" everywhere, and nobody was told.
func TestReversedCashIsNotPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	w.desk("c01").reserve("a", "k1")
	w.desk("c01").take("a", "k1")
	wantCode(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
	s := w.sessions["a"]
	if s.Paid() || s.Status != checkout.StatusCompleted || s.ReversalReason != checkout.ReversalCashReturned || !s.ReversedAt.Equal(w.now) {
		t.Errorf("the session is %+v", s)
	}
	if last := w.events[len(w.events)-1]; last.Type != returned || !last.Type.Webhook() || last.Detail[checkout.DetailWasCompleted] != "true" {
		t.Errorf("the last event is %+v", last)
	}
	wantCode(t, w.create("b", "o"), checkout.CodeOK)
}

// Cash beside another payment could not be given back on record.
func TestCashBesideAnotherPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	w.desk("c01").reserve("a", "k1")
	w.advance(counterWindow)
	w.collect("a")
	w.outcome("a", approved())
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeCase)
	wantCode(t, w.desk("c01").reverse("a", "k1"), checkout.CodeSecondPerson)
	wantCode(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
	wantReplay(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
	if s := w.sessions["a"]; !s.Paid() || s.Cases[0].Resolution != checkout.ResolutionCashReturned {
		t.Errorf("paid %v, case %+v", s.Paid(), s.Cases[0])
	}
	// Staff have refunded other such cash: a clerk cannot give it back again.
	wantCode(t, w.desk("c01").take("a", "k2"), checkout.CodeCase)
	wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
	wantCode(t, w.desk("c02").reverse("a", "k2"), checkout.CodeCaseClosed)
	// The day after is too late for a clerk.
	wantCode(t, w.desk("c01").take("a", "k3"), checkout.CodeCase)
	w.advance(24 * time.Hour)
	wantCode(t, w.desk("c02").reverse("a", "k3"), checkout.CodeReversalLate)
}

// A desk confirmed the same cash in two sessions of the order, and it counted twice.
func TestCashOfAnotherSessionOfTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	w.desk("c01").reserve("a", "k1")
	w.desk("c01").take("a", "k1")
	wantCode(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
	w.withCash("b", "o")
	wantCode(t, w.desk("c01").take("b", "k1"), checkout.CodeTakenElsewhere)
	w.want("b", checkout.StatusOpen, created)
	wantCode(t, w.desk("c01").take("b", "k2"), checkout.CodeOK)
}

func TestTokensEndWithAReversal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "o")
	s.ClientSecretHash = []byte("secret")
	w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
	w.collect("a")
	w.outcome("a", approved())
	issue := func(hash string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: "a", Do: checkout.IssueToken{Hash: []byte(hash), ClientSecretHash: []byte("secret"), Lifetime: time.Hour}})
	}
	consume := func(hash string) checkout.Answer {
		return w.ask(checkout.Command{ApplicationID: app, Do: checkout.ConsumeToken{Hash: []byte(hash)}})
	}
	wantCode(t, issue("used"), checkout.CodeOK)
	wantCode(t, issue("unused"), checkout.CodeOK)
	wantCode(t, consume("used"), checkout.CodeOK)
	a := w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff", Reason: "r"}})
	w.resolve("a", a.CaseID, checkout.ResolutionRefund)
	wantCode(t, consume("used"), checkout.CodeTokenConsumed)
	wantCode(t, consume("unused"), checkout.CodeTokenExpired)
	wantCode(t, issue("another"), checkout.CodeNotCompleted)
}

// resolveSome adds what staff do to a random history.
func resolveSome(t *rapid.T, w *world, id string, send func(*rapid.T, checkout.Command)) {
	s := w.sessions[id]
	if len(s.Cases) == 0 || rapid.IntRange(0, 3).Draw(t, "opens") == 0 {
		send(t, checkout.Command{SessionID: id, Do: checkout.OpenRefundRequest{By: "staff", Reason: "r"}})
		return
	}
	c := rapid.SampledFrom(s.Cases).Draw(t, "case")
	r := rapid.SampledFrom([]casework.Resolution{
		checkout.ResolutionHonour, checkout.ResolutionHonour, checkout.ResolutionRefund, checkout.ResolutionApproved, checkout.ResolutionRefused, checkout.ResolutionAskAgain,
		casework.ResolutionWriteOff, casework.ResolutionAcknowledge, checkout.ResolutionRetry, checkout.ResolutionRecordedByHand,
	}).Draw(t, "resolution")
	send(t, checkout.Command{SessionID: id, Do: checkout.Resolve{CaseID: c.ID, Resolution: r, Reference: "ref", By: "staff one", ApprovedBy: "staff two"}})
}

// caseInvariants: no order stays blocked without an open case, each case has one exit, and
// no sum is counted twice.
func caseInvariants(t *rapid.T, w *world) {
	for k, o := range w.orders {
		for _, id := range o.Late {
			s, open := w.sessions[id], 0
			for _, c := range s.Cases {
				if c.Open() {
					open++
				}
			}
			if open == 0 {
				t.Fatalf("order %s is blocked by %s, which has no open case: %+v", k.OrderID, id, s.Cases)
			}
		}
		for _, id := range o.Undecided {
			if _, ok := w.sessions[id].Deadline(); !ok {
				t.Fatalf("order %s waits for %s, which nobody asks about", k.OrderID, id)
			}
		}
		if id := o.PaidSessionID; id != "" && !w.sessions[id].Paid() {
			t.Fatalf("order %s is paid by %s, which is not paid", k.OrderID, id)
		}
	}
	exits, reversals := map[string]int{}, map[string]int{}
	for _, e := range w.events {
		if e.Type == resolved {
			id := e.Detail[checkout.DetailCaseID]
			if exits[id]++; exits[id] > 1 {
				t.Fatalf("case %s has two exits", id)
			}
		}
		if e.Type == returned {
			if reversals[e.SessionID]++; reversals[e.SessionID] > 1 || e.Session.Paid() {
				t.Fatalf("%s is reversed %d times, paid %v", e.SessionID, reversals[e.SessionID], e.Session.Paid())
			}
		}
	}
	for id, s := range w.sessions {
		open, ids := 0, map[string]bool{}
		for _, c := range s.Cases {
			if ids[c.ID] {
				t.Fatalf("%s has case %s twice", id, c.ID)
			}
			ids[c.ID] = true
			if c.Open() != (exits[c.ID] == 0) {
				t.Fatalf("case %s is open %v after %d exits", c.ID, c.Open(), exits[c.ID])
			}
			// Money that is booked as paid, or was given back, is in no open case.
			if c.Open() && c.Kind == checkout.CaseLatePayment {
				open++
				if s.Paid() || !s.ReversedAt.IsZero() {
					t.Fatalf("%s is paid %v, reversed %v, and has the open case %+v", id, s.Paid(), s.ReversedAt, c)
				}
			}
		}
		if open > 1 {
			t.Fatalf("the late money of %s is in %d open cases", id, open)
		}
		approved := s.Collection != nil && s.Collection.Status == checkout.CollectionApproved
		if approved && !s.Paid() && s.ReversedAt.IsZero() && open == 0 && !writtenOff(s) {
			t.Fatalf("the money of %s is nowhere: %+v", id, s)
		}
	}
}

func writtenOff(s checkout.Session) bool {
	for _, c := range s.Cases {
		if c.Kind == checkout.CaseLatePayment && c.Resolution == casework.ResolutionWriteOff {
			return true
		}
	}
	return false
}

// resolveAll closes every case, and then no order is blocked.
func resolveAll(t *rapid.T, w *world) {
	for id, s := range w.sessions {
		for _, c := range s.Cases {
			if !c.Open() {
				continue
			}
			r := casework.ResolutionWriteOff
			switch c.Kind {
			case checkout.CaseUndecided:
				r = checkout.ResolutionRefused
			case checkout.CaseRefundRequest, checkout.CaseReversal:
				r = casework.ResolutionAcknowledge
			case checkout.CaseConfirmation:
				r = rapid.SampledFrom([]casework.Resolution{checkout.ResolutionRetry, checkout.ResolutionRecordedByHand}).Draw(t, "erp")
			case checkout.CaseLatePayment, checkout.CaseMismatch, checkout.CaseOrphan:
			}
			w.decide(checkout.Command{SessionID: id, Do: checkout.Resolve{CaseID: c.ID, Resolution: r, By: "staff one", ApprovedBy: "staff two"}})
		}
	}
	for k, o := range w.orders {
		if len(o.Late) > 0 {
			t.Fatalf("order %s is blocked by %v although every case is closed", k.OrderID, o.Late)
		}
	}
}

// Sessions kept contact data, secrets and offers for ever, and the state grew with them.
func TestArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "o")
	s.Customer, s.CustomerID, s.Description, s.Note = &checkout.Customer{Name: "n", Phone: "p"}, "c", "d", "note"
	s.CustomerSealed = []byte("sealed")
	s.ClientSecretHash, s.ClientSecretSealed, s.SuccessURL, s.CancelURL = []byte("h"), []byte("s"), "https://a.example", "https://b.example"
	s.Metadata = map[string]string{"case": "7"}
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
	w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
	w.cancel("a")
	w.advance(30*24*time.Hour - time.Millisecond)
	w.want("a", checkout.StatusCancelled, created, checkout.EventCancelled)
	w.advance(time.Millisecond)
	w.want("a", checkout.StatusCancelled, created, checkout.EventCancelled, checkout.EventArchived)
	got := w.sessions["a"]
	if got.HoldsPersonalData() || got.Customer != nil || got.CustomerID+got.Description+got.Note+got.SuccessURL+got.CancelURL != "" || got.ClientSecretHash != nil || got.ClientSecretSealed != nil || got.Offers != nil {
		t.Errorf("the archived session has %+v", got)
	}
	if got.Amount != 5000 || got.PaymentRef != "ref-a" || got.Metadata["case"] != "7" {
		t.Errorf("the archived session lost %+v", got)
	}
	if at, ok := got.Deadline(); ok {
		t.Errorf("it has a deadline at %s", at)
	}
	// Cash is never refused for being late.
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeOK)
	if c := w.openCase("a"); c.Kind != checkout.CaseLatePayment || c.Amount != 5050 {
		t.Errorf("the cash is %+v", c)
	}
	wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
	if s := w.sessions["a"]; !s.Paid() || s.Collection.Fee != 50 {
		t.Errorf("honoured as %+v", s)
	}
}

// Somebody asks for erasure before the 30 days are over. Links, offers and the secret stay,
// because the citizen's page needs them.
func TestErased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "o")
	s.CustomerSealed, s.CustomerID, s.Description, s.Note, s.SuccessURL, s.ClientSecretHash = []byte("sealed"), "c", "d", "note", "https://a.example", []byte("h")
	w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
	erase := func() checkout.Answer {
		return w.ask(checkout.Command{SessionID: "a", Do: checkout.Erase{By: "officer"}})
	}
	wantCode(t, erase(), checkout.CodeSessionOpen)
	w.ask(checkout.Command{SessionID: "a", Do: collection("c1")})
	wantCode(t, erase(), checkout.CodeSessionOpen)
	w.cancel("a")
	if a := erase(); a.Code != checkout.CodeOK || a.Replayed {
		t.Errorf("answered %+v", a)
	}
	got := w.sessions["a"]
	if got.HoldsPersonalData() || got.SuccessURL == "" || got.ClientSecretHash == nil || len(got.Offers) == 0 || got.Amount != 5000 || got.Collection.Status != checkout.CollectionUndecided {
		t.Errorf("the session is %+v", got)
	}
	if a := erase(); a.Code != checkout.CodeOK || !a.Replayed || w.sessions["a"].Sequence != got.Sequence {
		t.Errorf("again: %+v", a)
	}
	// The operator's answer still counts.
	w.ask(checkout.Command{SessionID: "a", Do: checkout.Outcome{CollectionID: "c1", Source: checkout.SourceEnquiry, Status: checkout.OutcomeApproved, Amount: 5075, Currency: "XAF"}})
	if c := w.openCase("a"); c.Kind != checkout.CaseLatePayment {
		t.Errorf("the late money is %+v", c)
	}
	wantCode(t, w.ask(checkout.Command{SessionID: "none", Do: checkout.Erase{By: "officer"}}), checkout.CodeSessionNotFound)
}
