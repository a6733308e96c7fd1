package checkout_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quittance/checkout"
)

const (
	created   = checkout.EventCreated
	requested = checkout.EventCollectionRequested

	// window is the approval window, and the wait for the answer to the enquiry at
	// its end.
	window = 5*time.Minute + 25*time.Second
)

// stateTable is the table of "States and transitions": what is done, and what becomes of the session.
var stateTable = []struct {
	name   string // the row of "States and transitions", or of decisions
	do     func(w *world)
	status checkout.Status
	events []checkout.EventType
}{
	{"none, POST: open", func(*world) {}, checkout.StatusOpen, nil},
	{"open, payment finishes: completed", func(w *world) {
		w.collect("a")
		w.outcome("a", approved())
	}, checkout.StatusCompleted, []checkout.EventType{requested, checkout.EventCompleted}},
	{
		"open, cancel: cancelled", func(w *world) { wantCode(w.t, w.cancel("a"), checkout.CodeOK) },
		checkout.StatusCancelled,
		[]checkout.EventType{checkout.EventCancelled},
	},
	{
		"open, lifetime ends: expired", func(w *world) { w.advance(24 * time.Hour) },
		checkout.StatusExpired,
		[]checkout.EventType{checkout.EventExpired},
	},
	{
		"open until the lifetime's last millisecond", func(w *world) { w.advance(24*time.Hour - time.Millisecond) },
		checkout.StatusOpen, nil,
	},
	{"open, collect refused: failed", func(w *world) {
		w.collect("a")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed}},
	{"open, approval timeout: failed", func(w *world) {
		w.collect("a")
		w.advance(window)
		if s := w.sessions["a"]; s.FailureCode != checkout.FailureApprovalTimeout || s.Collection.Status != checkout.CollectionUndecided {
			w.t.Errorf("got %s, collection %s", s.FailureCode, s.Collection.Status)
		}
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed}},
	{"terminal, cancel: unchanged, 409", func(w *world) {
		w.cancel("a")
		wantCode(w.t, w.cancel("a"), checkout.CodeSessionEnded)
	}, checkout.StatusCancelled, []checkout.EventType{checkout.EventCancelled}},
	{"§ 6: in flight at the lifetime's end: decided first", func(w *world) {
		w.advance(24*time.Hour - time.Minute)
		w.collect("a")
		w.advance(2 * time.Minute)
		w.outcome("a", approved())
	}, checkout.StatusCompleted, []checkout.EventType{requested, checkout.EventCompleted}},
	{"§ 6: in flight at the lifetime's end: window ends", func(w *world) {
		w.advance(24*time.Hour - time.Minute)
		w.collect("a")
		w.advance(10 * time.Minute)
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed}},
	{"§ 6: pending and ambiguous are no failure", func(w *world) {
		w.collect("a")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomePending})
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeAmbiguous})
	}, checkout.StatusOpen, []checkout.EventType{requested}},
	{"unknown to the operator is no failure while the request may be on its way", func(w *world) {
		w.collect("a")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeUnknown})
	}, checkout.StatusOpen, []checkout.EventType{requested}},
	{"unknown to the operator long after the last moment to send: never sent", func(w *world) {
		w.collect("a")
		w.advance(3*time.Minute + time.Second)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeUnknown})
		if c := w.sessions["a"].FailureCode; c != checkout.FailureOperatorUnavailable {
			w.t.Errorf("failure is %s", c)
		}
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed}},
	{"callback twice: completed once", func(w *world) {
		w.collect("a")
		w.outcome("a", approved())
		wantCode(w.t, w.outcome("a", approved()), checkout.CodeOK)
	}, checkout.StatusCompleted, []checkout.EventType{requested, checkout.EventCompleted}},
	{"another amount never completes, one operator case", func(w *world) {
		w.collect("a")
		o := approved()
		o.Amount = 50
		w.outcome("a", o)
		w.outcome("a", o)
	}, checkout.StatusOpen, []checkout.EventType{requested, checkout.EventCollectionMismatched}},
	{"another currency never completes", func(w *world) {
		w.collect("a")
		o := approved()
		o.Currency = "USD"
		w.outcome("a", o)
	}, checkout.StatusOpen, []checkout.EventType{requested, checkout.EventCollectionMismatched}},
	{"success of an unknown collection: an operator case, never a completion", func(w *world) {
		w.collect("a")
		o := approved()
		o.CollectionID = "other"
		wantCode(w.t, w.outcome("a", o), checkout.CodeSessionNotFound)
	}, checkout.StatusOpen, []checkout.EventType{requested, checkout.EventCollectionOrphaned}},
	{"success after the window: late payment, once", func(w *world) {
		w.collect("a")
		w.advance(6 * time.Minute)
		w.outcome("a", approved())
		w.outcome("a", approved())
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed, checkout.EventLatePayment}},
	{"cancel with a collection in flight, then success: late payment", func(w *world) {
		w.collect("a")
		wantCode(w.t, w.cancel("a"), checkout.CodeOK)
		w.outcome("a", approved())
	}, checkout.StatusCancelled, []checkout.EventType{requested, checkout.EventCancelled, checkout.EventLatePayment}},
	{"refusal after the window: final, the session stays failed as it was", func(w *world) {
		w.collect("a")
		w.advance(6 * time.Minute)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
		if c := w.sessions["a"].FailureCode; c != checkout.FailureApprovalTimeout {
			w.t.Errorf("failure became %s", c)
		}
		if !w.sessions["a"].Collection.NextEnquiryAt.IsZero() {
			w.t.Error("a final collection is still asked about")
		}
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed, checkout.EventCollectionRefused}},
	{"refused first, approved afterwards: the money is not lost", func(w *world) {
		w.collect("a")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
		w.outcome("a", approved())
	}, checkout.StatusFailed, []checkout.EventType{requested, checkout.EventFailed, checkout.EventLatePayment}},
	{"approved first, refused afterwards: stays completed, an operator case", func(w *world) {
		w.collect("a")
		w.outcome("a", approved())
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
	}, checkout.StatusCompleted, []checkout.EventType{requested, checkout.EventCompleted, checkout.EventCollectionMismatched}},
	{"double click: the same collection is one", func(w *world) {
		w.collect("a")
		if a := w.collect("a"); a.Code != checkout.CodeOK || !a.Replayed {
			w.t.Errorf("got %+v", a)
		}
		if len(w.requests) != 1 {
			w.t.Errorf("%d requests to the operator", len(w.requests))
		}
	}, checkout.StatusOpen, []checkout.EventType{requested}},
	{"two tabs: the second offer cannot start", func(w *world) {
		w.collect("a")
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: collection("other")}), checkout.CodeInFlight)
	}, checkout.StatusOpen, []checkout.EventType{requested}},
	{"back button after the end: told so", func(w *world) {
		w.cancel("a")
		wantCode(w.t, w.collect("a"), checkout.CodeSessionEnded)
	}, checkout.StatusCancelled, []checkout.EventType{checkout.EventCancelled}},
	{"a total that is not due and fee is not taken", func(w *world) {
		c := collection("c")
		c.Total = 5000
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: c}), checkout.CodeTotalChanged)
	}, checkout.StatusOpen, nil},
	{"an offer the session does not have", func(w *world) {
		c := collection("c")
		c.OfferID = checkout.OfferCard
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: c}), checkout.CodeOfferUnknown)
	}, checkout.StatusOpen, nil},
	{"paying after the lifetime, before its tick: expired", func(w *world) {
		w.now = w.now.Add(25 * time.Hour)
		wantCode(w.t, w.collect("a"), checkout.CodeSessionEnded)
	}, checkout.StatusExpired, []checkout.EventType{checkout.EventExpired}},
	{"cancelling after the lifetime, before its tick: expired, 409", func(w *world) {
		w.now = w.now.Add(25 * time.Hour)
		wantCode(w.t, w.cancel("a"), checkout.CodeSessionEnded)
	}, checkout.StatusExpired, []checkout.EventType{checkout.EventExpired}},
	{"§ 6: the citizen cannot cancel while a collection is in flight", func(w *world) {
		w.collect("a")
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Cancel{By: checkout.ByCitizen}}), checkout.CodeInFlight)
	}, checkout.StatusOpen, []checkout.EventType{requested}},
	{"the citizen cancels", func(w *world) {
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Cancel{By: checkout.ByCitizen}}), checkout.CodeOK)
	}, checkout.StatusCancelled, []checkout.EventType{checkout.EventCancelled}},
	{"another application's session is unknown", func(w *world) {
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", ApplicationID: "other", Do: checkout.Cancel{}}), checkout.CodeSessionNotFound)
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Live: true, Do: checkout.Cancel{}}), checkout.CodeSessionNotFound)
	}, checkout.StatusOpen, nil},
}

