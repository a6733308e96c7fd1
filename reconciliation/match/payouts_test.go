package match_test

import (
	"testing"

	"quittance/reconciliation/match"
	"quittance/statement"
)

// What a payout account's statement can say of a payout, and what it means. Each payout is of 5,000; a line names it by our
// reference, by the operator's, or not at all.
func TestPayoutsToPeople(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	paid := match.Expected{ID: "paid", At: noon(d), Amount: -5000, Currency: "XAF", OperatorRef: "OP1", PaymentRef: "QD1", Payout: true}
	of := func(id, ref string, change func(e *match.Expected)) match.Expected {
		e := paid
		e.ID, e.OperatorRef, e.PaymentRef = id, "", ref
		if change != nil {
			change(&e)
		}
		return e
	}
	undecided := of("undecided", "QD2", func(e *match.Expected) { e.Undecided = true })
	refused := of("refused", "QD3", func(e *match.Expected) { e.Refused = true })
	came := of("returned", "QD1", func(e *match.Expected) { e.Amount = 5000 })
	line := func(id, ref string, amount int64) match.Line {
		kind := statement.KindTransfer
		if amount > 0 {
			kind = statement.KindReturn
		}
		return match.Line{Line: statement.Line{ID: id, At: noon(d), Day: d, Kind: kind, Amount: amount, Currency: "XAF", OperatorRef: "L" + id, PaymentRef: ref}}
	}
	kind := func(l match.Line, k statement.Kind) match.Line {
		l.Kind, l.Reversal = k, k == statement.KindReversal
		return l
	}
	byOperator := line("2", "", -5000)
	byOperator.OperatorRef = "OP1"
	for _, test := range []struct {
		name     string
		expected []match.Expected
		lines    []match.Line
		want     string
	}{
		{"our reference", []match.Expected{paid}, []match.Line{line("1", "QD1", -5000)}, "own_ref paid=1"},
		{"the operator's", []match.Expected{paid}, []match.Line{byOperator}, "operator_ref paid=2"},
		{"no reference: salaries repeat amounts", []match.Expected{paid}, []match.Line{line("1", "", -5000)}, "unmatched_line! =1; waiting paid"},
		{"another amount", []match.Expected{paid}, []match.Line{line("1", "QD1", -4999)}, "amount! paid=1"},
		{"twice", []match.Expected{paid}, []match.Line{line("1", "QD1", -5000), line("3", "QD1", -5000)}, "duplicate_line! paid=1+3"},
		{"came back, and nobody said so", []match.Expected{paid}, []match.Line{line("1", "QD1", -5000), line("3", "QD1", 5000)}, "own_ref paid=1; reversed_line! =3"},
		{"came back, before the payout is on a statement", []match.Expected{paid}, []match.Line{line("3", "QD1", 5000)}, "reversed_line! =3; waiting paid"},
		{"reversed", []match.Expected{paid}, []match.Line{line("1", "QD1", -5000), kind(line("3", "QD1", -5000), statement.KindReversal)}, "own_ref paid=1; reversed_line! =3"},
		{"a charge that names it", []match.Expected{undecided}, []match.Line{kind(line("1", "QD2", -5000), statement.KindCharge)}, "unmatched_line! undecided=1"},
		{"a payment that names it", []match.Expected{paid}, []match.Line{kind(line("3", "QD1", 5000), statement.KindPayment)}, "unmatched_line! =3; waiting paid"},
		{"a part came back", []match.Expected{paid}, []match.Line{line("1", "QD1", -5000), line("3", "QD1", 4000)}, "own_ref paid=1; reversed_line! =3"},
		{"came back, as the operator said", []match.Expected{paid, came}, []match.Line{line("1", "QD1", -5000), line("3", "QD1", 5000)}, "own_ref paid=1; own_ref returned=3"},
		{"came back twice", []match.Expected{paid, came}, []match.Line{line("1", "QD1", -5000), line("3", "QD1", 5000), line("4", "QD1", 5000)}, "duplicate_line! returned=3+4; own_ref paid=1"},
		{"undecided, and no line", []match.Expected{undecided}, nil, "waiting undecided"},
		{"undecided, and paid", []match.Expected{undecided}, []match.Line{line("1", "QD2", -5000)}, "payout_paid? undecided=1"},
		{"refused, and no line", []match.Expected{refused}, nil, ""},
		{"refused, and paid", []match.Expected{refused}, []match.Line{line("1", "QD3", -5000)}, "unmatched_line! =1"},
		{"an attempt refused, then said to be paid", []match.Expected{refused, of("paid", "QD3", nil)}, []match.Line{line("1", "QD3", -5000)}, "own_ref paid=1"},
		{"a charge", nil, []match.Line{{Line: statement.Line{ID: "1", At: noon(d), Day: d, Kind: statement.KindCharge, Amount: -100, Currency: "XAF"}}}, "fee! =1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, got := run(t, d, test.expected, test.lines); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A debit that came before its payout was refused asks something else afterwards: it is another finding, not the same one with an
// older text.
func TestFindingsOfPayoutsChange(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	lines := []match.Line{{Line: statement.Line{ID: "l", At: noon(d), Day: d, Kind: statement.KindTransfer, Amount: -5000, Currency: "XAF", PaymentRef: "QD1"}}}
	before, _ := run(t, d, nil, lines)
	after, _ := run(t, d, []match.Expected{{ID: "e", At: noon(d), Amount: -5000, Currency: "XAF", PaymentRef: "QD1", Payout: true, Refused: true}}, lines)
	if c := match.Compare(before, after); len(c.Cleared) != 1 || len(c.Breaks) != 1 || c.Breaks[0].Action != match.ActionPaid {
		t.Errorf("%+v", c)
	}
}

// What asks the processor of batches says so, and names the payout.
func TestActionsOfPayouts(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	e := match.Expected{ID: "e", At: noon(d), Amount: -5000, Currency: "XAF", PaymentRef: "QD1", Payout: true}
	line := func(amount int64) []match.Line {
		return []match.Line{{Line: statement.Line{ID: "l", At: noon(d), Day: d, Kind: statement.KindTransfer, Amount: amount, Currency: "XAF", PaymentRef: "QD1"}}}
	}
	refused := e
	refused.Refused = true
	for name, test := range map[string]struct {
		e      match.Expected
		amount int64
		want   match.Action
	}{
		"paid though it was refused": {refused, -5000, match.ActionPaid},
		"came back":                  {e, 5000, match.ActionReturned},
		"a part came back":           {e, 4999, match.ActionReturned},
		"more came back":             {e, 5001, match.ActionExplain},
		"another amount":             {e, -4999, match.ActionExplain},
	} {
		lines := line(test.amount)
		if test.amount > 0 { // after the payout
			lines = append(lines, line(-5000)...)
			lines[1].ID = "debit"
		}
		r, _ := run(t, d, []match.Expected{test.e}, lines)
		if len(r.Breaks) != 1 || r.Breaks[0].Action != test.want || len(r.Breaks[0].Sources)+len(r.Breaks[0].NotTaken) != 1 {
			t.Errorf("%s: %+v", name, r.Breaks)
		}
	}
}
