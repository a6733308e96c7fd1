package matcher

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/decisions"
	"quittance/internal/journal"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
	"quittance/test/registries"
)

// caseOf returns the case of the open finding of a kind that has a row.
func (o *office) caseOf(kind match.BreakKind, amount int64) cases.Case {
	o.t.Helper()
	o.full(mtn) // waits for the journal
	return o.openCase(cases.KindBreak, amount, "kind = ? AND amount = ?", string(kind), amount)
}

// openCase returns the case of the row of open_breaks that a condition finds.
func (o *office) openCase(kind casework.Kind, amount int64, where string, args ...any) cases.Case {
	o.t.Helper()
	var id, finding, day string
	if err := o.conn.QueryRow(o.t.Context(), `SELECT case_id, finding_id, toString(day) FROM open_breaks WHERE `+where, args...).Scan(&id, &finding, &day); err != nil {
		o.t.Fatalf("%s %v: %v", where, args, err)
	}
	return cases.Case{
		Case:     casework.Case{ID: id, Kind: kind, Amount: amount, Currency: "XAF", OpenedAt: o.now},
		AgencyID: mtn.AgencyID, Mode: "test", Evidence: map[string]string{cases.EvidenceTenant: mtn.AgencyID, cases.EvidenceFinding: finding, cases.EvidenceLedger: "mtn", cases.EvidenceDay: day},
	}
}

// signed returns the events of a proposal of a case that one person made and another approved, as the sink cases
// writes them.
func (o *office) signed(c cases.Case, number int, resolution casework.Resolution, reference, one, two string) (proposed, approved checkout.Event) {
	o.t.Helper()
	content := checkout.Decided{Case: c.Case, AgencyID: c.AgencyID, Mode: c.Mode, Number: number, Resolution: resolution, Reference: reference, Reason: "seen on paper", Finding: map[string]string{}}
	for _, name := range []string{cases.EvidenceFinding, cases.EvidenceLedger, cases.EvidenceFrom, cases.EvidenceTo, cases.EvidenceDigest} {
		if text := c.Evidence[name]; text != "" {
			content.Finding[name] = text
		}
	}
	a := casework.Agreement{Kind: checkout.DecisionOfCase, Subject: checkout.Subject(c.ID, number), Digest: casework.Digest(content.Content())}
	step := func(verdict casework.DecisionState, person string) checkout.Event {
		s, err := decisions.Sign(o.house.Keys, a, verdict, casework.Signed{Person: "id of " + person, Name: person, At: o.now})
		if err != nil {
			o.t.Fatal(err)
		}
		n := cases.Note{CaseID: c.ID, Number: number, Step: verdict, Resolution: resolution, Reference: reference, Reason: "seen on paper", By: person, At: o.now, Agreement: a}
		n.Agreement.Proposed, n.Agreement.Approved = s, s
		return c.Step(n)
	}
	return step(casework.DecisionProposed, one), step(casework.DecisionApproved, two)
}

// tell writes events of cases.
func (o *office) tell(events ...checkout.Event) {
	o.t.Helper()
	for _, e := range events {
		o.produce(schemas.TopicCases, e.Detail[checkout.DetailCaseID], mapping.FromEvent(e))
	}
}

// agree writes the steps of a proposal that two people agreed on, as the sink cases does.
func (o *office) agree(c cases.Case, resolution casework.Resolution, reference string) {
	o.t.Helper()
	o.tell(o.both(c, resolution, reference)...)
}

func (o *office) both(c cases.Case, resolution casework.Resolution, reference string) []checkout.Event {
	o.t.Helper()
	proposed, approved := o.signed(c, 1, resolution, reference, "A. Clerk", "B. Chief")
	return []checkout.Event{proposed, approved}
}

// settledRun runs the account, and again, which must write nothing.
func (o *office) settledRun(m *Matcher) Summary {
	o.t.Helper()
	s := o.runs(m, mtn)
	o.agrees(mtn)
	if again := o.runs(m, mtn); again.Written {
		o.t.Fatalf("a repeated run writes %+v", again)
	}
	return s
}

func (o *office) open() (n uint64) {
	o.t.Helper()
	o.full(mtn)
	if err := o.conn.QueryRow(o.t.Context(), "SELECT count() FROM open_breaks").Scan(&n); err != nil {
		o.t.Fatal(err)
	}
	return n
}

