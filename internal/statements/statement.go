package statements

import (
	"crypto/sha256"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quittance/statement"
)

// Account is what a reader must know of the account that a file is imported for.
type Account struct {
	// Code is the account's code in the registry, unique in an agency and mode.
	Code string
	// IBAN or Number is the account's number; a file of another account is refused.
	IBAN, Number string
	// Currency is the account's only currency, such as XAF.
	Currency string
	// Profile selects the reader, see Profiles.
	Profile string
	// Zone is the time zone of the account's days; nil is Africa/Brazzaville.
	Zone *time.Location
	// Columns describes the files of the profile csv; other profiles ignore it.
	Columns *Layout
	// Latest is the last local day that a line or a period may have, such as 2026-11-30; empty is any.
	Latest string
	// Batch matches a settlement batch id in a bank's free text; its first group, if it has
	// one, is the id. Nil matches nothing.
	Batch *regexp.Regexp
}

var brazzaville = time.FixedZone("WAT", 60*60)

func (a *Account) zone() *time.Location {
	if a.Zone == nil {
		return brazzaville
	}
	return a.Zone
}

// At returns the account for a file that comes now: no line may be dated after the day after.
func (a Account) At(now time.Time) Account {
	a.Latest = now.AddDate(0, 0, 1).In(a.zone()).Format(time.DateOnly)
	return a
}

// is reports whether a number in a file is the account's. Spaces, hyphens and case do not
// count.
func (a *Account) is(number string) bool {
	number = compact(number)
	return number != "" && (number == compact(a.IBAN) || number == compact(a.Number))
}

var grouping = strings.NewReplacer(" ", "", "-", "", "\u00a0", "", "\u202f", "")

func compact(number string) string { return strings.ToUpper(grouping.Replace(number)) }

// File is what a file says as a whole.
type File struct {
	Profile string
	// Digest is the SHA-256 of the bytes of the file, and Size their number.
	Digest [sha256.Size]byte
	Size   int64
	// Statements are in the order of the file. Delimited text is one statement.
	Statements []Statement
	// Lines is how many lines count as money.
	Lines int
	// Skipped counts entries that are no money, by the reason: PDNG, zero, failed and so on.
	Skipped map[string]int
	// Faults has at most MaxFaults, in the order of the file. More counts the others that
	// refuse the file.
	Faults []Fault
	More   int

	refusals int // faults that refuse, also those of More
}

// Refused reports whether a fault refuses the file.
func (f *File) Refused() bool { return f.refusals > 0 }

// Statement is one statement, or one page of one.
type Statement struct {
	// ID is the bank's id. For delimited text it is the first and the last local day, and Dated is true.
	ID    string
	Dated bool
	// Sequence is the bank's number of the statement; 0 if it gives none.
	Sequence int64
	// Page counts from 1, and Last marks the last page. A statement without pages is page 1
	// and the last.
	Page int
	Last bool
	// Copy means that the bank marks the statement as a copy or a duplicate.
	Copy bool
	// From and To are the first and the last local day, as the file gives them or as its
	// lines have them, such as 2026-11-21; empty if unknown.
	From, To string
	// Balanced means that the file has Opening and Closing. Interim balances of pages count.
	Balanced         bool
	Opening, Closing int64
	// Lines is how many lines count, Net the sum of their Net.
	Lines int
	Net   int64
	// Tail is the id of the last line, without the number of a repetition, and TailAt its time; zero if it has none.
	Tail   string
	TailAt time.Time
	// Undecided is the first local day of an entry that is no money and may still become some, such as a pending one; empty for none,
	// and the year 1 if its day is unknown. From that day on the statement does not have everything.
	Undecided string
	// Positional means that a line has its id from its position, because the bank gives none.
	Positional bool
	// Digest is the SHA-256 of the statement's content as read: its balances and lines. Two
	// files with the same digest say the same, whatever their bytes are.
	Digest [sha256.Size]byte
	Source Position
}

// undecided notes an entry of a local day, empty for an unknown one, that may still become money.
func (s *Statement) undecided(day string) {
	if day == "" {
		day = "0001-01-01"
	}
	if s.Undecided == "" || day < s.Undecided {
		s.Undecided = day
	}
}

// Position is a place in a file, counted from 1. A column counts bytes.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Line is a movement on an account. It has no name, no phone number and no free text.
type Line struct {
	// ID is the account's code and an id that is unique on the account: of delimited text the operator's, of a
	// bank's entry the statement's and the bank's (STATEMENT|ID), else the statement and the position. A
	// repetition in the file ends in ~2, ~3.
	ID      string `json:"id"`
	Account string `json:"account"`
	// Scope is the part of ID that names the statement, because the bank's id is unique only there; empty if the
	// id is unique on the account, or made of the position.
	Scope string `json:"-"`
	// Statement is the bank's id of the statement. Delimited text has one statement, whose id
	// is known at the end.
	Statement string `json:"statement,omitempty"`
	// Number is the line's position in its statement, from 1.
	Number int `json:"number"`
	// Occurrence is 1, or more for a line whose id the file has already had.
	Occurrence int            `json:"occurrence"`
	Source     Position       `json:"source"`
	Kind       statement.Kind `json:"kind"`
	// At is the time in UTC; zero if the file gives only a day.
	At time.Time `json:"at,omitzero"`
	// Day is the account's local day of the booking.
	Day      string `json:"day"`
	Currency string `json:"currency"`
	// Amount is gross, in minor units, negative for money that leaves the account.
	Amount int64 `json:"amount"`
	// Fee is what the operator kept of Amount; negative if it gave it back.
	Fee int64 `json:"fee,omitempty"`
	// Reversal marks a line that undoes an earlier one.
	Reversal bool `json:"reversal,omitempty"`
	// OperatorRef is the operator's reference of the payment.
	OperatorRef string `json:"operator_ref,omitempty"`
	// PaymentRef and NoticeRef are ours. Their checks hold. The PaymentRef of a payout is its payout_ref.
	PaymentRef string `json:"payment_ref,omitempty"`
	NoticeRef  string `json:"notice_ref,omitempty"`
	// Batch is the settlement batch or the slip.
	Batch string `json:"batch,omitempty"`
	// DetailsUnused counts details of a bank's entry that were not used because their sum is
	// not the entry.
	DetailsUnused int `json:"details_unused,omitempty"`

	entry string // the bank's reference of the entry in its statement; empty if it gives none
}

// unique is the id of the line without the number of a repetition.
func (l *Line) unique() string {
	if l.Occurrence > 1 {
		return strings.TrimSuffix(l.ID, repetition(l.Occurrence))
	}
	return l.ID
}

// Unscoped is the id of the line without its Scope. Earlier releases took the bank's id of an entry for unique on
// the account; a corrected version of a statement that they recorded keeps these ids.
func (l *Line) Unscoped() string {
	return l.Account + "/" + strings.TrimPrefix(l.ID, l.Account+"/"+l.Scope)
}

func repetition(occurrence int) string { return "~" + strconv.Itoa(occurrence) }

// Net is what the line adds to the balance.
func (l *Line) Net() int64 { return l.Amount - l.Fee }
