package intake_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/identity"
	"quittance/internal/intake"
	"quittance/internal/kafka"
	"quittance/internal/operation"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/schemas"
	"quittance/schemas/record"
	"quittance/test/await"
	"quittance/test/registries"
	"quittance/test/servers"
)

// office is an agency with accounts, and a broker with the topic of statements.
type office struct {
	registries.House
	t              *testing.T
	kafka          kafka.Config
	codec          *schemas.Codec
	topo           *kafka.Topology
	clerk, checker identity.Staff // of decides
}

func newOffice(t *testing.T) *office {
	t.Helper()
	return officeIn(t, registries.SetUp(t))
}

// officeIn is the same in an installation that is there.
func officeIn(t *testing.T, house registries.House) *office {
	t.Helper()
	o := &office{House: house, t: t}
	o.Seed(t, registries.Edit(t, "{code: guichets,", "{code: airtel, kind: operator, offer: momo_b, number: MER-042, profile: airtel}\n        - {code: guichets,"))
	topics := slices.DeleteFunc(schemas.Topics(), func(t schemas.Topic) bool { return t.Name != schemas.TopicStatements })
	o.kafka = kafka.Config{Brokers: []string{servers.Kafka(t)}, Prefix: servers.Prefix(t), Topics: topics}
	cl, err := o.kafka.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	servers.CreateTopic(t, kadm.NewClient(cl), o.kafka.Prefix+schemas.TopicStatements, 2, nil)
	if o.topo, err = kafka.Load(t.Context(), o.kafka, cl); err != nil {
		t.Fatal(err)
	}
	client, err := schemas.NewClient(servers.SchemaRegistry(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if o.codec, err = schemas.NewCodec(t.Context(), client, true); err != nil {
		t.Fatal(err)
	}
	return o
}

// withKey is a person who acts with an st_ key.
func withKey(who identity.Staff) intake.By { return intake.By{Staff: who, Origin: "desk"} }

// store is that of an instance of its own.
func (o *office) store(with ...func(*intake.Config)) *intake.Store {
	o.t.Helper()
	cfg := intake.Config{Pool: o.Pool, Keys: o.Keys, Kafka: o.kafka, Topology: o.topo, Codec: o.codec}
	for _, w := range with {
		w(&cfg)
	}
	s, err := intake.New(cfg)
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func (o *office) request(code, text string) intake.Request {
	o.t.Helper()
	s, err := registry.Read(o.t.Context(), o.Pool)
	if err != nil {
		o.t.Fatal(err)
	}
	a, err := s.FindStatementAccount(registries.AgencyA, false, code)
	if err != nil {
		o.t.Fatal(err)
	}
	now := registries.Epoch
	if code == "banque" {
		now = yearEnd
	}
	return intake.Request{Account: a, File: strings.NewReader(text), Actor: registries.Actor, Now: now}
}

// yearEnd is when the bank's files are imported, whose days are before it.
var yearEnd = time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)

// imports imports a file and expects a state.
func (o *office) imports(s *intake.Store, code, text string, want statements.Verdict) intake.Result {
	o.t.Helper()
	r, err := s.Import(o.t.Context(), o.request(code, text))
	if err != nil {
		o.t.Fatal(err)
	}
	if r.State != want {
		o.t.Fatalf("%s: %s, want %s: %+v", code, r.State, want, r.Faults)
	}
	return r
}

// committed returns what readers of committed records see: lines and statements.
func (o *office) committed() (lines []*record.StatementLine, heads []*record.Statement, raw string) {
	o.t.Helper()
	var text strings.Builder
	if _, err := o.kafka.ReadAll(o.t.Context(), o.kafka.Prefix+schemas.TopicStatements, func(r *kgo.Record) error {
		text.Write(r.Value)
		name, err := o.codec.NameOf(r.Value)
		if err != nil {
			return err
		}
		if name == (*record.Statement)(nil).Name() {
			var s record.Statement
			heads = append(heads, &s)
			return o.codec.Decode(r.Value, &s)
		}
		var l record.StatementLine
		lines = append(lines, &l)
		return o.codec.Decode(r.Value, &l)
	}); err != nil {
		o.t.Fatal(err)
	}
	return lines, heads, text.String()
}

// readable returns what committed does, once it has some number of lines: a transaction is visible some
// milliseconds after the broker has confirmed its end.
func (o *office) readable(n int) (lines []*record.StatementLine, heads []*record.Statement, raw string) {
	o.t.Helper()
	await.Within(5*time.Second, func() bool {
		lines, heads, raw = o.committed()
		return len(lines) >= n
	})
	return lines, heads, raw
}

// expect checks that readers see each line once.
func (o *office) expect(lines, heads int) {
	o.t.Helper()
	got, statements, _ := o.readable(lines)
	seen := map[string]bool{}
	for _, l := range got {
		if seen[l.Account+" "+l.LineID] {
			o.t.Errorf("%s is there twice", l.LineID)
		}
		seen[l.Account+" "+l.LineID] = true
	}
	if len(got) != lines || len(statements) != heads {
		o.t.Errorf("%d lines of %d statements, want %d of %d", len(got), len(statements), lines, heads)
	}
}

const mtnHead = "Id,External id,Status,Type,Date,Amount,Fee,Currency,From,To,Balance\n"

// mtn is a day of the operator with a running balance: three payments of 1000.
func mtn(day int) string {
	var b strings.Builder
	b.WriteString(mtnHead)
	for n := range 3 {
		id := day*10 + n
		fmt.Fprintf(&b, "310000%05d,,Successful,Payment,2026-02-%02d 08:0%d:00,1000,10,XAF,\"MABIALA, Jeanne 066123456\",46733123454,%d\n", id, day, n, (day*3+n-2)*990)
	}
	return b.String()
}

// airtel has the payments from to to of two days each, without balances.
func airtel(from, to int) string {
	var b strings.Builder
	b.WriteString("Transaction ID;Reference;Service;Status;Date;Amount;Charges;Currency;Payer;Merchant;Settlement\n")
	for day := from; day <= to; day++ {
		fmt.Fprintf(&b, "CI26%04d;;Collection;Transaction Success;%02d/02/2026 09:00;500;5;XAF;NGOMA;MER-042;\n", day, day)
	}
	return b.String()
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../statements/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestImport(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	text := mtn(1)
	first := o.imports(s, "mtn", text, statements.VerdictAccepted)
	if first.Lines != 3 || first.ImportID == "" || len(first.Statements) != 1 || first.Statements[0].Closing != 3*990 || first.Statements[0].State != statements.VerdictAccepted {
		t.Errorf("%+v", first)
	}
	again := o.imports(s, "mtn", text, statements.VerdictUnchanged)
	if again.ImportID != first.ImportID {
		t.Errorf("the same bytes: %+v", again)
	}
	o.expect(3, 1)
	lines, heads, raw := o.committed()
	if l := lines[1]; l.Account != "mtn" || l.TenantID != registries.AgencyA || l.Livemode || l.Amount != 1000 || l.Fee != 10 || l.Day != "2026-02-01" || l.Kind != "payment" || l.OperatorRef != "31000000011" || l.ImportID != first.ImportID {
		t.Errorf("%+v", l)
	}
	if h := heads[0]; h.Lines != 3 || h.Net != 2970 || h.Closing != 2970 || h.StatementID != lines[0].StatementID || h.FromDay != "2026-02-01" || len(h.Digest) != 64 {
		t.Errorf("%+v", h)
	}
	// Neither Kafka nor Postgres shows a name or a number of a payer. The original does.
	var stored string
	if err := o.Pool.QueryRow(t.Context(), `SELECT (SELECT coalesce(string_agg(i::text, ''), '') FROM statement_imports i) || (SELECT string_agg(s::text, '') FROM statements s)
		|| (SELECT string_agg(encode(content, 'escape'), '') FROM statement_original_parts) || (SELECT string_agg(a::text, '') FROM audit a) || (SELECT string_agg(l::text, '') FROM statement_ledgers l)`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	for _, personal := range []string{"MABIALA", "Jeanne", "066123456", "46733123454"} {
		if strings.Contains(raw+stored, personal) {
			t.Errorf("%s is stored", personal)
		}
	}
	if original, err := s.Original(t.Context(), first.ImportID); err != nil || string(original) != text {
		t.Errorf("the original: %q, %v", original, err)
	}
	if got := o.Audited(t); got[len(got)-1] != "statements.import" {
		t.Errorf("audit: %v", got)
	}
}

// A file of several parts, one that was cut off and one whose parts were exchanged.
func TestOriginalIsWhole(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	var b strings.Builder
	b.WriteString(airtel(1, 1))
	seed := uint64(1)
	for n := range 40_000 {
		seed = seed*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "CI%d%016X;;Collection;Transaction Success;02/02/2026 09:00;%d;5;XAF;NGOMA;MER-042;\n", n, seed, 500+seed%1000)
	}
	r := o.imports(s, "airtel", b.String(), statements.VerdictAccepted)
	if original, err := s.Original(t.Context(), r.ImportID); err != nil || string(original) != b.String() {
		t.Fatalf("%d bytes, %v", len(original), err)
	}
	var parts int
	if err := o.Pool.QueryRow(t.Context(), `SELECT count(*) FROM statement_original_parts WHERE id = $1`, r.ImportID).Scan(&parts); err != nil || parts < 2 {
		t.Fatalf("%d parts, %v", parts, err)
	}
	o.Exec(t, `UPDATE statement_original_parts SET part = CASE part WHEN 0 THEN 1 ELSE 0 END + 100 WHERE part < 2`)
	o.Exec(t, `UPDATE statement_original_parts SET part = part - 100 WHERE part >= 100`)
	if _, err := s.Original(t.Context(), r.ImportID); !errors.Is(err, intake.ErrOriginal) {
		t.Errorf("exchanged parts: %v", err)
	}
	o.Exec(t, `UPDATE statement_original_parts SET part = CASE part WHEN 0 THEN 1 ELSE 0 END + 100 WHERE part < 2`)
	o.Exec(t, `UPDATE statement_original_parts SET part = part - 100 WHERE part >= 100`)
	o.Exec(t, `DELETE FROM statement_original_parts WHERE part = (SELECT max(part) FROM statement_original_parts)`)
	if _, err := s.Original(t.Context(), r.ImportID); !errors.Is(err, intake.ErrOriginal) {
		t.Errorf("cut off: %v", err)
	}
}

// An import that dies at any step is completed or repeated by the next one: no line is lost
// and none is there twice.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		step string
		same statements.Verdict // of the same file, imported again
	}{
		{intake.StepPending, statements.VerdictAccepted}, {intake.StepProduced, statements.VerdictAccepted}, {intake.StepCommitted, statements.VerdictUnchanged},
	} {
		for _, next := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s then file %d", c.step, next), func(t *testing.T) {
				t.Parallel()
				o := newOffice(t)
				dying := o.store()
				dying.Kill(func(at string) bool { return at == c.step })
				if _, err := dying.Import(t.Context(), o.request("mtn", mtn(1))); !errors.Is(err, intake.ErrKilled) {
					t.Fatal(err)
				}
				s := o.store()
				switch {
				case next == 1:
					o.imports(s, "mtn", mtn(1), c.same)
				case c.same == statements.VerdictUnchanged:
					o.imports(s, "mtn", mtn(2), statements.VerdictAccepted) // it continues the first, which it completes
				default:
					o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
					o.imports(s, "mtn", mtn(2), statements.VerdictAccepted)
				}
				o.imports(s, "mtn", mtn(1), statements.VerdictUnchanged)
				o.expect(3*next, next)
				var pending, originals int
				if err := o.Pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM statement_imports WHERE state = 'pending'), (SELECT count(*) FROM statement_originals)`).Scan(&pending, &originals); err != nil || pending != 0 || originals != next {
					t.Errorf("%d pending, %d originals, %v", pending, originals, err)
				}
			})
		}
	}
}

// Instances that import the same file at once: one accepts it, the others find it unchanged.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	states := make([]statements.Verdict, 4)
	var wg sync.WaitGroup
	for n := range states {
		s, req := o.store(), o.request("mtn", mtn(1))
		wg.Go(func() {
			r, err := s.Import(t.Context(), req)
			if err != nil {
				t.Errorf("%d: %v", n, err)
			}
			states[n] = r.State
		})
	}
	wg.Wait()
	slices.Sort(states)
	if !slices.Equal(states, []statements.Verdict{statements.VerdictAccepted, statements.VerdictUnchanged, statements.VerdictUnchanged, statements.VerdictUnchanged}) {
		t.Errorf("%v", states)
	}
	o.expect(3, 1)
}

// An instance that lost its connection to Postgres, and with it the account, cannot commit
// after another one has taken over.
func TestFenced(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	slow := o.store()
	at, proceed := make(chan struct{}), make(chan struct{})
	slow.Kill(func(step string) bool {
		if step == intake.StepProduced {
			close(at)
			<-proceed
		}
		return false
	})
	req := o.request("mtn", mtn(1))
	done := make(chan error, 1)
	go func() {
		_, err := slow.Import(t.Context(), req)
		done <- err
	}()
	<-at
	o.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`)
	o.imports(o.store(), "mtn", mtn(1), statements.VerdictAccepted)
	close(proceed)
	if err := <-done; !errors.Is(err, intake.ErrUnknown) {
		t.Errorf("the fenced instance: %v", err)
	}
	o.expect(3, 1)
	o.imports(slow, "mtn", mtn(1), statements.VerdictUnchanged)
}

