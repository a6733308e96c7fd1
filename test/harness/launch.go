package harness

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"quittance/dev/stack/program"
)

// Launch starts a program of somebody else until the test ends. Its output goes to a file,
// whose end is logged if the test fails. The channel is closed when the program has ended.
func Launch(t testing.TB, name string, cmd *exec.Cmd, output string) (ended <-chan struct{}) {
	t.Helper()
	out, err := os.Create(output)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // the program has its own
	cmd.Stdout, cmd.Stderr = out, out
	if ended, err = program.Launch(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, program.Tail(output, 8<<10))
		}
	})
	return ended
}
