package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/money"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	FormatCSV  Format = "csv"
	FormatXLSX Format = "xlsx"
	// FormatERP is that of Items: no file, but what an agency's ERP states.
	FormatERP Format = "erp"
)

// File is what a file says.
type File struct {
	Format Format
	// Encoding is that of CSV: UTF-8, UTF-16 or Windows-1252.
	Encoding string
	// Lines are sorted by the bytes of line_ref, which is the order of the leaves. They are nil if the file is refused.
	Lines []Line
	// Faults are the first MaxFaults in the order of the file, Count is the number of all. After a fault of the headers the
	// cells below are not read.
	Faults []Fault
	Count  int
}

// Refused reports whether a fault refuses the file.
func (f *File) Refused() bool { return f.Count > 0 }

// Line is a line as it came in.
type Line struct {
	// Row counts from 1, as a spreadsheet shows it; of Items it is the number of the item, from 1.
	Row int
	// Content is what approvers sign, with the texts as the rail sends them.
	Content digest.Line
	// Changes are the texts that differ from their cells. The preparer must see them.
	Changes []Change
}

// Change is a text that differs from its cell: transliterated, or an account number without the spaces between groups.
type Change struct {
	Column   Column
	From, To string
}

// cellKind says what a spreadsheet says of a cell.
type cellKind int

const (
	cellText cellKind = iota
	cellNumber
	cellGeneral // a number without a format, of which 11 digits are shown
	cellDate    // a number with the format of a date or a time
	cellShown   // a number whose format shows another one
	cellFormula // with or without a value
	cellError
	cellBoolean
)

// cell is a cell that is not empty.
type cell struct {
	column int // from 0
	text   string
	kind   cellKind
}

// errStop says that a fault makes the rest of the file meaningless.
var errStop = errors.New("the rest of the file is not read")

// reading is the state of reading one file.
type reading struct {
	Rules
	currency money.Currency
	file     *File
	headers  []Column // by position; empty for a column without a header
	where    map[Column]int
	row      int // the last row that was not empty
	refs     map[string]int
	corrects map[string]int
	sum      int64
	oversum  bool
	have     map[Column]cell
}

// Read reads a file of size bytes by the rules of the registry. Faults of the file are in the File. The error is ErrRules,
// or comes from src. Memory is bounded by MaxBytes and disbursement.MaxLines, not by what the file says of itself.
func Read(src io.ReaderAt, size int64, rules Rules) (*File, error) {
	r, err := newReading(rules, FormatCSV)
	if err != nil {
		return nil, err
	}
	if err := r.read(src, size); err != nil && !errors.Is(err, errStop) {
		return nil, fmt.Errorf("reading a file of lines: %w", err)
	}
	return r.done(Fault{Kind: FaultNoLines}), nil
}

func newReading(rules Rules, format Format) (*reading, error) {
	if err := rules.validate(); err != nil {
		return nil, err
	}
	currency, _ := money.Lookup(rules.Currency)
	return &reading{
		Rules: rules, currency: currency, file: &File{Format: format}, where: map[Column]int{}, refs: map[string]int{}, corrects: map[string]int{},
		have: map[Column]cell{},
	}, nil
}

// done returns the file as it was read: the lines in their order, or the faults in theirs. nothing is the fault of a file without
// lines.
func (r *reading) done(nothing Fault) *File {
	if r.file.Count == 0 && len(r.file.Lines) == 0 {
		r.fault(nothing)
	}
	if r.file.Refused() {
		r.file.Lines = nil
		slices.SortStableFunc(r.file.Faults, Fault.order)
		return r.file
	}
	slices.SortFunc(r.file.Lines, func(a, b Line) int { return strings.Compare(a.Content.LineRef, b.Content.LineRef) })
	return r.file
}

// The first bytes of a ZIP archive, and of the container of older and of encrypted workbooks.
var (
	magicZip = []byte("PK\x03\x04")
	magicOLE = []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
)

func (r *reading) read(src io.ReaderAt, size int64) error {
	if size > MaxBytes {
		return r.stop(Fault{Kind: FaultTooLarge, Want: strconv.Itoa(MaxBytes >> 20)})
	}
	head := make([]byte, min(size, int64(len(magicOLE))))
	if _, err := src.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(head, magicZip):
		r.file.Format = FormatXLSX
		return r.readXLSX(src, size)
	case bytes.HasPrefix(head, magicOLE):
		return r.stop(Fault{Kind: FaultOther})
	}
	return r.readCSV(io.NewSectionReader(src, 0, size))
}