// People match the rows of two breaks, and explain a charge. No later run asks again, and a line
// that names a payment which people have settled is a break.
func TestAgreements(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid, shown := o.now.AddDate(0, 0, -9), o.now.AddDate(0, 0, -7)
	o.pay(money{"A1", "P1", "", 5000, paid, false}, money{"A2", "P2", "", 700, paid, false})
	charge := o.line("mtn", shown, -25, "", "", "")
	charge.Kind = "charge"
	o.lines(o.line("mtn", shown, 5000, "OTHER", "", ""), charge)
	if s := o.settledRun(m); len(s.Breaks) != 4 {
		t.Fatalf("%+v", s.Changes)
	}
	line, payment := o.caseOf(match.BreakUnmatchedLine, 5000), o.caseOf(match.BreakMissingLine, -5000)
	o.agree(o.caseOf(match.BreakFee, -25), cases.ResolutionExplain, "tariff 2026")
	o.agree(payment, cases.ResolutionMatchByHand, line.ID)
	if due, err := m.due(t.Context()); err != nil || len(due) == 0 {
		t.Errorf("%v, %v: no account is due after people agreed", due, err)
	}
	if s := o.settledRun(m); s.Agreed != 4 || !s.Changes.Empty() {
		t.Fatalf("%+v", s)
	}
	if due, err := m.pendingAgreements(t.Context()); err != nil || len(due) != 0 {
		t.Errorf("%v, %v: still due", due, err)
	}
	var stage, caseID, resolution string
	var amount int64
	if err := o.conn.QueryRow(t.Context(), "SELECT toString(stage), case_id, toString(resolution), amount FROM matches").Scan(&stage, &caseID, &resolution, &amount); err != nil ||
		stage != "hand" || caseID != payment.ID || resolution != "match_by_hand" || amount != 5000 {
		t.Errorf("%s %s %s %d, %v", stage, caseID, resolution, amount, err)
	}
	var expected, open, openLines int64
	if err := o.conn.QueryRow(t.Context(), "SELECT sum(expected), sum(open_expected), sum(open_found) FROM reconciliation_days").Scan(&expected, &open, &openLines); err != nil || expected != 2 || open != 1 || openLines != 0 {
		t.Errorf("%d expected, %d and %d open, %v", expected, open, openLines, err)
	}
	// Long after, a line names the payment that people have matched.
	o.now = o.now.AddDate(0, 0, 60)
	o.settledRun(m)
	o.lines(o.line("mtn", o.now, 5000, "A1", "", ""))
	if s := o.settledRun(m); len(s.Breaks) != 1 || s.Breaks[0].Kind != match.BreakDuplicateLine || len(s.Superseded) != 0 {
		t.Fatalf("%+v", s.Changes)
	}
	if n := o.open(); n != 2 {
		t.Errorf("%d open", n)
	}
}

// A match by hand that does not add up any more is asked again, in a new case.
func TestAgreementOvertaken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid, shown := o.now.AddDate(0, 0, -9), o.now.AddDate(0, 0, -7)
	o.pay(money{"A1", "P1", "", 5000, paid, false})
	o.lines(o.line("mtn", shown, 5000, "OTHER", "", ""))
	o.settledRun(m)
	line, payment := o.caseOf(match.BreakUnmatchedLine, 5000), o.caseOf(match.BreakMissingLine, -5000)
	o.agree(line, cases.ResolutionMatchByHand, payment.ID)
	// The operator's line comes before the run.
	o.lines(o.line("mtn", shown, 5000, "A1", "", ""))
	if s := o.settledRun(m); s.Agreed != 3 || len(s.Breaks) != 1 || s.Breaks[0].Kind != match.BreakDuplicateLine {
		t.Fatalf("people were right when they agreed, and the line is a duplicate: %+v", s)
	}

	o.pay(money{"B1", "P7", "", 300, paid, false})
	o.lines(o.line("mtn", shown, 301, "ELSE", "", ""))
	o.settledRun(m)
	line, payment = o.caseOf(match.BreakUnmatchedLine, 301), o.caseOf(match.BreakMissingLine, -300)
	o.agree(line, cases.ResolutionMatchByHand, payment.ID)
	if s := o.settledRun(m); s.Agreed != 0 || !s.Written {
		t.Fatalf("%+v", s)
	}
	again := o.caseOf(match.BreakUnmatchedLine, 301)
	if again.ID == line.ID {
		t.Error("the break has no new case")
	}
	var reason, refused string
	if err := o.conn.QueryRow(t.Context(), "SELECT any(reason) FROM open_breaks WHERE case_id = ?", again.ID).Scan(&reason); err != nil || !strings.HasPrefix(reason, notCarriedOut+line.ID+" was refused") {
		t.Errorf("the new case says %q, %v", reason, err)
	}
	if err := o.conn.QueryRow(t.Context(), "SELECT toString(any(resolution)) FROM breaks WHERE case_id = ? AND state = 'cleared'", line.ID).Scan(&refused); err != nil || refused != string(cases.ResolutionRefused) {
		t.Errorf("the case of before ended as %q, %v", refused, err)
	}
}

