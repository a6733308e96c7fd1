package disbursement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/disbursement/policy"
	"quittance/test/payroll"
)

// tiered is a policy of an agent up to 1,000, of an agent and a chief up to 5,000, and of two chiefs above.
func tiered() policy.Policy {
	p := payroll.Policy()
	p.Tiers = []policy.Tier{
		{UpTo: 1000, Rules: []policy.Rule{{Role: "agent", Needed: 1}}},
		{UpTo: 5000, Rules: []policy.Rule{{Role: "agent", Needed: 1}, {Role: "chief", Needed: 1}}},
		{Rules: []policy.Rule{{Role: "chief", Needed: 2}}},
	}
	p.LineFrom, p.DayLimit = 900, 20_000
	return p
}

func needed(w *world, id string) (out []int) {
	for _, l := range w.sealings[id].Content.Levels {
		out = append(out, l.Needed)
	}
	return out
}

// Ten batches just below a tier are one batch above it.
func TestTierCountsTheDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(tiered())
	for i, want := range []string{"[1]", "[1 1]", "[1 1]", "[1 1]", "[1 1]", "[2]"} {
		id := fmt.Sprint("b", i)
		w.draft(id, line(id+"a", 450), line(id+"b", 450))
		w.ok(w.seal(id))
		if got := fmt.Sprint(needed(w, id)); got != want {
			t.Errorf("batch %d needs %s, want %s", i+1, got, want)
		}
	}
	w.ok(disbursement.Command{Batch: "b5", Do: disbursement.Recall{By: "ama"}}) // a new revision does not count twice
	w.draft("c", line("c", 100))
	w.ok(w.seal("c"))
	if got := fmt.Sprint(needed(w, "c")); got != "[1 1]" {
		t.Errorf("after a recall: %s", got)
	}
	w.draft("d", line("d", 15_500))
	w.no(disbursement.CodeDayLimit, w.seal("d"))
	w.advance(24 * time.Hour)
	w.draft("e", line("e", 900)) // a large line raises the tier
	w.ok(w.seal("e"))
	if got := fmt.Sprint(needed(w, "e")); got != "[1 1]" {
		t.Errorf("on the next day: %s", got)
	}
}

func TestApprovalsInSequence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(tiered())
	w.draft("b", line("a", 800), line("b", 800))
	w.no(disbursement.CodeStatus, disbursement.Command{Batch: "b", Do: disbursement.Approve{Level: 1, Signed: w.step("dan", "b", 1, digest.Approve)}})
	w.ok(w.seal("b"))
	w.no(disbursement.CodeLevel, w.approve("b", 2, "ben"))
	w.no(disbursement.CodeNotListed, w.approve("b", 1, "ben"))
	w.no(disbursement.CodeMaker, w.approve("b", 1, "ama"))
	wrong := w.approve("b", 1, "dan")
	wrong.Do = disbursement.Approve{Level: 1, Signed: w.step("dan", "b", 2, digest.Approve)}
	w.no(disbursement.CodeNotSigned, wrong)
	wrong.Do = disbursement.Approve{Level: 1, Signed: w.step("dan", "b", 1, digest.Reject)}
	w.no(disbursement.CodeNotSigned, wrong)
	stolen := w.step("eve", "b", 1, digest.Approve)
	wrong.Do = disbursement.Approve{Level: 1, Signed: disbursement.Signed{Person: "dan", Assertion: stolen.Assertion}}
	w.no(disbursement.CodeNotInForce, wrong)
	w.ok(w.approve("b", 1, "dan"))
	w.status("b", disbursement.StatusSealed)
	if a := w.ok(w.approve("b", 1, "dan")); !a.Replayed {
		t.Error("a repeated approval is a new one")
	}
	w.no(disbursement.CodeStatus, w.release("b", "cleo"))
	w.ok(w.approve("b", 2, "ben"))
	w.status("b", disbursement.StatusApproved)
	w.no(disbursement.CodeMaker, w.release("b", "ama"))
	w.ok(w.release("b", "dan"))
	w.status("b", disbursement.StatusReleasing)
}

