package lines_test

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
)

// cellsOf returns the cells from which a line was made, in the order of lines.Columns, without empty ones.
func cellsOf(l lines.Line) []string {
	c := l.Content
	cells := map[lines.Column]string{
		lines.ColumnRef: c.LineRef, lines.ColumnName: c.Name, lines.ColumnAmount: big.NewInt(c.Amount).String(), lines.ColumnCurrency: c.Currency, lines.ColumnMode: c.PaymentMode,
		lines.ColumnPhone: c.MSISDN, lines.ColumnIBAN: c.IBAN, lines.ColumnNumber: c.Number, lines.ColumnBIC: c.BIC, lines.ColumnPurpose: c.Purpose, lines.ColumnCorrects: c.Corrects,
	}
	for _, change := range l.Changes {
		cells[change.Column] = change.From
	}
	var out []string
	for _, column := range lines.Columns {
		if cells[column] != "" {
			out = append(out, cells[column])
		}
	}
	return out
}

// sound checks what holds of every file, whatever its bytes are.
func sound(t *testing.T, f *lines.File) {
	t.Helper()
	for _, fault := range f.Faults {
		if fault.Detail("fr") == "" || fault.Mend("en") == "" || strings.Contains(fault.Text("fr")+fault.Text("en"), "%!") || fault.Row < 0 {
			t.Fatalf("%s: %q", fault, fault.Text("fr"))
		}
	}
	if f.Refused() != (len(f.Lines) == 0) || f.Refused() != (len(f.Faults) > 0) {
		t.Fatalf("%d lines, %d faults of %d", len(f.Lines), len(f.Faults), f.Count)
	}
	if f.Refused() {
		return
	}
	if _, err := lines.Seal(f.Lines, fixed(3)); err != nil {
		t.Fatal(err)
	}
	for _, l := range f.Lines {
		c := l.Content
		if c.LineRef == "" || c.Name == "" || c.Amount <= 0 || c.Currency != "XAF" || c.PaymentMode == "" || c.PayoutAccount == "" || (c.MSISDN != "") == (c.IBAN+c.Number != "") ||
			c.IBAN != "" && c.Number != "" || len(c.Name) > lines.MaxName || len(c.Purpose) > lines.MaxPurpose {
			t.Fatalf("%+v", c)
		}
	}
}

// same checks that each line has the cells of its row: another reader's rows, from row 1.
func same(f *lines.File, rows [][]string) bool {
	for _, l := range f.Lines {
		if l.Row > len(rows) {
			return false
		}
		var there []string
		for _, text := range rows[l.Row-1] {
			if text != "" {
				there = append(there, number(text))
			}
		}
		cells := cellsOf(l)
		for i := range cells {
			cells[i] = number(cells[i])
		}
		slices.Sort(there)
		slices.Sort(cells)
		if !slices.Equal(there, cells) {
			return false
		}
	}
	return true
}

// number writes a number in one way: a workbook may have 1.5E7 for 15000000.
func number(text string) string {
	if n, ok := new(big.Rat).SetString(text); ok && n.IsInt() && len(text) < 20 && strings.Trim(text, "0123456789.eE+") == "" {
		return n.Num().String()
	}
	return text
}

// FuzzCSV reads any bytes. What it accepts has the cells that a simple parser of RFC 4180 finds.
func FuzzCSV(f *testing.F) {
	plain := good().csv(",")
	for _, text := range [][]byte{
		plain, good().csv(";"), good().csv("\t"), []byte("\ufeff" + string(plain)), good().with(1, cName, "A \"B\"; C,D").csv(";"), good().with(1, cName, "É").csv(","),
		good().with(3, cNumber, "30011 00020 21512345678 33").csv(","), good().with(1, cPhone, "06 600 00 01").csv(","), []byte(strings.ReplaceAll(string(plain), "JEAN", "J\xe9AN")),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.HasPrefix(text, []byte("PK\x03\x04")) {
			return
		}
		file := read(t, text, rules())
		sound(t, file)
		if file.Refused() {
			return
		}
		decoded := text
		switch file.Encoding {
		case "UTF-16":
			decoded, _ = unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Bytes(text)
		case "Windows-1252":
			decoded, _ = charmap.Windows1252.NewDecoder().Bytes(text)
		}
		decoded = bytes.TrimPrefix(decoded, []byte("\ufeff"))
		if !slices.ContainsFunc([]byte(",;\t"), func(separator byte) bool { return same(file, parsed(string(decoded), separator)) }) {
			t.Fatalf("%+v\nis not\n%q", contents(file.Lines), decoded)
		}
	})
}