// dismiss ends the quarantine of an import, once, by a person of its agency.
func (o *office) dismiss(importID string) {
	o.t.Helper()
	own := o.person("Own", "impots")
	other := own
	other.AgencyID = registries.AgencyB
	o.decidesAs(other, importID, intake.Dismissed, "r", "statement.unknown")
	o.decidesAs(own, "x", intake.Dismissed, "r", "statement.unknown")
	o.decidesAs(own, importID, intake.Dismissed, "", "statement.reason_malformed")
	o.decidesAs(own, importID, intake.Dismissed, "the first one is right", "")
	o.decidesAs(own, importID, intake.Dismissed, "again", "statement.not_quarantined")
}

func TestOrder(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	fault := func(r intake.Result, kind statements.FaultKind) {
		t.Helper()
		if !slices.ContainsFunc(r.Faults, func(f statements.Fault) bool { return f.Kind == kind && f.Line > 0 && f.Mend != "" }) {
			t.Errorf("no fault %s: %+v", kind, r.Faults)
		}
	}
	o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	fault(o.imports(s, "mtn", mtn(3), statements.VerdictRefused), statements.FaultBalance) // a day is missing
	o.imports(s, "mtn", mtn(2), statements.VerdictAccepted)
	o.imports(s, "mtn", mtn(3), statements.VerdictAccepted)

	// The same statement with other bytes: with the same content nothing happens, with other content a person decides.
	o.imports(s, "mtn", strings.ReplaceAll(mtn(1), "MABIALA", "MABIALLA"), statements.VerdictUnchanged)
	changed := strings.ReplaceAll(mtn(1), "08:00", "08:30")
	q := o.imports(s, "mtn", changed, statements.VerdictQuarantined)
	fault(q, statements.FaultChanged)
	if again := o.imports(s, "mtn", changed, statements.VerdictQuarantined); again.ImportID != q.ImportID {
		t.Errorf("quarantined twice: %s and %s", q.ImportID, again.ImportID)
	}
	o.dismiss(q.ImportID)
	r := o.imports(s, "mtn", changed, statements.VerdictRefused)
	fault(r, statements.FaultDismissed)
	if r.ImportID != q.ImportID {
		t.Errorf("%+v", r)
	}
	if original, err := s.Original(t.Context(), q.ImportID); err != nil || string(original) != changed {
		t.Errorf("the original of a quarantined file: %v", err)
	}

	// A file of another account, also one of the same operator.
	fault(o.imports(s, "mtn", strings.ReplaceAll(mtn(4), "46733123454", "46733123455"), statements.VerdictRefused), statements.FaultAccount)
	o.expect(9, 3)

	// A file that overlaps another by half. Its lines have ids, so that they are recognised.
	o.imports(s, "airtel", airtel(1, 2), statements.VerdictAccepted)
	o.imports(s, "airtel", airtel(2, 3), statements.VerdictAccepted)
	lines, _, _ := o.readable(13) // nine of the other account, and two of each of these files
	ids := map[string]bool{}
	for _, l := range lines {
		if l.Account == "airtel" {
			ids[l.LineID] = true
		}
	}
	if len(ids) != 3 {
		t.Errorf("lines of both: %v", ids)
	}
}

