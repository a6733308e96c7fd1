package cli

import (
	"bytes"
	"testing"
)

// runCommand runs a command line of a production program that has one command only.
func runCommand(t testing.TB, c Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Program{Name: "quittance", Groups: []Group{{Commands: []Command{c}}}}.Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}
