package matcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/casework"
	"quittance/checkout"
	"quittance/internal/cases"
	"quittance/internal/intake"
	"quittance/internal/journal"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/report"
	"quittance/internal/secret"
	"quittance/reconciliation/audit"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/registries"
	"quittance/test/servers"
)

// covered stores a statement of days in Postgres, as an import does.
func (o *office) covered(from, to time.Time, state string) (importID string) {
	o.t.Helper()
	return o.coveredOf("mtn", from, to, state)
}

func (o *office) coveredOf(account string, from, to time.Time, state string) (importID string) {
	o.t.Helper()
	importID = uuid.NewString()
	f := intake.Facts{ID: "s" + importID, Page: 1, Last: true, From: from.In(wat).Format(time.DateOnly), To: to.In(wat).Format(time.DateOnly), Currency: "XAF", Digest: importID}
	plan, err := json.Marshal(map[string]any{"statements": []intake.Facts{f}})
	if err != nil {
		o.t.Fatal(err)
	}
	key := keyOf(registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: account})
	if state == "accepted" {
		o.statement(account, importID, f, false)
	}
	o.house.Exec(o.t, `INSERT INTO statement_imports (id, agency_id, live, code, state, digest, size, profile, lines, partition, from_offset, plan, actor, imported_at)
		VALUES ($1::text::uuid, $2, false, $5, $3, $1::text, 1, 'mtn', 1, $6, 0, $4, 'test', now())`, importID, registries.AgencyA, state, plan, account, o.topo.Partition(schemas.TopicStatements, key))
	return importID
}

// statement writes that a statement was accepted or withdrawn.
func (o *office) statement(account, importID string, f intake.Facts, withdrawn bool) {
	o.t.Helper()
	value, err := o.codec.Encode(&record.Statement{
		ImportID: importID, TenantID: registries.AgencyA, Account: account, StatementID: f.ID, Page: 1, Last: true, FromDay: f.From, ToDay: f.To, Currency: f.Currency, Digest: importID, FileDigest: importID, Profile: "mtn", ImportedAt: o.now, Withdrawn: withdrawn,
	})
	if err != nil {
		o.t.Fatal(err)
	}
	key := keyOf(registry.StatementAccountKey{AgencyID: registries.AgencyA, Code: account})
	rec := &kgo.Record{
		Topic: o.kafka.Prefix + schemas.TopicStatements, Partition: o.topo.Partition(schemas.TopicStatements, key), Key: []byte(key), Value: value,
		Headers: []kgo.RecordHeader{schemas.Header("quittance-import", importID)},
	}
	if err := o.cl.ProduceSync(o.t.Context(), rec).FirstErr(); err != nil {
		o.t.Fatal(err)
	}
}

// withdraws withdraws an import, as two people do.
func (o *office) withdraws(account, importID string) {
	o.t.Helper()
	var plan []byte
	if err := o.house.Pool.QueryRow(o.t.Context(), `UPDATE statement_imports SET state = 'withdrawn' WHERE id = $1::text::uuid RETURNING plan -> 'statements'`, importID).Scan(&plan); err != nil {
		o.t.Fatal(err)
	}
	var facts []intake.Facts
	if err := json.Unmarshal(plan, &facts); err != nil {
		o.t.Fatal(err)
	}
	for _, f := range facts {
		o.statement(account, importID, f, true)
	}
}

func (o *office) sheet(m *Matcher, to time.Time) (*Sheet, error) {
	o.t.Helper()
	o.full(mtn) // waits for the journal
	return m.Sheet(o.t.Context(), mtn, to.In(wat).Format(time.DateOnly))
}

func (o *office) refuses(m *Matcher, to time.Time, code string) {
	o.t.Helper()
	_, err := o.sheet(m, to)
	var refused *operation.Error
	if !errors.As(err, &refused) || refused.Code != code {
		o.t.Errorf("closing until %s: %v, want %s", to.Format(time.DateOnly), err, code)
	}
}

