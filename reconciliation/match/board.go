package match

import (
	"errors"
	"fmt"
	"slices"

	"quittance/statement"
)

// ErrConflict says that two rows with different content have the same id.
var ErrConflict = errors.New("two rows have the same id")

// source is one side of a pair: expected money, or a batch of lines.
type source struct {
	rows      []string // sorted ids
	currency  string
	amount    int64
	day       statement.Day
	undecided bool
	refused   bool
	payout    bool
	closed    bool
	unequal   bool // its own operator says another sum
}

// target is the other side: a line.
type target struct {
	id       string
	amount   int64
	fee      int64
	currency string
	day      statement.Day
	reversal bool // undoes an earlier line
	charge   bool
	pays     bool // can be a payout, or the return of one
	pairable bool // may be found by amount and day
}

// common is how many sources may share a reference. What more of them share, such as "0" or
// "N/A", identifies nothing and counts as absent.
const common = 1000

// index finds sources by a reference.
type index struct {
	first map[string]int32 // the number of the last link
	links []link
}

type link struct{ source, next, count int32 }

func newIndex(size int) *index { return &index{first: make(map[string]int32, size)} }

func (x *index) add(ref string, s int32) {
	if ref == "" {
		return
	}
	l := link{s, -1, 1}
	if head, ok := x.first[ref]; ok {
		if x.links[head].source == s {
			return // named twice by one source
		}
		l.next, l.count = head, x.links[head].count+1
	}
	x.first[ref] = int32(len(x.links)) //nolint:gosec // bounded by the rows
	x.links = append(x.links, l)
}

// find returns the sources of a reference, each once.
func (x *index) find(ref string) []int32 {
	at, ok := x.first[ref]
	if ref == "" || !ok || x.links[at].count > common {
		return nil
	}
	out := make([]int32, 0, x.links[at].count)
	for ; at >= 0; at = x.links[at].next {
		out = append(out, x.links[at].source)
	}
	return out
}

// board is the state of a run. Sources and targets are numbered.
type board struct {
	account string
	rules   *Rules
	today   statement.Day
	sources []source
	targets []target

	taken []bool // sources with a result
	done  []bool // targets with a result
	named []bool // targets whose reference names a source

	result Result
	ids    []string // a slab for the lists of matches
}

func newBoard(account string, rules *Rules, today statement.Day, sources []source, targets []target) *board {
	return &board{
		account: account, rules: rules, today: today, sources: sources, targets: targets,
		taken: make([]bool, len(sources)), done: make([]bool, len(targets)), named: make([]bool, len(targets)),
	}
}

// fits reports whether a line can prove a source.
func (b *board) fits(s, t int32) bool {
	source, target := &b.sources[s], &b.targets[t]
	return source.amount == target.amount && source.currency == target.currency && !source.unequal && (!source.payout || target.pays)
}

// naming is what the references of a line name at a stage.
type naming struct {
	target    int32
	sources   []int32
	disagrees bool // another reference of the line names other sources
	key       string
}

// name decides a stage. find returns the sources that a line names. Lines that an earlier
// stage has named are not asked.
func (b *board) name(stage Stage, find func(t int32) (naming, bool)) {
	const none = -1
	// Nearly all lines name one source: only is that source. others are the other lines.
	only := make([]int32, len(b.targets))
	sides := make([]int32, len(b.sources)) // how many lines have the source as a candidate
	var others []naming
	var candidates [][]int32
	for t := range int32(len(b.targets)) { //nolint:gosec // bounded by the rows
		only[t] = none
		if b.named[t] {
			continue
		}
		n, ok := find(t)
		if !ok {
			continue
		}
		b.named[t] = true
		var fitting []int32
		if !n.disagrees {
			fitting = slices.DeleteFunc(slices.Clone(n.sources), func(s int32) bool { return !b.free(s) || !b.fits(s, t) })
		}
		for _, s := range fitting {
			sides[s]++
		}
		if len(n.sources) == 1 && len(fitting) == 1 {
			only[t] = n.sources[0]
			continue
		}
		others, candidates = append(others, n), append(candidates, fitting)
	}
	for t, s := range only {
		if s == none {
			continue
		}
		n, _ := find(int32(t))
		if sides[s] == 1 {
			b.match(stage, n, s)
		} else {
			others, candidates = append(others, n), append(candidates, []int32{s})
		}
	}
	var rest []int
	for i, n := range others {
		if c := candidates[i]; len(c) == 1 && sides[c[0]] == 1 {
			b.match(stage, n, c[0])
		} else {
			rest = append(rest, i)
		}
	}
	b.ambiguous(stage, others, candidates, rest)
	b.unfit(stage, others, rest)
}

