package checkout_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/checkout"
)

const updated = checkout.EventUpdated

// payment is a payment of the deprecated cash-in surface as the edge sends it.
func (w *world) payment(id, external string, kind checkout.CashinKind) checkout.Session {
	s := draft(id, external)
	s.ExpiresAt = w.now.Add(24 * time.Hour)
	s.Cashin = &checkout.Cashin{Kind: kind, PaymentID: int64(1000 + len(w.events)), Type: "service", Items: []byte(`[]`), WebhookURL: "https://partner.example/" + id}
	return s
}

func (w *world) init(s checkout.Session) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: s.ID, ApplicationID: app, Do: checkout.InitCheckout{Session: s}})
}

// initCheckout sends init-checkout of an externalNumber and returns the payment.
func (w *world) initCheckout(id, external string) checkout.Session {
	w.t.Helper()
	a := w.init(w.payment(id, external, checkout.CashinInit))
	wantCode(w.t, a, checkout.CodeOK)
	return *a.Session
}

func (w *world) partnerPay(id, external string) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.PartnerPay{
		Session: w.payment(id, external, checkout.CashinPartner), Collect: collection("c-" + id),
		Word: &checkout.ReplyTo{CorrelationID: "word-" + id, Partition: 3},
	}})
}

func (w *world) lookUp(number string) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{ApplicationID: app, Do: checkout.LookUp{Number: number}})
}

func (w *world) external(number string) checkout.External {
	return w.externals[checkout.ExternalKey{ApplicationID: app, ExternalNumber: number}]
}

// The review page shows 5,000. The partner's program changes the amount to 6,000. The
// citizen's confirmation of the old total debits nothing.
func TestInitCheckoutUpdatesACreatedPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.payment("a", "case-1", checkout.CashinInit)
	first.Description, first.Note, first.SuccessURL, first.CustomerSealed = "school fee", "n", "https://partner.example/ok", []byte("sealed as a")
	wantCode(t, w.init(first), checkout.CodeOK)
	before := w.sessions["a"]
	w.advance(time.Hour)

	second := w.payment("b", "case-1", checkout.CashinInit)
	second.Amount, second.Offers[0].Fee = 6000, 90
	second.CancelURL, second.CustomerSealed = "https://partner.example/back", []byte("sealed as b")
	a := w.init(second)
	wantCode(t, a, checkout.CodeOK)
	s := *a.Session
	if s.ID != "a" || s.Cashin.Number != before.Cashin.Number || s.Cashin.PaymentID != before.Cashin.PaymentID || s.PaymentRef != before.PaymentRef ||
		s.NoticeID != before.NoticeID || s.TransactionID != before.TransactionID || !s.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("what was told has changed:\n%+v %+v\nwas\n%+v %+v", s, s.Cashin, before, before.Cashin)
	}
	if s.Amount != 6000 || s.Offers[0].Fee != 90 || s.Description != "" || s.Note != "" || s.SuccessURL != "" || s.CancelURL != "https://partner.example/back" ||
		s.Cashin.WebhookURL != "https://partner.example/b" || !s.ExpiresAt.Equal(w.now.Add(24*time.Hour)) {
		t.Errorf("not everything is replaced: %+v %+v", s, s.Cashin)
	}
	if s.ContactID() != "b" || before.ContactID() != "a" {
		t.Errorf("contact data are sealed as %s, before as %s", s.ContactID(), before.ContactID())
	}
	w.want("a", checkout.StatusOpen, created, updated)
	if _, made := w.sessions["b"]; made || w.months[checkout.MonthKey{ApplicationID: app, Month: "2611"}] != 1 {
		t.Errorf("the update made a payment, or took a number: %v", w.months)
	}

	wantCode(t, w.collect("a"), checkout.CodeTotalChanged)
	if len(w.requests) > 0 {
		t.Fatalf("an operator is asked for %+v", w.requests)
	}
	again := collection("c-a")
	again.Total = 6090
	wantCode(t, w.ask(checkout.Command{SessionID: "a", Do: again}), checkout.CodeOK)
	if len(w.requests) != 1 || w.requests[0].Session.Collection.Amount != 6090 {
		t.Errorf("operators are asked for %+v", w.requests)
	}
}

