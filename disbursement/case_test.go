package disbursement_test

import (
	"testing"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/test/payroll"
)

// Two people with evidence decide about money; every kind of case has an exit.
func TestCases(t *testing.T) {
	t.Parallel()
	c := disbursement.Cases()
	for _, kind := range c.Kinds {
		allowed := c.Allowed(kind)
		if len(allowed) == 0 {
			t.Errorf("%s has no exit", kind)
		}
		for _, r := range allowed {
			e, _ := c.Exit(kind, r)
			if money := r == disbursement.ResolutionPaid || r == disbursement.ResolutionRefused; money && (!e.NeedsTwo || !e.NeedsReference) {
				t.Errorf("%s of %s: %+v", r, kind, e)
			}
		}
	}
}

// Integrators are told of four events, each once.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, e := range disbursement.EventTypes() {
		if name := e.Webhook(); name != "" && names[name] {
			t.Errorf("%s twice", name)
		} else if name != "" {
			names[name] = true
		}
	}
	for _, want := range []string{"disbursement.completed", "disbursement.line_refused", "disbursement.line_returned", "disbursement.line_return_withdrawn", "disbursement.held"} {
		if !names[want] {
			t.Errorf("nobody is told of %s", want)
		}
	}
	if len(names) != 5 {
		t.Errorf("%v", names)
	}
}

// No statement proves a refusal, or the operator answers by letter: two people decide, and the line is paid again or is paid.
func TestSettleUnproven(t *testing.T) {
	t.Parallel()
	for paid, want := range map[bool]disbursement.LineStatus{true: disbursement.LinePaid, false: disbursement.LineRefused} {
		w := one(t)
		w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Unproven: true})
		if l := w.at("b", 0); l.Case != disbursement.CaseUnproven {
			t.Errorf("%+v", l)
		}
		w.advance(disbursement.RequestLife)
		w.no(disbursement.CodeNeedsTwo, w.settle("b", paid, "ben", "ben"))
		w.ok(w.settle("b", paid, "ben", "cleo"))
		w.want("b", want)
		if !paid {
			w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
		}
	}
}

// An accepted statement without the debit proves the refusal, and ends its case.
func TestNoDebitEndsTheCase(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Unproven: true})
	w.word("b", disbursement.Word{Kind: disbursement.WordNoDebit, Source: disbursement.FromStatement})
	if l := w.at("b", 0); l.Case != "" || l.Unproven {
		t.Errorf("%+v", l)
	}
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
}

// A line that the operator calls paid, and that no statement has, is a question to two people. Without it a line that was never
// paid could not be paid again. Once they have decided, statements ask them no more.
func TestPaidAndOnNoStatement(t *testing.T) {
	t.Parallel()
	absent := disbursement.Word{Kind: disbursement.WordNoDebit, Source: disbursement.FromStatement}
	for paid, want := range map[bool]disbursement.LineStatus{true: disbursement.LinePaid, false: disbursement.LineRefused} {
		w := one(t)
		w.word("b", disbursement.Word{Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry})
		w.advance(disbursement.RequestLife)
		w.word("b", absent)
		if l := w.at("b", 0); l.Case != disbursement.CaseConflict || !l.Contested || l.Status != disbursement.LinePaid {
			t.Errorf("%+v", l)
		}
		w.ok(w.settle("b", paid, "ben", "cleo"))
		w.want("b", want)
		w.word("b", absent)
		if l := w.at("b", 0); l.Case != "" || l.Contested {
			t.Errorf("asked again: %+v", l)
		}
		if !paid {
			w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
		}
	}
}