func TestContractStateTable(t *testing.T) {
	t.Parallel()
	for _, row := range stateTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			wantCode(t, w.create("a", "o"), checkout.CodeOK)
			row.do(w)
			w.want("a", row.status, append([]checkout.EventType{created}, row.events...)...)
			s := w.sessions["a"]
			if s.Paid() != (s.Status == checkout.StatusCompleted) {
				t.Error("paid is not completed")
			}
		})
	}
}

func TestOrphanOfNoSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.outcome("unknown", approved())
	wantCode(t, a, checkout.CodeSessionNotFound)
	if len(w.events) != 1 || w.events[0].Type != checkout.EventCollectionOrphaned || w.events[0].Session.ID != "" {
		t.Errorf("events are %+v", w.events)
	}
	w.outcome("unknown", checkout.Outcome{Status: checkout.OutcomeRefused})
	if len(w.events) != 1 {
		t.Error("a refusal of nothing we know is no operator case")
	}
}

func TestOrderRules(t *testing.T) { // docs/design/decisions.md § 1
	t.Parallel()
	w := newWorld(t)
	wantCode(t, w.create("a", "o"), checkout.CodeOK)
	wantCode(t, w.create("b", "o"), checkout.CodeOrderOpen)
	w.cancel("a")
	wantCode(t, w.create("c", "o"), checkout.CodeOK)
	w.collect("c")
	w.outcome("c", approved())
	wantCode(t, w.create("d", "o"), checkout.CodeOrderPaid)
	w.advance(3 * 365 * 24 * time.Hour)
	wantCode(t, w.create("e", "o"), checkout.CodeOrderPaid)

	wantCode(t, w.create("f", "expired"), checkout.CodeOK)
	w.now = w.now.Add(24 * time.Hour) // its tick is late
	wantCode(t, w.create("g", "expired"), checkout.CodeOK)
	w.want("f", checkout.StatusExpired, created, checkout.EventExpired)

	live := draft("live", "o")
	live.Live = true
	a := w.ask(checkout.Command{SessionID: "live", Do: checkout.Create{Session: live, IdempotencyKey: "key-a", BodyHash: []byte("x"), CreationsPerMinute: 9}})
	wantCode(t, a, checkout.CodeOK) // orders and keys are scoped to the mode
}

