package lines_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"quittance/disbursement/digest"
	"quittance/internal/contact"
	"quittance/internal/disbursements/lines"
)

// mobile is the rule of an operator's numbers as the registry will give it.
func mobile(prefixes ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		number, err := contact.MobileOf(text, prefixes...)
		if errors.Is(err, contact.ErrOtherOperator) {
			return "", lines.ErrOtherOperator
		}
		return number, err
	}
}

func rules() lines.Rules {
	return lines.Rules{Currency: "XAF", Accounts: []lines.Account{
		{Code: "mtn", Currency: "XAF", Modes: []string{"MOMO"}, Phone: mobile("06"), Country: "242"},
		{Code: "airtel", Currency: "XAF", Modes: []string{"AIRTEL"}, Phone: mobile("05", "04"), Country: "242"},
		{Code: "bank", Currency: "XAF", Modes: []string{"VIREMENT", "BANK"}},
		{Code: "euro", Currency: "EUR", Modes: []string{"SEPA"}},
	}}
}

// Account numbers whose checks hold.
const (
	goodRIB  = "30011000202151234567833"
	goodIBAN = "CG39" + goodRIB
)

// read reads a file that can be read.
func read(t testing.TB, file []byte, r lines.Rules) *lines.File {
	t.Helper()
	f, err := lines.Read(bytes.NewReader(file), int64(len(file)), r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// contents returns what is sealed of lines.
func contents(in []lines.Line) []digest.Line {
	out := make([]digest.Line, len(in))
	for i, l := range in {
		out[i] = l.Content
	}
	return out
}

// faults returns the faults of a file in the form of logs, on lines.
func faults(f *lines.File) string {
	var out []string
	for _, fault := range f.Faults {
		out = append(out, fault.String())
	}
	return strings.Join(out, "\n")
}

// table are rows of cells.
type table [][]string

// headings are those of the columns in their order, by their English words.
var headings = []string{"Reference", "Payee", "Amount", "Currency", "Payment mode", "Phone", "IBAN", "Account number", "BIC", "Purpose", "Corrects"}

func (t table) csv(separator string) []byte {
	var b strings.Builder
	for _, row := range t {
		cells := make([]string, len(row))
		for i, c := range row {
			if cells[i] = c; strings.ContainsAny(c, separator+"\"\n\r") {
				cells[i] = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
			}
		}
		b.WriteString(strings.Join(cells, separator) + "\r\n")
	}
	return []byte(b.String())
}

// good are the headers and a line of each account.
func good() table {
	return table{
		headings,
		{"S-0001", "NGOMA JEAN", "150000", "XAF", "MOMO", "242066000001", "", "", "", "SALARY 11/2026", ""},
		{"S-0002", "MBOUNGOU PAULINE", "98000", "XAF", "AIRTEL", "242055000001", "", "", "", "", "R-0001"},
		{"S-0003", "OKEMBA ALBERT", "450000", "XAF", "VIREMENT", "", "", goodRIB, "BCCGCGCG", "", ""},
		{"S-0004", "SITA MARIE", "1", "XAF", "BANK", "", goodIBAN, "", "", "", ""},
	}
}

// with returns the table with another cell, of a row and a column from 0.
func (t table) with(row, column int, text string) table {
	out := make(table, len(t))
	for i := range t {
		out[i] = append([]string(nil), t[i]...)
	}
	out[row][column] = text
	return out
}

// book makes a workbook of XML, part by part, as other writers than the service's library do.
type book struct {
	sheets  []string // XML of sheets
	names   []string
	states  []string
	shared  string
	formats string // elements xf of cellXfs
	codes   string // elements numFmt
	other   map[string]string
}

const xmlMain = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`

func (b book) bytes(t testing.TB) []byte {
	t.Helper()
	const head, types = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`, "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	parts := map[string]string{
		"[Content_Types].xml": head + `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`,
		"_rels/.rels": head + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			`<Relationship Id="rId1" Type="` + types + `officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/styles.xml": head + `<styleSheet ` + xmlMain + `><numFmts>` + b.codes + `</numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/>` +
			b.formats + `</cellXfs></styleSheet>`,
		"xl/sharedStrings.xml": head + `<sst ` + xmlMain + `>` + b.shared + `</sst>`,
	}
	sheets, relations := "", ""
	for i, sheet := range b.sheets {
		name, state := fmt.Sprint("Sheet", i+1), ""
		if i < len(b.names) {
			name = b.names[i]
		}
		if i < len(b.states) && b.states[i] != "" {
			state = fmt.Sprintf(` state=%q`, b.states[i])
		}
		sheets += fmt.Sprintf(`<sheet name=%q sheetId="%d"%s r:id="rS%[2]d"/>`, name, i+1, state)
		relations += fmt.Sprintf(`<Relationship Id="rS%d" Type="%sworksheet" Target="worksheets/sheet%[1]d.xml"/>`, i+1, types)
		parts[fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1)] = head + sheet
	}
	parts["xl/workbook.xml"] = head + `<workbook ` + xmlMain + ` xmlns:r="` + strings.TrimSuffix(types, "/") + `"><sheets>` + sheets + `</sheets></workbook>`
	parts["xl/_rels/workbook.xml.rels"] = head + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + relations +
		`<Relationship Id="rT" Type="` + types + `sharedStrings" Target="/xl/sharedStrings.xml"/><Relationship Id="rF" Type="` + types + `styles" Target="styles.xml"/></Relationships>`
	for name, text := range b.other {
		parts[name] = text
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range parts {
		if text == "" {
			continue
		}
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")

// worksheet writes a table as a sheet of inline texts; swap replaces cells by their reference, such as C2. before and after
// stand around the rows.
func (t table) worksheet(before, after string, swap map[string]string) string {
	var b strings.Builder
	b.WriteString(`<worksheet ` + xmlMain + `>` + before + `<sheetData>`)
	for i, row := range t {
		fmt.Fprintf(&b, `<row r="%d"%s>`, i+1, swap[fmt.Sprint("row", i+1)])
		for j, text := range row {
			ref := fmt.Sprintf("%c%d", 'A'+j, i+1)
			if cell, ok := swap[ref]; ok {
				b.WriteString(strings.ReplaceAll(cell, "REF", ref))
			} else if text != "" {
				fmt.Fprintf(&b, `<c r="%s" t="inlineStr"><is><t>%s</t></is></c>`, ref, escape.Replace(text))
			}
		}
		b.WriteString(`</row>`)
	}
	b.WriteString(`</sheetData>` + after + `</worksheet>`)
	return b.String()
}
