package report_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"io"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"quittance/internal/report"
)

// sample has what spreadsheets spoil: long references, formulas, currencies with and without
// decimals.
var sample = report.Table{
	Name: "open-cases",
	Columns: []report.Column{
		{Name: "order_id"}, {Name: "payment_ref"}, {Name: "currency"}, {Name: "total_minor", Number: true}, {Name: "attempts", Number: true},
	},
	Rows: [][]any{
		{"DOSSIER-17", "1234567890123456", "XAF", int64(-5075), int64(3)},
		{`=HYPERLINK("http://example.com")`, "0034567890123456", "EUR", int64(10005), int64(0)},
		{"é \"quoted\", line\nbreak", "", "???", int64(70), int64(12)},
	},
}

func TestCSV(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := sample.CSV(&b); err != nil {
		t.Fatal(err)
	}
	const want = "order_id,payment_ref,currency,total_minor,attempts\n" +
		"DOSSIER-17,1234567890123456,XAF,-5075,3\n" +
		"\"'=HYPERLINK(\"\"http://example.com\"\")\",0034567890123456,EUR,10005,0\n" +
		"\"é \"\"quoted\"\", line\nbreak\",,???,70,12\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	for text, harmful := range map[string]bool{
		"=1+1": true, "+242 06": true, "-1": true, "@SUM(A1)": true, "\t=1": true, "\r=1": true, "\nx": true, "  =1": true, "\u00a0@x": true, "＝1+1": true, "＠x": true, "−1": false,
		"a=1": false, "'=1": false, "": false, "1": false, "é": false,
	} {
		table := report.Table{Columns: []report.Column{{Name: "a"}, {Name: "b"}}, Rows: [][]any{{text, "x"}}}
		var b bytes.Buffer
		if err := table.CSV(&b); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := text
		if harmful {
			want = "'" + want
		}
		if lines[1][0] != want {
			t.Errorf("%q is written as %q, want %q", text, lines[1][0], want)
		}
	}
}

// A workbook keeps all digits of references, holds no formula, and shows amounts in the unit
// of their currency.
func TestXLSX(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := sample.XLSX(&b); err != nil {
		t.Fatal(err)
	}
	f, err := excelize.OpenReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if sheets := f.GetSheetList(); len(sheets) != 1 || sheets[0] != "open-cases" {
		t.Errorf("the sheets are %q", sheets)
	}
	for cell, want := range map[string]struct {
		kind  excelize.CellType
		value string // raw
		shown string
	}{
		"A1": {excelize.CellTypeInlineString, "order_id", "order_id"},
		"D1": {excelize.CellTypeInlineString, "total", "total"},
		"A3": {excelize.CellTypeInlineString, `=HYPERLINK("http://example.com")`, `=HYPERLINK("http://example.com")`},
		"B2": {excelize.CellTypeInlineString, "1234567890123456", "1234567890123456"},
		"B3": {excelize.CellTypeInlineString, "0034567890123456", "0034567890123456"},
		"D2": {excelize.CellTypeUnset, "-5075", "-5,075"},
		"D3": {excelize.CellTypeUnset, "100.05", "100.05"},
		"D4": {excelize.CellTypeInlineString, "70 (minor units)", "70 (minor units)"},
		"E4": {excelize.CellTypeUnset, "12", "12"},
	} {
		kind, err := f.GetCellType("open-cases", cell)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := f.GetCellValue("open-cases", cell, excelize.Options{RawCellValue: true})
		if err != nil {
			t.Fatal(err)
		}
		shown, err := f.GetCellValue("open-cases", cell)
		if err != nil {
			t.Fatal(err)
		}
		if kind != want.kind || raw != want.value || shown != want.shown {
			t.Errorf("%s is %v %q, shown as %q, want %v %q, %q", cell, kind, raw, shown, want.kind, want.value, want.shown)
		}
		if formula, err := f.GetCellFormula("open-cases", cell); err != nil || formula != "" {
			t.Errorf("%s has the formula %q, %v", cell, formula, err)
		}
	}
	// The format of text, in which an edited cell stays text.
	id, err := f.GetCellStyle("open-cases", "A3")
	if err != nil {
		t.Fatal(err)
	}
	if style, err := f.GetStyle(id); err != nil || style.NumFmt != 49 {
		t.Errorf("the style of text is %+v, %v", style, err)
	}
	if xml := unzipped(t, b.Bytes(), "xl/worksheets/sheet1.xml"); strings.Contains(xml, "<f>") {
		t.Errorf("the sheet has a formula: %s", xml)
	}
}

// unzipped returns a file of an archive.
func unzipped(t *testing.T, archive []byte, name string) string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