// Only a created payment is updated (contract, "Deprecated cash-in payment status").
func TestInitCheckoutAfterTheFirstIsNotCreated(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world){
		"pending":   func(w *world) { w.collect("a") },
		"completed": func(w *world) { w.collect("a"); w.outcome("a", approved()) },
		"failed":    func(w *world) { w.collect("a"); w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused}) },
		"cancelled": func(w *world) { w.cancel("a") },
		"expired":   func(w *world) { w.now = w.now.Add(24 * time.Hour) }, // the tick is late
		"reserved": func(w *world) {
			wantCode(w.t, w.desk("c01").reserve("a", "k1"), checkout.CodeOK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.payment("a", "case-1", checkout.CashinInit)
			s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
			w.init(s)
			do(w)
			before := w.sessions["a"].Collection
			b := w.initCheckout("b", "case-1")
			if b.ID != "b" || b.Cashin.Number != "T2611000002" {
				t.Errorf("the answer is %s %+v", b.ID, b.Cashin)
			}
			if !reflect.DeepEqual(w.sessions["a"].Collection, before) {
				t.Errorf("the first payment's collection has changed: %+v", w.sessions["a"].Collection)
			}
			if c := w.initCheckout("c", "case-1"); c.ID != "b" {
				t.Errorf("a third init updates %s, not the latest", c.ID)
			}
		})
	}
}

func TestPaymentStatus(t *testing.T) { // contract, "Deprecated cash-in payment status"
	t.Parallel()
	for name, row := range map[string]struct {
		do   func(w *world)
		want checkout.PaymentStatus
	}{
		"open":           {func(*world) {}, checkout.PaymentCreated},
		"collecting":     {func(w *world) { w.collect("a") }, checkout.PaymentPending},
		"paid":           {func(w *world) { w.collect("a"); w.outcome("a", approved()) }, checkout.PaymentCompleted},
		"refused":        {func(w *world) { w.collect("a"); w.outcome("a", checkout.Outcome{Status: checkout.OutcomeRefused}) }, checkout.PaymentFailed},
		"window is over": {func(w *world) { w.collect("a"); w.advance(window) }, checkout.PaymentFailed},
		"cancelled":      {func(w *world) { w.cancel("a") }, checkout.PaymentCancelled},
		"expired":        {func(w *world) { w.advance(24 * time.Hour) }, checkout.PaymentFailed},
		"refused by reference, still open": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			if w.initCheckout("b", "case-1"); w.sessions["b"].ID == "" {
				w.t.Error("init-checkout updates a payment that has failed")
			}
		}, checkout.PaymentFailed},
		"refused by reference, and collecting again": {func(w *world) {
			w.byReference("a", "stranger")
			w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
			w.collect("a")
		}, checkout.PaymentPending},
		"given back": {func(w *world) {
			w.collect("a")
			w.outcome("a", approved())
			a := w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff", Reason: "r"}})
			wantCode(w.t, w.resolve("a", a.CaseID, checkout.ResolutionRefund), checkout.CodeOK)
		}, checkout.PaymentCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.initCheckout("a", "case-1")
			row.do(w)
			if a := w.lookUp(s.Cashin.Number); a.Session == nil || a.Session.PaymentStatus() != row.want {
				t.Errorf("the payment is %+v, want %s", a.Session, row.want)
			}
		})
	}
}

// partners/payments creates and collects in one decision, each time.
func TestPartnerPay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.initCheckout("i", "case-1")
	for n, id := range []string{"a", "b"} {
		a := w.partnerPay(id, "case-1")
		wantCode(t, a, checkout.CodeOK)
		if s := a.Session; s.ID != id || s.PaymentStatus() != checkout.PaymentPending || s.Cashin.Number != fmt.Sprintf("T2611%06d", n+2) || s.Collection.Amount != 5075 {
			t.Errorf("the answer is %+v %+v", s, s.Cashin)
		}
		w.want(id, checkout.StatusOpen, created, requested)
		r := w.requests[n]
		if r.Kind != checkout.RequestCollect || r.Session.Collection.ID != "c-"+id || r.Word == nil || *r.Word != (checkout.ReplyTo{CorrelationID: "word-" + id, Partition: 3}) {
			t.Errorf("the request is %+v", r)
		}
	}
	w.want("i", checkout.StatusOpen, created) // still to be updated, and still payable
	wantCode(t, w.collect("i"), checkout.CodeOK)
	w.advance(10 * time.Second)
	for _, r := range w.requests[3:] {
		if r.Word != nil {
			t.Errorf("an enquiry answers somebody: %+v", r)
		}
	}
}

