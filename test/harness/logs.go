package harness

import (
	"os"
	"regexp"
	"testing"
)

// sessionID matches the id of a session, with which anybody opens its page.
var sessionID = regexp.MustCompile(`.*chs_[0-9A-Za-z]{8,}.*`)

// NamesNoSession fails the test if a file, the output of a program, has the id of a session. A
// file that does not exist has none.
func NamesNoSession(t testing.TB, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if line := sessionID.Find(text); line != nil {
		t.Errorf("%s has the id of a session, which opens its page: %s", file, line)
	}
}
