package operatorcase

import (
	"testing"
	"time"
)

// WaitLonger has commands wait for outcomes for up to a time, so that a slow machine changes no outcome.
func WaitLonger(t *testing.T, d time.Duration) {
	t.Helper()
	answered, matched := answeredWithin, matchedWithin
	answeredWithin, matchedWithin = d, d
	t.Cleanup(func() { answeredWithin, matchedWithin = answered, matched })
}
