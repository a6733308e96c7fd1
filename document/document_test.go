package document_test

import (
	"strings"
	"testing"
	"time"

	"quittance/document"
	"quittance/money"
)

// A receipt of money that stands says so at a glance. That of money that was given back, or of a
// test, never does.
func TestPaidMark(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC)
	agency := document.Agency{Name: "Direction générale des impôts"}
	for name, c := range map[string]struct {
		test        bool
		reversed    time.Time
		paid, stamp string
	}{
		"paid":       {paid: "PAYÉ"},
		"given back": {reversed: at, stamp: "ANNULÉE"},
		"a test":     {test: true},
		"both":       {test: true, reversed: at, stamp: "ANNULÉE"},
	} {
		r, err := document.NewReceipt(money.French, document.Payment{
			Agency: agency, Test: c.test, PaidAt: at, ReversedAt: c.reversed, Amount: 5000, Fee: 75, Currency: "XAF",
			TransactionID: "t", NoticeRef: "AV1", PaymentRef: "4821093377150264", CheckAddress: "pay.example/q",
		})
		if err != nil || r.Paid != c.paid || r.Stamp != c.stamp {
			t.Errorf("%s: marked %q and %q, want %q and %q; %v", name, r.Paid, r.Stamp, c.paid, c.stamp, err)
		}
	}
}

func TestMaskName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "", "Élise Mbemba": "É••• M•••", "  jean-pierre  N. ": "j••• N•••", "🎉 🎉": "", "محمد عبد": "م••• ع•••", "\u202eevil": "e•••",
		"a b c d e f": "a••• b••• c••• d•••", "<script>": "s•••", strings.Repeat("W", 500): "W•••", "\xff": "", "123": "",
	} {
		if got := document.MaskName(name); got != want {
			t.Errorf("%q is masked as %q, want %q", name, got, want)
		}
	}
}
