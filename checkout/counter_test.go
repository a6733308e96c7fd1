package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
	"quittance/money/localtime"
)

const (
	released = checkout.EventCollectionReleased
	reversed = checkout.EventCollectionReversed

	// counterWindow is a clerk's time to take the cash, with the grace after its end.
	counterWindow = 10*time.Minute + 5*time.Second
)

// counter has the commands of a clerk.
type counter struct {
	w     *world
	clerk string
}

// withCash makes a session that can also be paid at a counter, for a fee of 50.
func (w *world) withCash(id, order string) {
	w.t.Helper()
	s := draft(id, order)
	s.ExpiresAt = w.now.Add(24 * time.Hour)
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
	wantCode(w.t, w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.Create{
		Session: s, IdempotencyKey: "key-" + id, BodyHash: []byte(order), CreationsPerMinute: 1000,
	}}), checkout.CodeOK)
}

func (w *world) desk(clerk string) counter { return counter{w, clerk} }

func (c counter) ask(id string, do checkout.Action) checkout.Answer {
	c.w.t.Helper()
	return c.w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: do})
}

func (c counter) reserve(id, collection string) checkout.Answer {
	c.w.t.Helper()
	return c.ask(id, checkout.Reserve{CollectionID: collection, By: c.clerk, Window: 10 * time.Minute})
}

func (c counter) take(id, collection string) checkout.Answer {
	c.w.t.Helper()
	return c.ask(id, checkout.Take{CollectionID: collection, By: c.clerk, Total: 5050, Receipt: "R-7"})
}

func (c counter) release(id, collection string) checkout.Answer {
	c.w.t.Helper()
	return c.ask(id, checkout.Release{CollectionID: collection, By: c.clerk})
}

func (c counter) reverse(id, collection string) checkout.Answer {
	c.w.t.Helper()
	return c.ask(id, checkout.Reverse{CollectionID: collection, By: c.clerk, Reason: "wrong case"})
}

func wantReplay(t tb, a checkout.Answer, code checkout.Code) {
	t.Helper()
	wantCode(t, a, code)
	if !a.Replayed {
		t.Errorf("%s is not said to be the same again", a.Code)
	}
}

func (w *world) cancelByCitizen(id string) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, Do: checkout.Cancel{By: checkout.ByCitizen}})
}

func (w *world) order(order string) checkout.Order {
	return w.orders[checkout.OrderKey{ApplicationID: app, OrderID: order}]
}

