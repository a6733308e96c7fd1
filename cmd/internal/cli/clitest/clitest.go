package clitest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"quittance/cmd/internal/cli"
)

// Run runs a command line of a production program that has one command only.
func Run(t testing.TB, c cli.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return RunAll(t, []cli.Command{c}, args...)
}

// RunAll runs a command line of a production program that has several commands, with the words of them all.
func RunAll(t testing.TB, all []cli.Command, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Program{Name: "quittance", Groups: []cli.Group{{Commands: all}}}.Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// Generated checks that a document ends with begin and, after an empty line, want. With update it writes the
// document so. how is the command that does that.
func Generated(t testing.TB, file, begin, want string, update bool, how string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, made, found := strings.Cut(string(b), begin)
	if !found {
		t.Fatalf("%s lacks the line %s", file, begin)
	}
	want = "\n" + want
	if update {
		if err := os.WriteFile(file, []byte(head+begin+want), 0o644); err != nil { //nolint:gosec // a document that everybody reads
			t.Fatal(err)
		}
	} else if made != want {
		t.Errorf("%s does not have the rights of the table in cmd/internal/roles: run %s", file, how)
	}
}
