package statements

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"quittance/statement"
)

// Layout declares the columns of delimited text by their position, from 1; 0 is absent. In
// JSON it has the names of the registry file, without Name and Zone.
type Layout struct {
	// Name is the profile's name.
	Name string `json:"-"`
	// Separators are the characters that may separate columns. The one that divides the first
	// row into Width columns is the file's.
	Separators string `json:"separators"`
	Width      int    `json:"width"`
	// Header has the words of the first row, compared without regard to case and spaces; an
	// empty word is not compared. Nil means that the file has no header.
	Header []string `json:"header,omitempty"`

	// ID are the columns that together are unique for each line.
	ID []int `json:"id"`
	// OperatorRef is the operator's reference of the payment; 0 is the only column of ID.
	OperatorRef int `json:"operator_ref,omitempty"`
	// Reference is the column of our reference: a payment_ref or a notice_ref.
	Reference int `json:"reference,omitempty"`
	Status    int `json:"status,omitempty"`
	Type      int `json:"type,omitempty"`
	Time      int `json:"time"`
	Amount    int `json:"amount"`
	Fee       int `json:"fee,omitempty"`
	// Net is checked: amount less fee.
	Net      int `json:"net,omitempty"`
	Currency int `json:"currency,omitempty"`
	// Account is checked: the merchant number.
	Account int `json:"account,omitempty"`
	Batch   int `json:"batch,omitempty"`
	// Balance is checked: it grows by the net of each row.
	Balance int `json:"balance,omitempty"`
	// Counterparty is dropped. It is named so that a reader of the layout sees it.
	Counterparty int `json:"counterparty,omitempty"`

	// Booked are the statuses of money, NotBooked those that are none, and Pending those that are none and may still become some. Any
	// other is a fault.
	Booked    []string `json:"booked,omitempty"`
	NotBooked []string `json:"not_booked,omitempty"`
	Pending   []string `json:"pending,omitempty"`
	// Types maps the words of the column Type to kinds. Any other word is a fault. Without a
	// column a row is a payment, or a refund if its amount is negative.
	Types map[string]statement.Kind `json:"types,omitempty"`
	// TimeFormats are layouts of package time. A time without an offset is in Zone, or in the
	// account's time zone if Zone is nil.
	TimeFormats []string       `json:"time_formats"`
	Zone        *time.Location `json:"-"`
	// Decimal is the decimal separator, and Group the separators of thousands.
	Decimal string `json:"decimal"`
	Group   string `json:"group,omitempty"`
	// FeeNegative means that the file writes a deducted fee with a minus sign.
	FeeNegative bool `json:"fee_negative,omitempty"`
	// Trailer is the first word of the last row; empty if there is none. TrailerCount is its
	// column with the number of rows; its sums stand in the columns Amount, Fee and Net.
	Trailer      string `json:"trailer,omitempty"`
	TrailerCount int    `json:"trailer_count,omitempty"`
}

// Validate returns ErrProfile with what is missing or contradictory.
func (d *Layout) Validate() error {
	var faults []string
	need := func(ok bool, what string) {
		if !ok {
			faults = append(faults, what)
		}
	}
	need(d.Separators != "", "separators must not be empty")
	need(d.Width > 0, "width must be the number of columns")
	need(len(d.ID) > 0, "id must name the columns that are unique for each line")
	need(d.Time > 0, "time must name a column")
	need(d.Amount > 0, "amount must name a column")
	need(len(d.TimeFormats) > 0, "time_formats must have a format")
	need(d.Decimal == "." || d.Decimal == ",", "decimal must be . or ,")
	need(!strings.Contains(d.Group, d.Decimal) || d.Decimal == "", "group must not contain the decimal separator")
	need(d.Header == nil || len(d.Header) == d.Width, "header must have as many words as width")
	need(d.Status == 0 || len(d.Booked) > 0, "booked must have a status")
	need(d.Type == 0 || len(d.Types) > 0, "types must have a word")
	for word, kind := range d.Types {
		need(slices.Contains(statement.Kinds, kind), fmt.Sprintf("types: the kind of %q must be one of %v", word, statement.Kinds))
	}
	used := map[int]bool{}
	for _, column := range append(slices.Clone(d.ID), d.OperatorRef, d.Reference, d.Status, d.Type, d.Time, d.Amount, d.Fee, d.Net, d.Currency, d.Account, d.Batch, d.Balance, d.Counterparty, d.TrailerCount) {
		need(column >= 0 && column <= d.Width, fmt.Sprintf("column %d is outside 1 to %d", column, d.Width))
		used[column] = true
	}
	if d.Counterparty > 0 {
		need(!slices.Contains(d.ID, d.Counterparty) && d.Counterparty != d.OperatorRef && d.Counterparty != d.Reference && d.Counterparty != d.Batch,
			"the counterparty's column must not be read as anything else")
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrProfile, strings.Join(faults, "; "))
}

