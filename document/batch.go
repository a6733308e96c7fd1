package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"quittance/money"
	"quittance/money/language"
)

// ErrUnapproved says that a certificate was asked for of a batch that nobody, or too few people, approved.
var ErrUnapproved = errors.New("a certificate needs a batch that was approved by all who had to")

// State is that of a batch that was approved, or of a line of one. Each has its words.
type State string

// The states of a batch with a certificate.
const (
	StateApproved  State = "approved"
	StateReleasing State = "releasing"
	StateDone      State = "done"
)

// The states of lines.
const (
	StateReady     State = "ready"
	StateSent      State = "sent"
	StatePaid      State = "paid"
	StateRefused   State = "refused"
	StateCancelled State = "cancelled"
	StateReturned  State = "returned"
)

// Person is a member of an agency's staff on a paper. Number and Name may be empty.
type Person struct{ Name, Number, ID string }

// String returns the name with the staff number, or the id of somebody whose name is not known.
func (p Person) String() string {
	switch {
	case p.Name == "":
		return p.ID
	case p.Number == "":
		return p.Name
	}
	return p.Name + " (" + p.Number + ")"
}

// Total is a number of lines and the sum of their amounts, in minor units.
type Total struct {
	Name  string
	Count int
	Sum   int64
}

// Level is a level of approval: how many people of a role had to approve, and who did.
type Level struct {
	Role   string
	Needed int
	Given  []Approved
}

// Approved is an approval of one person, for another one where For has an ID. Passkey is the SHA-256 of its public key, in hexadecimal.
type Approved struct {
	By, For Person
	At      time.Time
	Passkey string
}

// Approval is what the certificate of a batch is made of. Amounts are in minor units of Currency. It has no payee.
type Approval struct {
	Agency Agency
	Test   bool
	// Batch is the id, Date and PayUntil are local dates such as 2026-11-30.
	Batch, BatchRef string
	Revision        int
	Date, PayUntil  string
	Count           int
	Sum, Largest    int64
	Currency        string
	Accounts        []Total
	Maker           Person
	SealedAt        time.Time
	// Digest and Root are in hexadecimal: what was signed, and the root of the lines in it.
	Digest, Root string
	Policy       int64 // version
	Levels       []Level
	// ReleasedBy is the zero value for a batch that its date released. ReleasedAt is zero before the release.
	ReleasedBy Person
	ReleasedAt time.Time
	// State is that of the batch at the time At, and Lines has its lines by state. HeldSince is zero unless it is held.
	State         State
	HeldSince, At time.Time
	Lines         []StateTotal
	// CheckAddress is where anybody verifies the certificate: HOST/q. Empty for a paper without a code.
	CheckAddress string
}

// StateTotal is a number of lines in a state, and the sum of their amounts in minor units.
type StateTotal struct {
	State State
	Count int
	Sum   int64
}

// Section is a part of a paper under a heading.
type Section struct {
	Title string
	Rows  []Row
}

// Certificate is what the certificate of an approved batch says.
type Certificate struct {
	Lang   money.Language
	Title  string
	Agency Agency
	// Test is true for a certificate without value. Mark then stands across it.
	Test bool
	Mark string
	// Notes are what the reader must know before anything else.
	Notes []string
	// Total is the sum of the batch, and InWords the same in words.
	Total, InWords string
	Sections       []Section
	CheckTitle     string
	Check          string // how to verify the paper; empty for one without a code
	Footer         string
	// Name is what the file is called, without its ending. Date is the time of State.
	Name string
	Date time.Time
}

// NewCertificate returns the certificate of a batch. Any language but English is French. The errors are ErrUnapproved, also for a
// level that lacks a person, and ErrIncomplete.
func NewCertificate(lang money.Language, a Approval) (Certificate, error) {
	w := certificateTexts.In(lang)
	if w.States[a.State] == "" || len(a.Levels) == 0 {
		return Certificate{}, ErrUnapproved
	}
	for _, l := range a.Levels {
		if l.Needed < 1 || len(l.Given) < l.Needed {
			return Certificate{}, ErrUnapproved
		}
	}
	amounts, err := newAmounts(lang, a.Currency, a.Agency)
	if err != nil {
		return Certificate{}, err
	}
	c := Certificate{
		Lang: lang, Title: w.Title, Agency: a.Agency, Test: a.Test, Total: amounts.of(a.Sum), Footer: w.Batch + " " + a.Batch,
		Name: w.File + "-" + fileName(a.BatchRef) + "-" + strconv.Itoa(a.Revision), Date: a.At,
	}
	if words, ok := amounts.currency.Words(lang, a.Sum); ok {
		c.InWords = w.InWords + " " + words
	}
	if a.Test {
		c.Mark, c.Notes = w.Test, []string{w.TestNote}
	}
	if !a.HeldSince.IsZero() {
		c.Notes = append(c.Notes, fmt.Sprintf(w.HeldNote, language.Date(lang, a.HeldSince)))
	}
	if a.CheckAddress != "" {
		c.CheckTitle, c.Check = w.CheckTitle, w.Check+" "+a.CheckAddress
	}
	c.Sections = []Section{{w.WhatIsApproved, w.facts(lang, amounts, a)}, {w.Accounts, w.accounts(amounts, a)}}
	for i, l := range a.Levels {
		c.Sections = append(c.Sections, Section{fmt.Sprintf(w.Level, i+1, l.Role, l.Needed), w.level(lang, l)})
	}
	c.Sections = append(c.Sections, Section{w.Release, w.release(lang, a)}, Section{fmt.Sprintf(w.StateAt, language.Date(lang, a.At)), w.state(amounts, a)}, Section{w.Proof, w.proof(a)})
	return c, nil
}

