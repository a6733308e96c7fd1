package audit

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"quittance/internal/journal"
	"quittance/reconciliation/chain"
	"quittance/schemas/record"
)

// world is what is known below the watermarks of a close of an account. It goes from close to close.
type world struct {
	*Book
	account string
	// next is the first fact that was not taken, by topic/partition.
	next map[string]int
	// fresh and lines are of days that are not closed. The period that has their day counts them. Those of
	// money that is not the account's wait by whose it is: a registry file may give it to the account later.
	fresh map[string][]*entry
	lines []*line
	known map[string]bool // lines that were taken, which overlapping statements repeat
	gone  map[*entry]bool
	// withdrawn are lines that do not count any more.
	withdrawn map[string]bool
	// confirmed are the events that confirm, by transaction. The first counts.
	confirmed map[string]string
	matches   map[string]*found
	// changed are ids of the account's matches that the next close may count in another way than the
	// one before.
	changed map[string]bool
	// counts are the account's matches that the last close counts, by source.
	counts map[string]*found
	// proves are open matches of all accounts, by line, whose id has the account.
	proves map[string]*found
}

// found is a match, with all its parts.
type found struct {
	account        string
	sources, lines []string
	day            string // the latest of its rows
	open, counted  bool
}

func newWorld(b *Book, account string) *world {
	return &world{
		Book: b, account: account, next: map[string]int{}, fresh: map[string][]*entry{}, known: map[string]bool{}, gone: map[*entry]bool{}, withdrawn: map[string]bool{}, confirmed: map[string]string{},
		matches: map[string]*found{}, changed: map[string]bool{}, counts: map[string]*found{}, proves: map[string]*found{},
	}
}

// close takes the facts below the watermarks of a close, and computes its rows.
func (w *world) close(c *journal.Close) (Close, error) {
	for at, mark := range c.Watermarks {
		facts, i := w.facts[at], w.next[at]
		for ; i < len(facts) && facts[i].offset < mark; i++ {
			w.take(&facts[i])
		}
		w.next[at] = i
	}
	out := Close{Close: *c, Unproved: c.ChainVersion == 0, rows: w.rows(c)}
	var err error
	if out.tree, err = chain.New(slices.Concat(slices.Collect(maps.Values(out.rows))...)); err != nil {
		return out, err
	}
	out.Root, out.Rows = out.tree.Root(), int64(out.tree.Size()) //nolint:gosec // a count
	switch {
	case out.Unproved:
	case c.ChainVersion != chain.Version:
		out.Faults = append(out.Faults, fmt.Sprintf("its rows have version %d of the canonical form, this program knows version %d: use a later program", c.ChainVersion, chain.Version))
	case out.Rows != c.ChainRows:
		out.Faults = append(out.Faults, fmt.Sprintf("its record says %d rows, Kafka has %d", c.ChainRows, out.Rows))
	case out.Root.String() != c.ChainRoot:
		out.Faults = append(out.Faults, fmt.Sprintf("its record says the root %s, the rows in Kafka have %s", c.ChainRoot, out.Root))
	}
	return out, nil
}

func (w *world) take(f *fact) {
	switch {
	case f.entry != nil:
		w.fresh[f.entry.money] = append(w.fresh[f.entry.money], f.entry)
	case f.withdrawn != nil:
		w.gone[f.withdrawn] = true
	case f.line != nil:
		if !w.known[f.line.row] {
			w.known[f.line.row] = true
			w.lines = append(w.lines, f.line)
		}
	case f.unline != nil:
		w.withdrawn[f.unline.row] = true
	case f.confirmed != nil:
		if w.confirmed[f.confirmed.transaction] == "" {
			w.confirmed[f.confirmed.transaction] = f.confirmed.event
		}
	default:
		w.takeFinding(f.finding)
	}
}

// takeFinding takes a part of a match, or of its end. A match that ended may begin again.
func (w *world) takeFinding(f *record.Finding) {
	m := w.matches[f.FindingID]
	if m == nil {
		m = &found{account: f.Account}
		w.matches[f.FindingID] = m
	}
	if f.Account == w.account {
		w.changed[f.FindingID] = true
	}
	if f.State != journal.FindingOpen {
		m.open = false
		for _, l := range m.lines {
			if w.proves[l] == m {
				delete(w.proves, l)
			}
		}
		return
	}
	if f.Part <= 1 {
		m.sources, m.lines, m.day = nil, nil, ""
	}
	m.open = true
	m.sources, m.lines = append(m.sources, f.Sources...), append(m.lines, f.Lines...)
	for _, id := range slices.Concat(f.Sources, f.Lines) {
		m.day = max(m.day, id[:len(time.DateOnly)])
	}
	for _, l := range f.Lines {
		w.proves[l] = m
	}
}

// rows returns the rows of a close, by the id of their entry.
func (w *world) rows(c *journal.Close) map[string][]chain.Row {
	to, settling := c.ToDay.Format(time.DateOnly), set(c.Settling)
	touched := map[string]bool{} // entries, or of a bank account lines
	whose := c.MoneyOf
	if c.ChainVersion == 0 { // it does not say whose money it had: all until its last day was known
		whose = slices.Collect(maps.Keys(w.fresh))
	}
	for _, money := range whose {
		w.fresh[money] = slices.DeleteFunc(w.fresh[money], func(e *entry) bool {
			if e.day <= to {
				touched[e.row] = true
			}
			return e.day <= to
		})
	}
	w.lines = slices.DeleteFunc(w.lines, func(l *line) bool { // an account may begin to settle later
		if l.day > to || !settling[l.account] {
			return false
		}
		if !w.withdrawn[l.row] {
			touched[l.row] = true
		}
		return true
	})
	for id := range w.changed {
		m := w.matches[id]
		if m.open && m.day > to {
			continue // a later close counts it
		}
		delete(w.changed, id)
		if m.open == m.counted {
			continue
		}
		m.counted = m.open
		for _, source := range m.sources {
			touched[source] = true
			if m.open {
				w.counts[source] = m
			} else if w.counts[source] == m {
				delete(w.counts, source)
			}
		}
	}
	out := map[string][]chain.Row{}
	for row := range touched {
		if len(settling) == 0 {
			w.put(out, row, w.counted(row), nil)
			continue
		}
		if m := w.proves[row]; m != nil && settling[m.account] {
			var bank []string
			for _, l := range m.lines {
				bank = append(bank, w.counted(l)...)
			}
			for _, source := range m.sources {
				w.put(out, source, m.lines, bank)
			}
		}
	}
	return out
}

// counted returns the lines of the account that prove a source.
func (w *world) counted(source string) []string {
	if m := w.counts[source]; m != nil {
		return m.lines
	}
	return nil
}

// put sets the rows of an entry, unless it does not count any more.
func (w *world) put(out map[string][]chain.Row, row string, operator, bank []string) {
	if e := w.entries[row]; e != nil && !w.gone[e] {
		out[e.ID] = e.Rows(func(transaction string) string { return w.confirmed[transaction] }, operator, bank)
	}
}
