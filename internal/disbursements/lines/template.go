package lines

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/money"
	"quittance/money/language"
)

// instructionsSheet is the sheet that Read leaves out. Its name is the same in both languages.
const instructionsSheet = "Instructions"

// sheetNames are the names of the sheet with the lines.
var sheetNames = language.Table[string]{money.French: "Lignes", money.English: "Lines"}

// formatText is the number of the format for text: a spreadsheet keeps what is entered in such a cell.
const formatText = 49

// cellsOf returns the cells of a line in the order of Columns. Read gives the same line for them.
func cellsOf(l digest.Line, currency money.Currency) []string {
	cells := make([]string, len(Columns))
	for i, c := range Columns {
		if c == ColumnAmount {
			cells[i] = amountText(l.Amount, currency.Decimals())
		} else {
			cells[i] = *member(&l, c)
		}
	}
	return cells
}

// amountText writes an amount as Read takes it: 1500, or 1500.00 in a currency with decimals.
func amountText(minor int64, decimals int) string {
	text := strconv.FormatInt(minor, 10)
	if decimals == 0 {
		return text
	}
	if missing := decimals + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	return text[:len(text)-decimals] + "." + text[len(text)-decimals:]
}

// WriteCSV writes a template with lines, which may be none, as CSV in UTF-8 with a byte order mark, by which spreadsheets
// tell the encoding. French spreadsheets take the semicolon for the separator. The error is ErrRules, or comes from out.
func WriteCSV(out io.Writer, lang money.Language, rules Rules, lines []digest.Line) error {
	if err := rules.validate(); err != nil {
		return err
	}
	if _, err := io.WriteString(out, "\ufeff"); err != nil {
		return fmt.Errorf("writing a file of lines: %w", err)
	}
	currency, _ := money.Lookup(rules.Currency)
	w := csv.NewWriter(out)
	if w.UseCRLF = true; lang == money.French {
		w.Comma = ';'
	}
	_ = w.Write(headersIn(lang)) // Error returns the error of any row
	for _, l := range lines {
		_ = w.Write(cellsOf(l, currency))
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("writing a file of lines: %w", err)
	}
	return nil
}

func headersIn(lang money.Language) []string {
	out := make([]string, len(Columns))
	for i, c := range Columns {
		out[i] = headers[c][lang]
	}
	return out
}

// WriteXLSX writes a template with lines, which may be none, as a workbook: a sheet whose columns are text, with lists of
// what the rules allow, and a sheet of instructions in both languages. The error is ErrRules, or comes from out.
func WriteXLSX(out io.Writer, lang money.Language, rules Rules, lines []digest.Line) (err error) {
	if err := rules.validate(); err != nil {
		return err
	}
	f := excelize.NewFile()
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = fmt.Errorf("closing a workbook: %w", closed)
		}
	}()
	if err := fill(f, lang, rules, lines); err != nil {
		return fmt.Errorf("making a workbook of lines: %w", err)
	}
	if err := f.Write(out); err != nil {
		return fmt.Errorf("writing a workbook of lines: %w", err)
	}
	return nil
}