// approve writes the steps of a close that two people agreed on, as the sink cases does.
func (o *office) approve(s *Sheet) (caseID string) {
	o.t.Helper()
	c := o.closeCase(s)
	o.agree(c, cases.ResolutionClose, "")
	return c.ID
}

// closeCase returns a new case of a close.
func (o *office) closeCase(s *Sheet) cases.Case {
	o.t.Helper()
	digest, err := s.Digest()
	if err != nil {
		o.t.Fatal(err)
	}
	o.n++
	return cases.Case{
		Case: casework.Case{ID: fmt.Sprint("case_close", o.n), Kind: cases.KindClose, OpenedAt: o.now}, AgencyID: mtn.AgencyID, Mode: "test",
		Evidence: map[string]string{cases.EvidenceTenant: mtn.AgencyID, cases.EvidenceLedger: s.Account, cases.EvidenceFrom: s.From, cases.EvidenceTo: s.To, cases.EvidenceDigest: digest},
	}
}

// look runs the account, and carries out closes.
func (o *office) look(m *Matcher) {
	o.t.Helper()
	o.runs(m, mtn)
	o.full(mtn) // waits for the journal
	if err := m.closeApproved(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) closes() []journal.Close {
	o.t.Helper()
	o.full(mtn)
	list, err := journal.NewStore(o.conn).Closes(o.t.Context(), journal.CloseFilter{TenantID: mtn.AgencyID, Account: "mtn"})
	if err != nil {
		o.t.Fatal(err)
	}
	return list
}

// holds checks the last close against all rows: what is open at its end is what no match and no
// explanation of its days has.
func (o *office) holds(to time.Time) {
	o.t.Helper()
	list := slices.DeleteFunc(o.closes(), func(c journal.Close) bool { return c.State != journal.CloseClosed })
	c := list[len(list)-1]
	if c.State != journal.CloseClosed {
		o.t.Fatalf("%+v", c)
	}
	if c.SourcesStart+c.SourcesNew-c.SourcesMatched-c.SourcesResolved != c.SourcesEnd || c.LinesStartAmount+c.LinesNewAmount-c.LinesMatchedAmount-c.LinesResolvedAmount != c.LinesEndAmount {
		o.t.Errorf("the roll-forward does not hold: %+v", c)
	}
	if len(list) > 1 && (list[len(list)-2].SourcesEndAmount != c.SourcesStartAmount || list[len(list)-2].LinesEnd != c.LinesStart || list[len(list)-2].Hash() != c.Previous) {
		o.t.Errorf("%+v does not begin where the close before has ended", c)
	}
	o.proved(mtn)
	_, _, w := o.full(mtn)
	last := to.In(wat).Format(time.DateOnly)
	settled := map[string]bool{}
	for _, findings := range []map[string]journal.Finding{w.inForce, w.explained} {
		for _, f := range findings {
			rows := slices.Concat(f.Sources, f.Lines)
			if lastDay(rows) <= last && w.stands(f) {
				for _, id := range rows {
					settled[id] = true
				}
			}
		}
	}
	var sources, lines Count
	for id, e := range w.expected.all() {
		if !e.Undecided && id[:10] <= last && !settled[id] {
			sources.add(e.Amount, 1)
		}
	}
	for id, l := range w.lines.all() {
		if id[:10] <= last && !settled[id] {
			lines.add(l.Amount, 1)
		}
	}
	if got := (Count{c.SourcesEnd, c.SourcesEndAmount}); got != sources {
		o.t.Errorf("until %s sources %+v are open, the close says %+v", last, sources, got)
	}
	if got := (Count{c.LinesEnd, c.LinesEndAmount}); got != lines {
		o.t.Errorf("until %s lines %+v are open, the close says %+v", last, lines, got)
	}
}

func (o *office) book() *audit.Book {
	o.t.Helper()
	b, err := audit.Read(o.t.Context(), audit.Source{Kafka: o.kafka, Topology: o.topo, Codec: o.codec}, registries.AgencyA, false)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if err := b.Close(); err != nil {
			o.t.Error(err)
		}
	})
	b.Keys = o.house.Keys.PublicKeys(journal.LabelCloses)
	b.Reports = func(c *journal.Close) ([]string, error) { return o.reports(o.t.Context(), c) }
	return b
}

