package nodump

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Forbid makes the kernel write no core dump of this process and of those that it starts, and
// lets no process of another user, or of the same user without CAP_SYS_PTRACE, read its memory
// or attach to it. Call it before the first secret is read. It does nothing on other systems
// than Linux.
func Forbid() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("setting the size of core dumps to 0: %w", err)
	}
	// A kernel whose core_pattern is a pipe ignores the limit. It asks this.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbidding core dumps: %w", err)
	}
	return nil
}