// counterTable is what two clerks do, and what becomes of the session a.
var counterTable = []struct {
	name   string
	do     func(w *world, c01, c02 counter)
	status checkout.Status
	events types
}{
	{"the citizen's own payment is none that a clerk takes", func(w *world, c01, _ counter) {
		w.collect("a")
		wantCode(w.t, c01.take("a", "c-a"), checkout.CodeNotTaken)
		w.outcome("a", approved())
		wantCode(w.t, c01.take("a", "c-a"), checkout.CodeNotTaken)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted}},
	{"a reservation blocks other offers and the citizen's cancel", func(w *world, c01, _ counter) {
		wantCode(w.t, c01.reserve("a", "k1"), checkout.CodeOK)
		wantCode(w.t, w.collect("a"), checkout.CodeInFlight)
		wantCode(w.t, w.cancelByCitizen("a"), checkout.CodeInFlight)
	}, checkout.StatusOpen, types{requested}},
	{"cash is no offer that a citizen starts", func(w *world, _, _ counter) {
		wantCode(w.t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Collect{
			CollectionID: "k1", OfferID: checkout.OfferCashAgency, Total: 5050, ApprovalWindow: time.Minute, SendWithin: time.Minute,
		}}), checkout.CodeOfferUnknown)
	}, checkout.StatusOpen, nil},
	{"a reservation outlives the session's lifetime, until its window ends", func(w *world, c01, _ counter) {
		w.advance(24*time.Hour - time.Minute)
		wantCode(w.t, c01.reserve("a", "k1"), checkout.CodeOK)
		w.advance(2 * time.Minute)
		w.want("a", checkout.StatusOpen, created, requested)
		w.advance(counterWindow)
	}, checkout.StatusExpired, types{requested, released, checkout.EventExpired}},
	{"the window's end lets go: the session is open, and other offers go on", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		w.want("a", checkout.StatusOpen, created, requested, released)
		wantCode(w.t, w.collect("a"), checkout.CodeOK)
	}, checkout.StatusOpen, types{requested, released, requested}},
	{"the same clerk's look-up again is the same reservation", func(w *world, c01, _ counter) {
		first := c01.reserve("a", "k1")
		w.advance(time.Minute)
		again := c01.reserve("a", "k2")
		wantReplay(w.t, again, checkout.CodeOK)
		if again.Session.Collection.ID != "k1" || !again.Session.Collection.WindowEndsAt.Equal(first.Session.Collection.WindowEndsAt) {
			w.t.Errorf("it is %+v, was %+v", again.Session.Collection, first.Session.Collection)
		}
		wantReplay(w.t, c01.reserve("a", "k1"), checkout.CodeOK)
	}, checkout.StatusOpen, types{requested}},
	{"another clerk is refused until it ends", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		w.advance(10*time.Minute - time.Millisecond)
		wantCode(w.t, c02.reserve("a", "k2"), checkout.CodeReserved)
		w.advance(time.Millisecond) // before its tick
		wantCode(w.t, c02.reserve("a", "k2"), checkout.CodeOK)
	}, checkout.StatusOpen, types{requested, released, requested}},
	{"the holder's window has ended: a new one", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.now = w.now.Add(10 * time.Minute)
		if a := c01.reserve("a", "k2"); a.Code != checkout.CodeOK || a.Replayed || a.Session.Collection.ID != "k2" {
			w.t.Errorf("got %+v", a)
		}
	}, checkout.StatusOpen, types{requested, released, requested}},
	{"another's window and the lifetime have ended: expired", func(w *world, c01, c02 counter) {
		w.advance(24*time.Hour - time.Minute)
		c01.reserve("a", "k1")
		w.now = w.now.Add(10 * time.Minute)
		wantCode(w.t, c02.reserve("a", "k2"), checkout.CodeSessionEnded)
	}, checkout.StatusExpired, types{requested, released, checkout.EventExpired}},
	{"no reservation while the citizen pays", func(w *world, c01, _ counter) {
		w.collect("a")
		wantCode(w.t, c01.reserve("a", "k1"), checkout.CodeInFlight)
	}, checkout.StatusOpen, types{requested}},
	{"no reservation of what has ended", func(w *world, c01, _ counter) {
		w.cancel("a")
		wantCode(w.t, c01.reserve("a", "k1"), checkout.CodeSessionEnded)
	}, checkout.StatusCancelled, types{checkout.EventCancelled}},
	{"no reservation after the lifetime, before its tick", func(w *world, c01, _ counter) {
		w.now = w.now.Add(24 * time.Hour)
		wantCode(w.t, c01.reserve("a", "k1"), checkout.CodeSessionEnded)
	}, checkout.StatusExpired, types{checkout.EventExpired}},
	{"given up: the session is as it was", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		wantCode(w.t, c02.release("a", "k1"), checkout.CodeReserved)
		wantCode(w.t, c01.release("a", "other"), checkout.CodeInFlight)
		wantCode(w.t, c01.release("a", "k1"), checkout.CodeOK)
		wantReplay(w.t, c01.release("a", "k1"), checkout.CodeOK)
		wantCode(w.t, w.cancelByCitizen("a"), checkout.CodeOK)
	}, checkout.StatusCancelled, types{requested, released, checkout.EventCancelled}},
	{"given up after the lifetime: expired", func(w *world, c01, _ counter) {
		w.advance(24*time.Hour - time.Minute)
		c01.reserve("a", "k1")
		w.advance(2 * time.Minute)
		wantCode(w.t, c01.release("a", "k1"), checkout.CodeOK)
	}, checkout.StatusExpired, types{requested, released, checkout.EventExpired}},
	{"a clerk gives up no payment of the citizen", func(w *world, c01, _ counter) {
		w.collect("a")
		wantCode(w.t, c01.release("a", "c-a"), checkout.CodeNotTaken)
	}, checkout.StatusOpen, types{requested}},
	{"taken at once: completed, by whom and for what", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		a := c01.take("a", "k1")
		wantCode(w.t, a, checkout.CodeOK)
		if c := a.Session.Collection; c.Clerk != "c01" || c.Amount != 5050 || c.Fee != 50 || c.Channel != checkout.ChannelCash || c.OperatorRef != "R-7" || !c.DecidedAt.Equal(w.now) {
			w.t.Errorf("taken as %+v", c)
		}
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted}},
	{"taken is said twice: completed once", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		c01.take("a", "k1")
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeOK)
		wantReplay(w.t, c02.take("a", "k1"), checkout.CodeOK) // another window of the same desk software
		w.advance(48 * time.Hour)
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeOK)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted}},
	{"a wrong total is refused without effect", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		for _, total := range []int64{5000, 5049, 5051, 0, -5050} {
			wantCode(w.t, c01.ask("a", checkout.Take{CollectionID: "k1", By: "c01", Total: total}), checkout.CodeTotalChanged)
		}
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted}},
	{"given up is not taken", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		c01.take("a", "k1")
		wantCode(w.t, c01.release("a", "k1"), checkout.CodeInFlight)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted}},
	{"taken after the window let go: completed", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeOK)
	}, checkout.StatusCompleted, types{requested, released, requested, checkout.EventCompleted}},
	{"taken after the window, before its tick: completed", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.now = w.now.Add(30 * time.Minute)
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted}},
	{"taken after the session has expired: a late payment, once", func(w *world, c01, _ counter) {
		w.advance(24*time.Hour - time.Minute)
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		a := c01.take("a", "k1")
		wantCode(w.t, a, checkout.CodeOK)
		if a.Session.Paid() || a.Session.Collection.Status != checkout.CollectionApproved {
			w.t.Errorf("got %+v", a.Session)
		}
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeOK)
		if o := w.order("o"); len(o.Late) != 1 || o.Late[0] != "a" {
			w.t.Errorf("the order is %+v", o)
		}
	}, checkout.StatusExpired, types{requested, released, checkout.EventExpired, requested, checkout.EventLatePayment}},
	{"taken after the lifetime, before any tick: a late payment", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		w.now = w.now.Add(24 * time.Hour)
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
	}, checkout.StatusExpired, types{requested, released, checkout.EventExpired, requested, checkout.EventLatePayment}},
	{"the integrator cancels during a reservation, then taken: a late payment", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		wantCode(w.t, w.cancel("a"), checkout.CodeOK)
		if o := w.order("o"); len(o.Undecided) != 1 {
			w.t.Errorf("cash may be on the counter, but the order is %+v", o)
		}
		wantCode(w.t, c01.reserve("a", "k2"), checkout.CodeSessionEnded)
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
		if o := w.order("o"); len(o.Undecided) != 0 || len(o.Late) != 1 {
			w.t.Errorf("the order is %+v", o)
		}
	}, checkout.StatusCancelled, types{requested, checkout.EventCancelled, checkout.EventLatePayment}},
	{"the integrator cancels during a reservation, then given up: nothing is open", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.cancel("a")
		wantCode(w.t, c01.release("a", "k1"), checkout.CodeOK)
		if o := w.order("o"); len(o.Undecided)+len(o.Late) != 0 {
			w.t.Errorf("the order is %+v", o)
		}
		if at, ok := w.sessions["a"].Deadline(); ok && at.Before(w.now.Add(29*24*time.Hour)) {
			w.t.Errorf("it still wants a tick at %s", at)
		}
	}, checkout.StatusCancelled, types{requested, checkout.EventCancelled, released}},
	{"the integrator cancels during a reservation, then its window ends: nothing is open", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.cancel("a")
		w.advance(counterWindow)
		if o := w.order("o"); len(o.Undecided)+len(o.Late) != 0 {
			w.t.Errorf("the order is %+v", o)
		}
	}, checkout.StatusCancelled, types{requested, checkout.EventCancelled, released}},
	{"cancelled, let go, then taken: a late payment", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.cancel("a")
		w.advance(counterWindow)
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
	}, checkout.StatusCancelled, types{requested, checkout.EventCancelled, released, requested, checkout.EventLatePayment}},
	{"let go, paid by phone, then taken: an operator case, once", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		w.collect("a")
		w.outcome("a", approved())
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeCase)
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeCase)
	}, checkout.StatusCompleted, types{requested, released, requested, checkout.EventCompleted, checkout.EventCollectionOrphaned}},
	{"let go, being paid by phone, then taken: an operator case, once, and the phone's word counts", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		w.collect("a")
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeCase)
		w.outcome("a", approved())
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeCase)
	}, checkout.StatusCompleted, types{requested, released, requested, checkout.EventCollectionOrphaned, checkout.EventCompleted}},
	{"let go, refused on the phone, then taken: late", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		w.collect("a")
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
		if o := w.order("o"); len(o.Late) != 1 {
			w.t.Errorf("money is there, but the order is %+v", o)
		}
	}, checkout.StatusFailed, types{requested, released, requested, checkout.EventFailed, requested, checkout.EventLatePayment}},
	{"let go, held by another, then taken by the first: his is the payment, the other's a case", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		w.advance(counterWindow)
		wantCode(w.t, c02.reserve("a", "k2"), checkout.CodeOK)
		wantCode(w.t, c01.take("a", "k1"), checkout.CodeOK)
		if c := w.sessions["a"].Collection; c.ID != "k1" || c.Clerk != "c01" {
			w.t.Errorf("paid by %+v", c)
		}
		wantCode(w.t, c02.release("a", "k2"), checkout.CodeInFlight)
		wantCode(w.t, c02.take("a", "k2"), checkout.CodeCase)
		wantReplay(w.t, c02.take("a", "k2"), checkout.CodeCase)
	}, checkout.StatusCompleted, types{requested, released, requested, released, requested, checkout.EventCompleted, checkout.EventCollectionOrphaned}},
	{"a success of the phone that comes after the cash: an operator case", func(w *world, c01, _ counter) {
		c01.reserve("a", "k1")
		c01.take("a", "k1")
		wantCode(w.t, w.outcome("a", approved()), checkout.CodeSessionNotFound)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted, checkout.EventCollectionOrphaned}},
	{"reversed by a second person on the same day, once; it stays completed, and its order is free", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		c01.take("a", "k1")
		wantCode(w.t, c01.reverse("a", "k1"), checkout.CodeSecondPerson)
		wantCode(w.t, c02.reverse("a", "k1"), checkout.CodeOK)
		wantReplay(w.t, c02.reverse("a", "k1"), checkout.CodeOK)
		if c := w.sessions["a"].Collection; c.ReversedBy != "c02" || !c.ReversedAt.Equal(w.now) || c.Clerk != "c01" || c.Status != checkout.CollectionApproved {
			w.t.Errorf("reversed as %+v", c)
		}
		w.advance(48 * time.Hour)
		wantReplay(w.t, c02.reverse("a", "k1"), checkout.CodeOK)
		wantReplay(w.t, c01.take("a", "k1"), checkout.CodeOK)
		if o := w.order("o"); o.PaidSessionID != "" || w.sessions["a"].Paid() {
			w.t.Errorf("the order is %+v", o)
		}
		wantCode(w.t, w.create("b", "o"), checkout.CodeOK)
	}, checkout.StatusCompleted, types{requested, checkout.EventCompleted, reversed, checkout.EventReversed}},
	{"a late payment is reversed too", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		w.cancel("a")
		c01.take("a", "k1")
		wantCode(w.t, c02.reverse("a", "k1"), checkout.CodeOK)
	}, checkout.StatusCancelled, types{requested, checkout.EventCancelled, checkout.EventLatePayment, reversed, checkout.EventCaseResolved, checkout.EventReversed}},
	// Another case made the session "under review", and the sum had two exits.
	{"late cash that was written off is not given back beside another case", func(w *world, c01, c02 counter) {
		c01.reserve("a", "k1")
		w.cancel("a")
		c01.take("a", "k1")
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, casework.ResolutionWriteOff), checkout.CodeOK)
		wantCode(w.t, c01.take("a", "k2"), checkout.CodeCase)
		wantCode(w.t, c02.reverse("a", "k1"), checkout.CodeCaseClosed)
		wantCode(w.t, c02.reverse("a", "k2"), checkout.CodeOK)
	}, checkout.StatusCancelled, types{requested, checkout.EventCancelled, checkout.EventLatePayment, checkout.EventCaseResolved, checkout.EventCollectionOrphaned, checkout.EventCaseResolved}},
	{"only cash that was taken is reversed", func(w *world, c01, c02 counter) {
		wantCode(w.t, c02.reverse("a", "k1"), checkout.CodeNotTaken)
		c01.reserve("a", "k1")
		wantCode(w.t, c02.reverse("a", "k1"), checkout.CodeNotTaken)
		c01.release("a", "k1")
		wantCode(w.t, c02.reverse("a", "k1"), checkout.CodeNotTaken)
		w.collect("a")
		w.outcome("a", approved())
		wantCode(w.t, c02.reverse("a", "c-a"), checkout.CodeNotTaken)
	}, checkout.StatusCompleted, types{requested, released, requested, checkout.EventCompleted}},
	{"another application's, and another mode's, session is unknown", func(w *world, _, _ counter) {
		for _, do := range []checkout.Action{
			checkout.Reserve{CollectionID: "k", By: "c01", Window: time.Minute},
			checkout.Take{CollectionID: "k", By: "c01", Total: 5050},
			checkout.Release{CollectionID: "k", By: "c01"},
			checkout.Reverse{CollectionID: "k", By: "c02"},
		} {
			wantCode(w.t, w.ask(checkout.Command{SessionID: "a", ApplicationID: "other", Do: do}), checkout.CodeSessionNotFound)
			wantCode(w.t, w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Live: true, Do: do}), checkout.CodeSessionNotFound)
			wantCode(w.t, w.ask(checkout.Command{SessionID: "none", ApplicationID: app, Do: do}), checkout.CodeSessionNotFound)
		}
	}, checkout.StatusOpen, nil},
}

