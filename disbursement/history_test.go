package disbursement_test

import (
	"testing"
	"time"

	"quittance/disbursement"
)

// A line that people settle as refused was not paid, whatever was said before; one that they settle as paid was, since then.
func TestHistory(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return start.Add(time.Duration(n) * time.Hour) }
	word := func(status disbursement.LineStatus) map[string]string {
		return map[string]string{disbursement.DetailWord: string(status)}
	}
	paid := disbursement.Line{Status: disbursement.LinePaid}
	returned := disbursement.Line{Status: disbursement.LineReturned}
	h := disbursement.History{}.After(disbursement.EventLinePaid, at(1), nil)
	if !h.PaidAt.Equal(at(1)) || !h.Evidenced(paid) || h.Evidenced(returned) || h.Evidenced(disbursement.Line{Status: disbursement.LineRefused}) || h.Evidenced(disbursement.Line{Status: disbursement.LinePaid, Contested: true}) {
		t.Errorf("paid: %+v", h)
	}
	part := h.After(disbursement.EventLinePart, at(2), map[string]string{disbursement.DetailReported: "300", disbursement.DetailCurrency: "XAF"})
	if len(part.Parts) != 1 || part.Parts[0] != (disbursement.Part{Amount: 300, Currency: "XAF", At: at(2)}) || !part.Evidenced(paid) || len(h.Parts) != 0 {
		t.Errorf("a part: %+v", part)
	}
	if same := h.After(disbursement.EventLineSettled, at(3), word(disbursement.LinePaid)); !same.PaidAt.Equal(at(1)) || same.Decided {
		t.Errorf("settled as it was: %+v", same)
	}
	if none := part.After(disbursement.EventLineSettled, at(3), word(disbursement.LineRefused)); !none.PaidAt.IsZero() || len(none.Parts) != 0 || none.Evidenced(paid) {
		t.Errorf("settled as refused: %+v", none)
	}
	decided := disbursement.History{}.After(disbursement.EventLineSettled, at(4), word(disbursement.LinePaid))
	if !decided.PaidAt.Equal(at(4)) || !decided.Decided || !decided.Evidenced(paid) {
		t.Errorf("settled as paid: %+v", decided)
	}
	back := decided.After(disbursement.EventLineReturned, at(5), nil)
	if !back.Evidenced(returned) || back.Evidenced(paid) || !back.ReturnedAt.Equal(at(5)) {
		t.Errorf("returned: %+v", back)
	}
	if back.After(disbursement.EventCaseOpened, at(6), nil).PaidAt != back.PaidAt {
		t.Error("another event changes the history")
	}
}