// What two people sign about a line is about this line of this batch, as it was when they saw it, once, with this outcome and
// this evidence.
func TestForgedSettlements(t *testing.T) {
	t.Parallel()
	contested := func() *world {
		w := newWorld(t)
		w.agency(payroll.Policy())
		w.releasing("b", line("a", 5000), line("b", 5000))
		w.releasing("c", line("c", 5000))
		w.ticks()
		for _, id := range []string{"b", "c"} {
			contradict(w, id)
		}
		return w
	}
	for name, forge := range map[string]func(w *world, do *disbursement.Settle, batch *string){
		"another outcome":  func(_ *world, do *disbursement.Settle, _ *string) { do.Paid = !do.Paid },
		"another evidence": func(_ *world, do *disbursement.Settle, _ *string) { do.Reference = "letter 13" },
		"another line":     func(_ *world, do *disbursement.Settle, _ *string) { do.Position = 1 },
		"another batch":    func(_ *world, _ *disbursement.Settle, batch *string) { *batch = "c" },
		"another person":   func(_ *world, do *disbursement.Settle, _ *string) { do.Signed[1].Person = "ama" },
		"a resumption": func(w *world, do *disbursement.Settle, _ *string) {
			do.Signed[1] = w.step("cleo", "b", 1, digest.Resume)
		},
		"nothing signed": func(_ *world, do *disbursement.Settle, _ *string) { do.Signed[1].Assertion.Signature = nil },
	} {
		w := contested()
		do, batch := payroll.Settle(w.batches["b"].Digest, w.at("b", 0), false, "letter 12", "ben", "cleo"), "b"
		forge(w, &do, &batch)
		if a := w.decide(disbursement.Command{Batch: batch, Do: do}); a.Refusal == nil {
			t.Errorf("%s is carried out", name)
		}
		w.want("b", disbursement.LineSent, disbursement.LineSent)
	}
	w := contested()
	do := payroll.Settle(w.batches["b"].Digest, w.at("b", 0), false, "letter 12", "ben", "cleo")
	w.ok(disbursement.Command{Batch: "b", Do: do})
	w.no(disbursement.CodeNoCase, disbursement.Command{Batch: "b", Do: do})
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
	w.ticks()
	contradict(w, "b")
	w.no(disbursement.CodeNotSigned, disbursement.Command{Batch: "b", Do: do}) // the second attempt is another matter
	w.want("b", disbursement.LineSent, disbursement.LineSent)
}

// contradict has the operator name another payee of the first line's present attempt.
func contradict(w *world, id string) {
	l := w.at(id, 0)
	w.word(id, disbursement.Word{Attempt: l.Attempt, Try: l.Try, Kind: disbursement.WordPending, Source: disbursement.FromRequest})
	w.word(id, disbursement.Word{Attempt: l.Attempt, Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry, Amount: l.Amount, Currency: "XAF", OtherPayee: true})
}

// A sender that calls each attempt never sent, whether it lies or is broken, has a line tried a bounded number of times. Then
// people are asked.
func TestAttemptsWithoutPeopleAreBounded(t *testing.T) {
	t.Parallel()
	for _, word := range []disbursement.Word{requested(disbursement.WordNeverSent), enquired(disbursement.WordNoFunds)} {
		w := one(t)
		for retries := range disbursement.MaxAttempts {
			before := len(w.pays)
			for range 3 * disbursement.MaxUnsent {
				if w.at("b", 0).Status == disbursement.LineSent {
					w.word("b", word)
				}
				w.advance(disbursement.ProbeEvery)
			}
			l := w.at("b", 0)
			if sent := len(w.pays) - before; l.Status != disbursement.LineRefused || l.Code != disbursement.ReasonTriedOften || sent > disbursement.MaxUnsent+1 {
				t.Fatalf("%s, %d: %d attempts, %+v", word.Kind, retries, sent, l)
			}
			if retries+1 < disbursement.MaxAttempts {
				w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
				w.ticks()
			}
		}
		w.no(disbursement.CodeAttempts, disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
	}
}

// While a request may still be carried out for the first time nobody can say that no attempt pays: a new attempt, under another
// id, would be a second payment.
func TestUnderwayIsNotRefused(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry, Amount: 4999, Currency: "XAF"}) // contested, the request is not answered
	w.no(disbursement.CodeUnderway, w.settle("b", false, "ben", "cleo"))
	w.advance(disbursement.RequestLife)
	w.ok(w.settle("b", false, "ben", "cleo"))
	w.want("b", disbursement.LineRefused)

	w = one(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry, Amount: 4999, Currency: "XAF"})
	w.ok(w.settle("b", true, "ben", "cleo"))
	w.want("b", disbursement.LinePaid)
	w.word("b", enquired(disbursement.WordRefused)) // contested again, and no longer sent
	w.no(disbursement.CodeUnderway, w.settle("b", false, "ben", "cleo"))
	w.advance(disbursement.RequestLife)
	w.ok(w.settle("b", false, "ben", "cleo"))
}