// A payment that cannot begin leaves nothing, not even a gap in the numbers.
func TestPartnerPayIsRefusedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pay := func(change func(do *checkout.PartnerPay)) checkout.Answer {
		do := checkout.PartnerPay{Session: w.payment("a", "case-1", checkout.CashinPartner), Collect: collection("c-a")}
		change(&do)
		return w.ask(checkout.Command{SessionID: "a", ApplicationID: app, Do: do})
	}
	wantCode(t, pay(func(do *checkout.PartnerPay) { do.Collect.OfferID = checkout.OfferCard }), checkout.CodeOfferUnknown)
	wantCode(t, pay(func(do *checkout.PartnerPay) { do.Collect.Total = 5000 }), checkout.CodeTotalChanged)
	wantCode(t, pay(func(do *checkout.PartnerPay) {
		do.Session.Offers = []checkout.Offer{{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash}}
		do.Collect.OfferID, do.Collect.Total = checkout.OfferCashAgency, 5000
	}), checkout.CodeOfferUnknown)
	if len(w.events)+len(w.sessions)+len(w.requests)+len(w.months)+len(w.numbers) > 0 {
		t.Errorf("something is left: %v %v", w.events, w.months)
	}
}

// The month is that of the stamp in the Congo, and each month begins at 1 in each
// application and mode.
func TestNumbersOfMonths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := func(at time.Time, application string, live bool) string {
		t.Helper()
		w.now = at
		s := w.payment(fmt.Sprint("s", len(w.events)), fmt.Sprint("case", len(w.events)), checkout.CashinInit)
		s.ApplicationID, s.Live = application, live
		a := w.ask(checkout.Command{SessionID: s.ID, ApplicationID: application, Live: live, Do: checkout.InitCheckout{Session: s}})
		wantCode(t, a, checkout.CodeOK)
		return a.Session.Cashin.Number
	}
	last := time.Date(2026, 12, 31, 22, 59, 59, 0, time.UTC)
	for _, row := range []struct {
		at          time.Time
		application string
		live        bool
		want        string
	}{
		{last, app, false, "T2612000001"},
		{last, app, false, "T2612000002"},
		{last, app, true, "T2612000001"},
		{last, "another", false, "T2612000001"},
		{last.Add(time.Second), app, false, "T2701000001"}, // midnight in Brazzaville
		{last, app, false, "T2612000003"},                  // the stamp of a clock that is behind
		{last.Add(time.Second), app, false, "T2701000002"},
	} {
		if got := number(row.at, row.application, row.live); got != row.want {
			t.Errorf("at %s: %s, want %s", row.at, got, row.want)
		}
	}
}

func TestNumbersOfAMonthAreExhausted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := checkout.MonthKey{ApplicationID: app, Month: "2611"}
	w.months[k] = checkout.MaxNumber - 1
	if s := w.initCheckout("a", "case-1"); s.Cashin.Number != "T2611999999" {
		t.Errorf("the last number is %s", s.Cashin.Number)
	}
	wantCode(t, w.partnerPay("b", "case-2"), checkout.CodeNumbersExhausted)
	wantCode(t, w.init(w.payment("c", "case-2", checkout.CashinInit)), checkout.CodeNumbersExhausted)
	if len(w.sessions) != 1 || w.months[k] != checkout.MaxNumber || w.external("case-2").InitSessionID != "" {
		t.Errorf("something was created: %v %v", w.sessions, w.months)
	}
	if s := w.initCheckout("d", "case-1"); s.ID != "a" {
		t.Errorf("an update needs no number, and made %s", s.ID)
	}
}

// reading counts reads of a world.
type reading struct {
	*world
	numbers, sessions int
}

