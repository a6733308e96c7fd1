package main

import (
	"strings"
	"testing"
)

// The list begins with what is behind. What a registry calls the latest may be older than what we
// have, and a version for trial is no newer one.
func TestWrite(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := write(&b, []part{
		{"npm", "a", "26.7.3-stable.1", "2026-09-18", "26.5.3", "2026-07-13"},
		{"jar", "b", "1.9.0", "", newest([]string{"1.9.0", "1.10.0", "2.0.0-alpha1", "2.0.0.RC1", "1.9.9"}), ""},
		{"debian", "c", "1", "", unknown, ""},
	})
	lines := strings.Split(b.String(), "\n")
	if err != nil || len(lines) != 6 || strings.Join(strings.Fields(lines[1]), " ") != "jar b 1.9.0 unknown 1.10.0 unknown" || lines[4] != "1 of 3 have a newer version" {
		t.Errorf("%v\n%s", err, b.String())
	}
	if newest([]string{"1.0-beta1"}) != unknown {
		t.Error("a version for trial is the newest")
	}
}