// maxRow bounds a row in bytes.
const maxRow = 1 << 20

// table is the state of reading one file by a layout.
type table struct {
	*Layout
	*reading
	csv     *csv.Reader
	row     []string
	s       *Statement
	balance int64
	counted struct{ rows, amount, fee, net int64 }
	trailer bool
	started bool     // the opening balance is known
	lost    bool     // the row before has a fault, so the balance before is unknown
	net     int64    // of the row before
	short   *short   // the row before has too few columns
	last    Position // of the last row
}

// short is a row with too few columns. The last row of a file was cut off.
type short struct {
	at      Position
	columns int
}

func (d *Layout) read(r *reading) error {
	t := &table{Layout: d, reading: r}
	if err := t.open(); err != nil {
		return err
	}
	t.s = r.begin(Position{1, 1})
	for first := true; ; first = false {
		r.gate.limit = max(r.gate.limit, t.csv.InputOffset()+2*maxRow)
		var err error
		t.row, err = t.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return t.unreadable(err)
		}
		t.last = t.at(len(t.row))
		if first && d.Header != nil {
			if err := t.header(); err != nil {
				return err
			}
			continue
		}
		if err := t.next(); err != nil {
			return err
		}
	}
	return t.close()
}

// open finds the separator in the first row.
func (t *table) open() error {
	t.gate.limit = maxRow
	in := bufio.NewReaderSize(t.gate, 64<<10)
	head, err := in.Peek(16 << 10)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errTooLarge) {
		return err
	}
	first, _, _ := bytes.Cut(bytes.TrimLeft(head, "\r\n"), []byte("\n"))
	if len(bytes.TrimSpace(first)) == 0 {
		t.fault(FaultEmpty, Position{1, 1}, "", "The file is empty.", "Fetch the file again.")
		return errStop
	}
	if bytes.ContainsRune(first, 0) {
		t.fault(FaultEncoding, Position{1, 1}, "", "The file is not text, or it is UTF-16 without a byte order mark.", "Ask for the file in UTF-8.")
		return errStop
	}
	separator := rune(0)
	for _, candidate := range t.Separators {
		c := csv.NewReader(bytes.NewReader(first))
		c.Comma = candidate
		if row, err := c.Read(); err == nil && len(row) == t.Width {
			separator = candidate
			break
		}
	}
	if separator == 0 {
		t.fault(FaultColumns, Position{1, 1}, "", fmt.Sprintf("The first row does not have %d columns.", t.Width),
			fmt.Sprintf("The profile %s separates columns by one of %q; import the operator's file unchanged.", t.Name, t.Separators))
		return errStop
	}
	t.csv = csv.NewReader(in)
	t.csv.Comma, t.csv.FieldsPerRecord, t.csv.ReuseRecord = separator, -1, true
	return nil
}

func (t *table) unreadable(err error) error {
	var parse *csv.ParseError
	switch {
	case errors.Is(err, errTooLarge):
		t.fault(FaultSyntax, t.last, "", fmt.Sprintf("A row is larger than %d MiB.", maxRow>>20), "A quotation mark may be missing: fetch the file again.")
		return errStop
	case errors.As(err, &parse):
		t.fault(FaultSyntax, Position{parse.Line, parse.Column}, "", "A quotation mark is missing or misplaced.", "Fetch the file again: it may be truncated.")
		return errStop
	}
	return err
}

func (t *table) at(column int) Position {
	line, place := t.csv.FieldPos(min(max(column, 1), len(t.row)) - 1)
	return Position{line, place}
}

// cell returns the text of a column; empty for an absent one.
func (t *table) cell(column int) string {
	if column == 0 {
		return ""
	}
	return strings.TrimSpace(decode(t.row[column-1]))
}

// word is the text of a column of ids, without the apostrophe by which a spreadsheet marks a text.
func (t *table) word(column int) string {
	return strings.TrimSpace(strings.TrimPrefix(t.cell(column), "'"))
}

func (t *table) name(column int) string {
	if column > 0 && column <= len(t.Header) && t.Header[column-1] != "" {
		return t.Header[column-1]
	}
	return "column " + strconv.Itoa(column)
}

