package payday_test

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"quittance/dev/payday"
	"quittance/internal/contact"
	"quittance/internal/disbursements/lines"
)

// Both kinds of files have the same lines for whoever imports them, and no fault.
func TestFilesAreTaken(t *testing.T) {
	t.Parallel()
	want := []payday.Line{
		{Ref: "a-000000", Amount: 1000, Mode: "mtn", Phone: "06 600 00 01"}, {Ref: "a-000001", Amount: 1001, Mode: "airtel", Phone: "05 500 00 01"},
	}
	account := func(code, prefix string) lines.Account {
		return lines.Account{Code: code, Currency: "XAF", Modes: []string{code}, Country: "242", Phone: func(text string) (string, error) { return contact.MobileOf(text, prefix) }}
	}
	rules := lines.Rules{Currency: "XAF", Accounts: []lines.Account{account("mtn", "06"), account("airtel", "05")}}
	for name, write := range map[string]func(io.Writer, []payday.Line) error{"CSV": payday.WriteCSV, "XLSX": payday.WriteXLSX} {
		var b bytes.Buffer
		if err := write(&b, want); err != nil {
			t.Fatal(err)
		}
		file, err := lines.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), rules)
		if err != nil || file.Refused() {
			t.Fatalf("%s: %v, %v", name, err, file)
		}
		var got []payday.Line
		for _, l := range file.Lines {
			phone := map[string]string{"242066000001": "06 600 00 01", "242055000001": "05 500 00 01"}[l.Content.MSISDN]
			got = append(got, payday.Line{Ref: l.Content.LineRef, Amount: l.Content.Amount, Mode: l.Content.PayoutAccount, Phone: phone})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
