package matcher

import (
	"fmt"
	"testing"
	"time"

	"quittance/internal/cases"
	"quittance/internal/journal"
	"quittance/internal/registry"
	"quittance/reconciliation/chain"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/registries"
)

// A payment that is withdrawn before the matcher carries a match by hand out is in no match, and its
// line is a break as before.
func TestHandMatchOvertaken(t *testing.T) {
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
	superseded()
	o.runs(m, mtn)
	for range 3 {
		o.now = o.now.AddDate(0, 0, 1)
		o.runs(m, mtn)
	}
	o.full(mtn)
	var matches, breaks uint64
	if err := o.conn.QueryRow(t.Context(), "SELECT count() FROM (SELECT finding_id FROM matches GROUP BY finding_id HAVING argMax(state, source_offset) = 'open')").Scan(&matches); err != nil {
		t.Fatal(err)
	}
	if err := o.conn.QueryRow(t.Context(), "SELECT count() FROM open_breaks").Scan(&breaks); err != nil {
		t.Fatal(err)
	}
	if matches != 0 || breaks != 1 {
		t.Errorf("the line is in %d matches in force and in %d breaks", matches, breaks)
	}
}

// A proposal that people have confirmed, and whose payment is withdrawn before the matcher carries that out, ends,
// and its line is a break.
func TestConfirmedProposalOvertaken(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -9)
	superseded := o.mismatch(paid)
	o.lines(o.line("mtn", paid, 900, "", "", ""))
	s := o.settledRun(m)
	if len(s.Proposals) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	proposed := o.openCase(cases.KindProposal, 900, "finding_id = ?", s.Proposals[0].ID)
	superseded()
	o.agree(proposed, cases.ResolutionMatch, "")
	o.runs(m, mtn)
	o.agrees(mtn)
	if n := o.open(); n != 1 {
		t.Errorf("%d breaks and proposals are open", n)
	}
}

// When an account does not settle to a bank account any more, its lines end the breaks that they are in,
// and the bank account is run as before.
func TestSettlesElsewhere(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	old := o.now.AddDate(0, 0, -9)
	in := func(l *record.StatementLine, batch, kind string) *record.StatementLine {
		l.Batch, l.Kind = batch, kind
		return l
	}
	o.lines(in(o.line("mtn", old, 500, "A1", "", ""), "B-1", "payment"), in(o.line("mtn", old, 70, "A2", "", ""), "B-2", "payment"), in(o.line("banque", old, 70, "", "", ""), "B-2", "entry"))
	o.runs(m, mtn)
	if s := o.runs(m, bank); len(s.Breaks) != 1 || len(s.Matches) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.full(bank)
	o.house.Seed(t, registries.Edit(t, "grace_days: 3, settles_to: banque}", "grace_days: 3}"))
	o.reg = o.house.Open(t).Registry
	o.now = o.now.AddDate(0, 0, 1)
	if s := o.runs(o.matcher(), bank); len(s.Cleared) != 1 || len(s.Superseded) != 0 {
		t.Errorf("%+v", s.Changes)
	}
}

// The lines of an account that begins to settle to a bank account are read, although the bank account was
// run after them.
func TestSettlesLater(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	o.house.Seed(t, registries.Edit(t, "grace_days: 3, settles_to: banque}", "grace_days: 3}"))
	o.reg = o.house.Open(t).Registry
	m := o.matcher()
	l := o.line("mtn", o.now.AddDate(0, 0, -9), 500, "A1", "", "")
	l.Batch = "B-1"
	b := o.line("banque", o.now.AddDate(0, 0, -8), 77, "", "", "")
	o.lines(l, b)
	o.runs(m, mtn)
	o.runs(m, bank)
	o.full(bank)
	o.house.Seed(t, registries.Full)
	o.reg = o.house.Open(t).Registry
	o.now = o.now.AddDate(0, 0, 1)
	m = o.matcher()
	if s := o.runs(m, bank); len(s.Breaks) != 1 {
		t.Errorf("%+v", s.Changes)
	}
	o.agrees(bank)
}

