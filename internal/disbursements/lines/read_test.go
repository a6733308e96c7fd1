package lines_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"quittance/disbursement"
	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
)

// wantGood is what is sealed of good.
func wantGood() []digest.Line {
	return []digest.Line{
		{
			LineRef: "S-0001", Name: "NGOMA JEAN", Amount: 150000, Currency: "XAF", PaymentMode: "MOMO", PayoutAccount: "mtn", MSISDN: "242066000001",
			Purpose: "SALARY 11/2026",
		},
		{LineRef: "S-0002", Name: "MBOUNGOU PAULINE", Amount: 98000, Currency: "XAF", PaymentMode: "AIRTEL", PayoutAccount: "airtel", MSISDN: "242055000001", Corrects: "R-0001"},
		{LineRef: "S-0003", Name: "OKEMBA ALBERT", Amount: 450000, Currency: "XAF", PaymentMode: "VIREMENT", PayoutAccount: "bank", Number: goodRIB, BIC: "BCCGCGCG"},
		{LineRef: "S-0004", Name: "SITA MARIE", Amount: 1, Currency: "XAF", PaymentMode: "BANK", PayoutAccount: "bank", IBAN: goodIBAN},
	}
}

// The same lines come from each separator, encoding and end of line, from headers in either language and any order, and
// from workbooks with inline and with shared texts.
func TestGoodFiles(t *testing.T) {
	t.Parallel()
	plain := good().csv(",")
	turned := table{}
	for _, row := range good() {
		row = slices.Clone(row)
		slices.Reverse(row)
		turned = append(turned, row)
	}
	slices.Reverse(turned[1:]) // the lines come sorted all the same
	french := good()
	french[0] = []string{"référence", "BENEFICIAIRE", "Montant", "devise", "Mode-de-paiement", "téléphone", "iban", "RIB", "bic", "motif", "corrige"}
	names := good()
	names[0] = []string{"line_ref", "name", "amount", "currency", "payment_mode", "msisdn", "iban", "number", "bic", "purpose", "corrects"}
	utf16 := func(order unicode.Endianness) []byte {
		out, err := unicode.UTF16(order, unicode.UseBOM).NewEncoder().Bytes(plain)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	windows, err := charmap.Windows1252.NewEncoder().Bytes(french.csv(";"))
	if err != nil {
		t.Fatal(err)
	}
	shared, swap := "", map[string]string{}
	for i, row := range good() {
		for j, text := range row {
			swap[fmt.Sprintf("%c%d", 'A'+j, i+1)] = fmt.Sprintf(`<c r="REF" t="s"><v>%d</v></c>`, i*len(row)+j)
			head, tail := text[:len(text)/2], text[len(text)/2:]
			shared += `<si><r><rPr><b/></rPr><t xml:space="preserve">` + escape.Replace(head) + `</t></r><r><t>` + escape.Replace(tail) + `</t></r><rPh sb="0" eb="1"><t>reading</t></rPh></si>`
		}
	}
	for name, file := range map[string][]byte{
		"comma": plain, "semicolon": good().csv(";"), "tab": good().csv("\t"), "line feeds": bytes.ReplaceAll(plain, []byte("\r\n"), []byte("\n")),
		"no last line end": bytes.TrimSuffix(plain, []byte("\r\n")), "empty rows at the end": append(slices.Clone(plain), "\r\n\r\n,,,,,,,,,,\r\n"...),
		"byte order mark": append([]byte("\ufeff"), plain...), "UTF-16 little": utf16(unicode.LittleEndian), "UTF-16 big": utf16(unicode.BigEndian),
		"Windows-1252": windows, "French": french.csv(";"), "names": names.csv(","), "other order": turned.csv(";"),
		"quoted":         []byte(`"` + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(string(plain), "\r\n"), ",", `","`), "\r\n", "\"\r\n\"") + `"`),
		"columns beyond": bytes.ReplaceAll(plain, []byte("\r\n"), []byte(",,\r\n")),
		"workbook":       book{sheets: []string{good().worksheet("", "", nil)}}.bytes(t),
		"strict workbook": bytes.Clone(book{sheets: []string{strings.ReplaceAll(good().worksheet("", "", nil), "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
			"http://purl.oclc.org/ooxml/spreadsheetml/main")}}.bytes(t)),
		"prefixes": book{sheets: []string{strings.NewReplacer("</", "</x:", "<", "<x:", "xmlns=", "xmlns:x=").Replace(good().worksheet("", "", nil))}}.bytes(t),
		"shared":   book{sheets: []string{good().worksheet("", "", swap)}, shared: shared}.bytes(t),
		"amounts as numbers": book{sheets: []string{good().worksheet("", "", map[string]string{
			"C2": `<c r="REF"><v>150000</v></c>`, "C3": `<c r="REF" t="n" s="1"><v>9.8E4</v></c>`, "C4": `<c r="REF" s="2"><v>450000.0</v></c>`, "C5": `<c r="REF"><v>1</v></c>`,
		})}, formats: `<xf numFmtId="3"/><xf numFmtId="164"/>`, codes: `<numFmt numFmtId="164" formatCode="_-* #,##0\ [$FCFA-40C]_-"/>`}.bytes(t),
		"as LibreOffice writes": book{
			sheets: []string{good().worksheet(`<sheetPr filterMode="false"><pageSetUpPr fitToPage="false"/></sheetPr><cols><col collapsed="false" customWidth="false" hidden="false" `+
				`outlineLevel="0" max="1024" min="1" style="0" width="11.53"/></cols>`, `<printOptions headings="false"/>`, rowsOf(
				` customFormat="false" ht="12.8" hidden="false" customHeight="false" outlineLevel="0" collapsed="false"`))},
			states: []string{"visible"},
		}.bytes(t),
		"as Excel writes": book{sheets: []string{strings.Replace(good().worksheet(`<sheetViews><sheetView tabSelected="1" workbookViewId="0"/></sheetViews>`+
			`<sheetFormatPr baseColWidth="10" defaultRowHeight="15" x14ac:dyDescent="0.25"/>`, `<pageMargins left="0.7"/>`, rowsOf(` spans="1:11" x14ac:dyDescent="0.25"`)),
			"<worksheet ", `<worksheet xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" mc:Ignorable="x14ac" `+
				`xmlns:x14ac="http://schemas.microsoft.com/office/spreadsheetml/2009/9/ac" `, 1)}}.bytes(t),
		"empty sheets": book{sheets: []string{table{}.worksheet("", "", nil), good().worksheet("", "", nil), table{{"", ""}}.worksheet("", "", nil)}}.bytes(t),
		"instructions": book{
			sheets: []string{table{{"Read this", "Lisez ceci", "x"}}.worksheet("", `<mergeCells><mergeCell ref="A1:B1"/></mergeCells>`, nil), good().worksheet("", "", nil)},
			names:  []string{"Instructions"},
		}.bytes(t),
		"no references": book{sheets: []string{`<worksheet ` + xmlMain + `><sheetData>` + bare(good()) + `</sheetData></worksheet>`}}.bytes(t),
		"other elements": book{sheets: []string{strings.Replace(good().worksheet(`<sheetPr/><dimension ref="A1"/><cols><col min="1" max="3" width="9" hidden="0"/></cols>`,
			`<x14:other xmlns:x14="urn:x"><row><c/></row></x14:other>`, nil), "</row>", `<extLst><ext/></extLst></row>`, 1)}}.bytes(t),
	} {
		f := read(t, file, rules())
		if f.Refused() || !reflect.DeepEqual(contents(f.Lines), wantGood()) {
			t.Errorf("%s: %+v\n%s", name, contents(f.Lines), faults(f))
		}
		for _, l := range f.Lines {
			if l.Changes != nil {
				t.Errorf("%s: %+v", name, l.Changes)
			}
		}
	}
}

