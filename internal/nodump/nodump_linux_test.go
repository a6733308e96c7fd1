package nodump_test

import (
	"os"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"quittance/internal/nodump"
)

// The kernel writes no core dump: neither to a file, which the limit forbids, nor to a pipe, for
// which the process must not be dumpable.
func TestForbid(t *testing.T) {
	t.Parallel()
	if err := nodump.Forbid(); err != nil {
		t.Fatal(err)
	}
	limits, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	if line := regexp.MustCompile(`(?m)^Max core file size.*$`).Find(limits); !regexp.MustCompile(`\s0\s+0\s+bytes`).Match(line) {
		t.Errorf("/proc/self/limits says %q", line)
	}
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		t.Errorf("dumpable is %d, %v", dumpable, err)
	}
}
