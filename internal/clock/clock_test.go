package clock_test

import (
	"testing"
	"time"

	"quittance/internal/clock"
)

func TestNow(t *testing.T) {
	t.Parallel()
	now := clock.Now()
	if ahead := time.Until(now).Round(time.Second); ahead != 0 || now.Location() != time.UTC {
		t.Errorf("%v ahead, in %v", ahead, now.Location())
	}
	if now != now.Round(0) {
		t.Error("the time has a monotonic reading")
	}
}
