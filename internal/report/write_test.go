package report_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"quittance/internal/journal"
	"quittance/internal/report"
)

// sample has what spreadsheets spoil: long references, formulas, currencies with and without
// decimals.
var sample = report.Table{
	Name: "open-cases",
	Stamp: report.Stamp{
		Report: "open-cases", Agency: "impots", Month: "2026-11", Mode: "test", At: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), Program: "quittance", Version: "2026-11-29+37b291eb8c11",
		Positions: []journal.Position{{Topic: "checkout.events", Partition: 3, Position: 51, Goal: 51}},
	},
	Columns: []report.Column{
		{Name: "order_id"}, {Name: "payment_ref"}, {Name: "currency"}, {Name: "total_minor", Number: true}, {Name: "attempts", Number: true}, {Name: "day"}, {Name: "opened_at"},
	},
	Rows: [][]any{
		{"DOSSIER-17", "1234567890123456", "XAF", int64(-5075), int64(3), "2026-11-03", "2026-11-03 17:04:05"},
		{`=HYPERLINK("http://example.com")`, "0034567890123456", "EUR", int64(10005), int64(0), "", ""},
		{"é \"quoted\", line\nbreak", "", "???", int64(70), int64(12), "soon", ""},
	},
}

func TestCSV(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := sample.CSV(&b); err != nil {
		t.Fatal(err)
	}
	const want = "# report: open-cases; agency: impots; month: 2026-11; mode: test payments: no money was moved; generated at: 2026-12-01T08:00:00Z; " +
		"records below: checkout.events/3@51 (not compared with Kafka); program: quittance 2026-11-29+37b291eb8c11\n" +
		"# total XAF; total_minor: -5075\n# total EUR; total_minor: 10005\n# total ???; total_minor: 70\n" +
		"order_id,payment_ref,currency,total_minor,attempts,day,opened_at\n" +
		"DOSSIER-17,1234567890123456,XAF,-5075,3,2026-11-03,2026-11-03 17:04:05\n" +
		"\"'=HYPERLINK(\"\"http://example.com\"\")\",0034567890123456,EUR,10005,0,,\n" +
		"\"é \"\"quoted\"\", line\nbreak\",,???,70,12,soon,\n"
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
		r := csv.NewReader(&b)
		r.Comment = '#'
		lines, err := r.ReadAll()
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

// The money of an operator's account comes again on the bank account to which it settles: each account has a total of its own.
func TestTotalsApart(t *testing.T) {
	t.Parallel()
	table := report.Table{
		Columns: []report.Column{{Name: "day"}, {Name: "account"}, {Name: "currency"}, {Name: "found_minor", Number: true}}, Apart: "account",
		Rows: [][]any{{"2026-11-01", "mtn", "XAF", int64(5000)}, {"2026-11-01", "bank", "XAF", int64(5000)}, {"2026-11-02", "mtn", "XAF", int64(75)}},
	}
	var rows [][]any
	for _, sum := range table.Totals() {
		rows = append(rows, table.TotalRow(sum))
	}
	if want := [][]any{{"Total", "mtn", "XAF", int64(5075)}, {"Total", "bank", "XAF", int64(5000)}}; !reflect.DeepEqual(rows, want) {
		t.Errorf("%v", rows)
	}
	var b bytes.Buffer
	if err := table.CSV(&b); err != nil || !strings.Contains(b.String(), "# total XAF mtn; found_minor: 5075\n# total XAF bank; found_minor: 5000\n") {
		t.Errorf("%v\n%s", err, &b)
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
	if sheets := f.GetSheetList(); len(sheets) != 2 || sheets[0] != "open-cases" || sheets[1] != "provenance" {
		t.Errorf("the sheets are %q", sheets)
	}
	for cell, want := range map[string]struct {
		kind  excelize.CellType
		value string // raw
		shown string
	}{
		"A1": {excelize.CellTypeInlineString, "Order", "Order"},
		"D1": {excelize.CellTypeInlineString, "Total", "Total"},
		"A3": {excelize.CellTypeInlineString, `=HYPERLINK("http://example.com")`, `=HYPERLINK("http://example.com")`},
		"B2": {excelize.CellTypeInlineString, "1234567890123456", "1234567890123456"},
		"B3": {excelize.CellTypeInlineString, "0034567890123456", "0034567890123456"},
		"D2": {excelize.CellTypeUnset, "-5075", "-5,075"},
		"D3": {excelize.CellTypeUnset, "100.05", "100.05"},
		"D4": {excelize.CellTypeInlineString, "70 (minor units)", "70 (minor units)"},
		"E4": {excelize.CellTypeUnset, "12", "12"},
		"F2": {excelize.CellTypeUnset, "46329", "2026-11-03"},
		"G2": {excelize.CellTypeUnset, "46329.711168981485", "2026-11-03 17:04:05"},
		"F4": {excelize.CellTypeInlineString, "soon", "soon"},
		"A5": {excelize.CellTypeInlineString, "Total", "Total"},
		"C5": {excelize.CellTypeInlineString, "XAF", "XAF"},
		"D5": {excelize.CellTypeUnset, "-5075", "-5,075"},
		"D6": {excelize.CellTypeUnset, "100.05", "100.05"},
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
	rows, err := f.GetRows("provenance")
	if err != nil || len(rows) != 7 || strings.Join(rows[2], " ") != "month 2026-11" || strings.Join(rows[3], " ") != "mode test payments: no money was moved" {
		t.Errorf("the stamp is %q, %v", rows, err)
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

// A month without rows has headings and a stamp in each format, which ClickHouse does not tell without rows.
func TestEmptyMonth(t *testing.T) {
	t.Parallel()
	conn := migrated(t)
	for _, r := range report.All() {
		table, err := r.Run(t.Context(), conn, report.Params{Month: november, Live: true})
		if err != nil {
			t.Fatal(err)
		}
		table.Stamp = sample.Stamp
		if len(table.Rows) != 0 || len(table.Columns) < 5 || table.Columns[0] != (report.Column{Name: "agency"}) {
			t.Errorf("%s: %+v", r.Name, table)
		}
		var text, book bytes.Buffer
		if err := errors.Join(table.CSV(&text), table.XLSX(&book)); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(text.String(), "\n"); len(lines) != 3 || !strings.Contains(lines[0], "month: 2026-11") || !strings.HasPrefix(lines[1], "agency,") {
			t.Errorf("%s is written as %q", r.Name, text.String())
		}
		f, err := excelize.OpenReader(&book)
		if err != nil {
			t.Fatal(err)
		}
		if head, err := f.GetCellValue(r.Name, "A1"); err != nil || head != "Agency" {
			t.Errorf("%s begins with %q, %v", r.Name, head, err)
		}
		_ = f.Close()
	}
}

// A workbook has a limit, of which the reader is told; CSV has a million rows.
func TestMillionRows(t *testing.T) {
	t.Parallel()
	table := report.Table{Name: "breaks", Columns: []report.Column{{Name: "currency"}, {Name: "amount_minor", Number: true}}, Rows: make([][]any, 1_100_000)}
	row := []any{"XAF", int64(1)}
	for i := range table.Rows {
		table.Rows[i] = row
	}
	if err := table.XLSX(io.Discard); !errors.Is(err, report.ErrTooManyRows) {
		t.Errorf("%v", err)
	}
	var b bytes.Buffer
	if err := table.CSV(&b); err != nil || !strings.Contains(b.String()[:500], "# total XAF; amount_minor: 1100000\n") || strings.Count(b.String(), "\nXAF,1") != 1_100_000 {
		t.Errorf("%.300s, %v", b.String(), err)
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
