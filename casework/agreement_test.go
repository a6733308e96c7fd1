package casework_test

import (
	"errors"
	"testing"
	"time"

	"quittance/casework"
)

// An approval that is dated in the future, as somebody could date it who waits for a passkey to approve, is not carried out.
func TestApprovalFromTheFuture(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	digest := casework.Digest(map[string]string{"amount": "5000"})
	step := func(person string, at time.Time) *casework.Signed {
		return &casework.Signed{Person: person, Name: person, At: at, Signature: []byte("signed")}
	}
	a := casework.Agreement{Kind: "case", Subject: "case_1#1", Digest: digest, Proposed: step("Awa", at), Approved: step("Ben", at.Add(time.Hour))}
	verify := func(_, _ []byte) bool { return true }
	for latest, want := range map[time.Time]error{{}: nil, at.Add(time.Hour): nil, at.Add(time.Hour - time.Millisecond): casework.ErrLapsed} {
		if err := a.Check(casework.Terms{Digest: digest, Latest: latest}, verify); !errors.Is(err, want) {
			t.Errorf("approved at %s, at most %s: %v, want %v", a.Approved.At, latest, err, want)
		}
	}
}