func (t *table) wrong(kind FaultKind, column int, detail, mend string) {
	t.fault(kind, t.at(column), t.name(column), detail, mend)
}

const mendColumns = "Import the operator's file unchanged, or ask for the account's profile to be adapted to the new layout."

func (t *table) header() error {
	if len(t.row) != t.Width {
		t.fault(FaultColumns, t.at(1), "", fmt.Sprintf("The header has %d columns instead of %d.", len(t.row), t.Width), mendColumns)
		return errStop
	}
	bad := false
	for i, want := range t.Header {
		if want != "" && !strings.EqualFold(strings.Join(strings.Fields(t.cell(i+1)), " "), want) {
			t.fault(FaultColumns, t.at(i+1), want, fmt.Sprintf("Column %d should be headed %q.", i+1, want), mendColumns)
			bad = true
		}
	}
	if bad {
		return errStop
	}
	return nil
}

// next reads the present row.
func (t *table) next() error {
	if t.trailer {
		t.faultOnce(FaultSummary, t.at(1), "", "A row follows the row of totals.", "Import one file at a time, unchanged.")
		return nil
	}
	t.cutOff(mendColumns)
	switch n := len(t.row); {
	case n < t.Width:
		t.short = &short{t.at(1), n}
		return nil
	case n > t.Width:
		t.fault(FaultColumns, t.at(1), "", fmt.Sprintf("The row has %d columns instead of %d.", n, t.Width), mendColumns)
		return nil
	}
	if t.Trailer != "" && strings.EqualFold(t.cell(1), t.Trailer) {
		t.totals()
		return nil
	}
	if t.Status > 0 {
		status := t.cell(t.Status)
		same := func(word string) bool { return strings.EqualFold(word, status) }
		if i := slices.IndexFunc(t.NotBooked, same); i >= 0 {
			t.file.Skipped[t.NotBooked[i]]++
			return nil
		}
		if i := slices.IndexFunc(t.Pending, same); i >= 0 {
			t.file.Skipped[t.Pending[i]]++
			var l Line
			_ = t.readTime(&l) // without one the day is unknown
			t.s.undecided(l.Day)
			return nil
		}
		if !slices.ContainsFunc(t.Booked, same) {
			t.lost = true
			t.wrong(FaultField, t.Status, t.unknown(t.Status, "status", status), fmt.Sprintf("Known ones are %v.", slices.Concat(t.Booked, t.NotBooked, t.Pending)))
			return nil
		}
	}
	before := t.file.refusals
	l, id := t.money()
	if t.file.refusals > before {
		t.lost = true
		return nil
	}
	if l.Amount == 0 && l.Fee == 0 {
		t.file.Skipped["zero"]++
		return nil
	}
	return t.line(t.s, &l, id)
}

// cutOff tells of a row before that has too few columns.
func (t *table) cutOff(mend string) {
	if t.short != nil {
		t.fault(FaultColumns, t.short.at, "", fmt.Sprintf("The row has %d columns instead of %d.", t.short.columns, t.Width), mend)
		t.short = nil
	}
}

// unknown says that the word of a column is unknown. It quotes the word if a header shows that the column is the right one: any other
// may hold a name or a number of a payer.
func (t *table) unknown(column int, what, word string) string {
	if word == "" {
		return "The " + what + " is missing."
	}
	if t.Header == nil || t.Header[column-1] == "" || len(word) > 40 || isPhone(word) {
		return "The " + what + " is unknown."
	}
	return fmt.Sprintf("The %s %q is unknown.", what, word)
}

// money reads a row that counts.
func (t *table) money() (l Line, id string) {
	l = Line{Source: t.at(1), Kind: statement.KindPayment, Currency: t.currency.Code()}
	if t.Type > 0 {
		word, known := t.cell(t.Type), false
		for w, kind := range t.Types {
			if strings.EqualFold(w, word) {
				l.Kind, known = kind, true
			}
		}
		if !known {
			t.wrong(FaultField, t.Type, t.unknown(t.Type, "type", word), "Ask for the account's profile to be extended by it.")
		}
	}
	l.Reversal = l.Kind == statement.KindReversal
	id = t.identity(&l)
	t.when(&l)
	t.amounts(&l)
	if code := t.cell(t.Currency); t.Currency > 0 && code != t.currency.Code() {
		t.wrong(FaultCurrency, t.Currency, "The row is not in "+t.currency.Code()+", the account's currency.", "Import it for an account of that currency.")
	}
	if t.Account > 0 && !t.account.is(t.word(t.Account)) {
		t.faultOnce(FaultAccount, t.at(t.Account), t.name(t.Account), "The file is of another account.", "Import it for the account whose number it has.")
	}
	var why string
	if l.PaymentRef, l.NoticeRef, why = checkedRef(t.cell(t.Reference)); why != "" {
		t.wrong(FaultReference, t.Reference, why, mendReference)
	}
	if t.Batch > 0 {
		if l.Batch = name(t.word(t.Batch)); l.Batch == "" && t.cell(t.Batch) != "" {
			t.wrong(FaultField, t.Batch, "The batch id has other characters than letters, digits, spaces and . _ / : -.", mendColumns)
		}
	}
	return l, id
}

