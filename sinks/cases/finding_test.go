package cases_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/identity"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/registries"
)

// finding writes a record of the matcher.
func (w *world) finding(t *testing.T, f record.Finding) {
	t.Helper()
	f.TenantID, f.Account, f.Currency, f.Part, f.Parts, f.Rule = registries.AgencyA, cmp.Or(f.Account, "mtn"), "XAF", 1, 1, 1
	f.RunID, f.Day, f.Hop, f.Stage, f.At = "run", "2026-11-20", journal.HopReceipt, "none", w.Now()
	if f.Type == "" {
		f.Type = journal.FindingBreak
	}
	value, err := w.codec.Encode(&f)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.ProduceSync(t.Context(), &kgo.Record{Topic: w.topology.Name(schemas.TopicReconciliation), Value: value}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// broken opens a break and returns its case.
func (w *world) broken(t *testing.T, id string, amount int64) string {
	t.Helper()
	f := record.Finding{FindingID: id, CaseID: cases.OfFinding(id, "run"), State: journal.FindingOpen, Kind: "unmatched_line", Reason: "no receipt fits the line", Amount: amount}
	if amount > 0 {
		f.Lines = []string{"2026-11-20/" + id + "#1"}
	} else {
		f.Kind, f.Reason, f.Sources = "missing_line", "no line fits within the days of grace", []string{"2026-11-20/" + id}
	}
	w.finding(t, f)
	w.within(t, "the case of "+id, func() bool { return w.show(t, f.CaseID).ID != "" })
	return f.CaseID
}

func refusal(err error) string {
	var refused *operation.Error
	if !errors.As(err, &refused) {
		return ""
	}
	return refused.Code
}

// A break is a case of its agency: two people explain it, and each step is an event.
func TestBreakIsACase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	id := w.broken(t, "brk_1", 25)
	d := w.show(t, id)
	if d.Kind != cases.KindBreak || d.AgencyID != registries.AgencyA || d.Mode != "test" || d.Amount != 25 || d.Reason != "no receipt fits the line" || d.Evidence[cases.EvidenceLines] != "2026-11-20/brk_1#1" {
		t.Errorf("%+v", d)
	}
	w.propose(t, w.one, id, cases.ResolutionExplain, "tariff 2026")
	w.approve(t, w.two, id, 1)
	w.within(t, "the approval", func() bool { return len(w.steps(t, id)) == 3 })
	if d := w.show(t, id); !d.Open() || d.Proposals[0].State != cases.ProposalApproved {
		t.Errorf("before the matcher has carried it out: %+v", d)
	}
	end := record.Finding{FindingID: "brk_1", CaseID: id, State: journal.FindingResolved, Resolution: "explain", Amount: 25}
	w.finding(t, end)
	w.carriedOut(t, id)
	if got, want := w.steps(t, id), []string{"case.opened  ", "case.proposed 1 One", "case.approved 1 Two", "case.resolved  One"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	events, _ := w.recorded(t, id)
	if got := events[len(events)-1].Detail; got[checkout.DetailTenant] != registries.AgencyA || got[cases.EvidenceFinding] != "brk_1" || got[checkout.DetailReference] != "tariff 2026" {
		t.Errorf("%v", got)
	}
	closed := w.show(t, id)
	if closed.Reason != d.Reason || closed.AgencyID != d.AgencyID || closed.Amount != 25 || closed.Resolution != cases.ResolutionExplain {
		t.Errorf("%+v", closed)
	}
	// The record a second time ends no case a second time.
	w.finding(t, end)
	marker := w.broken(t, "brk_2", 30)
	w.finding(t, record.Finding{FindingID: "brk_2", CaseID: marker, State: journal.FindingCleared, Amount: 30})
	w.within(t, "the end of the marker", func() bool { return w.show(t, marker).State() == cases.StateClosed })
	if events, _ := w.recorded(t, id); len(events) != 4 {
		t.Errorf("%d events", len(events))
	}
}

// A break that a later run clears closes its case, and nobody can approve a proposal any more. An
// approval of before is refused: nothing was carried out.
func TestBreakCleared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.runs(t, w)
	cleared, agreed := w.broken(t, "brk_1", 25), w.broken(t, "brk_2", 26)
	w.propose(t, w.one, cleared, cases.ResolutionExplain, "ref")
	w.propose(t, w.one, agreed, cases.ResolutionExplain, "ref")
	stop()
	w.approve(t, w.two, agreed, 1)
	for name, id := range map[string]string{"brk_1": cleared, "brk_2": agreed} {
		w.finding(t, record.Finding{FindingID: name, CaseID: id, State: journal.FindingCleared, Amount: 25})
	}
	stop = w.runs(t, w)
	w.within(t, "the ends", func() bool {
		return w.show(t, cleared).State() == cases.StateClosed && w.show(t, agreed).State() == cases.StateClosed
	})
	d := w.show(t, cleared)
	if string(d.Resolution) != journal.FindingCleared || d.ClosedBy != cases.Matcher || d.Proposals[0].State != cases.ProposalVoid {
		t.Errorf("%+v", d)
	}
	if _, err := w.store.Approve(t.Context(), w.two, cleared, 1, w.Now()); refusal(err) != "case.closed" {
		t.Errorf("approved after the end: %v", err)
	}
	if d := w.show(t, agreed); string(d.Resolution) != journal.FindingCleared || d.ClosedBy != cases.Matcher || d.Proposals[0].State != cases.ProposalRefused || d.Proposals[0].Refusal != cases.RefusalEnded {
		t.Errorf("%+v", d)
	}
	for _, id := range []string{cleared, agreed} {
		if steps := w.steps(t, id); steps[len(steps)-1] != "case.resolved  "+w.show(t, id).ClosedBy {
			t.Errorf("%q", steps)
		}
	}
	// Found again: another run, another case.
	if again := cases.OfFinding("brk_1", "later run"); again == cleared {
		t.Error("the same case")
	}
	// A rebuild reads the same.
	before := w.show(t, cleared)
	stop()
	w.Exec(t, `TRUNCATE cases, case_positions`)
	w.runs(t, w)
	w.within(t, "the rebuild", func() bool {
		d := w.show(t, cleared)
		return d.State() == cases.StateClosed && d.Resolution == before.Resolution
	})
	if events, _ := w.recorded(t, cleared); len(events) != 3 { // opened, proposed, resolved
		t.Errorf("%d events", len(events))
	}
}

// A match by hand takes two people, whatever the amount, and breaks of one account whose sums
// cancel out. The sign of a difference does not make it small.
func TestMatchByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	w.Write(t, `UPDATE agencies SET single_approval_below = 1000`)
	line, payment, other, large := w.broken(t, "brk_1", 500), w.broken(t, "brk_2", -500), w.broken(t, "brk_3", -400), w.broken(t, "brk_4", -50_000)
	_, late := w.late(t, 1)
	w.within(t, "the late case", func() bool { return w.show(t, late).ID != "" })
	for reference, want := range map[string]string{
		"": "case.nothing_to_match", other: "case.sums_differ", line: "case.no_break_to_match", payment + ", " + payment: "case.no_break_to_match",
		late: "case.no_break_to_match", "case_none": "case.no_break_to_match", payment + " " + other: "case.sums_differ",
		strings.Repeat(payment+",", 50): "case.no_break_to_match", strings.Repeat(payment+",", 60): "case.reference_malformed",
	} {
		_, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: line, Resolution: cases.ResolutionMatchByHand, Reference: reference, Reason: "r"}, w.Now())
		if refusal(err) != want {
			t.Errorf("%q: %v, want %s", reference, err, want)
		}
	}
	if _, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: line, Resolution: cases.ResolutionMatch, Reason: "r"}, w.Now()); refusal(err) != "case.resolution_not_allowed" {
		t.Error(err)
	}
	for id, r := range map[string]casework.Resolution{line: cases.ResolutionMatchByHand, large: casework.ResolutionWriteOff, other: casework.ResolutionWriteOff} {
		reference := "memo"
		if id == line {
			reference = payment
		}
		d, err := w.store.Propose(t.Context(), w.one, cases.Request{CaseID: id, Resolution: r, Reference: reference, Reason: "r"}, w.Now())
		want := cases.ProposalOpen
		if id == other {
			want = cases.ProposalApproved
		}
		if err != nil || d.Proposals[0].State != want {
			t.Errorf("%s: %+v, %v", r, d.Proposals, err)
		}
	}
	w.approve(t, w.two, line, 1)
	// The matcher carries it out for both breaks.
	w.finding(t, record.Finding{FindingID: "brk_1", CaseID: line, State: journal.FindingResolved, Resolution: "match_by_hand", Amount: 500})
	w.finding(t, record.Finding{FindingID: "brk_2", CaseID: payment, State: journal.FindingResolved, Resolution: "match_by_hand", Amount: -500})
	w.carriedOut(t, line)
	w.within(t, "the end of the other break", func() bool { return w.show(t, payment).State() == cases.StateClosed })
	if d := w.show(t, payment); d.Resolution != cases.ResolutionMatchByHand || d.ClosedBy != cases.Matcher {
		t.Errorf("%+v", d)
	}
}