// mismatch writes the report of a payment of 900 with the operator's reference M1, which does not fit
// its session. superseded withdraws it: the operator replaces its report.
func (o *office) mismatch(paid time.Time) (superseded func()) {
	o.t.Helper()
	e := o.event(money{"", "", "", 500, paid, false})
	e.Session.Status, e.Session.Collection.Status, e.Session.Collection.Mismatched = "failed", "undecided", true
	e.Type, e.Detail = "collection.mismatched", map[string]string{checkout.DetailCaseID: "case_m"}
	e.Session.Cases = []record.Case{{ID: "case_m", Kind: "mismatch", Amount: 900, Currency: "XAF", OperatorRef: "M1", OpenedAt: paid, ApprovedAt: paid}}
	o.produce(schemas.TopicEvents, registries.AgencyA, e)
	return func() {
		o.t.Helper()
		e.EventID, e.Type, e.Sequence, e.OccurredAt = e.EventID+"2", "case.resolved", 4, o.now
		e.Session.Sequence = 4
		e.Session.Cases[0].Resolution, e.Session.Cases[0].ClosedAt = "superseded", o.now
		o.produce(schemas.TopicEvents, registries.AgencyA, e)
	}
}

// A payment that people have matched and that is withdrawn later frees the other rows.
func TestAgreementWithdrawn(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid, shown := o.now.AddDate(0, 0, -9), o.now.AddDate(0, 0, -7)
	superseded := o.mismatch(paid)
	o.lines(o.line("mtn", shown, 900, "OTHER", "", ""))
	o.settledRun(m)
	line, payment := o.caseOf(match.BreakUnmatchedLine, 900), o.caseOf(match.BreakMissingLine, -900)
	o.agree(line, cases.ResolutionMatchByHand, payment.ID)
	if s := o.settledRun(m); s.Agreed != 3 {
		t.Fatalf("%+v", s)
	}
	o.now = o.now.AddDate(0, 0, 45)
	o.settledRun(m)
	superseded()
	if s := o.settledRun(m); len(s.Superseded) != 1 || len(s.Breaks) != 1 || s.Breaks[0].Kind != match.BreakUnmatchedLine {
		t.Fatalf("%+v", s)
	}
	o.now = o.now.AddDate(0, 0, 45)
	if s := o.settledRun(m); len(s.Cleared)+len(s.Breaks) != 0 {
		t.Fatalf("%+v", s)
	}
}

// The record of a break that a run opens is a case, and the record of its end ends that case.
func TestCaseOfBreak(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	shown := o.now.AddDate(0, 0, -7)
	o.lines(o.line("mtn", shown, 400, "A9", "", ""))
	o.settledRun(m)
	o.pay(money{"A9", "P9", "", 400, shown, false})
	if s := o.settledRun(m); len(s.Cleared) != 1 || len(s.Matches) != 1 {
		t.Fatalf("%+v", s)
	}
	var got []cases.Case
	_, err := o.kafka.ReadAll(t.Context(), o.kafka.Prefix+schemas.TopicReconciliation, func(r *kgo.Record) error {
		list, err := cases.ReadFinding(o.codec, r.Value)
		got = append(got, list...)
		return err
	})
	if err != nil || len(got) != 2 {
		t.Fatalf("%d, %v", len(got), err)
	}
	opened, ended := got[0], got[1]
	if opened.ID != ended.ID || opened.Kind != cases.KindBreak || opened.Amount != 400 || opened.AgencyID != registries.AgencyA || opened.Mode != "test" || opened.EndedAs != "" ||
		string(ended.EndedAs) != journal.FindingCleared || opened.Evidence[cases.EvidenceLines] == "" || opened.Evidence[cases.EvidenceDay] != shown.In(wat).Format(time.DateOnly) {
		t.Errorf("%+v\n%+v", opened, ended)
	}
}