func TestCounter(t *testing.T) {
	t.Parallel()
	for _, row := range counterTable {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withCash("a", "o")
			row.do(w, w.desk("c01"), w.desk("c02"))
			w.want("a", row.status, append(types{created}, row.events...)...)
			for _, r := range w.requests {
				if r.Session.Collection.Channel == checkout.ChannelCash {
					t.Errorf("an operator is asked about cash: %+v", r)
				}
			}
		})
	}
}

func TestSessionWithoutCashIsNotForCounters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("a", "o")
	c := w.desk("c01")
	wantCode(t, c.reserve("a", "k1"), checkout.CodeOfferUnknown)
	wantCode(t, c.take("a", "k1"), checkout.CodeOfferUnknown)
	w.want("a", checkout.StatusOpen, created)
}

// While an earlier session of the order may still be paid, a counter must wait too. When
// the earlier session's money has arrived, the counter is refused.
func TestCounterAndEarlierSessionsOfTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	w.collect("a")
	w.advance(window) // the operator's answer is still unknown
	w.advance(time.Minute)
	w.withCash("b", "o")
	c := w.desk("c01")
	asked := len(w.requests)
	wantCode(t, c.reserve("b", "k1"), checkout.CodePreviousUndecided)
	if len(w.requests) != asked+1 || w.requests[asked].Kind != checkout.RequestEnquire || w.requests[asked].Session.ID != "a" {
		t.Errorf("the operator is not asked about the earlier one: %+v", w.requests[asked:])
	}
	w.outcome("a", approved())
	wantCode(t, c.reserve("b", "k1"), checkout.CodeOrderUnderReview)
	w.want("b", checkout.StatusOpen, created)

	// The same after an earlier reservation that the integrator's cancel has ended.
	w.withCash("d", "o2")
	c.reserve("d", "k3")
	w.cancel("d")
	w.withCash("e", "o2")
	wantCode(t, w.ask(checkout.Command{SessionID: "e", Do: collection("c-e")}), checkout.CodePreviousUndecided)
	wantCode(t, w.desk("c02").reserve("e", "k4"), checkout.CodePreviousUndecided)
	c.release("d", "k3")
	wantCode(t, w.desk("c02").reserve("e", "k4"), checkout.CodeOK)
}

