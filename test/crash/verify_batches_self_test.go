package crash_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"quittance/dev/payday"
	"quittance/disbursement"
)

// soundPayday returns a small run of batches in which all is well: lines that are paid, refused, in doubt, undecided and
// then paid, and one that the operator says it has paid.
func soundPayday() paidOut {
	r := paidOut{states: map[string]disbursement.Line{}, batches: map[string]disbursement.Status{"dsb_1": disbursement.StatusDone}, undecided: map[string]bool{"line-3": true}}
	for i, l := range []struct {
		digits   string
		status   disbursement.LineStatus
		payments int
	}{
		{"01", disbursement.LinePaid, 1},
		{"04", disbursement.LineRefused, 0},
		{payeeDoubt, disbursement.LineRefused, 1},
		{payeeWaits, disbursement.LinePaid, 1},
		{payeeUnpaid, disbursement.LinePaid, 0},
	} {
		w := wanted{ref: fmt.Sprintf("line-%d", i), amount: int64(500 + i), payee: "660000" + l.digits, digits: l.digits}
		r.lines = append(r.lines, w)
		r.ledger = append(r.ledger, payday.Payout{Operator: "mtn", Amount: strconv.Itoa(500 + i), Payee: "2420" + w.payee, Payments: l.payments})
		r.states[w.ref] = disbursement.Line{Ref: w.ref, Status: l.status, Attempt: 1, Unproven: l.digits == payeeDoubt}
	}
	return r
}

// The verdict sees each thing that can go wrong.
func TestSettledSees(t *testing.T) {
	t.Parallel()
	if s := settled(soundPayday()); !s.clean() || s.String() != "lines=5 paid=3 returned=0 paid_twice=0 lost=0 stuck=0 cases=faults (2)" || s.unseen != 1 {
		t.Fatalf("%s, unseen %d, %q", s, s.unseen, s.findings)
	}
	state := func(r *paidOut, ref string, change func(*disbursement.Line)) {
		l := r.states[ref]
		change(&l)
		r.states[ref] = l
	}
	for name, c := range map[string]struct {
		spoil func(*paidOut)
		want  string
	}{
		"the money moves once more": {func(r *paidOut) { r.ledger[0].Payments = 2 }, "lines=5 paid=3 returned=0 paid_twice=1 lost=0 stuck=0 cases=faults (2)"},
		"a second payout of a line": {func(r *paidOut) { r.ledger = append(r.ledger, r.ledger[0]) }, "lines=5 paid=3 returned=0 paid_twice=1 lost=0 stuck=0 cases=faults (2)"},
		"a line in doubt is paid again": {func(r *paidOut) {
			r.ledger = append(r.ledger, r.ledger[2])
		}, "lines=5 paid=3 returned=0 paid_twice=1 lost=0 stuck=0 cases=faults (2)"},
		"paid and not told": {func(r *paidOut) {
			state(r, "line-0", func(l *disbursement.Line) { l.Status = disbursement.LineRefused })
		}, "lines=5 paid=3 returned=0 paid_twice=0 lost=1 stuck=0 cases=faults (2)"},
		"told and not paid":  {func(r *paidOut) { r.ledger[0].Payments = 0 }, "lines=5 paid=2 returned=0 paid_twice=0 lost=1 stuck=0 cases=faults (2)"},
		"not in the stores":  {func(r *paidOut) { delete(r.states, "line-1") }, "lines=5 paid=3 returned=0 paid_twice=0 lost=1 stuck=0 cases=faults (2)"},
		"nobody ever knows":  {func(r *paidOut) { state(r, "line-0", func(l *disbursement.Line) { l.Status = disbursement.LineSent }) }, "lines=5 paid=3 returned=0 paid_twice=0 lost=0 stuck=1 cases=faults (2)"},
		"a batch that waits": {func(r *paidOut) { r.batches["dsb_1"] = disbursement.StatusReleasing }, "lines=5 paid=3 returned=0 paid_twice=0 lost=0 stuck=1 cases=faults (2)"},
		"nobody is asked":    {func(r *paidOut) { delete(r.undecided, "line-3") }, "lines=5 paid=3 returned=0 paid_twice=0 lost=0 stuck=0 cases=1 of 2 (1)"},
		"a doubt is dropped": {func(r *paidOut) { state(r, "line-2", func(l *disbursement.Line) { l.Unproven = false }) }, "lines=5 paid=3 returned=0 paid_twice=0 lost=1 stuck=0 cases=1 of 2 (1)"},
		"asked about another line": {func(r *paidOut) {
			delete(r.undecided, "line-3")
			state(r, "line-0", func(l *disbursement.Line) { l.Contested, l.Case = true, disbursement.CaseConflict })
		}, "lines=5 paid=3 returned=0 paid_twice=0 lost=0 stuck=0 cases=2 of 2 (2)"},
		"asked for no reason": {func(r *paidOut) {
			state(r, "line-0", func(l *disbursement.Line) { l.Contested, l.Case = true, disbursement.CaseConflict })
		}, "lines=5 paid=3 returned=0 paid_twice=0 lost=0 stuck=0 cases=3 of 2 (3)"},
	} {
		r := soundPayday()
		c.spoil(&r)
		if s := settled(r); s.clean() || s.String() != c.want || len(s.findings) == 0 && name != "nobody is asked" {
			t.Errorf("%s: %s, %q", name, s, s.findings)
		}
	}
	strange := soundPayday()
	strange.ledger[0].Payee = "242066000099"
	if s := settled(strange); s.clean() || s.strangers != 1 {
		t.Errorf("a payee whom no line names: %+v", s)
	}
	back := soundPayday()
	now := time.Now()
	back.ledger[0].ReturnedAt = &now
	if s := settled(back); !s.clean() || s.returned != 1 {
		t.Errorf("money that came back: %+v", s)
	}
}