func (r *reading) Numbered(k checkout.NumberKey) string { r.numbers++; return r.world.Numbered(k) }

func (r *reading) Session(id string) (checkout.Session, bool) {
	r.sessions++
	return r.world.Session(id)
}

// A foreign number and an unknown one have the same answer after the same reads.
func TestLookUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := w.initCheckout("a", "case-1").Cashin.Number
	look := func(application string, live bool, number string) checkout.Answer {
		return w.ask(checkout.Command{ApplicationID: application, Live: live, Do: checkout.LookUp{Number: number}})
	}
	wantCode(t, look(app, false, number), checkout.CodeOK)
	none := look(app, false, "T2611000099")
	wantCode(t, none, checkout.CodeSessionNotFound)
	for name, a := range map[string]checkout.Answer{
		"foreign": look("another", false, number), "other mode": look(app, true, number), "malformed": look(app, false, "T26\x00"), "nobody's": look("", false, number),
	} {
		if !reflect.DeepEqual(a, none) {
			t.Errorf("%s answers %+v, an unknown number %+v", name, a, none)
		}
	}
	for _, cmd := range []checkout.Command{
		{ApplicationID: app, Do: checkout.LookUp{Number: "T2611000099"}}, {ApplicationID: "another", Do: checkout.LookUp{Number: number}}, {ApplicationID: app, Do: checkout.LookUp{}},
	} {
		r := &reading{world: w}
		if _, err := checkout.Decide(r, cmd); err != nil || r.numbers != 1 || r.sessions != 0 {
			t.Errorf("%+v reads %d numbers and %d sessions, %v: the work tells that the payment exists", cmd, r.numbers, r.sessions, err)
		}
	}
	w.now = w.now.Add(24 * time.Hour) // the tick is late, and the answer does not depend on it
	if a := look(app, false, number); a.Session.PaymentStatus() != checkout.PaymentFailed {
		t.Errorf("past its lifetime it is %s", a.Session.PaymentStatus())
	}
}

// An externalNumber and an order_id that are equal do not block each other.
func TestSurfacesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wantCode(t, w.create("m", "same"), checkout.CodeOK)
	w.initCheckout("a", "same")
	wantCode(t, w.partnerPay("b", "same"), checkout.CodeOK)
	w.outcome("b", approved())
	w.collect("m")
	w.outcome("m", approved())
	wantCode(t, w.collect("a"), checkout.CodeOK)
	w.outcome("a", approved())
	for _, id := range []string{"m", "a", "b"} {
		if !w.sessions[id].Paid() {
			t.Errorf("%s is %s", id, w.sessions[id].Status)
		}
	}
	wantCode(t, w.create("n", "same"), checkout.CodeOrderPaid)
	if got := w.external("same"); got.Paid != 2 {
		t.Errorf("the externalNumber has %+v", got)
	}
}

// Before the hosted page collects, the operators of undecided payments of the
// externalNumber are asked. What arrived late is not collected again.
func TestUndecidedPaymentsOfAnExternalNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wantCode(t, w.partnerPay("a", "case-1"), checkout.CodeOK)
	w.advance(window)
	w.initCheckout("b", "case-1")
	w.advance(time.Minute)
	asked := len(w.requests)
	wantCode(t, w.collect("b"), checkout.CodePreviousUndecided)
	if len(w.requests) != asked+1 || w.requests[asked].Kind != checkout.RequestEnquire || w.requests[asked].Session.ID != "a" {
		t.Fatalf("nobody asks about a: %+v", w.requests[asked:])
	}
	wantCode(t, w.partnerPay("c", "case-1"), checkout.CodeOK) // always a new payment
	w.outcome("a", approved())
	wantCode(t, w.collect("b"), checkout.CodeOrderUnderReview)
	c := w.openCase("a")
	wantCode(t, w.resolve("a", c.ID, checkout.ResolutionRefund), checkout.CodeOK)
	wantCode(t, w.collect("b"), checkout.CodeOK)
}

