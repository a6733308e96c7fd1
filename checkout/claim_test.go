package checkout_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
)

const agency = "018f0000-0000-7000-8000-000000000001"

// ministry is a draft of a session that a ministry makes for a due.
func (w *world) ministry(id, due string) checkout.Session {
	s := draft(id, "o-"+id)
	s.ERP, s.Metadata = true, map[string]string{checkout.MetadataERPDueRef: due}
	s.ExpiresAt = w.now.Add(time.Hour)
	return s
}

// cart is a draft of a portal session that pays dues of 2,500 each, which are all that is
// owed.
func (w *world) cart(id string, dues ...string) checkout.Session {
	s := draft(id, "o-"+id)
	s.ERP, s.CitizenID, s.PulledAt = true, "citizen", w.now
	s.ExpiresAt = w.now.Add(time.Hour)
	s.Amount = 2500 * int64(len(dues))
	for i, due := range dues {
		transaction := "t-" + id
		if i > 0 {
			transaction += fmt.Sprint("-", i)
		}
		s.Items = append(s.Items, checkout.Item{ERPDueRef: due, SubjectRef: "NIU-1", Amount: 2500, Outstanding: 2500, TransactionID: transaction, NoticeRef: "AV-" + transaction})
	}
	return s
}

// owed is a cart of the due D, of which that much is owed.
func (w *world) owed(id string, outstanding int64) checkout.Session {
	s := w.cart(id, "D")
	s.Items[0].Outstanding, s.Items[0].Amount, s.Amount = outstanding, 50, 50
	return s
}

func (w *world) make(s checkout.Session, replace bool) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: s.ID, ApplicationID: s.ApplicationID, Do: checkout.Create{
		Session: s, IdempotencyKey: "key-" + s.ID, CreationsPerMinute: 1000, Replace: replace,
	}})
}

// pay collects the whole of a session and has it approved.
func (w *world) pay(id string) {
	w.t.Helper()
	w.request(id)
	w.approve(id)
}

func (w *world) request(id string) checkout.Answer {
	w.t.Helper()
	do := collection("c-" + id)
	do.Total = w.sessions[id].Amount + 75
	return w.ask(checkout.Command{SessionID: id, Do: do})
}

func (w *world) approve(id string) {
	w.t.Helper()
	w.outcome(id, checkout.Outcome{Status: checkout.OutcomeApproved, Amount: w.sessions[id].Amount + 75, Currency: "XAF", OperatorRef: "op-" + id})
}

// accept reports that the ERP has the payment of the n-th due of a session.
func (w *world) accept(id string, n int) {
	w.t.Helper()
	w.advance(time.Second)
	wantCode(w.t, w.ask(checkout.Command{SessionID: id, Do: checkout.Confirmed{
		TransactionID: w.sessions[id].Dues()[n].TransactionID, Answer: checkout.AnswerAccepted, AnsweredAt: w.now,
	}}), checkout.CodeOK)
	w.advance(time.Second)
}

// wantClaim checks that a due refuses a session, with the field and the state.
func wantClaim(t tb, a checkout.Answer, field string, state checkout.DueState) {
	t.Helper()
	if a.Code != checkout.CodeDueInPayment || len(a.Faults) != 1 || a.Faults[0].Field != field || a.Faults[0].Rule != string(state) {
		t.Errorf("answer %s with %+v, want %s of %s", a.Code, a.Faults, state, field)
	}
}

const (
	ofMinistry = "metadata.erp_due_ref"
	ofCart     = "items.0.erp_due_ref"
)

