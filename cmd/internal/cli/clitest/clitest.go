package clitest

import (
	"bytes"
	"testing"

	"quittance/cmd/internal/cli"
)

// Run runs a command line of a production program that has one command only.
func Run(t testing.TB, c cli.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Program{Name: "quittance", Groups: []cli.Group{{Commands: []cli.Command{c}}}}.Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}