// The day of a counter is that of Brazzaville, one hour ahead of UTC.
func TestReversalIsOfTheSameDay(t *testing.T) {
	t.Parallel()
	utc := func(day, hour, minute int) time.Time { return time.Date(2026, 11, day, hour, minute, 0, 0, time.UTC) }
	for _, row := range []struct {
		taken, reversed time.Time
		code            checkout.Code
	}{
		{utc(21, 9, 0), utc(21, 22, 59), checkout.CodeOK},
		{utc(21, 9, 0), utc(21, 23, 0), checkout.CodeReversalLate}, // midnight in Brazzaville
		{utc(21, 22, 59), utc(21, 23, 0), checkout.CodeReversalLate},
		{utc(21, 23, 0), utc(22, 0, 30), checkout.CodeOK}, // midnight in UTC only
		{utc(21, 23, 0), utc(22, 22, 59), checkout.CodeOK},
		{utc(21, 23, 0), utc(22, 23, 0), checkout.CodeReversalLate},
		{utc(21, 9, 0), time.Date(2027, 11, 21, 9, 0, 0, 0, time.UTC), checkout.CodeReversalLate},
	} {
		t.Run(row.taken.Format("02T1504")+" "+row.reversed.Format("02T1504"), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.now = row.taken
			w.withCash("a", "o")
			w.desk("c01").reserve("a", "k1")
			w.desk("c01").take("a", "k1")
			w.advance(row.reversed.Sub(row.taken))
			wantCode(t, w.desk("c02").reverse("a", "k1"), row.code)
		})
	}
}