// claimCases are requests for dues that others may hold.
var claimCases = map[string]func(w *world){
	"two orders": func(w *world) {
		wantCode(w.t, w.make(w.ministry("a", "D"), false), checkout.CodeOK)
		wantClaim(w.t, w.make(w.ministry("b", "D"), false), ofMinistry, checkout.DueInPayment)
		wantClaim(w.t, w.make(w.cart("c", "E", "D"), false), "items.1.erp_due_ref", checkout.DueInPayment)
		wantCode(w.t, w.make(w.cart("d", "E"), false), checkout.CodeOK)
	},
	"another application of the agency": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		s := w.ministry("b", "D")
		s.ApplicationID = "018f0000-0000-7000-8000-00000000000b"
		wantClaim(w.t, w.make(s, false), ofMinistry, checkout.DueInPayment)
	},
	"others": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		live, other, erpless, bytes := w.ministry("b", "D"), w.ministry("c", "D"), w.ministry("d", "D"), w.ministry("e", "d")
		live.Live, other.TenantID, erpless.ERP = true, "another", false
		for _, s := range []checkout.Session{live, other, erpless, bytes} {
			wantCode(w.t, w.make(s, false), checkout.CodeOK)
		}
	},
	"twice in one cart": func(w *world) {
		wantClaim(w.t, w.make(w.cart("a", "D", "D"), false), "items.1.erp_due_ref", checkout.DueInPayment)
		if len(w.events) > 0 {
			w.t.Errorf("events %v", w.events)
		}
	},
	"of the same order, its own rules decide": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.request("a")
		w.advance(2 * time.Hour)
		again := w.ministry("b", "D")
		again.OrderID = "o-a"
		wantCode(w.t, w.make(again, false), checkout.CodeOK)
		wantCode(w.t, w.request("b"), checkout.CodePreviousUndecided)
		w.approve("a")
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
		w.want("b", checkout.StatusCancelled, created, checkout.EventCancelled)
	},
	"cancelled": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.cancel("a")
		wantCode(w.t, w.make(w.ministry("b", "D"), false), checkout.CodeOK)
	},
	"expired, and its tick is late": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.now = w.now.Add(2 * time.Hour)
		wantCode(w.t, w.make(w.ministry("b", "D"), false), checkout.CodeOK)
		w.want("a", checkout.StatusExpired, created, checkout.EventExpired)
	},
	"undecided": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.request("a")
		w.advance(2 * time.Hour)
		wantClaim(w.t, w.make(w.cart("b", "D"), false), ofCart, checkout.DueInPayment)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		wantCode(w.t, w.make(w.cart("b2", "D"), false), checkout.CodeOK)
	},
	"recording": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.pay("a")
		wantClaim(w.t, w.make(w.ministry("b", "D"), false), ofMinistry, checkout.DueRecording)
		w.accept("a", 0)
		wantCode(w.t, w.make(w.ministry("b2", "D"), false), checkout.CodeOK)
	},
	"refused by the ERP": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.pay("a")
		w.erp("a", checkout.AnswerRefused, w.now)
		wantClaim(w.t, w.make(w.ministry("b", "D"), false), ofMinistry, checkout.DueRecording)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
		old := w.cart("b2", "D")
		w.advance(time.Second)
		wantClaim(w.t, w.make(old, false), ofCart, checkout.DueRecording)
		wantCode(w.t, w.make(w.ministry("b3", "D"), false), checkout.CodeOK)
	},
	"one due of a cart is recorded before the other": func(w *world) {
		w.make(w.cart("a", "D", "E"), false)
		w.pay("a")
		w.accept("a", 1)
		wantClaim(w.t, w.make(w.ministry("b", "D"), false), ofMinistry, checkout.DueRecording)
		wantCode(w.t, w.make(w.ministry("c", "E"), false), checkout.CodeOK)
	},
	"late money": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.request("a")
		w.advance(window)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		w.approve("a") // after a refusal
		wantClaim(w.t, w.make(w.cart("b", "D"), false), ofCart, checkout.DueInPayment)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRefund), checkout.CodeOK)
		wantCode(w.t, w.make(w.cart("b2", "D"), false), checkout.CodeOK)
	},
	"late money of a due that another session holds": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.request("a")
		w.advance(window)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		w.make(w.cart("b", "D"), false)
		w.approve("a")
		wantCode(w.t, w.request("b"), checkout.CodeDueInPayment)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeDueInPayment)
		w.cancel("b")
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
		wantClaim(w.t, w.make(w.cart("c", "D"), false), ofCart, checkout.DueRecording)
	},
	"late money is not honoured on its own beside another claim": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		w.request("a")
		w.advance(window)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		w.make(w.ministry("b", "D"), false)
		o := approved()
		o.HonourLate, o.ApprovedAt = true, w.now
		w.outcome("a", o)
		if s := w.sessions["a"]; s.Paid() || w.openCase("a").Kind != checkout.CaseLatePayment {
			w.t.Errorf("the session is %+v", s)
		}
	},
	"late money of a due that another order has paid": func(w *world) {
		s := w.cart("a", "D")
		s.Items[0].Amount, s.Items[0].Outstanding, s.Amount = 1000, 2500, 1000
		w.make(s, false)
		w.request("a")
		w.advance(window)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeUnknown})
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		w.make(w.cart("b", "D"), false)
		w.pay("b")
		w.accept("b", 0)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeApproved, Amount: 1075, Currency: "XAF", HonourLate: true, ApprovedAt: w.now})
		c := w.openCase("a")
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionHonour), checkout.CodeDueInPayment)
		wantCode(w.t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeOK)
	},
	"late money of a due that another order has paid in part, for staff": func(w *world) {
		w.make(w.owed("a", 2500), false)
		w.request("a")
		w.advance(window)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused})
		w.make(w.owed("b", 2500), false)
		w.pay("b")
		w.accept("b", 0)
		w.outcome("a", checkout.Outcome{Status: checkout.OutcomeApproved, Amount: 125, Currency: "XAF", HonourLate: true, ApprovedAt: w.now})
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
	},
	"cash without a reservation, of a due that other money pays": func(w *world) {
		s := w.ministry("a", "D")
		s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash})
		other := s
		other.ERP = false // an earlier version made it without a claim
		w.make(other, false)
		w.make(w.cart("b", "D"), false)
		w.request("b")
		s = w.sessions["a"]
		s.ERP = true
		w.sessions["a"] = s
		a := w.ask(checkout.Command{SessionID: "a", Do: checkout.Take{CollectionID: "k", By: "c01", Total: s.Amount}})
		wantCode(w.t, a, checkout.CodeCase)
		if k := w.openCase("a"); k.Kind != checkout.CaseOrphan || k.By != "c01" {
			w.t.Errorf("the case is %+v", k)
		}
		w.want("a", checkout.StatusOpen, created, checkout.EventCollectionOrphaned)
	},
	"made before claims": func(w *world) {
		w.make(w.ministry("a", "D"), false)
		clear(w.claims)
		w.request("a")
		wantClaim(w.t, w.make(w.cart("b", "D"), false), ofCart, checkout.DueInPayment)
	},
	"made before the agency had an ERP": func(w *world) {
		s := w.ministry("a", "D")
		s.ERP = false
		w.make(s, false)
		w.pay("a")
		w.erp("a", checkout.AnswerFailed, w.now)
		wantClaim(w.t, w.make(w.cart("b", "D"), false), ofCart, checkout.DueRecording)
		w.accept("a", 0)
		old := w.cart("b2", "D")
		old.PulledAt = w.now.Add(-time.Hour)
		wantClaim(w.t, w.make(old, false), ofCart, checkout.DueRecording)
	},
	"reversed": func(w *world) {
		w.make(w.cart("a", "D"), false)
		w.pay("a")
		w.accept("a", 0)
		w.refund("a")
		wantClaim(w.t, w.make(w.cart("b", "D"), false), ofCart, checkout.DueRecording)
		wantCode(w.t, w.resolve("a", w.openCase("a").ID, casework.ResolutionAcknowledge), checkout.CodeOK)
		wantCode(w.t, w.make(w.cart("b2", "D"), false), checkout.CodeOK) // owed as before
	},
	"a cart replaces carts": func(w *world) {
		w.make(w.cart("a", "D", "E"), false)
		w.make(w.cart("b", "F"), false)
		wantCode(w.t, w.make(w.cart("c", "D", "F"), true), checkout.CodeOK)
		w.want("a", checkout.StatusCancelled, created, checkout.EventCancelled)
		w.want("b", checkout.StatusCancelled, created, checkout.EventCancelled)
		wantCode(w.t, w.make(w.cart("d", "E"), false), checkout.CodeOK)
	},
	"a cart replaces nothing that is paid, in payment or a ministry's": func(w *world) {
		w.make(w.cart("a", "D"), false)
		w.request("a")
		w.make(w.ministry("b", "E"), false)
		w.make(w.cart("c", "F"), false)
		for i, due := range []string{"D", "E"} {
			wantClaim(w.t, w.make(w.cart(fmt.Sprint("r", i), "F", due), true), "items.1.erp_due_ref", checkout.DueInPayment)
		}
		w.want("c", checkout.StatusOpen, created) // refused: nothing is cancelled
	},
	"the same request again": func(w *world) {
		w.make(w.cart("a", "D"), false)
		if a := w.make(w.cart("a", "D"), false); a.Code != checkout.CodeOK || !a.Replayed {
			w.t.Errorf("answer %+v", a)
		}
	},
}

