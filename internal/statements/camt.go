package statements

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/encoding/charmap"
)

// Namespaces of the messages that readCAMT reads.
const (
	camt02 = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.02"
	camt08 = "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"
)

// Bounds of a camt file. An element is anything below Stmt, above all an entry with its
// details.
const (
	maxDepth   = 40
	maxElement = 16 << 20
)

// tokens passes the tokens of a decoder on, with the position of each. It refuses a DOCTYPE,
// a foreign namespace and deep nesting.
type tokens struct {
	*reading
	in    *xml.Decoder
	at    Position // of the last token
	depth int
	space string // of the document
	annex int    // depth of SplmtryData, whose content has any namespace
}

func newTokens(r *reading) *tokens {
	t := &tokens{reading: r, in: xml.NewDecoder(r.gate)}
	t.in.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(charset) {
		case "utf-8", "utf8", "us-ascii", "ascii", "utf-16": // UTF-16 has a byte order mark, which the reading converts
			return in, nil
		case "iso-8859-1", "latin1", "windows-1252", "cp1252":
			return charmap.Windows1252.NewDecoder().Reader(in), nil
		case "iso-8859-15":
			return charmap.ISO8859_15.NewDecoder().Reader(in), nil
		}
		r.fault(FaultEncoding, Position{1, 1}, "", "The file's encoding is not supported.", "Ask for the file in UTF-8.")
		return nil, errStop
	}
	return t
}

// Token returns the next token. Its errors are errStop, with a fault in the file, io.EOF, or
// errors of reading.
func (t *tokens) Token() (xml.Token, error) {
	if t.depth < 4 { // between two elements below Stmt
		t.gate.limit = t.gate.n + maxElement
	}
	t.at.Line, t.at.Column = t.in.InputPos()
	token, err := t.in.Token()
	if err != nil {
		return nil, t.unreadable(err)
	}
	switch e := token.(type) {
	case xml.Directive:
		t.fault(FaultDoctype, t.at, "", "The file has a document type declaration.", "A bank's file has none: ask the bank for the original file.")
		return nil, errStop
	case xml.EndElement:
		if t.depth--; t.depth < t.annex {
			t.annex = 0
		}
	case xml.StartElement:
		if err := t.start(e); err != nil {
			return nil, err // with a token, the decoder would go on
		}
	}
	return token, nil
}

// unreadable tells a faulty file from a source that fails. All but the source's errors are
// faults of the file.
func (t *tokens) unreadable(err error) error {
	switch {
	case errors.Is(err, errStop), errors.Is(err, io.EOF), t.gate.err != nil:
		return err
	case errors.Is(err, errTooLarge):
		t.fault(FaultSyntax, t.at, "", fmt.Sprintf("An element is larger than %d MiB.", maxElement>>20), "Ask the bank for the batch's details in a file of their own.")
		return errStop
	}
	at := Position{}
	at.Line, at.Column = t.in.InputPos()
	t.fault(FaultSyntax, at, "", "The file is not well-formed XML 1.0, or it ends too early.", "Fetch the file again: it may be truncated.")
	return errStop
}

func (t *tokens) start(e xml.StartElement) error {
	t.depth++
	switch {
	case t.depth > maxDepth:
		t.fault(FaultSyntax, t.at, "", fmt.Sprintf("Elements are nested more than %d deep.", maxDepth), "A bank's file is not: ask the bank for the original file.")
		return errStop
	case t.depth == 1:
		t.space = e.Name.Space
		if (t.space == camt02 || t.space == camt08) && e.Name.Local == "Document" {
			return nil
		}
		mend := "Ask the bank for camt.053 version 02 or 08."
		if strings.Contains(t.space, "camt.052") || strings.Contains(t.space, "camt.054") {
			mend = "This is a report within the day or an advice. " + mend
		}
		t.fault(FaultNamespace, t.at, "Document", "The file is not a camt.053.001.02 or camt.053.001.08 document.", mend)
		return errStop
	case t.annex == 0 && e.Name.Space != t.space:
		t.fault(FaultNamespace, t.at, "", "An element has another namespace than the document.", "A bank's file has one: ask the bank for the original file.")
		return errStop
	case t.annex == 0 && e.Name.Local == "SplmtryData":
		t.annex = t.depth
	}
	return nil
}

// camtReader reads one document.
type camtReader struct {
	*reading
	tokens *tokens
	dec    *xml.Decoder
	page   int
	last   bool

	s        *Statement
	head     stmtHead
	mine     bool // the account of the statement is right
	before   int  // refusing faults before the entries
	entries  totals
	statuses totals // all entries, whatever their status
	previous *Statement
	others   int      // statements of other accounts
	other    Position // of the first one
}

