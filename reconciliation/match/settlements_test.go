package match_test

import (
	"fmt"
	"testing"
	"time"

	"quittance/reconciliation/match"
	"quittance/statement"
)

// A batch is proved by a bank line of exactly its gross amounts less its fees.
func TestSettlements(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	at := func(clock string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04", d.String()+" "+clock, wat)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	line := func(id, batch string, amount, fee int64) match.Line {
		return match.Line{Line: statement.Line{ID: id, Account: "op", At: at("12:00"), Kind: statement.KindPayment, Amount: amount, Fee: fee, Currency: "XAF", Batch: batch}}
	}
	bank := func(id, batch string, amount int64) match.Line {
		return match.Line{Line: statement.Line{ID: id, Account: "bank", Day: d + 1, Kind: statement.KindEntry, Amount: amount, Currency: "XAF", Batch: batch}}
	}
	payout := func(id, batch string, amount int64) match.Line {
		l := line(id, batch, amount, 0)
		l.Kind, l.At = statement.KindPayout, at("18:00")
		return l
	}
	late := line("z", "", 700, 0)
	late.At = at("18:00")
	before := func(l match.Line) match.Line { l.Day = d; return l }
	closed := func(l match.Line) match.Line { l.Closed = true; return l }
	two := []match.Line{line("a", "B", 1000, 10), line("b", "B", 500, 5)}
	for _, test := range []struct {
		name        string
		lines, bank []match.Line
		want        string
	}{
		{"exactly", two, []match.Line{bank("k", "B", 1485)}, "batch a+b=k"},
		{"with the operator's payout", append([]match.Line{payout("p", "B", -1485)}, two...), []match.Line{bank("k", "B", 1485)}, "batch a+b+p=k"},
		{"one franc short", two, []match.Line{bank("k", "B", 1484)}, "amount! a+b=k"},
		{"the payout is not the sum", append([]match.Line{payout("p", "B", -1484)}, two...), []match.Line{bank("k", "B", 1485)}, "amount! a+b+p=k"},
		{"gross", two, []match.Line{bank("k", "B", 1500)}, "amount! a+b=k"},
		{"twice", two, []match.Line{bank("k", "B", 1485), bank("m", "B", 1485)}, "duplicate_line! a+b=k+m"},
		{"a named line never tries the window", append([]match.Line{line("c", "", 300, 0)}, two...), []match.Line{bank("k", "B", 300)}, "amount! a+b=k; missing_line! c="},
		{"without a batch id", []match.Line{line("a", "", 1000, 10), late}, []match.Line{bank("k", "", 990)}, "match? a=k; waiting z"},
		{"the bank gives no batch id", two, []match.Line{bank("k", "", 1485)}, "match? a+b=k"},
		{"a window one franc short", []match.Line{line("a", "", 1000, 10), late}, []match.Line{bank("k", "", 989)}, "amount! a=k; waiting z"},
		{"a batch that the bank does not name, a tenth short", two, []match.Line{bank("k", "", 1337)}, "amount! a+b=k"},
		{"more than a tenth short", two, []match.Line{bank("k", "", 1336)}, "missing_line! a+b=; unmatched_line! =k"},
		{"two that may be short", []match.Line{line("a", "", 700, 0), late}, []match.Line{bank("k", "", 699)}, "missing_line! a=; unmatched_line! =k; waiting z"},
		{"a line before its window", []match.Line{late}, []match.Line{before(bank("k", "", 699))}, "unmatched_line! =k; waiting z"},
		{"two windows of one sum", []match.Line{line("a", "", 700, 0), late}, []match.Line{bank("k", "", 700)}, "unmatched_line! a+z=k"},
		{"a charge of the bank", nil, []match.Line{bank("k", "", -50)}, "unmatched_line! =k"},
		{"cancelled out", []match.Line{line("a", "B", 100, 0), line("b", "B", -100, 0)}, nil, "batch a+b="},
		{"a late line of a closed batch", []match.Line{closed(line("a", "B", 100, 0)), line("b", "B", 50, 0)}, []match.Line{closed(bank("k", "B", 100))}, "missing_line! b="},
		{"a second payment of a closed batch", []match.Line{closed(line("a", "B", 100, 0))}, []match.Line{bank("k", "B", 100)}, "duplicate_line! =k"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r, err := match.Settlements{Account: "bank", Rules: rules, Today: d + 3, Lines: test.lines, Bank: test.bank}.Run()
			if err != nil {
				t.Fatal(err)
			}
			if got := short(r); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// Ten thousand equal amounts of one day without references are one break, not ten thousand
// guesses, and take no time.
func TestEqualAmounts(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	var expected []match.Expected
	var lines []match.Line
	for i := range 10_000 {
		expected = append(expected, match.Expected{ID: fmt.Sprint("e", i), At: noon(d), Amount: 5000, Currency: "XAF", OperatorRef: fmt.Sprint("A", i)})
		lines = append(lines, match.Line{Line: statement.Line{ID: fmt.Sprint("l", i), Day: d, Amount: 5000, Currency: "XAF"}})
	}
	r, _ := run(t, d, expected, lines)
	if len(r.Matches)+len(r.Proposals) != 0 || len(r.Breaks) != 1 || len(r.Breaks[0].Lines) != 10_000 || len(r.Breaks[0].Sources) != 10_000 {
		t.Errorf("%d matches, %d proposals, %d breaks", len(r.Matches), len(r.Proposals), len(r.Breaks))
	}
	// The same word in place of a reference identifies nothing.
	for i := range lines {
		expected[i].OperatorRef, lines[i].OperatorRef = "0", "0"
		expected[i].PaymentRef, lines[i].PaymentRef = fmt.Sprint("P", i), fmt.Sprint("P", i)
	}
	if r, _ := run(t, d, expected, lines); len(r.Matches) != 10_000 {
		t.Errorf("%d matches", len(r.Matches))
	}
}
