package match_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/internal/statements"
	"quittance/reconciliation/match"
	"quittance/statement"
	"quittance/test/banks"
)

var payments = flag.Int("payments", 200_000, "payments of the simulated month")

// oracle is a simulated month. It knows which line belongs to which payment, and what each
// planted fault must become.
type oracle struct {
	random   *rand.Rand
	from     statement.Day
	accounts []string
	expected map[string][]match.Expected
	lines    map[string][]match.Line
	truth    map[string]string // the payment of a line
	planted  map[string]string // a result in its short form, and the fault that must become it
	n        int
}

// fees are public: few amounts, many payments.
var fees = []int64{2500, 5000, 10_000, 25_000, 150_000}

// fault changes the line of a payment. It returns the lines that the statement has instead,
// and the result that they must become; empty if they must match all the same.
type fault struct {
	name  string
	plant func(o *oracle, e *match.Expected, l match.Line) (lines []match.Line, becomes string)
}

var faults = []fault{
	{"dropped line", func(_ *oracle, e *match.Expected, _ match.Line) ([]match.Line, string) {
		return nil, "missing_line! " + e.ID + "="
	}},
	{"doubled line", func(_ *oracle, e *match.Expected, l match.Line) ([]match.Line, string) {
		twice := l
		twice.ID += "~2"
		return []match.Line{l, twice}, "duplicate_line! " + e.ID + "=" + l.ID + "+" + twice.ID
	}},
	{"one franc more", func(_ *oracle, e *match.Expected, l match.Line) ([]match.Line, string) {
		l.Amount++
		return []match.Line{l}, "amount! " + e.ID + "=" + l.ID
	}},
	{"net for gross", func(_ *oracle, e *match.Expected, l match.Line) ([]match.Line, string) {
		l.Amount -= l.Fee
		return []match.Line{l}, "fee! " + e.ID + "=" + l.ID
	}},
	{"reversal", func(_ *oracle, _ *match.Expected, l match.Line) ([]match.Line, string) {
		back := l
		back.ID, back.Amount, back.Kind, back.Reversal = l.ID+"-back", -l.Amount, statement.KindReversal, true
		return []match.Line{l, back}, "reversed_line! =" + back.ID
	}},
	{"foreign line", func(_ *oracle, _ *match.Expected, l match.Line) ([]match.Line, string) {
		foreign := l
		foreign.ID, foreign.OperatorRef, foreign.PaymentRef, foreign.Amount = l.ID+"-foreign", "F"+l.OperatorRef, "", 3
		return []match.Line{l, foreign}, "unmatched_line! =" + foreign.ID
	}},
	{"charge", func(_ *oracle, _ *match.Expected, l match.Line) ([]match.Line, string) {
		charge := match.Line{Line: statement.Line{ID: l.ID + "-charge", Day: l.Day, Kind: statement.KindCharge, Amount: -500, Currency: "XAF"}}
		return []match.Line{l, charge}, "fee! =" + charge.ID
	}},
	{"paid twice", func(_ *oracle, _ *match.Expected, l match.Line) ([]match.Line, string) {
		second := l
		second.ID, second.OperatorRef = l.ID+"-second", "S"+l.OperatorRef
		return []match.Line{l, second}, "duplicate_line! =" + second.ID
	}},
	{"renumbered", func(_ *oracle, _ *match.Expected, l match.Line) ([]match.Line, string) {
		l.OperatorRef = "R" + l.OperatorRef
		return []match.Line{l}, ""
	}},
	{"overlap", func(_ *oracle, _ *match.Expected, l match.Line) ([]match.Line, string) { return []match.Line{l, l}, "" }},
	{"no reference at midnight", func(o *oracle, e *match.Expected, l match.Line) ([]match.Line, string) {
		o.n++
		e.Amount = 1_000_000 + int64(o.n) // no other payment has it
		e.At = noon(l.Day).Add(-11*time.Hour - 30*time.Minute)
		l.Amount, l.OperatorRef, l.PaymentRef = e.Amount, "", ""
		return []match.Line{l}, "match? " + e.ID + "=" + l.ID
	}},
	{"no reference on the day of UTC", func(o *oracle, e *match.Expected, l match.Line) ([]match.Line, string) {
		o.n++
		e.Amount = 1_000_000 + int64(o.n)
		e.At = noon(l.Day).Add(-11*time.Hour - 30*time.Minute)
		l.Amount, l.OperatorRef, l.PaymentRef, l.Day = e.Amount, "", "", l.Day-1
		o.planted["missing_line! "+e.ID+"="] = "a line on the day of UTC, its receipt"
		return []match.Line{l}, "unmatched_line! =" + l.ID
	}},
}

