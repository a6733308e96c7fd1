package jobs_test

import (
	"testing"
	"time"

	"quittance/internal/jobs"
)

// The page offered to send what is left of a job whose row nobody had signed: its conditions are whatever somebody wrote there.
func TestForgedJobIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	j := jobs.Job{State: jobs.Refused, StartedAt: time.Unix(1, 0), Total: 2, Done: 1}
	if !j.Again() {
		t.Error("the rest of a job that was refused cannot be sent")
	}
	if j.Code = jobs.CodeNotBelieved; j.Again() {
		t.Error("the rest of a job that nobody has asked for can be sent")
	}
}
