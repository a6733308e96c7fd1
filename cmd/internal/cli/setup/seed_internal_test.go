package setup

import (
	"errors"
	"fmt"
	"testing"

	"quittance/internal/form"
)

// The faults of a registry file are listed, one on each line; another error stays as it is.
func TestFileFaults(t *testing.T) {
	t.Parallel()
	if other := errors.New("other"); !errors.Is(fileFaults(other), other) {
		t.Error("another error is changed")
	}
	err := fileFaults(fmt.Errorf("applying: %w", &form.FaultsError{Faults: []form.Fault{{Message: "a is required."}, {Message: "b is required."}}}))
	if want := "registry file refused, nothing changed; faults: 2\n  a is required.\n  b is required."; err.Error() != want {
		t.Errorf("%q", err)
	}
}
