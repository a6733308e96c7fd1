package checkout_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/casework"
	"quittance/checkout"
)

// withTransfer makes a session that a bank transfer can also pay, for a fee of 100.
func (w *world) withTransfer(id, order string) {
	w.t.Helper()
	s := draft(id, order)
	s.ExpiresAt = w.now.Add(120 * time.Hour)
	s.Offers = append(s.Offers, checkout.Offer{ID: checkout.OfferBankTransfer, Channel: checkout.ChannelBankTransfer, Fee: 100},
		checkout.Offer{ID: checkout.OfferCashAgency, Channel: checkout.ChannelCash, Fee: 50})
	wantCode(w.t, w.ask(checkout.Command{SessionID: id, ApplicationID: app, Do: checkout.Create{
		Session: s, IdempotencyKey: "key-" + id, BodyHash: []byte(order), CreationsPerMinute: 1000,
	}}), checkout.CodeOK)
}

// transfer returns a credit of the total that fits a session.
func (w *world) transfer(id, entry string) checkout.Credit {
	s := w.sessions[id]
	return checkout.Credit{
		CollectionID: entry, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Amount: 5100, Currency: "XAF", Reference: "bank-" + entry,
		Account: "treasury", BookedAt: w.now.Add(-time.Hour),
	}
}

func (w *world) credit(id string, do checkout.Credit) checkout.Answer {
	w.t.Helper()
	return w.ask(checkout.Command{SessionID: id, Do: do})
}

func (w *world) withdraw(id, entry string, cause checkout.CreditCause) checkout.Answer {
	w.t.Helper()
	s := w.sessions[id]
	return w.ask(checkout.Command{SessionID: id, Do: checkout.CreditWithdrawn{CollectionID: entry, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Cause: cause}})
}

// openCases returns the open cases of a session.
func (w *world) openCases(id string) (out []checkout.Case) {
	for _, c := range w.sessions[id].Cases {
		if c.Open() {
			out = append(out, c)
		}
	}
	return out
}

func (w *world) wantCase(id string, kind casework.Kind, amount int64) checkout.Case {
	w.t.Helper()
	open := w.openCases(id)
	if len(open) != 1 || open[0].Kind != kind || open[0].Amount != amount {
		w.t.Fatalf("open cases %+v, not one %s of %d", open, kind, amount)
	}
	return open[0]
}

func TestTransferOfTheTotalCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withTransfer("s1", "o1")
	do := w.transfer("s1", "e1")
	do.BookedAt = w.now.Add(-70 * time.Hour) // the statement comes after a weekend
	wantCode(t, w.credit("s1", do), checkout.CodeOK)
	s := w.sessions["s1"]
	c := s.Collection
	if !s.Paid() || c.Amount != 5100 || c.Fee != 100 || c.Channel != checkout.ChannelBankTransfer || c.OperatorRef != "bank-e1" || c.Account != "treasury" {
		t.Fatalf("%+v %+v", s, c)
	}
	if !s.PaidAt().Equal(do.BookedAt) {
		t.Errorf("paid at %s, booked at %s", s.PaidAt(), do.BookedAt)
	}
	wantReplay(t, w.credit("s1", do), checkout.CodeOK) // camt.054, then camt.053
	if len(w.sessions["s1"].Cases) != 0 {
		t.Errorf("cases %+v", s.Cases)
	}
}

func TestTransfersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*checkout.Credit)
		reason string
	}{
		"one franc short": {func(do *checkout.Credit) { do.Amount = 5099 }, "not the total to pay"},
		"too much":        {func(do *checkout.Credit) { do.Amount = 6000 }, "not the total to pay"},
		"the due alone":   {func(do *checkout.Credit) { do.Amount = 5000 }, "not the total to pay"},
		"other currency":  {func(do *checkout.Credit) { do.Currency = "EUR" }, "not the currency of the payment"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withTransfer("s1", "o1")
			do := w.transfer("s1", "e1")
			c.change(&do)
			wantCode(t, w.credit("s1", do), checkout.CodeCase)
			got := w.wantCase("s1", checkout.CaseOrphan, do.Amount)
			if got.Reason != c.reason || !got.Proven || got.Expected != 5100 || got.Channel != checkout.ChannelBankTransfer {
				t.Errorf("%+v", got)
			}
			wantCode(t, w.collect("s1"), checkout.CodeOrderUnderReview) // the money has an exit first
			wantReplay(t, w.credit("s1", do), checkout.CodeOK)
			w.wantCase("s1", checkout.CaseOrphan, do.Amount)
		})
	}
}

func TestTransferOfAnotherPaymentIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*checkout.Command, *checkout.Credit){
		"agency":    func(_ *checkout.Command, do *checkout.Credit) { do.AgencyID = "another" },
		"reference": func(_ *checkout.Command, do *checkout.Credit) { do.PaymentRef = "9999999999999993" },
		"mode":      func(cmd *checkout.Command, _ *checkout.Credit) { cmd.Live = true },
		"session":   func(cmd *checkout.Command, _ *checkout.Credit) { cmd.SessionID = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withTransfer("s1", "o1")
			do := w.transfer("s1", "e1")
			cmd := checkout.Command{SessionID: "s1"}
			change(&cmd, &do)
			cmd.Do = do
			wantCode(t, w.ask(cmd), checkout.CodeSessionNotFound)
			if s := w.sessions["s1"]; s.Ended() || len(s.Cases) > 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestTransferBesideOtherMoney(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *world {
		t.Helper()
		w := newWorld(t)
		w.withTransfer("s1", "o1")
		return w
	}
	second := func(t *testing.T, w *world) {
		t.Helper()
		wantCode(t, w.credit("s1", w.transfer("s1", "e1")), checkout.CodeCase)
		if c := w.wantCase("s1", checkout.CaseOrphan, 5100); c.Reason != "another payment has paid, or may still pay" {
			t.Errorf("%+v", c)
		}
	}
	t.Run("paid by phone", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.collect("s1")
		w.outcome("s1", approved())
		second(t, w)
	})
	t.Run("the phone is asked", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.collect("s1")
		second(t, w)
		o := approved()
		o.Status = checkout.OutcomeRefused
		w.outcome("s1", o) // the session fails; the transfer pays it when staff say so
		c := w.wantCase("s1", checkout.CaseOrphan, 5100)
		wantCode(t, w.ask(checkout.Command{SessionID: "s1", Do: checkout.Resolve{CaseID: c.ID, Resolution: checkout.ResolutionHonour, By: "a", ApprovedBy: "b"}}), checkout.CodeOK)
		if s := w.sessions["s1"]; !s.Paid() || s.Collection.ID != "e1" || s.Collection.Account != "treasury" {
			t.Errorf("%+v %+v", s, s.Collection)
		}
	})
	t.Run("a second transfer", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		wantCode(t, w.credit("s1", w.transfer("s1", "e0")), checkout.CodeOK)
		second(t, w)
	})
	t.Run("a clerk counts notes", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		clerk := w.desk("clerk")
		wantCode(t, clerk.reserve("s1", "r1"), checkout.CodeOK)
		wantCode(t, w.credit("s1", w.transfer("s1", "e1")), checkout.CodeOK)
		wantCode(t, clerk.take("s1", "r1"), checkout.CodeCase) // the clerk hands the notes back
	})
	t.Run("after a refusal", func(t *testing.T) {
		t.Parallel()
		w := begin(t)
		w.collect("s1")
		o := approved()
		o.Status = checkout.OutcomeRefused
		w.outcome("s1", o)
		wantCode(t, w.credit("s1", w.transfer("s1", "e1")), checkout.CodeOK)
		w.wantCase("s1", checkout.CaseLatePayment, 5100)
	})
}

func TestLateTransfer(t *testing.T) {
	t.Parallel()
	for _, honour := range []bool{false, true} {
		t.Run(fmt.Sprint("honour ", honour), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withTransfer("s1", "o1")
			w.advance(130 * time.Hour) // ten hours after the end
			do := w.transfer("s1", "e1")
			do.HonourLate = honour
			wantCode(t, w.credit("s1", do), checkout.CodeOK)
			if honour {
				w.want("s1", checkout.StatusCompleted, checkout.EventCreated, checkout.EventExpired, checkout.EventCollectionRequested, checkout.EventLatePayment, checkout.EventCaseResolved, checkout.EventCompleted)
				return
			}
			w.want("s1", checkout.StatusExpired, checkout.EventCreated, checkout.EventExpired, checkout.EventCollectionRequested, checkout.EventLatePayment)
			w.wantCase("s1", checkout.CaseLatePayment, 5100)
		})
	}
}

func TestTransferForAnArchivedSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withTransfer("s1", "o1")
	w.advance(60 * 24 * time.Hour)
	if !w.sessions["s1"].Archived {
		t.Fatal("not archived")
	}
	wantCode(t, w.credit("s1", w.transfer("s1", "e1")), checkout.CodeOK)
	if c := w.wantCase("s1", checkout.CaseLatePayment, 5100); c.Channel != checkout.ChannelBankTransfer {
		t.Errorf("%+v", c)
	}
	short := w.transfer("s1", "e2")
	short.Amount = 4999
	wantCode(t, w.credit("s1", short), checkout.CodeCase)
}