// An approval is of one revision: that of a recalled batch counts nowhere.
func TestApprovalOfAnOldRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.draft("b", line("a", 800))
	w.ok(w.seal("b"))
	old := w.approve("b", 1, "ben")
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.Recall{By: "ama"}})
	open := w.opening("ref-b")
	w.ok(disbursement.Command{Batch: "c", Do: open})
	w.ok(disbursement.Command{Batch: "c", Do: disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{line("a", 800)}}})
	w.ok(w.seal("c"))
	if b := w.batches["c"]; b.Revision != 2 {
		t.Errorf("revision %d", b.Revision)
	}
	old.Batch = "c"
	w.no(disbursement.CodeNotSigned, old)
}

// A delegate stands for one person, who does not count again, and never for the maker.
func TestDelegates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	set := payroll.Policy()
	set.Tiers[0].Rules[0].Needed = 2
	do := disbursement.SetPolicy{Policy: set}
	do.Confirmed = w.confirm(do.Content(false), "ama", "ben")
	w.ok(disbursement.Command{Do: do})
	stand := disbursement.Enrolled{ID: "dan", Number: "n-dan", For: "ben", Until: w.now.Add(30 * 24 * time.Hour)}
	forMaker := disbursement.Enrolled{ID: "eve", Number: "n-eve", For: "ama", Until: w.now.Add(30 * 24 * time.Hour)}
	chief := disbursement.Enrolled{ID: "ama", Number: "n-ama", Roles: []string{"chief"}}
	more := disbursement.Enrol{People: []disbursement.Enrolled{stand, forMaker, chief}}
	more.Confirmed = w.confirm(more.Content(), "ama", "ben")
	w.ok(disbursement.Command{Do: more})
	w.advance(25 * time.Hour)
	w.draft("b", line("a", 800))
	w.ok(w.seal("b"))
	w.no(disbursement.CodeNotListed, w.approve("b", 1, "eve")) // stands for the maker
	w.no(disbursement.CodeMaker, w.approve("b", 1, "ama"))
	w.ok(w.approve("b", 1, "dan"))
	w.no(disbursement.CodeTwice, w.approve("b", 1, "ben"))
	w.ok(w.approve("b", 1, "cleo"))
	w.status("b", disbursement.StatusApproved)
}

// A passkey counts a day after its enrolment; one that is removed, or whose person is revoked, never again.
func TestRevocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.draft("b", line("a", 800))
	w.ok(w.seal("b"))
	w.ok(w.approve("b", 1, "ben"))
	w.releasing("c", line("c", 800))
	w.ok(disbursement.Command{Do: disbursement.Revoke{Person: "ben"}})
	if !w.batches["b"].Held() || !w.batches["c"].Held() {
		t.Fatal("the batches of the revoked person are not held")
	}
	w.ticks()
	if len(w.pays) != 0 {
		t.Errorf("%d requests", len(w.pays))
	}
	w.no(disbursement.CodeHeld, w.release("b", "cleo"))
	w.no(disbursement.CodeNotInForce, w.lift("b", "ben", "cleo"))
	w.no(disbursement.CodeNeedsTwo, w.lift("b", "cleo", "cleo"))
	old := w.lift("b", "ama", "cleo")
	w.ok(old)
	w.no(disbursement.CodeHeld, w.release("b", "cleo")) // its approver is not in force
	if !w.batches["b"].Held() {
		t.Fatal("it is not held")
	}
	w.no(disbursement.CodeNotSigned, old) // of the hold before
	again := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("ben", "chief")}}
	again.Confirmed = w.confirm(again.Content(), "ama", "cleo")
	w.no(disbursement.CodeRosterFault, disbursement.Command{Do: again})
	w.ok(w.lift("c", "ama", "cleo"))
	w.ticks()
	w.want("c", disbursement.LineSent)
	w.ok(disbursement.Command{Do: disbursement.Revoke{Person: "ama"}})
	if !w.batches["c"].Held() {
		t.Error("the batch that the revoked person made is not held")
	}
}

func TestReleaseConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	ready := func(id string, open disbursement.Open) {
		w.ok(disbursement.Command{Batch: id, Do: open})
		w.ok(disbursement.Command{Batch: id, Do: disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{line("l-"+id, 10)}}})
		w.ok(w.seal(id))
		w.ok(w.approve(id, 1, "ben"))
	}
	ready("policy", w.opening("policy"))
	erp := w.opening("erp")
	erp.Source = disbursement.SourceERP
	ready("erp", erp)
	erp.BatchRef = "erp2"
	ready("erp2", erp)
	for _, id := range []string{"erp", "erp2"} {
		w.ok(w.release(id, "cleo"))
		w.status(id, disbursement.StatusApproved)
	}
	if len(w.questions) != 2 {
		t.Fatalf("%d questions", len(w.questions))
	}
	w.no(disbursement.CodeStatus, disbursement.Command{Batch: "erp", Do: disbursement.ERPSame{AskedAt: w.now.Add(-time.Second), Same: true}})
	w.ok(disbursement.Command{Batch: "erp", Do: disbursement.ERPSame{AskedAt: w.now, Same: true}})
	w.status("erp", disbursement.StatusReleasing)
	w.no(disbursement.CodeHeld, disbursement.Command{Batch: "erp2", Do: disbursement.ERPSame{AskedAt: w.now}})
	if !w.batches["erp2"].Held() {
		t.Error("the batch whose lines the ERP changed is not held")
	}
	weak := disbursement.SetPolicy{Policy: payroll.Policy()}
	weak.Confirmed = w.confirm(weak.Content(false), "ama", "ben")
	w.ok(disbursement.Command{Do: weak})
	w.advance(25 * time.Hour)
	w.no(disbursement.CodeHeld, w.release("policy", "cleo"))
	if b := w.batches["policy"]; !b.Held() || !strings.Contains(b.Hold.Reason, "policy") {
		t.Errorf("%+v", b.Hold)
	}
}

func TestReleaseOnDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := payroll.Policy()
	p.Release = policy.ReleaseOnDate
	w.agency(p)
	open := w.opening("b")
	open.Date = w.now.AddDate(0, 0, 4).Format(time.DateOnly) // later than approve_until
	w.ok(disbursement.Command{Batch: "b", Do: open})
	w.ok(disbursement.Command{Batch: "b", Do: disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{line("l", 10)}}})
	w.ok(w.seal("b"))
	w.ok(w.approve("b", 1, "ben"))
	w.advance(3 * 24 * time.Hour)
	w.status("b", disbursement.StatusApproved)
	w.advance(24 * time.Hour)
	w.want("b", disbursement.LineSent)
}

func TestEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.draft("draft", line("a", 10))
	w.draft("sealed", line("b", 10))
	w.ok(w.seal("sealed"))
	w.draft("approved", line("c", 10))
	w.ok(w.seal("approved"))
	w.ok(w.approve("approved", 1, "ben"))
	w.draft("rejected", line("d", 10))
	w.ok(w.seal("rejected"))
	w.no(disbursement.CodeNotMaker, disbursement.Command{Batch: "rejected", Do: disbursement.Recall{By: "ben"}})
	w.no(disbursement.CodeNotListed, disbursement.Command{Batch: "rejected", Do: disbursement.Reject{Signed: w.step("dan", "rejected", 0, digest.Reject)}})
	w.ok(disbursement.Command{Batch: "rejected", Do: disbursement.Reject{Signed: w.step("ben", "rejected", 0, digest.Reject), Reason: "wrong month"}})
	w.status("rejected", disbursement.StatusRejected)
	w.advance(72 * time.Hour)
	w.status("sealed", disbursement.StatusExpired)
	w.status("approved", disbursement.StatusApproved)
	w.advance(4 * 24 * time.Hour)
	w.status("draft", disbursement.StatusDiscarded)
	w.status("approved", disbursement.StatusExpired)
	w.releasing("again", line("a", 10), line("b", 10), line("c", 10), line("d", 10)) // what ended without paying holds no reference
	if n := len(w.agencies[disbursement.AgencyKey{TenantID: tenant}].Batches); n != 1 {
		t.Errorf("%d live batches", n)
	}
}