// row is a row of an operator's file: the day, its number in the day, and what it adds to the balance.
type row struct{ day, n, net int }

// exported is an operator's file with a running balance.
func exported(opening int, rows ...row) string {
	var b strings.Builder
	b.WriteString(mtnHead)
	for _, r := range rows {
		opening += r.net
		kind := "Payment"
		if r.net < 0 {
			kind = "Refund"
		}
		fmt.Fprintf(&b, "310000%05d,,Successful,%s,2026-02-%02d %02d:00:00,%d,10,XAF,MABIALA,46733123454,%d\n", r.day*10+r.n, kind, r.day, 8+r.n, r.net+10, opening)
	}
	return b.String()
}

// An operator's file that was cut off or exported too early comes again with more lines, and a file overlaps another by half.
// The lines are recognised, the balance goes on, and a gap is still refused.
func TestExportedAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	one, two, three := row{1, 0, 300}, row{1, 1, 200}, row{1, 2, 100}
	next, after := exported(600, row{2, 0, 50}, row{2, 1, 60}, row{2, 2, 70}), exported(780, row{3, 0, 20})
	o.imports(s, "mtn", exported(0, one), statements.VerdictAccepted) // the export of the morning
	if r := o.imports(s, "mtn", next, statements.VerdictRefused); r.Faults[0].Kind != statements.FaultBalance {
		t.Errorf("a gap: %+v", r.Faults)
	}
	o.imports(s, "mtn", exported(0, one, two, three), statements.VerdictAccepted)
	o.imports(s, "mtn", strings.ReplaceAll(exported(0, one), "MABIALA", "NGOMA"), statements.VerdictUnchanged) // a version before the last
	r := o.imports(s, "mtn", exported(0, one, two), statements.VerdictQuarantined)                             // cut off
	if want := "Lines of the accepted one that this file lacks or has with other content: 1, such as mtn/31000000012."; len(r.Faults) != 1 || !strings.HasSuffix(r.Faults[0].Detail, want) {
		t.Errorf("a line is missing: %+v", r.Faults)
	}
	o.imports(s, "mtn", exported(300, two, three, row{2, 0, 50}), statements.VerdictAccepted) // from noon to noon
	r = o.imports(s, "mtn", exported(580, row{1, 7, 70}, row{2, 1, 60}, row{2, 2, 70}, row{3, 0, 20}), statements.VerdictQuarantined)
	if len(r.Faults) != 1 || r.Faults[0].Kind != statements.FaultOverlap { // the last closing balance, but not after the last line
		t.Errorf("a line between: %+v", r.Faults)
	}
	o.imports(s, "mtn", next, statements.VerdictAccepted)                                       // the last statement and more of its last day
	o.imports(s, "mtn", exported(300, two, three, row{1, 3, 9}), statements.VerdictQuarantined) // the earlier one's first line is missing
	o.imports(s, "mtn", exported(0, one, two, row{1, 5, 9}, three), statements.VerdictAccepted) // a line that was booked late; the balance of the account is not this one
	o.imports(s, "mtn", after, statements.VerdictAccepted)

	lines, _, _ := o.readable(17)
	contents := map[string]bool{}
	for _, l := range lines {
		contents[fmt.Sprint(l.LineID, l.Day, l.Amount, l.Fee)] = true
	}
	if len(contents) != 8 {
		t.Errorf("%d lines of 8: %v", len(contents), contents)
	}
}