func fill(f *excelize.File, lang money.Language, rules Rules, lines []digest.Line) error {
	name := sheetNames.In(lang)
	if err := f.SetSheetName("Sheet1", name); err != nil {
		return err
	}
	text, err := f.NewStyle(&excelize.Style{NumFmt: formatText})
	if err != nil {
		return err
	}
	heading, err := f.NewStyle(&excelize.Style{NumFmt: formatText, Font: &excelize.Font{Bold: true}})
	if err != nil {
		return err
	}
	w, err := f.NewStreamWriter(name)
	if err != nil {
		return err
	}
	for i := len(Columns); i > 0; i-- { // excelize puts the last one first, and some spreadsheets want them in order
		if err := w.SetColWidth(i, i, columnWidth(Columns[i-1])); err != nil {
			return err
		}
		if err := w.SetColStyle(i, i, text); err != nil {
			return err
		}
	}
	if err := w.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	if err := validations(f, name, lang, rules); err != nil {
		return err
	}
	currency, _ := money.Lookup(rules.Currency)
	if err := w.SetRow("A1", styled(heading, headersIn(lang))); err != nil {
		return err
	}
	for i, l := range lines {
		if err := w.SetRow("A"+strconv.Itoa(i+2), styled(text, cellsOf(l, currency))); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return instruct(f, heading, rules)
}

// allowedIn are the values that the rules allow in a column; empty if they do not list any.
func allowedIn(c Column, rules Rules) string {
	switch c {
	case ColumnCurrency:
		return rules.Currency
	case ColumnMode:
		return strings.Join(rules.modes(), ", ")
	default:
		return ""
	}
}

func styled(style int, texts []string) []any {
	cells := make([]any, len(texts))
	for i, t := range texts {
		if t == "" {
			cells[i] = excelize.Cell{StyleID: style}
		} else {
			cells[i] = excelize.Cell{StyleID: style, Value: t}
		}
	}
	return cells
}

// columnWidth is in characters.
func columnWidth(c Column) float64 {
	switch c {
	case ColumnName, ColumnPurpose, ColumnIBAN, ColumnNumber:
		return 32
	case ColumnRef, ColumnMode, ColumnPhone, ColumnCorrects:
		return 22
	default:
		return 14
	}
}

// validations has the spreadsheet offer payment modes and the currency, and refuse texts that are too long.
func validations(f *excelize.File, sheet string, lang money.Language, rules Rules) error {
	for i, c := range Columns {
		v := excelize.NewDataValidation(true)
		v.Sqref = fmt.Sprintf("%s2:%[1]s%d", letters(i), disbursement.MaxLines+1)
		w := validationWords.In(lang)
		v.SetError(excelize.DataValidationErrorStyleStop, headers[c][lang], w.Other)
		switch c {
		case ColumnMode:
			if err := v.SetDropList(rules.modes()); err != nil {
				continue // more modes than a list of a workbook can have: Read refuses another one
			}
		case ColumnCurrency:
			if err := v.SetDropList([]string{rules.Currency}); err != nil {
				return err
			}
		case ColumnName, ColumnPurpose, ColumnRef, ColumnCorrects:
			most := map[Column]int{ColumnName: MaxName, ColumnPurpose: MaxPurpose}[c]
			if most == 0 {
				most = disbursement.MaxText
			}
			v.SetError(excelize.DataValidationErrorStyleStop, headers[c][lang], fmt.Sprintf(w.Long, strconv.Itoa(most)))
			if err := v.SetRange(0, most, excelize.DataValidationTypeTextLength, excelize.DataValidationOperatorBetween); err != nil {
				return err
			}
		default:
			continue
		}
		if err := f.AddDataValidation(sheet, v); err != nil {
			return err
		}
	}
	return nil
}

// instruct writes the sheet of instructions: at most instructionColumns columns.
func instruct(f *excelize.File, heading int, rules Rules) error {
	if _, err := f.NewSheet(instructionsSheet); err != nil {
		return err
	}
	if err := f.SetColWidth(instructionsSheet, "A", "A", 22); err != nil {
		return err
	}
	if err := f.SetColWidth(instructionsSheet, "B", "C", 80); err != nil {
		return err
	}
	wrapped, err := f.NewStyle(&excelize.Style{NumFmt: formatText, Alignment: &excelize.Alignment{WrapText: true, Vertical: "top"}})
	if err != nil {
		return err
	}
	rows := [][3]string{{"", "Français", "English"}}
	for i, line := range instructions[money.French] {
		rows = append(rows, [3]string{"", line, instructions[money.English][i]})
	}
	for _, c := range Columns {
		name, fr, en := headers[c][money.French], columnHelp[money.French][c], columnHelp[money.English][c]
		if other := headers[c][money.English]; other != name {
			name += " / " + other
		}
		if allowed := allowedIn(c, rules); allowed != "" {
			fr, en = fmt.Sprintf(fr, allowed), fmt.Sprintf(en, allowed)
		}
		rows = append(rows, [3]string{name, fr, en})
	}
	for i, row := range rows {
		for j, value := range row {
			at := letters(j) + strconv.Itoa(i+1)
			if err := f.SetCellStr(instructionsSheet, at, value); err != nil {
				return err
			}
			style := wrapped
			if i == 0 || j == 0 {
				style = heading
			}
			if err := f.SetCellStyle(instructionsSheet, at, at, style); err != nil {
				return err
			}
		}
	}
	return nil
}
