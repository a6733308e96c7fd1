// Package await waits in tests for what can be observed, instead of for some time.
package await

import (
	"testing"
	"time"
)

// Patience is how long Until waits. It is long, since the machine may be busy.
const Patience = time.Minute

// every is the pause between two looks.
const every = 5 * time.Millisecond

// Until waits until ok returns true. Otherwise the test fails after Patience, with what was
// awaited.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Within(Patience, ok) {
		t.Fatalf("not within %v: %s", Patience, what)
	}
}

// Within reports whether ok returns true within a time.
func Within(d time.Duration, ok func() bool) bool {
	for end := time.Now().Add(d); !ok(); time.Sleep(every) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
