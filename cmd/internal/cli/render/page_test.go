package render_test

import (
	"testing"

	"quittance/cmd/internal/cli/render"
)

// Commands said "1 faults" of a file.
func TestCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 faults", 1: "1 fault", 2: "2 faults", 1000: "1000 faults"} {
		if got := render.Counted(n, "fault"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