// Roster and policy change as two people in force sign, once, and a day later.
func TestRosterNeedsTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.no(disbursement.CodeRosterFault, disbursement.Command{Do: disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("ama")}, RPID: rpID, Origin: origin}})
	w.agency(payroll.Policy())
	add := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("fay", "chief")}}
	add.Confirmed = w.confirm(add.Content(), "ama")
	w.no(disbursement.CodeNeedsTwo, disbursement.Command{Do: add})
	add.Confirmed = w.confirm(add.Content(), "ama", "ama")
	w.no(disbursement.CodeNeedsTwo, disbursement.Command{Do: add})
	add.Confirmed = w.confirm(add.Content(), "ama", "fay")
	w.no(disbursement.CodeNotInForce, disbursement.Command{Do: add})
	add.Confirmed = w.confirm(map[string]string{"kind": "roster"}, "ama", "ben")
	w.no(disbursement.CodeNotSigned, disbursement.Command{Do: add})
	add.Confirmed = w.confirm(add.Content(), "ama", "ben")
	w.ok(disbursement.Command{Do: add})
	w.no(disbursement.CodeNotSigned, disbursement.Command{Do: add}) // replayed
	taken := disbursement.Enrol{People: []disbursement.Enrolled{{ID: "gus", Number: "n-ben", Keys: [][32]byte{payroll.Human("gus").Hash()}}}}
	taken.Confirmed = w.confirm(taken.Content(), "ama", "ben")
	w.no(disbursement.CodeNumberTaken, disbursement.Command{Do: taken})
	taken.People[0].Number, taken.People[0].Keys = "n-gus", [][32]byte{payroll.Human("ben").Hash()}
	taken.Confirmed = w.confirm(taken.Content(), "ama", "ben")
	w.no(disbursement.CodeKeyTaken, disbursement.Command{Do: taken})
	w.draft("b", line("a", 10))
	w.ok(w.seal("b"))
	if got := w.sealings["b"].Content.Levels[0].Persons; slices.ContainsFunc(got, func(a policy.Approver) bool { return a.ID == "fay" }) {
		t.Error("a passkey counts on the day of its enrolment")
	}
}

// A line_ref is taken, free or to be corrected, whatever happened to its batches. world.decide checks the rest.
func TestUniqueness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	add := func(id string, lines ...disbursement.NewLine) disbursement.Command {
		return disbursement.Command{Batch: id, Do: disbursement.AddLines{ImportID: "i", Lines: lines}}
	}
	w.releasing("b", line("paid", 10), line("refused", 10), line("returned", 10))
	w.ticks()
	w.ok(disbursement.Command{Batch: "x", Do: w.opening("x")})
	w.no(disbursement.CodeRefTaken, add("x", line("paid", 10))) // its batch is live
	w.word("b", disbursement.Word{Position: 0, Kind: disbursement.WordPaid, Source: disbursement.FromRequest})
	w.word("b", disbursement.Word{Position: 1, Kind: disbursement.WordRefused, Source: disbursement.FromEnquiry})
	w.word("b", disbursement.Word{Position: 2, Kind: disbursement.WordPaid, Source: disbursement.FromRequest})
	w.word("b", disbursement.Word{Position: 2, Kind: disbursement.WordReturned, Source: disbursement.FromStatement})
	w.no(disbursement.CodeRefTaken, add("x", line("paid", 10)))
	w.no(disbursement.CodeRefTaken, add("x", line("returned", 10)))
	w.no(disbursement.CodeMustCorrect, add("x", line("refused", 10)))
	w.no(disbursement.CodeNotCorrected, add("x", payroll.Line("new", "mtn", "paid", 10)))
	w.no(disbursement.CodeNotCorrected, add("x", payroll.Line("new", "mtn", "nobody", 10)))
	w.no(disbursement.CodeNotCorrected, add("x", payroll.Line("new1", "mtn", "refused", 10), payroll.Line("new2", "mtn", "refused", 10)))
	w.ok(add("x", payroll.Line("new1", "mtn", "refused", 10), payroll.Line("new2", "mtn", "returned", 10)))
	w.no(disbursement.CodeCorrected, disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama", Position: 1}})
	w.ok(disbursement.Command{Batch: "y", Do: w.opening("y")})
	w.no(disbursement.CodeNotCorrected, add("y", payroll.Line("new3", "mtn", "refused", 10)))
	w.ok(disbursement.Command{Batch: "x", Do: disbursement.Discard{By: "ama"}}) // the correction is void
	w.ok(add("y", payroll.Line("new1", "mtn", "refused", 10)))

	w = newWorld(t)
	w.agency(payroll.Policy())
	scoped := w.opening("s1")
	scoped.Scope = disbursement.ScopeBatch
	w.ok(disbursement.Command{Batch: "s1", Do: scoped})
	scoped.BatchRef = "s2"
	w.ok(disbursement.Command{Batch: "s2", Do: scoped})
	w.ok(add("s1", line("1", 10)))
	w.ok(add("s2", line("1", 10)))
}

