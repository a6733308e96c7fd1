package statements_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The camt files of the corpus that are to be accepted are valid by the ISO 20022 schemas,
// as a validator that is not ours says. It notices a file that is not.
func TestCorpusIsValid(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Python")
	}
	t.Parallel()
	files, err := filepath.Glob("testdata/bank-*.xml")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken.xml")
	if err := os.WriteFile(broken, []byte(strings.Replace(string(text), "<Sts>BOOK</Sts>", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join("..", "..")
	out, err := exec.Command(filepath.Join(root, ".deps/iso20022/bin/python"),
		append([]string{filepath.Join(root, "test/tools/iso20022/validate.py"), broken}, files...)...).CombinedOutput()
	if len(out) == 0 && err != nil {
		t.Fatalf("the validator is missing, `make deps/test` fetches it: %v", err)
	}
	complaints := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(complaints) != 1 || !strings.HasPrefix(complaints[0], broken+": ") {
		t.Errorf("want one error, of the broken file; got %v:\n%s", err, out)
	}
}
