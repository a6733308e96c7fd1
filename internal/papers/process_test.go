package papers_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// sumsFile names the file into which a process that TestOtherProcess starts writes the sums of
// its samples.
const sumsFile = "QUITTANCE_PAPERS_SUMS"

// Processes on machines with another time zone, language, number of processors and home make the
// same bytes of every paper.
func TestOtherProcess(t *testing.T) {
	t.Parallel()
	if file := os.Getenv(sumsFile); file != "" {
		if err := os.WriteFile(file, sums(t), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	want := sums(t)
	for name, environment := range map[string][]string{
		"UTC":      {"TZ=UTC", "LANG=C", "LC_ALL=C", "GOMAXPROCS=1", "HOME=/nonexistent"},
		"Auckland": {"TZ=Pacific/Auckland", "LANG=ar_EG.UTF-8", "LC_ALL=tr_TR.UTF-8", "GOMAXPROCS=7", "GOGC=5", "HOME=" + t.TempDir(), "USER=other"},
	} {
		file := filepath.Join(t.TempDir(), "sums")
		c := exec.CommandContext(t.Context(), program, "-test.run=^TestOtherProcess$")
		c.Dir, c.Env = t.TempDir(), append(environment, sumsFile+"="+file)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s makes other papers:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// sums are the names and the sums of the samples.
func sums(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	all := samples(t)
	for _, file := range written(t, all) {
		name := filepath.Base(file)
		fmt.Fprintf(&out, "%s %x\n", name, sha256.Sum256(all[name[:len(name)-len(".pdf")]]))
	}
	return out.Bytes()
}
