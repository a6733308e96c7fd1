package mutants

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const patch = `Breaks something.
Package: ./a
Test: TestA
Test: TestB/c

--- a/a/x.go
+++ b/a/x.go
@@ -1,3 +1,3 @@
 one
-two
+2
 three
`

func TestOverlay(t *testing.T) {
	t.Parallel()
	m, err := parse(patch)
	if err != nil || m.Package != "./a" || strings.Join(m.Tests, " ") != "TestA TestB/c" || m.Program {
		t.Fatalf("%+v, %v", m, err)
	}
	root := t.TempDir()
	source := filepath.Join(root, "a", "x.go")
	if err := os.Mkdir(filepath.Dir(source), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("zero\none\ntwo\nthree\n")
	dir := t.TempDir()
	overlay, err := m.Overlay(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(overlay); !strings.Contains(string(b), source) {
		t.Errorf("overlay is %s", b)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "a__x.go")); string(b) != "zero\none\n2\nthree\n" {
		t.Errorf("the mutant is %q", b)
	}
	for _, text := range []string{"one\n2\nthree\n", "one\ntwo\nthree\none\ntwo\nthree\n"} {
		write(text)
		if _, err := m.Overlay(root, dir); err == nil || !strings.Contains(err.Error(), "does not apply") || !strings.Contains(err.Error(), "a/x.go") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "Package: ./a\nTest: T\n", strings.Replace(patch, "Test: TestA\nTest: TestB/c\n", "", 1)} {
		if _, err := parse(text); err == nil {
			t.Errorf("%q is a mutant", text)
		}
	}
}
