package cli

import "testing"

// Hints name the program that was called.
func TestNames(t *testing.T) {
	t.Parallel()
	if got := (Program{Name: "quittance-dev"}).naming("`quittance keys list` shows them"); got != "`quittance-dev keys list` shows them" {
		t.Error(got)
	}
}