// A transfer to a payment that offers none is money of the order all the same.
func TestTransferThatNobodyOffered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create("s1", "o1")
	do := w.transfer("s1", "e1")
	do.Amount = 5000
	wantCode(t, w.credit("s1", do), checkout.CodeCase)
	c := w.wantCase("s1", checkout.CaseOrphan, 5000)
	wantCode(t, w.ask(checkout.Command{SessionID: "s1", Do: checkout.Resolve{CaseID: c.ID, Resolution: checkout.ResolutionHonour, By: "a", ApprovedBy: "b"}}), checkout.CodeOK)
	w.want("s1", checkout.StatusCompleted, checkout.EventCreated, checkout.EventCollectionOrphaned, checkout.EventCaseResolved, checkout.EventCollectionReopened, checkout.EventCompleted)
}

// The bank takes a transfer back, or people withdraw the statement. Nothing is given back by itself: staff find out, and
// a statement that has the transfer again ends the case.
func TestTransferIsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, cause := range []checkout.CreditCause{checkout.CreditReversed, checkout.CreditUnreported} {
		t.Run(string(cause), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.withTransfer("s1", "o1")
			do := w.transfer("s1", "e1")
			wantCode(t, w.withdraw("s1", "e1", cause), checkout.CodeNotTaken)
			w.credit("s1", do)
			wantCode(t, w.withdraw("s1", "e1", cause), checkout.CodeOK)
			wantReplay(t, w.withdraw("s1", "e1", cause), checkout.CodeOK)
			first := w.wantCase("s1", checkout.CaseMismatch, 5100)
			if !first.Notice() || !w.sessions["s1"].Paid() {
				t.Fatalf("%+v", first)
			}
			w.credit("s1", do)                                                                    // imported again
			if open := w.openCases("s1"); (len(open) > 0) != (cause == checkout.CreditReversed) { // the bank's word stays
				t.Fatalf("%+v", open)
			}
			w.withdraw("s1", "e1", cause)
			c := w.wantCase("s1", checkout.CaseMismatch, 5100)
			wantCode(t, w.ask(checkout.Command{SessionID: "s1", Do: checkout.Resolve{CaseID: c.ID, Resolution: checkout.ResolutionRefund, Reference: "bank letter", By: "a", ApprovedBy: "b"}}), checkout.CodeOK)
			if s := w.sessions["s1"]; s.Paid() || s.ReversedAt.IsZero() {
				t.Errorf("%+v", s)
			}
			wantReplay(t, w.withdraw("s1", "e1", cause), checkout.CodeOK)
		})
	}
}

func TestCaseOfAWithdrawnTransfer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withTransfer("s1", "o1")
	do := w.transfer("s1", "e1")
	do.Amount = 5000
	w.credit("s1", do)
	wantCode(t, w.withdraw("s1", "e1", checkout.CreditUnreported), checkout.CodeOK)
	if c := w.wantCase("s1", checkout.CaseOrphan, 5000); !c.Contradicted {
		t.Errorf("%+v", c)
	}
	w.credit("s1", do)
	if c := w.wantCase("s1", checkout.CaseOrphan, 5000); c.Contradicted {
		t.Errorf("%+v", c)
	}
	do.Amount = 5100 // the bank corrects the entry
	w.credit("s1", do)
	w.wantCase("s1", checkout.CaseOrphan, 5100)
}

// credits are commands of statements in random histories.
func credits(t *rapid.T, w *world, id string, said sums, send func(*rapid.T, checkout.Command)) {
	s, ok := w.sessions[id]
	entry := rapid.SampledFrom([]string{"e1-", "e2-"}).Draw(t, "entry") + id
	if ok && rapid.IntRange(0, 3).Draw(t, "withdraws") == 0 {
		cause := rapid.SampledFrom([]checkout.CreditCause{checkout.CreditReversed, checkout.CreditUnreported}).Draw(t, "cause")
		send(t, checkout.Command{SessionID: id, Do: checkout.CreditWithdrawn{CollectionID: entry, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Cause: cause}})
		return
	}
	do := checkout.Credit{
		CollectionID: entry, AgencyID: s.TenantID, PaymentRef: s.PaymentRef, Amount: rapid.SampledFrom([]int64{5100, 5100, 5099, 6000}).Draw(t, "amount"),
		Currency: rapid.SampledFrom([]string{"XAF", "XAF", "EUR"}).Draw(t, "currency"), Reference: entry, Account: "treasury",
		BookedAt:   rapid.SampledFrom([]time.Time{w.now, w.now.Add(-80 * time.Hour), time.Unix(0, 0)}).Draw(t, "booked"),
		HonourLate: rapid.Bool().Draw(t, "policy"),
	}
	send(t, checkout.Command{SessionID: id, Do: do})
	if ok {
		said.add(id, entry, do.Amount)
	}
}
