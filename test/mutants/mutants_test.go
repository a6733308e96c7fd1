package mutants_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"quittance/test/mutants"
	"quittance/test/servers"
)

// atOnce is how many mutants are compiled and run at the same time.
const atOnce = 2

// patience bounds the test of one mutant. Some mutants make their test wait until its own
// time limit.
const patience = 4 * time.Minute

func moduleFolder(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func all(t *testing.T) []mutants.Mutant {
	t.Helper()
	found, err := mutants.All()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 24 {
		t.Fatalf("there are %d mutants", len(found))
	}
	return found
}

// Every patch applies to the current code.
func TestPatchesApply(t *testing.T) {
	t.Parallel()
	for _, m := range all(t) {
		if _, err := m.Overlay(moduleFolder(t), t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// A broken rule of the commit path fails the tests that its patch names.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles and runs a test for each mutant")
	}
	t.Parallel()
	root, broker := moduleFolder(t), servers.Kafka(t)
	places := make(chan struct{}, atOnce)
	for _, m := range all(t) {
		if m.Program {
			continue // its test builds it
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			places <- struct{}{}
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			run := func(env []string, name string, args ...string) (string, error) {
				cmd := exec.CommandContext(ctx, name, args...)
				cmd.Dir, cmd.Env = filepath.Join(root, m.Package), append(os.Environ(), env...)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			dir := t.TempDir()
			overlay, err := m.Overlay(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			binary := filepath.Join(dir, "mutant.test")
			if out, err := run([]string{"CGO_ENABLED=0"}, "go", "test", "-c", "-vet=off", "-ldflags=-w -s", "-overlay", overlay, "-o", binary, "."); err != nil {
				t.Fatalf("the mutant does not compile: %v\n%s", err, out)
			}
			var tops []string
			for _, test := range m.Tests {
				top, _, _ := strings.Cut(test, "/")
				tops = append(tops, top)
			}
			args := []string{"-test.run", "^(" + strings.Join(tops, "|") + ")$", "-test.timeout", patience.String()}
			if hasProperties(t, filepath.Join(root, m.Package)) {
				// The first run that fails is enough: nobody reads the shortest one, and later tests would repeat the
				// file of it. 100 runs missed a mutant now and then.
				args = append(args, "-rapid.checks", "2000", "-rapid.shrinktime", "0s", "-rapid.nofailfile")
			}
			out, err := run([]string{"QUITTANCE_TEST_KAFKA=" + broker}, binary, args...)
			for _, test := range m.Tests {
				if err == nil || !strings.Contains(out, "--- FAIL: "+test+" (") {
					t.Errorf("%s does not notice (%v):\n%s", test, err, out)
				}
			}
		})
	}
}

// hasProperties reports whether tests of the package in a folder use rapid, so that they know its flags.
func hasProperties(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"pgregory.net/rapid"`)
	})
}