func (w *certificateWords) facts(lang money.Language, amounts amounts, a Approval) []Row {
	mode := w.Live
	if a.Test {
		mode = w.TestMode
	}
	return []Row{
		{Label: w.BatchRef, Value: a.BatchRef, Reference: true},
		{Label: w.Revision, Value: strconv.Itoa(a.Revision)},
		{Label: w.Mode, Value: mode},
		{Label: w.Date, Value: dayOf(lang, a.Date)},
		{Label: w.PayUntil, Value: dayOf(lang, a.PayUntil)},
		{Label: w.Count, Value: strconv.Itoa(a.Count)},
		{Label: w.Largest, Value: amounts.of(a.Largest)},
		{Label: w.Maker, Value: w.person(a.Maker)},
		{Label: w.SealedAt, Value: language.Date(lang, a.SealedAt)},
	}
}

func (w *certificateWords) accounts(amounts amounts, a Approval) (out []Row) {
	for _, t := range a.Accounts {
		out = append(out, Row{Label: t.Name + ", " + w.lines(t.Count), Value: amounts.of(t.Sum), Money: true})
	}
	return append(out, Row{Label: w.Total + ", " + w.lines(a.Count), Value: amounts.of(a.Sum), Money: true, Sum: true})
}

func (w *certificateWords) lines(n int) string {
	if n == 1 {
		return w.OneLine
	}
	return fmt.Sprintf(w.Lines, n)
}

func (w *certificateWords) person(p Person) string {
	if p.Name == "" {
		return p.ID
	}
	return p.String() + " · " + p.ID
}

// level has the people who approved, each with the time and the passkey.
func (w *certificateWords) level(lang money.Language, l Level) (out []Row) {
	for _, a := range l.Given {
		out = append(out, Row{Label: w.ApprovedBy, Value: w.person(a.By)})
		if a.For.ID != "" {
			out = append(out, Row{Label: w.For, Value: w.person(a.For)})
		}
		out = append(out, Row{Label: w.At, Value: language.Date(lang, a.At)}, Row{Label: w.Passkey, Value: grouped(a.Passkey)})
	}
	return out
}

func (w *certificateWords) release(lang money.Language, a Approval) []Row {
	switch {
	case a.ReleasedAt.IsZero():
		return []Row{{Label: w.Release, Value: w.NotReleased}}
	case a.ReleasedBy.ID == "":
		return []Row{{Label: w.Release, Value: w.ByDate}, {Label: w.At, Value: language.Date(lang, a.ReleasedAt)}}
	}
	return []Row{{Label: w.ReleasedBy, Value: w.person(a.ReleasedBy)}, {Label: w.At, Value: language.Date(lang, a.ReleasedAt)}}
}

func (w *certificateWords) state(amounts amounts, a Approval) []Row {
	text := w.States[a.State]
	if !a.HeldSince.IsZero() {
		text += w.Held
	}
	out := []Row{{Label: w.State, Value: text}}
	for _, t := range a.Lines {
		if t.Count > 0 {
			out = append(out, Row{Label: w.LineStates[t.State] + ", " + w.lines(t.Count), Value: amounts.of(t.Sum), Money: true})
		}
	}
	return out
}

func (w *certificateWords) proof(a Approval) []Row {
	return []Row{
		{Label: w.Digest, Value: grouped(a.Digest)},
		{Label: w.Root, Value: grouped(a.Root)},
		{Label: w.Policy, Value: strconv.FormatInt(a.Policy, 10)},
		{Label: w.ID, Value: a.Batch},
	}
}

// dayOf writes a local date; a text that is none stays as it is.
func dayOf(lang money.Language, day string) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return language.Day(lang, at.Add(12*time.Hour)) // the same day in the zone of papers
}