// reports returns what the reports say of a close's days now.
func (o *office) reports(ctx context.Context, c *journal.Close) ([]string, error) {
	return report.OfClose(c).Totals(ctx, o.conn)
}

// named names the agency in ClickHouse, as the sink journal does.
func (o *office) named() {
	o.t.Helper()
	names := []journal.Name{{Kind: journal.NameAgency, ID: mtn.AgencyID, TenantID: mtn.AgencyID, Name: "Impôts"}, {Kind: journal.NameSlug, ID: mtn.AgencyID, TenantID: mtn.AgencyID, Name: "impots"}}
	if _, err := journal.NewStore(o.conn).PutNames(o.t.Context(), names); err != nil {
		o.t.Fatal(err)
	}
}

// Somebody changes the sums of a day in ClickHouse after its close: the report says 9,075, and no verification from
// Kafka alone found it. A close states what the reports said of its days, signed, and says when one differs. A close
// of an earlier release states nothing and stays valid.
func TestCloseStatesReports(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	closes := func() journal.Close {
		t.Helper()
		day := o.now
		o.pay(money{fmt.Sprint("R", o.n), "", "", 5075, day.Add(-time.Hour), false})
		o.lines(o.line("mtn", day.Add(-time.Hour), 5075, fmt.Sprint("R", o.n), "", ""))
		o.covered(day, day.AddDate(0, 0, 2), "accepted")
		o.now = day.AddDate(0, 0, 1)
		o.look(m)
		s, err := o.sheet(m, day)
		if err != nil {
			t.Fatal(err)
		}
		o.approve(s)
		o.look(m)
		o.holds(day)
		list := o.closes()
		return list[len(list)-1]
	}
	old := closes()
	if len(old.Reports) > 0 || !strings.HasPrefix(old.Statement(), "quittance-close 1\n") || strings.Contains(old.Statement(), "\nreport ") {
		t.Errorf("a close that states no reports is signed as %s", old.Statement())
	}
	o.named()
	now := closes()
	if !slices.Contains(now.Reports, "reconciliation.found_minor 5075") || !slices.Contains(now.Reports, "reconciliation.lines 1") || !strings.HasPrefix(now.Statement(), "quittance-close 2\n") ||
		!strings.Contains(now.Statement(), "\nreport reconciliation.found_minor 5075\n") {
		t.Errorf("the close states %q and is signed as %s", now.Reports, now.Statement())
	}
	// A line of a later day matches money of this one, between a proposal and its approval, too.
	if slices.ContainsFunc(now.Reports, func(total string) bool { return strings.Contains(total, "matched") || strings.Contains(total, "open") }) {
		t.Errorf("the close states what later lines change: %q", now.Reports)
	}
	o.proved(mtn)

	// While ClickHouse is away the closes are verified from Kafka.
	away := o.book()
	gone := errors.New("connection refused")
	away.Reports = func(*journal.Close) ([]string, error) { return nil, gone }
	if err := away.EachOf("mtn", func(c *audit.Close) error {
		if len(c.Faults) > 0 || c.Signature != audit.SignatureGood {
			t.Errorf("without ClickHouse: %q, %s", c.Faults, c.Signature)
		}
		return nil
	}); err != nil || !errors.Is(away.Unread, gone) {
		t.Errorf("%v, not compared because of %v", err, away.Unread)
	}

	if err := o.conn.Exec(t.Context(), `ALTER TABLE day_totals UPDATE lines_amount = 9075 WHERE day = ? SETTINGS mutations_sync = 1`, now.ToDay.Format(time.DateOnly)); err != nil {
		t.Fatal(err)
	}
	var faults [][]string
	if err := o.book().EachOf("mtn", func(c *audit.Close) error {
		faults = append(faults, c.Faults)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(faults) != 2 || len(faults[0]) > 0 || len(faults[1]) != 1 || !strings.Contains(faults[1][0], "reconciliation.found_minor 5075, now reconciliation.found_minor 9075") {
		t.Errorf("the closes have the faults %q", faults)
	}
	// What a close states cannot be changed either: it is signed.
	now.Reports[0] += "0"
	if now.SignedBy(o.house.Keys.PublicKeys(journal.LabelCloses)) {
		t.Error("the signature holds for other totals")
	}
}

// proved computes all closes of an account again, from Kafka, and checks that they hold.
func (o *office) proved(key registry.StatementAccountKey) []audit.Close {
	o.t.Helper()
	var list []audit.Close
	if err := o.book().EachOf(key.Code, func(c *audit.Close) error {
		list = append(list, *c)
		return nil
	}); err != nil {
		o.t.Fatal(err)
	}
	for _, c := range list {
		if len(c.Faults) > 0 || c.Unproved || c.Signature != audit.SignatureGood {
			o.t.Errorf("close of %s until %s (unproved: %t): %q", key.Code, c.ToDay.Format(time.DateOnly), c.Unproved, c.Faults)
		}
	}
	return list
}

// Random months with late rows, and with lines that are withdrawn, are closed several times. Each close begins
// where the one before has ended, and says what all rows say. Its matches never change, unless a line was withdrawn.
func TestCloses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			o := newOffice(t)
			o.journal()
			o.named()
			m := o.matcher()
			random := rand.New(rand.NewPCG(seed, 11))
			begin, late := o.now, 0
			var counting []*record.StatementLine
			for day := range 9 {
				o.now = begin.AddDate(0, 0, day)
				var lines []*record.StatementLine
				for i := range 6 {
					back := 0
					if random.IntN(4) == 0 {
						back = random.IntN(day + 1) // late, also of closed days
					}
					at := o.now.AddDate(0, 0, -back).Add(-time.Duration(random.IntN(8)) * time.Hour)
					ref := fmt.Sprint("R", day, i)
					if random.IntN(8) > 0 {
						o.pay(money{ref, "", "", 100 + int64(i), at, false})
					}
					if random.IntN(8) > 0 {
						lines = append(lines, o.line("mtn", at.Add(time.Duration(random.IntN(30))*time.Hour), 100+int64(i), ref, "", ""))
					}
					if random.IntN(12) == 0 {
						lines = append(lines, o.line("mtn", at, 100+int64(i), fmt.Sprint("R", random.IntN(day+1), i), "", "")) // a duplicate
					}
				}
				o.lines(lines...)
				counting = o.takesBack(random, append(counting, lines...)) // also of closed days: a close may be made meanwhile
				o.covered(o.now, o.now.AddDate(0, 0, 2), "accepted")
				o.look(m)
				if day%3 != 2 {
					continue
				}
				var id string
				var amount int64
				if err := o.conn.QueryRow(t.Context(), "SELECT case_id, amount FROM open_breaks WHERE type = 'break' AND length(lines) > 0 ORDER BY finding_id LIMIT 1").Scan(&id, &amount); err == nil {
					o.agree(o.openCase(cases.KindBreak, amount, "case_id = ?", id), cases.ResolutionExplain, "ref")
					o.look(m)
				}
				s, err := o.sheet(m, o.now.AddDate(0, 0, -1))
				if err != nil {
					t.Fatal(err)
				}
				o.approve(s)
				o.look(m)
				o.holds(o.now.AddDate(0, 0, -1))
				if s.Previous != "" && s.Sources.New.N > 0 {
					late++
				}
				o.unchanged(m)
			}
			if list := o.closes(); len(list) != 3 || late == 0 || len(list[0].Reports) == 0 {
				t.Errorf("%d closes", len(list))
			}
			o.nights(3)
			var changed uint64
			if err := o.conn.QueryRow(t.Context(), `SELECT count() FROM (SELECT any(f.day) AS day, any(c.to_day) AS to_day,
				argMaxIf(f.state, f.source_offset, f.source_offset < c.source_offset) AS was, argMax(f.state, f.source_offset) AS now
				FROM matches AS f CROSS JOIN closes AS c WHERE NOT hasAny(f.lines, (SELECT groupArray(`+journal.LineRowSQL+`) FROM statement_lines WHERE withdrawn)) GROUP BY f.finding_id, c.source_offset) WHERE was = 'open' AND day <= to_day AND now != 'open'`).Scan(&changed); err != nil || changed != 0 {
				t.Errorf("%d closed matches have changed, %v", changed, err)
			}
		})
	}
}

