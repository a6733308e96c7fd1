package matcher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/disbursement"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/registry"
	"quittance/reconciliation/match"
	"quittance/schemas"
	"quittance/schemas/mapping/batches"
	"quittance/schemas/record"
	"quittance/statement"
	"quittance/test/await"
	"quittance/test/registries"
)

var salaries = registry.StatementAccountKey{AgencyID: registries.AgencyA, Live: false, Code: "salaires"}

// payroll is an agency with an account from which people are paid, and a batch of it.
type payroll struct {
	*office
	batch disbursement.Batch
	lines []disbursement.Line
}

func newPayroll(t *testing.T, lines int) *payroll {
	t.Helper()
	o := newOffice(t)
	o.house.Seed(t, strings.Replace(registries.Full, "        - {code: card, kind: acquirer", "        - {code: salaires, kind: operator, payouts: mtn_payout, number: \"46733123499\", profile: mtn}\n        - {code: card, kind: acquirer", 1))
	o.reg = o.house.Open(t).Registry
	account, ok := o.reg.PayoutAccount(registries.AgencyA, false, "mtn_payout", "")
	if !ok {
		t.Fatal("the agency has no payout account")
	}
	p := &payroll{office: o, batch: disbursement.Batch{
		ID: "dsb_1", TenantID: registries.AgencyA, BatchRef: "SAL-11", Currency: "XAF", Accounts: []disbursement.Funding{{Code: account.Code, Fingerprint: account.Account.Fingerprint()}},
	}}
	for i := range lines {
		p.lines = append(p.lines, disbursement.Line{
			LineKey: disbursement.LineKey{Batch: p.batch.ID, Position: i}, Ref: fmt.Sprintf("L%d", i), Amount: 5000, Status: disbursement.LineSent, Attempt: 1, SentAt: o.now.Add(-2 * time.Hour),
		})
	}
	return p
}

// tell writes an event of a line.
func (p *payroll) tell(kind disbursement.EventType, line int, detail map[string]string, change func(l *disbursement.Line)) {
	p.t.Helper()
	l := &p.lines[line]
	if change != nil {
		change(l)
	}
	r := batches.FromEvent(disbursement.Event{
		ID: fmt.Sprintf("%s-%d-%s", kind, line, p.now), Type: kind, TenantID: p.batch.TenantID, Batch: &p.batch, Lines: []disbursement.Line{*l}, At: p.now, Detail: detail,
	})
	p.produce(schemas.Disbursement.Events, p.batch.TenantID, &r)
}

func (p *payroll) paid(line int) {
	p.tell(disbursement.EventLinePaid, line, nil, func(l *disbursement.Line) {
		l.Status, l.PaidBy, l.OperatorRef = disbursement.LinePaid, l.Attempt, fmt.Sprintf("OP%d", line)
	})
}

func (p *payroll) refused(line int) {
	p.tell(disbursement.EventLineRefused, line, nil, func(l *disbursement.Line) { l.Status = disbursement.LineRefused })
}

// line returns a line of the account's statement that names the last attempt of a line.
func (p *payroll) line(line int, amount int64) *record.StatementLine {
	l := p.office.line(salaries.Code, p.now, amount, "", p.lines[line].AttemptID().PayoutRef(), "")
	l.Kind = string(statement.KindTransfer)
	if amount > 0 {
		l.Kind = string(statement.KindReturn)
	}
	return l
}