// The line that is corrected turns out to be paid: the correcting one is not sent.
func TestCorrectedLineIsPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 10))
	w.ticks()
	w.word("b", enquired(disbursement.WordRefused))
	w.releasing("c", payroll.Line("a2", "mtn", "a", 10))
	w.word("b", enquired(disbursement.WordPaid))
	w.ticks()
	w.want("c", disbursement.LineReady)
	if !w.batches["c"].Held() {
		t.Error("the correcting batch is not held")
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.no(disbursement.CodeNoPolicy, disbursement.Command{Batch: "b", Do: w.opening("b")})
	w.agency(payroll.Policy())
	w.draft("b", line("a", 10), line("b", 10))
	w.no(disbursement.CodeRefLive, disbursement.Command{Batch: "c", Do: w.opening("ref-b")})
	if a := w.ok(disbursement.Command{Batch: "b", Do: w.opening("ref-b")}); !a.Replayed {
		t.Error("a repeated opening is a new one")
	}
	w.no(disbursement.CodeBatchUnknown, disbursement.Command{Batch: "b", Live: true, Do: disbursement.Stop{}})
	add := func(position int, lines ...disbursement.NewLine) disbursement.Command {
		return disbursement.Command{Batch: "b", Do: disbursement.AddLines{ImportID: "i", Position: position, Lines: lines}}
	}
	if a := w.ok(add(1, line("b", 10))); !a.Replayed {
		t.Error("repeated lines are new ones")
	}
	large := line("d", 10)
	large.Sealed = make([]byte, disbursement.MaxBytesSealed+1)
	for want, cmd := range map[disbursement.Code]disbursement.Command{
		disbursement.CodePosition:     add(3, line("d", 10)),
		disbursement.CodeOrder:        add(2, line("b", 10)),
		disbursement.CodeAmount:       add(2, line("d", 0)),
		disbursement.CodeText:         add(2, disbursement.NewLine{Ref: "d\té", Account: "mtn", Amount: 1}),
		disbursement.CodeAccount:      add(2, payroll.Line("d", "bank", "", 10)),
		disbursement.CodeSum:          add(2, line("d", disbursement.MaxSum)),
		disbursement.CodeTooLarge:     add(2, large),
		disbursement.CodeTooManyLines: add(2, make([]disbursement.NewLine, disbursement.MaxLinesAdded+1)...),
		disbursement.CodeImport:       {Batch: "b", Do: disbursement.AddLines{ImportID: "j", Position: 2, Lines: []disbursement.NewLine{line("d", 1)}}},
	} {
		w.no(want, cmd)
	}
	w.no(disbursement.CodePosition, add(1, line("b", 11))) // other lines at the same place
	other := w.seal("b")
	other.Do = disbursement.Seal{Count: 2, Sum: 21, Root: w.batches["b"].Tree.Root()}
	w.no(disbursement.CodeOtherContent, other)
	old := w.seal("b")
	old.Registry = 7
	w.ok(old)
	stale := disbursement.Command{Batch: "z", Registry: 6, Do: w.opening("z")}
	w.no(disbursement.CodeRegistryOld, stale)
}

