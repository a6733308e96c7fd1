package harness

import (
	"path/filepath"
	"testing"

	devstack "quittance/dev/stack"
)

// Ports returns n free ports. They stay free for a process that is killed and started
// again.
func Ports(t testing.TB, n int) []int {
	t.Helper()
	if n == 0 {
		return nil
	}
	out, err := devstack.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Root is the folder of the module, seen from a suite. The program finds .deps there.
const Root = "../.."

// Absolute returns the absolute path of a file of the module.
func Absolute(t testing.TB, path string) string {
	t.Helper()
	out, err := filepath.Abs(filepath.Join(Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
