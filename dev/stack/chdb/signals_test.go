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

// The engine took SIGSEGV for itself: a nil dereference in Go, which should be a
// panic that net/http recovers from, hung the process instead.
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
	e, err := openEngine(lib, os.Getenv(envVictim))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := e.open(); err == nil { // nor do later connections take it
		s.close()
	}
	func() {
		defer func() { t.Log("recovered:", recover()) }()
		var nothing *exception
		t.Log(nothing.text)
	}()
}