func (b *board) free(s int32) bool {
	return !b.taken[s] && !b.sources[s].closed && !b.sources[s].refused
}

// match takes a pair. A line that proves an undecided collection is a proposal.
func (b *board) match(stage Stage, n naming, s int32) {
	m := b.pair(stage, n.key, s, n.target)
	for _, other := range n.sources {
		if other != s {
			m.NotTaken = append(m.NotTaken, b.sources[other].rows...)
		}
	}
	slices.Sort(m.NotTaken)
	if b.sources[s].undecided {
		action := ActionApprove
		if b.sources[s].payout {
			action = ActionPaid
		}
		b.result.Proposals = append(b.result.Proposals, Proposal{Match: m, Action: action})
		return
	}
	if b.result.Matches == nil {
		b.result.Matches = make([]Match, 0, min(len(b.sources), len(b.targets)))
	}
	b.result.Matches = append(b.result.Matches, m)
}

// pair takes a source and a line.
func (b *board) pair(stage Stage, key string, s, t int32) Match {
	b.taken[s], b.done[t] = true, true
	source, target := &b.sources[s], &b.targets[t]
	if len(b.ids) == cap(b.ids) {
		b.ids = make([]string, 0, 4096)
	}
	b.ids = append(b.ids, target.id)
	lines := b.ids[len(b.ids)-1 : len(b.ids) : len(b.ids)]
	return Match{
		ID: matchID(source.rows, lines), Stage: stage, Key: key, Amount: target.amount, Currency: target.currency,
		Sources: source.rows, Lines: lines, Rule: RuleVersion,
	}
}

func matchID(sources, lines []string) string {
	all := slices.Concat(sources, lines)
	slices.Sort(all)
	return hashed("mat_", all)
}

// ambiguous makes one break of all lines and sources that are candidates of each other.
func (b *board) ambiguous(stage Stage, all []naming, candidates [][]int32, rest []int) {
	g := newGroups(b)
	for _, i := range rest {
		for _, s := range candidates[i] {
			g.join(all[i].target, s)
		}
	}
	g.each(func(sources, targets []int32) {
		kind, reason := BreakUnmatchedLine, "several receipts fit the line"
		if len(targets) > len(sources) {
			kind, reason = BreakDuplicateLine, "several lines have the same reference and amount"
		} else if len(targets) > 1 {
			reason = "several receipts and lines have the same reference and amount"
		}
		b.breaks(kind, stage, reason, ActionExplain, sources, targets, nil)
	})
}

// unfit makes breaks of lines that name sources of which none fits. Sources without another
// line, and of the same sign, are in the break.
func (b *board) unfit(stage Stage, all []naming, rest []int) {
	g := newGroups(b)
	byTarget := map[int32]naming{}
	for _, i := range rest {
		n := all[i]
		if b.done[n.target] {
			continue
		}
		byTarget[n.target] = n
		g.add(n.target)
		for _, s := range n.sources {
			if b.free(s) && (n.disagrees || (b.sources[s].amount < 0) == (b.targets[n.target].amount < 0)) {
				g.join(n.target, s)
			}
		}
	}
	g.each(func(sources, targets []int32) {
		var others []int32
		for _, t := range targets {
			for _, s := range byTarget[t].sources {
				if !slices.Contains(sources, s) && !slices.Contains(others, s) {
					others = append(others, s)
				}
			}
		}
		kind, reason, action := b.unfitKind(sources, targets, others, byTarget)
		b.breaks(kind, stage, reason, action, sources, targets, others)
	})
}