// nights verifies all closes as each night: they hold, and with the keys of somebody else none does.
func (o *office) nights(closes int) {
	o.t.Helper()
	for want, keys := range map[int]*secret.Keys{0: o.house.Keys, closes: secret.GenerateKeys()} {
		metrics := prometheus.NewRegistry()
		n, err := audit.NewNight(audit.NightConfig{
			Source: audit.Source{Kafka: o.kafka, Topology: o.topo, Codec: o.codec}, Agencies: o.reg.Agencies, Accounts: o.reg.StatementAccounts, Keys: keys.PublicKeys(journal.LabelCloses), Reports: o.reports,
			Now: func() time.Time { return o.now }, Log: servers.Logger(o.t), Metrics: metrics,
		})
		if err != nil {
			o.t.Fatal(err)
		}
		if got, err := n.Verify(o.t.Context()); err != nil || got != want {
			o.t.Errorf("%d closes do not hold, want %d: %v", got, want, err)
		}
		found, err := metrics.Gather()
		if err != nil || found[0].GetName() != "quittance_closes_not_holding" || int(found[0].GetMetric()[0].GetGauge().GetValue()) != want {
			o.t.Errorf("the metric says %v, %v", found, err)
		}
	}
}

// unchanged checks that a repeated run writes nothing.
func (o *office) unchanged(m *Matcher) {
	o.t.Helper()
	if s := o.runs(m, mtn); s.Written {
		o.t.Fatalf("a repeated run writes %+v", s.Changes)
	}
}