// rowsOf has attributes for each row of good.
func rowsOf(attributes string) map[string]string {
	swap := map[string]string{}
	for i := range good() {
		swap[fmt.Sprint("row", i+1)] = attributes
	}
	return swap
}

// bare writes rows and cells without their references, as some writers do.
func bare(t table) string {
	var b strings.Builder
	for _, row := range t {
		b.WriteString("<row>")
		for _, text := range row {
			b.WriteString(`<c t="str"><v>` + escape.Replace(text) + `</v></c>`)
		}
		b.WriteString("</row>")
	}
	return b.String()
}

// covered has the kinds of faults that damage files show. TestDamage and the tests within it fill it one after another.
type covered map[lines.FaultKind]bool

func (c covered) check(t *testing.T, name string, file []byte, r lines.Rules, want string) {
	t.Helper()
	f := read(t, file, r)
	for _, fault := range f.Faults {
		c[fault.Kind] = true
	}
	if got := faults(f); got != want || f.Lines != nil || f.Count != len(f.Faults) {
		t.Errorf("%s: %d lines, %d faults\n%s\nwant\n%s", name, len(f.Lines), f.Count, got, want)
	}
}

// Each damage refuses the file, with row, column and kind. No kind is without a file that has it.
func TestDamage(t *testing.T) {
	t.Parallel()
	seen := covered{}
	damagedTexts(t, seen)
	damagedShapes(t, seen)
	damagedBooks(t, seen)
	damagedCells(t, seen)
	limited := []lines.FaultKind{lines.FaultTooMany, lines.FaultTooLarge, lines.FaultExpands} // TestLimits
	for _, kind := range lines.FaultKinds() {
		if !seen[kind] && !slices.Contains(limited, kind) {
			t.Errorf("no file has the fault %s", kind)
		}
	}
}

