package statements

import (
	"hash/maphash"
	"time"
)

// Seen is what is known of the accepted statements when a file comes.
type Seen struct {
	// Earlier says that a statement of the same id and page, with days of this one, was accepted, and Same that one had the
	// same content.
	Earlier, Same bool
	// Whole says that this one has the money of days from which on every accepted one of the same content may lack some: a pending
	// entry of theirs is gone.
	Whole bool
	// Twin says that an accepted statement of any id has the same days, balances and number of lines.
	Twin bool
	// Missing is how many of the Lines of the earlier statement the file lacks or has with other content; below 0 it is
	// not known. Example is the id of one of them. They, Whole, and what follows but BackFill, Withdrawn and Released, matter for dated statements only.
	Missing, Lines int
	Example        string
	// Opening is the opening balance of the earlier statement.
	Opening int64
	// Tail says that the file has the last line of the account's last statement, and that its balance after this line is the
	// closing balance of that statement.
	Tail bool
	// Begins is -1 if the file begins well before the time of that line, 1 if it does not, and 0 if a time is not known.
	Begins int
	// BackFill says that a person imports old days on purpose.
	BackFill bool
	// Withdrawn is a sentence about the withdrawal of the same statement; empty if it was not withdrawn.
	Withdrawn string
	// Released says that a person has released the file from quarantine.
	Released bool
}

// lateRow is how long before the row before it a row may have its time: an operator writes rows in the order of their booking
// with the times at which payers began.
const lateRow = 30 * time.Minute

// Overlap finds in a file with a dated statement what was accepted before. Give Expect the lines of the earlier statement of the
// same id, if there is one, and then Take those of the file, in their order.
type Overlap struct {
	last    Mark
	balance int64
	begun   bool
	begins  int
	tail    bool
	lines   int
	seed    maphash.Seed
	rest    map[uint64]string // ids of expected lines, by the hash of their content
}

// NewOverlap compares with the account's last statement. opening is the opening balance of the file.
func NewOverlap(last Mark, opening int64) *Overlap {
	return &Overlap{last: last, balance: opening, seed: maphash.MakeSeed(), rest: map[uint64]string{}}
}

// Expect takes a line of the earlier statement.
func (o *Overlap) Expect(l *Line) error {
	o.lines++
	o.rest[o.content(l)] = l.ID
	return nil
}

// Take takes a line of the file.
func (o *Overlap) Take(l *Line) error {
	delete(o.rest, o.content(l))
	switch {
	case o.begun, l.At.IsZero(), o.last.TailAt.IsZero():
	case l.At.Before(o.last.TailAt.Add(-lateRow)):
		o.begins = -1
	default:
		o.begins = 1
	}
	o.begun = true
	o.balance += l.Net()
	o.tail = o.tail || o.last.Balanced && o.balance == o.last.Closing && o.last.Tail == l.unique()
	return nil
}

// Put writes what was found.
func (o *Overlap) Put(s *Seen) {
	s.Tail, s.Begins, s.Lines, s.Missing = o.tail, o.begins, o.lines, len(o.rest)
	for _, id := range o.rest {
		if s.Example == "" || id < s.Example {
			s.Example = id
		}
	}
}

// content hashes what a line says, without its place.
func (o *Overlap) content(l *Line) uint64 {
	said := *l
	said.Source, said.Statement, said.Scope, said.Number, said.entry = Position{}, "", "", 0, ""
	return maphash.Comparable(o.seed, said)
}
