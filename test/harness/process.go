package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	devstack "quittance/dev/stack"
	"quittance/test/servers"
)

// Binary returns the path of quittance-dev: the value of QUITTANCE_TEST_QUITTANCE_DEV, or
// a binary that it builds once for the suite. Production does the same for quittance with
// QUITTANCE_TEST_QUITTANCE.
var (
	Binary     = Build("quittance-dev")
	Production = Build("quittance")
)

// Build returns a function that builds one of the programs once, with further flags of go
// build. Without flags it takes the binary that the environment names.
func Build(name string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		variable := "QUITTANCE_TEST_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if path := os.Getenv(variable); path != "" && len(flags) == 0 {
			return path, nil
		}
		dir, err := servers.Folder()
		if err != nil {
			return "", err
		}
		dir, err = os.MkdirTemp(dir, "program-")
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, name)
		cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", out}, flags...), "quittance/cmd/"+name)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the program: %w\n%s", err, text)
		}
		return out, nil
	})
}

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