func TestIdempotencyKey(t *testing.T) { // docs/design/decisions.md § 1
	t.Parallel()
	w := newWorld(t)
	try := func(key, order string, quota int, faults ...checkout.Fault) checkout.Answer {
		s := draft("s-"+key+"-"+order+w.now.Format("150405"), order)
		return w.ask(checkout.Command{SessionID: s.ID, Do: checkout.Create{
			Session: s, IdempotencyKey: key, BodyHash: []byte(order), CreationsPerMinute: quota, Faults: faults,
		}})
	}
	first := try("k", "o", 2)
	again := try("k", "o", 2)
	if again.Code != checkout.CodeOK || !again.Replayed || again.Session.ID != first.Session.ID {
		t.Errorf("replay is %+v", again)
	}
	wantCode(t, try("k", "other", 2), checkout.CodeKeyReused)
	refused := try("k2", "o", 2)
	wantCode(t, refused, checkout.CodeOrderOpen)
	if again := try("k2", "o", 2); refused.Session == nil || refused.Session.ID != first.Session.ID || again.Session == nil || again.Session.ID != first.Session.ID {
		t.Errorf("the session that has the order is %+v, of a replay %+v", refused.Session, again.Session)
	}
	if a := try("k3", "o3", 2); a.Code != checkout.CodeRateLimited || a.RetryAfter != time.Minute {
		t.Errorf("third creation of the minute: %+v", a)
	}
	if a := try("k", "o", 2); a.Code != checkout.CodeOK || !a.Replayed {
		t.Errorf("a replay needs no quota: %+v", a)
	}
	w.now = w.now.Add(time.Minute)
	if a := try("k3", "o3", 2); a.Code != checkout.CodeOK || a.Replayed {
		t.Errorf("a 429 leaves the key unused: %+v", a)
	}
	w.cancel(first.Session.ID)
	if a := try("k2", "o", 2); a.Code != checkout.CodeOrderOpen || !a.Replayed {
		t.Errorf("a 409 is replayed also when the order is free again: %+v", a)
	}
	fault := checkout.Fault{Code: checkout.CodeOriginsRequired, Field: "mode"}
	wantCode(t, try("k4", "o4", 2, fault), checkout.CodeOriginsRequired)
	if a := try("k4", "o4", 2); a.Code != checkout.CodeOriginsRequired || !a.Replayed || len(a.Faults) != 1 {
		t.Errorf("a 422 of configuration is replayed: %+v", a)
	}
	w.now = w.now.Add(30 * 24 * time.Hour)
	if a := try("k4", "o4", 2); a.Code != checkout.CodeOK || a.Replayed {
		t.Errorf("keys are forgotten after 30 days: %+v", a)
	}
}