// identity reads the id and the operator's reference.
func (t *table) identity(l *Line) string {
	parts := make([]string, len(t.ID))
	for i, column := range t.ID {
		parts[i] = t.word(column)
		switch {
		case parts[i] == "":
			t.wrong(FaultField, column, "The id is missing.", mendColumns)
		case scientific.MatchString(parts[i]) && strings.ContainsAny(parts[i], ".,"):
			t.wrong(FaultReference, column, "The id is in scientific notation: a spreadsheet has rounded it.", mendReference)
		case len(parts[i]) > 64 || strings.ContainsFunc(parts[i], func(r rune) bool { return r < ' ' }):
			t.wrong(FaultField, column, "The id is longer than 64 bytes or has control characters.", mendColumns)
		}
	}
	id := strings.Join(parts, "|")
	switch {
	case t.OperatorRef > 0:
		l.OperatorRef = token(t.word(t.OperatorRef))
	case len(t.ID) == 1:
		l.OperatorRef = id
	}
	return id
}

func (t *table) when(l *Line) {
	if !t.readTime(l) {
		t.wrong(FaultField, t.Time, "The time is not in the profile's format.", fmt.Sprintf("The format is %q; a spreadsheet may have changed it.", t.TimeFormats[0]))
	}
}

// readTime sets the time and the local day of a row. It returns false if the row has none in the profile's format.
func (t *table) readTime(l *Line) bool {
	zone := t.Zone
	if zone == nil {
		zone = t.account.zone()
	}
	text := t.cell(t.Time)
	for _, format := range t.TimeFormats {
		at, err := time.ParseInLocation(format, text, zone)
		if err != nil {
			continue
		}
		if year := at.Year(); year < 2000 || year > 2199 {
			return false
		}
		if !hasClock(format) {
			l.Day = at.Format(time.DateOnly)
			return true
		}
		l.At, l.Day = at.UTC(), at.In(t.account.zone()).Format(time.DateOnly)
		return true
	}
	return false
}

// hasClock reports whether a format of package time has an hour.
func hasClock(format string) bool {
	day := time.Date(2006, 1, 2, 0, 0, 0, 0, time.UTC)
	return day.Format(format) != day.Add(13*time.Hour).Format(format)
}

// grouped reports whether each separator of thousands in an amount stands before three digits, and none after the
// decimal separator. An amount may have the separators of another country, such as 5000.00 where a point separates
// thousands: without the check it is read as 500000.
func grouped(text, separators, decimal string) bool {
	whole, fraction, _ := strings.Cut(text, decimal)
	parts := strings.FieldsFunc(strings.TrimLeft(whole, "+-"), func(r rune) bool { return strings.ContainsRune(separators, r) })
	for i, part := range parts {
		if i == 0 && len(parts) > 1 && len(part) > 3 || i > 0 && len(part) != 3 {
			return false
		}
	}
	return separators == "" || !strings.ContainsAny(fraction, separators)
}

// number parses an amount of a column as the file writes it.
func (t *table) number(column int) (value int64, ok bool) {
	text := t.cell(column)
	if decimal := cmp.Or(t.Decimal, "."); !grouped(text, t.Group, decimal) {
		t.wrong(FaultAmount, column, fmt.Sprintf("The amount has a separator of thousands that is not before three digits; the profile's decimal separator is %q.", decimal), mendColumns)
		return 0, false
	}
	for _, separator := range t.Group {
		text = strings.ReplaceAll(text, string(separator), "")
	}
	if t.Decimal == "," {
		if strings.Contains(text, ".") {
			t.wrong(FaultAmount, column, "The amount has a point, but the profile's decimal separator is a comma.", mendColumns)
			return 0, false
		}
		text = strings.Replace(text, ",", ".", 1)
	}
	value, why := parseAmount(text, t.currency)
	if _, fraction, _ := strings.Cut(text, "."); why == "" && len(fraction) == 3 && t.currency.Decimals() != 3 {
		// 5.000 is five thousand in many countries. Nothing in the file tells which is meant.
		why = "The amount has three digits after the decimal separator, which may separate thousands."
	}
	if why != "" {
		t.wrong(FaultAmount, column, why, "Import the operator's file unchanged, or ask for the account's profile to be adapted to its amounts.")
	}
	return value, why == ""
}