// words returns the commands to the processor of batches.
func (p *payroll) words() (out []string) {
	p.t.Helper()
	bounds, err := kafka.Bounds(p.t.Context(), kadm.NewClient(p.cl), p.topo.Name(schemas.Disbursement.Commands))
	if err != nil {
		p.t.Fatal(err)
	}
	err = p.kafka.Read(p.t.Context(), p.topo.Name(schemas.Disbursement.Commands), bounds, nil, func(r *kgo.Record) (bool, error) {
		var rec record.DisbursementCommand
		if err := p.codec.Decode(r.Value, &rec); err != nil {
			return false, err
		}
		cmd, err := batches.ToCommand(&rec)
		if err != nil {
			return false, err
		}
		w, ok := cmd.Do.(disbursement.Word)
		if !ok || w.Source != disbursement.FromStatement || cmd.TenantID != p.batch.TenantID {
			return false, fmt.Errorf("a command %+v", cmd)
		}
		out = append(out, fmt.Sprintf("%s %s/%d/%d %d %s", w.Kind, cmd.Batch, w.Position, w.Attempt, w.Amount, w.Currency))
		return true, nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *payroll) wordsAre(when string, want ...string) {
	p.t.Helper()
	var got []string
	await.Until(p.t, when, func() bool { got = p.words(); return len(got) >= len(want) })
	want = slices.Sorted(slices.Values(want)) // the order does not matter
	if slices.Sort(got); !slices.Equal(got, want) {
		p.t.Errorf("%s: the processor is told %q, want %q", when, got, want)
	}
}

// What people were paid is found on the account's statement by its reference. What the statement says and the operator did not is
// told to the processor of batches, and its answer ends the finding.
func TestPayoutsOnStatements(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 6)
	p.journal()
	m := p.matcher()
	const paid, undecided, refused, came, part, missing = 0, 1, 2, 3, 4, 5
	for _, line := range []int{paid, came, part, missing} {
		p.paid(line)
	}
	p.refused(refused)
	if s := p.runs(m, salaries); len(s.Matches)+len(s.Proposals)+len(s.Breaks) != 0 {
		t.Fatalf("without a statement: %+v", s.Changes)
	}
	p.agrees(salaries)

	p.now = p.now.Add(25 * time.Hour)
	p.tell(disbursement.EventCaseOpened, undecided, map[string]string{disbursement.DetailCase: string(disbursement.CaseUndecided)}, nil)
	p.office.lines(p.line(paid, -5000), p.line(undecided, -5000), p.line(refused, -5000), p.line(came, -5000), p.line(came, 5000), p.line(part, -5000), p.line(part, 4900))
	s := p.runs(m, salaries)
	if len(s.Matches) != 3 || len(s.Proposals) != 1 || s.Proposals[0].Action != match.ActionPaid || len(s.Breaks) != 3 {
		t.Fatalf("%+v", s.Changes)
	}
	want := []string{"paid dsb_1/1/1 5000 XAF", "paid dsb_1/2/1 5000 XAF", "returned dsb_1/3/1 5000 XAF"}
	once := "returned dsb_1/4/1 4900 XAF" // the processor counts each part that it is told
	p.wordsAre("a statement", append(slices.Clone(want), once)...)
	p.agrees(salaries)
	p.now = p.now.Add(time.Hour)
	p.runs(m, salaries)
	got := append(slices.Concat(want, want), once)
	p.wordsAre("told again, until the finding ends", got...)

	// The processor answers: the undecided line is paid, money came back, and people decide about the refused one.
	p.paid(undecided)
	p.tell(disbursement.EventLineReturned, came, nil, func(l *disbursement.Line) { l.Status = disbursement.LineReturned })
	p.tell(disbursement.EventLineSettled, refused, map[string]string{disbursement.DetailWas: string(disbursement.LineRefused)}, func(l *disbursement.Line) { l.Status, l.PaidBy = disbursement.LinePaid, 1 })
	p.tell(disbursement.EventLinePart, part, map[string]string{disbursement.DetailReported: "4900", disbursement.DetailCurrency: "XAF"}, nil)
	if s = p.runs(m, salaries); len(s.Matches) != 4 || len(s.Withdrawn) != 1 || len(s.Cleared) != 3 || len(s.Proposals)+len(s.Breaks) != 0 {
		t.Errorf("%+v", s.Changes)
	}
	p.agrees(salaries)
	p.now = p.now.AddDate(0, 0, 4)
	if s = p.runs(m, salaries); len(s.Breaks) != 1 || s.Breaks[0].Kind != match.BreakMissingLine {
		t.Errorf("a payout that is on no statement: %+v", s.Changes)
	}
	p.agrees(salaries)
	p.wordsAre("in the end", got...)
}

// A run that dies before its transaction ends tells the processor nothing; the next one tells it once.
func TestWordsOfKilledRuns(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 1)
	p.journal()
	p.refused(0)
	p.office.lines(p.line(0, -5000))
	m := p.matcher()
	m.killed = func(s step) bool { return s == stepProduced }
	if _, err := m.Account(context.WithoutCancel(t.Context()), salaries); err == nil {
		t.Fatal("the run was not killed")
	}
	p.wordsAre("killed")
	p.runs(p.matcher(), salaries)
	p.wordsAre("completed", "paid dsb_1/0/1 5000 XAF")
}