func TestQuotaIsExactPerMinuteOfTheStamp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	try := func(at time.Time) bool {
		n++
		id := "q" + time.Duration(n).String()
		s := draft(id, id)
		return w.ask(checkout.Command{At: at, SessionID: id, Do: checkout.Create{Session: s, IdempotencyKey: id, CreationsPerMinute: 30}}).Code == checkout.CodeOK
	}
	accepted := map[int64]int{}
	for i := range 300 { // two senders whose clocks differ by 1.5 s
		at := start.Add(time.Duration(i)*time.Second - time.Duration(i%2)*1500*time.Millisecond)
		for range 3 {
			if try(at) {
				accepted[at.Unix()/60]++
			}
		}
	}
	for minute, got := range accepted {
		if got > 30 || got < 30 && minute >= start.Unix()/60 && minute < start.Unix()/60+5 {
			t.Errorf("minute %d: %d accepted", minute-start.Unix()/60, got)
		}
	}
}

// A portal has no keys, so it has no quota. Its idempotency keys are remembered all the same.
func TestPortalSessionsHaveNoQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 100 {
		id := fmt.Sprint("q", i)
		create := checkout.Command{SessionID: id, Do: checkout.Create{Session: w.cart(id, "due-"+id), IdempotencyKey: id}}
		first := w.ask(create)
		if first.Code != checkout.CodeOK || first.QuotaLimit != 0 {
			t.Fatalf("creation %d: %+v", i, first)
		}
		if again := w.ask(create); !again.Replayed || again.Session.ID != id {
			t.Fatalf("creation %d again: %+v", i, again)
		}
	}
	s := draft("m", "m")
	if a := w.ask(checkout.Command{SessionID: "m", Do: checkout.Create{Session: s, IdempotencyKey: "m", CreationsPerMinute: 1}}); a.Code != checkout.CodeOK {
		t.Errorf("an integrator's application: %+v", a)
	}
}

// A refused cart is replayed for a day. A cart that cannot be decided now has the first answer
// of its key, and otherwise leaves the key unused.
func TestKeysOfCarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := 0
	try := func(key, due string, codes ...checkout.Code) checkout.Answer {
		n++
		do := checkout.Create{Session: w.cart(fmt.Sprint("cart-", n), due), IdempotencyKey: key, BodyHash: []byte(due)}
		for _, code := range codes {
			do.Faults = append(do.Faults, checkout.Fault{Code: code, Field: "items.0.erp_due_ref"})
		}
		return w.ask(checkout.Command{SessionID: do.Session.ID, Do: do})
	}
	passing := []checkout.Code{checkout.CodeSourceUnavailable, checkout.CodeValidationFailed, checkout.CodeNoChannel}
	for _, code := range passing {
		wantCode(t, try("k1", "due-a", code), code)
	}
	first := try("k1", "due-a")
	if first.Code != checkout.CodeOK || first.Replayed {
		t.Fatalf("a key that was not used: %+v", first)
	}
	for _, code := range append(passing, checkout.CodeDueChanged) {
		if a := try("k1", "due-a", code); a.Code != checkout.CodeOK || !a.Replayed || a.Session.ID != first.Session.ID {
			t.Errorf("%s: the first answer is not repeated: %+v", code, a)
		}
		wantCode(t, try("k1", "due-b", code), checkout.CodeKeyReused)
	}
	wantCode(t, try("k2", "due-b", checkout.CodeDueChanged), checkout.CodeDueChanged)
	w.now = w.now.Add(24*time.Hour - time.Second)
	if a := try("k2", "due-b"); a.Code != checkout.CodeDueChanged || !a.Replayed {
		t.Errorf("a refusal within a day: %+v", a)
	}
	w.now = w.now.Add(time.Second)
	if a := try("k2", "due-b"); a.Code != checkout.CodeOK || a.Replayed {
		t.Errorf("a refusal after a day: %+v", a)
	}
	if a := try("k1", "due-a"); a.Code != checkout.CodeOK || !a.Replayed {
		t.Errorf("a cart that became a session, after a day: %+v", a)
	}
}

func TestUndecidedCollectionBlocksTheNextUntilFinal(t *testing.T) { // docs/design/decisions.md § 6
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	w.collect("a")
	w.advance(window)
	w.advance(3 * time.Second)
	w.create("b", "o")
	asked := len(w.requests)
	wantCode(t, w.collect("b"), checkout.CodePreviousUndecided)
	if len(w.requests) != asked+1 || w.requests[asked].Kind != checkout.RequestEnquire || w.requests[asked].Session.ID != "a" {
		t.Errorf("the earlier collection was not asked about: %+v", w.requests[asked:])
	}
	wantCode(t, w.collect("b"), checkout.CodePreviousUndecided)
	if len(w.requests) != asked+1 {
		t.Error("an enquiry is not repeated at once")
	}
	w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
	wantCode(t, w.collect("b"), checkout.CodeOK)
	// Both are approved in the end: one completes, the other is a late payment.
	w.outcome("b", approved())
	w.outcome("a", approved())
	w.want("b", checkout.StatusCompleted, created, requested, checkout.EventCompleted)
	w.want("a", checkout.StatusFailed, created, requested, checkout.EventFailed, checkout.EventCollectionRefused, checkout.EventLatePayment)
}

