package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/reconciliation/match"
	"quittance/statement"
)

// payday are lines without batch ids of an operator and a bank from Friday 2026-11-20 on.
type payday struct {
	t     interface{ Fatal(args ...any) }
	rules match.Rules
	match.Settlements
}

func newPayday(t interface{ Fatal(args ...any) }, cutoff time.Duration) *payday {
	p := &payday{t: t, rules: match.Rules{Zone: wat, Cutoff: cutoff, Grace: 3}}
	p.Account, p.Rules, p.Cutoffs = "bank", match.Rules{Zone: wat, Grace: 3}, map[string]match.Rules{}
	return p
}

// at is a time such as "20 17:30" in November.
func (p *payday) at(text string) time.Time {
	at, err := time.ParseInLocation("2006-01-2 15:04:05", "2026-11-"+text, wat)
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

func (p *payday) line(id string, at time.Time, amount int64) *match.Line {
	p.Lines = append(p.Lines, match.Line{Line: statement.Line{ID: id, Account: "op", At: at, Kind: statement.KindPayment, Amount: amount, Currency: "XAF"}})
	return &p.Lines[len(p.Lines)-1]
}

// paid is a payout of the operator.
func (p *payday) paid(id string, at time.Time, amount int64) {
	p.line(id, at, -amount).Kind = statement.KindPayout
}

// payout is a payout of the operator, and half an hour later the entry of the bank.
func (p *payday) payout(id string, at time.Time, amount int64) {
	p.paid("p"+id, at, amount)
	p.bank("k"+id, at, amount)
}

func (p *payday) bank(id string, at time.Time, amount int64) {
	p.Bank = append(p.Bank, match.Line{Line: statement.Line{ID: id, Account: "bank", At: at.Add(30 * time.Minute), Kind: statement.KindEntry, Amount: amount, Currency: "XAF"}})
}

func (p *payday) run(today string) match.Result {
	p.Cutoffs["op"] = p.rules
	p.Today = statement.DayOf(p.at(today+" 12:00:00"), wat)
	r, err := p.Run()
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// payoutTable is a day of lines and payouts, and what they become.
var payoutTable = []struct {
	name   string
	cutoff time.Duration
	fill   func(p *payday)
	want   string
}{
	{"five minutes after midnight", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("21 10:00:00"), 300)
		p.payout("1", p.at("21 00:05:00"), 700)
		p.payout("2", p.at("22 00:05:00"), 300)
	}, "match? a+p1=k1; match? b+p2=k2"},
	{"a second before midnight", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("21 10:00:00"), 300)
		p.payout("1", p.at("20 23:59:59"), 700)
		p.payout("2", p.at("21 23:59:59"), 300)
	}, "match? a+p1=k1; match? b+p2=k2"},
	{"on the next morning", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 18:00:00"), 300)
		p.payout("1", p.at("21 09:00:00"), 700)
		p.payout("2", p.at("22 09:00:00"), 300)
	}, "match? a+p1=k1; match? b+p2=k2"},
	{"on a day without a time", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 18:00:00"), 300)
		p.payout("1", p.at("21 00:00:00"), 700)
		l := &p.Lines[len(p.Lines)-1]
		l.At, l.Day = time.Time{}, statement.DayOf(p.at("21 00:00:00"), wat)
	}, "match? a+p1=k1; waiting b"},
	{"on Monday for three days", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 18:00:00"), 300)
		p.line("c", p.at("22 10:00:00"), 90)
		p.line("d", p.at("22 18:00:00"), 8)
		p.payout("1", p.at("23 09:00:00"), 1090)
		p.payout("2", p.at("24 09:00:00"), 8)
	}, "match? a+b+c+p1=k1; match? d+p2=k2"},
	{"in two parts", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 18:00:00"), 310)
		p.paid("p1", p.at("21 09:00:00"), 400)
		p.paid("p2", p.at("21 09:01:00"), 300)
		p.bank("k", p.at("21 09:00:00"), 700)
	}, "match? a+p1+p2=k; waiting b"},
	{"less than its lines, after midnight", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("21 10:00:00"), 300)
		p.payout("1", p.at("21 00:05:00"), 699)
		p.payout("2", p.at("22 00:05:00"), 300)
	}, "amount! a+p1=k1; match? b+p2=k2"},
	{"more than its lines, before midnight", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("21 10:00:00"), 300)
		p.payout("1", p.at("20 23:59:59"), 700)
		p.payout("2", p.at("21 23:59:59"), 301)
	}, "amount! b+p2=k2; match? a+p1=k1"},
	{"of lines that are settled, by a batch id", 0, func(p *payday) {
		l := p.line("a", p.at("20 10:00:00"), 700)
		l.Closed, l.Batch = true, "B"
		p.payout("1", p.at("21 00:05:00"), 700)
		p.Lines[1].Batch, p.Bank[0].Closed = "B", true
	}, "batch p1="},
	{"twice for lines that are settled", 0, func(p *payday) {
		l := p.line("a", p.at("20 10:00:00"), 700)
		l.Closed, l.Batch = true, "B"
		p.paid("p1", p.at("21 00:05:00"), 700)
		p.paid("p2", p.at("21 00:05:00"), 700)
		p.Lines[1].Batch, p.Lines[2].Batch = "B", "B"
	}, "waiting p1; waiting p2"},
	{"in two parts, of which one is the sum of the running window", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 18:00:00"), 300)
		p.paid("p1", p.at("21 09:00:00"), 400)
		p.paid("p2", p.at("21 09:01:00"), 300)
		p.bank("k", p.at("21 09:00:00"), 700)
	}, "match? a+p1+p2=k; waiting b"},
	{"in two parts, seconds before the cut-off", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.paid("p1", p.at("20 23:59:58"), 400)
		p.paid("p2", p.at("20 23:59:59"), 300)
		p.bank("k", p.at("20 23:59:59"), 700)
	}, "match? a+p1+p2=k"},
	{"in two parts on two days", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.paid("p1", p.at("20 18:00:00"), 400)
		p.paid("p2", p.at("21 09:00:00"), 300)
		p.bank("k", p.at("21 09:00:00"), 700)
	}, "match? a+p1+p2=k"},
	{"in two parts, beside one of the next window", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("21 10:00:00"), 500)
		p.paid("p1", p.at("21 09:00:00"), 400)
		p.paid("p2", p.at("21 09:01:00"), 300)
		p.bank("k", p.at("21 09:00:00"), 700)
		p.payout("3", p.at("21 17:05:00"), 500)
	}, "match? a+p1+p2=k; match? b+p3=k3"},
	{"twice a day, what came until then", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 400)
		p.line("b", p.at("20 15:00:00"), 300)
		p.paid("p1", p.at("20 12:00:00"), 400)
		p.paid("p2", p.at("20 23:59:00"), 300)
		p.bank("k", p.at("20 23:59:00"), 700)
	}, "match? a+b+p1+p2=k"},
	{"on days that are written as midnight", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("21 10:00:00"), 300)
		p.payout("1", p.at("20 00:00:00"), 700)
		p.payout("2", p.at("21 00:00:00"), 300)
	}, "match? a+p1=k1; match? b+p2=k2"},
	{"two minutes before the last line", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 16:59:00"), 10)
		p.line("c", p.at("21 10:00:00"), 300)
		p.payout("1", p.at("20 16:58:00"), 700)
		p.payout("2", p.at("21 16:58:00"), 300)
	}, "amount! a+b+p1=k1; match? c+p2=k2"},
	{"near the sum of two that the bank paid", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 1000)
		p.line("b", p.at("21 10:00:00"), 700)
		p.bank("k1", p.at("20 17:00:00"), 1000)
		p.bank("k2", p.at("21 17:00:00"), 700)
		p.paid("px", p.at("21 23:00:00"), 1600)
	}, "amount! b+px=k2; match? a=k1"},
	{"near an old window", 17 * time.Hour, func(p *payday) {
		p.line("old", p.at("10 10:00:00"), 700)
		p.paid("px", p.at("21 09:00:00"), 690)
	}, "missing_line! old=; waiting px"},
	{"on Monday for Friday alone, with less grace", 17 * time.Hour, func(p *payday) {
		p.rules.Grace, p.Rules.Grace = 2, 2
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("m", p.at("23 10:00:00"), 300)
		p.payout("1", p.at("23 09:00:00"), 700)
		p.payout("2", p.at("23 17:00:00"), 300)
	}, "match? a+p1=k1; match? m+p2=k2"},
	{"on the day after, without grace", 0, func(p *payday) {
		p.rules.Grace, p.Rules.Grace = 0, 0
		p.line("a", p.at("20 10:00:00"), 700)
		p.payout("1", p.at("21 00:05:00"), 700)
	}, "match? a+p1=k1"},
	{"on Monday for three days, a franc short", 17 * time.Hour, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 700)
		p.line("b", p.at("20 18:00:00"), 300)
		p.line("c", p.at("22 10:00:00"), 90)
		p.payout("1", p.at("23 09:00:00"), 1089)
	}, "amount! a+b+c+p1=k1"},
	{"of no window, beside one that is paid", 0, func(p *payday) {
		p.line("c", p.at("20 10:00:00"), 310)
		p.payout("3", p.at("21 00:05:00"), 310)
		p.payout("x", p.at("21 08:00:00"), 777)
	}, "match? c+p3=k3; unmatched_line! =kx; waiting px"},
	{"of a window before the first statement", 0, func(p *payday) {
		p.paid("p0", p.at("20 00:05:00"), 900)
		p.line("a", p.at("20 10:00:00"), 700)
		p.payout("1", p.at("21 00:05:00"), 700)
	}, "match? a+p1=k1; waiting p0"},
	{"before the line of its sum", 17 * time.Hour, func(p *payday) {
		p.line("b", p.at("21 12:00:00"), 690)
		p.paid("p1", p.at("21 09:00:00"), 690)
		p.payout("2", p.at("21 17:00:00"), 690)
	}, "match? b+p2=k2; waiting p1"},
	{"beside lines that cancel each other out", 0, func(p *payday) {
		p.line("a", p.at("20 10:00:00"), 100)
		p.line("r", p.at("20 11:00:00"), -100)
		p.payout("1", p.at("21 00:05:00"), 700)
	}, "batch a+r=; unmatched_line! =k1; waiting p1"},
	{"without lines", 0, func(p *payday) { p.payout("1", p.at("21 00:05:00"), 700) }, "unmatched_line! =k1; waiting p1"},
}

