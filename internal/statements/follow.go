package statements

import (
	"crypto/sha256"
	"fmt"
	"time"
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
	// From is the first local day of the last accepted statement, and To the last one that accepted statements cover.
	From, To string
	// Balanced, Opening, Closing, Lines, Tail and TailAt are those of the last accepted statement.
	Balanced         bool
	Opening, Closing int64
	Lines            int
	Tail             string
	TailAt           time.Time
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
// A statement of the same id and content is unchanged. A dated one that lacks the pending entry of the accepted ones takes their place
// all the same: it says that its days have no more money. The same id with other content is quarantined, marked as a copy or
// not, until a person releases it; if its lines have no ids of their own, a person cannot, because they would count twice.
// The same id on other days is another statement, which the caller does not call earlier; on the same days it is if it continues
// the last statement and surely has other lines (Another).
//
// A statement continues the last one if its opening balance is the last closing balance. One that does not is refused. Numbers and
// pages that do not follow are a warning then: banks number by year, by day, or not at all.
//
// A statement with days far from the account's last one is quarantined, unless a person says that it fills old days: the day and the month
// of its dates may be exchanged.
//
// A bank's statement that begins on a covered day is refused unless it continues the last one and surely has other lines.
// Otherwise it may be an accepted statement under another id, whose lines would count twice.
//
// Dated statements have lines with ids, which are recognised, and their id says no more than their days: an operator's file
// that was exported too early or cut off comes again with more lines. Such a statement is quarantined only if it lacks lines of
// the earlier one or has another opening balance. If the earlier one was the account's last statement, it takes its place. The rest
// of a day, without any line of the earlier one, follows it if it begins after its last line, with its closing balance.
//
// A dated statement of other days that begins on a covered day need not begin with the last closing balance, but has to pass
// through it after the last line. It may begin with it on the last covered day, after the last line. Otherwise it is quarantined:
// the operator may have corrected these days. If a person releases it, it takes the place of the account's last statement,
// unless it ends before the days of that one.
//
// A statement that two people have withdrawn is quarantined when it comes again, until a person releases it. The mark is that
// after it, so that the statements of the file that continue it tell their own faults only.
func Follow(last Mark, s *Statement, seen Seen) (Verdict, Mark, []Fault) {
	verdict, next, faults := s.follow(last, seen)
	if verdict == VerdictAccepted && seen.Withdrawn != "" && !seen.Released {
		return VerdictQuarantined, next, append(faults, Fault{
			Kind: FaultWithdrawn, Position: s.Source, Detail: seen.Withdrawn,
			Mend: "If it is right all the same, release it and import it again. Otherwise dismiss it.",
		})
	}
	return verdict, next, faults
}

func (s *Statement) follow(last Mark, seen Seen) (Verdict, Mark, []Fault) {
	fault := func(kind FaultKind, detail, mend string) []Fault {
		return []Fault{{Kind: kind, Position: s.Source, Detail: detail, Mend: mend}}
	}
	balanced := last.Balanced && s.Balanced
	if seen.Earlier && !s.Another(last, seen) {
		changed, mend := s.changed(seen, last)
		switch {
		case seen.Same && !(seen.Whole && s.Dated):
			return VerdictUnchanged, last, nil
		case changed != "" && (!seen.Released || s.Positional):
			return VerdictQuarantined, last, fault(FaultChanged, changed, mend)
		case s.ID == last.ID && s.Page == last.Page, seen.Tail: // in its place, or with it and more
			return VerdictAccepted, s.mark(last), nil
		}
		return VerdictAccepted, last, nil
	}
	var faults []Fault
	first := last.ID == ""
	next := !first && !last.Last && s.ID == last.ID // the next page
	continued := balanced && s.Opening == last.Closing
	var warnings []Fault
	if f, ok := s.outOfOrder(last, first, next); ok && (continued || s.numbered(last, next)) {
		f.Kind = FaultNumber
		warnings = append(warnings, f)
	} else if ok {
		faults = append(faults, f)
	}
	if !s.Dated && !first && !next && !(continued && s.rest(last, seen)) && last.To != "" && s.From != "" && s.From <= last.To {
		faults = append(faults, fault(FaultOverlap, fmt.Sprintf("The statement begins on %s, but accepted statements cover all days until %s.", s.From, last.To), "Import a statement that begins on the day after.")...)
	}
	again := s.Dated && !first && s.From != "" && s.From <= last.To
	switch {
	case !balanced, again && seen.Tail:
	case again && seen.Released:
		if s.To < last.From {
			return VerdictAccepted, last, nil
		}
	case again && (s.Opening != last.Closing || s.From < last.To || seen.Begins < 0):
		line := "their last line"
		if last.Tail != "" {
			line += " " + last.Tail
		}
		return VerdictQuarantined, last, fault(FaultOverlap, fmt.Sprintf("The statement begins on %s, and accepted statements cover all days until %s. It lacks %s with the balance %d after it, in minor units.", s.From, last.To, line, last.Closing),
			"Import a file of whole days, from a day on that the last statement has, or first the statements between them. If the operator corrected these days, ask which file is right.")
	case s.Opening != last.Closing:
		faults = append(faults, fault(FaultBalance, fmt.Sprintf("The opening balance %d is not the last closing balance %d, in minor units.", s.Opening, last.Closing), "Import the statements between them first.")...)
	}
	switch {
	case faults != nil:
		return VerdictRefused, last, append(warnings, faults...)
	case s.ID == "": // a file without booked rows says nothing of the account
		return VerdictAccepted, last, nil
	case !first && !seen.Released && !seen.BackFill && s.far(last, continued):
		return VerdictQuarantined, last, append(warnings, fault(FaultDays, fmt.Sprintf("The statement has days from %s to %s, more than %d days from %s, the last day of the account.", s.From, s.To, farDays, last.To),
			"The day and the month may be exchanged: ask who sent the file. If the days are right, release the import, or import the file as a back-fill.")...)
	}
	return VerdictAccepted, s.mark(last), warnings
}

// Another reports whether a bank's statement is another one than the earlier one of its id and days: it continues the last
// statement and surely has other lines. Some banks give all statements of a day one id.
func (s *Statement) Another(last Mark, seen Seen) bool {
	return seen.Earlier && !seen.Same && !s.Dated && last.Last && last.Balanced && s.Balanced && s.Opening == last.Closing && s.rest(last, seen)
}

// rest reports whether a statement that continues the last one but begins on a covered day has other lines than the accepted ones:
// it has none, or the next number, or the balance was another one at the beginning of the last one and no accepted
// statement has the same days, balances and number of lines.
func (s *Statement) rest(last Mark, seen Seen) bool {
	return s.Lines == 0 || s.Sequence > 0 && s.Sequence == last.Sequence+1 || !seen.Twin && (last.Opening != last.Closing || last.Lines == 0)
}

// farDays is how many days after or before the account's last one are usual. Files come daily to monthly.
const farDays = 45

// far reports whether a statement has a day far from the account's last one. The days of one that continues the balance
// may be many: only the first one counts. A bank's statement that continues it may come after a long rest of the account: its dates
// are written in one way only, and no statement is missing between.
func (s *Statement) far(last Mark, continued bool) bool {
	middle, err := time.Parse(time.DateOnly, last.To)
	if err != nil || s.From == "" {
		return false
	}
	until := s.To
	switch {
	case continued && !s.Dated:
		until = ""
	case continued:
		until = s.From
	}
	return s.From < middle.AddDate(0, 0, -farDays).Format(time.DateOnly) || until > middle.AddDate(0, 0, farDays).Format(time.DateOnly)
}

// numbered reports whether only the number does not follow, and not the pages.
func (s *Statement) numbered(last Mark, next bool) bool { return !next && last.Last && s.Page == 1 }

// outOfOrder says that pages or numbers are missing before the statement. first means that the
// account has no statement yet, next that the statement is another page of the last one.
func (s *Statement) outOfOrder(last Mark, first, next bool) (f Fault, found bool) {
	fault := func(detail, mend string) (Fault, bool) {
		return Fault{Kind: FaultSequence, Position: s.Source, Detail: detail, Mend: mend}, true
	}
	switch {
	case first:
	case next && s.Page != last.Page+1:
		return fault(fmt.Sprintf("Page %d follows page %d.", s.Page, last.Page), "Import the pages in their order; ask the bank for a missing one.")
	case next:
	case !last.Last:
		return fault(fmt.Sprintf("The statement before ends with page %d, which is not its last.", last.Page), "Import its other pages first.")
	case s.Page != 1:
		return fault(fmt.Sprintf("The statement begins with page %d.", s.Page), "Import its first page first.")
	case last.Sequence > 0 && s.Sequence > 0 && s.Sequence != last.Sequence+1 && (s.Sequence != 1 || s.Year() == last.Year()):
		return fault(fmt.Sprintf("Number %d follows number %d.", s.Sequence, last.Sequence), "Nothing is to be done if the bank numbers its statements so: the balances decide.")
	}
	return Fault{}, false
}

// changed says how a statement differs from the earlier one of its id, and what to do; empty if it may take its place.
func (s *Statement) changed(seen Seen, last Mark) (detail, mend string) {
	balanced := last.Balanced && s.Balanced
	detail, mend = "A statement with this id was accepted with other content.", "Compare both and ask who sent them which one is right."
	switch {
	case s.Positional && seen.Released:
		return detail + " Its lines have no ids of their own, so that they would count twice; it cannot be released.", "Dismiss it, and ask the bank for a statement of the difference."
	case !s.Dated:
		return detail, mend
	case seen.Missing < 0:
		return detail + " The accepted file cannot be read any more to compare the lines.", mend
	case s.ID == last.ID && seen.Missing == seen.Lines && seen.Begins > 0 && (!balanced || s.Opening == last.Closing): // the rest of the day
		return "", ""
	case seen.Missing > 0:
		return detail + fmt.Sprintf(" Lines of the accepted one that this file lacks or has with other content: %d, such as %s.", seen.Missing, seen.Example), mend
	case balanced && s.Opening != seen.Opening && !seen.Tail:
		return detail + fmt.Sprintf(" Its opening balance was %d instead of %d, in minor units.", seen.Opening, s.Opening), mend
	}
	return "", ""
}

// mark is the account's mark after the statement.
func (s *Statement) mark(last Mark) Mark {
	return Mark{
		ID: s.ID, Sequence: s.Sequence, Page: s.Page, Last: s.Last, Digest: s.Digest, From: s.From, To: max(last.To, s.To),
		Balanced: s.Balanced, Opening: s.Opening, Closing: s.Closing, Lines: s.Lines, Tail: s.Tail, TailAt: s.TailAt,
	}
}

// Year is the year of the statement's last day. Banks that number statements within a year
// begin again with 1.
func (s *Statement) Year() string { return year(s.To) }

// Year is the year of the last covered day.
func (m Mark) Year() string { return year(m.To) }

func year(day string) string { return day[:min(4, len(day))] }