// Payments of a merchant account that a corrected registry file gives to an account are read, although
// runs and a close of the account were after them: the next close counts them.
func TestMoneyLater(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	old := registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: "mtn-old"}
	paid := o.now.AddDate(0, 0, -9)
	e := o.event(money{"A2", "P2", "", 700, paid, false})
	e.Session.Collection.Account = "abcdabcdabcdabcd"
	o.produce(schemas.TopicEvents, registries.AgencyA, e)
	o.lines(o.line("mtn-old", paid, 700, "A2", "", ""))
	o.coveredOf("mtn-old", paid, paid, "accepted")
	closed := func(day time.Time, sources, lines Roll) {
		t.Helper()
		s, err := m.Sheet(t.Context(), old, day.In(wat).Format(time.DateOnly))
		if err != nil || s.Sources != sources || s.Lines != lines {
			t.Fatalf("%+v, %v", s, err)
		}
		o.approve(s)
		o.full(old)
		if err := m.closeApproved(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.full(old)
		o.proved(old)
	}
	if s := o.runs(m, old); len(s.Breaks) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.full(old)
	closed(paid, Roll{}, Roll{New: Count{1, 700}, End: Count{1, 700}})

	o.house.Seed(t, registries.Edit(t, "fingerprint: 0123456789abcdef", "fingerprint: abcdabcdabcdabcd"))
	o.reg = o.house.Open(t).Registry
	o.now = o.now.AddDate(0, 0, 1)
	m = o.matcher()
	if s := o.runs(m, old); len(s.Matches) != 1 || len(s.Cleared) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	o.full(old) // the sums of the closed day stay
	next := paid.AddDate(0, 0, 1)
	o.coveredOf("mtn-old", next, next, "accepted")
	closed(next, Roll{New: Count{1, 700}, Matched: Count{1, 700}}, Roll{Start: Count{1, 700}, Matched: Count{1, 700}})
	if s := o.runs(m, old); len(s.Matches)+len(s.Breaks)+len(s.Cleared) != 0 {
		t.Errorf("a run with nothing new: %+v", s.Changes)
	}
}

