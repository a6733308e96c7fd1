package match

import (
	"cmp"
	"slices"
	"time"

	"quittance/statement"
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
	byDay   map[statement.Day]*batch
	payouts []*Line
	list    []window // whose lines do not cancel each other out, sorted
	alone   []*batch // of payouts that belong to no window
}

type window struct {
	day statement.Day
	*batch
}

// of returns the window of a day.
func (w *windows) of(day statement.Day) *batch {
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
		if b.Amount != 0 {
			w.list = append(w.list, window{day, b})
		}
	}
	slices.SortFunc(w.list, func(a, b window) int { return cmp.Compare(a.day, b.day) })
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

// parts puts the payouts of a day into the one unpaid window whose sum they are together.
func (w *windows) parts(payouts []*Line) bool {
	var paid int64
	for _, p := range payouts {
		paid -= p.Net()
	}
	last := payouts[len(payouts)-1]
	for _, from := range w.around(last) {
		for i := range w.reach(from) {
			if b := w.list[i].batch; !b.Paid && !b.joined && !w.past(b.Last, last) && b.Amount == paid {
				for _, p := range payouts {
					b.add(p, w.rules.dayOf(p))
				}
				return true
			}
		}
	}
	return false
}

// exactly puts a payout into the unpaid windows whose sum it is, the fewest and newest ones: into those that had ended, or else
// into those up to the one whose cut-off comes next.
func (w *windows) exactly(p *Line) bool {
	for _, from := range w.around(p) {
		var best run
		w.runs(from, func(b *batch) bool { return !w.past(b.Last, p) }, func(r run) {
			if r.sum == -p.Net() && (best.windows == 0 || r.windows < best.windows) {
				best = r
			}
		})
		if best.windows > 0 {
			w.join(best, p)
			return true
		}
	}
	return false
}

// severally is as tolerance, for a payout of several windows.
const severally = 100

// nearly puts a payout of another sum into the windows whose sum is the nearest one, if the difference is tolerable, or else
// into a window around its time that is not paid in full, or else into none. A window that is paid in full stays as it is.
func (w *windows) nearly(p *Line) {
	begun := func(b *batch) bool { return !w.past(b.First, p) }
	var best run
	var least int64
	for _, from := range w.around(p) {
		w.runs(from, begun, func(r run) {
			off, most := max(r.sum+p.Net(), -r.sum-p.Net()), r.sum/tolerance
			if r.windows > 1 {
				most = r.sum / severally
			}
			if off <= most && (best.windows == 0 || off < least) {
				best, least = r, off
			}
		})
	}
	if best.windows > 0 {
		w.join(best, p)
		return
	}
	for _, takes := range []func(*batch) bool{
		func(b *batch) bool { return b.Unpaid() >= -p.Net() }, // a part of it
		func(b *batch) bool { return !b.Paid },
	} {
		for _, day := range w.around(p) {
			if b := w.byDay[day]; b != nil && b.Amount != 0 && b.Unpaid() != 0 && begun(b) && takes(b) {
				b.add(p, w.rules.dayOf(p))
				return
			}
		}
	}
	own := &batch{source: source{currency: w.currency, closed: w.closed}}
	own.add(p, w.rules.dayOf(p))
	w.alone = append(w.alone, own)
}

// run is some unpaid windows one after the other, the newest of which is the place in the list, with their sum.
type run struct {
	newest, windows int
	sum             int64
}

// runs calls each with the runs of unpaid windows that can take a payout, within the reach from a day back.
func (w *windows) runs(from statement.Day, takes func(*batch) bool, each func(run)) {
	for newest := range w.reach(from) {
		r := run{newest: newest}
		for i := range w.reach(w.list[newest].day) {
			if b := w.list[i].batch; b.joined || b.Paid || !takes(b) {
				break
			}
			r.windows, r.sum = r.windows+1, r.sum+w.list[i].Amount
			each(r)
		}
	}
}

// weekend is how many days back the last window with lines may be at least.
const weekend = 3

// reach yields the places of the windows from a day back, the newest first: from the newest one by the days of grace.
func (w *windows) reach(from statement.Day) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		newest, found := slices.BinarySearchFunc(w.list, from, func(a window, day statement.Day) int { return cmp.Compare(a.day, day) })
		if !found {
			newest--
		}
		if newest < 0 || from-w.list[newest].day > max(w.rules.Grace, weekend) {
			return
		}
		for i := newest; i >= 0 && w.list[i].day >= w.list[newest].day-w.rules.Grace; i-- {
			if !yield(i) {
				return
			}
		}
	}
}

// join makes one batch of the windows of a run and a payout.
func (w *windows) join(r run, p *Line) {
	into := w.list[r.newest].batch
	for i := r.newest - 1; i > r.newest-r.windows; i-- {
		b := w.list[i].batch
		into.rows, into.Amount, b.joined = append(into.rows, b.rows...), into.Amount+b.Amount, true
		delete(w.byDay, w.list[i].day)
	}
	into.add(p, w.rules.dayOf(p))
}

// around returns the days of the last window that had ended when a payout was made, and of the one whose cut-off came next. For a
// payout after the cut-off of its day, and for one without a time, they are its day and the day before.
func (w *windows) around(p *Line) [2]statement.Day {
	day := w.rules.dayOf(p)
	if w.timed(p) && w.rules.window(p) == day {
		return [2]statement.Day{day - 1, day}
	}
	return [2]statement.Day{day, day - 1}
}

// timed reports whether a payout has a time. Statements that have only the day of a payout write midnight.
func (w *windows) timed(p *Line) bool {
	if p.At.IsZero() {
		return false
	}
	hour, minute, second := p.At.In(w.rules.Zone).Clock()
	return hour+minute+second > 0
}

// past reports whether a time, of a line, is after a payout.
func (w *windows) past(at time.Time, p *Line) bool { return w.timed(p) && at.After(p.At) }
