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

// Binary is the path of quittance-dev: what QUITTANCE_TEST_QUITTANCE_DEV names, else
// built once for the suite. Production is quittance in the same way, by
// QUITTANCE_TEST_QUITTANCE.
var (
	Binary     = Build("quittance-dev")
	Production = Build("quittance")
)

// Build builds one of the programs once, with further flags of go build. Without flags
// it takes the program that the environment names.
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

// Ports are free ports. A process that is killed finds its port free when it comes
// back.
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

// Root is the module's folder, seen from a suite. The program finds there what was
// fetched.
const Root = "../.."

// Absolute is the absolute path of a file of the module.
func Absolute(t testing.TB, path string) string {
	t.Helper()
	out, err := filepath.Abs(filepath.Join(Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