// A partner may give all its payments the same externalNumber: the entry stays small, and
// all of its undecided payments count.
func TestUndecidedPaymentsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const payments = 50
	for n := range payments {
		wantCode(t, w.partnerPay(fmt.Sprintf("p%02d", n), "shop"), checkout.CodeOK)
	}
	w.advance(window)
	if e := w.external("shop"); e.Undecided != payments || len(e.Ask) != 20 || e.Ask[19] == e.Ask[18] {
		t.Fatalf("the entry is %+v", e)
	}
	w.initCheckout("i", "shop")
	for n := range payments {
		wantCode(t, w.collect("i"), checkout.CodePreviousUndecided)
		w.outcome(fmt.Sprintf("p%02d", n), checkout.Outcome{Status: checkout.OutcomeRefused})
	}
	if e := w.external("shop"); e.Undecided != 0 || len(e.Ask) != 0 {
		t.Errorf("the entry is %+v", e)
	}
	wantCode(t, w.collect("i"), checkout.CodeOK)
}

// Late money is honoured on its own only when nothing else of the externalNumber is open,
// paid or undecided.
func TestPolicyHonoursLatePaymentsOfAnExternalNumber(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		other func(w *world)
		want  bool
	}{
		"alone":                  {func(*world) {}, true},
		"another externalNumber": {func(w *world) { w.partnerPay("b", "case-2") }, true},
		"a ministry session":     {func(w *world) { w.create("b", "case-1") }, true},
		"another is created":     {func(w *world) { w.initCheckout("b", "case-1") }, false},
		"another is pending":     {func(w *world) { w.partnerPay("b", "case-1") }, false},
		"another is completed":   {func(w *world) { w.partnerPay("b", "case-1"); w.outcome("b", approved()) }, false},
		"another was refused": {func(w *world) {
			w.partnerPay("b", "case-1")
			w.outcome("b", checkout.Outcome{Status: checkout.OutcomeRefused})
		}, true},
		"another is undecided":         {func(w *world) { w.partnerPay("b", "case-1"); w.cancel("b") }, false},
		"another's late money is held": {func(w *world) { w.partnerPay("b", "case-1"); w.cancel("b"); w.outcome("b", approved()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.partnerPay("a", "case-1")
			w.advance(window)
			row.other(w)
			o := approved()
			o.HonourLate, o.ApprovedAt = true, w.now
			w.outcome("a", o)
			if got := w.sessions["a"].Paid(); got != row.want {
				t.Fatalf("paid %v, want %v", got, row.want)
			}
			if row.want {
				return
			}
			c := w.openCase("a") // staff may honour it all the same
			wantCode(t, w.resolve("a", c.ID, checkout.ResolutionHonour), checkout.CodeOK)
			if s := w.sessions["a"]; s.PaymentStatus() != checkout.PaymentCompleted {
				t.Errorf("the payment is %s", s.PaymentStatus())
			}
		})
	}
}

// An operator approves a payment by reference that it had refused, after another payment of the
// externalNumber was paid: the money is a case, and the number is not paid twice without a person.
func TestMoneyAfterARefusalOfAnExternalNumber(t *testing.T) {
	t.Parallel()
	for _, elsewhere := range []bool{false, true} {
		w := newWorld(t)
		w.initCheckout("a", "case-1")
		wantCode(t, w.byReference("a", "stranger"), checkout.CodeOK)
		w.outcome("a", checkout.Outcome{CollectionID: "stranger", Status: checkout.OutcomeRefused})
		if elsewhere {
			wantCode(t, w.partnerPay("b", "case-1"), checkout.CodeOK)
			w.outcome("b", approved())
		}
		w.stranger("a", 5075)
		if paid := w.sessions["a"].Paid(); paid == elsewhere {
			t.Errorf("paid elsewhere %v, and then paid %v", elsewhere, paid)
		}
		if !elsewhere {
			continue
		}
		if c := w.openCase("a"); c.Kind != checkout.CaseOrphan || !c.Proven || c.Amount != 5075 {
			t.Errorf("the money is the case %+v", c)
		}
	}
}