// An account that is paid out every day has the balance 0 every day: neither a gap nor lines under new ids pass for what follows.
func TestBalanceOfZero(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	renamed := func(text string) string { return strings.ReplaceAll(text, "310000", "990000") }
	in, out, later, back := row{2, 0, 500}, row{2, 1, -500}, row{2, 6, 300}, row{2, 7, -300}
	o.imports(s, "mtn", exported(0, row{1, 0, 200}, row{1, 1, -200}, in, out), statements.VerdictAccepted)
	for name, text := range map[string]string{
		"a gap on the last day":                    exported(500, row{2, 5, -500}),
		"a part of an earlier day":                 exported(200, row{1, 1, -200}),
		"the last day and the next, under new ids": renamed(exported(0, in, out, row{3, 0, 70})),
		"all days under new ids":                   renamed(exported(0, row{1, 0, 200}, row{1, 1, -200}, in, out, row{3, 0, 70})),
		"earlier days under new ids":               renamed(exported(0, row{1, 0, 200}, row{1, 1, -200})),
	} {
		if r := o.imports(s, "mtn", text, statements.VerdictQuarantined); len(r.Faults) != 1 || r.Faults[0].Kind != statements.FaultOverlap {
			t.Errorf("%s: %+v", name, r.Faults)
		}
	}
	o.imports(s, "mtn", exported(0, later, back), statements.VerdictAccepted) // the rest of the day, without what was exported before
	o.imports(s, "mtn", exported(0, row{3, 0, 70}), statements.VerdictAccepted)
	// Another opening balance of a day that is not the last one.
	o.imports(s, "mtn", exported(7, later, back, row{2, 8, 9}), statements.VerdictQuarantined)
}

// A row that the operator books late before the last row of the day changes the balances after it, not the lines.
func TestBookedLate(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	one, two := row{1, 0, 300}, row{1, 1, 200}
	o.imports(s, "mtn", exported(0, one, two), statements.VerdictAccepted)
	if r := o.imports(s, "mtn", exported(7, one, two, row{1, 2, 9}), statements.VerdictQuarantined); !strings.Contains(r.Faults[0].Detail, "opening balance was 0 instead of 7") {
		t.Errorf("another opening balance: %+v", r.Faults)
	}
	o.imports(s, "mtn", exported(0, one, row{1, 5, 9}, two), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(509, row{2, 0, 1}), statements.VerdictAccepted)
	o.Exec(t, `UPDATE statement_originals SET sealed = 'damaged'`)
	if r := o.imports(s, "mtn", exported(509, row{2, 0, 1}, row{2, 1, 5}), statements.VerdictQuarantined); !strings.Contains(r.Faults[0].Detail, "cannot be read any more") {
		t.Errorf("the accepted file is damaged: %+v", r.Faults)
	}
}

// decides decides about an import, and expects a code of refusal.
func (o *office) decides(id string, d intake.Decision, reason, want string) {
	o.t.Helper()
	if o.clerk.ID == "" {
		o.clerk = o.person("Clerk", "impots")
	}
	o.decidesAs(o.clerk, id, d, reason, want)
}

// decidesAs decides about an import as a person; another one approves a release.
func (o *office) decidesAs(by identity.Staff, id string, d intake.Decision, reason, want string) {
	o.t.Helper()
	if o.checker.ID == "" && d == intake.Released {
		o.checker = o.person("Checker", "impots")
	}
	var err error
	if d == intake.Dismissed {
		err = intake.Dismiss(o.t.Context(), o.Pool, o.Keys, withKey(by), id, reason, yearEnd)
	} else {
		var r intake.Release
		if r, err = intake.RequestRelease(o.t.Context(), o.Pool, o.Keys, withKey(by), id, reason, yearEnd); err == nil {
			_, err = intake.ApproveRelease(o.t.Context(), o.Pool, o.Keys, withKey(o.checker), r.ID, yearEnd)
		}
	}
	var refused *operation.Error
	if (err != nil) != (want != "") || err != nil && (!errors.As(err, &refused) || refused.Code != want) {
		o.t.Errorf("%s %q %q: %v, want %q", d, id, reason, err, want)
	}
}