func TestClaims(t *testing.T) {
	t.Parallel()
	for name, do := range claimCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(newWorld(t))
		})
	}
}

// partial pays 1,000 of 2,500, which the ERP accepts.
func partial(w *world) {
	s := w.cart("a", "D")
	s.Amount, s.Items[0].Amount = 1000, 1000
	w.make(s, false)
	w.pay("a")
	w.accept("a", 0)
}

// acceptanceTable is what an ERP that has accepted 1,000 of 2,500 shows, and whether a cart can be made from it.
var acceptanceTable = map[string]struct {
	pulled      time.Duration // after now
	wait        time.Duration
	outstanding int64
	want        checkout.Code
	cases       int
}{
	"shown":                        {outstanding: 1500, want: checkout.CodeOK},
	"less is owed":                 {outstanding: 100, want: checkout.CodeOK},
	"not shown yet":                {outstanding: 2500, want: checkout.CodeDueInPayment},
	"one unit too much":            {outstanding: 1501, want: checkout.CodeDueInPayment},
	"an old list":                  {pulled: -time.Hour, outstanding: 1500, want: checkout.CodeDueInPayment},
	"not shown within 72 h":        {wait: 72*time.Hour - 2*time.Second, outstanding: 2500, want: checkout.CodeDueInPayment},
	"not shown after 72 h":         {wait: 72 * time.Hour, outstanding: 2500, want: checkout.CodeDueInPayment, cases: 1},
	"shown after 72 h":             {wait: 72 * time.Hour, outstanding: 1500, want: checkout.CodeOK},
	"the claim ends after 90 days": {wait: 90 * 24 * time.Hour, outstanding: 2500, want: checkout.CodeOK},
}