func readCAMT(r *reading) error {
	t := newTokens(r)
	c := &camtReader{reading: r, tokens: t, dec: xml.NewTokenDecoder(t), page: 1, last: true}
	for {
		token, err := c.dec.Token()
		if errors.Is(err, io.EOF) {
			c.counted()
			return nil
		}
		if err != nil {
			return c.stopped(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch {
		case start.Name.Local == "Document" && t.depth == 1, start.Name.Local == "BkToCstmrStmt" && t.depth == 2:
		case start.Name.Local == "GrpHdr" && t.depth == 3:
			var head groupHeader
			if err := c.decode(&head, start); err != nil {
				return err
			}
			c.page, c.last = head.Page.number()
		case start.Name.Local == "Stmt" && t.depth == 3:
			if err := c.statement(); err != nil {
				return err
			}
		default:
			if err := c.dec.Skip(); err != nil {
				return c.stopped(err)
			}
		}
	}
}

// counted tells the statements of other accounts. A bank may send those of all accounts of a customer in one file; the account's own are
// imported.
func (c *camtReader) counted() {
	switch {
	case c.others == 0:
	case len(c.file.Statements) == 0:
		c.fault(FaultAccount, c.other, "Stmt/Acct/Id", "The file has no statement of the account, but of another one.", "Import it for the account whose number it has.")
	default:
		c.file.Skipped["statement of another account"] += c.others
	}
}

// stopped maps the errors of the outer decoder, which also checks the document.
func (c *camtReader) stopped(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return c.tokens.unreadable(err)
}

func (c *camtReader) decode(into any, start xml.StartElement) error {
	err := c.dec.DecodeElement(into, &start)
	var conversion *strconv.NumError
	if errors.As(err, &conversion) {
		c.fault(FaultField, c.tokens.at, start.Name.Local, "A number is malformed.", "Ask the bank for a valid file.")
		return errStop
	}
	if err != nil {
		return c.stopped(err)
	}
	return nil
}

// statement reads one Stmt.
func (c *camtReader) statement() error {
	c.s = c.begin(c.tokens.at)
	c.s.Page, c.s.Last = c.page, c.last
	c.head, c.mine, c.entries, c.statuses = stmtHead{}, true, totals{}, totals{}
	begun := false
	for {
		token, err := c.dec.Token()
		if err != nil {
			return c.stopped(err)
		}
		if _, ok := token.(xml.EndElement); ok {
			break
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "Ntry" {
			if !begun {
				c.begun()
				begun = true
			}
			if err := c.entry(start); err != nil {
				return err
			}
			continue
		}
		into := c.head.field(start.Name.Local)
		if into == nil {
			err = c.dec.Skip()
		} else {
			err = c.decode(into, start)
		}
		if err != nil {
			return c.stopped(err)
		}
	}
	if !begun {
		c.begun()
	}
	c.ended()
	return nil
}

// begun takes what stands before the entries.
func (c *camtReader) begun() {
	h, s := &c.head, c.s
	if c.mine = c.account.is(h.Account.number()); !c.mine {
		return
	}
	s.ID, s.Copy = name(h.ID), h.Copy != ""
	if s.ID == "" {
		c.fault(FaultField, s.Source, "Stmt/Id", "The statement has no usable id.", "Ask the bank for a file with an id of letters, digits, spaces and . _ / : -.")
	}
	if h.Page.Number != "" {
		s.Page, s.Last = h.Page.number()
	}
	sequence := h.Sequence
	if sequence == "" {
		sequence = h.LegalSequence
	}
	if sequence != "" {
		// Banks write 0, a year or any other text here. The balances tell whether a statement is missing.
		if n, err := strconv.ParseInt(strings.TrimSpace(sequence), 10, 64); err == nil {
			s.Sequence = max(n, 0)
		}
	}
	if currency := h.Account.Currency; currency != "" && currency != c.currency.Code() {
		c.fault(FaultCurrency, s.Source, "Stmt/Acct/Ccy", "The account's currency is not "+c.currency.Code()+".", "Import it for the account of that currency.")
	}
	c.period()
	c.balances()
	c.before = c.file.refusals
}

// period takes the first and the last day. An end at midnight is exclusive, as is one at 24:00:00: the period ends on the day before.
func (c *camtReader) period() {
	s, p := c.s, c.head.Period
	for _, end := range []struct {
		into *string
		text string
		last bool
	}{{&s.From, p.From, false}, {&s.To, p.To, true}} {
		if end.text == "" {
			continue
		}
		at, err := c.time(end.text)
		if err != nil {
			c.fault(FaultField, s.Source, "Stmt/FrToDt", "The period is not an ISO date and time.", "Ask the bank for a valid file.")
			continue
		}
		if end.last {
			at = c.inclusive(at)
		}
		*end.into = at.In(c.account.zone()).Format(time.DateOnly)
		if c.account.late(*end.into) {
			c.fault(FaultField, s.Source, "Stmt/FrToDt", "The period has the day "+*end.into+", which is after tomorrow.", mendLate)
		}
	}
	if s.From != "" && s.To != "" && s.To < s.From { // from a midnight to the same one
		s.To = s.From
	}
}

// inclusive returns an instant on the last day of a period that ends at end. Banks that write UTC end a day of theirs at midnight or
// at 23:59:59Z, which is on the next day in the account's zone: the day that they wrote is meant.
func (c *camtReader) inclusive(end time.Time) time.Time {
	written := end
	switch local := end.In(c.account.zone()); {
	case end.Format(time.TimeOnly) == "00:00:00":
		written = end.Add(-time.Second)
	case local.Format(time.TimeOnly) == "00:00:00":
		return local.Add(-time.Second)
	case end.Format("15:04") != "23:59":
		return end
	}
	return time.Date(written.Year(), written.Month(), written.Day(), 0, 0, 0, 0, c.account.zone())
}

// balances takes the booked balances. The opening one is OPBD, else PRCD (the closing one of
// the day before), the closing one CLBD. The pages of a statement have them as interim
// balances, of the subtype INTM or the code ITBD, in this order.
func (c *camtReader) balances() {
	s := c.s
	var opening, closing bool
	for _, b := range c.head.Balances {
		first := b.Code == "OPBD" || (b.Code == "PRCD" || b.Code == "ITBD") && !opening
		last := b.Code == "CLBD" || b.Code == "ITBD" && !first && !closing
		if !first && !last {
			continue
		}
		balance := c.amount(b.Amount, b.Direction, s.Source, "Stmt/Bal/Amt")
		c.balanceDay(&b)
		if first {
			s.Opening, opening = balance, true
		} else {
			s.Closing, closing = balance, true
		}
	}
	s.Balanced = opening && closing
	if !s.Balanced {
		c.fault(FaultBalance, s.Source, "Stmt/Bal", "The statement lacks an opening (OPBD or PRCD) or a closing balance (CLBD).", "Ask the bank for statements with both balances.")
	}
	if p := c.previous; p != nil && p.Balanced && s.Balanced && p.Closing != s.Opening {
		c.fault(FaultBalance, s.Source, "Stmt/Bal", fmt.Sprintf("The opening balance %d is not the closing balance %d of the statement before, in minor units.", s.Opening, p.Closing),
			"Ask the bank for the statement or the page that is missing between them.")
	}
}

// balanceDay checks the date of a balance. Banks date an opening balance with the day before, and over weekends with an earlier one, so
// only what no bank means is a fault: no date of a calendar, a day in the future, or one far from the period.
func (c *camtReader) balanceDay(b *camtBalance) {
	if b.Date == (camtDate{}) {
		return
	}
	var at Line
	wrong := ""
	switch ok := c.day(&at, b.Date); {
	case !ok:
		wrong = "The balance %s has no valid date."
	case c.account.late(at.Day):
		wrong = "The balance %s is dated " + at.Day + ", which is after tomorrow."
	case c.s.From != "" && at.Day < before(c.s.From, farDays), c.s.To != "" && at.Day > before(c.s.To, -farDays):
		wrong = "The balance %s is dated " + at.Day + ", far from the days of the statement."
	}
	if wrong != "" {
		c.fault(FaultField, c.s.Source, "Stmt/Bal/Dt", fmt.Sprintf(wrong, b.Code), mendLate)
	}
}

// before returns the day that is some days before a day.
func before(day string, days int) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return day
	}
	return at.AddDate(0, 0, -days).Format(time.DateOnly)
}

// ended drops a statement of another account, and checks the totals of another one, unless an entry has a fault: they would tell the
// same fault again.
func (c *camtReader) ended() {
	if !c.mine {
		if c.others == 0 {
			c.other = c.s.Source
		}
		c.others++
		c.file.Statements = c.file.Statements[:len(c.file.Statements)-1]
		return
	}
	if c.file.refusals == c.before {
		c.end(c.s)
		c.head.Summary.check(c.reading, c.s, &c.entries, &c.statuses)
	} else {
		c.s.Balanced = false
	}
	kept := *c.s
	c.previous = &kept
}

// amount parses an amount with its direction. A faulty one is 0.
func (c *camtReader) amount(a camtAmount, direction string, at Position, field string) int64 {
	if a.Currency != c.currency.Code() {
		c.fault(FaultCurrency, at, field, "The amount is not in "+c.currency.Code()+", the account's currency.", "Import the statement for an account of that currency.")
		return 0
	}
	value, why := parseAmount(strings.TrimSpace(a.Text), c.currency)
	switch {
	case why != "":
	case value < 0:
		why = "The amount is negative; its sign is the indicator of credit or debit."
	case direction == "CRDT":
		return value
	case direction == "DBIT":
		return -value
	default:
		why = "The indicator of credit or debit is missing."
	}
	c.fault(FaultAmount, at, field, why, "Ask the bank for a valid file.")
	return 0
}

// time reads an ISO date and time. Without an offset it is in the account's time zone. The hour 24 is the end of the day.
func (c *camtReader) time(text string) (time.Time, error) {
	days := 0
	if strings.Contains(text, "T24:00:00") {
		text, days = strings.Replace(text, "T24:", "T00:", 1), 1
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.ParseInLocation("2006-01-02T15:04:05.999999999", text, c.account.zone())
	}
	return at.AddDate(0, 0, days), err
}
