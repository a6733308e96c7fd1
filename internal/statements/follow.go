package statements

import (
	"crypto/sha256"
	"fmt"
)

// Mark is the last accepted statement of an account, as its row in the database keeps it.
// The zero value is an account without statements.
type Mark struct {
	// ID, Sequence, Page, Last and Digest are those of the last accepted statement.
	ID       string
	Sequence int64
	Page     int
	Last     bool
	Digest   [sha256.Size]byte
	// To is the last local day that accepted statements cover.
	To string
	// Balanced and Closing are those of the last accepted statement, and Tail is the id of its last line.
	Balanced bool
	Closing  int64
	Tail     string
}

// Verdict says what to do with a file.
type Verdict string

// Verdicts.
const (
	VerdictAccepted    Verdict = "accepted"
	VerdictUnchanged   Verdict = "unchanged"   // accepted earlier, with the same content
	VerdictQuarantined Verdict = "quarantined" // a person decides
	VerdictRefused     Verdict = "refused"
)

// Verdicts lists all verdicts.
var Verdicts = []Verdict{VerdictAccepted, VerdictUnchanged, VerdictQuarantined, VerdictRefused}

// Follow compares a statement with the last accepted one, and returns the mark after an accepted statement.
//
// A statement of the same id and content is unchanged. The same id with other content is quarantined, marked as a copy or
// not, until a person releases it. A statement that does not continue the last one is refused. Days that are covered
// already refuse a statement whose lines have no ids of their own, because their lines would count twice.
//
// Dated statements have lines with ids, which are recognised, and their id says no more than their days: an operator's file
// that was exported too early or cut off comes again with more lines. Such a statement is quarantined only if it lacks lines of
// the earlier one or has another opening balance; it takes the place of the account's last statement if that was the earlier
// one. A statement of other days that begins on a covered day need not begin with the last closing balance, but has to pass
// through it after the same line. If all its days are covered and it does not have that line, it adds what it has to these days,
// and the account's last statement stays the last.
func Follow(last Mark, s *Statement, seen Seen) (Verdict, Mark, []Fault) {
	fault := func(kind FaultKind, detail, mend string) []Fault {
		return []Fault{{Kind: kind, Position: s.Source, Detail: detail, Mend: mend}}
	}
	switch {
	case seen.Same:
		return VerdictUnchanged, last, nil
	case seen.Earlier && seen.Released:
		if s.ID == last.ID && s.Page == last.Page {
			return VerdictAccepted, s.mark(last), nil
		}
		return VerdictAccepted, last, nil
	case seen.Earlier && (!s.Dated || seen.Missing != 0):
		return VerdictQuarantined, last, fault(FaultChanged, "A statement with this id was accepted with other content."+missing(s, seen), "Compare both and ask who sent them which one is right.")
	}
	replaces := seen.Earlier && s.ID == last.ID
	if replaces && last.Balanced && s.Balanced && s.Opening != seen.Opening && !seen.Tail {
		return VerdictQuarantined, last, fault(FaultChanged, fmt.Sprintf("A statement with this id was accepted with the opening balance %d instead of %d, in minor units.", seen.Opening, s.Opening),
			"Compare both and ask who sent them which one is right.")
	}
	var faults []Fault
	first := last.ID == ""
	next := !first && !last.Last && s.ID == last.ID // the next page
	switch {
	case first:
	case next && s.Page != last.Page+1:
		faults = append(faults, fault(FaultSequence, fmt.Sprintf("Page %d follows page %d.", s.Page, last.Page), "Import the pages in their order; ask the bank for a missing one.")...)
	case next:
	case !last.Last:
		faults = append(faults, fault(FaultSequence, fmt.Sprintf("The statement before ends with page %d, which is not its last.", last.Page), "Import its other pages first.")...)
	case s.Page != 1:
		faults = append(faults, fault(FaultSequence, fmt.Sprintf("The statement begins with page %d.", s.Page), "Import its first page first.")...)
	case last.Sequence > 0 && s.Sequence > 0 && s.Sequence != last.Sequence+1 && (s.Sequence != 1 || s.Year() == last.Year()):
		faults = append(faults, fault(FaultSequence, fmt.Sprintf("Number %d follows number %d.", s.Sequence, last.Sequence), "Import the statements in their order; ask the bank for a missing one.")...)
	}
	continued := last.Balanced && s.Balanced && s.Opening == last.Closing && s.Sequence > 0 && s.Sequence == last.Sequence+1
	if s.Positional && !first && !next && !continued && last.To != "" && s.From != "" && s.From <= last.To {
		faults = append(faults, fault(FaultOverlap, fmt.Sprintf("The statement begins on %s, but accepted statements cover all days until %s.", s.From, last.To), "Import a statement that begins on the day after.")...)
	}
	again := s.Dated && !first && s.From != "" && s.From <= last.To
	follows := !last.Balanced || !s.Balanced || s.Opening == last.Closing || replaces || again && seen.Tail
	inside := again && s.To <= last.To && !seen.Tail && !replaces && !(follows && s.From == last.To)
	if !follows && !inside {
		faults = append(faults, fault(FaultBalance, fmt.Sprintf("The opening balance %d is not the last closing balance %d, in minor units.", s.Opening, last.Closing), "Import the statements between them first.")...)
	}
	switch {
	case faults != nil:
		return VerdictRefused, last, faults
	case s.ID == "", inside: // a file without booked rows says nothing of the account
		return VerdictAccepted, last, nil
	}
	return VerdictAccepted, s.mark(last), nil
}

// mark is the account's mark after the statement.
func (s *Statement) mark(last Mark) Mark {
	return Mark{
		ID: s.ID, Sequence: s.Sequence, Page: s.Page, Last: s.Last, Digest: s.Digest, To: max(last.To, s.To),
		Balanced: s.Balanced, Closing: s.Closing, Tail: s.Tail,
	}
}

// missing says what a dated statement lacks of the earlier one.
func missing(s *Statement, seen Seen) string {
	switch {
	case !s.Dated:
		return ""
	case seen.Missing < 0:
		return " The accepted file cannot be read any more to compare the lines."
	}
	return fmt.Sprintf(" The accepted one has %d lines that this file lacks or has with other content, such as %s.", seen.Missing, seen.Example)
}

// Year is the year of the statement's last day. Banks that number statements within a year
// begin again with 1.
func (s *Statement) Year() string { return year(s.To) }

// Year is the year of the last covered day.
func (m Mark) Year() string { return year(m.To) }

func year(day string) string { return day[:min(4, len(day))] }
