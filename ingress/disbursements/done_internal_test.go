package disbursements

import (
	"testing"
	"time"

	"quittance/disbursement"
	"quittance/internal/disbursements"
)

// The address of a page with ?done= was loaded again an hour later, and said of a batch on hold that it is being paid.
func TestWhatWasDoneIsStillSo(t *testing.T) {
	t.Parallel()
	in := func(s disbursement.Status) disbursement.Batch { return disbursement.Batch{Status: s} }
	held := in(disbursement.StatusReleasing)
	held.Hold = disbursement.Hold{Since: time.Unix(1, 0), By: "a", Reason: "r"}
	asked := in(disbursement.StatusApproved)
	asked.AskedAt = time.Unix(1, 0)
	stopped := in(disbursement.StatusReleasing)
	stopped.Stopped = true
	closed := []disbursements.PausedAccount{{Code: "mtn", Closed: true}}
	for _, c := range []struct {
		step   string
		b      disbursement.Batch
		paused []disbursements.PausedAccount
		want   bool
	}{
		{"import", in(disbursement.StatusDraft), nil, true},
		{"import", in(disbursement.StatusSealed), nil, false},
		{"seal", in(disbursement.StatusSealed), nil, true},
		{"seal", in(disbursement.StatusRejected), nil, false},
		{"approve", in(disbursement.StatusSealed), nil, true},
		{"approve", in(disbursement.StatusApproved), nil, true},
		{"approve", in(disbursement.StatusRecalled), nil, false},
		{"release", in(disbursement.StatusReleasing), nil, true},
		{"release", asked, nil, true},
		{"release", held, nil, false},
		{"release", in(disbursement.StatusDone), nil, false},
		{"hold", held, nil, true},
		{"hold", in(disbursement.StatusReleasing), nil, false},
		{"resume", in(disbursement.StatusReleasing), nil, true},
		{"resume", held, nil, false},
		{"resume_first", held, nil, true},
		{"resume_first", in(disbursement.StatusReleasing), nil, false},
		{"stop", stopped, nil, true},
		{"stop", in(disbursement.StatusReleasing), nil, false},
		{"try", in(disbursement.StatusReleasing), nil, true},
		{"try", in(disbursement.StatusReleasing), closed, false},
		{"reject", in(disbursement.StatusRejected), nil, true},
		{"reject", in(disbursement.StatusSealed), nil, false},
		{"discard", in(disbursement.StatusDiscarded), nil, true},
		{"discard", in(disbursement.StatusDraft), nil, false},
		{"recall", in(disbursement.StatusRecalled), nil, true},
		{"recall", in(disbursement.StatusSealed), nil, false},
		{"anything", in(disbursement.StatusDraft), nil, false},
	} {
		if got := stillDone(c.step, c.b, c.paused); got != c.want {
			t.Errorf("%s of a batch that is %s: %v", c.step, c.b.Status, got)
		}
	}
	line := func(s disbursement.LineStatus, open bool) disbursement.Line {
		l := disbursement.Line{}
		if l.Status = s; open {
			l.Case = disbursement.CaseHeld
		}
		return l
	}
	for _, c := range []struct {
		step string
		l    disbursement.Line
		want bool
	}{
		{"settle_first", line(disbursement.LineSent, true), true},
		{"settle_first", line(disbursement.LinePaid, false), false},
		{"settle", line(disbursement.LinePaid, false), true},
		{"settle", line(disbursement.LineReady, true), false},
		{"acknowledge", line(disbursement.LineReturned, false), true},
		{"acknowledge", line(disbursement.LineReturned, true), false},
		{"dropped", line(disbursement.LineSent, true), true},
		{"dropped", line(disbursement.LinePaid, false), false},
		{"retry", line(disbursement.LineReady, false), true},
		{"retry", line(disbursement.LineRefused, false), false},
		{"cancel", line(disbursement.LineCancelled, false), true},
		{"cancel", line(disbursement.LineReady, false), false},
	} {
		if got := lineStillDone(c.step, c.l); got != c.want {
			t.Errorf("%s of a line that is %s: %v", c.step, c.l.Status, got)
		}
	}
}