// grouped writes a hash in groups of eight characters, as people compare it, so that it breaks in its middle only.
func grouped(hash string) string {
	var b strings.Builder
	for i, r := range hash {
		switch {
		case i > 0 && i == len(hash)/2:
			b.WriteByte(' ')
		case i > 0 && i%8 == 0:
			b.WriteRune('\u00a0')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// longestName is the most characters of a reference in the name of a file.
const longestName = 60

// fileName returns a reference as a part of the name of a file: letters, digits and hyphens.
func fileName(ref string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, ref)
	return name[:min(len(name), longestName)]
}

// Payout is what the payment advice of a line is made of. Amounts are in minor units of Currency. Empty texts are not shown.
type Payout struct {
	Agency Agency
	Test   bool
	// PaidAt is zero for a line that is not paid: it has no advice. ReturnedAt is zero unless the whole amount came back.
	PaidAt, ReturnedAt time.Time
	// Decided says that two people decided that it was paid, by evidence: PaidAt is when they did.
	Decided bool
	// Returned are parts that came back.
	Returned []ReturnedPart
	Amount   int64
	Currency string
	// Payee is the name, Account the account or number with all but its end masked, Means how it was paid.
	Payee, Account, Purpose, Means string
	BatchRef, LineRef              string
	Revision, Number               int // of the batch; of the line in it, from 1
	PayoutRef, OperatorRef         string
	// At is when the paper says all this.
	At time.Time
	// CheckAddress is where anybody verifies the advice: HOST/q. Empty for a paper without a code.
	CheckAddress string
}

// ReturnedPart is a part of the amount that came back, in minor units of Currency.
type ReturnedPart struct {
	Amount   int64
	Currency string
	At       time.Time
}

// Advice is what the payment advice of a line says.
type Advice struct {
	Lang   money.Language
	Title  string
	Agency Agency
	// Test is true for an advice without value. Mark then stands across it.
	Test bool
	Mark string
	// Stamp says that the money came back: RETOURNÉ. Paid says that it was paid: PAYÉ; empty for a stamp or a test.
	Stamp, Paid    string
	Notes          []string
	Total, InWords string
	Facts, Proof   []Row
	CheckTitle     string
	Check          string // how to verify the paper; empty for one without a code
	Footer         string
	Name           string
	Date           time.Time
}

// NewAdvice returns the advice of a paid line. Any language but English is French. The errors are ErrUnpaid and ErrIncomplete, also
// for a line without a payee.
func NewAdvice(lang money.Language, p Payout) (Advice, error) {
	if p.PaidAt.IsZero() {
		return Advice{}, ErrUnpaid
	}
	amounts, err := newAmounts(lang, p.Currency, p.Agency)
	if err != nil || p.Payee == "" {
		return Advice{}, ErrIncomplete
	}
	w := adviceTexts.In(lang)
	a := Advice{
		Lang: lang, Title: w.Title, Agency: p.Agency, Test: p.Test, Total: amounts.of(p.Amount),
		Footer: fmt.Sprintf(w.Footer, language.Date(lang, p.At), p.Number, p.BatchRef, p.Revision), Name: w.File + "-" + fileName(p.LineRef), Date: p.At,
	}
	if words, ok := amounts.currency.Words(lang, p.Amount); ok {
		a.InWords = w.InWords + " " + words
	}
	if p.CheckAddress != "" {
		a.CheckTitle, a.Check = w.CheckTitle, w.Check+" "+p.CheckAddress
	}
	a.marks(w, p)
	a.facts(w, p)
	a.proof(w, p)
	return a, nil
}

func (a *Advice) marks(w *adviceWords, p Payout) {
	if !p.ReturnedAt.IsZero() {
		a.Stamp = w.Returned
		a.Notes = append(a.Notes, fmt.Sprintf(w.ReturnedNote, language.Date(a.Lang, p.ReturnedAt)))
	}
	if p.Test {
		a.Mark = w.Test
		a.Notes = append(a.Notes, w.TestNote)
	}
	if a.Stamp == "" && !p.Test {
		a.Paid = w.Paid
	}
	for _, part := range p.Returned {
		if c, ok := money.Lookup(part.Currency); ok {
			a.Notes = append(a.Notes, fmt.Sprintf(w.PartNote, c.Format(a.Lang, part.Amount), language.Date(a.Lang, part.At)))
		}
	}
}

func (a *Advice) facts(w *adviceWords, p Payout) {
	a.Facts = shown(
		Row{Label: w.Payer, Value: p.Agency.Name}, Row{Label: w.Payee, Value: p.Payee}, Row{Label: w.Account, Value: p.Account},
		Row{Label: w.Purpose, Value: p.Purpose}, Row{Label: w.Means, Value: p.Means},
	)
}

func (a *Advice) proof(w *adviceWords, p Payout) {
	paid := w.PaidAt
	if p.Decided {
		paid = w.DecidedAt
	}
	returned := ""
	if !p.ReturnedAt.IsZero() {
		returned = language.Date(a.Lang, p.ReturnedAt)
	}
	a.Proof = shown(
		Row{Label: paid, Value: language.Date(a.Lang, p.PaidAt)},
		Row{Label: w.ReturnedAt, Value: returned},
		Row{Label: w.PayoutRef, Value: p.PayoutRef, Reference: true},
		Row{Label: w.OperatorRef, Value: p.OperatorRef, Reference: true},
		Row{Label: w.LineRef, Value: p.LineRef, Reference: true},
		Row{Label: w.BatchRef, Value: p.BatchRef, Reference: true},
	)
}

// shown returns the rows that have a value.
func shown(rows ...Row) (out []Row) {
	for _, r := range rows {
		if r.Value != "" {
			out = append(out, r)
		}
	}
	return out
}