// unfitKind says what is wrong with lines that name sources and do not fit.
func (b *board) unfitKind(sources, targets, others []int32, byTarget map[int32]naming) (BreakKind, string, Action) {
	for _, t := range targets {
		if byTarget[t].disagrees {
			return BreakUnmatchedLine, "the references of the line name different receipts", ActionExplain
		}
	}
	named := slices.Concat(sources, others)
	settled := func(t int32) bool {
		return slices.ContainsFunc(others, func(s int32) bool { return b.fits(s, t) && !b.sources[s].refused })
	}
	for _, t := range targets {
		line := &b.targets[t]
		for _, s := range named {
			source := &b.sources[s]
			if source.payout {
				if kind, reason, action := b.oddPayout(s, t); kind != "" && !settled(t) {
					return kind, reason, action
				}
				continue
			}
			if source.amount > 0 && line.amount < 0 && (line.reversal || line.amount == -source.amount) {
				return BreakReversedLine, "the operator took back what it had paid", ActionRefund
			}
		}
	}
	for _, t := range targets {
		if settled(t) {
			return BreakDuplicateLine, "the receipt is settled already: by a line with a stronger reference, or for good", ActionExplain
		}
	}
	if len(sources) == 1 && len(targets) == 1 {
		source, line := &b.sources[sources[0]], &b.targets[targets[0]]
		if line.fee != 0 && source.amount == line.amount+line.fee {
			return BreakFee, "the line has the amount without the fee", ActionExplain
		}
		if source.currency != line.currency {
			return BreakAmount, "the currencies differ", ActionExplain
		}
		if source.unequal && source.amount == line.amount {
			return BreakAmount, reasonUnequal, ActionExplain
		}
	}
	return BreakAmount, "the amounts differ", ActionExplain
}

// oddPayout says what is wrong with a line that names a payout which was refused, or from which money came back; an empty kind for
// another line.
func (b *board) oddPayout(s, t int32) (BreakKind, string, Action) {
	source, line := &b.sources[s], &b.targets[t]
	switch {
	case line.reversal:
		return BreakReversedLine, "the operator reversed a payout: find out who has the money", ActionExplain
	case !line.pays:
		return BreakUnmatchedLine, "the line names a payout and is none", ActionExplain
	case source.amount < 0 && line.amount > 0 && (source.refused || !b.taken[s] && !source.closed):
		return BreakReversedLine, "money of a payout came back that no statement has", ActionExplain
	case source.amount < 0 && line.amount == -source.amount && source.currency == line.currency:
		return BreakReversedLine, "the money of a payout came back", ActionReturned
	case source.amount < 0 && line.amount > 0 && line.amount < -source.amount && source.currency == line.currency:
		return BreakReversedLine, "a part of the money of a payout came back", ActionReturned
	case source.amount < 0 && line.amount > 0:
		return BreakReversedLine, "more than a payout came back, or in another currency", ActionExplain
	case source.refused && b.fits(s, t):
		return BreakUnmatchedLine, "the statement has a payout that its operator refused", ActionPaid
	}
	return "", "", ""
}

// reasonUnequal is why a payout of the right amount is no match.
const reasonUnequal = "the operator's payout is not the sum of its lines"

// breaks notes a break.
func (b *board) breaks(kind BreakKind, stage Stage, reason string, action Action, sources, targets, others []int32) {
	out := Break{Kind: kind, Stage: stage, Reason: reason, Action: action, Rule: RuleVersion}
	first := true
	seen := func(day statement.Day, currency string) {
		if first || day < out.Day {
			out.Day = day
		}
		if first {
			out.Currency = currency
		}
		first = false
	}
	for _, t := range targets {
		b.done[t] = true
		out.Lines = append(out.Lines, b.targets[t].id)
		out.Difference += b.targets[t].amount
		seen(b.targets[t].day, b.targets[t].currency)
	}
	for _, s := range sources {
		b.taken[s] = true
		out.Sources = append(out.Sources, b.sources[s].rows...)
		out.Difference -= b.sources[s].amount
		seen(b.sources[s].day, b.sources[s].currency)
	}
	for _, s := range others {
		out.NotTaken = append(out.NotTaken, b.sources[s].rows...)
	}
	slices.Sort(out.Sources)
	slices.Sort(out.Lines)
	slices.Sort(out.NotTaken)
	name := []string{b.account, string(kind)}
	if action == ActionPaid || action == ActionReturned {
		name = append(name, string(action)) // the same rows ask something else when more is known of the payout
	}
	out.ID = hashed("brk_", name, out.Sources, out.Lines)
	b.result.Breaks = append(b.result.Breaks, out)
}

// money is a key without a reference.
type money struct {
	amount   int64
	currency string
	day      statement.Day
}

