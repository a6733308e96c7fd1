package match_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/reconciliation/match"
	"quittance/statement"
)

var wat = time.FixedZone("WAT", 3600)

func day(t *testing.T, text string) statement.Day {
	t.Helper()
	d, err := statement.ParseDay(text)
	if err != nil {
		t.Fatal(err)
	}
	if d.String() != text {
		t.Fatalf("%s is written %s", text, d)
	}
	return d
}

// noon of a day.
func noon(d statement.Day) time.Time { return time.Unix(int64(d)*86400+11*3600, 0).UTC() }

var rules = match.Rules{Zone: wat, Grace: 2, Cutoff: 18 * time.Hour}

// row is the short form of a line or of expected money: id, operator_ref, payment_ref, amount.
type row struct {
	id, operator, own string
	amount            int64
}

// run matches rows of one day, and returns what becomes of them in a short form.
func run(t *testing.T, today statement.Day, expected []match.Expected, lines []match.Line) (match.Result, string) {
	t.Helper()
	r, err := match.Receipts{Account: "a", Rules: rules, Today: today, Expected: expected, Lines: lines}.Run()
	if err != nil {
		t.Fatal(err)
	}
	return r, short(r)
}

func short(r match.Result) string {
	var all []string
	rows := func(m match.Match) string { return strings.Join(m.Sources, "+") + "=" + strings.Join(m.Lines, "+") }
	for _, m := range r.Matches {
		all = append(all, string(m.Stage)+" "+rows(m))
	}
	for _, p := range r.Proposals {
		all = append(all, string(p.Action)+"? "+rows(p.Match))
	}
	for _, b := range r.Breaks {
		all = append(all, string(b.Kind)+"! "+strings.Join(b.Sources, "+")+"="+strings.Join(b.Lines, "+"))
	}
	for _, w := range r.Waiting {
		all = append(all, "waiting "+w)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// The stages, one by one.
func TestStages(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	for _, test := range []struct {
		name     string
		expected []row
		lines    []row
		want     string
	}{
		{"by the operator's reference", []row{{"e", "A", "P", 100}}, []row{{"l", "A", "", 100}}, "operator_ref e=l"},
		{"by ours", []row{{"e", "A", "P", 100}}, []row{{"l", "X", "P", 100}}, "own_ref e=l"},
		{"by amount and day", []row{{"e", "A", "P", 100}}, []row{{"l", "", "", 100}}, "match? e=l"},
		{"nothing fits", []row{{"e", "A", "P", 100}}, []row{{"l", "", "", 101}}, "missing_line! e=; unmatched_line! =l"},
		{"one franc more", []row{{"e", "A", "P", 100}}, []row{{"l", "A", "P", 101}}, "amount! e=l"},
		{"one franc more, by our reference", []row{{"e", "", "P", 100}}, []row{{"l", "X", "P", 101}}, "amount! e=l"},
		{"a line twice", []row{{"e", "A", "P", 100}}, []row{{"l", "A", "P", 100}, {"l~2", "A", "P", 100}}, "duplicate_line! e=l+l~2"},
		{"paid twice", []row{{"e", "A", "P", 100}}, []row{{"l", "A", "P", 100}, {"m", "B", "P", 100}}, "duplicate_line! =m; operator_ref e=l"},
		{"a named line never tries the day", []row{{"e", "A", "P", 100}, {"f", "B", "Q", 101}}, []row{{"l", "A", "", 101}}, "amount! e=l; missing_line! f="},
		{"a named line never tries our reference", []row{{"e", "A", "P", 100}, {"f", "B", "P", 101}}, []row{{"l", "A", "P", 101}}, "amount! e=l; missing_line! f="},
		{"references disagree", []row{{"e", "A", "P", 100}, {"f", "B", "Q", 100}}, []row{{"l", "A", "Q", 100}, {"m", "B", "P", 100}}, "unmatched_line! e+f=l+m"},
		{"taken back", []row{{"e", "A", "P", 100}}, []row{{"l", "A", "P", 100}, {"r", "A", "P", -100}}, "operator_ref e=l; reversed_line! =r"},
		{"given back by us", []row{{"e", "A", "P", 100}, {"r", "A", "P", -100}}, []row{{"l", "A", "P", 100}, {"m", "A", "P", -100}}, "operator_ref e=l; operator_ref r=m"},
		{"given back under a reference of its own", []row{{"e", "A", "P", 100}, {"r", "", "P", -100}}, []row{{"l", "A", "P", 100}, {"m", "C", "P", -100}}, "operator_ref e=l; own_ref r=m"},
		{"two of the day", []row{{"e", "A", "P", 100}, {"f", "B", "Q", 100}}, []row{{"l", "", "", 100}}, "unmatched_line! e+f=l"},
		{"two receipts of one reference", []row{{"e", "A", "P", 100}, {"f", "A", "Q", 100}}, []row{{"l", "A", "", 100}}, "unmatched_line! e+f=l"},
		{"amounts at 2^53", []row{{"e", "A", "P", 1 << 53}}, []row{{"l", "A", "", 1<<53 + 1}}, "amount! e=l"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var expected []match.Expected
			for _, r := range test.expected {
				expected = append(expected, match.Expected{ID: r.id, At: noon(d), Amount: r.amount, Currency: "XAF", OperatorRef: r.operator, PaymentRef: r.own})
			}
			var lines []match.Line
			for _, r := range test.lines {
				lines = append(lines, match.Line{Line: statement.Line{ID: r.id, At: noon(d), Kind: statement.KindPayment, Amount: r.amount, Currency: "XAF", OperatorRef: r.operator, PaymentRef: r.own}})
			}
			if _, got := run(t, d+3, expected, lines); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// Kinds and actions that the short table does not show.
func TestDetails(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-20")
	e := match.Expected{ID: "e", At: noon(d), Amount: 1000, Currency: "XAF", OperatorRef: "A", PaymentRef: "P", NoticeRefs: []string{"N1", "N2"}}
	l := match.Line{Line: statement.Line{ID: "l", Day: d, Kind: statement.KindPayment, Amount: 1000, Currency: "XAF", OperatorRef: "A"}}
	for name, test := range map[string]struct {
		change func(*match.Expected, *match.Line)
		today  statement.Day
		want   string
	}{
		"net for gross":          {func(_ *match.Expected, l *match.Line) { l.Amount, l.Fee = 990, 10 }, d, "fee! e=l"},
		"another currency":       {func(_ *match.Expected, l *match.Line) { l.Currency = "EUR" }, d, "amount! e=l"},
		"a notice":               {func(_ *match.Expected, l *match.Line) { l.OperatorRef, l.NoticeRef = "", "N2" }, d, "own_ref e=l"},
		"undecided":              {func(e *match.Expected, _ *match.Line) { e.Undecided = true }, d, "decide_approved? e=l"},
		"undecided, no line":     {func(e *match.Expected, l *match.Line) { e.Undecided, l.OperatorRef = true, "" }, d + 9, "unmatched_line! =l; waiting e"},
		"in the days of grace":   {func(_ *match.Expected, l *match.Line) { l.OperatorRef, l.Amount = "", 1 }, d + 2, "unmatched_line! =l; waiting e"},
		"after them":             {func(_ *match.Expected, l *match.Line) { l.OperatorRef, l.Amount = "", 1 }, d + 3, "missing_line! e=; unmatched_line! =l"},
		"a charge":               {func(_ *match.Expected, l *match.Line) { l.OperatorRef, l.Kind = "", statement.KindCharge }, d, "fee! =l; waiting e"},
		"a payout takes no part": {func(_ *match.Expected, l *match.Line) { l.Kind = statement.KindPayout }, d, "waiting e"},
		"a closed receipt":       {func(e *match.Expected, _ *match.Line) { e.Closed = true }, d, "duplicate_line! =l"},
		"a closed line":          {func(_ *match.Expected, l *match.Line) { l.Closed = true }, d, "waiting e"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, l := e, l
			test.change(&e, &l)
			if _, got := run(t, test.today, []match.Expected{e}, []match.Line{l}); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	r, _ := run(t, d, []match.Expected{e}, []match.Line{l, {Line: statement.Line{ID: "r", Day: d, Amount: -1000, Currency: "XAF", OperatorRef: "A", Reversal: true}}})
	if len(r.Breaks) != 1 || r.Breaks[0].Action != match.ActionRefund || !slices.Equal(r.Breaks[0].NotTaken, []string{"e"}) || r.Breaks[0].Difference != -1000 {
		t.Errorf("%+v", r.Breaks)
	}
	if m := r.Matches[0]; m.Key != "A" || m.Rule != match.RuleVersion || m.Amount != 1000 || m.ID == "" {
		t.Errorf("%+v", m)
	}
	if _, err := (match.Receipts{Rules: rules, Lines: []match.Line{l, {Line: statement.Line{ID: "l"}}}}).Run(); !errors.Is(err, match.ErrConflict) {
		t.Errorf("two lines with one id: %v", err)
	}
}

// Days are the account's. A payment at half past midnight in Brazzaville is of that day,
// although in UTC it is still the day before, and the statement has only its day.
func TestDaysAreLocal(t *testing.T) {
	t.Parallel()
	d := day(t, "2026-11-21")
	at := time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC)
	expected := []match.Expected{{ID: "e", At: at, Amount: 100, Currency: "XAF"}}
	for want, line := range map[string]match.Line{
		"match? e=l":                     {Line: statement.Line{ID: "l", Day: d}},
		"unmatched_line! =l; waiting e":  {Line: statement.Line{ID: "l", Day: d - 1}},
		"match? e=l ":                    {Line: statement.Line{ID: "l", At: at.Add(20 * time.Minute)}},
		"unmatched_line! =l; waiting e ": {Line: statement.Line{ID: "l", At: at.Add(-time.Hour)}},
	} {
		line.Amount, line.Currency = 100, "XAF"
		if _, got := run(t, d, expected, []match.Line{line}); got != strings.TrimSpace(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	paris, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"2026-10-24T21:59:59Z": "2026-10-24", "2026-10-24T22:00:00Z": "2026-10-25", // summer time
		"2026-10-25T22:59:59Z": "2026-10-25", "2026-10-25T23:00:00Z": "2026-10-26", // winter time
	} {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := statement.DayOf(when, paris).String(); got != want {
			t.Errorf("%s is %s in Paris, want %s", at, got, want)
		}
	}
}

// world draws rows of few references, amounts and days, so that they collide.
func world(t *rapid.T, at statement.Day) ([]match.Expected, []match.Line) {
	ref := func(prefix string) string {
		if n := rapid.IntRange(0, 6).Draw(t, prefix); n > 0 {
			return prefix + fmt.Sprint(n)
		}
		return ""
	}
	amount := func() int64 { return rapid.SampledFrom([]int64{100, 100, 250, -100}).Draw(t, "amount") }
	when := func() statement.Day { return at + statement.Day(rapid.IntRange(0, 3).Draw(t, "day")) }
	expected := make([]match.Expected, rapid.IntRange(0, 8).Draw(t, "expected"))
	for i := range expected {
		expected[i] = match.Expected{ID: fmt.Sprint("e", i), At: noon(when()), Amount: amount(), Currency: "XAF", OperatorRef: ref("A"), PaymentRef: ref("P"), Undecided: rapid.IntRange(0, 9).Draw(t, "undecided") == 0}
		if n := ref("N"); n != "" {
			expected[i].NoticeRefs = []string{n}
		}
	}
	lines := make([]match.Line, rapid.IntRange(0, 10).Draw(t, "lines"))
	for i := range lines {
		lines[i] = match.Line{Line: statement.Line{ID: fmt.Sprint("l", i), Day: when(), Amount: amount(), Currency: "XAF", OperatorRef: ref("A"), PaymentRef: ref("P"), NoticeRef: ref("N"), Kind: statement.KindPayment, Reversal: rapid.IntRange(0, 9).Draw(t, "reversal") == 0}}
	}
	return expected, lines
}

// Shuffling and repeating rows changes nothing. Each line is in exactly one match, proposal
// or break, each expectation in one of these or waiting. Matches and proposals are what the
// definition says.
func TestProperties(t *testing.T) {
	t.Parallel()
	from := day(t, "2026-11-20")
	rapid.Check(t, func(t *rapid.T) {
		expected, lines := world(t, from)
		today := from + statement.Day(rapid.IntRange(0, 6).Draw(t, "today"))
		in := match.Receipts{Account: "a", Rules: rules, Today: today, Expected: expected, Lines: lines}
		r, err := in.Run()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := pairs(r), defined(expected, lines); got != want {
			t.Fatalf("pairs %s, by the definition %s", got, want)
		}
		seen := map[string]int{}
		count := func(lists ...[]string) {
			for _, id := range slices.Concat(lists...) {
				seen[id]++
			}
		}
		for _, m := range r.Matches {
			count(m.Sources, m.Lines)
		}
		for _, p := range r.Proposals {
			count(p.Sources, p.Lines)
		}
		for _, b := range r.Breaks {
			count(b.Sources, b.Lines)
		}
		count(r.Waiting)
		for i := range expected {
			if seen[expected[i].ID] != 1 {
				t.Fatalf("%s is in %d results: %s", expected[i].ID, seen[expected[i].ID], short(r))
			}
		}
		for i := range lines {
			if seen[lines[i].ID] != 1 {
				t.Fatalf("%s is in %d results: %s", lines[i].ID, seen[lines[i].ID], short(r))
			}
		}
		if len(seen) != len(expected)+len(lines) {
			t.Fatalf("a result has a row that does not exist")
		}
		in.Expected, in.Lines = mixed(t, expected), mixed(t, lines)
		again, err := in.Run()
		if err != nil {
			t.Fatal(err)
		}
		if a, b := fmt.Sprintf("%+v", r), fmt.Sprintf("%+v", again); a != b {
			t.Fatalf("shuffled and repeated rows give\n%s\ninstead of\n%s", b, a)
		}
		if c := match.Compare(r, again); !c.Empty() {
			t.Fatalf("running again changes %+v", c)
		}
	})
}

// mixed repeats some rows and shuffles all.
func mixed[T any](t *rapid.T, rows []T) []T {
	out := slices.Clone(rows)
	for i := range rows {
		if rapid.Bool().Draw(t, "again") {
			out = append(out, rows[i])
		}
	}
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// pairs lists the matches and proposals.
func pairs(r match.Result) string {
	var all []string
	for _, m := range r.Matches {
		all = append(all, fmt.Sprint(m.Stage, m.Sources, m.Lines))
	}
	for _, p := range r.Proposals {
		all = append(all, fmt.Sprint(p.Stage, p.Action, p.Sources, p.Lines))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// defined computes the same by comparing everything with everything, as the table of the
// stages says it.
func defined(expected []match.Expected, lines []match.Line) string {
	has := func(refs []string, ref string) bool { return ref != "" && slices.Contains(refs, ref) }
	byOperator := func(e *match.Expected, l *match.Line) bool { return has([]string{e.OperatorRef}, l.OperatorRef) }
	byPayment := func(e *match.Expected, l *match.Line) bool { return has([]string{e.PaymentRef}, l.PaymentRef) }
	byNotice := func(e *match.Expected, l *match.Line) bool { return has(e.NoticeRefs, l.NoticeRef) }
	naming := func(l *match.Line, by func(*match.Expected, *match.Line) bool) (all []int) {
		for i := range expected {
			if by(&expected[i], l) {
				all = append(all, i)
			}
		}
		return all
	}
	common := func(a, b []int) bool {
		return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(x int) bool { return slices.Contains(b, x) })
	}
	taken, done, named := map[int]bool{}, map[int]bool{}, map[int]bool{}
	var out []string
	stage := func(name match.Stage, of func(l *match.Line) (named []int, agrees bool)) {
		candidates, claims := map[int][]int{}, map[int]int{} // of lines, and how many lines claim a source
		touched := map[int]bool{}
		for i := range lines {
			l := &lines[i]
			names, agrees := of(l)
			if named[i] || len(names) == 0 {
				continue
			}
			done[i] = true
			for _, e := range names {
				if !taken[e] && agrees && expected[e].Amount == l.Amount {
					candidates[i] = append(candidates[i], e)
					claims[e]++
				}
			}
		}
		pair := map[int]int{}
		for i, c := range candidates {
			if len(c) == 1 && claims[c[0]] == 1 {
				pair[i] = c[0]
			} else {
				for _, e := range c {
					touched[e] = true
				}
			}
		}
		for i, e := range pair {
			touched[e] = true
			action := ""
			if expected[e].Undecided {
				action = string(match.ActionApprove)
			}
			out = append(out, fmt.Sprint(name, action, []string{expected[e].ID}, []string{lines[i].ID}))
		}
		// What a line names, and no line fits, is in the break of that line.
		for i := range lines {
			names, agrees := of(&lines[i])
			if named[i] || len(names) == 0 || len(candidates[i]) > 0 {
				continue
			}
			for _, e := range names {
				if !taken[e] && (!agrees || (expected[e].Amount < 0) == (lines[i].Amount < 0)) {
					touched[e] = true
				}
			}
		}
		for e := range touched {
			taken[e] = true
		}
		for i := range lines {
			if done[i] {
				named[i] = true
			}
		}
	}
	own := func(l *match.Line) ([]int, bool) {
		payment, notice := naming(l, byPayment), naming(l, byNotice)
		all := append(slices.Clone(payment), notice...)
		slices.Sort(all)
		return slices.Compact(all), common(payment, notice)
	}
	stage(match.StageOperator, func(l *match.Line) ([]int, bool) {
		operator := naming(l, byOperator)
		if len(operator) == 0 {
			return nil, true
		}
		mine, agrees := own(l)
		if agrees = agrees && common(operator, mine); !agrees || l.Amount < 0 {
			operator = append(operator, mine...)
			slices.Sort(operator)
			operator = slices.Compact(operator)
		}
		return operator, agrees
	})
	stage(match.StageOwn, own)
	for e := range expected {
		for l := range lines {
			same := func(i, j int) bool {
				return expected[i].Amount == lines[j].Amount && statement.DayOf(expected[i].At, wat) == lines[j].Day && !taken[i] && !named[j] && !expected[i].Undecided && !lines[j].Reversal
			}
			if !same(e, l) {
				continue
			}
			n := 0
			for i := range expected {
				if same(i, l) {
					n++
				}
			}
			for j := range lines {
				if same(e, j) {
					n++
				}
			}
			if n == 2 {
				out = append(out, fmt.Sprint(match.StageDay, match.ActionMatch, []string{expected[e].ID}, []string{lines[l].ID}))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