// What stands in the way of a close is said before and after the approval.
func TestCloseRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	yesterday := o.now.AddDate(0, 0, -1)
	o.refuses(m, yesterday, "period.not_matched")
	o.look(m)
	o.refuses(m, o.now, "period.not_over")
	o.refuses(m, yesterday, "period.statement_missing")
	o.covered(yesterday, yesterday, "accepted")
	if _, err := o.sheet(m, yesterday); err != nil {
		t.Fatal(err)
	}
	o.pay(money{"A1", "P1", "", 500, yesterday, false})
	o.runs(m, mtn)
	o.refuses(m, yesterday, "period.statement_missing") // no line of the day
	o.lines(o.line("mtn", yesterday, 500, "A1", "", ""))
	o.look(m)
	o.refusesWith(m, yesterday, "quarantined", "period.quarantined")
	o.refusesWith(m, yesterday, "pending", "period.import_pending")

	s, err := o.sheet(m, yesterday)
	if err != nil || s.Sources.Matched != (Count{1, 500}) || s.Lines.Matched != (Count{1, 500}) || s.Sources.End != (Count{}) {
		t.Fatalf("%+v, %v", s, err)
	}
	refused := o.approve(s)
	o.lines(o.line("mtn", yesterday, 70, "X", "", "")) // before the matcher carries it out
	o.look(m)
	if list := o.closes(); len(list) != 1 || list[0].State != journal.CloseRefused || list[0].Reason != "period.changed" || list[0].CaseID != refused {
		t.Fatalf("%+v", list)
	}
	if s, err = o.sheet(m, yesterday); err != nil || s.OpenBreaks != (Count{1, 70}) {
		t.Fatalf("%+v, %v", s, err)
	}
	caseID := o.approve(s)
	for _, at := range []step{stepFenced, stepProduced} {
		dying := o.matcher()
		dying.killed = func(s step) bool { return s == at }
		o.full(mtn)
		list, err := dying.approvedCloses(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		if _, err := dying.close(t.Context(), list[0]); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
	failing, tries := o.matcher(), 0
	failing.killed = func(step) bool { tries++; return true }
	for range 2 { // the second look comes before the minute is over
		if err := failing.closeApproved(t.Context()); err != nil || tries != 1 || len(failing.unclosed) != 1 {
			t.Fatalf("%d tries of a close that fails, %d accounts failing, %v", tries, len(failing.unclosed), err)
		}
	}
	o.look(m)
	o.look(o.matcher())
	list := o.closes()
	if len(list) != 2 || list[1].State != journal.CloseClosed || list[1].CaseID != caseID || list[1].LinesEnd != 1 || len(list[1].Statements) != 1 {
		t.Fatalf("%+v", list)
	}
	o.holds(yesterday)
	o.refuses(m, yesterday, "period.closed")
	o.refuses(m, yesterday.AddDate(0, 0, -1), "period.closed")
}

// Whoever could write to Postgres said that a statement was accepted, so that a period was closed without it. A row that
// is not as Kafka has it makes no period whole.
func TestForgedStatement(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	before, yesterday := o.now.AddDate(0, 0, -2), o.now.AddDate(0, 0, -1)
	o.lines(o.line("mtn", before, 70, "X", "", ""), o.line("mtn", yesterday, 71, "Y", "", ""))
	o.look(m)
	true1 := o.covered(before, before, "accepted")
	o.refuses(m, yesterday, "period.statement_missing")
	plan := func(id string) (text string) {
		if err := o.house.Pool.QueryRow(t.Context(), `SELECT plan::text FROM statement_imports WHERE id = $1::text::uuid`, id).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	honest := plan(true1)
	day := yesterday.In(wat).Format(time.DateOnly)
	o.house.Exec(t, `UPDATE statement_imports SET plan = jsonb_set(plan, '{statements,0,to}', to_jsonb($1::text))`, day) // other days
	o.refuses(m, yesterday, "period.statement_unproved")
	o.house.Exec(t, `UPDATE statement_imports SET plan = $1`, honest)
	forged := o.covered(yesterday, yesterday, "quarantined")
	o.house.Exec(t, `UPDATE statement_imports SET state = 'accepted' WHERE id = $1::text::uuid`, forged)
	o.refuses(m, yesterday, "period.statement_unproved")
	o.house.Exec(t, `UPDATE statement_imports SET partition = 999, from_offset = 7 WHERE id = $1::text::uuid`, forged)
	o.refuses(m, yesterday, "period.statement_unproved")
	o.house.Exec(t, `DELETE FROM statement_imports WHERE id = $1::text::uuid`, forged)
	o.covered(yesterday, yesterday, "accepted")
	if _, err := o.sheet(m, yesterday); err != nil {
		t.Error(err)
	}
}

// refusesWith refuses while an import has a state.
func (o *office) refusesWith(m *Matcher, to time.Time, state, code string) {
	o.t.Helper()
	id := o.covered(to, to, state)
	o.refuses(m, to, code)
	o.house.Exec(o.t, `DELETE FROM statement_imports WHERE id = $1::text::uuid`, id)
}

// A payment whose match is closed is withdrawn: its line is open again, and the next close counts
// the correction. A second line of a closed match is a break.
func TestCloseCorrected(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	paid := o.now.AddDate(0, 0, -2)
	superseded := o.mismatch(paid)
	o.pay(money{"A1", "P1", "", 300, paid, false})
	o.lines(o.line("mtn", paid, 900, "M1", "", ""), o.line("mtn", paid, 300, "A1", "", ""))
	o.covered(paid, o.now, "accepted")
	o.look(m)
	s, err := o.sheet(m, paid)
	if err != nil || s.Sources.Matched != (Count{2, 1200}) {
		t.Fatalf("%+v, %v", s, err)
	}
	o.approve(s)
	o.look(m)
	o.holds(paid)

	o.lines(o.line("mtn", paid, 300, "A1", "", "")) // after the close
	superseded()
	if s := o.runs(m, mtn); len(s.Superseded) != 1 || len(s.Breaks) != 2 {
		t.Fatalf("%+v", s.Changes)
	}
	o.now = o.now.AddDate(0, 0, 1)
	o.covered(o.now, o.now, "accepted")
	o.look(m)
	s, err = o.sheet(m, paid.AddDate(0, 0, 1))
	if err != nil || s.Corrections != 1 || s.Sources.New != (Count{-1, -900}) || s.Sources.Matched != (Count{-1, -900}) || s.Lines.Matched != (Count{-1, -900}) ||
		s.Sources.End != (Count{}) || s.Lines.New != (Count{1, 300}) || s.Lines.End != (Count{2, 1200}) || s.OpenBreaks.N != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	o.approve(s)
	o.look(m)
	o.holds(paid.AddDate(0, 0, 1))
}

// A finding with rows of two periods counts in the second, also if it was explained before the first
// was closed, and if it has so many rows that it has several parts. References may have any character.
func TestCloseAcross(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	m := o.matcher()
	first := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC) // 23:00 on the account
	next := first.Add(2 * time.Hour)
	o.now = first.AddDate(0, 0, 3)
	const odd = "R?1 $1 @x {a:String} 'q' \\"
	o.pay(money{odd, "", "", 500, first, false}, money{"B1", "", "", 70, first, false})
	o.lines(o.line("mtn", next, 400, odd, "", ""), o.line("mtn", first, 70, "B1", "", ""))
	batch := make([]*record.StatementLine, 0, partSize+10)
	for i := range partSize + 10 {
		at := first
		if i < 5 {
			at = next
		}
		l := o.line("guichets", at, 10, fmt.Sprint("C", i), "", "")
		l.Batch = "BIG"
		batch = append(batch, l)
	}
	entry := o.line("banque", next, int64(10*len(batch)), "", "", "")
	entry.Kind, entry.Batch = "entry", "BIG"
	o.manyLines(append(batch, entry))
	o.covered(first, next, "accepted")
	o.coveredOf("banque", first, next, "accepted")
	o.look(m)
	if s := o.runs(m, bank); len(s.Matches) != 1 {
		t.Fatalf("%d matches", len(s.Matches))
	}
	var id string
	if err := o.conn.QueryRow(t.Context(), "SELECT case_id FROM open_breaks WHERE type = 'break' AND kind = 'amount'").Scan(&id); err != nil {
		t.Fatal(err)
	}
	o.agree(o.openCase(cases.KindBreak, -100, "case_id = ?", id), cases.ResolutionExplain, "ref")
	o.look(m)
	o.runs(m, bank)
	o.full(bank) // waits for the journal
	s, err := o.sheet(m, first)
	if want := (Roll{New: Count{2, 570}, Matched: Count{1, 70}, End: Count{1, 500}}); err != nil || s.Sources != want || s.Lines.Resolved.N != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	o.approve(s)
	o.look(m)
	o.holds(first)
	s, err = o.sheet(m, next)
	if err != nil || s.Sources.Resolved != (Count{1, 500}) || s.Lines.Resolved != (Count{1, 400}) || s.Sources.End.N != 0 || s.Lines.End.N != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	o.approve(s)
	o.look(m)
	o.holds(next)
	s, err = m.Sheet(t.Context(), bank, first.In(wat).Format(time.DateOnly))
	if err != nil || s.Sources.Matched.N != 0 || s.Sources.New.N != partSize+6 { // with the line of B1
		t.Fatalf("%+v, %v", s, err)
	}
	if s, err = m.Sheet(t.Context(), bank, next.In(wat).Format(time.DateOnly)); err != nil || s.Sources.Matched.N != partSize+10 || s.Lines.Matched.N != 1 || s.Lines.End.N != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
}

// manyLines writes lines in one go.
func (o *office) manyLines(all []*record.StatementLine) {
	o.t.Helper()
	list := make([]*kgo.Record, len(all))
	for i, l := range all {
		value, err := o.codec.Encode(l)
		if err != nil {
			o.t.Fatal(err)
		}
		key := keyOf(registry.StatementAccountKey{AgencyID: l.TenantID, Code: l.Account})
		list[i] = &kgo.Record{Topic: o.kafka.Prefix + schemas.TopicStatements, Partition: o.topo.Partition(schemas.TopicStatements, key), Key: []byte(key), Value: value}
	}
	if err := o.cl.ProduceSync(o.t.Context(), list...).FirstErr(); err != nil {
		o.t.Fatal(err)
	}
}

// Whoever could write cases.events, or the rows of ClickHouse, closed a period of an account alone. A close that two
// people have not signed as it stands is not carried out, counted once, and stops no true one.
func TestForgedClose(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.journal()
	metrics := prometheus.NewRegistry()
	m := o.matcher(func(c *Config) { c.Metrics = metrics })
	yesterday := o.now.AddDate(0, 0, -1)
	o.lines(o.line("mtn", yesterday, 70, "X", "", ""))
	o.covered(yesterday, yesterday, "accepted")
	o.look(m)
	s, err := o.sheet(m, yesterday)
	if err != nil {
		t.Fatal(err)
	}
	honest, other := o.closeCase(s), o.closeCase(s)
	both := o.both(honest, cases.ResolutionClose, "")
	forged := func(what string, e checkout.Event, edit func(map[string]string)) checkout.Event {
		e.Detail = maps.Clone(e.Detail)
		edit(e.Detail)
		e.ID = checkout.CaseEventID(e.Detail[checkout.DetailCaseID], what)
		return e
	}
	_, alone := o.signed(honest, 1, cases.ResolutionClose, "", "A. Clerk", "a.  clerk")
	moved := []checkout.Event{}
	for i, e := range both { // to another case
		moved = append(moved, forged(fmt.Sprint("moved", i), e, func(d map[string]string) { d[checkout.DetailCaseID] = other.ID }))
	}
	o.tell(append(moved,
		both[0],
		forged("unsigned", both[1], func(d map[string]string) { delete(d, checkout.DetailSignature) }),
		forged("by the proposal", both[1], func(d map[string]string) { d[checkout.DetailSignature] = both[0].Detail[checkout.DetailSignature] }),
		forged("other days", both[1], func(d map[string]string) { d[cases.EvidenceTo] = o.now.In(wat).Format(time.DateOnly) }),
		forged("alone", alone, func(map[string]string) {}),
	)...)
	o.look(m)
	o.look(m)
	if list := o.closes(); len(list) != 0 {
		t.Fatalf("a close that nobody has signed has a record: %+v", list)
	}
	if n := unproven(t, metrics); n != 5 {
		t.Errorf("%g approvals counted, want 5", n)
	}
	o.tell(both[1])
	o.look(m)
	if list := o.closes(); len(list) != 1 || list[0].State != journal.CloseClosed || list[0].CaseID != honest.ID {
		t.Fatalf("%+v", list)
	}
	if n := unproven(t, metrics); n != 5 {
		t.Errorf("%g approvals counted, want 5", n)
	}

	// A true approval that waited for more than its life does not count either.
	o.now = o.now.AddDate(0, 0, 1)
	o.covered(o.now.AddDate(0, 0, -1), o.now, "accepted")
	o.look(m)
	if s, err = o.sheet(m, o.now.AddDate(0, 0, -1)); err != nil {
		t.Fatal(err)
	}
	late := o.both(o.closeCase(s), cases.ResolutionClose, "")
	o.now = o.now.Add(checkout.ProposalLife + time.Minute)
	o.tell(late...)
	o.look(m)
	if list := o.closes(); len(list) != 1 {
		t.Fatalf("%+v", list)
	}
}

// unproven returns how many approvals a matcher has refused.
func unproven(t *testing.T, metrics *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "quittance_matcher_unproven_total" {
			for _, m := range f.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
