package checkout_test

import (
	"testing"
	"time"

	"quittance/checkout"
)

// The fee of several dues is divided at the approval, in time or late.
func TestItemsShareTheFee(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{"in time": 0, "late": window} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := draft("a", "o")
			s.Items = []checkout.Item{{ERPDueRef: "d1", Amount: 1000, TransactionID: "t1"}, {ERPDueRef: "d2", Amount: 4000, TransactionID: "t2"}}
			w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: checkout.Create{Session: s, IdempotencyKey: "k", CreationsPerMinute: 1000}})
			w.collect("a")
			w.advance(wait)
			before := w.sessions["a"].Items
			w.outcome("a", approved())
			if got := w.sessions["a"].Items; len(got) != 2 || got[0].Fee != 15 || got[1].Fee != 60 {
				t.Errorf("items %+v", got)
			}
			if before[0].Fee != 0 {
				t.Error("an earlier snapshot has changed")
			}
		})
	}
}

// Each sum names its account, and the day on which the operator approved it.
func TestMoneyHasAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	day := start.Add(-10 * time.Hour)
	money := func(id string, amount int64) checkout.Outcome {
		return checkout.Outcome{CollectionID: id, Status: checkout.OutcomeApproved, Amount: amount, Currency: "XAF", Account: "acc-2", ApprovedAt: day}
	}
	w.create("a", "o")
	do := collection("c-a")
	do.Account = "acc-1"
	w.ask(checkout.Command{SessionID: "a", Do: do})
	w.outcome("a", money("c-a", 6000))
	w.outcome("a", money("elsewhere", 70))
	w.outcome("a", money("c-a", 5075))
	s := w.sessions["a"]
	if c := s.Collection; c.Account != "acc-1" || !c.ApprovedAt.Equal(day) {
		t.Errorf("the collection is %+v", c)
	}
	for i, account := range []string{"acc-1", "acc-2"} {
		if c := s.Cases[i]; c.Account != account || !c.ApprovedAt.Equal(day) {
			t.Errorf("the case is %+v", c)
		}
	}

	// Nobody knows the session: the event holds what a case would.
	w.ask(checkout.Command{SessionID: "none", Live: true, Do: money("c-none", 70)})
	if d := w.events[len(w.events)-1].Detail; d[checkout.DetailAccount] != "acc-2" || d[checkout.DetailApprovedAt] != day.Format(time.RFC3339) || d[checkout.DetailLive] != "true" {
		t.Errorf("the orphan is %v", d)
	}

	// Cash lies at the counter at which it was taken, whoever reserved it.
	w.withCash("b", "p")
	w.desk("c01").reserve("b", "k1")
	take := checkout.Take{CollectionID: "k1", By: "c02", Total: 5050, Desk: "Annexe"}
	w.ask(checkout.Command{SessionID: "b", Do: take})
	if c := w.sessions["b"].Collection; c.Account != "Annexe" || c.Clerk != "c02" {
		t.Errorf("the cash is %+v", c)
	}
	take.CollectionID, take.Desk = "k2", "Hall"
	w.ask(checkout.Command{SessionID: "b", Do: take})
	if c := w.sessions["b"].Cases[0]; c.Account != "Hall" || c.Kind != checkout.CaseOrphan {
		t.Errorf("the second cash is %+v", c)
	}
}