// For any sequence of actions of clerks, citizens and integrators: a session is paid at
// most once, all money is on record, and no operator is asked for cash.
func TestRandomCounters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		n, lookUps, asked := 0, 0, 0
		var ids []string
		taken := map[string]string{} // collections that a clerk was told are on record → session
		sums := map[string]int64{}   // of what the limited clerk took, by local day
		send := func(id string, do checkout.Action) checkout.Answer {
			asked++
			return w.ask(checkout.Command{SessionID: id, Do: do})
		}
		pick := func(t *rapid.T) string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		clerk := func(t *rapid.T) string { return rapid.SampledFrom([]string{"c01", "c02"}).Draw(t, "clerk") }
		limited := checkout.Limits{Day: int64(rapid.IntRange(0, 3).Draw(t, "limit")) * 5050} // of c02
		limits := map[string]checkout.Limits{"c02": limited}
		known := func(t *rapid.T, id string) string { // a collection that a desk may still show
			if c := w.sessions[id].Collection; c != nil && rapid.Bool().Draw(t, "current") {
				return c.ID
			}
			return fmt.Sprint("k", rapid.IntRange(max(0, lookUps-3), lookUps).Draw(t, "k"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				n++
				s := draftWithCash(t, w, n)
				send(s.ID, checkout.Create{Session: s, IdempotencyKey: s.ID, CreationsPerMinute: 1000})
				if _, ok := w.sessions[s.ID]; ok {
					ids = append(ids, s.ID)
				}
			},
			"reserve": func(t *rapid.T) {
				lookUps++
				id, by := pick(t), clerk(t)
				a := send(id, checkout.Reserve{CollectionID: fmt.Sprint("k", lookUps), By: by, Window: 10 * time.Minute, Limits: limits[by]})
				if a.Code != checkout.CodeOK {
					return
				}
				if c := a.Session.Collection; c == nil || c.Channel != checkout.ChannelCash || c.Clerk != by || !a.Session.InFlight() || !w.now.Before(c.WindowEndsAt) {
					t.Fatalf("%s holds %+v of %+v", by, c, a.Session)
				}
			},
			"take": func(t *rapid.T) {
				id := pick(t)
				do := checkout.Take{CollectionID: known(t, id), By: clerk(t), Total: rapid.SampledFrom([]int64{5050, 5050, 5050, 5000}).Draw(t, "total")}
				do.Limits = limits[do.By]
				before := w.sessions[id]
				if c := before.Collection; c != nil && c.ID == do.CollectionID && c.Channel != checkout.ChannelCash {
					return // no desk was ever told that id
				}
				of, said := taken[do.CollectionID]
				if said && of != id {
					return // a desk keeps the look-up with its session
				}
				switch a := send(id, do); a.Code {
				case checkout.CodeOK, checkout.CodeCase:
					if said != a.Replayed {
						t.Fatalf("%s was on record: %v, and is said to be: %v", do.CollectionID, said, a.Replayed)
					}
					taken[do.CollectionID] = id
					if !said && do.By == "c02" {
						sums[localtime.In(w.now).Format(time.DateOnly)] += do.Total
					}
				case checkout.CodeDayLimit:
					if limited.Day == 0 || do.By != "c02" || said || w.sessions[id].Sequence != before.Sequence {
						t.Fatalf("a limit of %d refuses %+v", limited.Day, do)
					}
				case checkout.CodeTotalChanged:
					if do.Total == 5050 || w.sessions[id].Sequence != before.Sequence {
						t.Fatalf("a total of %d is refused, and the session goes on to %d", do.Total, w.sessions[id].Sequence)
					}
				case checkout.CodeSessionNotFound:
				default:
					t.Fatalf("cash is in the till, and the answer is %s", a.Code)
				}
			},
			"release": func(t *rapid.T) {
				id := pick(t)
				send(id, checkout.Release{CollectionID: known(t, id), By: clerk(t)})
			},
			"reverse": func(t *rapid.T) {
				id := pick(t)
				send(id, checkout.Reverse{CollectionID: known(t, id), By: clerk(t), Reason: "r"})
			},
			"cancel": func(t *rapid.T) {
				send(pick(t), checkout.Cancel{By: rapid.SampledFrom([]checkout.Canceller{checkout.ByCitizen, checkout.ByIntegrator}).Draw(t, "by")})
			},
			"collect": func(t *rapid.T) {
				id := pick(t)
				send(id, collection("c-"+id))
			},
			"outcome": func(t *rapid.T) {
				id := pick(t)
				send(id, anyOutcome(t, id))
			},
			"time": func(t *rapid.T) {
				w.advance(time.Duration(rapid.Int64Range(0, int64(30*time.Minute)).Draw(t, "d")).Truncate(time.Millisecond))
			},
			"staff": func(t *rapid.T) {
				resolveSome(t, w, pick(t), func(_ *rapid.T, cmd checkout.Command) { send(cmd.SessionID, cmd.Do) })
			},
			"erp": func(t *rapid.T) {
				answerSome(t, w, pick(t), func(_ *rapid.T, cmd checkout.Command) { send(cmd.SessionID, cmd.Do) })
			},
			"resolve all": func(t *rapid.T) { resolveAll(t, w) },
			"": func(t *rapid.T) {
				invariants(t, w, asked)
				caseInvariants(t, w)
				confirmationInvariants(t, w)
				counterInvariants(t, w, taken)
				limitInvariants(t, w, limited, sums)
			},
		})
	})
}