func (t *table) amounts(l *Line) {
	amount, ok := t.number(t.Amount)
	if !ok {
		return
	}
	if l.Kind == statement.KindEntry {
		l.Amount = amount // the sign is the file's
	} else if t.Type == 0 && amount < 0 {
		l.Kind, l.Amount = statement.KindRefund, amount
	} else {
		if amount < 0 && l.Kind.Incoming() {
			t.wrong(FaultAmount, t.Amount, "A payment has a negative amount.", "Ask for the account's profile to map its type to a refund or a reversal.")
			return
		}
		if l.Amount = max(amount, -amount); !l.Kind.Incoming() {
			l.Amount = -l.Amount
		}
	}
	if t.Fee > 0 && t.cell(t.Fee) != "" {
		if l.Fee, ok = t.number(t.Fee); !ok {
			return
		}
		if t.FeeNegative {
			l.Fee = -l.Fee
		}
	}
	if t.Net > 0 {
		net, ok := t.number(t.Net)
		if ok && net != l.Net() {
			t.wrong(FaultSummary, t.Net, fmt.Sprintf("The net amount %d is not the amount %d less the fee %d, in minor units.", net, l.Amount, l.Fee), "Ask who sent the file which one is right.")
		}
	}
	t.counted.rows++
	t.counted.amount += l.Amount
	t.counted.fee += l.Fee
	t.counted.net += l.Net()
	if t.Balance > 0 {
		t.balanced(l)
	}
}

// balanced checks the running balance.
func (t *table) balanced(l *Line) {
	balance, ok := t.number(t.Balance)
	if !ok {
		return
	}
	if !t.started && !t.lost {
		t.started, t.s.Balanced, t.s.Opening = true, true, balance-l.Net()
	} else if !t.lost && balance != t.balance+l.Net() && balance == t.balance-t.net {
		t.faultOnce(FaultBalance, t.at(t.Balance), t.name(t.Balance), "The newest row comes first: each balance is the one before the row above.",
			"Ask the operator for the report with the oldest row first. Do not sort it in a spreadsheet, which damages ids and references.")
	} else if !t.lost && balance != t.balance+l.Net() {
		t.wrong(FaultBalance, t.Balance, fmt.Sprintf("The balance %d is not the balance before, %d, with the %d of this row, in minor units.", balance, t.balance, l.Net()),
			"A row is missing, doubled or out of order: fetch the file again.")
	}
	t.lost, t.balance, t.net, t.s.Closing = false, balance, l.Net(), balance
}

// totals checks the last row.
func (t *table) totals() {
	t.trailer = true
	check := func(column int, want int64) {
		if column == 0 || t.cell(column) == "" {
			return
		}
		if got, ok := t.number(column); ok && got != want {
			t.wrong(FaultSummary, column, fmt.Sprintf("The total is %d, the rows give %d, in minor units.", got, want), "Fetch the file again: rows are missing or doubled.")
		}
	}
	if text := t.cell(t.TrailerCount); t.TrailerCount > 0 {
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || n != t.counted.rows {
			t.wrong(FaultSummary, t.TrailerCount, fmt.Sprintf("The count is not the number of rows, %d.", t.counted.rows), "Fetch the file again: rows are missing or doubled.")
		}
	}
	if t.file.refusals > 0 {
		return // the totals would tell the same faults again
	}
	check(t.Amount, t.counted.amount)
	check(t.Fee, t.counted.fee)
	check(t.Net, t.counted.net)
}

func (t *table) close() error {
	t.cutOff("Fetch the file again: it may be truncated.")
	if t.Trailer != "" && !t.trailer {
		t.fault(FaultSummary, t.last, "", "The row of totals is missing.", "Fetch the file again: it may be truncated.")
	}
	if t.s.From != "" {
		t.s.ID, t.s.Dated = t.s.From+".."+t.s.To, true
	}
	if t.file.refusals > 0 {
		t.s.Balanced = false // the rows tell the faults
	}
	t.end(t.s)
	return nil
}