func TestLatePaymentKeepsTheNextFromCollecting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	w.collect("a")
	w.advance(window)
	w.create("b", "o")
	w.outcome("a", approved())
	wantCode(t, w.collect("b"), checkout.CodeOrderUnderReview)
	w.want("b", checkout.StatusOpen, created)
}

func TestEnquirySchedule(t *testing.T) { // 10 s up to 5 min, then 15 min, 1 h, 6 h, 24 h
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	w.collect("a")
	var at []time.Duration
	for range 3 * 24 * 360 {
		n := len(w.requests)
		w.advance(10 * time.Second)
		for range w.requests[n:] {
			at = append(at, w.now.Sub(start))
		}
	}
	want := []time.Duration{}
	for d := 10 * time.Second; d <= 5*time.Minute; d += 10 * time.Second {
		want = append(want, d)
	}
	want = append(want, 15*time.Minute, time.Hour, 6*time.Hour, 24*time.Hour, 48*time.Hour, 72*time.Hour)
	if len(at) != len(want) {
		t.Fatalf("asked at %v,\nwant %v", at, want)
	}
	for i := range at {
		if at[i] != want[i] {
			t.Errorf("enquiry %d after %s, want %s", i+1, at[i], want[i])
		}
	}
}

// A payer approves in the window's last seconds and the callback is lost. The operator is
// asked at the end of the window, and the session waits for the answer.
func TestLastSecondsOfTheWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	w.collect("a")
	w.advance(4*time.Minute + 57*time.Second)
	n := len(w.requests)
	w.advance(3 * time.Second)
	if len(w.requests) != n+1 {
		t.Fatalf("%d enquiries at the end of the window", len(w.requests)-n)
	}
	w.advance(2 * time.Second)
	w.outcome("a", approved())
	w.want("a", checkout.StatusCompleted, created, requested, checkout.EventCompleted)
}

// The operator took another amount. The session never completes, its failure does not
// blame the payer, and its order is not collected again.
func TestMismatchIsMoney(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	w.collect("a")
	o := approved()
	o.Amount = 50
	w.outcome("a", o)
	w.advance(window)
	w.want("a", checkout.StatusFailed, created, requested, checkout.EventCollectionMismatched, checkout.EventFailed)
	if c := w.sessions["a"].FailureCode; c != checkout.FailureOperatorError {
		t.Errorf("failure is %s", c)
	}
	n := len(w.requests)
	w.advance(30 * 24 * time.Hour)
	if len(w.requests) != n {
		t.Error("the operator is still asked what it has said")
	}
	wantCode(t, w.create("b", "o"), checkout.CodeOrderUnderReview)
	w.outcome("a", approved()) // a later report with the right amount
	if got := w.events[len(w.events)-1].Type; got != checkout.EventLatePayment {
		t.Errorf("a later right report is %s", got)
	}
}

// A mismatch after the session's end, followed by a refusal: the order is still not
// collected again.
func TestMismatchAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{true, false} {
		w := newWorld(t)
		w.create("a", "o")
		w.collect("a")
		if ended {
			w.advance(window)
		}
		o := approved()
		o.Amount = 50
		w.outcome("a", o)
		if asks := !w.sessions["a"].Collection.NextEnquiryAt.IsZero(); asks && ended {
			t.Error("the operator is still asked what it has said")
		}
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
		wantCode(t, w.create("b", "o"), checkout.CodeOrderUnderReview)
	}
}

// The clock of one instance is ten minutes ahead. The creations of the others count in
// their own minutes.
func TestQuotaWithAClockFarAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	accepted := 0
	for i := range 100 {
		at := start.Add(time.Duration(i) * 6 * time.Second)
		if i == 0 {
			at = at.Add(10 * time.Minute)
		}
		id := fmt.Sprint("q", i)
		a := w.ask(checkout.Command{At: at, SessionID: id, Do: checkout.Create{Session: draft(id, id), IdempotencyKey: id, CreationsPerMinute: 30}})
		if a.Code == checkout.CodeOK {
			accepted++
		}
	}
	if accepted != 100 {
		t.Errorf("%d of 100 accepted, ten a minute", accepted)
	}
}

func TestUnprovenCallbackOnlyAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	w.collect("a")
	w.now = w.now.Add(time.Second)
	for range 5 { // now, and up to 9.6 s later
		w.decide(checkout.Command{SessionID: "a", Do: checkout.Enquire{CollectionID: "c-a"}})
		w.now = w.now.Add(2400 * time.Millisecond)
	}
	if len(w.requests) != 2 || w.requests[1].Kind != checkout.RequestEnquire {
		t.Errorf("requests are %+v, want one enquiry in 10 s", w.requests)
	}
	w.decide(checkout.Command{SessionID: "a", Do: checkout.Enquire{CollectionID: "forged"}})
	w.decide(checkout.Command{SessionID: "nobody", Do: checkout.Enquire{CollectionID: "c-a"}})
	if len(w.requests) != 2 {
		t.Error("a claim about nothing asks nobody")
	}
	w.want("a", checkout.StatusOpen, created, requested)
}

func TestCompletionToken(t *testing.T) { // docs/design/decisions.md § 4
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "o")
	s.Mode, s.ClientSecretHash = checkout.ModeEmbedded, []byte("secret")
	w.ask(checkout.Command{SessionID: "a", Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 9}})
	issue := func(hash, secret string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: "a", Do: checkout.IssueToken{
			Hash: []byte(hash), ClientSecretHash: []byte(secret), Lifetime: checkout.CompletionTokenLifetime,
		}})
	}
	consume := func(hash string) checkout.Answer {
		return w.ask(checkout.Command{ApplicationID: app, Do: checkout.ConsumeToken{Hash: []byte(hash)}})
	}
	wantCode(t, issue("t", "secret"), checkout.CodeNotCompleted)
	w.collect("a")
	w.outcome("a", approved())
	wantCode(t, issue("t", "wrong"), checkout.CodeSecretRefused)
	wantCode(t, issue("t1", "secret"), checkout.CodeOK)
	wantCode(t, issue("t2", "secret"), checkout.CodeOK)
	wantCode(t, consume("t3"), checkout.CodeTokenNotFound)
	wantCode(t, w.ask(checkout.Command{ApplicationID: "other", Do: checkout.ConsumeToken{Hash: []byte("t1")}}), checkout.CodeTokenNotFound)
	wantCode(t, w.ask(checkout.Command{ApplicationID: app, Live: true, Do: checkout.ConsumeToken{Hash: []byte("t1")}}), checkout.CodeTokenNotFound)
	if a := consume("t1"); a.Code != checkout.CodeOK || a.Replayed || !a.Session.Paid() {
		t.Errorf("first use: %+v", a)
	}
	if a := consume("t1"); a.Code != checkout.CodeOK || !a.Replayed {
		t.Errorf("again while it lives: %+v", a)
	}
	w.advance(10 * time.Minute)
	wantCode(t, consume("t1"), checkout.CodeTokenConsumed)
	wantCode(t, consume("t2"), checkout.CodeTokenExpired)
	wantCode(t, issue("t4", "secret"), checkout.CodeOK) // a page that was in the background
	w.advance(24 * time.Hour)
	wantCode(t, issue("t5", "secret"), checkout.CodeSecretRefused)
}

// A paid session was opened ten thousand times, and each time left a token for thirty days
// and an event for ever.
func TestCompletionTokensAreBounded(t *testing.T) { // docs/design/decisions.md § 4
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"a", "b"} {
		s := draft(id, "o-"+id)
		s.Mode, s.ClientSecretHash = checkout.ModeEmbedded, []byte("secret")
		w.ask(checkout.Command{SessionID: id, Do: checkout.Create{Session: s, IdempotencyKey: "k-" + id, CreationsPerMinute: 9}})
		w.collect(id)
		w.outcome(id, approved())
	}
	issue := func(id, hash string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: id, Do: checkout.IssueToken{
			Hash: []byte(hash), ClientSecretHash: []byte("secret"), Lifetime: checkout.CompletionTokenLifetime,
		}})
	}
	consume := func(hash string) checkout.Answer {
		return w.ask(checkout.Command{ApplicationID: app, Do: checkout.ConsumeToken{Hash: []byte(hash)}})
	}
	wantCode(t, issue("b", "other"), checkout.CodeOK)
	const opened = 10_000
	before := len(w.events)
	for n := range opened {
		hash := fmt.Sprint("t", n)
		wantCode(t, issue("a", hash), checkout.CodeOK)
		if n%1000 == 0 { // the newest is valid however often the page was opened
			if a := consume(hash); a.Code != checkout.CodeOK || a.Replayed {
				t.Fatalf("token %d: %+v", n, a)
			}
		}
	}
	if n := len(w.tokens); n != checkout.MaxTokens+1 {
		t.Errorf("%d tokens are remembered, want %d and that of another session", n, checkout.MaxTokens)
	}
	if n := len(w.events) - before; n > checkout.MaxTokens+opened/1000 {
		t.Errorf("%d events", n)
	}
	oldest := fmt.Sprint("t", opened-checkout.MaxTokens)
	if a := issue("a", oldest); a.Code != checkout.CodeOK || !a.Replayed { // the same command again
		t.Errorf("issued again: %+v", a)
	}
	wantCode(t, consume(fmt.Sprint("t", opened-checkout.MaxTokens-1)), checkout.CodeTokenNotFound)
	for n := opened - checkout.MaxTokens; n < opened; n++ {
		wantCode(t, consume(fmt.Sprint("t", n)), checkout.CodeOK)
	}
	wantCode(t, consume("other"), checkout.CodeOK)
}

