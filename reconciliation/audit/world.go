package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quittance/internal/journal"
	"quittance/reconciliation/chain"
)

// world is what is known below the watermarks of a close of an account. It goes from close to close, and is on disk: only
// the rows of one close are in memory.
type world struct {
	*Book
	account string
	prefix  string // of all tables
	// next is the key of the first fact that was not taken, by topic/partition.
	next map[string]string
	// fresh and lines are of days that are not closed, by whose they are, the day and the row. The period that has
	// their day counts them. Those of money that is not the account's wait: a registry file may give it to the account
	// later, and an account may begin to settle later.
	fresh, lines table[string]
	known        table[bool] // lines that were taken, which overlapping statements repeat
	gone         table[bool] // entries that do not count any more
	// withdrawn are lines that do not count any more.
	withdrawn table[bool]
	// confirmed are the events that confirm, by transaction. The first counts.
	confirmed table[string]
	matches   table[found]
	// changed are ids of the account's matches that the next close may count in another way than the
	// one before.
	changed table[bool]
	// counts are the ids of the account's matches that the last close counts, by source.
	counts table[string]
	// proves are the ids of open matches of all accounts, by line, whose id has the account.
	proves table[string]
}

// found is a match, with all its parts.
type found struct {
	Account        string
	Sources, Lines []string
	Day            string // the latest of its rows
	Open, Counted  bool
}

func newWorld(b *Book, account string) *world {
	prefix := "world|"
	d := b.disk
	d.forget(prefix)
	return &world{
		Book: b, account: account, prefix: prefix, next: map[string]string{}, fresh: table[string]{d, prefix + "fresh|"}, lines: table[string]{d, prefix + "lines|"}, known: table[bool]{d, prefix + "known|"},
		gone: table[bool]{d, prefix + "gone|"}, withdrawn: table[bool]{d, prefix + "withdrawn|"}, confirmed: table[string]{d, prefix + "confirmed|"}, matches: table[found]{d, prefix + "matches|"},
		changed: table[bool]{d, prefix + "changed|"}, counts: table[string]{d, prefix + "counts|"}, proves: table[string]{d, prefix + "proves|"},
	}
}

// dayKey orders rows by whose they are and their day.
func dayKey(whose, day, row string) string { return whose + "\x00" + day + "\x00" + row }

// until calls do for the rows of a table by dayKey until a day, and removes them from it.
func until(t table[string], whose, to string, do func(row string)) {
	t.each(whose+"\x00", whose+"\x00"+to+"\x01", func(key, row string) {
		t.delete(key)
		do(row)
	})
}

// close takes the facts below the watermarks of a close, and computes its rows.
func (w *world) close(c *journal.Close) (Close, error) {
	for at, mark := range c.Watermarks {
		to := factKey(at, mark, 0)
		if from := max(w.next[at], factKey(at, 0, 0)); from < to {
			w.facts.each(from, to, func(_ string, f fact) { w.take(&f) })
			w.next[at] = to
		}
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
	case f.Entry != nil:
		w.fresh.put(dayKey(f.Entry.Money, f.Entry.Day, f.Entry.Row), f.Entry.Row)
	case f.Withdrawn != "":
		w.gone.put(f.Withdrawn, true)
	case f.Line != nil:
		if !w.known.has(f.Line.Row) {
			w.known.put(f.Line.Row, true)
			w.lines.put(dayKey(f.Line.Account, f.Line.Day, f.Line.Row), f.Line.Row)
		}
	case f.Unline != nil:
		w.withdrawn.put(f.Unline.Row, true)
	case f.Confirmed != nil:
		if !w.confirmed.has(f.Confirmed.Transaction) {
			w.confirmed.put(f.Confirmed.Transaction, f.Confirmed.Event)
		}
	case f.Finding != nil:
		w.takeFinding(f.Finding)
	}
}

// takeFinding takes a part of a match, or of its end. A match that ended may begin again.
func (w *world) takeFinding(f *finding) {
	m, old := w.matches.get(f.ID)
	if !old {
		m.Account = f.Account
	}
	if f.Account == w.account {
		w.changed.put(f.ID, true)
	}
	if f.State != journal.FindingOpen {
		m.Open = false
		for _, l := range m.Lines {
			if id, _ := w.proves.get(l); id == f.ID {
				w.proves.delete(l)
			}
		}
		w.matches.put(f.ID, m)
		return
	}
	if f.Part <= 1 {
		m.Sources, m.Lines, m.Day = nil, nil, ""
	}
	m.Open = true
	m.Sources, m.Lines = append(m.Sources, f.Sources...), append(m.Lines, f.Lines...)
	for _, id := range slices.Concat(f.Sources, f.Lines) {
		m.Day = max(m.Day, id[:len(time.DateOnly)])
	}
	for _, l := range f.Lines {
		w.proves.put(l, f.ID)
	}
	w.matches.put(f.ID, m)
}

// rows returns the rows of a close, by the id of their entry.
func (w *world) rows(c *journal.Close) map[string][]chain.Row {
	to, settling := c.ToDay.Format(time.DateOnly), set(c.Settling)
	touched := map[string]bool{} // entries, or of a bank account lines
	touch := func(row string) { touched[row] = true }
	if c.ChainVersion == 0 { // it does not say whose money it had: all until its last day was known
		w.fresh.each("", "", func(key, row string) {
			if _, rest, _ := strings.Cut(key, "\x00"); rest[:len(time.DateOnly)] <= to {
				w.fresh.delete(key)
				touch(row)
			}
		})
	}
	for _, money := range c.MoneyOf {
		until(w.fresh, money, to, touch)
	}
	for account := range settling {
		until(w.lines, account, to, func(row string) {
			if !w.withdrawn.has(row) {
				touch(row)
			}
		})
	}
	w.changed.each("", "", func(id string, _ bool) { w.count(id, to, touch) })
	out := map[string][]chain.Row{}
	for row := range touched {
		if !strings.Contains(row, "#") { // money that arrived on the account itself, not a line that settles to it
			w.put(out, row, w.counted(row), nil)
			continue
		}
		id, _ := w.proves.get(row)
		if m, ok := w.matches.get(id); ok && settling[m.Account] {
			var bank []string
			for _, l := range m.Lines {
				bank = append(bank, w.counted(l)...)
			}
			for _, source := range m.Sources {
				w.put(out, source, m.Lines, bank)
			}
		}
	}
	return out
}

// count has a close until a day count a match that has changed, or count it no more.
func (w *world) count(id, to string, touch func(row string)) {
	m, _ := w.matches.get(id)
	if m.Open && m.Day > to {
		return // a later close counts it
	}
	w.changed.delete(id)
	if m.Open == m.Counted {
		return
	}
	m.Counted = m.Open
	w.matches.put(id, m)
	for _, source := range m.Sources {
		touch(source)
		if m.Open {
			w.counts.put(source, id)
		} else if counted, _ := w.counts.get(source); counted == id {
			w.counts.delete(source)
		}
	}
}

// counted returns the lines of the account that prove a source.
func (w *world) counted(source string) []string {
	id, ok := w.counts.get(source)
	if !ok {
		return nil
	}
	m, _ := w.matches.get(id)
	return m.Lines
}

// put sets the rows of an entry, unless it does not count any more.
func (w *world) put(out map[string][]chain.Row, row string, operator, bank []string) {
	if e, ok := w.entries.get(row); ok && !w.gone.has(row) {
		out[e.ID] = e.Rows(func(transaction string) string {
			event, _ := w.confirmed.get(transaction)
			return event
		}, operator, bank)
	}
}
