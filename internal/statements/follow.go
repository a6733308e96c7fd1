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
	// Balanced and Closing are those of the last accepted statement.
	Balanced bool
	Closing  int64
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

// Follow compares a statement with the last accepted one. earlier is the digest of the
// accepted statement and page of the same id, if there is one. A marked copy with the same
// content is unchanged; the same id with other content is quarantined, marked or not. A
// statement that does not continue the last one is refused. Days that are covered already
// refuse a statement whose lines have no ids of their own, because their lines would count
// twice; lines with ids are recognised. Follow returns the mark after an
// accepted statement.
func Follow(last Mark, s *Statement, earlier *[sha256.Size]byte) (Verdict, Mark, []Fault) {
	fault := func(kind FaultKind, detail, mend string) []Fault {
		return []Fault{{Kind: kind, Position: s.Source, Detail: detail, Mend: mend}}
	}
	if earlier != nil {
		if *earlier == s.Digest {
			return VerdictUnchanged, last, nil
		}
		return VerdictQuarantined, last, fault(FaultChanged, "A statement with this id was accepted with other content.", "Compare both and ask who sent them which one is right.")
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
	if last.Balanced && s.Balanced && s.Opening != last.Closing {
		faults = append(faults, fault(FaultBalance, fmt.Sprintf("The opening balance %d is not the last closing balance %d, in minor units.", s.Opening, last.Closing), "Import the statements between them first.")...)
	}
	switch {
	case faults != nil:
		return VerdictRefused, last, faults
	case s.ID == "": // a file without booked rows says nothing of the account
		return VerdictAccepted, last, nil
	}
	return VerdictAccepted, Mark{ID: s.ID, Sequence: s.Sequence, Page: s.Page, Last: s.Last, Digest: s.Digest, To: max(last.To, s.To), Balanced: s.Balanced, Closing: s.Closing}, nil
}

// Year is the year of the statement's last day. Banks that number statements within a year
// begin again with 1.
func (s *Statement) Year() string { return year(s.To) }

// Year is the year of the last covered day.
func (m Mark) Year() string { return year(m.To) }

func year(day string) string { return day[:min(4, len(day))] }