// covers returns the coverage of the account mtn.
func (o *office) covers() intake.Coverage {
	o.t.Helper()
	c, err := intake.Cover(o.t.Context(), o.Pool, o.Keys, o.request("mtn", "").Account.StatementAccountKey, "2026-02-01", "2026-02-28", yearEnd)
	if err != nil {
		o.t.Fatal(err)
	}
	return c
}

// The operator changes a line of an accepted day: the file waits in quarantine, and the next day does not follow. A person
// releases the file; imported again, it counts, also if the process dies in between and somebody dismisses the file meanwhile.
func TestReleased(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	changed, next := exported(0, row{1, 0, 400}, row{1, 1, 200}), exported(600, row{2, 0, 50})
	o.imports(s, "mtn", exported(0, row{1, 0, 300}, row{1, 1, 200}), statements.VerdictAccepted)
	q := o.imports(s, "mtn", changed, statements.VerdictQuarantined)
	o.imports(s, "mtn", next, statements.VerdictRefused)
	o.decides("x", intake.Released, "r", "statement.unknown")
	o.decides(q.ImportID, intake.Released, "", "statement.reason_malformed")
	o.decides(q.ImportID, intake.Released, "the operator corrected line 2", "")
	o.decides(q.ImportID, intake.Released, "again", "statement.not_quarantined")
	if c := o.covers(); !slices.Equal(c.Quarantined, []string{q.ImportID}) {
		t.Errorf("released, not imported again: %+v", c)
	}
	dying := o.store()
	dying.Kill(func(at string) bool { return at == intake.StepCommitted })
	if _, err := dying.Import(t.Context(), o.request("mtn", changed)); !errors.Is(err, intake.ErrKilled) {
		t.Fatal(err)
	}
	o.decides(q.ImportID, intake.Dismissed, "released by mistake", "")
	o.imports(s, "mtn", changed, statements.VerdictUnchanged)
	o.imports(s, "mtn", next, statements.VerdictAccepted)
	if c := o.covers(); len(c.Quarantined) != 0 || c.Pending || len(c.Statements) != 3 {
		t.Errorf("%+v", c)
	}
	if lines, _, _ := o.readable(5); len(lines) != 5 {
		t.Errorf("%d lines", len(lines))
	}
}

// The operator withdraws the only line of the last day: the file has other days, and takes the place of the last statement
// when a person releases it. One of days before the last statement does not.
func TestReleasedOfOtherDays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	before, corrected, next := exported(7, row{1, 0, 3}), exported(10, row{2, 0, 300}), exported(310, row{4, 0, 50})
	o.imports(s, "mtn", exported(10, row{2, 0, 300}, row{3, 0, 200}), statements.VerdictAccepted)
	q := o.imports(s, "mtn", corrected, statements.VerdictQuarantined)
	o.imports(s, "mtn", next, statements.VerdictRefused)
	o.decides(q.ImportID, intake.Released, "the operator withdrew the last line", "")
	o.imports(s, "mtn", corrected, statements.VerdictAccepted)
	o.imports(s, "mtn", next, statements.VerdictAccepted)
	q = o.imports(s, "mtn", before, statements.VerdictQuarantined)
	o.decides(q.ImportID, intake.Released, "it was missing", "")
	o.imports(s, "mtn", before, statements.VerdictAccepted)
	o.imports(s, "mtn", exported(360, row{5, 0, 50}), statements.VerdictAccepted)
}

// Files of the morning and of the afternoon of a day have one id, and follow each other. The whole day comes after them. A day whose
// lines have new ids does not pass for an afternoon, also of an account without balances.
func TestHalfDays(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	one, two, three := row{1, 0, 300}, row{1, 4, 200}, row{1, 8, 100}
	o.imports(s, "mtn", exported(0, one), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(310, two), statements.VerdictQuarantined)
	o.imports(s, "mtn", exported(300, two), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(500, three), statements.VerdictAccepted)
	o.imports(s, "mtn", strings.ReplaceAll(exported(0, one, two, three), "310000", "990000"), statements.VerdictQuarantined)
	o.imports(s, "mtn", exported(0, one, two, three, row{1, 9, 5}), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(605, row{2, 0, 50}), statements.VerdictAccepted)

	of := func(id, at string) string {
		return "Transaction ID;Reference;Service;Status;Date;Amount;Charges;Currency;Payer;Merchant;Settlement\n" + id + ";;Collection;Transaction Success;01/02/2026 " + at + ";500;5;XAF;NGOMA;MER-042;\n"
	}
	o.imports(s, "airtel", of("A1", "09:00"), statements.VerdictAccepted)
	o.imports(s, "airtel", of("A2", "15:00"), statements.VerdictAccepted)
	o.imports(s, "airtel", of("B1", "09:00"), statements.VerdictQuarantined)
}

// The whole file of some days, after a part of the last one was imported by itself.
func TestWholeAfterParts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	one, two, three, four := row{1, 0, 300}, row{2, 0, 200}, row{2, 1, 10}, row{2, 2, 20}
	first := o.imports(s, "mtn", exported(0, one, two), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(500, three), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(0, one, two, three, four), statements.VerdictAccepted)
	o.imports(s, "mtn", exported(530, row{3, 0, 50}), statements.VerdictAccepted)
	if again := o.imports(s, "mtn", strings.ReplaceAll(exported(0, one, two), "MABIALA", "NGOMA"), statements.VerdictUnchanged); again.ImportID != first.ImportID {
		t.Errorf("the same content is import %q, not %q", again.ImportID, first.ImportID)
	}
}

