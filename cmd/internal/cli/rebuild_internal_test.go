package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A question is answered by the whole word yes; anything else, and the end of the input, is
// no. The plan is shown in any case, with the program's own name.
func TestAgree(t *testing.T) {
	t.Parallel()
	for answer, agreed := range map[string]bool{"yes\n": true, " yes \n": true, "yes": true, "y\n": false, "no\n": false, "\n": false, "": false, "no\nyes\n": false} {
		var out bytes.Buffer
		m := &Meta{Err: &out, program: Program{Name: "quittance-dev"}, cmd: &cobra.Command{}}
		m.cmd.SetIn(strings.NewReader(answer))
		var misuse *usageError
		err := m.Agree(false, "See `quittance keys list`.")
		if (err == nil) != agreed || err != nil && !errors.As(err, &misuse) {
			t.Errorf("%q: %v", answer, err)
		}
		if !strings.HasPrefix(out.String(), "See `quittance-dev keys list`.\nContinue? Type yes: ") {
			t.Errorf("%q: it asks %q", answer, &out)
		}
	}
	var out bytes.Buffer
	m := &Meta{Err: &out, cmd: &cobra.Command{}}
	m.cmd.SetIn(strings.NewReader("no\n"))
	if err := m.Agree(true, "The plan."); err != nil || out.String() != "The plan.\n" {
		t.Errorf("with --yes: %v, %q", err, &out)
	}
}