// The money of a pair is known by the last close that had it. A close without a root, and a run before
// version 2 of the rules, do not say whose money they had: they knew all of it.
func TestKnownMoney(t *testing.T) {
	t.Parallel()
	a, b := pair{"A", "momo", "a"}, pair{"A", "momo", "b"}
	r := &run{account: registry.StatementAccount{Currency: "XAF"}, whose: []pair{a, b}, marks: marks{"checkout.events/0": 99}}
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	closeOf := func(n int, version uint32, names ...string) journal.Close {
		return journal.Close{Watermarks: marks{"checkout.events/0": int64(10 * n)}, ToDay: day.AddDate(0, 0, n), ChainVersion: version, MoneyOf: names}
	}
	below := func(n int) string {
		return fmt.Sprintf("(source_topic = 'checkout.events' AND source_partition = 0 AND source_offset < %d)", n)
	}
	for _, c := range []struct {
		what   string
		closes []journal.Close
		want   string
	}{
		{"a close that does not say", []journal.Close{closeOf(1, 0)}, below(10)},
		{"a close of both", []journal.Close{closeOf(1, chain.Version, r.nameOf(a), r.nameOf(b))}, below(10)},
		{"none", nil, below(0)},
		{"one of another's money", []journal.Close{closeOf(1, chain.Version, "x")}, "(false)"},
		{"one of one", []journal.Close{closeOf(1, 0), closeOf(2, chain.Version, r.nameOf(a))}, "(false OR (" + ownedBy([]pair{a}) + " AND local_date <= '2026-11-03' AND " + below(20) + ") OR (" +
			ownedBy([]pair{b}) + " AND local_date <= '2026-11-02' AND " + below(10) + "))"},
	} {
		r.world = newWorld()
		r.world.closes = c.closes
		p := &period{run: r}
		if last := r.world.closed(); last != nil {
			p.closed = last.ToDay.Format(time.DateOnly)
		}
		if got := p.knownMoney(); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
	r.lastMoney = knownMoney{all: true, at: marks{"checkout.events/0": 7}}
	if known := r.knownBy([]knownMoney{r.lastMoney}); len(known) != 1 || len(known[0].pairs) != 2 || known[0].at["checkout.events/0"] != 7 {
		t.Errorf("a run that does not say: %+v", known)
	}
}

// A line of the bank counts without its charge, as it is matched.
func TestChargeOfTheBank(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	day := o.now.AddDate(0, 0, -2)
	l, b := o.line("mtn", day, 5000, "A1", "", ""), o.line("banque", day, 4975, "", "", "")
	l.Batch, l.Fee = "B-1", 50
	b.Batch, b.Fee, b.Kind = "B-1", 25, "entry"
	o.lines(l, b)
	o.coveredOf("banque", day, day.AddDate(0, 0, 1), "accepted")
	o.runs(m, mtn)
	o.full(mtn)
	o.runs(m, bank)
	o.agrees(bank)
	s, err := m.Sheet(t.Context(), bank, day.In(wat).Format(time.DateOnly))
	if want := (Roll{New: Count{1, 4950}, Matched: Count{1, 4950}}); err != nil || s.Lines != want || s.Sources != want {
		t.Fatalf("%+v, %v", s, err)
	}
	o.approve(s)
	o.full(bank)
	if err := m.closeApproved(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.full(bank)
	if list := o.proved(bank); len(list) != 1 {
		t.Errorf("%d closes", len(list))
	}
}

// A period is not covered by a statement whose last page is missing.
func TestPageMissing(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	yesterday := o.now.AddDate(0, 0, -1)
	o.look(m)
	o.covered(yesterday, yesterday, "accepted")
	o.house.Exec(t, `UPDATE statement_imports SET plan = jsonb_set(plan::jsonb, '{statements,0,last}', 'false')`)
	o.refuses(m, yesterday, "period.statement_missing")
}

// An account that failed here and then succeeded on another instance does not count as failing.
func TestFailingElsewhere(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m, other := o.matcher(), o.matcher()
	o.lines(o.line("mtn", o.now.AddDate(0, 0, -1), 500, "A1", "", ""))
	m.killed = func(s step) bool { return s == stepFenced }
	m.runLocked(t.Context(), mtn)
	m.killed = nil
	if err := other.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.full(mtn)
	for k := range m.failed {
		m.failed[k] = m.failed[k].Add(-retryAfter)
	}
	if err := m.Look(t.Context()); err != nil || m.failing.Load() != 0 {
		t.Errorf("%d accounts count as failing, %v", m.failing.Load(), err)
	}
}

// A line of live money with the id and the content of a line of test money proves no test money.
func TestChainModes(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	at := o.now.AddDate(0, 0, -1)
	o.pay(money{"A1", "P1", "", 500, at, false})
	l := o.line("mtn", at, 500, "A1", "", "")
	live := *l
	live.Livemode, live.ImportID, live.StatementID = true, "live-import", "live-statement"
	o.lines(l, &live)
	o.runs(m, mtn)
	o.full(mtn)
	list, err := chain.Find(t.Context(), o.conn, chain.Query{Term: "P1", TenantID: registries.AgencyA})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if len(list[0].Operator) != 1 {
		t.Errorf("test money is proved by %d lines", len(list[0].Operator))
	}
}

// People may explain a break that has an undecided collection, which is no money.
func TestExplainedUndecided(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	at := o.now.AddDate(0, 0, -3)
	o.pay(money{"U1", "", "", 5000, at, true})
	o.lines(o.line("mtn", at, 4000, "U1", "", ""))
	o.covered(at, o.now, "accepted")
	o.settledRun(m)
	o.agree(o.caseOf(match.BreakAmount, -1000), cases.ResolutionExplain, "seen")
	o.settledRun(m)
	if s, err := o.sheet(m, o.now.AddDate(0, 0, -1)); err != nil || s.Lines.Resolved != (Count{1, 4000}) || s.Sources != (Roll{}) {
		t.Errorf("%+v, %v", s, err)
	}
}

// A finding that two queries of a run return has each of its rows once.
func TestFindingReadTwice(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -9)
	o.pay(money{"A1", "", "", 500, paid, false})
	o.lines(o.line("mtn", paid, 500, "A1", "", ""))
	if s := o.runs(m, mtn); len(s.Matches) != 1 {
		t.Fatalf("%+v", s.Changes)
	}
	r, err := m.newRun(mtn)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer r.client.Close()
	if err := r.watermarks(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.findings(t.Context(), "matches", journal.FindingOpen, "1", r.world.inForce); err != nil {
			t.Fatal(err)
		}
	}
	for id, f := range r.world.inForce {
		if len(f.Sources) != 1 || len(f.Lines) != 1 {
			t.Errorf("%s has %v and %v", id, f.Sources, f.Lines)
		}
	}
	if len(r.world.inForce) != 1 {
		t.Errorf("%d matches", len(r.world.inForce))
	}
}

// A line that names a payment of long ago, which has its line, is decided with these, whether the run looks
// all its references up, those that the memory has, or these by a query; also with a new process.
func TestRepeatedReference(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string][2]int{"list": {fewRefs, manyRefs}, "memory": {0, manyRefs}, "new process": {0, manyRefs}, "query": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.journal()
			m := o.matcher()
			m.few, m.many = limits[0], limits[1]
			old := o.now.AddDate(0, 0, -60)
			for i := range 5 {
				ref := fmt.Sprint("A", i)
				o.pay(money{ref, "P" + ref, "", 500, old, false})
				o.lines(o.line("mtn", old, 500, ref, "P"+ref, ""))
			}
			if s := o.runs(m, mtn); len(s.Matches) != 5 {
				t.Fatalf("%+v", s.Changes)
			}
			o.agrees(mtn)
			for i, line := range []*record.StatementLine{o.line("mtn", o.now, 500, "A1", "", ""), o.line("mtn", o.now, 500, "NEW", "PA4", ""), o.line("mtn", o.now, 500, "OTHER", "", "")} {
				o.now = o.now.AddDate(0, 0, 1)
				o.lines(line)
				if name == "new process" {
					m = o.matcher()
					m.few = 0
				}
				s := o.runs(m, mtn)
				o.agrees(mtn)
				if rows := []int{3, 6, 7}[i]; len(s.Breaks) != 1 || s.Rows != rows { // a break stays, with its rows
					t.Errorf("line %d: the run read %d rows and found %+v", i, s.Rows, s.Changes)
				}
			}
		})
	}
}