// payment simulates one payment and its line, with a fault for one in 250.
func (o *oracle) payment(i int) {
	account := o.accounts[o.random.IntN(len(o.accounts))]
	d := o.from + statement.Day(o.random.IntN(30))
	fee := fees[o.random.IntN(len(fees))]
	e := match.Expected{ID: fmt.Sprint("e", i), At: noon(d), Amount: fee, Currency: "XAF", OperatorRef: fmt.Sprint(account, i), PaymentRef: fmt.Sprintf("P%015d", i)}
	l := match.Line{Line: statement.Line{ID: fmt.Sprint("l", i), Day: d, Kind: statement.KindPayment, Amount: fee, Fee: fee / 100, Currency: "XAF", OperatorRef: e.OperatorRef, PaymentRef: e.PaymentRef}}
	lines := []match.Line{l}
	if i%250 == 0 {
		f := faults[i/250%len(faults)]
		var becomes string
		if lines, becomes = f.plant(o, &e, l); becomes != "" {
			o.planted[becomes] = f.name
		}
	}
	o.truth[l.ID] = e.ID
	o.expected[account] = append(o.expected[account], e)
	o.lines[account] = append(o.lines[account], lines...)
}

// swap plants references that two lines of an account have exchanged.
func (o *oracle) swap(account string) {
	e, l := o.expected[account], o.lines[account]
	n := len(e)
	for i := range 2 {
		e = append(e, match.Expected{ID: fmt.Sprint("x", account, i), At: noon(o.from), Amount: 5000, Currency: "XAF", OperatorRef: fmt.Sprint(account, "x", i), PaymentRef: fmt.Sprint("PX", account, i)})
		l = append(l, match.Line{Line: statement.Line{ID: fmt.Sprint("y", account, i), Day: o.from, Kind: statement.KindPayment, Amount: 5000, Currency: "XAF", OperatorRef: fmt.Sprint(account, "x", i), PaymentRef: fmt.Sprint("PX", account, 1-i)}})
	}
	o.planted[fmt.Sprintf("unmatched_line! %s+%s=%s+%s", e[n].ID, e[n+1].ID, l[len(l)-2].ID, l[len(l)-1].ID)] = "swapped references"
	o.expected[account], o.lines[account] = e, l
}

// settle simulates the payouts of an account to the bank, one for each day, and plants faults
// in some.
func (o *oracle) settle(account string) (lines, bank []match.Line) {
	sums := map[statement.Day]int64{}
	ids := map[statement.Day][]string{}
	seen := map[string]bool{}
	for _, l := range o.lines[account] {
		if seen[l.ID] {
			continue
		}
		seen[l.ID] = true
		l.Account, l.Batch = account, fmt.Sprint(account, "/", l.Day)
		lines = append(lines, l)
		sums[l.Day] += l.Net()
		ids[l.Day] = append(ids[l.Day], l.ID)
	}
	for d, sum := range sums {
		slices.Sort(ids[d])
		batch := strings.Join(ids[d], "+")
		l := match.Line{Line: statement.Line{ID: fmt.Sprint("bank/", account, "/", d), Day: d + 1, Kind: statement.KindEntry, Amount: sum, Currency: "XAF", Batch: fmt.Sprint(account, "/", d)}}
		o.truth[l.ID] = batch
		switch d - o.from {
		case 3: // one franc short
			l.Amount--
			o.planted["amount! "+batch+"="+l.ID] = "a payout one franc short"
		case 7: // not paid
			o.planted["missing_line! "+batch+"="] = "a payout that is missing"
			continue
		case 11: // paid twice
			twice := l
			twice.ID += "~2"
			bank = append(bank, twice)
			o.planted["duplicate_line! "+batch+"="+l.ID+"+"+twice.ID] = "a payout twice"
		case 15: // the bank drops the batch id
			l.Batch = ""
			o.planted["match? "+batch+"="+l.ID] = "a payout without a batch id"
		}
		bank = append(bank, l)
	}
	return lines, bank
}

// tally compares results with what was planted.
type tally struct{ found, wrong, automatic int }

func (o *oracle) check(t *testing.T, r match.Result, sum *tally) {
	t.Helper()
	for _, m := range r.Matches {
		if len(m.Lines) != 1 || o.truth[m.Lines[0]] != strings.Join(m.Sources, "+") {
			sum.wrong++
			t.Errorf("a false match: %v", m)
		}
	}
	sum.automatic += len(r.Matches)
	r.Matches = nil
	for result := range strings.SplitSeq(short(r), "; ") {
		if o.planted[result] == "" {
			t.Errorf("found, but not planted: %.200s", result)
			continue
		}
		sum.found++
		delete(o.planted, result)
	}
}