// Columns of good, by their number.
const (
	cRef = iota
	cName
	cAmount
	cCurrency
	cMode
	cPhone
	cIBAN
	cNumber
	cBIC
	cPurpose
	cCorrects
)

// damagedTexts are the same in CSV and in text cells of a workbook.
func damagedTexts(t *testing.T, seen covered) {
	t.Helper()
	for _, x := range []struct {
		row, column int
		text, want  string
	}{
		{1, cRef, "", "row 2, column A (line_ref): missing"},
		{1, cRef, "S-0002", "row 3, column A (line_ref): line_ref_twice"},
		{1, cRef, " S-0001", "row 2, column A (line_ref): spaces"},
		{1, cRef, "S-0001\u00a0", "row 2, column A (line_ref): spaces"},
		{1, cRef, "S-é", "row 2, column A (line_ref): character"},
		{1, cRef, "S-\u200b0001", "row 2, column A (line_ref): invisible"},
		{1, cRef, "S\u202e0001", "row 2, column A (line_ref): invisible"},
		{1, cRef, "S\u00ad1", "row 2, column A (line_ref): invisible"},
		{1, cRef, "S\ufffd1", "row 2, column A (line_ref): invisible"},
		{1, cRef, "2.02611E+11", "row 2, column A (line_ref): scientific"},
		{1, cRef, "2,02611E+11", "row 2, column A (line_ref): scientific"},
		{1, cRef, "'0001", "row 2, column A (line_ref): apostrophe"},
		{1, cRef, `="0001"`, "row 2, column A (line_ref): formula"},
		{1, cRef, "-1", "row 2, column A (line_ref): formula"},
		{1, cRef, strings.Repeat("x", 141), "row 2, column A (line_ref): length"},
		{1, cName, "", "row 2, column B (name): missing"},
		{1, cName, "محمد الأمين", "row 2, column B (name): script"},
		{1, cName, "李小龙", "row 2, column B (name): script"},
		{1, cName, "JEAN 😀", "row 2, column B (name): script"},
		{1, cName, "JEAN\u2028NGOMA", "row 2, column B (name): invisible"},
		{1, cName, strings.Repeat("x", 71), "row 2, column B (name): length"},
		{1, cName, strings.Repeat("œ", 36), "row 2, column B (name): length"},
		{1, cName, "@SUM(A1)", "row 2, column B (name): formula"},
		{1, cName, "＝1+1", "row 2, column B (name): formula"},
		{1, cName, "#N/A", "row 2, column B (name): error_value"},
		{1, cName, "#NOM?", "row 2, column B (name): error_value"},
		{1, cName, "########", "row 2, column B (name): error_value"},
		{1, cName, "\u00a0", "row 2, column B (name): missing"},
		{1, cAmount, "", "row 2, column C (amount): missing"},
		{1, cAmount, "abc", "row 2, column C (amount): amount"},
		{1, cAmount, "1500 FCFA", "row 2, column C (amount): amount"},
		{1, cAmount, "+1500", "row 2, column C (amount): amount"},
		{1, cAmount, "0150", "row 2, column C (amount): amount"},
		{1, cAmount, "٣", "row 2, column C (amount): amount"},
		{1, cAmount, "150 000", "row 2, column C (amount): thousands"},
		{1, cAmount, "150\u202f000", "row 2, column C (amount): thousands"},
		{1, cAmount, "150.000", "row 2, column C (amount): thousands"},
		{1, cAmount, "150,000", "row 2, column C (amount): thousands"},
		{1, cAmount, "150.000,00", "row 2, column C (amount): thousands"},
		{1, cAmount, "150000.00", "row 2, column C (amount): decimals"},
		{1, cAmount, "150000,5", "row 2, column C (amount): decimals"},
		{1, cAmount, "1.5E+05", "row 2, column C (amount): scientific"},
		{1, cAmount, "2E5", "row 2, column C (amount): scientific"},
		{1, cAmount, "01/11/2026", "row 2, column C (amount): date"},
		{1, cAmount, "2026-11-01 00:00:00", "row 2, column C (amount): date"},
		{1, cAmount, "0", "row 2, column C (amount): not_positive"},
		{1, cAmount, "-150000", "row 2, column C (amount): not_positive"},
		{1, cAmount, "(150000)", "row 2, column C (amount): not_positive"},
		{1, cAmount, "9007199254740992", "row 2, column C (amount): amount_large"},
		{1, cAmount, "99999999999999999999", "row 2, column C (amount): amount_large"},
		{1, cAmount, "9007199254740991", "row 3, column C (amount): sum"},
		{1, cCurrency, "", "row 2, column D (currency): missing"},
		{1, cCurrency, "EUR", "row 2, column D (currency): currency"},
		{1, cCurrency, "xaf", "row 2, column D (currency): currency"},
		{1, cCurrency, "FCFA", "row 2, column D (currency): currency"},
		{1, cMode, "", "row 2, column E (payment_mode): missing"},
		{1, cMode, "momos", "row 2, column E (payment_mode): mode"},
		{3, cMode, "SEPA", "row 4, column E (payment_mode): mode_currency"},
		{1, cPhone, "", "row 2, column F (msisdn): missing"},
		{1, cPhone, "242055000001", "row 2, column F (msisdn): operator"},
		{1, cPhone, "66000001", "row 2, column F (msisdn): phone"},
		{1, cPhone, "24266000001", "row 2, column F (msisdn): zero_lost"},
		{1, cPhone, "2.42066E+11", "row 2, column F (msisdn): scientific"},
		{1, cPhone, "33612345678", "row 2, column F (msisdn): phone"},
		{1, cPhone, "06/60/0001", "row 2, column F (msisdn): date"},
		{1, cPhone, "'242066000001", "row 2, column F (msisdn): apostrophe"},
		{1, cIBAN, goodIBAN, "row 2, column G (iban): unwanted"},
		{1, cNumber, goodRIB, "row 2, column H (number): unwanted"},
		{1, cBIC, "BCCGCGCG", "row 2, column I (bic): unwanted"},
		{3, cPhone, "242066000001", "row 4, column F (msisdn): unwanted"},
		{3, cIBAN, goodIBAN, "row 4, column H (number): two_accounts"},
		{3, cNumber, "", "row 4, column G (iban): missing"},
		{3, cNumber, goodRIB[1:], "row 4, column H (number): zero_lost"},
		{3, cNumber, goodRIB + "0", "row 4, column H (number): rib"},
		{3, cNumber, "3001100020A1512345678" + "33", "row 4, column H (number): rib"},
		{3, cNumber, "30011000202151234567834", "row 4, column H (number): rib_key"},
		{3, cNumber, "30011000202151234576833", "row 4, column H (number): rib_key"},
		{3, cNumber, "30011000202151200000000", "row 4, column H (number): digits"},
		{3, cNumber, "3.0011E+22", "row 4, column H (number): scientific"},
		{4, cIBAN, "CG39 3001", "row 5, column G (iban): iban_length"},
		{4, cIBAN, "CG393001100020215123456783", "row 5, column G (iban): iban_length"},
		{4, cIBAN, "CG38" + goodRIB, "row 5, column G (iban): iban_check"},
		{4, cIBAN, "CG00" + goodRIB, "row 5, column G (iban): iban_check"},
		{4, cIBAN, "US39" + goodRIB, "row 5, column G (iban): iban_country"},
		{4, cIBAN, goodRIB, "row 5, column G (iban): iban"},
		{4, cIBAN, "CG1230011000202151234567834", "row 5, column G (iban): rib_key"},
		{3, cBIC, "BCCG", "row 4, column I (bic): bic"},
		{3, cBIC, "bccgcgcg", "row 4, column I (bic): bic"},
		{1, cPurpose, strings.Repeat("x", 141), "row 2, column J (purpose): length"},
		{2, cCorrects, "S-0002", "row 3, column K (corrects): corrects_self"},
		{3, cCorrects, "R-0001", "row 4, column K (corrects): corrects_twice"},
	} {
		damaged := good().with(x.row, x.column, x.text)
		seen.check(t, fmt.Sprintf("CSV, %q", x.text), damaged.csv(","), rules(), x.want)
		seen.check(t, fmt.Sprintf("XLSX, %q", x.text), book{sheets: []string{damaged.worksheet("", "", nil)}}.bytes(t), rules(), x.want)
	}
	for _, text := range []string{"a\tb", "a\x01b", "a\nb", "a\rb"} {
		seen.check(t, fmt.Sprintf("%q", text), good().with(1, cPurpose, text).csv(","), rules(), "row 2, column J (purpose): invisible")
	}
	seen.check(t, "escaped", book{sheets: []string{good().with(1, cPurpose, "a_x000D_b").worksheet("", "", nil)}}.bytes(t), rules(), "row 2, column J (purpose): invisible")
	euro := rules()
	euro.Currency, euro.Accounts = "EUR", euro.Accounts[3:]
	for text, want := range map[string]string{
		"1500": "no_decimals", "1500.5": "no_decimals", "1500.000": "no_decimals", "1.500,00": "thousands", "1,500": "thousands", "0.00": "not_positive", "1500,0O": "amount",
	} {
		sepa := table{headings[:7], {"1", "A", text, "EUR", "SEPA", "", "FR1420041010050500013M02606"}}
		seen.check(t, text, sepa.csv(";"), euro, "row 2, column C (amount): "+want)
	}
}