// A clerk of the agency resolves nothing about an account of the counters, and nobody does it alone: a
// break does not name who took the cash.
func TestBreakOfCash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	w.Write(t, `UPDATE staff SET revoked_at = now()`)
	m, err := identity.AddStaff(t.Context(), w.Pool, w.House.Keys, registries.Actor, "", identity.StaffRequest{Name: "Clerk", Agency: "impots", Clerks: []string{"impots/c01"}}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(t, `UPDATE staff SET approved_at = created_at WHERE name = 'Clerk'`) // whoever follows others waits a day
	f := record.Finding{
		FindingID: "brk_cash", CaseID: cases.OfFinding("brk_cash", "run"), State: journal.FindingOpen, Kind: "missing_line", Reason: "no line fits within the days of grace", Amount: -4000,
		Account: "guichets", Sources: []string{"2026-11-20/brk_cash"},
	}
	w.finding(t, f)
	w.within(t, "the case", func() bool { return w.show(t, f.CaseID).ID != "" })
	w.Write(t, `UPDATE agencies SET single_approval_below = 5000`)
	request := cases.Request{CaseID: f.CaseID, Resolution: "write_off", Reference: "x", Reason: "lost"}
	_, err = w.store.Propose(t.Context(), cases.By{Staff: m.Staff, Signer: w.House.Keys}, request, w.Now())
	if refused := (*operation.Error)(nil); !errors.As(err, &refused) || refused.Code != "case.own_cash" {
		t.Errorf("a clerk: %v", err)
	}
	other, err := identity.AddStaff(t.Context(), w.Pool, w.House.Keys, registries.Actor, "", identity.StaffRequest{Name: "Member", Agency: "impots"}, registries.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(t, `UPDATE staff SET approved_at = created_at WHERE name = 'Member'`)
	if d, err := w.store.Propose(t.Context(), cases.By{Staff: other.Staff, Signer: w.House.Keys}, request, w.Now()); err != nil || d.Proposals[0].State != cases.ProposalOpen {
		t.Errorf("another person alone: %+v, %v", d.Proposals, err)
	}
}

// The matcher does not carry out an approval that nobody has signed, such as one of an earlier release, or that has
// lapsed. It is refused, so that people can propose again in the same case.
func TestMatcherDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runs(t, w)
	id, late := w.broken(t, "brk_1", 25), w.broken(t, "brk_2", 26)
	w.propose(t, w.one, id, cases.ResolutionExplain, "ref")
	w.within(t, "the proposal", func() bool { return len(w.steps(t, id)) == 2 })
	w.Exec(t, `UPDATE case_proposals SET state = 'approved', decided_by = $1, decider = 'Two', decided_at = now(), noted = 2 WHERE case_id = $2`, w.two.Staff.ID, id)
	w.propose(t, w.one, late, cases.ResolutionExplain, "ref")
	w.approve(t, w.two, late, 1)
	refused := func(id string, want checkout.Code) {
		t.Helper()
		w.within(t, "the refusal", func() bool { return w.show(t, id).Proposals[0].State == cases.ProposalRefused })
		if d := w.show(t, id); !d.Open() || d.Proposals[0].Refusal != string(want) {
			t.Errorf("%+v", d)
		}
	}
	refused(id, checkout.CodeUnsigned)
	w.propose(t, w.one, id, cases.ResolutionExplain, "ref")
	w.approve(t, w.two, id, 2)
	w.within(t, "the approvals", func() bool { return len(w.steps(t, id)) == 4 && len(w.steps(t, late)) == 3 })
	w.Lock()
	w.Time = w.Time.Add(checkout.ProposalLife + 30*time.Minute)
	w.Unlock()
	w.propose(t, w.one, w.broken(t, "brk_3", 27), cases.ResolutionExplain, "ref") // more than a round later
	time.Sleep(2 * time.Second)
	if d := w.show(t, late); d.Proposals[0].State != cases.ProposalApproved {
		t.Fatalf("the matcher's answer may be on its way: %+v", d.Proposals[0])
	}
	w.Lock()
	w.Time = w.Time.Add(time.Hour)
	w.Unlock()
	refused(late, checkout.CodeApprovalLapsed)
}
