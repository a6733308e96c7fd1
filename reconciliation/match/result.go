package match

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"quittance/statement"
)

// Stage is the rule that made a result.
type Stage string

// Stages, from the strongest.
const (
	StageOperator Stage = "operator_ref"
	StageOwn      Stage = "own_ref" // payment_ref or notice_ref
	StageBatch    Stage = "batch"
	StageDay      Stage = "amount_day"
	StageWindow   Stage = "cut_off_window"
	StageNone     Stage = "none" // no stage had a candidate
	StageHand     Stage = "hand" // people matched the rows; Run never does
)

// Stages lists the stages of Run.
var Stages = []Stage{StageOperator, StageOwn, StageBatch, StageDay, StageWindow, StageNone}

// Match is money that lines prove.
type Match struct {
	// ID is a hash of the sorted ids of all rows.
	ID    string
	Stage Stage
	// Key is the reference that both sides have.
	Key      string
	Amount   int64
	Currency string
	// Sources are expected money, or the lines of a settled batch. Lines are the lines of the
	// statement that proves them. Both are sorted. A batch whose lines cancel each other out
	// has no line.
	Sources, Lines []string
	// NotTaken are rows with the same reference that were no candidates: another amount, a
	// closed period.
	NotTaken []string
	Rule     int
}

// Action is what a proposal or a break asks of a person.
type Action string

// Actions.
const (
	ActionMatch   Action = "match"           // confirm the pair
	ActionApprove Action = "decide_approved" // decide the undecided collection; the line is the evidence
	ActionRefund  Action = "refund_request"  // the operator took the money back
	// The two of payouts are told to the processor of batches, which asks the people of the batch.
	ActionPaid     Action = "payout_paid"     // the statement shows a payout that nobody said was made
	ActionReturned Action = "payout_returned" // the statement shows that the money of a payout came back
	ActionExplain  Action = "explain"         // find out
)

// Proposal is a pair that a person must confirm.
type Proposal struct {
	Match
	Action Action
}

// BreakKind classifies breaks.
type BreakKind string

// Kinds of breaks that matching finds. The import of statements finds those of the kind
// statement.
const (
	BreakUnmatchedLine BreakKind = "unmatched_line"
	BreakMissingLine   BreakKind = "missing_line"
	BreakAmount        BreakKind = "amount"
	BreakFee           BreakKind = "fee"
	BreakDuplicateLine BreakKind = "duplicate_line"
	BreakReversedLine  BreakKind = "reversed_line"
)

// BreakKinds lists all kinds.
var BreakKinds = []BreakKind{BreakUnmatchedLine, BreakMissingLine, BreakAmount, BreakFee, BreakDuplicateLine, BreakReversedLine}

// Break is what a person must clear up.
type Break struct {
	// ID derives from the account, the kind and the sorted ids of all rows.
	ID   string
	Kind BreakKind
	// Stage is the stage that the rows reached.
	Stage Stage
	// Reason says in a few words what is wrong.
	Reason string
	// Day is the earliest local day of the rows.
	Day statement.Day
	// Difference is the sum of the lines less that of the sources.
	Difference int64
	Currency   string
	// Sources and Lines are sorted, see Match.
	Sources, Lines []string
	NotTaken       []string
	Action         Action
	Rule           int
}

// Result of a run. Each open line is in exactly one match, proposal or break, and each
// source in one of these or in Waiting. The lists are sorted by id.
type Result struct {
	Matches   []Match
	Proposals []Proposal
	Breaks    []Break
	// Waiting are sources whose line may still come, and undecided collections.
	Waiting []string
}

// Both is a run over a bank account to which others settle and citizens transfer money. No line may be in both. The error is
// ErrConflict.
func Both(receipts Receipts, settlements Settlements) (Result, error) {
	a, err := receipts.Run()
	if err != nil {
		return Result{}, err
	}
	b, err := settlements.Run()
	if err != nil {
		return Result{}, err
	}
	out := Result{
		Matches: slices.Concat(a.Matches, b.Matches), Proposals: slices.Concat(a.Proposals, b.Proposals), Breaks: slices.Concat(a.Breaks, b.Breaks),
		Waiting: slices.Concat(a.Waiting, b.Waiting),
	}
	out.sort()
	return out, nil
}

func (r *Result) sort() {
	slices.SortFunc(r.Matches, func(a, b Match) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(r.Proposals, func(a, b Proposal) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(r.Breaks, func(a, b Break) int { return cmp.Compare(a.ID, b.ID) })
	slices.Sort(r.Waiting)
}

// hashed returns an id with a prefix and 128 bits of the SHA-256 of the texts, each with its
// length before it.
func hashed(prefix string, texts ...[]string) string {
	b := make([]byte, 0, 256)
	for _, list := range texts {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, text := range list {
			b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
		}
	}
	sum := sha256.Sum256(b)
	return prefix + hex.EncodeToString(sum[:16])
}

// HandID returns the id of a match that people made in a case.
func HandID(caseID string, sources, lines []string) string {
	return hashed("mat_", []string{caseID}, sources, lines)
}

// Changes are what a run replaces.
type Changes struct {
	// Superseded, Withdrawn and Cleared are the ids of matches, proposals and breaks that end.
	Superseded, Withdrawn, Cleared []string
	Matches                        []Match
	Proposals                      []Proposal
	Breaks                         []Break
}

// Empty reports whether nothing changes.
func (c *Changes) Empty() bool {
	return len(c.Superseded)+len(c.Withdrawn)+len(c.Cleared)+len(c.Matches)+len(c.Proposals)+len(c.Breaks) == 0
}

// Compare returns the changes from the stored results of the rows of a run to its results.
// Running again over the same rows changes nothing.
func Compare(before, after Result) (c Changes) {
	c.Superseded, c.Matches = difference(before.Matches, after.Matches, func(m *Match) string { return m.ID })
	c.Withdrawn, c.Proposals = difference(before.Proposals, after.Proposals, func(p *Proposal) string { return p.ID })
	c.Cleared, c.Breaks = difference(before.Breaks, after.Breaks, func(b *Break) string { return b.ID })
	return c
}

func difference[T any](before, after []T, id func(*T) string) (ended []string, begun []T) {
	old := make(map[string]bool, len(before))
	for i := range before {
		old[id(&before[i])] = true
	}
	stay := 0
	for i := range after {
		if old[id(&after[i])] {
			stay++
		}
	}
	begun = make([]T, 0, len(after)-stay) // a million matches are large
	for i := range after {
		if name := id(&after[i]); old[name] {
			delete(old, name)
		} else {
			begun = append(begun, after[i])
		}
	}
	for gone := range old {
		ended = append(ended, gone)
	}
	slices.Sort(ended)
	return ended, begun
}