// Approvals, rejections, recalls, holds and old signatures in any order: what is released was approved by enough people,
// none of them the maker or twice, over this digest. world.approved checks it, without the code under test.
func TestApprovals(t *testing.T) {
	t.Parallel()
	begin := startingFrom(t, func(w *world) { w.agency(tiered()) })
	rapid.Check(t, func(t *rapid.T) {
		w := begin(t)
		var kept []disbursement.Signed
		sums := map[string]int64{}
		n := 0
		id := func() string { return fmt.Sprint("b", rapid.IntRange(1, max(1, n)).Draw(t, "batch")) }
		who := func() string {
			return rapid.SampledFrom([]string{"ama", "ben", "cleo", "dan", "eve"}).Draw(t, "person")
		}
		signed := func(b string, level int, verdict digest.Verdict) disbursement.Signed {
			if len(kept) > 0 && rapid.IntRange(0, 3).Draw(t, "old") == 0 {
				s := rapid.SampledFrom(kept).Draw(t, "signature")
				if rapid.Bool().Draw(t, "as another") {
					s.Person = who()
				}
				return s
			}
			s := w.step(who(), b, level, verdict)
			kept = append(kept, s)
			return s
		}
		t.Repeat(map[string]func(*rapid.T){
			"seal": func(t *rapid.T) {
				n++
				b := fmt.Sprint("b", n)
				open := w.opening("r" + fmt.Sprint(rapid.IntRange(n-1, n).Draw(t, "ref")))
				open.Maker = who()
				if w.decide(disbursement.Command{Batch: b, Do: open}).Refusal != nil {
					return
				}
				amount := rapid.SampledFrom([]int64{400, 900, 4000}).Draw(t, "amount")
				w.ok(disbursement.Command{Batch: b, Do: disbursement.AddLines{ImportID: "i", Lines: []disbursement.NewLine{line(b, amount)}}})
				if w.decide(w.seal(b)).Refusal != nil {
					return
				}
				// The tier fits this batch and all others of the day that did not end.
				total := amount
				for other, sum := range sums {
					if x := w.batches[other]; !x.Status.Void() && x.SealedAt.Add(time.Hour).Format(time.DateOnly) == w.today() {
						total += sum
					}
				}
				sums[b] = amount
				want := "[1]"
				switch {
				case total > 5000 || total > 1000 && amount >= 900:
					want = "[2]"
				case total > 1000 || amount >= 900:
					want = "[1 1]"
				}
				if got := fmt.Sprint(needed(w, b)); got != want {
					t.Fatalf("%d on a day of %d needs %s, not %s", amount, total, got, want)
				}
			},
			"approve": func(t *rapid.T) {
				b, level := id(), rapid.IntRange(1, 2).Draw(t, "level")
				w.decide(disbursement.Command{Batch: b, Do: disbursement.Approve{Level: level, Signed: signed(b, level, digest.Approve)}})
			},
			"approve again": func(t *rapid.T) {
				b, level := id(), rapid.IntRange(1, 2).Draw(t, "level")
				w.decide(disbursement.Command{Batch: b, Do: disbursement.Approve{Level: level, Signed: signed(b, level, digest.Approve)}})
			},
			"release": func(t *rapid.T) {
				b := id()
				w.decide(disbursement.Command{Batch: b, Do: disbursement.Release{Signed: signed(b, w.batches[b].Holds, digest.Release)}})
			},
			"reject": func(t *rapid.T) {
				b := id()
				w.decide(disbursement.Command{Batch: b, Do: disbursement.Reject{Signed: signed(b, 0, digest.Reject)}})
			},
			"recall": func(t *rapid.T) { w.decide(disbursement.Command{Batch: id(), Do: disbursement.Recall{By: who()}}) },
			"hold": func(t *rapid.T) {
				w.decide(disbursement.Command{Batch: id(), Do: disbursement.SetHold{By: who(), Reason: "doubt"}})
			},
			"lift": func(t *rapid.T) {
				b := id()
				do := disbursement.Lift{Signed: [2]disbursement.Signed{signed(b, w.batches[b].Holds, digest.Resume), signed(b, w.batches[b].Holds, digest.Resume)}}
				w.decide(disbursement.Command{Batch: b, Do: do})
			},
			"hours": func(t *rapid.T) { w.jump(time.Duration(rapid.IntRange(1, 30).Draw(t, "h")) * time.Hour) },
			"": func(t *rapid.T) {
				for _, b := range w.batches {
					if b.Status == disbursement.StatusApproved || b.Status == disbursement.StatusReleasing {
						w.approved(b)
					}
				}
				w.ticks()
			},
		})
	})
}