// A page asked for the token after the session's lifetime and before its tick, and its
// secret counted as unknown.
func TestSecretOfAnExpiredSession(t *testing.T) { // docs/design/decisions.md § 4
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "o")
	s.Mode, s.ClientSecretHash = checkout.ModeEmbedded, []byte("secret")
	w.ask(checkout.Command{SessionID: "a", Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 9}})
	issue := func(secret string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: "a", Do: checkout.IssueToken{
			Hash: []byte("t"), ClientSecretHash: []byte(secret), Lifetime: checkout.CompletionTokenLifetime,
		}})
	}
	w.now = s.ExpiresAt.Add(time.Hour) // the tick is late
	wantCode(t, issue("wrong"), checkout.CodeSecretRefused)
	wantCode(t, issue("secret"), checkout.CodeNotCompleted)
	w.want("a", checkout.StatusExpired, created, checkout.EventExpired)
	w.advance(10*time.Minute - time.Millisecond)
	wantCode(t, issue("secret"), checkout.CodeNotCompleted)
	w.advance(time.Millisecond)
	wantCode(t, issue("secret"), checkout.CodeSecretRefused)
}

// A visitor handed the integrator's back end the token of a cheaper payment of theirs. The
// back end that did not compare order_id unlocked the dearer case.
func TestCompletionTokenOfAnotherOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := draft("a", "cheap")
	s.Mode, s.ClientSecretHash = checkout.ModeEmbedded, []byte("secret")
	w.ask(checkout.Command{SessionID: "a", Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 9}})
	w.collect("a")
	w.outcome("a", approved())
	wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: checkout.IssueToken{
		Hash: []byte("t"), ClientSecretHash: []byte("secret"), Lifetime: checkout.CompletionTokenLifetime,
	}}), checkout.CodeOK)
	consume := func(order string) checkout.Answer {
		return w.ask(checkout.Command{ApplicationID: app, Do: checkout.ConsumeToken{Hash: []byte("t"), OrderID: order}})
	}
	if a := consume("dear"); a.Code != checkout.CodeTokenNotFound || a.Session != nil {
		t.Errorf("another order: %+v", a)
	}
	if a := consume("cheap"); a.Code != checkout.CodeOK || a.Replayed { // it was not consumed
		t.Errorf("its own order: %+v", a)
	}
	wantCode(t, consume("dear"), checkout.CodeTokenNotFound) // nor does it tell that it was
	w.advance(10 * time.Minute)
	wantCode(t, consume("dear"), checkout.CodeTokenNotFound)
	wantCode(t, consume("cheap"), checkout.CodeTokenConsumed)
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	if _, err := checkout.Decide(newWorld(t), checkout.Command{}); !errors.Is(err, checkout.ErrUnknownCommand) {
		t.Errorf("got %v", err)
	}
}

// The service was away when the approval window ended, and the payer had approved in
// time. The first tick afterwards failed the session and asked only then, so that the
// payment came late and the citizen was refused.
func TestAwayAtTheEndOfTheWindow(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		answer func(w *world)
		status checkout.Status
	}{
		{"approved in time", func(w *world) {
			o := approved()
			o.Source, o.AskedAt = checkout.SourceEnquiry, w.now
			w.outcome("a", o)
		}, checkout.StatusCompleted},
		{"approved, reported after 24 s", func(w *world) {
			w.advance(24 * time.Second)
			w.outcome("a", approved())
		}, checkout.StatusCompleted},
		{"still pending: nothing to wait for", func(w *world) {
			w.outcome("a", checkout.Outcome{Source: checkout.SourceEnquiry, Status: checkout.OutcomePending, AskedAt: w.now})
		}, checkout.StatusFailed},
		{"pending, as answer to an enquiry from before the end", func(w *world) {
			w.outcome("a", checkout.Outcome{Source: checkout.SourceEnquiry, Status: checkout.OutcomePending, AskedAt: start.Add(5*time.Minute - time.Millisecond)})
		}, checkout.StatusOpen},
		{"no answer", func(w *world) { w.advance(25*time.Second - time.Millisecond) }, checkout.StatusOpen},
		{"no answer within 25 s", func(w *world) { w.advance(25 * time.Second) }, checkout.StatusFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.create("a", "o")
			w.collect("a")
			w.now = w.now.Add(2 * time.Hour)
			w.decide(checkout.Command{SessionID: "a", Do: checkout.Tick{}})
			if s := w.sessions["a"]; s.Status != checkout.StatusOpen {
				t.Fatalf("the first tick made it %s", s.Status)
			}
			if n := len(w.requests); n != 2 || w.requests[1].Kind != checkout.RequestEnquire || !w.requests[1].At.Equal(w.now) {
				t.Fatalf("requests %+v, want a collection and an enquiry now", w.requests)
			}
			row.answer(w)
			if s := w.sessions["a"]; s.Status != row.status {
				t.Errorf("the session is %s, want %s", s.Status, row.status)
			}
		})
	}
}