// Staff who honour a late payment close the page of the latest payment of the externalNumber,
// which could collect the sum again.
func TestHonouredPaymentClosesTheNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.initCheckout("a", "case-1")
	w.collect("a")
	w.advance(window)
	w.initCheckout("b", "case-1")
	w.outcome("a", approved())
	wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeOK)
	if a, b := w.sessions["a"], w.sessions["b"]; !a.Paid() || b.Status != checkout.StatusCancelled {
		t.Errorf("the payments are %s and %s", a.PaymentStatus(), b.PaymentStatus())
	}

	w = newWorld(t)
	w.initCheckout("a", "case-1")
	w.collect("a")
	w.advance(window - time.Minute)
	w.initCheckout("b", "case-1")
	wantCode(t, w.collect("b"), checkout.CodeOK)
	w.advance(2 * time.Minute)
	w.outcome("a", approved())
	wantCode(t, w.resolve("a", w.openCase("a").ID, checkout.ResolutionHonour), checkout.CodeInFlight)
}

// An update may come between a clerk's look-up and the cash. The cash is on record.
func TestCashOfAnUpdatedPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cash := checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50}
	first := w.payment("a", "case-1", checkout.CashinInit)
	first.Offers = append(first.Offers, cash)
	wantCode(t, w.init(first), checkout.CodeOK)
	wantCode(t, w.desk("c01").reserve("a", "k1"), checkout.CodeOK)
	w.advance(11 * time.Minute)
	next := w.payment("b", "case-1", checkout.CashinInit)
	next.Amount, next.Offers = 6000, append(next.Offers, cash)
	if got := w.init(next).Session; got.ID != "a" || got.Amount != 6000 {
		t.Fatalf("the update made %+v", got)
	}
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeCase)
	if c := w.openCase("a"); c.Kind != checkout.CaseOrphan || c.Amount != 5050 || c.By != "c01" {
		t.Errorf("the case is %+v", c)
	}
	wantCode(t, w.desk("c01").take("a", "k1"), checkout.CodeCase) // once
	if n := len(w.sessions["a"].Cases); n != 1 {
		t.Errorf("%d cases", n)
	}
}

func TestReversalTellsWhetherAnotherPaymentIsPaid(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{false, true} {
		w := newWorld(t)
		w.partnerPay("a", "case-1")
		w.outcome("a", approved())
		if other {
			w.partnerPay("b", "case-1")
			w.outcome("b", approved())
		}
		a := w.ask(checkout.Command{SessionID: "a", Do: checkout.OpenRefundRequest{By: "staff", Reason: "r"}})
		w.resolve("a", a.CaseID, checkout.ResolutionRefund)
		i := slices.IndexFunc(w.events, func(e checkout.Event) bool { return e.Type == returned })
		if got := w.events[i].Detail[checkout.DetailOrderPaid]; got != fmt.Sprint(other) {
			t.Errorf("another is paid: %v; the event says %s", other, got)
		}
	}
}

// An archived payment keeps what check-status and the webhook need, without texts that may
// name a person.
func TestArchivedPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.payment("a", "case-1", checkout.CashinInit)
	s.CustomerSealed, s.Description = []byte("sealed"), "fee of Adama"
	w.init(s)
	w.collect("a")
	w.outcome("a", approved())
	w.advance(31 * 24 * time.Hour)
	got := w.lookUp("T2611000001").Session
	if !got.Archived || len(got.Cashin.Items) > 0 || got.HoldsPersonalData() {
		t.Errorf("the archived payment holds %+v %+v", got, got.Cashin)
	}
	if got.PaymentStatus() != checkout.PaymentCompleted || got.Cashin.PaymentID == 0 || got.Cashin.WebhookURL == "" || got.OrderID != "case-1" || got.Collection.OperatorRef != "op1" {
		t.Errorf("the archived payment lost %+v %+v", got, got.Cashin)
	}
}