// After the ERP has accepted a payment, a cart can be made from a list of dues that shows it.
func TestClaimsAfterTheAcceptance(t *testing.T) {
	t.Parallel()
	for name, row := range acceptanceTable {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			partial(w)
			w.advance(row.wait)
			for i := range 2 {
				s := w.cart(fmt.Sprint("b", i), "D")
				s.PulledAt, s.Items[0].Outstanding, s.Items[0].Amount, s.Amount = w.now.Add(row.pulled), row.outstanding, 50, 50
				if i == 1 && row.want == checkout.CodeOK {
					break
				}
				wantCode(t, w.make(s, false), row.want)
			}
			if got := len(w.sessions["a"].Cases); got != row.cases {
				t.Fatalf("%d cases, want %d: %+v", got, row.cases, w.sessions["a"].Cases)
			}
			if row.cases == 0 {
				return
			}
			c := w.openCase("a")
			if c.Kind != checkout.CaseConfirmation || c.TransactionID != "t-a" || c.Amount != 1075 {
				t.Errorf("the case is %+v", c)
			}
			wantCode(t, w.resolve("a", c.ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
			s := w.cart("c", "D")
			wantCode(t, w.make(s, false), checkout.CodeOK)
		})
	}
	acceptedPayments(t)
	acceptedDues(t)
}

// acceptedPayments are cases of a payment in part that is given back, paid on or told again.
func acceptedPayments(t *testing.T) {
	t.Helper()
	t.Run("what the ERP still has to show never grows", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		partial(w)
		s := w.ministry("b", "D") // names no outstanding amount
		s.Amount = 500
		w.make(s, false)
		w.pay("b")
		w.accept("b", 0)
		wantClaim(t, w.make(w.owed("c", 1001), false), ofCart, checkout.DueRecording)
		wantCode(t, w.make(w.owed("c2", 1000), false), checkout.CodeOK)
	})
	t.Run("an earlier payment is given back", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		partial(w)
		s := w.owed("b", 1500)
		s.Amount, s.Items[0].Amount = 500, 500
		w.make(s, false)
		w.pay("b")
		w.accept("b", 0)
		w.refund("a")
		wantCode(t, w.resolve("a", w.openCase("a").ID, casework.ResolutionAcknowledge), checkout.CodeOK)
		wantClaim(t, w.make(w.owed("c", 2001), false), ofCart, checkout.DueRecording)
		wantCode(t, w.make(w.owed("c2", 2000), false), checkout.CodeOK)
	})
	t.Run("the last payment is given back, and more is owed than before", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		partial(w)
		w.refund("a")
		wantCode(t, w.resolve("a", w.openCase("a").ID, casework.ResolutionAcknowledge), checkout.CodeOK)
		wantClaim(t, w.make(w.owed("b", 2600), false), ofCart, checkout.DueRecording)
		w.advance(72 * time.Hour)
		wantCode(t, w.make(w.owed("b2", 2600), false), checkout.CodeOK)
	})
	t.Run("told again, the answer from before does not count, and a person may record it", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		partial(w)
		accepted := w.sessions["a"].Dues()[0].Confirmation.AnsweredAt
		w.advance(72 * time.Hour)
		w.make(w.cart("b", "D"), false)
		wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRetry), checkout.CodeOK)
		told := w.events[len(w.events)-1].ConfirmationRequests()
		if len(told) != 1 || told[0].Kind != checkout.RequestAgain || told[0].Due.Confirmation.Again != 1 {
			t.Errorf("the ERP is told %+v", told)
		}
		w.erp("a", checkout.AnswerAccepted, accepted) // repeated by the reporter
		if got := w.sessions["a"].Dues()[0].Confirmation.Status; got != checkout.ConfirmationAwaited {
			t.Errorf("the confirmation is %s", got)
		}
		w.advance(time.Minute)
		w.erp("a", checkout.AnswerRefused, w.now)
		wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
		wantCode(t, w.make(w.cart("c", "D"), false), checkout.CodeOK) // two people have looked
	})
	t.Run("told again by a version that did not count", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		partial(w)
		s := w.sessions["a"]
		s.Items = slices.Clone(s.Items)
		s.Items[0].Confirmation.Status = checkout.ConfirmationAwaited
		w.sessions["a"] = s
		w.advance(25 * time.Hour)
		wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRetry), checkout.CodeOK)
		if got := w.sessions["a"].Items[0].Confirmation.Again; got != 1 {
			t.Errorf("again is %d", got)
		}
	})
}

