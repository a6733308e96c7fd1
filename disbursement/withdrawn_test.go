package disbursement_test

import (
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/test/payroll"
)

// shown returns a word of a statement about the first attempt of the first line of one.
func shown(kind disbursement.WordKind) disbursement.Word {
	return disbursement.Word{Kind: kind, Source: disbursement.FromStatement}
}

// disproved makes a line whose refusal a statement has proven.
func disproved(t *testing.T) *world {
	t.Helper()
	w := one(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry, Unproven: true})
	w.now = w.now.Add(time.Second)
	w.word("b", shown(disbursement.WordNoDebit))
	w.now = w.now.Add(time.Second)
	return w
}

// back makes a paid line whose money came back, as a statement says.
func back(t *testing.T) *world {
	t.Helper()
	w := one(t)
	w.word("b", enquired(disbursement.WordPaid))
	w.now = w.now.Add(time.Second)
	w.word("b", shown(disbursement.WordReturned))
	w.want("b", disbursement.LineReturned)
	w.now = w.now.Add(time.Second)
	return w
}

func (w *world) correcting(ref string) disbursement.Command {
	return adding("c", payroll.Line(ref, "mtn", "a", 5000))
}

// The statement that had proven a refusal is withdrawn: the refusal proves nothing again, until another statement does.
func TestAProofIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		w := disproved(t)
		if cancelled {
			w.ok(disbursement.Command{Batch: "b", Do: disbursement.Cancel{By: "ama"}})
		}
		w.ok(disbursement.Command{Batch: "c", Do: w.opening("ref-c")})
		for range 2 {
			w.word("b", shown(disbursement.WordNoProof))
			if l := w.at("b", 0); !l.Unproven || l.Case != disbursement.CaseUnproven || len(l.Proofs) != 0 {
				t.Fatalf("%+v", l)
			}
			if !cancelled {
				w.no(disbursement.CodeUnproven, disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
			}
			w.no(disbursement.CodeNotCorrected, w.correcting("a2"))
			n := len(w.events)
			w.word("b", shown(disbursement.WordNoProof))
			if len(w.events) != n {
				t.Error("told twice, it has two effects")
			}
			w.now = w.now.Add(time.Second)
			w.word("b", shown(disbursement.WordNoDebit))
			if l := w.at("b", 0); l.Unproven || l.Case != "" {
				t.Fatalf("%+v", l)
			}
			w.now = w.now.Add(time.Second)
		}
		w.ok(w.correcting("a2"))
	}
}

// The line was tried again because of the proof. What is not sent is not sent any more, and two people decide.
func TestAProofOfAnEarlierAttemptIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		sent, answered bool
		want           disbursement.LineStatus
	}{{false, false, disbursement.LineReady}, {true, false, disbursement.LineSent}, {true, true, disbursement.LinePaid}} {
		w := disproved(t)
		w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
		if test.sent {
			w.ticks()
		}
		if test.answered {
			w.word("b", disbursement.Word{Attempt: 2, Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry})
		}
		n := len(w.pays)
		w.word("b", disbursement.Word{Attempt: 1, Kind: disbursement.WordNoProof, Source: disbursement.FromStatement})
		w.ticks()
		l := w.at("b", 0)
		if l.Status != test.want || !l.Contested || l.Doubt != 1 || l.Case != disbursement.CaseConflict || len(w.pays) != n {
			t.Fatalf("%+v: %d requests, %+v", test, len(w.pays)-n, l)
		}
		w.advance(disbursement.RequestLife)
		w.ok(w.settle("b", true, "ben", "cleo"))
		w.want("b", disbursement.LinePaid)
		if l := w.at("b", 0); l.Contested || len(l.Proofs) != 0 {
			t.Errorf("%+v", l)
		}
	}
}

// A line that corrects one that is not proven unpaid any more is not sent: its batch is held.
func TestAProofOfACorrectedLineIsTakenBack(t *testing.T) {
	t.Parallel()
	w := disproved(t)
	w.releasing("c", payroll.Line("a2", "mtn", "a", 5000))
	n := len(w.pays)
	w.word("b", shown(disbursement.WordNoProof))
	w.ticks()
	w.want("c", disbursement.LineReady)
	if len(w.pays) != n || !w.batches["c"].Held() {
		t.Errorf("%d requests, hold %+v", len(w.pays)-n, w.batches["c"].Hold)
	}
}