// Whoever writes ClickHouse makes the matcher say nothing: a word is made of the records that Kafka has.
func TestForgedRowsSayNothing(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 3)
	p.journal()
	p.paid(1)
	m := p.matcher()
	p.runs(m, salaries)
	forged := p.lines[0]
	if err := p.conn.Exec(t.Context(), `INSERT INTO expected_money (entry_id, withdrawn, kind, state, approved_at, local_date, occurred_at, tenant_id, livemode, offer_id, account, session_id, collection_id, payment_ref, notice_refs, currency, gross,
			source_topic, source_partition, source_offset, version)
		SELECT generateUUIDv4(), false, 'refused', 'refused', approved_at, local_date, occurred_at, tenant_id, livemode, offer_id, account, session_id, ?, ?, [], currency, gross, source_topic, source_partition, source_offset, version
		FROM expected_money FINAL WHERE kind = 'paid_out'`, journal.PayoutName(forged.LineKey, 1), forged.AttemptID().PayoutRef()); err != nil {
		t.Fatal(err)
	}
	p.office.lines(p.line(0, -5000), p.line(1, -5000))
	p.now = p.now.Add(time.Hour)
	if s := p.runs(p.matcher(), salaries); len(s.Matches) != 1 || len(s.Breaks) != 1 || s.Breaks[0].Action != match.ActionPaid {
		t.Fatalf("%+v", s.Changes)
	}
	p.wordsAre("a forged row")

	// A reversal proves no payment. Its row says that it is a transfer.
	p.refused(2)
	reversal := p.line(2, -5000)
	reversal.Kind = string(statement.KindReversal)
	p.office.lines(reversal)
	p.full(salaries) // waits for the journal
	if err := p.conn.Exec(t.Context(), `INSERT INTO statement_lines SELECT * REPLACE ('transfer' AS kind) FROM statement_lines FINAL WHERE line_id = ?`, reversal.LineID); err != nil {
		t.Fatal(err)
	}
	if s := p.runs(p.matcher(), salaries); len(s.Breaks) != 1 || s.Breaks[0].Action != match.ActionPaid {
		t.Fatalf("%+v", s.Changes)
	}
	p.wordsAre("a forged kind")
}

// A refusal that proves nothing is proven by statements that have all its days, and by nothing less; a payment that is on none of
// them is contested. The processor is told until it has taken it.
func TestRefusalsProvenByStatements(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 3)
	p.journal()
	m := p.matcher()
	const quiet, shown, paid = 0, 1, 2
	sent := p.now
	p.paid(paid) // so the operator says
	for line := range paid {
		p.tell(disbursement.EventLineRefused, line, nil, func(l *disbursement.Line) {
			l.Status, l.Unproven, l.SentAt, l.EndedAt = disbursement.LineRefused, true, p.now, p.now
		})
	}
	look := func(when string, want ...string) {
		t.Helper()
		p.runs(m, salaries)
		p.full(salaries)
		p.wordsAre(when, want...)
	}
	look("no statement")
	days := func(from, to int) {
		p.coveredOf(salaries.Code, sent.AddDate(0, 0, from), sent.AddDate(0, 0, to), "accepted")
	}
	p.now = sent.AddDate(0, 0, 5)
	days(-3, 2)
	look("the days of grace are missing")
	days(2, 6)
	look("two files, each of which may have half of a day")
	quarantined := p.coveredOf(salaries.Code, sent.AddDate(0, 0, 2), sent.AddDate(0, 0, 2), "quarantined")
	days(-3, 6)
	look("a day is in quarantine")
	p.house.Exec(t, `DELETE FROM statement_imports WHERE id = $1::text::uuid`, quarantined)
	unnamed := p.office.line(salaries.Code, sent.Add(time.Hour), -5000, "X1", "", "")
	unnamed.Kind = string(statement.KindTransfer)
	p.office.lines(unnamed)
	look("a debit that names nothing")
	p.office.lines(withdrawn(unnamed), p.line(shown, -5000))
	told := []string{"paid dsb_1/1/1 5000 XAF", "no_debit dsb_1/0/1 0 ", "no_debit dsb_1/2/1 0 "}
	look("all days", told...)
	told = append(told, told...)
	look("not taken", told...)
	p.tell(disbursement.EventLineProven, quiet, nil, func(l *disbursement.Line) { l.Unproven = false })
	p.tell(disbursement.EventLineSettled, paid, map[string]string{
		disbursement.DetailWas: string(disbursement.LinePaid), disbursement.DetailPaidBy: "1", disbursement.DetailPaidAt: sent.Format(time.RFC3339Nano),
	}, func(l *disbursement.Line) { l.Status, l.PaidBy = disbursement.LineRefused, 0 })
	look("taken", append(told, told[0])...)
	p.agrees(salaries)
}