// acceptedDues are further cases of dues whose payment the ERP has accepted.
func acceptedDues(t *testing.T) {
	t.Helper()
	t.Run("two sessions without claims", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		cash := checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash}
		for _, id := range []string{"a", "b", "c"} { // made before the agency had an ERP, or by an earlier version
			s := w.ministry(id, "D")
			s.ERP, s.Offers = false, append(s.Offers, cash)
			w.make(s, false)
			s = w.sessions[id]
			s.ERP = true
			w.sessions[id] = s
		}
		w.pay("a")
		wantCode(t, w.request("b"), checkout.CodeDueInPayment)
		w.accept("a", 0)
		wantCode(t, w.request("b"), checkout.CodeDueInPayment)
		wantCode(t, w.ask(checkout.Command{SessionID: "c", Do: checkout.Take{CollectionID: "k", By: "c01", Total: 5000}}), checkout.CodeCase)
	})
	t.Run("recorded by hand, the due stays paid for late money", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.make(w.cart("x", "D"), false)
		w.request("x")
		w.advance(window)
		w.outcome("x", checkout.Outcome{Status: checkout.OutcomeRefused})
		ended := w.now
		w.make(w.cart("y", "D"), false)
		w.pay("y")
		w.accept("y", 0)
		w.advance(72 * time.Hour)
		w.make(w.cart("z", "D"), false) // opens the case
		wantCode(t, w.resolve("y", w.openCase("y").ID, checkout.ResolutionRecordedByHand), checkout.CodeOK)
		w.outcome("x", checkout.Outcome{Status: checkout.OutcomeApproved, Amount: 2575, Currency: "XAF", HonourLate: true, ApprovedAt: ended})
		if w.sessions["x"].Paid() {
			t.Error("the due is paid twice")
		}
	})
	t.Run("the ERP is told once more", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		partial(w)
		w.advance(72 * time.Hour)
		w.make(w.cart("b", "D"), false)
		wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionRetry), checkout.CodeOK)
		wantClaim(t, w.make(w.ministry("c", "D"), false), ofMinistry, checkout.DueRecording)
		w.accept("a", 0)
		wantCode(t, w.make(w.owed("c1", 1500), false), checkout.CodeOK) // paid once, told twice
		w.cancel("c1")
		w.advance(72 * time.Hour)
		w.make(w.cart("c2", "D"), false)
		w.openCase("a") // another one
		wantCode(t, w.make(w.ministry("c3", "D"), false), checkout.CodeOK)
	})
	t.Run("a ministry's payment names no outstanding amount", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.make(w.ministry("a", "D"), false)
		w.pay("a")
		old := w.cart("b", "D")
		w.accept("a", 0)
		wantClaim(t, w.make(old, false), ofCart, checkout.DueRecording)
		wantCode(t, w.make(w.cart("c", "D"), false), checkout.CodeOK)
	})
}

