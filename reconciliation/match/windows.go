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
	days    []Day    // of windows whose lines do not cancel each other out, sorted
	alone   []*batch // of payouts that belong to no window
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
// whose amount, or whose sum of one day, is exactly that of a window, or whose amount is that of several windows one after the
// other; and then the others.
func (w *windows) pay() {
	for day, b := range w.byDay {
		if b.amount != 0 {
			w.days = append(w.days, day)
		}
	}
	slices.Sort(w.days)
	slices.SortFunc(w.payouts, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(w.rules.dayOf(a), w.rules.dayOf(b)), a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	var left []*Line
	for begin := 0; begin < len(w.payouts); {
		end := begin + 1
		for end < len(w.payouts) && w.rules.dayOf(w.payouts[end]) == w.rules.dayOf(w.payouts[begin]) {
			end++
		}
		ofDay := w.payouts[begin:end]
		if begin = end; len(ofDay) > 1 && w.parts(ofDay) {
			continue
		}
		for _, p := range ofDay {
			if !w.exactly(p) {
				left = append(left, p)
			}
		}
	}
	for _, p := range left {
		w.nearly(p)
	}
}

// parts puts the payouts of a day into the one window that had ended and whose sum they are together.
func (w *windows) parts(payouts []*Line) bool {
	var paid int64
	for _, p := range payouts {
		paid -= p.Net()
	}
	ended, _ := w.around(payouts[0])
	for _, run := range w.runs(payouts[0], ended) {
		if len(run) == 1 && w.byDay[run[0]].amount == paid {
			for _, p := range payouts {
				w.byDay[run[0]].add(p, w.rules.dayOf(p))
			}
			return true
		}
	}
	return false
}

// exactly puts a payout into the unpaid windows whose sum it is: into those that had ended, or else into the one whose cut-off
// comes next.
func (w *windows) exactly(p *Line) bool {
	ended, next := w.around(p)
	for _, run := range append(w.runs(p, ended), w.runs(p, next)...) {
		if w.sum(run) == -p.Net() {
			w.join(run, p)
			return true
		}
	}
	return false
}

// nearly puts a payout of another sum into the windows whose sum is the nearest one, if the difference is tolerable, or else
// into a window around its time that is not paid in full. A window that is paid in full stays as it is.
func (w *windows) nearly(p *Line) {
	ended, next := w.around(p)
	var best []Day
	var least int64
	for _, run := range append(w.runs(p, ended), w.runs(p, next)...) {
		sum := w.sum(run)
		off := max(sum+p.Net(), -sum-p.Net())
		if off <= sum/tolerance && (best == nil || off < least) {
			best, least = run, off
		}
	}
	if best != nil {
		w.join(best, p)
		return
	}
	for _, takes := range []func(*batch) bool{
		func(b *batch) bool { return b.unpaid() > -p.Net() }, // a part of it
		func(b *batch) bool { return !b.paid },
	} {
		for _, day := range []Day{ended, next} {
			if b := w.byDay[day]; b != nil && b.amount != 0 && b.unpaid() != 0 && !b.after(p) && takes(b) {
				b.add(p, w.rules.dayOf(p))
				return
			}
		}
	}
	own := &batch{source: source{currency: w.currency, closed: w.closed}}
	own.add(p, w.rules.dayOf(p))
	w.alone = append(w.alone, own)
}

// join makes one batch of windows and a payout.
func (w *windows) join(run []Day, p *Line) {
	into := w.byDay[run[0]]
	for _, day := range run[1:] {
		b := w.byDay[day]
		into.rows, into.amount = append(into.rows, b.rows...), into.amount+b.amount
		delete(w.byDay, day)
	}
	into.add(p, w.rules.dayOf(p))
}

func (w *windows) sum(run []Day) (sum int64) {
	for _, day := range run {
		sum += w.byDay[day].amount
	}
	return sum
}

// runs returns the unpaid windows up to a day, and those one after the other, by their days with the newest first. Shorter runs come
// first, and of these the newer ones. They go back from the newest window by the days of grace, and none has a line after
// the payout.
func (w *windows) runs(p *Line, from Day) (runs [][]Day) {
	last, found := slices.BinarySearch(w.days, from)
	if !found {
		last--
	}
	for first := last; first >= 0 && w.days[first] >= w.days[last]-w.rules.Grace; first-- {
		var run []Day
		for at := first; at >= 0 && w.days[at] >= w.days[last]-w.rules.Grace; at-- {
			b := w.byDay[w.days[at]]
			if b == nil || b.paid || b.after(p) { // nil is joined to another one, which is paid
				break
			}
			run = append(run, w.days[at])
			runs = append(runs, slices.Clone(run))
		}
	}
	slices.SortStableFunc(runs, func(a, b []Day) int { return cmp.Compare(len(a), len(b)) })
	return runs
}

// around returns the last window that had ended when a payout was made, and the next one: that whose cut-off came then, or for a
// payout after the cut-off of its day, and one without a time, no other one.
func (w *windows) around(p *Line) (ended, next Day) {
	day := w.rules.dayOf(p)
	if !p.At.IsZero() && w.rules.window(p) == day {
		return day - 1, day
	}
	return day, day
}