// What a statement proved is taken back when it is withdrawn, unless others prove it, and told until the processor has taken it. A
// statement that has the days again proves it anew.
func TestProofsOfWithdrawnStatements(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 2)
	p.journal()
	m := p.matcher()
	sent := p.now
	for line := range 2 {
		p.tell(disbursement.EventLineRefused, line, nil, func(l *disbursement.Line) {
			l.Status, l.Unproven, l.SentAt, l.EndedAt = disbursement.LineRefused, true, p.now, p.now
		})
	}
	var told []string
	look := func(when string, want ...string) {
		t.Helper()
		p.runs(m, salaries)
		p.full(salaries)
		told = append(told, want...)
		p.wordsAre(when, told...)
	}
	p.now = sent.AddDate(0, 0, 5)
	day := func(n int) time.Time { return sent.AddDate(0, 0, n) }
	whole := p.coveredOf(salaries.Code, day(-3), day(6), "accepted")
	look("proven", "no_debit dsb_1/0/1 0 ", "no_debit dsb_1/1/1 0 ")
	for line := range 2 {
		p.tell(disbursement.EventLineProven, line, nil, func(l *disbursement.Line) {
			l.Unproven, l.Proofs = false, []disbursement.Proof{{Attempt: 1, At: p.now}}
		})
	}
	look("taken")
	other := p.coveredOf(salaries.Code, day(-20), day(-15), "accepted")
	p.withdraws(salaries.Code, other)
	look("another statement is withdrawn")
	second := p.coveredOf(salaries.Code, day(-4), day(7), "accepted")
	p.withdraws(salaries.Code, whole)
	look("another statement has the days")
	p.withdraws(salaries.Code, second)
	gone := []string{"no_proof dsb_1/0/1 0 ", "no_proof dsb_1/1/1 0 "}
	look("none has them", gone...)
	p.coveredOf(salaries.Code, sent, sent, "quarantined")
	look("not taken, and the corrected file is in quarantine", gone...)
	for line := range 2 {
		ended := disbursement.FormatProofs(p.lines[line].Proofs)
		p.tell(disbursement.EventLineUnproven, line, map[string]string{disbursement.DetailProofs: ended}, func(l *disbursement.Line) {
			l.Unproven, l.UnprovenAt, l.Proofs = true, p.now, nil
		})
	}
	look("taken back")
	p.agrees(salaries)
	p.house.Exec(t, `DELETE FROM statement_imports WHERE state = 'quarantined'`)
	p.coveredOf(salaries.Code, day(-3), day(6), "accepted")
	look("the corrected file proves it", "no_debit dsb_1/0/1 0 ", "no_debit dsb_1/1/1 0 ")
	p.now = p.now.Add(time.Second)
	for line := range 2 {
		p.tell(disbursement.EventLineProven, line, nil, func(l *disbursement.Line) {
			l.Unproven, l.Proofs = false, []disbursement.Proof{{Attempt: 1, At: p.now}}
		})
	}
	look("taken again")
	// A corrected file may have a debit that names nothing.
	unnamed := p.office.line(salaries.Code, sent.Add(time.Hour), -5000, "X1", "", "")
	unnamed.Kind = string(statement.KindTransfer)
	p.office.lines(unnamed)
	look("a debit that may be one of them", gone...)
	p.agrees(salaries)
}