// Each due of a cart is confirmed on its own, and has its own case.
func TestConfirmationsOfACart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.make(w.cart("a", "D", "E"), false)
	w.pay("a")
	told := w.events[len(w.events)-1].ConfirmationRequests()
	if len(told) != 2 || told[0].Due.TransactionID != "t-a" || told[1].Due.TransactionID != "t-a-1" || told[1].Due.ERPDueRef != "E" || told[1].Due.Fee != 38 && told[1].Due.Fee != 37 {
		t.Fatalf("the ERP is told %+v", told)
	}
	answer := func(n int, a checkout.ConfirmationAnswer) {
		w.advance(time.Second)
		wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: checkout.Confirmed{
			TransactionID: w.sessions["a"].Items[n].TransactionID, Answer: a, AnsweredAt: w.now, Reason: "http_422",
		}}), checkout.CodeOK)
	}
	answer(1, checkout.AnswerRefused)
	answer(0, checkout.AnswerAccepted)
	refused := w.openCase("a")
	if refused.TransactionID != "t-a-1" || refused.Amount != 2500+w.sessions["a"].Items[1].Fee {
		t.Errorf("the case is %+v", refused)
	}
	wantCode(t, w.resolve("a", refused.ID, checkout.ResolutionRetry), checkout.CodeOK)
	last := w.events[len(w.events)-1].ConfirmationRequests()
	if len(last) != 1 || last[0].Kind != checkout.RequestAgain || last[0].Due.TransactionID != "t-a-1" {
		t.Errorf("the ERP is told %+v", last)
	}
	w.advance(25 * time.Hour) // the other one is settled, so one case
	if c := w.openCase("a"); c.TransactionID != "t-a-1" {
		t.Errorf("the case is %+v", c)
	}
	answer(1, checkout.AnswerAccepted)
	for i, item := range w.sessions["a"].Items {
		if item.Confirmation.Status != checkout.ConfirmationAccepted {
			t.Errorf("due %d is %+v", i, item.Confirmation)
		}
	}
	if at, ok := w.sessions["a"].Deadline(); !ok || at.Before(w.now.Add(20*24*time.Hour)) {
		t.Errorf("something is due at %v", at)
	}
}

// Whatever happens, a due has at most one payment that its ERP has never accepted, and nobody
// is asked for money for a due while it has one. The claims say what the sessions say.
func TestClaimsInRandomHistories(t *testing.T) {
	t.Parallel()
	dues := []string{"D", "E", "F"}
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		var ids []string
		session := func(t *rapid.T) string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		desk := func(t *rapid.T, do func(clerk string) checkout.Action) {
			clerk := rapid.SampledFrom([]string{"c01", "c02"}).Draw(t, "clerk")
			w.ask(checkout.Command{SessionID: session(t), Do: do(clerk)})
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				id := fmt.Sprintf("s%03d", len(w.keys))
				var s checkout.Session
				if rapid.Bool().Draw(t, "portal") {
					n := rapid.IntRange(1, 3).Draw(t, "dues")
					s = w.cart(id, rapid.Permutation(dues).Draw(t, "which")[:n]...)
					s.Items[0].Outstanding = rapid.SampledFrom([]int64{2500, 5000, 2501}).Draw(t, "outstanding")
					s.PulledAt = w.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute)
				} else {
					s = w.ministry(id, rapid.SampledFrom(dues).Draw(t, "due"))
				}
				s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash})
				if a := w.make(s, rapid.Bool().Draw(t, "replace")); a.Code == checkout.CodeOK {
					ids = append(ids, id)
				}
			},
			"cancel":  func(t *rapid.T) { w.cancel(session(t)) },
			"request": func(t *rapid.T) { w.request(session(t)) },
			"outcome": func(t *rapid.T) {
				id := session(t)
				o := checkout.Outcome{Status: rapid.SampledFrom([]checkout.OutcomeStatus{checkout.OutcomeApproved, checkout.OutcomeApproved, checkout.OutcomeRefused}).Draw(t, "status"), Currency: "XAF"}
				o.Amount = w.sessions[id].Amount + rapid.SampledFrom([]int64{75, 75, 80}).Draw(t, "fee")
				if o.HonourLate = rapid.Bool().Draw(t, "policy"); o.HonourLate {
					o.ApprovedAt = w.now
				}
				w.outcome(id, o)
			},
			"reserve": func(t *rapid.T) {
				id := session(t)
				desk(t, func(clerk string) checkout.Action {
					return checkout.Reserve{CollectionID: "k-" + id, By: clerk, Window: counterWindow}
				})
			},
			"take": func(t *rapid.T) {
				id := session(t)
				desk(t, func(clerk string) checkout.Action {
					return checkout.Take{CollectionID: "k-" + id, By: clerk, Total: w.sessions[id].Amount}
				})
			},
			"reverse": func(t *rapid.T) {
				id := session(t)
				desk(t, func(clerk string) checkout.Action { return checkout.Reverse{CollectionID: "k-" + id, By: clerk} })
			},
			"erp": func(t *rapid.T) {
				id := session(t)
				items := w.sessions[id].Dues()
				w.ask(checkout.Command{SessionID: id, Do: checkout.Confirmed{
					TransactionID: items[rapid.IntRange(0, len(items)-1).Draw(t, "item")].TransactionID, AnsweredAt: w.now,
					Answer: rapid.SampledFrom([]checkout.ConfirmationAnswer{checkout.AnswerAccepted, checkout.AnswerAccepted, checkout.AnswerRefused, checkout.AnswerFailed}).Draw(t, "answer"),
				}})
			},
			"refund": func(t *rapid.T) {
				refundSome(t, w, session(t))
			},
			"resolve": func(t *rapid.T) {
				id := session(t)
				if cases := w.sessions[id].Cases; len(cases) > 0 {
					c := rapid.SampledFrom(cases).Draw(t, "case")
					w.resolve(id, c.ID, rapid.SampledFrom([]casework.Resolution{
						checkout.ResolutionHonour, checkout.ResolutionRefund, checkout.ResolutionApproved, checkout.ResolutionRefused,
						casework.ResolutionAcknowledge, checkout.ResolutionRetry, checkout.ResolutionRecordedByHand,
					}).Draw(t, "resolution"))
				}
			},
			"wait": func(t *rapid.T) {
				w.advance(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, 10 * time.Minute, 2 * time.Hour, 30 * time.Hour, 80 * time.Hour}).Draw(t, "wait"))
			},
			"": func(t *rapid.T) {
				claimInvariants(t, w, dues)
				returnInvariants(t, w)
			},
		})
	})
}