// draftWithCash is the n-th session of a random run.
func draftWithCash(t *rapid.T, w *world, n int) checkout.Session {
	s := draft(fmt.Sprintf("s%03d", n), rapid.SampledFrom([]string{"o1", "o2"}).Draw(t, "order"))
	s.ExpiresAt = w.now.Add(time.Hour)
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
	if s.ERP = rapid.Bool().Draw(t, "erp"); s.ERP {
		s.Metadata = map[string]string{checkout.MetadataERPDueRef: "due"}
	}
	return s
}

// anyOutcome is what an operator may report of the citizen's own collection.
func anyOutcome(t *rapid.T, id string) checkout.Outcome {
	return checkout.Outcome{
		CollectionID: "c-" + id, Source: checkout.SourceCallback, Amount: 5075, Currency: "XAF",
		Status: rapid.SampledFrom([]checkout.OutcomeStatus{checkout.OutcomeApproved, checkout.OutcomeRefused, checkout.OutcomePending}).Draw(t, "status"),
	}
}

// limitInvariants hold the till of the limited clerk against what was taken on each day.
func limitInvariants(t *rapid.T, w *world, limited checkout.Limits, sums map[string]int64) {
	for day, sum := range sums {
		till := w.tills[checkout.TillKey{AgencyID: draft("", "").TenantID, Clerk: "c02"}]
		if limited.Day > 0 && sum > limited.Day || day > till.Day || day == till.Day && till.Taken != sum {
			t.Fatalf("on %s the clerk took %d of %d, and %+v was counted", day, sum, limited.Day, till)
		}
	}
}

