package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"
)

// CSV writes the table as CSV (RFC 4180) with a line of names. Amounts are minor units. Text
// that a spreadsheet would run as a formula gets an apostrophe in front. The first line is the stamp, and the next
// ones are the totals; they begin with #.
func (t Table) CSV(out io.Writer) error {
	comments := []string{t.Stamp.line()}
	for _, sum := range t.Totals() {
		text := strings.TrimSpace("total " + oneLine(sum.Currency) + " " + oneLine(sum.Of))
		for _, c := range t.Columns {
			if c.Money() {
				text += fmt.Sprintf("; %s: %d", c.Name, sum.Amounts[c.Name])
			}
		}
		comments = append(comments, text)
	}
	for _, c := range comments {
		if _, err := fmt.Fprintf(out, "# %s\n", c); err != nil {
			return fmt.Errorf("writing CSV: %w", err)
		}
	}
	w := csv.NewWriter(out)
	line := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		line[i] = c.Name
	}
	_ = w.Write(line) // Error returns the error of any line
	for _, row := range t.Rows {
		for i, value := range row {
			switch v := value.(type) {
			case int64:
				line[i] = strconv.FormatInt(v, 10)
			case string:
				line[i] = harmless(v)
			}
		}
		_ = w.Write(line)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

// oneLine returns a text without the ends of lines that an operator's report may have.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// harmless puts an apostrophe before text with which a formula begins in one of the usual
// spreadsheets (OWASP, "CSV Injection"). Full-width characters count in some languages, and
// white space in front is ignored.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("\t\r\n", rune(text[0])) {
		return "'" + text
	}
	begin := strings.TrimSpace(text)
	for _, sign := range []string{"=", "+", "-", "@", "＝", "＋", "－", "＠"} {
		if strings.HasPrefix(begin, sign) {
			return "'" + text
		}
	}
	return text
}

// numFmtText is Excel's format for text. A spreadsheet keeps the digits of a reference in it,
// of which a number would have 15, and runs no formula, also after the cell was edited.
const numFmtText = 49

// Formats of days and times in a workbook, and the sheet with the stamp.
const (
	formatDay       = "yyyy-mm-dd"
	formatMoment    = "yyyy-mm-dd hh:mm:ss"
	provenanceSheet = "provenance"
	// rowsAtMost is the largest number of rows of a sheet, less the heading and some totals.
	rowsAtMost = excelize.TotalRows - 100
)

// ErrTooManyRows says that a workbook cannot have the rows of a report.
var ErrTooManyRows = fmt.Errorf("a workbook has %d rows at most", rowsAtMost)

// XLSX writes the table as a workbook: a sheet with the rows and their totals, and one with the stamp. Amounts are
// numbers in the unit of their currency, days and times are dates. Everything else that is not a count is text,
// references as well.
func (t Table) XLSX(out io.Writer) (err error) {
	if len(t.Rows) > rowsAtMost {
		return fmt.Errorf("%s has %d rows: %w", t.Name, len(t.Rows), ErrTooManyRows)
	}
	f := excelize.NewFile()
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("closing the workbook: %w", closed)
		}
	}()
	s := sheet{Table: t, file: f, numbers: map[string]int{}}
	if err := s.fill(); err != nil {
		return fmt.Errorf("making the workbook: %w", err)
	}
	if err := f.Write(out); err != nil {
		return fmt.Errorf("writing the workbook: %w", err)
	}
	return nil
}

// sheet is the sheet of a workbook while it is made.
type sheet struct {
	Table

	file          *excelize.File
	text, heading int
	numbers       map[string]int // styles by format
}

// fill writes both sheets.
func (s *sheet) fill() (err error) {
	if err := s.file.SetSheetName("Sheet1", s.Name); err != nil {
		return err
	}
	if s.text, err = s.file.NewStyle(&excelize.Style{NumFmt: numFmtText}); err != nil {
		return err
	}
	if s.heading, err = s.file.NewStyle(&excelize.Style{NumFmt: numFmtText, Font: &excelize.Font{Bold: true}}); err != nil {
		return err
	}
	if err := s.fillRows(); err != nil {
		return err
	}
	return s.fillProvenance()
}