// An acquirer dated an approval 1970, and another one 2262. The journal refused their rows, and the
// matcher stopped.
func TestDatesOfApprovalsAreBounded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		at, want time.Duration // from the request; a date that is dropped is wanted as 0
	}{
		"the operator's own": {time.Minute, time.Minute},
		"a day before":       {-24 * time.Hour, -24 * time.Hour},
		"earlier":            {-24*time.Hour - time.Millisecond, 0},
		"a day after":        {24 * time.Hour, 24 * time.Hour},
		"later":              {24*time.Hour + time.Millisecond, 0},
		"1970":               {time.Unix(0, 0).Sub(start), 0},
		"2262":               {time.Date(2262, 4, 11, 0, 0, 0, 0, time.UTC).Sub(start), 0},
	} {
		w := newWorld(t)
		w.create("a", "o")
		w.collect("a")
		o := approved()
		o.ApprovedAt = w.now.Add(row.at)
		w.outcome("a", o)
		var want time.Time
		if row.want != 0 {
			want = w.now.Add(row.want)
		}
		if got := w.sessions["a"].Collection.ApprovedAt; !got.Equal(want) || w.sessions["a"].Status != checkout.StatusCompleted {
			t.Errorf("%s: approved at %s, want %s", name, got, want)
		}
	}
	for at, kept := range map[time.Duration]bool{-400 * 24 * time.Hour: true, -401 * 24 * time.Hour: false, 25 * time.Hour: false} {
		w := newWorld(t)
		w.create("a", "o")
		o := approved()
		o.CollectionID, o.ApprovedAt = "nobody's", w.now.Add(at)
		w.outcome("a", o)
		if c := w.openCase("a"); c.ApprovedAt.IsZero() == kept {
			t.Errorf("an orphan dated %s from now has the date %s", at, c.ApprovedAt)
		}
	}
}

// A payment of the last evening of the year becomes known on the next day. It belongs to the day on
// which the operator approved it, not to that on which the service learned of it, or staff decided.
func TestPaidAt(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for name, row := range map[string]struct {
		s    checkout.Session
		want time.Time
	}{
		"dated":         {checkout.Session{EndedAt: at(9 * time.Hour), Collection: &checkout.Collection{RequestedAt: start, ApprovedAt: at(time.Minute)}}, at(time.Minute)},
		"undated":       {checkout.Session{EndedAt: at(9 * time.Hour), Collection: &checkout.Collection{RequestedAt: start}}, at(9 * time.Hour)},
		"late, dated":   {checkout.Session{EndedAt: at(50 * time.Hour), Late: true, Collection: &checkout.Collection{RequestedAt: start, ApprovedAt: at(time.Minute), DecidedAt: at(9 * time.Hour)}}, at(time.Minute)},
		"late, undated": {checkout.Session{EndedAt: at(50 * time.Hour), Late: true, Collection: &checkout.Collection{RequestedAt: start, DecidedAt: at(9 * time.Hour)}}, at(9 * time.Hour)},
		// Sessions of earlier releases have dates that nobody bounded.
		"1970":          {checkout.Session{EndedAt: at(time.Hour), Collection: &checkout.Collection{RequestedAt: start, ApprovedAt: time.Unix(0, 0).UTC()}}, at(time.Hour)},
		"far ahead":     {checkout.Session{EndedAt: at(time.Hour), Collection: &checkout.Collection{RequestedAt: start, ApprovedAt: at(26 * time.Hour)}}, at(time.Hour)},
		"nobody asked":  {checkout.Session{EndedAt: at(time.Hour), Late: true, Collection: &checkout.Collection{ApprovedAt: at(-99 * 24 * time.Hour), DecidedAt: start}}, at(-99 * 24 * time.Hour)},
		"no collection": {checkout.Session{EndedAt: at(time.Hour)}, at(time.Hour)},
	} {
		if got := row.s.PaidAt(); !got.Equal(row.want) {
			t.Errorf("%s: paid at %s, want %s", name, got, row.want)
		}
	}
}
