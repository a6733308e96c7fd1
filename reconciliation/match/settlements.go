package match

import (
	"cmp"
	"maps"
	"slices"

	"quittance/statement"
)

// Settlements is a run over the lines of a bank account and of the accounts that settle to
// it.
type Settlements struct {
	// Account is the bank account.
	Account string
	Rules   Rules
	Today   statement.Day
	// Lines are those of the operators, acquirers and cash desks that settle to the account.
	Lines []Line
	// Cutoffs has the rules of their accounts; those of an account that is absent are Rules.
	Cutoffs map[string]Rules
	// Bank are the lines of the bank account.
	Bank []Line
}

// batch are the lines that one payout settles.
type batch struct {
	source
	statement.Batch
	ref    string
	joined bool // it is a part of another one
	// settled says that these are payouts of lines that are settled for good: nothing is left to match.
	settled bool
}

func (b *batch) add(l *Line, day statement.Day) {
	b.rows = append(b.rows, l.ID)
	b.day = max(b.day, day)
	b.Add(&l.Line)
}

// Run matches each batch with a line of the bank. Lines without a batch id are gathered by
// the cut-off window of their account and proposed, or are a break if the amounts differ a little. The
// error is ErrConflict.
func (in Settlements) Run() (Result, error) {
	same := func(a, b *Line) bool { return *a == *b }
	id := func(l *Line) string { return l.ID }
	lines, err := unique(in.Lines, id, same)
	if err != nil {
		return Result{}, err
	}
	bank, err := unique(in.Bank, id, same)
	if err != nil {
		return Result{}, err
	}
	bank = slices.DeleteFunc(bank, func(l *Line) bool { return l.Closed })
	batches := in.batches(lines)
	sources := make([]source, len(batches))
	byRef := newIndex(len(batches))
	for _, b := range batches {
		slices.Sort(b.rows)
	}
	slices.SortFunc(batches, func(a, b *batch) int { return cmp.Compare(a.rows[0], b.rows[0]) })
	for i, b := range batches {
		b.amount, b.unequal = b.Amount, b.Paid && b.Unpaid() != 0 && !b.settled
		sources[i] = b.source
		byRef.add(b.ref, int32(i))
	}
	targets := make([]target, len(bank))
	for i, l := range bank {
		targets[i] = target{id: l.ID, amount: l.Net(), currency: l.Currency, day: in.Rules.dayOf(l), reversal: l.Reversal, charge: l.Kind == statement.KindCharge, pairable: !l.Reversal}
	}
	board := newBoard(in.Account, &in.Rules, in.Today, sources, targets)
	board.cancelled()
	board.name(StageBatch, func(t int32) (naming, bool) {
		n := naming{target: t, sources: byRef.find(bank[t].Batch), key: bank[t].Batch}
		return n, len(n.sources) > 0
	})
	board.near(StageWindow, in.Rules.Grace)
	board.short(in.Rules.Grace)
	return board.finish(), nil
}

// tolerance says how much a payout without a batch id may differ from a batch and still be taken for its
// payout: one part in so many of the batch.
const tolerance = 10

// short makes a break of a batch and a line of the bank that name no batch of each other, if each is the
// only one near the other and their amounts differ by a tenth at most. So a payout that is a franc short
// shows the difference and both sides, and not two sums that people must find and compare.
func (b *board) short(late statement.Day) {
	g := newGroups(b)
	for t := range int32(len(b.targets)) { //nolint:gosec // bounded by the rows
		target := &b.targets[t]
		if b.done[t] || b.named[t] || !target.pairable || target.charge {
			continue
		}
		for s := range int32(len(b.sources)) { //nolint:gosec // as above
			source := &b.sources[s]
			off := target.amount - source.amount
			if b.free(s) && !source.undecided && source.currency == target.currency && source.day <= target.day && target.day-source.day <= late &&
				source.amount > 0 && max(off, -off) <= source.amount/tolerance {
				g.join(t, s)
			}
		}
	}
	g.each(func(sources, targets []int32) {
		if len(sources) != 1 || len(targets) != 1 {
			return
		}
		reason := "the payout differs from the lines of its cut-off window"
		if source := b.sources[sources[0]]; source.unequal && source.amount == b.targets[targets[0]].amount {
			reason = reasonUnequal
		}
		b.breaks(BreakAmount, StageWindow, reason, ActionExplain, sources, targets, nil)
	})
}

// cancelled takes the batches whose lines cancel each other out, because no bank pays nothing, and payouts of lines that are
// settled for good.
func (b *board) cancelled() {
	for s := range b.sources {
		source := &b.sources[s]
		if source.amount != 0 || source.unequal || source.closed {
			continue
		}
		b.taken[s] = true
		b.result.Matches = append(b.result.Matches, Match{
			ID: matchID(source.rows, nil), Stage: StageBatch, Currency: source.currency, Sources: source.rows, Rule: RuleVersion,
		})
	}
}

// batches gathers lines by batch id, or else by account and cut-off window. A line that comes
// after its batch is closed is a batch of its own.
func (in *Settlements) batches(lines []*Line) []*batch {
	type key struct {
		ledger
		ref string
	}
	byKey := map[key]*batch{}
	byLedger := map[ledger]*windows{}
	var out []*batch
	for _, l := range lines {
		rules, ok := in.Cutoffs[l.Account]
		if !ok {
			rules = in.Rules
		}
		of := ledger{l.Account, l.Currency, l.Closed}
		if l.Batch == "" {
			w := byLedger[of]
			if w == nil {
				w = &windows{ledger: of, rules: rules, byDay: map[statement.Day]*batch{}}
				byLedger[of] = w
			}
			if !l.Kind.Money() {
				w.payouts = append(w.payouts, l)
			} else {
				day := rules.window(l)
				w.of(day).add(l, day)
			}
			continue
		}
		k := key{of, l.Batch}
		b := byKey[k]
		if b == nil {
			b = &batch{ref: l.Batch, source: source{currency: l.Currency, closed: l.Closed}}
			byKey[k] = b
			out = append(out, b)
		}
		b.add(l, rules.dayOf(l))
	}
	for k, b := range byKey {
		k.closed = true
		if whole := byKey[k]; whole != nil && !b.closed && !b.Filled {
			b.settled = whole.Unpaid() == -b.Payout
		}
	}
	for _, w := range byLedger {
		w.pay()
		out = slices.AppendSeq(append(out, w.alone...), maps.Values(w.byDay))
	}
	return out
}