// For any sequence of calls, confirmations, reports and time: numbers have no gap and name
// one payment, an update changes nothing that was told, every payment is asked for at most
// once, and the entry of an externalNumber agrees with its payments.
func TestRandomPayments(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		n, asked := 0, 0
		var ids []string
		send := func(cmd checkout.Command) checkout.Answer {
			asked++
			return w.ask(cmd)
		}
		external := func(t *rapid.T) string { return rapid.SampledFrom([]string{"x1", "x2"}).Draw(t, "external") }
		pick := func(t *rapid.T) string {
			if len(ids) == 0 {
				return "none"
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		made := func(id string) {
			if _, ok := w.sessions[id]; ok {
				ids = append(ids, id)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"init": func(t *rapid.T) {
				n++
				s := w.payment(fmt.Sprintf("s%03d", n), external(t), checkout.CashinInit)
				s.Cashin.PaymentID = int64(n)
				s.ExpiresAt = w.now.Add(time.Hour)
				s.Amount, s.Live = rapid.SampledFrom([]int64{5000, 6000}).Draw(t, "amount"), rapid.Bool().Draw(t, "live")
				s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
				before := maps.Clone(w.sessions)
				a := send(checkout.Command{SessionID: s.ID, ApplicationID: app, Live: s.Live, Do: checkout.InitCheckout{Session: s}})
				if a.Code != checkout.CodeOK || a.Session.Amount != s.Amount || a.Session.PaymentStatus() != checkout.PaymentCreated {
					t.Fatalf("init answers %+v", a)
				}
				if was, known := before[a.Session.ID]; known && was.PaymentStatus() != checkout.PaymentCreated {
					t.Fatalf("init updated %+v", was)
				}
				made(s.ID)
			},
			"pay": func(t *rapid.T) {
				n++
				id := fmt.Sprintf("s%03d", n)
				s := w.payment(id, external(t), checkout.CashinPartner)
				s.Cashin.PaymentID = int64(n)
				s.ExpiresAt = w.now.Add(time.Hour)
				a := send(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.PartnerPay{Session: s, Collect: collection("c-" + id)}})
				if a.Code != checkout.CodeOK || a.Session.ID != id || a.Session.PaymentStatus() != checkout.PaymentPending {
					t.Fatalf("pay answers %+v", a)
				}
				made(id)
			},
			"create": func(t *rapid.T) { // of the ministry API
				n++
				s := draft(fmt.Sprintf("s%03d", n), external(t))
				s.ExpiresAt = w.now.Add(time.Hour)
				send(checkout.Command{SessionID: s.ID, Do: checkout.Create{Session: s, IdempotencyKey: s.ID, CreationsPerMinute: 1000}})
				made(s.ID)
			},
			"look up": func(t *rapid.T) {
				id := pick(t)
				s := w.sessions[id]
				if s.Cashin == nil {
					return
				}
				if a := send(checkout.Command{ApplicationID: app, Live: s.Live, Do: checkout.LookUp{Number: s.Cashin.Number}}); a.Session == nil || a.Session.ID != id {
					t.Fatalf("%s finds %+v, want %s", s.Cashin.Number, a.Session, id)
				}
			},
			"collect": func(t *rapid.T) {
				id := pick(t)
				do := collection("c-" + id)
				if rapid.Bool().Draw(t, "current") {
					do.Total = w.sessions[id].Amount + 75
				}
				send(checkout.Command{SessionID: id, Do: do})
			},
			"reserve": func(t *rapid.T) {
				id := pick(t)
				send(checkout.Command{SessionID: id, Do: checkout.Reserve{CollectionID: "k-" + id, By: "c01", Window: 10 * time.Minute}})
			},
			"take": func(t *rapid.T) {
				id := pick(t)
				send(checkout.Command{SessionID: id, Do: checkout.Take{CollectionID: "k-" + id, By: "c01", Total: w.sessions[id].Amount + 50}})
			},
			"cancel": func(t *rapid.T) {
				send(checkout.Command{SessionID: pick(t), Do: checkout.Cancel{By: rapid.SampledFrom([]checkout.Canceller{checkout.ByCitizen, checkout.ByIntegrator}).Draw(t, "by")}})
			},
			"outcome": func(t *rapid.T) {
				id := pick(t)
				o := checkout.Outcome{
					CollectionID: "c-" + id, Source: checkout.SourceCallback, Currency: "XAF", HonourLate: rapid.Bool().Draw(t, "policy"), ApprovedAt: w.now,
					Amount: rapid.SampledFrom([]int64{5075, 6075}).Draw(t, "amount"),
					Status: rapid.SampledFrom([]checkout.OutcomeStatus{checkout.OutcomeApproved, checkout.OutcomeRefused, checkout.OutcomePending, checkout.OutcomeUnknown}).Draw(t, "status"),
				}
				send(checkout.Command{SessionID: id, Do: o})
			},
			"time": func(t *rapid.T) {
				w.advance(time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "d")).Truncate(time.Millisecond))
			},
			"months": func(t *rapid.T) { w.advance(time.Duration(rapid.IntRange(1, 60).Draw(t, "days")) * 24 * time.Hour) },
			"staff": func(t *rapid.T) {
				resolveSome(t, w, pick(t), func(_ *rapid.T, cmd checkout.Command) { send(cmd) })
			},
			"resolve all": func(t *rapid.T) { resolveAll(t, w) },
			"": func(t *rapid.T) {
				invariants(t, w, asked)
				caseInvariants(t, w)
				paymentInvariants(t, w)
			},
		})
	})
}