// Whoever could write cases.events wrote off a difference, or matched rows of his choice, without anybody. What two
// people have not signed about the finding as it is changes nothing, and does not make an account due.
func TestForgedAgreement(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	metrics := prometheus.NewRegistry()
	m := o.matcher(func(c *Config) { c.Metrics = metrics })
	paid, shown := o.now.AddDate(0, 0, -9), o.now.AddDate(0, 0, -7)
	o.pay(money{"A1", "P1", "", 5000, paid, false})
	o.lines(o.line("mtn", shown, 5000, "OTHER", "", ""))
	o.settledRun(m)
	line, payment := o.caseOf(match.BreakUnmatchedLine, 5000), o.caseOf(match.BreakMissingLine, -5000)
	forged := func(what string, e checkout.Event, edit func(map[string]string)) checkout.Event {
		e.Detail = maps.Clone(e.Detail)
		edit(e.Detail)
		e.ID = checkout.CaseEventID(e.Detail[checkout.DetailCaseID], what)
		return e
	}
	explained := o.both(line, cases.ResolutionExplain, "tariff")
	smaller := payment
	smaller.Amount = -5
	small := o.both(smaller, casework.ResolutionWriteOff, "note 7") // people were shown another amount
	o.tell(
		explained[0],
		forged("unsigned", explained[1], func(d map[string]string) {
			for _, name := range []string{checkout.DetailPerson, checkout.DetailGroup, checkout.DetailSignedAt, checkout.DetailDigest, checkout.DetailSignature, checkout.DetailAlone} {
				delete(d, name)
			}
		}),
		forged("other resolution", explained[1], func(d map[string]string) {
			d[checkout.DetailResolution], d[checkout.DetailReference] = string(cases.ResolutionMatchByHand), payment.ID
		}),
		forged("other case", explained[1], func(d map[string]string) { d[checkout.DetailCaseID] = payment.ID }),
		small[0], small[1],
	)
	o.full(mtn)
	if due, err := m.pendingAgreements(t.Context()); err != nil || len(due) != 0 {
		t.Errorf("%v, %v: an account is due by a forged approval", due, err)
	}
	if s := o.runs(m, mtn); s.Agreed != 0 || s.Written {
		t.Fatalf("what nobody has signed was carried out: %+v", s)
	}
	if n := unproven(t, metrics); n != 4 {
		t.Errorf("%g approvals counted, want 4", n)
	}
	o.agree(line, cases.ResolutionMatchByHand, payment.ID)
	if s := o.settledRun(m); s.Agreed != 3 {
		t.Fatalf("%+v", s)
	}
}

// The exit of a case says that it is over, also if somebody has forged it or an earlier release has written it before
// anything was carried out. It settles no rows: they get a new case, so that people can decide.
func TestForgedExit(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	shown := o.now.AddDate(0, 0, -7)
	o.lines(o.line("mtn", shown, 5000, "OTHER", "", ""))
	o.settledRun(m)
	before := o.caseOf(match.BreakUnmatchedLine, 5000)
	o.tell(before.Exit(cases.Approved{CaseID: before.ID, Number: 1, Resolution: cases.ResolutionExplain, Reference: "ref", Proposer: "A. Clerk", Decider: "B. Chief", DecidedAt: o.now}))
	o.full(mtn)
	if due, err := m.pendingAgreements(t.Context()); err != nil || !due[mtn] {
		t.Errorf("%v, %v: the account is not due", due, err)
	}
	if s := o.settledRun(m); s.Agreed != 0 || !s.Written {
		t.Fatalf("%+v", s)
	}
	after := o.caseOf(match.BreakUnmatchedLine, 5000)
	if after.ID == before.ID {
		t.Fatal("the break has no case in which people can decide")
	}
	var reason string
	if err := o.conn.QueryRow(t.Context(), "SELECT any(reason) FROM open_breaks WHERE case_id = ?", after.ID).Scan(&reason); err != nil || !strings.Contains(reason, "nobody has signed") {
		t.Errorf("the new case says %q, %v", reason, err)
	}
	o.agree(after, cases.ResolutionExplain, "tariff")
	if s := o.settledRun(m); s.Agreed != 1 {
		t.Fatalf("%+v", s)
	}
}