// A file that was released by mistake is dismissed, and a statement that is right again after another version of it is the
// account's last one again.
func TestReleasedByMistake(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	right, wrong := exported(0, row{1, 0, 300}, row{1, 1, 200}), exported(0, row{1, 0, 400}, row{1, 1, 200})
	first := o.imports(s, "mtn", right, statements.VerdictAccepted)
	q := o.imports(s, "mtn", wrong, statements.VerdictQuarantined)
	o.decides(first.ImportID, intake.Released, "it is the last one", "statement.not_quarantined")
	o.decides(q.ImportID, intake.Released, "by mistake", "")
	o.decides(q.ImportID, intake.Dismissed, "by mistake", "")
	o.imports(s, "mtn", wrong, statements.VerdictRefused)

	late := exported(0, row{1, 0, 300}, row{1, 1, 200}, row{1, 2, 9})
	second := o.imports(s, "mtn", late, statements.VerdictAccepted)
	o.imports(s, "mtn", right, statements.VerdictUnchanged)
	o.imports(s, "mtn", exported(500, row{2, 0, 50}), statements.VerdictRefused)
	o.decides(first.ImportID, intake.Dismissed, "not in quarantine", "statement.not_quarantined")
	o.decides(first.ImportID, intake.Released, "the operator withdrew the last line", "")
	o.decides(first.ImportID, intake.Released, "again", "statement.not_quarantined")
	o.imports(s, "mtn", late, statements.VerdictUnchanged)
	o.decides(second.ImportID, intake.Released, "and back", "")
	o.decides(first.ImportID, intake.Released, "and again", "")
	o.imports(s, "mtn", exported(500, row{2, 0, 50}), statements.VerdictAccepted)
	o.decides(second.ImportID, intake.Released, "too late", "statement.not_quarantined")
}

// bankOf is a bank's statement of a day with entries that have no ids.
func bankOf(id, day string, opening int, amounts ...int) string {
	balance := func(code string, amount int) string {
		return fmt.Sprintf(`<Bal><Tp><CdOrPrtry><Cd>%s</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">%d</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>%s</Dt></Dt></Bal>`, code, amount, day)
	}
	closing, entries := opening, ""
	for _, amount := range amounts {
		closing += amount
		entries += fmt.Sprintf(`<Ntry><Amt Ccy="XAF">%d</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>%s</Dt></BookgDt></Ntry>`, amount, day)
	}
	return fmt.Sprintf(`<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><GrpHdr/><Stmt><Id>%s</Id><Acct><Id><IBAN>CG3930011000101013451300019</IBAN></Id></Acct>%s%s%s</Stmt></BkToCstmrStmt></Document>`,
		id, balance("OPBD", opening), balance("CLBD", closing), entries)
}

// A statement whose lines have no ids cannot be released, because its lines would count twice, and release says so at once. A
// file that an earlier release quarantined is refused when it is imported.
func TestReleasedWithoutIDs(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	changed := bankOf("S1", "2026-11-20", 0, 400, 300)
	o.imports(s, "banque", bankOf("S1", "2026-11-20", 0, 300, 400), statements.VerdictAccepted)
	q := o.imports(s, "banque", changed, statements.VerdictQuarantined)
	o.decides(q.ImportID, intake.Released, "the order is another one", "statement.positional")
	o.Exec(t, `UPDATE statement_imports SET plan = jsonb_set(plan, '{statements,0}', plan -> 'statements' -> 0 #- '{twice}') WHERE state = 'quarantined'`)
	o.decides(q.ImportID, intake.Released, "the order is another one", "")
	if r := o.imports(s, "banque", changed, statements.VerdictQuarantined); r.ImportID != q.ImportID || !strings.Contains(r.Faults[0].Detail, "it cannot be released") {
		t.Errorf("%+v", r)
	}
	o.decides(q.ImportID, intake.Dismissed, "the first one is right", "")
	o.imports(s, "banque", changed, statements.VerdictRefused)
	o.expect(2, 1)
}

func TestBankStatements(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	two := testdata(t, "bank-a-02-two-statements.xml")
	r := o.imports(s, "banque", two, statements.VerdictAccepted)
	if len(r.Statements) != 2 || r.Lines == 0 {
		t.Fatalf("%+v", r)
	}
	lines, heads, _ := o.readable(r.Lines)
	if len(heads) != 2 || len(lines) != r.Lines {
		t.Errorf("%d lines of %d statements", len(lines), len(heads))
	}
	for _, h := range heads {
		n := 0
		for _, l := range lines {
			if l.StatementID == h.StatementID {
				n++
			}
		}
		if int64(n) != h.Lines {
			t.Errorf("%s has %d lines, %d are there", h.StatementID, h.Lines, n)
		}
	}
	o.imports(s, "banque", two, statements.VerdictUnchanged)
	o.imports(s, "banque", strings.Replace(two, "<Document", "<!-- again -->\n<Document", 1), statements.VerdictUnchanged) // other bytes
	if r := o.imports(s, "banque", testdata(t, "bad-doctype.xml"), statements.VerdictRefused); r.ImportID != "" || len(r.Faults) == 0 {
		t.Errorf("%+v", r)
	}
}

// A file without booked rows is accepted, a second one changes nothing, and the account keeps what it knows of the statement
// before: a gap after it is refused.
func TestFileWithoutRows(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	o.imports(s, "mtn", mtn(1), statements.VerdictAccepted)
	o.imports(s, "mtn", mtnHead, statements.VerdictAccepted)
	pending := mtnHead + "31000000099,,Pending,Payment,2026-02-02 10:00:00,1000,10,XAF,242060000001,,3000\n"
	o.imports(s, "mtn", pending, statements.VerdictUnchanged)
	if r := o.imports(s, "mtn", mtn(3), statements.VerdictRefused); len(r.Faults) != 1 || r.Faults[0].Kind != statements.FaultBalance {
		t.Errorf("a day is missing: %v", r.Faults)
	}
	o.imports(s, "mtn", mtn(2), statements.VerdictAccepted)
}