// near decides about what has no reference: the sources and lines of the same amount whose
// days are at most late days apart. A pair is a proposal.
func (b *board) near(stage Stage, late statement.Day) {
	byMoney := map[money][]int32{}
	for s := range int32(len(b.sources)) { //nolint:gosec // bounded by the rows
		if source := &b.sources[s]; b.free(s) && !source.undecided && !source.unequal && !source.payout {
			key := money{source.amount, source.currency, source.day}
			byMoney[key] = append(byMoney[key], s)
		}
	}
	lines := map[money][]int32{}
	for t := range int32(len(b.targets)) { //nolint:gosec // as above
		if target := &b.targets[t]; !b.done[t] && !b.named[t] && target.pairable {
			key := money{target.amount, target.currency, target.day}
			lines[key] = append(lines[key], t)
		}
	}
	g := newGroups(b)
	for key, targets := range lines {
		for day := key.day - late; day <= key.day; day++ {
			for _, s := range byMoney[money{key.amount, key.currency, day}] {
				// Lines of one key have the same candidates: one link each is enough to join them.
				for _, t := range targets {
					g.join(t, s)
					if s != byMoney[money{key.amount, key.currency, day}][0] {
						break
					}
				}
			}
		}
	}
	g.each(func(sources, targets []int32) {
		if len(sources) == 1 && len(targets) == 1 {
			b.result.Proposals = append(b.result.Proposals, Proposal{Match: b.pair(stage, "", sources[0], targets[0]), Action: ActionMatch})
			return
		}
		b.breaks(BreakUnmatchedLine, stage, "several rows have the same amount and day", ActionExplain, sources, targets, nil)
	})
}

// finish decides about what no stage has taken.
func (b *board) finish() Result {
	for t := range int32(len(b.targets)) { //nolint:gosec // bounded by the rows
		if b.done[t] {
			continue
		}
		kind, reason := BreakUnmatchedLine, "nothing that is expected fits the line"
		if b.targets[t].charge {
			kind, reason = BreakFee, "a charge that belongs to no payment"
		}
		b.breaks(kind, StageNone, reason, ActionExplain, nil, []int32{t}, nil)
	}
	for s := range int32(len(b.sources)) { //nolint:gosec // as above
		source := &b.sources[s]
		switch {
		case !b.free(s):
		case source.undecided || b.today <= source.day+b.rules.Grace:
			b.result.Waiting = append(b.result.Waiting, source.rows...)
		default:
			b.breaks(BreakMissingLine, StageNone, "no line fits within the days of grace", ActionExplain, []int32{s}, nil, nil)
		}
	}
	b.result.sort()
	return b.result
}

// groups joins lines and sources that are candidates of each other, directly or not.
type groups struct {
	*board
	parent map[int32]int32 // lines are numbered from 0, sources from -1 down
}

func newGroups(b *board) *groups { return &groups{b, map[int32]int32{}} }

func (g *groups) add(x int32) {
	if _, ok := g.parent[x]; !ok {
		g.parent[x] = x
	}
}

func (g *groups) root(x int32) int32 {
	for g.parent[x] != x {
		g.parent[x] = g.parent[g.parent[x]]
		x = g.parent[x]
	}
	return x
}

func (g *groups) join(target, source int32) {
	source = -1 - source
	g.add(target)
	g.add(source)
	g.parent[g.root(target)] = g.root(source)
}

// each calls f for each group, in an order that the caller must not depend on.
func (g *groups) each(f func(sources, targets []int32)) {
	type members struct{ sources, targets []int32 }
	all := map[int32]*members{}
	for x := range g.parent {
		root := g.root(x)
		m := all[root]
		if m == nil {
			m = &members{}
			all[root] = m
		}
		if x < 0 {
			m.sources = append(m.sources, -1-x)
		} else {
			m.targets = append(m.targets, x)
		}
	}
	for _, m := range all {
		slices.Sort(m.sources)
		slices.Sort(m.targets)
		f(m.sources, m.targets)
	}
}

// unique sorts rows by id and drops repetitions. Rows with the same id must be equal.
func unique[T any](rows []T, id func(*T) string, equal func(a, b *T) bool) ([]*T, error) {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	slices.SortFunc(out, func(a, b *T) int {
		switch x, y := id(a), id(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	kept := out[:0]
	for _, row := range out {
		if n := len(kept); n == 0 || id(kept[n-1]) != id(row) {
			kept = append(kept, row)
		} else if !equal(kept[n-1], row) {
			return nil, fmt.Errorf("%w: %s", ErrConflict, id(row))
		}
	}
	return kept, nil
}