func counterInvariants(t *rapid.T, w *world, taken map[string]string) {
	for _, r := range w.requests {
		if c := r.Session.Collection; c.Channel == checkout.ChannelCash {
			t.Fatalf("an operator is asked to %s cash: %+v", r.Kind, c)
		}
	}
	// All cash is on record once: as the payment of its session, or as a case.
	for collection, id := range taken {
		s, found := w.sessions[id], 0
		if s.Collection != nil && s.Collection.ID == collection && s.Collection.Status == checkout.CollectionApproved {
			found++
		}
		for _, orphan := range s.Orphans {
			if orphan == collection {
				found++
			}
		}
		if found != 1 {
			t.Fatalf("cash %s is on record %d times in %+v, collection %+v", collection, found, s, s.Collection)
		}
	}
	reversals := map[string]int{}
	for _, e := range w.events {
		if e.Type != reversed {
			continue
		}
		if reversals[e.SessionID]++; reversals[e.SessionID] > 1 || e.Session.Collection.Clerk == e.Session.Collection.ReversedBy {
			t.Fatalf("reversed as %+v", e.Session.Collection)
		}
	}
}

// Software that sends a new id with each try must not grow a session without limit.
func TestOrphansAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	d := w.desk("c01")
	wantCode(t, d.take("a", "own"), checkout.CodeOK)
	for n := range 100 {
		wantCode(t, d.take("a", fmt.Sprint("other", n)), checkout.CodeCase)
	}
	events := len(w.events)
	wantCode(t, d.take("a", "one more"), checkout.CodeTooMany)
	wantCode(t, d.take("a", "other7"), checkout.CodeCase)
	wantCode(t, d.take("a", "own"), checkout.CodeOK)
	if n := len(w.sessions["a"].Orphans); n != 100 || len(w.events) != events {
		t.Errorf("%d orphans, %d events more", n, len(w.events)-events)
	}
}

// After late cash was given back, the order is as it was before.
func TestLateCashGivenBackFreesTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	wantCode(t, w.desk("c01").reserve("a", "k1"), checkout.CodeOK)
	w.cancel("a")
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeOK)
	wantCode(t, w.create("refused", "o"), checkout.CodeOrderUnderReview)
	wantCode(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
	w.withCash("b", "o")
	wantCode(t, w.desk("c02").reserve("b", "k2"), checkout.CodeOK)
}