// parsed returns the rows of delimited text. A quotation mark is doubled in a quoted cell.
func parsed(text string, separator byte) (rows [][]string) {
	cell, row, quoted := "", []string{}, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '"' && i+1 < len(text) && text[i+1] == '"':
			cell += `"`
			i++
		case c == '"' && (quoted || cell == ""):
			quoted = !quoted
		case quoted:
			cell += text[i : i+1]
		case c == separator:
			row, cell = append(row, cell), ""
		case c == '\n':
			rows = append(rows, append(row, strings.TrimSuffix(cell, "\r")))
			row, cell = []string{}, ""
		default:
			cell += text[i : i+1]
		}
	}
	return append(rows, append(row, strings.TrimSuffix(cell, "\r")))
}

// FuzzSheet reads any XML of a sheet and of shared texts. What it accepts has the cells that another library reads.
func FuzzSheet(f *testing.F) {
	swap := map[string]string{
		"A2": `<c r="REF" t="s"><v>0</v></c>`, "B2": `<c r="REF" t="s" s="1"><v>1</v></c>`, "C2": `<c r="REF" s="1"><v>1.5E7</v></c>`, "C3": `<c r="REF"><v>98000</v></c>`,
		"C4": `<c r="REF"><f>1+1</f><v>2</v></c>`, "D2": `<c r="REF" t="str"><v>XAF</v></c>`,
	}
	texts := `<si><t>S-0001</t></si><si><r><t xml:space="preserve">NGOMA </t></r><r><t>JEAN</t></r><rPh><t>x</t></rPh></si>`
	for _, sheet := range []string{
		good().worksheet("", "", nil), good().worksheet(`<cols><col min="2" max="3" hidden="1"/></cols>`, `<mergeCells><mergeCell ref="A1:B1"/></mergeCells>`, swap),
		good()[:2].worksheet("", "", swap), good()[:3].worksheet("", "", swap), `<worksheet ` + xmlMain + `><sheetData>` + bare(good()[:2]) + `</sheetData></worksheet>`,
	} {
		f.Add(sheet, texts)
	}
	f.Fuzz(func(t *testing.T, sheet, texts string) {
		file := book{sheets: []string{sheet}, shared: texts, formats: `<xf numFmtId="3"/>`}.bytes(t)
		got := read(t, file, rules())
		sound(t, got)
		if got.Refused() {
			return
		}
		rows, ok := others(file)
		if ok && !same(got, rows) {
			t.Fatalf("%+v\nis not\n%q", contents(got.Lines), rows)
		}
	})
}

// others returns the rows of the first sheet as excelize reads them; false if it does not.
func others(file []byte) (rows [][]string, ok bool) {
	defer func() {
		if recover() != nil { // a fault of the other library
			rows, ok = nil, false
		}
	}()
	f, err := excelize.OpenReader(bytes.NewReader(file), excelize.Options{RawCellValue: true})
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // in memory
	rows, err = f.GetRows(f.GetSheetList()[0])
	return rows, err == nil
}

// FuzzRead reads any bytes, workbooks among them.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"openpyxl-good.xlsx", "openpyxl-bad.xlsx", "xlsxwriter-good.xlsx", "xlsxwriter-bad.xlsx"} {
		f.Add(stored(f, name))
	}
	f.Add(good().csv(","))
	f.Fuzz(func(t *testing.T, file []byte) { sound(t, read(t, file, rules())) })
}

// FuzzContent: what is taken for the content of a line is written as the same bytes.
func FuzzContent(f *testing.F) {
	content, err := lines.Content([32]byte{1}, digest.Line{Amount: 1, LineRef: "a", Name: `"\`})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Fuzz(func(t *testing.T, data []byte) {
		salt, l, err := lines.ParseContent(data)
		if err != nil {
			return
		}
		if again, err := lines.Content(salt, l); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%s, %v", again, err)
		}
	})
}