// fillRows writes the headings, the rows and the totals.
func (s *sheet) fillRows() error {
	w, err := s.file.NewStreamWriter(s.Name)
	if err != nil {
		return err
	}
	if err := s.layOut(w); err != nil {
		return err
	}
	cells := make([]any, len(s.Columns))
	for i, c := range s.Columns {
		cells[i] = excelize.Cell{StyleID: s.heading, Value: c.Title()}
	}
	if err := w.SetRow("A1", cells); err != nil {
		return err
	}
	rows := s.Rows
	for _, sum := range s.Totals() {
		rows = append(rows[:len(rows):len(rows)], s.TotalRow(sum))
	}
	for n, row := range rows {
		for i := range row {
			if cells[i], err = s.cell(row, i, n >= len(s.Rows)); err != nil {
				return err
			}
		}
		if err := w.SetRow("A"+strconv.Itoa(n+2), cells); err != nil {
			return err
		}
	}
	return w.Flush()
}

// fillProvenance writes the stamp.
func (s *sheet) fillProvenance() error {
	if _, err := s.file.NewSheet(provenanceSheet); err != nil {
		return err
	}
	w, err := s.file.NewStreamWriter(provenanceSheet)
	if err != nil {
		return err
	}
	if err := w.SetColWidth(1, 2, 40); err != nil {
		return err
	}
	for i, f := range s.Stamp.Facts() {
		if err := w.SetRow("A"+strconv.Itoa(i+1), []any{excelize.Cell{StyleID: s.heading, Value: f.Name}, excelize.Cell{StyleID: s.text, Value: f.Text}}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// layOut sets the widths of the columns and keeps their names visible.
func (s *sheet) layOut(w *excelize.StreamWriter) error {
	for i, c := range s.Columns {
		width := len(c.Title())
		for _, row := range s.Rows[:min(len(s.Rows), 200)] {
			width = max(width, len([]rune(s.Text(row, i))))
		}
		if err := w.SetColWidth(i+1, i+1, float64(min(width, 48))+2); err != nil {
			return err
		}
	}
	return w.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"})
}

// cell returns the cell of a value; of a total it is bold.
func (s *sheet) cell(row []any, column int, total bool) (excelize.Cell, error) {
	value, number := row[column].(int64)
	if !number {
		return s.textCell(row[column], column, total)
	}
	if !s.Columns[column].Money() {
		return excelize.Cell{Value: value}, nil
	}
	currency, ok := s.currency(row)
	if !ok {
		return excelize.Cell{StyleID: s.text, Value: s.Text(row, column)}, nil
	}
	decimals := currency.Decimals()
	format := "#,##0"
	if decimals > 0 {
		format += "." + strings.Repeat("0", decimals)
	}
	style, err := s.style(format, total)
	return excelize.Cell{StyleID: style, Value: float64(value) / math.Pow10(decimals)}, err
}

// textCell returns the cell of a text: a date if it is one.
func (s *sheet) textCell(value any, column int, total bool) (excelize.Cell, error) {
	text, _ := value.(string)
	layout, format := "", ""
	switch c := s.Columns[column]; {
	case c.Day():
		layout, format = time.DateOnly, formatDay
	case c.Moment():
		layout, format = time.DateTime, formatMoment
	}
	if at, err := time.Parse(layout, text); layout != "" && err == nil {
		style, err := s.style(format, total)
		return excelize.Cell{StyleID: style, Value: at}, err
	}
	if total {
		return excelize.Cell{StyleID: s.heading, Value: text}, nil
	}
	return excelize.Cell{StyleID: s.text, Value: text}, nil
}

// style returns the style of a format of numbers.
func (s *sheet) style(format string, bold bool) (int, error) {
	key := fmt.Sprint(format, bold)
	if style, ok := s.numbers[key]; ok {
		return style, nil
	}
	style := &excelize.Style{CustomNumFmt: &format}
	if bold {
		style.Font = &excelize.Font{Bold: true}
	}
	id, err := s.file.NewStyle(style)
	if err != nil {
		return 0, err
	}
	s.numbers[key] = id
	return id, nil
}