func claimInvariants(t *rapid.T, w *world, dues []string) {
	for _, ref := range dues {
		var holders, unaccepted, asked []string
		for id, s := range w.sessions {
			for _, due := range s.Dues() {
				if due.ERPDueRef != ref {
					continue
				}
				if s.DueState(due) != checkout.DuePayable {
					holders = append(holders, id)
				}
				if s.Paid() && s.Returned(due).IsZero() && due.Confirmation.SettledAt.IsZero() && due.Confirmation.Status != "" {
					unaccepted = append(unaccepted, id)
				}
				if s.InFlight() {
					asked = append(asked, id)
				}
			}
		}
		claim := w.claims[checkout.ClaimKey{TenantID: agency, ERPDueRef: ref}]
		slices.Sort(holders)
		got := slices.Sorted(slices.Values(claim.Holders))
		if !slices.Equal(got, holders) {
			t.Fatalf("%s is claimed by %v, the sessions say %v", ref, got, holders)
		}
		if len(unaccepted) > 1 {
			t.Fatalf("%s is paid by %v, and the ERP has accepted neither", ref, unaccepted)
		}
		if len(asked)+len(unaccepted) > 1 {
			t.Fatalf("%s is paid by %v, and money is asked for %v", ref, unaccepted, asked)
		}
	}
}

// erp is an ERP whose list of dues lags behind what it has accepted.
type erp struct {
	owed    map[string]int64
	changes []change // in order of time
}

// change is a payment that the ERP took off, or put on again.
type change struct {
	due    string
	amount int64
	at     time.Time
}

// list returns what the ERP says is owed of a due, when it shows what happened up to a time.
func (e *erp) list(due string, shown time.Time) int64 {
	owed := e.owed[due]
	for _, c := range e.changes {
		if c.due == due && !c.at.After(shown) {
			owed -= c.amount
		}
	}
	return owed
}

