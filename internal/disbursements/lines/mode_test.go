package lines_test

import (
	"bytes"
	"testing"

	"quittance/internal/disbursements/lines"
)

// ERPs write payment modes in capitals, registries in small letters. The text that is signed stays as it was written.
func TestPaymentModesInAnyCase(t *testing.T) {
	t.Parallel()
	rows := good()
	wanted := rows[1][cMode]
	other := bytes.ToLower([]byte(wanted))
	if string(other) == wanted {
		other = bytes.ToUpper([]byte(wanted))
	}
	rows[1][cMode] = string(other)
	text := rows.csv(",")
	f, err := lines.Read(bytes.NewReader(text), int64(len(text)), rules())
	if err != nil || f.Refused() {
		t.Fatalf("%v, %v", f, err)
	}
	found := false
	for _, l := range f.Lines {
		found = found || l.Content.PaymentMode == string(other) && l.Content.PayoutAccount != ""
	}
	if !found {
		t.Errorf("no line has the mode %q", other)
	}
}
