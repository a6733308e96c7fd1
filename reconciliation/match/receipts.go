package match

import (
	"slices"

	"quittance/statement"
)

// Receipts is a run over the money and the lines of one operator's, acquirer's or cash
// account.
type Receipts struct {
	Account  string
	Rules    Rules
	Today    statement.Day
	Expected []Expected
	Lines    []Line
	// ByName says that only references find lines: transfers of citizens repeat amounts, and others arrive beside them.
	ByName bool
}

// Run matches each receipt with a line. Payouts take no part: Settlements has them. Order and
// repetition of rows do not matter. The error is ErrConflict.
func (in Receipts) Run() (Result, error) {
	expected, err := unique(in.Expected, func(e *Expected) string { return e.ID }, sameExpected)
	if err != nil {
		return Result{}, err
	}
	lines, err := unique(in.Lines, func(l *Line) string { return l.ID }, func(a, b *Line) bool { return *a == *b })
	if err != nil {
		return Result{}, err
	}
	lines = slices.DeleteFunc(lines, func(l *Line) bool { return l.Closed || !l.Kind.Money() })
	sources := make([]source, len(expected))
	ids := make([]string, len(expected))
	byOperator, byOwn := newIndex(len(expected)), newIndex(len(expected))
	for i, e := range expected {
		ids[i] = e.ID
		sources[i] = source{rows: ids[i : i+1 : i+1], amount: e.Amount, currency: e.Currency, day: statement.DayOf(e.At, in.Rules.Zone), undecided: e.Undecided, refused: e.Refused, payout: e.Payout, closed: e.Closed}
		byOperator.add(e.OperatorRef, int32(i))
		byOwn.add(e.PaymentRef, int32(i))
		for _, ref := range e.NoticeRefs {
			byOwn.add(ref, int32(i))
		}
	}
	targets := make([]target, len(lines))
	for i, l := range lines {
		targets[i] = target{
			id: l.ID, amount: l.Amount, fee: l.Fee, currency: l.Currency, day: in.Rules.dayOf(l),
			reversal: l.Reversal || l.Kind == statement.KindReversal, charge: l.Kind == statement.KindCharge, pays: l.Kind.Pays(), pairable: !l.Reversal && !slices.Contains(unpaired, l.Kind),
		}
	}
	b := newBoard(in.Account, &in.Rules, in.Today, sources, targets)
	b.name(StageOperator, func(t int32) (naming, bool) {
		l := lines[t]
		n := naming{target: t, sources: byOperator.find(l.OperatorRef), key: l.OperatorRef}
		if len(n.sources) == 0 {
			return n, false
		}
		own, contradict := ownSources(byOwn, l)
		n.disagrees = contradict || len(own) > 0 && !overlap(n.sources, own)
		if n.disagrees || l.Amount < 0 { // a refund may have a reference of its own
			n.sources = union(n.sources, own)
		}
		return n, true
	})
	b.name(StageOwn, func(t int32) (naming, bool) {
		l := lines[t]
		own, contradict := ownSources(byOwn, l)
		n := naming{target: t, sources: own, disagrees: contradict, key: l.PaymentRef}
		if n.key == "" {
			n.key = l.NoticeRef
		}
		return n, len(own) > 0
	})
	if !in.ByName {
		b.near(StageDay, 0)
	}
	return b.finish(), nil
}

func sameExpected(a, b *Expected) bool {
	return a.At.Equal(b.At) && a.Amount == b.Amount && a.Currency == b.Currency && a.OperatorRef == b.OperatorRef && a.PaymentRef == b.PaymentRef &&
		slices.Equal(a.NoticeRefs, b.NoticeRefs) && a.Undecided == b.Undecided && a.Refused == b.Refused && a.Payout == b.Payout && a.Closed == b.Closed
}

// unpaired are kinds of lines that are not found by amount and day.
var unpaired = []statement.Kind{statement.KindCharge, statement.KindTransfer, statement.KindReturn}

// ownSources returns what the payment_ref and the notice_ref of a line name. They contradict
// each other if they name different sources.
func ownSources(x *index, l *Line) (sources []int32, contradict bool) {
	payment, notice := x.find(l.PaymentRef), x.find(l.NoticeRef)
	if len(payment) > 0 && len(notice) > 0 && !overlap(payment, notice) {
		return union(payment, notice), true
	}
	return union(payment, notice), false
}

func overlap(a, b []int32) bool {
	return slices.ContainsFunc(a, func(x int32) bool { return slices.Contains(b, x) })
}

func union(a, b []int32) []int32 {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}
