package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// CSV writes the table as CSV (RFC 4180) with a line of names. Amounts are minor units. Text
// that a spreadsheet would run as a formula gets an apostrophe in front.
func (t Table) CSV(out io.Writer) error {
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

// XLSX writes the table as a workbook with one sheet. Amounts are numbers in the unit of
// their currency. Everything else that is not a count is text, references as well.
func (t Table) XLSX(out io.Writer) (err error) {
	f := excelize.NewFile()
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("closing the workbook: %w", closed)
		}
	}()
	s := sheet{Table: t, file: f, amounts: map[int]int{}}
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

	file    *excelize.File
	text    int
	amounts map[int]int // styles by the number of decimals
}

// fill writes the names of the columns and the rows.
func (s *sheet) fill() (err error) {
	if err := s.file.SetSheetName("Sheet1", s.Name); err != nil {
		return err
	}
	if s.text, err = s.file.NewStyle(&excelize.Style{NumFmt: numFmtText}); err != nil {
		return err
	}
	heading, err := s.file.NewStyle(&excelize.Style{NumFmt: numFmtText, Font: &excelize.Font{Bold: true}})
	if err != nil {
		return err
	}
	w, err := s.file.NewStreamWriter(s.Name)
	if err != nil {
		return err
	}
	if err := s.layOut(w); err != nil {
		return err
	}
	cells := make([]any, len(s.Columns))
	for i, c := range s.Columns {
		cells[i] = excelize.Cell{StyleID: heading, Value: c.Title()}
	}
	if err := w.SetRow("A1", cells); err != nil {
		return err
	}
	for n, row := range s.Rows {
		for i := range row {
			if cells[i], err = s.cell(row, i); err != nil {
				return err
			}
		}
		if err := w.SetRow("A"+strconv.Itoa(n+2), cells); err != nil {
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

// cell returns the cell of a value.
func (s *sheet) cell(row []any, column int) (cell excelize.Cell, err error) {
	value, number := row[column].(int64)
	if !number {
		return excelize.Cell{StyleID: s.text, Value: row[column]}, nil
	}
	if !s.Columns[column].Money() {
		return excelize.Cell{Value: value}, nil
	}
	currency, ok := s.currency(row)
	if !ok {
		return excelize.Cell{StyleID: s.text, Value: s.Text(row, column)}, nil
	}
	decimals := currency.Decimals()
	style, ok := s.amounts[decimals]
	if !ok {
		format := "#,##0"
		if decimals > 0 {
			format += "." + strings.Repeat("0", decimals)
		}
		if style, err = s.file.NewStyle(&excelize.Style{CustomNumFmt: &format}); err != nil {
			return cell, err
		}
		s.amounts[decimals] = style
	}
	return excelize.Cell{StyleID: style, Value: float64(value) / math.Pow10(decimals)}, nil
}
