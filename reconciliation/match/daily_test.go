package match_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quittance/reconciliation/match"
	"quittance/statement"
)

// book is what a caller stores between daily runs: all rows, their references, and the
// results in force.
type book struct {
	expected  map[string]match.Expected
	lines     map[string]match.Line
	byRef     map[string][]string // ids of rows
	matches   map[string]match.Match
	proposals map[string]match.Proposal
	breaks    map[string]match.Break
	matched   map[string]string // the match of a row
	rows      int               // of all runs
}

func newBook() *book {
	return &book{
		map[string]match.Expected{},
		map[string]match.Line{},
		map[string][]string{},
		map[string]match.Match{},
		map[string]match.Proposal{},
		map[string]match.Break{},
		map[string]string{},
		0,
	}
}

func (b *book) refs(id string) []string {
	if e, ok := b.expected[id]; ok {
		return e.Refs()
	}
	l := b.lines[id]
	return l.Refs()
}

type fataler interface{ Fatal(args ...any) }

// run does a daily run: over the new and the open rows, and the matched ones that share
// references with these.
func (b *book) run(t fataler, today statement.Day, expected []match.Expected, lines []match.Line) {
	for _, e := range expected {
		b.expected[e.ID] = e
	}
	for _, l := range lines {
		b.lines[l.ID] = l
	}
	var queue []string
	for id := range b.expected {
		queue = append(queue, id)
	}
	for id := range b.lines {
		queue = append(queue, id)
	}
	for _, e := range expected {
		for _, ref := range e.Refs() {
			b.byRef[ref] = append(b.byRef[ref], e.ID)
		}
	}
	for _, l := range lines {
		for _, ref := range l.Refs() {
			b.byRef[ref] = append(b.byRef[ref], l.ID)
		}
	}
	queue = slices.DeleteFunc(queue, func(id string) bool { return b.matched[id] != "" || b.expected[id].Closed || b.lines[id].Closed })
	in := match.Receipts{Account: "a", Rules: rules, Today: today}
	seen := map[string]bool{}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if seen[id] {
			continue
		}
		seen[id] = true
		if e, ok := b.expected[id]; ok {
			in.Expected = append(in.Expected, e)
		} else {
			in.Lines = append(in.Lines, b.lines[id])
		}
		for _, ref := range b.refs(id) {
			queue = append(queue, b.byRef[ref]...)
		}
	}
	b.rows += len(seen)
	var before match.Result
	for id := range seen {
		if m := b.matched[id]; m != "" && b.matches[m].Sources[0] == id && !b.expected[id].Closed {
			before.Matches = append(before.Matches, b.matches[m])
		}
	}
	// All proposals and breaks are open, so their rows are in the run.
	before.Proposals = slices.Collect(maps.Values(b.proposals))
	before.Breaks = slices.Collect(maps.Values(b.breaks))
	after, err := in.Run()
	if err != nil {
		t.Fatal(err)
	}
	b.apply(match.Compare(before, after))
}

func (b *book) apply(c match.Changes) {
	for _, id := range c.Superseded {
		m := b.matches[id]
		for _, row := range slices.Concat(m.Sources, m.Lines) {
			delete(b.matched, row)
		}
		delete(b.matches, id)
	}
	for _, id := range c.Withdrawn {
		delete(b.proposals, id)
	}
	for _, id := range c.Cleared {
		delete(b.breaks, id)
	}
	for _, m := range c.Matches {
		b.matches[m.ID] = m
		for _, row := range slices.Concat(m.Sources, m.Lines) {
			b.matched[row] = m.ID
		}
	}
	for _, p := range c.Proposals {
		b.proposals[p.ID] = p
	}
	for _, r := range c.Breaks {
		b.breaks[r.ID] = r
	}
}

// close closes a period: its matches never change again.
func (b *book) close(last statement.Day) {
	for _, m := range b.matches {
		e, l := b.expected[m.Sources[0]], b.lines[m.Lines[0]]
		if statement.DayOf(e.At, wat) <= last && l.Day <= last {
			e.Closed, l.Closed = true, true
			b.expected[e.ID], b.lines[l.ID] = e, l
		}
	}
}

// Daily runs, with rows that arrive late and in any order, with repeated imports and a closed
// period, end where one run over everything of that day ends.
func TestDailyRunsEqualOneRun(t *testing.T) {
	t.Parallel()
	from := day(t, "2026-11-20")
	rapid.Check(t, func(t *rapid.T) {
		b := newBook()
		today := from
		var again []match.Line
		for n := range rapid.IntRange(1, 5).Draw(t, "days") {
			today = from + statement.Day(n)
			expected, lines := world(t, today)
			for i := range expected {
				expected[i].ID = fmt.Sprint(n, expected[i].ID)
			}
			for i := range lines {
				lines[i].ID = fmt.Sprint(n, lines[i].ID)
			}
			b.run(t, today, expected, lines)
			if len(again) > 0 && rapid.Bool().Draw(t, "import again") {
				before := fmt.Sprint(b.matches, b.proposals, b.breaks)
				again = slices.DeleteFunc(again, func(l match.Line) bool { return b.lines[l.ID].Closed })
				b.run(t, today, nil, again)
				if after := fmt.Sprint(b.matches, b.proposals, b.breaks); after != before {
					t.Fatalf("importing again changes\n%s\nto\n%s", before, after)
				}
			}
			again = lines
			if rapid.IntRange(0, 2).Draw(t, "close") == 0 {
				b.close(today - 1)
			}
		}
		b.run(t, today, nil, nil)
		full, err := match.Receipts{Account: "a", Rules: rules, Today: today, Expected: slices.Collect(maps.Values(b.expected)), Lines: slices.Collect(maps.Values(b.lines))}.Run()
		if err != nil {
			t.Fatal(err)
		}
		daily := match.Result{Waiting: full.Waiting}
		for _, m := range b.matches {
			if !b.expected[m.Sources[0]].Closed {
				daily.Matches = append(daily.Matches, m)
			}
		}
		daily.Proposals, daily.Breaks = slices.Collect(maps.Values(b.proposals)), slices.Collect(maps.Values(b.breaks))
		if c := match.Compare(daily, full); !c.Empty() {
			t.Fatalf("one run over everything gives\n%s\ninstead of\n%s", short(full), short(daily))
		}
	})
}

// The cost of a day follows its own and the open rows, not the history.
func TestDailyCostDoesNotGrow(t *testing.T) {
	t.Parallel()
	from := day(t, "2026-11-01")
	b, before := newBook(), 0
	for n := range statement.Day(30) {
		var expected []match.Expected
		var lines []match.Line
		for i := range 20 {
			ref := fmt.Sprint(n, "-", i)
			expected = append(expected, match.Expected{ID: "e" + ref, At: noon(from + n), Amount: 100, Currency: "XAF", OperatorRef: ref})
			lines = append(lines, match.Line{Line: statement.Line{ID: "l" + ref, Day: from + n, Amount: 100, Currency: "XAF", OperatorRef: ref}})
		}
		b.run(t, from+n, expected, lines)
		if b.rows-before != 40 {
			t.Fatalf("day %d took %d rows", n, b.rows-before)
		}
		before = b.rows
	}
}