// Operators pay at the cut-off, before or after it.
func TestPayouts(t *testing.T) {
	t.Parallel()
	for _, test := range payoutTable {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPayday(t, test.cutoff)
			test.fill(p)
			if got := short(p.run("22")); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// A payout that the bank confirms, but that is not the sum of the operator's lines, says so.
func TestPayoutIsNotTheSum(t *testing.T) {
	t.Parallel()
	p := newPayday(t, 0)
	p.line("a", p.at("20 10:00:00"), 700)
	p.paid("p", p.at("21 00:05:00"), 690)
	p.bank("k", p.at("21 00:05:00"), 700)
	r := p.run("22")
	if len(r.Breaks) != 1 || r.Breaks[0].Kind != match.BreakAmount || r.Breaks[0].Reason != "the operator's payout is not the sum of its lines" {
		t.Errorf("%+v", r.Breaks)
	}
}

// Whatever time after the cut-off an operator pays at, each payout is put with the lines of its window, also if one payout
// differs from its lines and if the lines come in another order.
func TestPayoutsAtAnyTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cutoff := rapid.SampledFrom([]time.Duration{0, 8 * time.Hour, 17 * time.Hour, 23*time.Hour + 59*time.Minute}).Draw(t, "cutoff")
		p := newPayday(t, cutoff)
		after := rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Minute, 3 * time.Hour, 8 * time.Hour, 16 * time.Hour, 23 * time.Hour}).Draw(t, "paid after the cut-off")
		if cutoff == 0 {
			after = rapid.SampledFrom([]time.Duration{after, -time.Second}).Draw(t, "paid")
		}
		const days = 6
		wrong := rapid.IntRange(-1, days-1).Draw(t, "a wrong payout on day")
		off := rapid.SampledFrom([]int64{-9, 9}).Draw(t, "by")
		var want []string
		begin := p.at("1 00:00:00").Add(cutoff - 24*time.Hour)
		for day := range days {
			begin := begin.AddDate(0, 0, day)
			var ids []string
			var sum int64
			for n := range rapid.IntRange(1, 3).Draw(t, "lines") {
				id := fmt.Sprintf("a%d%d", day, n)
				at := begin.Add(time.Duration(rapid.IntRange(0, 24*60*60-1).Draw(t, "at")) * time.Second)
				p.line(id, at, 1000<<day+int64(n))
				ids, sum = append(ids, id), sum+1000<<day+int64(n)
			}
			paid, kind := sum, "match?"
			if day == wrong {
				paid, kind = sum+off, "amount!"
			}
			p.payout(fmt.Sprint(day), begin.Add(24*time.Hour+after), paid)
			want = append(want, fmt.Sprintf("%s %s+p%d=k%d", kind, strings.Join(ids, "+"), day, day))
		}
		slices.Sort(want)
		p.Lines, p.Bank = rapid.Permutation(p.Lines).Draw(t, "order"), rapid.Permutation(p.Bank).Draw(t, "order at the bank")
		got := strings.Split(short(p.run("9")), "; ")
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%v\nwant %v", got, want)
		}
	})
}