// A batch that is done is not held when an approver, a passkey or the policy ends. A retry must not pay as they approved.
func TestRetryAsks(t *testing.T) {
	t.Parallel()
	retry := disbursement.Command{Batch: "b", Do: disbursement.Retry{By: "ama"}}
	for name, end := range map[string]func(*world){
		"person": func(w *world) { w.ok(disbursement.Command{Do: disbursement.Revoke{Person: "ben"}}) },
		"passkey": func(w *world) {
			w.ok(disbursement.Command{Do: disbursement.Revoke{Person: "ben", Key: payroll.Human("ben").Hash()}})
		},
		"policy": func(w *world) {
			set := disbursement.SetPolicy{Policy: payroll.Policy()}
			set.Confirmed = w.confirm(set.Content(false), "ama", "ben")
			w.ok(disbursement.Command{Do: set})
			w.advance(25 * time.Hour)
		},
	} {
		w := one(t)
		w.word("b", enquired(disbursement.WordRefused))
		w.status("b", disbursement.StatusDone)
		end(w)
		w.no(disbursement.CodeNotInForce, retry)
		w.ticks()
		if len(w.pays) != 1 {
			t.Errorf("%s: %d requests", name, len(w.pays))
		}
	}
}

// Whose role or delegation ended after the sealing does not approve, and what the person has approved is not released.
func TestEndedRole(t *testing.T) {
	t.Parallel()
	ends := func(w *world, e disbursement.Enrolled) {
		do := disbursement.Enrol{People: []disbursement.Enrolled{e}}
		do.Confirmed = w.confirm(do.Content(), "ama", "cleo")
		w.ok(disbursement.Command{Do: do})
	}
	for name, x := range map[string]struct {
		person string
		end    func(*world)
	}{
		"role": {"ben", func(w *world) { ends(w, disbursement.Enrolled{ID: "ben", Number: "n-ben", Roles: []string{"agent"}}) }},
		"role of whom a delegate stands for": {"dan", func(w *world) {
			ends(w, disbursement.Enrolled{ID: "ben", Number: "n-ben", Roles: []string{"agent"}})
		}},
		"delegation": {"dan", func(w *world) { ends(w, disbursement.Enrolled{ID: "dan", Number: "n-dan"}) }},
		"another delegation": {"dan", func(w *world) {
			ends(w, disbursement.Enrolled{ID: "dan", Number: "n-dan", For: "cleo", Until: w.now.Add(9 * 24 * time.Hour)})
		}},
		"time of the delegation": {"dan", func(w *world) { w.advance(24 * time.Hour) }},
	} {
		w := newWorld(t)
		w.agency(payroll.Policy())
		ends(w, disbursement.Enrolled{ID: "dan", Number: "n-dan", For: "ben", Until: w.now.Add(48 * time.Hour)})
		w.advance(25 * time.Hour)
		for _, id := range []string{"b", "c"} {
			w.draft(id, line(id, 800))
			w.ok(w.seal(id))
		}
		w.ok(w.approve("b", 1, x.person))
		x.end(w)
		w.no(disbursement.CodeNotInForce, w.approve("c", 1, x.person))
		w.no(disbursement.CodeHeld, w.release("b", "cleo"))
		if !w.batches["b"].Held() {
			t.Errorf("%s: the batch is not held", name)
		}
	}
}

// ama makes two batches, is revoked and enrolled again under another id with the same staff number. Nothing that ama made
// is approved or released by the new id.
func TestMakerUnderAnotherID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.draft("draft", line("a", 10))
	w.draft("b", line("b", 10))
	w.ok(w.seal("b"))
	w.ok(w.approve("b", 1, "ben"))
	w.ok(disbursement.Command{Do: disbursement.Revoke{Person: "ama"}})
	w.no(disbursement.CodeNotInForce, w.seal("draft"))
	again := payroll.Enrolled("ama2", "chief")
	again.Number = "n-ama"
	do := disbursement.Enrol{People: []disbursement.Enrolled{again}}
	do.Confirmed = w.confirm(do.Content(), "ben", "cleo")
	w.ok(disbursement.Command{Do: do})
	w.advance(25 * time.Hour)
	w.ok(w.lift("b", "ben", "cleo"))
	w.no(disbursement.CodeMaker, w.release("b", "ama2"))
	levels, ok := w.rosters[tenant].Levels([]policy.Rule{{Role: "chief", Needed: 1}}, "ama", w.now)
	if !ok || slices.ContainsFunc(levels[0].Persons, func(a policy.Approver) bool { return a.ID == "ama2" }) {
		t.Errorf("the maker is listed: %+v", levels)
	}
}

