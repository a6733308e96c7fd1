package checkout_test

import (
	"testing"
	"time"

	"quittance/checkout"
)

// byReference begins a payment of somebody who knows the payment reference only.
func (w *world) byReference(id, collectionID string) checkout.Answer {
	w.t.Helper()
	do := collection(collectionID)
	do.ByReference = true
	return w.ask(checkout.Command{SessionID: id, Do: do})
}

// stranger reports money of the payment by reference "stranger".
func (w *world) stranger(id string, amount int64) {
	w.t.Helper()
	o := approved()
	o.CollectionID, o.Amount = "stranger", amount
	w.outcome(id, o)
}

// Whoever knows a reference can begin a payment, also one that its operator refuses. The
// session's payer must still be able to pay.
func TestRefusedPaymentByReference(t *testing.T) {
	t.Parallel()
	requested, refusal := checkout.EventCollectionRequested, checkout.EventCollectionRefused
	for name, c := range map[string]struct {
		do     func(w *world)
		status checkout.Status
		types  []checkout.EventType
	}{
		"the session stays open and is paid": {func(w *world) {
			wantCode(w.t, w.byReference("a", "stranger"), checkout.CodeOK)
			refused := checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused, FailureCode: checkout.FailureWrongPIN}
			w.outcome("a", refused)
			s := w.sessions["a"]
			if s.Collection != nil || len(s.Refusals) != 1 || s.Refusals[0].CollectionID != "stranger" || s.Refusals[0].FailureCode != checkout.FailureWrongPIN || !s.Refusals[0].At.Equal(w.now) {
				w.t.Errorf("after the refusal the session has the collection %+v and the refusals %+v", s.Collection, s.Refusals)
			}
			w.outcome("a", refused) // once more
			if a := w.byReference("a", "stranger"); a.Code != checkout.CodeOK || !a.Replayed || len(w.requests) != 1 {
				w.t.Errorf("the same confirmation again: %+v, %d requests", a, len(w.requests))
			}
			wantCode(w.t, w.collect("a"), checkout.CodeOK)
			w.outcome("a", approved())
		}, checkout.StatusCompleted, []checkout.EventType{requested, refusal, requested, checkout.EventCompleted}},
		"the payer's own refusal ends it": {func(w *world) {
			w.collect("a")
			w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed}},
		"a window without an answer ends nothing": {func(w *world) {
			w.byReference("a", "stranger")
			w.advance(10 * time.Minute)
			if !w.sessions["a"].InFlight() {
				w.t.Error("the operator may still take the money, and nobody waits for it")
			}
			wantCode(w.t, w.collect("a"), checkout.CodeInFlight)
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Source: checkout.SourceEnquiry, Status: checkout.OutcomePending, AskedAt: w.now})
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			wantCode(w.t, w.collect("a"), checkout.CodeOK)
		}, checkout.StatusOpen, []checkout.EventType{requested, refusal, requested}},
		"an answer after the window completes it": {func(w *world) {
			w.byReference("a", "stranger")
			w.advance(40 * time.Minute)
			o := approved()
			o.CollectionID = "stranger"
			w.outcome("a", o)
		}, checkout.StatusCompleted, []checkout.EventType{requested, checkout.EventCompleted}},
		"the lifetime ends without an answer": {func(w *world) {
			w.byReference("a", "stranger")
			w.advance(25 * time.Hour)
			if at := w.sessions["a"].EndedAt; !at.Equal(start.Add(24 * time.Hour)) {
				w.t.Errorf("the session ended at %s", at)
			}
		}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed, checkout.EventCaseOpened}},
		"the lifetime is over at the refusal": {func(w *world) {
			w.advance(24*time.Hour - time.Minute)
			w.byReference("a", "stranger")
			w.now = w.now.Add(2 * time.Minute)
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
		}, checkout.StatusExpired, []checkout.EventType{requested, refusal, checkout.EventExpired}},
		// It was a case that nobody could honour, and the session collected a second time.
		"money after the refusal completes the idle session": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.stranger("a", 5075)
			wantCode(w.t, w.collect("a"), checkout.CodeSessionEnded)
		}, checkout.StatusCompleted, []checkout.EventType{requested, refusal, reopened, checkout.EventCompleted}},
		"money after the refusal and after the session's end is late": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.cancel("a")
			w.stranger("a", 5075)
			wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
		}, checkout.StatusCompleted, []checkout.EventType{requested, refusal, checkout.EventCancelled, reopened, late, resolved, completed}},
		"other money after the refusal blocks the session": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.stranger("a", 50)
			w.stranger("a", 50) // once more
			if c := w.openCase("a"); c.Kind != checkout.CaseOrphan || c.Amount != 50 || c.Expected != 5075 || !c.Proven {
				w.t.Errorf("the money is the case %+v", c)
			}
			wantCode(w.t, w.collect("a"), checkout.CodeOrderUnderReview)
			wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeCaseNotAllowed)
			w.stranger("a", 6000)
			wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
			if c := w.openCase("a"); !c.Surplus() || c.Amount != 925 || !w.sessions["a"].Paid() {
				w.t.Errorf("honoured, paid %v, then %+v", w.sessions["a"].Paid(), c)
			}
		}, checkout.StatusCompleted, []checkout.EventType{requested, refusal, orphaned, resolved, orphaned, resolved, reopened, completed, orphaned}},
		"money after the refusal, beside another payment": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.collect("a")
			w.stranger("a", 5075)
			wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeCaseNotAllowed)
			w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
			wantCode(w.t, w.create("b", "o1"), checkout.CodeOrderUnderReview)
			wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
		}, checkout.StatusCompleted, []checkout.EventType{requested, refusal, requested, orphaned, checkout.EventFailed, resolved, reopened, completed}},
		"refused again after it is a case": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeUnknown})
			w.now = w.now.Add(10 * time.Minute)
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeUnknown})
			w.collect("a")
			w.stranger("a", 5075)
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			if c := w.openCase("a"); !c.Contradicted {
				w.t.Errorf("the case is %+v", c)
			}
		}, checkout.StatusOpen, []checkout.EventType{requested, refusal, requested, orphaned, contradicted}},
		// The first report stayed a case of its own beside the payment.
		"corrected after the end, it is one sum": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.stranger("a", 4000)
			w.stranger("a", 0)
			w.advance(25 * time.Hour)
			w.stranger("a", 5075)
			if c := w.openCase("a"); c.Kind != checkout.CaseLatePayment {
				w.t.Errorf("the money is the case %+v", c)
			}
		}, checkout.StatusExpired, []checkout.EventType{requested, refusal, orphaned, checkout.EventExpired, reopened, resolved, late}},
		"a report that does not fit": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeApproved, Amount: 1, Currency: "XAF"})
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
		}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventCollectionMismatched, contradicted, checkout.EventFailed}},
		"a clerk takes cash after it": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.cancel("a")
		}, checkout.StatusCancelled, []checkout.EventType{requested, refusal, checkout.EventCancelled}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create("a", "o1")
			c.do(w)
			w.want("a", c.status, append([]checkout.EventType{checkout.EventCreated}, c.types...)...)
		})
	}
}

