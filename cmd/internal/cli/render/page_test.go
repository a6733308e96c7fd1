package render_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quittance/cmd/internal/cli/render"
)

// Commands said "1 faults" of a file.
func TestCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n            int
		noun, want   string
		wantWithVerb string
	}{
		{0, "fault", "0 faults", "0 faults are"},
		{1, "fault", "1 fault", "1 fault is"},
		{2, "fault", "2 faults", "2 faults are"},
		{1000, "fault", "1000 faults", "1000 faults are"},
		{1, "delivery", "1 delivery", "1 delivery is"},
		{2, "delivery", "2 deliveries", "2 deliveries are"},
		{2, "key", "2 keys", "2 keys are"},
		{2, "day", "2 days", "2 days are"},
		{2, "address", "2 addresses", "2 addresses are"},
		{2, "batch", "2 batches", "2 batches are"},
		{2, "webhook endpoint", "2 webhook endpoints", "2 webhook endpoints are"},
	} {
		if got := render.Counted(c.n, c.noun); got != c.want {
			t.Errorf("%d: %q, want %q", c.n, got, c.want)
		}
		if got := render.CountedIs(int64(c.n), c.noun); got != c.wantWithVerb {
			t.Errorf("%d: %q, want %q", c.n, got, c.wantWithVerb)
		}
	}
}

// neverOne are the texts of commands whose number is a bound, or greater than 1 where they are said.
var neverOne = []string{
	"withdraws %s from %d keys", "This makes %d devices forget", "This revokes %d keys of", "names money of %d agencies and modes", // from 2 on
	"%d bytes, SHA-256", "1 to %d bytes", "at least %d replicas", "need %d replicas", "known for %d days", "of the last %d days", "more than %d days ago", "at most %d characters", "1 to %d characters", "than %d deliveries waits", "more than %d decisions", // bounds
}

// Each text of a command with a number and a noun is right for one, too: it uses Counted. Ten commands said "1 records".
func TestEveryNumberIsCounted(t *testing.T) {
	t.Parallel()
	written := regexp.MustCompile("[^\"`]{0,30}%d (?:more )?(?:[a-z]+ )?[a-z]{2,}(?:[^s\\W]s|ies)\\b[^\"`]{0,20}")
	read := 0
	err := filepath.WalkDir("..", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		read++
		text, err := os.ReadFile(path)
		for _, found := range written.FindAllString(string(text), -1) {
			if !slices.ContainsFunc(neverOne, func(known string) bool { return strings.Contains(found, known) }) {
				t.Errorf("%s: %q is wrong for 1: use render.Counted", path, found)
			}
		}
		return err
	})
	if err != nil || read < 100 {
		t.Error(fmt.Errorf("%d files: %w", read, err))
	}
}