// What people have decided since is not taken back with a statement.
func TestPeopleHaveDecidedSince(t *testing.T) {
	t.Parallel()
	for _, paid := range []bool{false, true} {
		w := disproved(t)
		w.advance(disbursement.RequestLife)
		w.word("b", disbursement.Word{Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry, Amount: 5000, Currency: "XAF"}) // it contradicts
		n := len(w.events)
		w.word("b", shown(disbursement.WordNoProof)) // people decide about the attempt anyway
		if len(w.events) != n {
			t.Error("a contested line is contested again")
		}
		w.ok(w.settle("b", paid, "ben", "cleo"))
		n = len(w.events)
		w.word("b", shown(disbursement.WordNoProof))
		if l := w.at("b", 0); l.Contested || l.Unproven || len(l.Proofs) != 0 || len(w.events) != n {
			t.Errorf("%+v", l)
		}
	}
	w := back(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry}) // it contradicts
	w.ok(w.settle("b", true, "ben", "cleo"))
	w.word("b", shown(disbursement.WordNoReturn))
	w.want("b", disbursement.LineReturned)
}

// The statement that had told of a return is withdrawn: the line is paid, as it was, until another one tells of it.
func TestAReturnIsTakenBack(t *testing.T) {
	t.Parallel()
	w := back(t)
	paidAt := w.at("b", 0).PaidAt
	w.ok(disbursement.Command{Batch: "c", Do: w.opening("ref-c")})
	for range 2 {
		w.word("b", shown(disbursement.WordNoReturn))
		w.want("b", disbursement.LinePaid)
		if l := w.at("b", 0); l.Contested || !l.EndedAt.Equal(paidAt) || paidAt.IsZero() {
			t.Fatalf("%+v, paid %v", l, paidAt)
		}
		if e := w.events[len(w.events)-1]; e.Webhook() != "disbursement.line_return_withdrawn" {
			t.Errorf("integrators are told %q", e.Webhook())
		}
		n := len(w.events)
		w.word("b", shown(disbursement.WordNoReturn))
		w.no(disbursement.CodeNotCorrected, w.correcting("a2"))
		if len(w.events) != n {
			t.Error("told twice, it has two effects")
		}
		w.now = w.now.Add(time.Second)
		w.word("b", shown(disbursement.WordReturned))
		w.want("b", disbursement.LineReturned)
		w.now = w.now.Add(time.Second)
	}
	w.ok(w.correcting("a2"))
}

// A line that came back was paid again by another one. If it has not come back, people decide, and what is not sent is not sent.
func TestAReturnOfACorrectedLineIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, sent := range []bool{false, true} {
		w := back(t)
		w.releasing("c", payroll.Line("a2", "mtn", "a", 5000))
		if sent {
			w.ticks()
		}
		n := len(w.pays)
		w.word("b", shown(disbursement.WordNoReturn))
		w.ticks()
		if l := w.at("b", 0); l.Status != disbursement.LinePaid || !l.Contested || l.Case != disbursement.CaseConflict {
			t.Errorf("%+v", l)
		}
		if len(w.pays) != n || w.batches["c"].Held() == sent {
			t.Errorf("sent %t: %d requests, hold %+v", sent, len(w.pays)-n, w.batches["c"].Hold)
		}
		w.ok(w.settle("b", true, "ben", "cleo"))
		w.want("b", disbursement.LinePaid)
	}
}

// The operator itself says that the money came back: no statement takes that back.
func TestTheOperatorSaysSoToo(t *testing.T) {
	t.Parallel()
	w := back(t)
	w.word("b", disbursement.Word{Kind: disbursement.WordReturned, Source: disbursement.FromEnquiry, Amount: 5000, Currency: "XAF"})
	w.word("b", shown(disbursement.WordNoReturn))
	w.want("b", disbursement.LineReturned)
}

// People have settled one attempt. Statements ask them about a later one that is on none.
func TestStatementsContestALaterAttempt(t *testing.T) {
	t.Parallel()
	w := one(t)
	w.word("b", enquired(disbursement.WordPaid))
	w.advance(disbursement.RequestLife)
	w.word("b", shown(disbursement.WordNoDebit))
	w.ok(w.settle("b", false, "ben", "cleo"))
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}})
	w.ticks()
	w.word("b", disbursement.Word{Attempt: 2, Kind: disbursement.WordPaid, Source: disbursement.FromEnquiry})
	absent := disbursement.Word{Attempt: 2, Kind: disbursement.WordNoDebit, Source: disbursement.FromStatement}
	w.word("b", absent)
	if l := w.at("b", 0); !l.Contested || l.Doubt != 2 {
		t.Fatalf("%+v", l)
	}
	w.ok(w.settle("b", true, "ben", "cleo"))
	w.word("b", absent)
	if l := w.at("b", 0); l.Contested {
		t.Errorf("asked again: %+v", l)
	}
}
