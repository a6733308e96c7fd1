package stack_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quittance/dev/stack"
	"quittance/test/await"
	"quittance/test/servers"
)

// ownerDir makes TestOwner, in a process of its own, the owner of a server.
const ownerDir = "QUITTANCE_TEST_OWNER_DIR"

func TestOwner(t *testing.T) {
	dir := os.Getenv(ownerDir)
	if dir == "" {
		t.Skip("part of TestServersDieWithTheirOwner")
	}
	_, err := stack.StartPostgres(t.Context(), stack.PostgresConfig{
		Dir: dir, Port: freePort(t), Volatile: true, Log: logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = os.Stdout.WriteString("ready\n")
	time.Sleep(time.Minute) // the test kills this process earlier
}

// A server ends when its owner is killed: when a terminal is closed, a test binary panics or
// CI kills a job. Otherwise it would keep its port and folder.
func TestServersDieWithTheirOwner(t *testing.T) {
	t.Parallel()
	dir := servers.Dir(t)
	owner := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestOwner$")
	owner.Env = append(os.Environ(), ownerDir+"="+dir)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "ready\n" {
		t.Fatalf("the owner printed %q, %v", said, err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(file), "\n")
	server, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server, 0); err != nil {
		t.Fatalf("the server, process %d, does not run: %v", server, err)
	}

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	if !await.Within(10*time.Second, func() bool {
		if err := syscall.Kill(server, 0); errors.Is(err, syscall.ESRCH) {
			return true
		}
		// A zombie is dead; the process that adopted it has not reaped it.
		stat, err := os.ReadFile("/proc/" + line + "/stat")
		return err == nil && strings.Contains(string(stat), ") Z ")
	}) {
		t.Fatalf("the server, process %d, outlived its owner by ten seconds", server)
	}
}