// That money came back is taken back when no line says so any more, whatever became of the line; a corrected line tells it again.
func TestReturnsOfWithdrawnStatements(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 2)
	p.journal()
	m := p.matcher()
	const shown, enquired = 0, 1
	var told []string
	look := func(when string, want ...string) match.Changes {
		t.Helper()
		s := p.runs(m, salaries)
		p.full(salaries)
		told = append(told, want...)
		p.wordsAre(when, told...)
		return s.Changes
	}
	for line := range 2 {
		p.paid(line)
	}
	back := p.line(shown, 5000)
	p.office.lines(p.line(shown, -5000), p.line(enquired, -5000), back)
	look("a return", "returned dsb_1/0/1 5000 XAF")
	paidAt := p.now
	p.now = p.now.Add(time.Second)
	came := func(line int, source disbursement.WordSource) {
		p.tell(disbursement.EventLineReturned, line, map[string]string{disbursement.DetailSource: string(source)}, func(l *disbursement.Line) {
			l.Status, l.PaidAt, l.EndedAt, l.ReturnShown = disbursement.LineReturned, paidAt, p.now, source == disbursement.FromStatement
		})
	}
	came(shown, disbursement.FromStatement)
	came(enquired, disbursement.FromEnquiry) // the operator says so, and no statement
	look("taken")
	p.withdraws(salaries.Code, p.coveredOf(salaries.Code, p.now.AddDate(0, 0, -1), p.now, "accepted"))
	look("another statement is withdrawn")
	p.office.lines(withdrawn(back))
	look("the line is withdrawn", "no_return dsb_1/0/1 0 ")
	look("not taken", "no_return dsb_1/0/1 0 ")
	returnedAt := p.now
	p.now = p.now.Add(time.Second)
	p.tell(disbursement.EventReturnWithdrawn, shown, map[string]string{disbursement.DetailReturnedAt: returnedAt.Format(time.RFC3339Nano)}, func(l *disbursement.Line) {
		l.Status, l.EndedAt, l.ReturnShown = disbursement.LinePaid, paidAt, false
	})
	look("taken back")
	p.agrees(salaries)
	p.office.lines(p.line(shown, 5000))
	look("a corrected statement", "returned dsb_1/0/1 5000 XAF")
	came(shown, disbursement.FromStatement)
	if c := look("taken again"); len(c.Matches) != 1 || len(c.Cleared) != 1 {
		t.Errorf("%+v", c)
	}
	p.agrees(salaries)
}

// A close counts what was paid out and came back, and its root is that of the rows that Kafka has. What the operator refused, and
// what nobody knows, is no money.
func TestClosesHavePayouts(t *testing.T) {
	t.Parallel()
	p := newPayroll(t, 4)
	p.journal()
	m := p.matcher()
	const paid, refused, came, undecided = 0, 1, 2, 3
	p.paid(paid)
	p.paid(came)
	p.refused(refused)
	p.tell(disbursement.EventCaseOpened, undecided, map[string]string{disbursement.DetailCase: string(disbursement.CaseUndecided)}, nil)
	p.tell(disbursement.EventLineReturned, came, nil, func(l *disbursement.Line) { l.Status = disbursement.LineReturned })
	p.office.lines(p.line(paid, -5000), p.line(came, -5000), p.line(came, 5000))
	day := p.now
	p.now = p.now.AddDate(0, 0, 2)
	p.coveredOf(salaries.Code, day, p.now, "accepted")
	p.runs(m, salaries)
	p.full(salaries) // waits for the journal
	sheet, err := m.Sheet(t.Context(), salaries, day.In(wat).Format(time.DateOnly))
	if err != nil {
		t.Fatal(err)
	}
	p.approve(sheet)
	p.runs(m, salaries)
	p.full(salaries)
	if err := m.closeApproved(t.Context()); err != nil {
		t.Fatal(err)
	}
	list := p.proved(salaries)
	if len(list) != 1 || list[0].Rows != 3 {
		t.Fatalf("%d closes: %+v", len(list), list)
	}
	var counted, sum int64
	if err := p.conn.QueryRow(t.Context(), "SELECT expected, expected_amount FROM reconciliation_days WHERE account = ? AND day = toDate(?)", salaries.Code, day.In(wat).Format(time.DateOnly)).Scan(&counted, &sum); err != nil {
		t.Fatal(err)
	}
	if counted != 3 || sum != -5000 {
		t.Errorf("the day has %d payouts of %d together", counted, sum)
	}
}
