package match

import (
	"cmp"
	"slices"
)

// ledger is an account in a currency, and whether its lines are settled for good.
type ledger struct {
	account, currency string
	closed            bool
}

// windows are the cut-off windows of a ledger whose lines have no batch ids. A window has the name of the day on which its
// cut-off is.
type windows struct {
	ledger
	rules   Rules
	byDay   map[Day]*batch
	payouts []*Line
}

// of returns the window of a day.
func (w *windows) of(day Day) *batch {
	b := w.byDay[day]
	if b == nil {
		b = &batch{source: source{currency: w.currency, day: day, closed: w.closed}}
		w.byDay[day] = b
	}
	return b
}

// pay puts each payout of the operator into the window that it pays. The statement does not say which: operators pay at the
// cut-off, minutes before or after it, on the next morning, or on Monday for the days since Friday. So first come the payouts
// whose amount is exactly that of a window, or of several one after the other, and then the others.
func (w *windows) pay() {
	slices.SortFunc(w.payouts, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(w.rules.dayOf(a), w.rules.dayOf(b)), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	for _, p := range slices.DeleteFunc(w.payouts, w.exactly) {
		w.nearly(p)
	}
}

// nearly puts a payout into a window around its time although its sum is another one: a window with more money left, or
// without a payout, or else any, or one of its own.
func (w *windows) nearly(p *Line) {
	into := func(takes func(*batch) bool) bool {
		for _, day := range w.near(p)[:2] {
			if b := w.byDay[day]; b != nil && b.filled && takes(b) {
				b.add(p, day)
				return true
			}
		}
		return false
	}
	switch {
	case into(func(b *batch) bool { return b.unpaid() >= -p.Net() }):
	case into(func(b *batch) bool { return !b.paid }):
	case into(func(*batch) bool { return true }):
	default:
		w.of(w.rules.dayOf(p)).add(p, w.rules.dayOf(p))
	}
}

// exactly puts a payout into the unpaid windows whose sum it is. Several become one.
func (w *windows) exactly(p *Line) bool {
	ends := w.near(p)
	for length := range ends {
		for _, end := range ends {
			days, sum := w.unpaid(end, length+1)
			if len(days) != length+1 || sum != -p.Net() {
				continue
			}
			into := w.byDay[end]
			for _, day := range days[1:] {
				b := w.byDay[day]
				into.rows, into.amount = append(into.rows, b.rows...), into.amount+b.amount
				delete(w.byDay, day)
			}
			into.add(p, end)
			return true
		}
	}
	return false
}

// unpaid returns up to count days of windows that have lines and no payout, from a day back, with their sum. A
// window with a payout ends the search, and so does the number of days of grace.
func (w *windows) unpaid(end Day, count int) (days []Day, sum int64) {
	for day := end; day >= end-w.rules.Grace && len(days) < count; day-- {
		b := w.byDay[day]
		switch {
		case b == nil || !b.filled:
			if day == end {
				return nil, 0
			}
		case b.paid:
			return days, sum
		default:
			days, sum = append(days, day), sum+b.amount
		}
	}
	return days, sum
}

// near returns the days of the windows that a payout may pay, the likeliest first: the last window that had ended, the other one
// around its time, and those before as far as the days of grace go. There are two at least.
func (w *windows) near(p *Line) []Day {
	day := w.rules.dayOf(p)
	ended, other := day, day-1
	if !p.At.IsZero() && w.rules.window(p) == day { // before the cut-off of its day
		ended, other = day-1, day
	}
	days := []Day{ended, other}
	for d := day - 2; d >= day-w.rules.Grace; d-- {
		days = append(days, d)
	}
	return days
}