// Each refusal makes a phone ring. After some of them, payments by the reference wait; those
// of the session's own page do not.
func TestPaymentsByReferencePause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o1")
	try := func(id string) checkout.Answer {
		a := w.byReference("a", id)
		if a.Code == checkout.CodeOK {
			w.outcome("a", checkout.Outcome{CollectionID: id, Status: checkout.OutcomeRefused})
		}
		return a
	}
	for n, pause := range []time.Duration{0, 0, 5 * time.Minute, 15 * time.Minute, time.Hour, time.Hour} {
		wantCode(t, try(string(rune('a'+n))), checkout.CodeOK)
		if pause == 0 {
			continue
		}
		if a := try("early"); a.Code != checkout.CodeReferencePaused || a.RetryAfter != pause {
			t.Errorf("after %d refusals: %s, retry after %s, want %s", n+1, a.Code, a.RetryAfter, pause)
		}
		w.now = w.now.Add(pause - time.Millisecond)
		wantCode(t, try("early"), checkout.CodeReferencePaused)
		w.now = w.now.Add(time.Millisecond)
	}
	wantCode(t, try("last"), checkout.CodeOK)
	wantCode(t, try("early"), checkout.CodeReferencePaused)
	wantCode(t, w.collect("a"), checkout.CodeOK) // on the session's own page

	w = newWorld(t)
	s := draft("a", "o1")
	s.ExpiresAt = w.now.Add(90 * 24 * time.Hour)
	w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 9}})
	for _, id := range []string{"a", "b"} {
		try(id)
	}
	w.now = w.now.Add(24 * time.Hour)
	wantCode(t, try("c"), checkout.CodeOK)
	wantCode(t, try("d"), checkout.CodeOK) // a day later the earlier refusals do not count
}