// A clerk takes cash for a session whose other payment was refused. The cash is the only
// money, it is a late payment, and it can be given back.
func TestCashAfterARefusedPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withCash("a", "o")
	wantCode(t, w.desk("c01").reserve("a", "k1"), checkout.CodeOK)
	w.advance(counterWindow)
	w.collect("a")
	w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused, FailureCode: checkout.FailureRejected})
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeOK)
	if last := w.events[len(w.events)-1]; last.Type != checkout.EventLatePayment || last.Session.Collection.Channel != checkout.ChannelCash {
		t.Errorf("the cash is %s", last.Type)
	}
	wantCode(t, w.desk("c02").reverse("a", "k1"), checkout.CodeOK)
}

// A stolen key could put any amount on record as cash.
func TestLimitsOfAClerk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 9 {
		w.withCash(fmt.Sprint("s", n), fmt.Sprint("o", n))
	}
	limits := checkout.Limits{Payment: 6000, Day: 2 * 5050}
	reserve := func(clerk, id, collection string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: id, Do: checkout.Reserve{CollectionID: collection, By: clerk, Window: 10 * time.Minute, Limits: limits}})
	}
	take := func(clerk, id, collection string) checkout.Answer {
		return w.ask(checkout.Command{SessionID: id, Do: checkout.Take{CollectionID: collection, By: clerk, Total: 5050, Limits: limits}})
	}
	taken := func(clerk string) int64 {
		return w.tills[checkout.TillKey{AgencyID: w.sessions["s0"].TenantID, Clerk: clerk}].Taken
	}

	// Each payment of its own: refused at the look-up, and also without one.
	limits.Payment = 5049
	wantCode(t, reserve("c01", "s0", "k0"), checkout.CodePaymentLimit)
	wantCode(t, take("c01", "s0", "k0"), checkout.CodePaymentLimit)
	limits.Payment = 5050
	events := len(w.events)
	wantCode(t, reserve("c01", "s0", "k0"), checkout.CodeOK)
	wantCode(t, take("c01", "s0", "k0"), checkout.CodeOK)

	// The same cash counts once, however often it is reported.
	for range 5 {
		wantReplay(t, take("c01", "s0", "k0"), checkout.CodeOK)
	}
	if n := taken("c01"); n != 5050 || len(w.events)-events != 2 {
		t.Errorf("%d were counted, with %d events", n, len(w.events)-events)
	}

	// Two payments are reserved, and one of them fits: the other stays as it is.
	wantCode(t, reserve("c01", "s1", "k1"), checkout.CodeOK)
	wantCode(t, reserve("c01", "s2", "k2"), checkout.CodeOK)
	wantCode(t, take("c01", "s1", "k1"), checkout.CodeOK)
	wantCode(t, take("c01", "s2", "k2"), checkout.CodeDayLimit)
	w.want("s2", checkout.StatusOpen, created, requested)
	wantReplay(t, take("c01", "s1", "k1"), checkout.CodeOK)
	wantCode(t, reserve("c01", "s3", "k3"), checkout.CodeDayLimit)
	w.want("s3", checkout.StatusOpen, created)

	// Another clerk has another limit. Cash beside another payment counts, too.
	wantCode(t, reserve("c02", "s3", "k3"), checkout.CodeOK)
	wantCode(t, take("c02", "s3", "k3"), checkout.CodeOK)
	wantCode(t, take("c02", "s0", "k0 beside"), checkout.CodeCase)
	wantReplay(t, take("c02", "s0", "k0 beside"), checkout.CodeCase)
	wantCode(t, take("c02", "s1", "k1 beside"), checkout.CodeDayLimit)

	// Cash that was given back still counts.
	wantCode(t, w.desk("c02").reverse("s0", "k0"), checkout.CodeOK)
	wantCode(t, take("c01", "s4", "k4"), checkout.CodeDayLimit)

	// A limit that was set later counts what was taken before.
	limits = checkout.Limits{}
	wantCode(t, take("c03", "s4", "k4"), checkout.CodeOK)
	limits.Day = 5051
	wantCode(t, take("c03", "s5", "k5"), checkout.CodeDayLimit)

	// Live payments are counted apart. The day ends at midnight in Brazzaville.
	w.advance(time.Date(2026, 11, 21, 22, 59, 59, 0, time.UTC).Sub(w.now))
	wantCode(t, take("c03", "s5", "k5"), checkout.CodeDayLimit)
	w.advance(time.Second)
	wantCode(t, take("c03", "s5", "k5"), checkout.CodeOK)
	w.now = w.now.Add(-time.Minute) // an instance whose clock is behind
	wantCode(t, take("c03", "s6", "k6"), checkout.CodeDayLimit)
	if n := taken("c03"); n != 5050 {
		t.Errorf("%d were counted", n)
	}
}