// damagedShapes are of CSV.
func damagedShapes(t *testing.T, seen covered) {
	t.Helper()
	plain := string(good().csv(","))
	rows := strings.SplitAfter(plain, "\r\n")
	tall := good()
	for i := range tall {
		tall[i] = append(slices.Clone(tall[i]), map[bool]string{true: "Extra", false: ""}[i == 0])
	}
	lacking := table{{"Reference", "Payee", "Amount", "Currency"}, {"1", "A", "1", "XAF"}}
	for name, x := range map[string]struct{ file, want string }{
		"empty":                {"", "no_lines"},
		"headers only":         {rows[0], "no_lines"},
		"no headers":           {strings.Join(rows[1:], ""), "row 1: header_place"},
		"title":                {"SALAIRES\r\n" + plain, "row 1: header_place"},
		"empty row first":      {"\r\n" + plain, "row 1: header_place"},
		"unknown header":       {string(tall.csv(",")), "row 1, column L: header_unknown"},
		"column twice":         {string(tall.with(0, 11, "montant").csv(",")), "row 1, column L (amount): header_twice"},
		"column missing":       {string(lacking.csv(",")), "row 1: header_missing"},
		"headers again":        {rows[0] + rows[1] + plain[:len(rows[0])] + rows[2], "row 3: header_again"},
		"empty row":            {rows[0] + rows[1] + "\r\n" + rows[2], "row 3: empty_row"},
		"empty row of commas":  {rows[0] + rows[1] + ",,,,,,,,,,\r\n" + rows[2], "row 3: empty_row"},
		"cut off":              {strings.Join(rows[:4], "") + rows[4][:20], "row 5: width\nrow 5, column D (currency): missing\nrow 5, column E (payment_mode): missing"},
		"shifted":              {rows[0] + strings.Replace(rows[2], "PAULINE", ",PAULINE", 1), shifted},
		"quotation mark":       {rows[0] + strings.Replace(rows[1], "NGOMA", `NGO"MA`, 1), "row 2: quote"},
		"open quotation mark":  {rows[0] + strings.Replace(rows[1], "NGOMA", `"NGOMA`, 1) + rows[2], "row 2: quote"},
		"long row":             {rows[0] + strings.Replace(rows[1], "NGOMA", strings.Repeat("N", 200_000), 1), "row 2: quote"},
		"UTF-16 without mark":  {strings.ReplaceAll(plain, "S", "S\x00"), "encoding"},
		"Macintosh":            {strings.Replace(plain, "JEAN", "J\x8eAN", 1), "encoding"},
		"DOS":                  {strings.Replace(plain, "JEAN", "J\x82AN", 1), "encoding"},
		"older workbook":       {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + plain, "other_format"},
		"spreadsheet's sep":    {"sep=,\r\n" + plain, "row 1: header_place"},
		"comments of a report": {"# report\r\n" + plain, "row 1: header_place"},
	} {
		seen.check(t, name, []byte(x.file), rules(), x.want)
	}
	f := read(t, []byte(rows[0]+strings.Repeat(strings.Replace(rows[1], "150000", "1,5", 1), 3000)), rules())
	if f.Count <= lines.MaxFaults || len(f.Faults) != lines.MaxFaults || f.Faults[0].Row != 2 {
		t.Errorf("%d faults of %d, the first in row %d", len(f.Faults), f.Count, f.Faults[0].Row)
	}
}