// A file has a pending entry, and the operator drops it: the same lines without it say that their days have no more money. They
// count once. What was told is not taken back by the earlier file, nor by one with an entry of a later day.
func TestPendingEntryIsGone(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	rows := func(id int, name string) string { // other bytes, the same content
		return strings.ReplaceAll(exported(0, row{1, 0, 300}, row{8, 0, 200}, row{9, 0, 100}), "MABIALA", name) +
			fmt.Sprintf("310000000%02d,,Pending,Payment,2026-02-%02d 10:00:00,1000,10,XAF,242060000001,,3000\n", id, id)
	}
	covers := func(to string, want bool) {
		t.Helper()
		if c := o.covers(); c.Covers("2026-02-02", to) != want || len(c.Statements) != 1 {
			t.Errorf("the days to %s are covered: %v, by %q", to, !want, c.Statements)
		}
	}
	o.imports(s, "mtn", rows(3, "MABIALA"), statements.VerdictAccepted)
	covers("2026-02-04", false)
	o.imports(s, "mtn", rows(3, "NGOMA"), statements.VerdictUnchanged)
	o.imports(s, "mtn", rows(5, "NGOMA"), statements.VerdictAccepted) // it waits since another day
	covers("2026-02-04", true)
	covers("2026-02-08", false)
	gone, _, _ := strings.Cut(rows(5, "OKEMBA"), "31000000005,,Pending")
	last := o.imports(s, "mtn", gone, statements.VerdictAccepted)
	covers("2026-02-08", true)
	for _, text := range []string{rows(3, "OKEMBA"), rows(5, "OKEMBA"), strings.ReplaceAll(gone, "OKEMBA", "MOUKOKO")} {
		o.imports(s, "mtn", text, statements.VerdictUnchanged)
	}
	covers("2026-02-08", true)
	o.imports(s, "mtn", exported(600, row{10, 0, 50}), statements.VerdictAccepted) // the account goes on
	lines, _, _ := o.readable(10)
	ids := map[string]bool{}
	for _, l := range lines {
		ids[l.LineID] = true
	}
	if len(ids) != 4 || last.Lines != 3 {
		t.Errorf("%d lines with %d ids; %d in the last file", len(lines), len(ids), last.Lines)
	}
}

// A statement that covers a day of an accepted one again, under another id, would count its money twice. It is refused, also
// when the balance of the day is that of its beginning, and the next one is accepted.
func TestOverlapWithoutIDs(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	o.imports(s, "banque", bankOf("S1", "2026-11-20", 0, 700), statements.VerdictAccepted)
	r := o.imports(s, "banque", bankOf("S2", "2026-11-20", 0, 700), statements.VerdictRefused)
	if len(r.Faults) != 2 || r.Faults[0].Kind != statements.FaultOverlap || r.ImportID != "" {
		t.Errorf("%+v", r)
	}
	o.expect(1, 1)
	o.imports(s, "banque", bankOf("S2", "2026-11-21", 700, 700), statements.VerdictAccepted)
	o.expect(2, 2)
	balanced := strings.NewReplacer("CRDT</CdtDbtInd><Sts>", "DBIT</CdtDbtInd><Sts>", `<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">2100`, `<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="XAF">700`).Replace(bankOf("S3", "2026-11-22", 1400, 700))
	o.imports(s, "banque", balanced, statements.VerdictAccepted)
	o.imports(s, "banque", bankOf("S4", "2026-11-23", 700), statements.VerdictAccepted)
	o.imports(s, "banque", bankOf("S5", "2026-11-23", 700), statements.VerdictAccepted) // nothing in it counts twice
	o.imports(s, "banque", bankOf("S6", "2026-11-23", 700, 5), statements.VerdictAccepted)
	o.imports(s, "banque", strings.NewReplacer("S3", "S7", ">700<", ">705<", ">1400<", ">1405<").Replace(balanced), statements.VerdictRefused)
}

// numbered is bankOf with ids of its entries that begin anew, and a number of the statement.
func numbered(text, sequence string) string {
	parts := strings.Split(text, "<BookgDt>")
	for n := range parts[1:] {
		parts[n+1] = strings.Replace(parts[n+1], "</BookgDt>", fmt.Sprintf("</BookgDt><AcctSvcrRef>%06d</AcctSvcrRef>", n+1), 1)
	}
	return strings.Replace(strings.Join(parts, "<BookgDt>"), "<Acct>", "<ElctrncSeqNb>"+sequence+"</ElctrncSeqNb><Acct>", 1)
}

// A bank gave a statement in the morning and one in the evening, and numbered the entries of both from 000001. Two entries of
// one day with one number and one amount were one line, and 5,000 francs were in no report.
func TestEntriesNumberedByStatement(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	evening := numbered(bankOf("SOIR-1", "2026-11-02", 6700, 5000), "0")
	o.imports(s, "banque", numbered(bankOf("MAT-1", "2026-11-02", 1000, 5000, 700), "0"), statements.VerdictAccepted)
	o.imports(s, "banque", evening, statements.VerdictAccepted)
	o.imports(s, "banque", strings.Replace(evening, "<GrpHdr/>", "<GrpHdr></GrpHdr>", 1), statements.VerdictUnchanged)
	o.expect(3, 2)
	sum, ids := int64(0), []string{}
	lines, _, _ := o.committed()
	for _, l := range lines {
		sum, ids = sum+l.Amount, append(ids, l.LineID)
	}
	if slices.Sort(ids); sum != 10_700 || !slices.Equal(ids, []string{"banque/MAT-1|000001", "banque/MAT-1|000002", "banque/SOIR-1|000001"}) {
		t.Errorf("%d, %v", sum, ids)
	}
}

// Banks use an id again: in another year, each day, or for all statements of a day. Statements of other days are others, and so
// is one that continues the last one and has other lines; no line of them is lost, whether it has an id or not, and whether
// the statements come in one file or in several.
func TestIDsUsedAgain(t *testing.T) {
	t.Parallel()
	for _, withIDs := range []bool{true, false} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("ids %t, one file %t", withIDs, together), func(t *testing.T) {
				t.Parallel()
				o := newOffice(t)
				s := o.store()
				var files []string
				for n, day := range []string{"2025-11-20", "2025-11-20", "2025-11-21", "2026-11-20"} {
					text := bankOf("RELEVE", day, 2000*n, 1000, 1000)
					if withIDs {
						text = numbered(text, "1")
					}
					files = append(files, text)
				}
				if together {
					var one strings.Builder
					for _, f := range files {
						begin, end := strings.Index(f, "<Stmt>"), strings.Index(f, "</BkToCstmrStmt>")
						one.WriteString(f[begin:end])
					}
					head, tail := files[0][:strings.Index(files[0], "<Stmt>")], "</BkToCstmrStmt></Document>"
					files = []string{head + one.String() + tail}
				}
				for _, f := range files {
					o.imports(s, "banque", f, statements.VerdictAccepted)
				}
				for _, f := range files {
					o.imports(s, "banque", strings.Replace(f, "<GrpHdr/>", "<GrpHdr></GrpHdr>", 1), statements.VerdictUnchanged)
				}
				o.readable(8)
				o.counts("banque", 8, 8000)
				// The corrected statement of the second half of the first day is a version of that one.
				corrected := bankOf("RELEVE", "2025-11-20", 2000, 1000, 1001)
				if withIDs {
					corrected = numbered(corrected, "1")
				}
				q := o.imports(s, "banque", corrected, statements.VerdictQuarantined)
				if !withIDs {
					o.decides(q.ImportID, intake.Released, "the bank corrected line 2", "statement.positional")
					return
				}
				o.decides(q.ImportID, intake.Released, "the bank corrected line 2", "")
				o.imports(s, "banque", corrected, statements.VerdictAccepted)
				o.counts("banque", 9, 9001) // the corrected line counts beside the old one, which is a break
			})
		}
	}
}

