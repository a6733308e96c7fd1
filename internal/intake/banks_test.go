package intake_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/internal/intake"
	"quittance/internal/registry"
	"quittance/internal/statements"
	"quittance/statement"
	"quittance/test/banks"
	"quittance/test/registries"
)

var worlds = flag.Int("banks", 24, "banks, and operators, whose statements are imported")

// account makes an account of its own, and returns requests of it.
func (o *office) account(code string, change func(*registry.StatementAccount)) func(text string) intake.Request {
	o.t.Helper()
	a := o.request("banque", "").Account
	o.Exec(o.t, `INSERT INTO statement_accounts SELECT agency_id, live, $1, kind, offer, fingerprint, iban, number, currency, profile, zone, cutoff_minutes, grace_days, settles_to, batch_pattern, columns, keep_years
		FROM statement_accounts WHERE code = 'banque' AND agency_id = $2 AND NOT live`, code, registries.AgencyA)
	a.StatementAccountKey.Code = code
	if change != nil {
		change(&a)
	}
	return func(text string) intake.Request {
		return intake.Request{Account: a, File: strings.NewReader(text), Actor: registries.Actor, Now: yearEnd}
	}
}

// imported imports a file and returns what became of it.
func (o *office) imported(s *intake.Store, req intake.Request) intake.Result {
	o.t.Helper()
	r, err := s.Import(o.t.Context(), req)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

// Whatever habits a bank has: statements that continue each other are accepted, all their lines count, once, and name their
// batches; what could count twice is not accepted; and what was accepted is taken back by two people and comes again.
func TestBanks(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.closing("", "")
	awa, ben := o.people()
	type world struct {
		bank  *banks.Bank
		files []banks.File
	}
	draw := rapid.Custom(func(rt *rapid.T) world {
		b := banks.Draw(rt)
		from := time.Date(2026, time.Month(rapid.IntRange(1, 10).Draw(rt, "month")), rapid.IntRange(1, 28).Draw(rt, "day"), 0, 0, 0, 0, banks.Zone)
		return world{b, b.Statements(rt, from, 1000, 3)}
	})
	for n := range *worlds {
		w, code := draw.Example(n), fmt.Sprintf("bank-%d", n)
		request := o.account(code, nil)
		var lines, batches int
		var last intake.Result
		for i, f := range w.files {
			if last = o.imported(s, request(f.Text)); last.State != statements.VerdictAccepted {
				t.Fatalf("bank %d %+v, file %d: %s %v\n%s", n, *w.bank, i, last.State, last.Faults, f.Text)
			}
			again := o.imported(s, request(strings.Replace(f.Text, "<GrpHdr>", "<!-- again --><GrpHdr>", 1)))
			if again.State != statements.VerdictUnchanged {
				t.Errorf("bank %d %+v, file %d again: %s %v", n, *w.bank, i, again.State, again.Faults)
			}
		}
		all := banks.Lines(w.files...)
		o.counts(code, len(all), banks.Sum(all))
		for _, l := range all {
			if l.Batch != "" {
				batches++
			}
		}
		if got := o.batches(code); got != batches {
			t.Errorf("bank %d %+v: %d lines name their batch, want %d", n, *w.bank, got, batches)
		}
		lines = len(all)

		// The last statement with lines once more under another id, and a gap.
		end := w.files[len(w.files)-1].Statements
		final := end[len(end)-1]
		if len(final.Lines) > 0 {
			if r := o.imported(s, request(w.bank.Copy(final).Text)); r.State == statements.VerdictAccepted {
				t.Errorf("bank %d %+v: a copy under another id is accepted", n, *w.bank)
			}
		}
		gap := banks.Statement{From: final.To.AddDate(0, 0, 2), To: final.To.AddDate(0, 0, 2), Opening: final.Closing + 1, Closing: final.Closing + 6, Lines: []banks.Line{{Day: final.To.AddDate(0, 0, 2), Amount: 5}}}
		if r := o.imported(s, request(w.bank.Copy(gap).Text)); r.State == statements.VerdictAccepted {
			t.Errorf("bank %d %+v: a statement after a gap is accepted", n, *w.bank)
		}

		// Taken back, the account is as before; released and imported again, nothing is lost.
		before := banks.Lines(w.files[:len(w.files)-1]...)
		if took := o.withdraws(s, awa, ben, last.ImportID); took != lines-len(before) {
			t.Errorf("bank %d %+v: %d lines were withdrawn, want %d", n, *w.bank, took, lines-len(before))
		}
		o.counts(code, len(before), banks.Sum(before))
		text := w.files[len(w.files)-1].Text
		held := o.imported(s, request(text))
		if held.State != statements.VerdictQuarantined {
			t.Errorf("bank %d %+v: withdrawn and imported again: %s %v", n, *w.bank, held.State, held.Faults)
			continue
		}
		o.decidesAs(awa, held.ImportID, intake.Released, "it was right", "")
		if r := o.imported(s, request(text)); r.State != statements.VerdictAccepted {
			t.Errorf("bank %d %+v: released: %s %v", n, *w.bank, r.State, r.Faults)
		}
		o.counts(code, lines, banks.Sum(all))
	}
}

// batches returns how many lines of an account name a batch, by the records in Kafka.
func (o *office) batches(code string) (n int) {
	o.t.Helper()
	lines, _, _ := o.committed()
	for _, l := range lines {
		if l.Account == code && strings.HasPrefix(l.Batch, "MTN-") && len(l.Batch) == len("MTN-00000001") {
			n++
		}
	}
	return n
}

// layoutOf declares the columns of an operator's report.
func layoutOf(o *banks.Operator) *statements.Layout {
	l := &statements.Layout{
		Name: statements.ProfileCSV, Separators: o.Separator, Width: len(banks.Header), Header: banks.Header, ID: []int{1}, Time: 2, Type: 3, Amount: 4,
		Types: map[string]statement.Kind{"Paiement": statement.KindPayment, "Remboursement": statement.KindRefund}, TimeFormats: []string{o.Format}, Decimal: o.Decimal, Group: o.Group,
	}
	if o.Balance {
		l.Balance = 5
	}
	return l
}

// Whatever an operator's report looks like: files that overlap lose no row and count none twice, an amount that the profile reads
// in another way than it is written is refused, and so is a report with balances whose newest row comes first. Days and months that a
// profile exchanges may be accepted; two people take that back.
func TestOperators(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	s := o.closing("", "")
	awa, ben := o.people()
	taken := 0
	type world struct {
		operator *banks.Operator
		rows     []banks.Row
		cut      int
	}
	draw := rapid.Custom(func(rt *rapid.T) world {
		w := world{operator: banks.DrawOperator(rt), rows: banks.Rows(rt, time.Date(2026, time.Month(rapid.IntRange(1, 10).Draw(rt, "month")), 3, 0, 0, 0, 0, banks.Zone), 4)}
		w.cut = rapid.IntRange(1, len(w.rows)-1).Draw(rt, "cut")
		return w
	})
	for n := range *worlds {
		w, code := draw.Example(n), fmt.Sprintf("operator-%d", n)
		layout := layoutOf(w.operator)
		request := o.account(code, func(a *registry.StatementAccount) { a.Profile, a.Columns = statements.ProfileCSV, layout })
		sum := int64(0)
		for _, r := range w.rows {
			sum += r.Amount
		}
		want := statements.VerdictAccepted
		if w.operator.Newest && w.operator.Balance {
			want = statements.VerdictRefused
		}
		for i, text := range []string{w.operator.Write(1000, w.rows[:w.cut]), w.operator.Write(1000, w.rows)} { // the second one has all of the first
			if w.cut == 1 && i == 0 && want == statements.VerdictRefused {
				continue // a row has no order
			}
			if r := o.imported(s, request(text)); r.State != want {
				t.Fatalf("operator %d %+v, file %d: %s %v\n%s", n, *w.operator, i, r.State, r.Faults, text)
			}
		}
		if want == statements.VerdictAccepted {
			o.counts(code, len(w.rows), sum)
		} else {
			o.counts(code, 0, 0)
		}
		o.misread(s, n, w.operator, layout, w.rows)
		if exchanged := map[string]string{"02/01/2006 15:04": "01/02/2006 15:04", "01/02/2006 15:04": "02/01/2006 15:04"}[w.operator.Format]; exchanged != "" && want == statements.VerdictAccepted {
			code, other := fmt.Sprintf("misdated-%d", n), *layout
			other.TimeFormats = []string{exchanged}
			request := o.account(code, func(a *registry.StatementAccount) { a.Profile, a.Columns = statements.ProfileCSV, &other })
			if r := o.imported(s, request(w.operator.Write(1000, w.rows))); r.State == statements.VerdictAccepted {
				taken += o.withdraws(s, awa, ben, r.ImportID)
				o.counts(code, 0, 0)
			}
		}
	}
	if taken == 0 {
		t.Error("no report with exchanged days and months was accepted")
	}
}

// misread imports a report for an account whose profile has other separators. It is refused, or its amounts are right.
func (o *office) misread(s *intake.Store, n int, operator *banks.Operator, layout *statements.Layout, rows []banks.Row) {
	o.t.Helper()
	sum := int64(0)
	for _, r := range rows {
		sum += r.Amount
	}
	other := *layout
	if other.Decimal = "."; layout.Decimal == "." {
		other.Decimal = ","
	}
	if other.Group = " "; other.Decimal == "," {
		other.Group = " ."
	} else {
		other.Group = " ,"
	}
	request := o.account(fmt.Sprintf("misread-%d", n), func(a *registry.StatementAccount) { a.Profile, a.Columns = statements.ProfileCSV, &other })
	if r := o.imported(s, request(operator.Write(1000, rows))); r.State == statements.VerdictAccepted && r.Statements[0].Net != sum {
		o.t.Errorf("operator %d %+v, read with %q and %q: %d, want %d", n, *operator, other.Decimal, other.Group, r.Statements[0].Net, sum)
	}
}
