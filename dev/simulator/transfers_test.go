package simulator_test

import (
	"net/http"
	"testing"

	"quittance/statement"
)

// Somebody transfers money with a payment reference in the text; the bank's statement has it, as the service reads it, and
// its reversal.
func TestTransfersOnTheBanksStatement(t *testing.T) {
	t.Parallel()
	p := newPurse(t, nil)
	ref, ok := "", false
	for ; !ok; p.n++ {
		ref, ok = p.refs.PaymentRef(p.n)
	}
	p.at(0, "09:30")
	var booked struct {
		BankRef string `json:"bank_ref"`
	}
	a := p.control("/bank/credit", `{"amount": 5100, "reference": "`+ref+`"}`)
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	a.decode(t, &booked)
	p.control("/bank/credit", `{"amount": 700, "reference": "merci"}`)
	p.at(2, "20:00")
	lines, faults := p.read("banque")
	if len(faults) > 0 || len(lines) != 2 || lines[0].PaymentRef != ref || lines[0].Amount != 5100 || lines[0].OperatorRef != booked.BankRef || lines[1].PaymentRef != "" {
		t.Fatalf("%v %+v", faults, lines)
	}
	p.fault("banque", `{"fault": "reversal", "line": "`+booked.BankRef+`", "day": "`+days[0]+`"}`)
	if lines, _ = p.read("banque"); len(lines) != 3 {
		t.Fatalf("%+v", lines)
	}
	back := 0
	for _, l := range lines {
		if l.PaymentRef == ref && l.Amount == -5100 && (l.Reversal || l.Kind == statement.KindReversal) {
			back++
		}
	}
	if back != 1 {
		t.Errorf("%+v", lines)
	}
	for _, wrong := range []string{`{}`, `{"amount": 0, "reference": "x"}`, `{"amount": 5}`, `{"amount": 5, "reference": "x", "account": "mtn"}`} {
		if a := p.call(http.MethodPost, "/control/bank/credit", wrong, nil); a.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", wrong, a.status, a.body)
		}
	}
}