// The bank corrects a statement that an earlier release recorded with ids of the bank alone. Released, it keeps these ids: its
// unchanged entries are no new lines.
func TestCorrectedAfterUpgrade(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	o.imports(s, "banque", numbered(bankOf("S1", "2026-11-02", 0, 300, 400), "1"), statements.VerdictAccepted)
	o.Exec(t, `UPDATE statement_imports SET plan = jsonb_set(plan, '{statements,0}', plan -> 'statements' -> 0 #- '{scoped}')`)
	corrected := numbered(bankOf("S1", "2026-11-02", 0, 300, 401), "1")
	q := o.imports(s, "banque", corrected, statements.VerdictQuarantined)
	o.decides(q.ImportID, intake.Released, "the bank corrected line 2", "")
	o.imports(s, "banque", corrected, statements.VerdictAccepted)
	lines, _, _ := o.readable(4)
	for _, l := range lines[2:] {
		if strings.Contains(l.LineID, "|") {
			t.Errorf("the line %s has another id than before", l.LineID)
		}
	}
}

// Banks number statements by year, by day, not at all, or always alike. The balances continue, so that none is missing.
func TestNumbersOfStatements(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	for n, sequence := range []string{"250000250", "260000001", "303", "306", "0", "0", "7", "7", "2026/12"} {
		r := o.imports(s, "banque", numbered(bankOf(fmt.Sprintf("S%d", n), fmt.Sprintf("2026-01-%02d", n+1), 100*n, 100), sequence), statements.VerdictAccepted)
		for _, f := range r.Faults {
			if f.Kind != statements.FaultNumber {
				t.Errorf("%s: %v", sequence, f)
			}
		}
	}
	if r := o.imports(s, "banque", numbered(bankOf("S99", "2026-01-20", 5, 100), "8"), statements.VerdictRefused); !slices.ContainsFunc(r.Faults, func(f statements.Fault) bool { return f.Kind == statements.FaultBalance }) {
		t.Errorf("a gap: %v", r.Faults)
	}
}

// An operator's file had 11/05/2026 for the 5th of November, and another one a year of 2062. Both were accepted and
// could not be taken back; one with balances blocked its account.
func TestDaysFarAway(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.store()
	at := func(day string) string { return strings.ReplaceAll(mtn(1), "2026-02-01", day) }
	for _, day := range []string{"2062-11-05", "2027-03-01", "2026-03-03"} {
		if r := o.imports(s, "mtn", at(day), statements.VerdictRefused); r.Faults[0].Kind != statements.FaultField || !strings.Contains(r.Faults[0].Detail, day) {
			t.Errorf("%s: %v", day, r.Faults)
		}
	}
	o.imports(s, "banque", bankOf("S1", "2026-11-04", 0, 100), statements.VerdictAccepted)
	may := bankOf("S2", "2026-05-11", 100, 7)
	q := o.imports(s, "banque", may, statements.VerdictQuarantined)
	if q.Faults[0].Kind != statements.FaultDays {
		t.Error(q.Faults)
	}
	o.decides(q.ImportID, intake.Released, "the bank booked it in May", "")
	o.imports(s, "banque", may, statements.VerdictAccepted)
	o.imports(s, "banque", bankOf("S4", "2026-12-30", 107, 3), statements.VerdictAccepted) // after a rest
	older := o.request("banque", bankOf("S3", "2026-03-01", 110, 8))
	older.BackFill = true
	if r, err := s.Import(t.Context(), older); err != nil || r.State != statements.VerdictAccepted {
		t.Error(r, err)
	}
}

func TestKafkaAway(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.imports(o.store(), "mtn", mtn(1), statements.VerdictAccepted)
	away := o.store(func(cfg *intake.Config) { cfg.Kafka.Brokers = []string{"127.0.0.1:1"} })
	o.imports(away, "mtn", mtn(1), statements.VerdictUnchanged) // nothing is to be written
	away.SetPatience(300 * time.Millisecond)
	if _, err := away.Import(t.Context(), o.request("mtn", mtn(2))); err == nil {
		t.Error("imported without Kafka")
	}
	o.imports(o.store(), "mtn", mtn(2), statements.VerdictAccepted)
	o.expect(6, 2)
}

// A file that is still being transferred.
func TestFileChanges(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	req := o.request("mtn", "")
	req.File = &growing{first: mtn(1), then: mtn(1) + strings.TrimPrefix(mtn(2), mtnHead)}
	if _, err := o.store().Import(t.Context(), req); !errors.Is(err, intake.ErrFileChanged) {
		t.Errorf("%v", err)
	}
	o.expect(0, 0)
	o.imports(o.store(), "mtn", mtn(1), statements.VerdictAccepted)
	o.expect(3, 1)
}

// growing is a file that has more after the second time that it is read.
type growing struct {
	bytes.Reader
	first, then string
	times       int
}

func (g *growing) Seek(int64, int) (int64, error) {
	g.times++
	text := g.first
	if g.times > 2 {
		text = g.then
	}
	g.Reset([]byte(text))
	return 0, nil
}
