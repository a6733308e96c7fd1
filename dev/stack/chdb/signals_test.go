package chdb

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const envVictim = "QUITTANCE_CHDB_TEST_VICTIM"

// The engine replaced the handler of SIGSEGV. A nil dereference in Go then hung the process
// instead of causing a panic that net/http recovers from.
func TestNilDereferenceStillPanics(t *testing.T) {
	t.Parallel()
	if os.Getenv(envVictim) != "" {
		victim(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestNilDereferenceStillPanics$", "-test.v")
	cmd.Env = append(os.Environ(), envVictim+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "recovered: runtime error: invalid memory address") {
		t.Errorf("%v\n%s", err, out)
	}
}

func victim(t *testing.T) {
	t.Helper()
	path, err := FindLibrary()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := loadLibrary(path)
	if err != nil {
		t.Fatal(err)
	}
	e, err := openEngine(lib, os.Getenv(envVictim), "")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.open(); err == nil { // later connections must not replace it either
		s.close()
	}
	func() {
		defer func() { t.Log("recovered:", recover()) }()
		var nothing *exception
		t.Log(nothing.text)
	}()
}