// Every planted fault of a month of two agencies and four accounts is found, of the right
// kind and with the right rows; nothing else is; and no match is false.
func TestOracle(t *testing.T) {
	t.Parallel()
	o := &oracle{
		random: rand.New(rand.NewPCG(18, 2026)), from: day(t, "2026-11-01"), accounts: []string{"A-mtn", "A-airtel", "B-mtn", "B-card"},
		expected: map[string][]match.Expected{}, lines: map[string][]match.Line{}, truth: map[string]string{}, planted: map[string]string{},
	}
	for i := range *payments {
		o.payment(i)
	}
	var sum tally
	var lines, referenced int
	for _, account := range o.accounts {
		o.swap(account)
		all := o.lines[account]
		o.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		r, _ := run(t, o.from+40, o.expected[account], all)
		o.check(t, r, &sum)
		seen := map[string]bool{}
		for _, l := range all {
			if seen[l.ID] {
				continue
			}
			seen[l.ID] = true
			lines++
			if l.OperatorRef != "" || l.PaymentRef != "" {
				referenced++
			}
		}
	}
	for _, agency := range []string{"A", "B"} {
		in := match.Settlements{Account: agency + "-bank", Rules: rules, Today: o.from + 40}
		for _, account := range o.accounts {
			if strings.HasPrefix(account, agency) {
				all, bank := o.settle(account)
				in.Lines, in.Bank = append(in.Lines, all...), append(in.Bank, bank...)
			}
		}
		r, err := in.Run()
		if err != nil {
			t.Fatal(err)
		}
		o.check(t, r, &sum)
		lines, referenced = lines+len(in.Bank), referenced+len(in.Bank)
	}
	for result, name := range o.planted {
		t.Errorf("not found: %s: %.200s", name, result)
	}
	auto := 100 * float64(sum.automatic) / float64(referenced)
	t.Logf("payments=%d lines=%d planted=%d found=%d false=%d auto=%.2f%%", *payments, lines, sum.found+len(o.planted), sum.found, sum.wrong, auto)
	if auto < 99.5 {
		t.Errorf("too few automatic matches: %.2f%%", auto)
	}
}

// Files of banks of many habits are read, and their lines settle the batches of an operator: each planted fault is found, nothing
// else is, no match is false, and no line of a file is lost.
func TestOracleOfBanks(t *testing.T) {
	t.Parallel()
	account := statements.Account{Code: "bank", IBAN: banks.IBAN, Currency: "XAF", Profile: "camt.053", Batch: regexp.MustCompile(`\bMTN-\d{8}\b`)}
	draw := rapid.Custom(func(rt *rapid.T) []banks.File {
		return banks.Draw(rt).Statements(rt, time.Date(2026, 11, 2, 0, 0, 0, 0, banks.Zone), 1000, 2)
	})
	var sum tally
	planted, all := 0, 0
	for n := range 60 {
		files := draw.Example(n)
		o := &oracle{truth: map[string]string{}, planted: map[string]string{}}
		in := match.Settlements{Account: "bank", Rules: rules, Today: day(t, "2027-01-31"), Bank: o.read(t, account, files)}
		if truth := banks.Lines(files...); len(in.Bank) != len(truth) {
			t.Fatalf("bank %d: %d lines of %d are read", n, len(in.Bank), len(truth))
		}
		all += len(in.Bank)
		for i, l := range in.Bank {
			in.Lines = append(in.Lines, o.batchOf(i, &l)...)
		}
		in.Lines = append(in.Lines, match.Line{Line: statement.Line{ID: "unpaid", Account: "op", Day: day(t, "2026-11-03"), At: noon(day(t, "2026-11-03")), Kind: statement.KindPayment, Amount: 77_777_777, Currency: "XAF", Batch: "MTN-99999999"}})
		o.planted["missing_line! unpaid="] = "a batch that is not paid"
		planted += len(o.planted)
		r, err := in.Run()
		if err != nil {
			t.Fatal(err)
		}
		o.check(t, r, &sum)
		for result, name := range o.planted {
			t.Errorf("bank %d: not found: %s: %s", n, name, result)
		}
	}
	t.Logf("banks=60 lines=%d planted=%d found=%d false=%d matches=%d", all, planted, sum.found, sum.wrong, sum.automatic)
	if sum.automatic < 100 || sum.wrong > 0 {
		t.Errorf("%+v", sum)
	}
}

// read reads the lines of a bank's files.
func (o *oracle) read(t *testing.T, account statements.Account, files []banks.File) (lines []match.Line) {
	t.Helper()
	for _, f := range files {
		got, err := statements.Read(strings.NewReader(f.Text), account, func(l *statements.Line) error {
			d, err := statement.ParseDay(l.Day)
			lines = append(lines, match.Line{Line: statement.Line{ID: fmt.Sprintf("k%03d", len(lines)), Account: "bank", Day: d, Kind: l.Kind, Amount: l.Amount, Currency: l.Currency, Batch: l.Batch}})
			return err
		})
		if err != nil || got.Refused() {
			t.Fatalf("%v %v\n%s", err, got.Faults, f.Text)
		}
	}
	return lines
}

// batchOf returns the lines of the operator that a line of the bank pays; of each fifth batch they come to one franc more.
func (o *oracle) batchOf(i int, l *match.Line) []match.Line {
	if l.Batch == "" {
		o.planted["unmatched_line! ="+l.ID] = "an entry that pays no batch"
		return nil
	}
	one := func(part string, amount int64) match.Line {
		return match.Line{Line: statement.Line{ID: l.ID + part, Account: "op", Day: l.Day, At: noon(l.Day), Kind: statement.KindPayment, Amount: amount, Currency: "XAF", Batch: l.Batch}}
	}
	a, b := one("a", 1), one("b", l.Amount-1)
	if sources := a.ID + "+" + b.ID; i%5 == 0 {
		b.Amount++
		o.planted["amount! "+sources+"="+l.ID] = "a payout one franc short"
	} else {
		o.truth[l.ID] = sources
	}
	return []match.Line{a, b}
}