// Citizens pay dues in parts, in carts of theirs and with reversals, from lists that lag up to
// two days. Together they never pay more of a due than was owed.
func TestCitizensNeverPayMoreThanIsOwed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		books := erp{owed: map[string]int64{"D": 5000, "E": 3000}}
		var ids []string
		told := map[string]bool{}
		session := func(t *rapid.T) string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		approve := func(id string) {
			w.outcome(id, checkout.Outcome{Status: checkout.OutcomeApproved, Amount: w.sessions[id].Amount + 75, Currency: "XAF", HonourLate: true, ApprovedAt: w.now})
		}
		accept := func(id string) {
			w.advance(time.Second)
			s := w.sessions[id]
			if !s.Paid() {
				return
			}
			for _, due := range s.Kept() { // people have told it of the others
				if !told[due.TransactionID] {
					books.changes = append(books.changes, change{due.ERPDueRef, due.Amount, w.now})
				}
				told[due.TransactionID] = true // the same transaction again changes nothing
				w.ask(checkout.Command{SessionID: id, Do: checkout.Confirmed{TransactionID: due.TransactionID, Answer: checkout.AnswerAccepted, AnsweredAt: w.now}})
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": func(t *rapid.T) {
				s := w.cart(fmt.Sprintf("s%03d", len(w.keys)))
				lag := time.Duration(rapid.IntRange(0, 48).Draw(t, "lag")) * time.Hour
				for i, due := range rapid.SampledFrom([][]string{{"D"}, {"E"}, {"D", "E"}}).Draw(t, "dues") {
					left := books.list(due, w.now.Add(-lag))
					if left <= 0 {
						return // the list shows it as paid
					}
					amount := rapid.Int64Range(1, left).Draw(t, "amount")
					s.Items = append(s.Items, checkout.Item{ERPDueRef: due, Amount: amount, Outstanding: left, TransactionID: fmt.Sprint(s.ID, "-", i), NoticeRef: "n"})
					s.Amount += amount
				}
				if w.make(s, rapid.Bool().Draw(t, "replace")).Code != checkout.CodeOK {
					return
				}
				ids = append(ids, s.ID)
				for _, do := range []func(string){func(id string) { w.request(id) }, approve, accept}[:rapid.IntRange(0, 3).Draw(t, "done at once")] {
					do(s.ID)
				}
			},
			"cancel":  func(t *rapid.T) { w.cancel(session(t)) },
			"request": func(t *rapid.T) { w.request(session(t)) },
			"approve": func(t *rapid.T) { approve(session(t)) },
			"refuse":  func(t *rapid.T) { w.outcome(session(t), checkout.Outcome{Status: checkout.OutcomeRefused}) },
			"accept":  func(t *rapid.T) { accept(session(t)) },
			"refund": func(t *rapid.T) {
				w.advance(time.Second)
				id := session(t)
				refundSome(t, w, id)
				for _, c := range w.sessions[id].Cases {
					if c.Open() && c.Kind == checkout.CaseRefundRequest {
						w.resolve(id, c.ID, checkout.ResolutionRefund)
					}
				}
			},
			"staff tell the ERP of a reversal": func(t *rapid.T) {
				w.advance(time.Second)
				id := session(t)
				for _, c := range w.sessions[id].Cases {
					if !c.Open() || c.Kind != checkout.CaseReversal {
						continue
					}
					for _, due := range w.sessions[id].Dues() {
						of := len(c.TransactionIDs) == 0 || slices.Contains(c.TransactionIDs, due.TransactionID)
						if of && told[due.TransactionID] {
							books.changes = append(books.changes, change{due.ERPDueRef, -due.Amount, w.now})
						}
					}
					w.resolve(id, c.ID, casework.ResolutionAcknowledge)
				}
			},
			"late money is given back": func(t *rapid.T) {
				w.advance(time.Second)
				id := session(t)
				for _, c := range w.sessions[id].Cases {
					if c.Open() && (c.Kind == checkout.CaseLatePayment || c.Kind == checkout.CaseMismatch) {
						w.resolve(id, c.ID, checkout.ResolutionRefund)
					}
				}
			},
			"wait": func(t *rapid.T) {
				w.advance(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 10 * time.Hour, 40 * time.Hour}).Draw(t, "wait"))
			},
			"": func(t *rapid.T) {
				sessions := slices.Collect(maps.Values(w.sessions))
				for due := range books.owed {
					c := w.claims[checkout.ClaimKey{TenantID: agency, ERPDueRef: due}]
					if said := checkout.AcceptedPayments(sessions, due, w.now); said.Left != c.Left || !said.AcceptedAt.Equal(c.AcceptedAt) {
						t.Fatalf("%s: the sessions say %+v, the claim %+v", due, said, c)
					}
				}
				paid := map[string]int64{}
				for _, s := range w.sessions {
					for _, due := range s.Dues() {
						if s.Paid() && s.Returned(due).IsZero() {
							paid[due.ERPDueRef] += due.Amount
						}
					}
				}
				for due, sum := range paid {
					if sum > books.owed[due] {
						t.Fatalf("%d is paid of %s, %d was owed", sum, due, books.owed[due])
					}
				}
			},
		})
	})
}