// fault notes a fault.
func (r *reading) fault(f Fault) {
	r.file.Count++
	r.file.Lines = nil // the file is refused: what its lines are is no longer needed
	if len(r.file.Faults) < MaxFaults {
		f.Cell = quoted(f.Cell)
		r.file.Faults = append(r.file.Faults, f)
	}
}

// stop notes a fault after which nothing more can be read.
func (r *reading) stop(f Fault) error {
	r.fault(f)
	return errStop
}

// next takes the next row with its cells that are not empty, in the order of the columns. A row without any is left out.
func (r *reading) next(row int, cells []cell) error {
	if len(cells) == 0 {
		return nil
	}
	if r.headers == nil {
		return r.header(row, cells)
	}
	if row > r.row+1 {
		r.fault(Fault{Kind: FaultEmptyRow, Row: r.row + 1})
	}
	r.row = row
	return r.line(row, cells)
}

// header reads the row of headers.
func (r *reading) header(row int, cells []cell) error {
	if row != 1 || !slices.ContainsFunc(cells, func(c cell) bool { return known(c.text) != "" }) {
		return r.stop(Fault{Kind: FaultHeaderPlace, Row: 1})
	}
	r.row = row
	r.headers = make([]Column, cells[len(cells)-1].column+1)
	for _, c := range cells {
		column := known(c.text)
		f := Fault{Row: row, Column: letters(c.column), Header: column, Cell: c.text}
		switch _, twice := r.where[column]; {
		case c.kind != cellText || column == "":
			f.Kind, f.Want = FaultHeaderUnknown, strings.Join(names(Columns), ", ")
			r.fault(f)
			column = ignored
		case twice:
			f.Kind, f.Want = FaultHeaderTwice, string(column)
			r.fault(f)
			column = ignored
		default:
			r.where[column] = c.column
		}
		r.headers[c.column] = column
	}
	missing := false
	for _, column := range required {
		if _, ok := r.where[column]; !ok {
			r.fault(Fault{Kind: FaultHeaderMissing, Row: row, Want: string(column)})
			missing = true
		}
	}
	if missing {
		return errStop
	}
	return nil
}

// ignored is a column whose header has a fault. Its cells have none of their own.
const ignored Column = "ignored"

func names(columns []Column) (names []string) {
	for _, c := range columns {
		names = append(names, string(c))
	}
	return names
}

// known returns the column of a header; empty if it is none of ours.
func known(header string) Column { return words[fold(header)] }

// words has all words over columns, folded.
var words = func() map[string]Column {
	all := map[string]Column{}
	for word, c := range otherHeaders {
		all[word] = c
	}
	for c, in := range headers {
		all[fold(string(c))] = c
		for _, word := range in {
			all[fold(word)] = c
		}
	}
	return all
}()

// line reads the row of a line.
func (r *reading) line(row int, cells []cell) error {
	clear(r.have)
	for _, c := range cells {
		column := Column("")
		if c.column < len(r.headers) {
			column = r.headers[c.column]
		}
		if column == "" {
			r.fault(Fault{Kind: FaultNoHeader, Row: row, Column: letters(c.column), Cell: c.text})
			continue
		}
		r.have[column] = c
	}
	if amount := r.have[ColumnAmount].text; !whole.MatchString(amount) && known(amount) != "" && known(r.have[ColumnRef].text) != "" {
		r.fault(Fault{Kind: FaultHeaderAgain, Row: row})
		return nil
	}
	if len(r.refs) >= disbursement.MaxLines {
		return r.stop(Fault{Kind: FaultTooMany, Row: row, Want: strconv.Itoa(disbursement.MaxLines)})
	}
	l := lineReading{reading: r, row: row}
	l.read(l.amount)
	l.keep()
	return nil
}

// keep adds the line to the file, unless the file is refused.
func (l *lineReading) keep() {
	if !l.file.Refused() {
		l.file.Lines = append(l.file.Lines, l.line)
	}
}
