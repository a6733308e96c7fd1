package lines_test

import (
	"os"
	"reflect"
	"testing"

	"quittance/disbursement/digest"
	"quittance/internal/disbursements/lines"
)

// Workbooks that other libraries made (testdata/make.py): openpyxl, XlsxWriter.
func TestOtherWriters(t *testing.T) {
	t.Parallel()
	want := []digest.Line{
		{
			LineRef: "S-0001", Name: "Eleonore N'GOUABI", Amount: 150000, Currency: "XAF", PaymentMode: "MOMO", PayoutAccount: "mtn", MSISDN: "242066000001",
			Purpose: "Salaire 11/2026",
		},
		{LineRef: "S-0002", Name: "OKEMBA ALBERT", Amount: 15000000, Currency: "XAF", PaymentMode: "VIREMENT", PayoutAccount: "bank", Number: goodRIB},
		{LineRef: "S-0003", Name: "SITA & FILS", Amount: 98000, Currency: "XAF", PaymentMode: "MOMO", PayoutAccount: "mtn", MSISDN: "242066000002"},
	}
	changes := [][]lines.Change{
		{{lines.ColumnName, "Éléonore N’GOUABI", "Eleonore N'GOUABI"}, {lines.ColumnPhone, "06 600 00 01", "242066000001"}},
		{{lines.ColumnNumber, "30011 00020 21512345678 33", goodRIB}},
		nil,
	}
	for _, writer := range []string{"openpyxl", "xlsxwriter"} {
		f := read(t, stored(t, writer+"-good.xlsx"), rules())
		if f.Refused() || !reflect.DeepEqual(contents(f.Lines), want) {
			t.Errorf("%s: %+v\n%s", writer, contents(f.Lines), faults(f))
			continue
		}
		for i, l := range f.Lines {
			if l.Row != i+2 || !reflect.DeepEqual(l.Changes, changes[i]) {
				t.Errorf("%s: row %d has the changes %+v", writer, l.Row, l.Changes)
			}
		}
	}
	for name, want := range map[string]string{
		"openpyxl-bad.xlsx": `merged
second_sheet
hidden_sheet
row 1, column H: hidden_column
row 2, column C (amount): formula
row 3, column C (amount): date
row 4, column C (amount): decimals
row 5, column F (msisdn): number
row 6, column A (line_ref): number
row 7, column C (amount): shown
row 8: hidden_row
row 10, column D (currency): missing`,
		"xlsxwriter-bad.xlsx": `row 1, column H: hidden_column
row 2, column B (name): formula
row 3, column C (amount): formula
row 4, column E (payment_mode): boolean
row 5, column A (line_ref): date
row 6, column B (name): invisible
row 7: hidden_row
row 7, column G (number): unwanted`,
	} {
		if f := read(t, stored(t, name), rules()); faults(f) != want || f.Lines != nil {
			t.Errorf("%s:\n%s", name, faults(f))
		}
	}
}

func stored(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
