package program

import (
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Environment returns the environment of this process without its QUITTANCE_…
// variables, except the flags of Kafka's JVM, and with further variables.
func Environment(further ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool { //nolint:forbidigo // what a child inherits, not our configuration
		return strings.HasPrefix(v, "QUITTANCE_") && !strings.HasPrefix(v, "QUITTANCE_KAFKA_JVM=")
	}), further...)
}

// Launch starts a command. The kernel kills it when this process ends. The channel is
// closed when the command has ended.
func Launch(cmd *exec.Cmd) (<-chan struct{}, error) {
	// A group of its own: Ctrl-C in a terminal reaches this process only, which then
	// stops the command.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	ended := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that forked ends, not the
		// process (golang/go#27505). This goroutine keeps its thread until the command
		// has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(ended)
		}
	}()
	return ended, <-started
}

// Tail returns up to n bytes from the end of a file, or the error of reading it.
func Tail(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = f.Close() }()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, end-n), io.SeekStart)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// Local returns the address of a port of this machine.
func Local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
