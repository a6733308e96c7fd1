package collect

import (
	"testing"
	"time"

	"quittance/schemas/record"
	"quittance/sinks/calls"
)

// An enquiry is not old before the processor's next enquiry is due. Every enquiry becomes
// old at some time.
func TestOldMeansThatTheNextIsDue(t *testing.T) {
	t.Parallel()
	requested := time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)
	notAfter := requested.Add(2 * time.Minute)
	old := func(kind calls.Kind, at, now time.Duration) bool {
		s := &Sink{cfg: Config{Now: func() time.Time { return requested.Add(now) }}}
		j := job{sink: s, request: record.CollectionRequest{Kind: string(kind), RequestedAt: requested.Add(at), NotAfter: notAfter}}
		return j.Old()
	}
	const day = 24 * time.Hour
	for _, step := range []struct{ at, next time.Duration }{
		{10 * time.Second, 20 * time.Second},
		{5 * time.Minute, 15 * time.Minute},
		{15 * time.Minute, time.Hour},
		{time.Hour, 6 * time.Hour},
		{6 * time.Hour, day},
		{day, 2 * day},
		{5 * day, 6 * day},
	} {
		if old(kindEnquire, step.at, step.next) {
			t.Errorf("the enquiry %v after the request is old before the next, at %v", step.at, step.next)
		}
		if !old(kindEnquire, step.at, step.at+15*time.Minute+min(5*step.at, day)+time.Second) {
			t.Errorf("the enquiry %v after the request never is old", step.at)
		}
	}
	if old(kindCollect, 0, 17*time.Minute) || !old(kindCollect, 0, 17*time.Minute+time.Second) {
		t.Error("a request for money is old fifteen minutes after not_after")
	}
}
