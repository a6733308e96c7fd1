package smtp

import "testing"

// A relay that answered a bare 550 to everybody for an hour suppressed the address of everybody whom
// it refused.
func TestNoMailbox(t *testing.T) {
	t.Parallel()
	for enhanced, want := range map[string]bool{"": false, "5.1.1": true, "5.1.2": true, "5.1.3": true, "5.1.6": true, "5.7.1": false, "5.2.2": false} {
		if got := noMailbox(enhanced); got != want {
			t.Errorf("%q: %v", enhanced, got)
		}
	}
}