// References of two scopes do not see each other: with both, a payee is paid once in each.
func TestScopeIsTheAgencys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	w.releasing("b", line("a", 10))
	other := w.opening("c")
	other.Scope = disbursement.ScopeBatch
	w.no(disbursement.CodeScope, disbursement.Command{Batch: "c", Do: other})
	w.ok(disbursement.Command{Batch: "c", Do: w.opening("c")})
}

// The time of commands goes back over midnight: the day's sum is not forgotten, and never negative.
func TestDayGoesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := tiered()
	p.LineFrom = 0
	w.agency(p)
	w.now = time.Date(2026, 12, 10, 23, 0, 5, 0, time.UTC) // 00:00:05 in Brazzaville
	seal := func(id string, amount int64, want string) {
		t.Helper()
		w.draft(id, line(id, amount))
		w.ok(w.seal(id))
		if got := fmt.Sprint(needed(w, id)); got != want {
			t.Errorf("%s needs %s, want %s", id, got, want)
		}
	}
	seal("b", 4000, "[1 1]")
	w.now = w.now.Add(-time.Minute)
	seal("c", 2000, "[2]")
	w.now = w.now.Add(2 * time.Minute)
	seal("d", 100, "[2]")
	for _, id := range []string{"b", "c", "d"} {
		w.ok(disbursement.Command{Batch: id, Do: disbursement.Recall{By: "ama"}})
	}
	if a := w.agencies[disbursement.AgencyKey{TenantID: tenant}]; a.Sealed != 0 {
		t.Errorf("%d are left of the day", a.Sealed)
	}
}

// An agency of two keeps two who can sign changes: without them nobody could ever be enrolled again.
func TestTwoStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(disbursement.Command{Do: disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("ama", "maker"), payroll.Enrolled("ben", "chief")}, RPID: rpID, Origin: origin}})
	w.advance(25 * time.Hour)
	person, key := disbursement.Revoke{Person: "ben"}, disbursement.Revoke{Person: "ben", Key: payroll.Human("ben").Hash()}
	w.no(disbursement.CodeRosterFault, disbursement.Command{Do: person})
	w.no(disbursement.CodeRosterFault, disbursement.Command{Do: key})
	spare := disbursement.Enrol{People: []disbursement.Enrolled{{ID: "ben", Number: "n-ben", Roles: []string{"chief"}, Keys: [][32]byte{payroll.Human("spare").Hash()}}}}
	spare.Confirmed = w.confirm(spare.Content(), "ama", "ben")
	w.ok(disbursement.Command{Do: spare})
	w.ok(disbursement.Command{Do: key})
	w.no(disbursement.CodeRosterFault, disbursement.Command{Do: person})
}

// Those who left do not count towards the people of an agency, and their passkeys stay taken.
func TestPeopleLeave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agency(payroll.Policy())
	r := w.rosters[tenant]
	for i := range policy.MaxPeople {
		id := fmt.Sprint("gone", i)
		r.Roster = r.With(policy.Person{ID: id, Number: id, Keys: []policy.Key{{Hash: payroll.Human(id).Hash()}}, RevokedAt: w.now})
	}
	w.rosters[tenant] = r
	fay := disbursement.Enrol{People: []disbursement.Enrolled{payroll.Enrolled("fay", "chief")}}
	fay.Confirmed = w.confirm(fay.Content(), "ama", "ben")
	w.ok(disbursement.Command{Do: fay})
	fay.People[0] = disbursement.Enrolled{ID: "gus", Number: "n-gus", Keys: [][32]byte{payroll.Human("gone0").Hash()}}
	fay.Confirmed = w.confirm(fay.Content(), "ama", "ben")
	w.no(disbursement.CodeKeyTaken, disbursement.Command{Do: fay})
}