func paymentInvariants(t *rapid.T, w *world) {
	numbers, ids := map[checkout.NumberKey]string{}, map[int64]string{}
	last := map[checkout.MonthKey]int{}
	externals := map[checkout.ExternalKey]checkout.External{}
	for id, s := range w.sessions {
		if s.Cashin == nil {
			continue
		}
		k := checkout.NumberKey{ApplicationID: s.ApplicationID, Live: s.Live, Number: s.Cashin.Number}
		if other, twice := numbers[k]; twice || w.numbers[k] != id {
			t.Fatalf("%s is the number of %s and %q; the state says %q", s.Cashin.Number, id, other, w.numbers[k])
		}
		if other, twice := ids[s.Cashin.PaymentID]; twice {
			t.Fatalf("paymentId %d is that of %s and %s", s.Cashin.PaymentID, id, other)
		}
		numbers[k], ids[s.Cashin.PaymentID] = id, id
		last[checkout.MonthKey{ApplicationID: s.ApplicationID, Live: s.Live, Month: s.Cashin.Number[1:5]}]++
		x := checkout.ExternalKey{ApplicationID: s.ApplicationID, Live: s.Live, ExternalNumber: s.OrderID}
		e := externals[x]
		if s.Status == checkout.StatusOpen {
			e.Open++
		}
		if s.Paid() {
			e.Paid++
		}
		if s.Ended() && !s.Collection.Final() && !s.Collection.Mismatched {
			e.Undecided++
			e.Ask = append(e.Ask, id)
		}
		if slices.Contains(w.orders[checkout.OrderKeyOf(s)].Late, id) {
			e.Late++
		}
		if s.Cashin.Kind == checkout.CashinInit && id > e.InitSessionID {
			e.InitSessionID = id // ids grow
		}
		externals[x] = e
	}
	for k, n := range last { // the numbers are 1 to n: they are different, and none is above n
		if w.months[k] != n {
			t.Fatalf("%s has %d payments and ends at %d: a gap", k.Month, n, w.months[k])
		}
	}
	for k, want := range externals {
		got := w.externals[k]
		got.Ask, want.Ask = slices.Clone(got.Ask), want.Ask[:min(len(want.Ask), 20)]
		if len(got.Ask) != len(want.Ask) {
			t.Fatalf("%s is asked about %v, want %d payments", k.ExternalNumber, got.Ask, len(want.Ask))
		}
		got.Ask, want.Ask = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("the state says of %s %+v, its payments say %+v", k.ExternalNumber, got, want)
		}
	}
	told := map[string]checkout.Session{}
	for _, e := range w.events {
		if e.Session.Cashin == nil {
			continue
		}
		first, known := told[e.SessionID]
		if !known {
			told[e.SessionID] = e.Session
			continue
		}
		if s := e.Session; s.Cashin.Number != first.Cashin.Number || s.Cashin.PaymentID != first.Cashin.PaymentID || s.PaymentRef != first.PaymentRef || s.TransactionID != first.TransactionID || s.OrderID != first.OrderID {
			t.Fatalf("%s changes what was told: %+v", e.Type, s)
		}
		if e.Type == updated && e.Session.Collection != nil {
			t.Fatalf("an update of %+v", e.Session)
		}
	}
}