const shifted = "row 2, column C (amount): amount\nrow 2, column D (currency): currency\nrow 2, column E (payment_mode): mode\nrow 2, column L: no_header"

// zeros is a file of zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// damagedBooks are of what a person who looks at a workbook may not see.
func damagedBooks(t *testing.T, seen covered) {
	t.Helper()
	sheet, empty := good().worksheet("", "", nil), table{}.worksheet("", "", nil)
	wide := table{{"a", "b", "c", "d"}}.worksheet("", "", nil)
	other := good().with(1, cRef, "S-0009").worksheet("", "", nil)
	for name, x := range map[string]struct {
		book book
		want string
	}{
		"hidden row":            {book{sheets: []string{good().worksheet("", "", map[string]string{"row3": ` hidden="1"`})}}, "row 3: hidden_row"},
		"row without height":    {book{sheets: []string{good().worksheet("", "", map[string]string{"row3": ` ht="0" customHeight="1"`})}}, "row 3: hidden_row"},
		"hidden column":         {book{sheets: []string{good().worksheet(`<cols><col min="10" max="11" width="9" hidden="true"/></cols>`, "", nil)}}, "row 1, column J: hidden_column\nrow 1, column K: hidden_column"},
		"column without width":  {book{sheets: []string{good().worksheet(`<cols><col min="3" max="3" width="0" customWidth="1"/></cols>`, "", nil)}}, "row 1, column C: hidden_column"},
		"merged":                {book{sheets: []string{good().worksheet("", `<mergeCells count="1"><mergeCell ref="D2:D5"/></mergeCells>`, nil)}}, "merged"},
		"hidden sheet":          {book{sheets: []string{sheet, empty}, states: []string{"", "hidden"}}, "hidden_sheet"},
		"very hidden sheet":     {book{sheets: []string{empty, sheet}, states: []string{"veryHidden", ""}}, "hidden_sheet"},
		"second sheet":          {book{sheets: []string{sheet, other}}, "second_sheet"},
		"a number elsewhere":    {book{sheets: []string{sheet, table{{"", "1"}}.worksheet("", "", nil)}}, "second_sheet"},
		"lines in instructions": {book{sheets: []string{sheet, wide}, names: []string{"Lines", "Instructions"}}, "second_sheet"},
		"chart":                 {book{sheets: []string{sheet, empty}, other: map[string]string{"xl/_rels/workbook.xml.rels": chartRelations}}, "second_sheet"},
		"no lines":              {book{sheets: []string{empty}}, "no_lines"},
		"empty row":             {book{sheets: []string{strings.Replace(strings.ReplaceAll(sheet, `5"`, `7"`), "</sheetData>", "</sheetData>", 1)}}, "row 5: empty_row"},
		"no header":             {book{sheets: []string{strings.Replace(sheet, `</row><row r="3">`, `<c r="Z2" t="str"><v>1</v></c></row><row r="3">`, 1)}}, "row 2, column Z: no_header"},
		"password":              {book{}, "other_format"},
	} {
		file := x.book.bytes(t)
		if name == "password" {
			file = append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), file...)
		}
		seen.check(t, name, file, rules(), x.want)
	}
	for name, change := range map[string]func(map[string]string){
		"no sheets":     func(p map[string]string) { p["xl/workbook.xml"] = `<workbook ` + xmlMain + `><sheets/></workbook>` },
		"sheet missing": func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = "" },
		"no XML":        func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = "no XML" },
		"cut off":       func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = sheet[:len(sheet)/2] },
		"document type": func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = `<!DOCTYPE x [<!ENTITY a "b">]>` + sheet },
		"two roots":     func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = sheet + sheet },
		"other root":    func(p map[string]string) { p["xl/worksheets/sheet1.xml"] = `<worksheet xmlns="urn:x"/>` },
		"cell twice": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `r="C2"`, `r="B2"`, 1)
		},
		"cell elsewhere": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `r="C2"`, `r="C3"`, 1)
		},
		"row twice": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `row r="3"`, `row r="2"`, 1)
		},
		"two values": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `</is>`, `</is><v>1</v>`, 1)
		},
		"attribute twice": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `t="inlineStr"`, `t="inlineStr" t="s"`, 1)
		},
		"unknown type": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `t="inlineStr"`, `t="other"`, 1)
		},
		"unknown element": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `<is>`, `<w>1</w><is>`, 1)
		},
		"element in a text": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = strings.Replace(sheet, `<is><t>`, `<is><t><t>1</t>`, 1)
		},
		"text that is absent": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = good().worksheet("", "", map[string]string{"B2": `<c r="REF" t="s"><v>0</v></c>`})
		},
		"style that is absent": func(p map[string]string) {
			p["xl/worksheets/sheet1.xml"] = good().worksheet("", "", map[string]string{"C2": `<c r="REF" s="9"><v>1</v></c>`})
		},
	} {
		parts := map[string]string{}
		change(parts)
		file := book{sheets: []string{sheet}, other: parts}.bytes(t)
		f := read(t, file, rules())
		seen[f.Faults[0].Kind] = true
		if last := f.Faults[len(f.Faults)-1]; !f.Refused() || !slices.ContainsFunc(f.Faults, func(x lines.Fault) bool { return x.Kind == lines.FaultUnreadable }) {
			t.Errorf("%s: %s", name, last)
		}
	}
	valid := book{sheets: []string{sheet}}.bytes(t)
	for name, x := range map[string]struct {
		file []byte
		want string
	}{
		"cut archive": {valid[:len(valid)-30], "unreadable"},
		"part twice":  {twice(t, sheet), "unreadable"},
		"document":    {archive(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": "<x/>"}), "other_format"},
		"binary book": {archive(t, map[string]string{"_rels/.rels": strings.ReplaceAll(rootRelations, "workbook.xml", "workbook.bin"), "xl/workbook.bin": "x"}), "other_format"},
	} {
		seen.check(t, name, x.file, rules(), x.want)
	}
}

const (
	relationTypes = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	rootRelations = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="` + relationTypes +
		`officeDocument" Target="xl/workbook.xml"/></Relationships>`
	chartRelations = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rS1" Type="` + relationTypes +
		`worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rS2" Type="` + relationTypes + `chartsheet" Target="chartsheets/sheet1.xml"/></Relationships>`
)

func archive(t *testing.T, parts map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, text := range parts {
		part, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(part, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// twice has two sheets under one name. Readers choose one of them, not all the same.
func twice(t *testing.T, sheet string) []byte {
	t.Helper()
	file := book{sheets: []string{sheet}}.bytes(t)
	in, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range in.File {
		if err := w.Copy(f); err != nil {
			t.Fatal(err)
		}
	}
	part, err := w.Create("xl/worksheets/Sheet1.xml")
	if err == nil {
		_, err = io.WriteString(part, sheet)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// bomb has a part that is small in the file and large outside: empty rows, or texts.
func bomb(t *testing.T, name, head, repeated, tail string, times int) []byte {
	t.Helper()
	file := book{sheets: []string{table{}.worksheet("", "", nil)}}.bytes(t)
	in, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	for _, f := range in.File {
		if f.Name != name {
			err = errors.Join(err, w.Copy(f))
		}
	}
	part, err2 := w.Create(name)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(part, head)
	for range times {
		_, err2 = io.WriteString(part, repeated)
		err = errors.Join(err, err2)
	}
	_, err2 = io.WriteString(part, tail)
	if err := errors.Join(err, err2, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func manyRelations() string {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, `<Relationship Id="r%d" Target="x"/>`, i)
	}
	return b.String() + `</Relationships>`
}

// directory has so many parts that their list alone would be large.
func directory(t *testing.T) []byte {
	t.Helper()
	parts := map[string]string{}
	for i := range 60_000 {
		parts[fmt.Sprint(i)] = ""
	}
	return archive(t, parts)
}

// damagedCells are of what a spreadsheet says of a cell beside its text.
func damagedCells(t *testing.T, seen covered) {
	t.Helper()
	formats := ""
	codes := []string{
		"0%", "0.00E+00", "# ?/?", "dd/mm/yyyy", "[h]:mm", "#,##0,", `0"000"`, `0\0`, "0*0", ";;;", `"150000"`, "[>100]0;0", `0;[<5]"x"`, `[$900-40C]0`, "mmm\\-yy", "", "@@",
	}
	declared := ""
	for i, code := range codes {
		formats += fmt.Sprintf(`<xf numFmtId="%d"/>`, 164+i)
		declared += fmt.Sprintf(`<numFmt numFmtId="%d" formatCode="%s"/>`, 164+i, escape.Replace(code))
	}
	formats += `<xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="49"/>`
	check := func(ref, cell, want string) {
		t.Helper()
		f := book{sheets: []string{good().worksheet("", "", map[string]string{ref: cell})}, formats: formats, codes: declared}.bytes(t)
		seen.check(t, ref+" "+cell, f, rules(), want)
	}
	for i, code := range codes {
		want := "shown"
		if strings.ContainsAny(code, "dh") || strings.Contains(code, "mmm") {
			want = "date"
		}
		check("C2", fmt.Sprintf(`<c r="REF" s="%d"><v>150000</v></c>`, i+1), "row 2, column C (amount): "+want)
	}
	dates := book{
		sheets: []string{good().worksheet("", "", map[string]string{"C2": `<c r="REF"><v>46356</v></c>`})},
		other:  map[string]string{"xl/styles.xml": `<styleSheet ` + xmlMain + `><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>`},
	}
	seen.check(t, "the first style is a date", dates.bytes(t), rules(), "row 2, column C (amount): date")
	for _, x := range []struct{ ref, cell, want string }{
		{"C2", `<c r="REF"><f>A1*2</f><v>150000</v></c>`, "row 2, column C (amount): formula"},
		{"C2", `<c r="REF"><f aca="false">A1*2</f></c>`, "row 2, column C (amount): formula"},
		{"B2", `<c r="REF" t="str"><f>B3</f><v>NGOMA JEAN</v></c>`, "row 2, column B (name): formula"},
		{"C2", `<c r="REF" t="e"><v>#REF!</v></c>`, "row 2, column C (amount): error_value"},
		{"E2", `<c r="REF" t="b"><v>1</v></c>`, "row 2, column E (payment_mode): boolean"},
		{"C2", `<c r="REF" t="d"><v>2026-11-30T00:00:00</v></c>`, "row 2, column C (amount): date"},
		{"C2", fmt.Sprintf(`<c r="REF" s="%d"><v>46356</v></c>`, len(codes)+1), "row 2, column C (amount): date"},
		{"C2", fmt.Sprintf(`<c r="REF" s="%d"><v>1500</v></c>`, len(codes)+2), "row 2, column C (amount): shown"},
		{"A2", fmt.Sprintf(`<c r="REF" s="%d"><v>46356</v></c>`, len(codes)+1), "row 2, column A (line_ref): date"},
		{"C2", `<c r="REF"><v>1500.5</v></c>`, "row 2, column C (amount): decimals"},
		{"C2", `<c r="REF"><v>149999.99999999997</v></c>`, "row 2, column C (amount): decimals"},
		{"C2", `<c r="REF"><v>0</v></c>`, "row 2, column C (amount): not_positive"},
		{"C2", `<c r="REF"><v>-1</v></c>`, "row 2, column C (amount): not_positive"},
		{"C2", `<c r="REF"><v>1234567890123450</v></c>`, "row 2, column C (amount): digits"},
		{"C2", `<c r="REF"><v>123456789012</v></c>`, "row 2, column C (amount): scientific"},
		{"C2", `<c r="REF"><v>1E+20</v></c>`, "row 2, column C (amount): digits"},
		{"C2", `<c r="REF"><v>NaN</v></c>`, "row 2, column C (amount): amount"},
		{"C2", `<c r="REF"><v>1_0</v></c>`, "row 2, column C (amount): amount"},
		{"A2", `<c r="REF"><v>1</v></c>`, "row 2, column A (line_ref): number"},
		{"F2", `<c r="REF"><v>66000001</v></c>`, "row 2, column F (msisdn): number"},
		{"F2", fmt.Sprintf(`<c r="REF" s="%d"><v>242066000001</v></c>`, len(codes)+3), "row 2, column F (msisdn): number"},
		{"H4", `<c r="REF"><v>3.00110002021512E+22</v></c>`, "row 4, column H (number): digits"},
		{"H4", `<c r="REF"><v>30011000202151200000000</v></c>`, "row 4, column H (number): digits"},
		{"A1", `<c r="REF"><v>1</v></c>`, "row 1: header_missing\nrow 1, column A: header_unknown"},
	} {
		check(x.ref, x.cell, x.want)
	}
}

// Files that are too large, in themselves or unpacked, end with a fault and not with the memory of the machine.
func TestLimits(t *testing.T) {
	t.Parallel()
	seen, rows := covered{}, strings.SplitAfter(string(good().csv(",")), "\r\n")
	var many strings.Builder
	many.WriteString(rows[0])
	for i := range disbursement.MaxLines + 1 {
		fmt.Fprintf(&many, "%d,A,1,XAF,MOMO,242066000001,,,,,\n", i)
	}
	seen.check(t, "too many", []byte(many.String()), rules(), "row 100002: too_many_lines")
	large, err := lines.Read(zeros{}, lines.MaxBytes+1, rules())
	if err != nil || faults(large) != "too_large" {
		t.Errorf("%v, %s", err, faults(large))
	}
	for name, x := range map[string]struct {
		file []byte
		want string
	}{
		"bomb of rows":    {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`><sheetData>`, strings.Repeat("<row></row>", 100_000), `</sheetData></worksheet>`, 300), "unreadable"},
		"bomb of space":   {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`>`, "<a>"+strings.Repeat(" ", 1<<19)+"</a>", `</worksheet>`, 600), "expands"},
		"bomb of texts":   {bomb(t, "xl/sharedStrings.xml", `<sst `+xmlMain+`>`, "<si><t>"+strings.Repeat("0", 1000)+"</t></si>", `</sst>`, 70_000), "expands"},
		"empty texts":     {bomb(t, "xl/sharedStrings.xml", `<sst `+xmlMain+`>`, strings.Repeat("<si/>", 1000), `</sst>`, 5000), "expands"},
		"long text":       {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`><sheetData><row><c t="str"><v>`, strings.Repeat("0", 1000), `</v></c></row></sheetData></worksheet>`, 2000), "unreadable"},
		"long comment":    {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`><!--`, strings.Repeat("0", 1000), `--></worksheet>`, 2000), "unreadable"},
		"text in parts":   {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`><sheetData><row><c t="str"><v>`, "<![CDATA[0000]]><!-- -->", `</v></c></row></sheetData></worksheet>`, 100_000), "unreadable"},
		"deep":            {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`>`, "<a>", "", 100_000), "unreadable"},
		"deep, foreign":   {bomb(t, "xl/worksheets/sheet1.xml", `<worksheet `+xmlMain+`>`, `<a xmlns="b">`, "", 100_000), "unreadable"},
		"many formats":    {bomb(t, "xl/styles.xml", `<styleSheet `+xmlMain+`><cellXfs>`, `<xf/>`, "</cellXfs></styleSheet>", 70_000), "unreadable"},
		"long format":     {bomb(t, "xl/styles.xml", `<styleSheet `+xmlMain+`><numFmts><numFmt numFmtId="164" formatCode="`, "0", `"/></numFmts></styleSheet>`, 5_000), "unreadable"},
		"many references": {bomb(t, "xl/_rels/workbook.xml.rels", `<Relationships>`, "", manyRelations(), 1), "unreadable"},
		"many sheets":     {bomb(t, "xl/workbook.xml", `<workbook `+xmlMain+`><sheets>`, `<sheet name="a"/>`, "</sheets></workbook>", 5_000), "unreadable"},
		"directory":       {directory(t), "expands"},
	} {
		seen.check(t, name, x.file, rules(), x.want)
	}
}
