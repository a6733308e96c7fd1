package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"quittance/dev/stack/program"
)

// child is a running process that ends when this process ends.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been reaped
	err  error         // of Wait, to be read after done
}

// startChild starts cmd and appends its output to logPath. The kernel sends it onDeath
// when this process ends without stopping it.
func startChild(cmd *exec.Cmd, logPath string, onDeath syscall.Signal) (*child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = onDeath
	// A group of its own: Ctrl-C in a terminal reaches the parent only, which
	// then stops its parts in order.
	cmd.SysProcAttr.Setpgid = true

	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // a developer's log, also read by the server's own user
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = log, log

	c := &child{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// The kernel sends the death signal when the *thread* that forked ends, not
	// the process (golang/go#27505). This goroutine keeps its thread until the
	// child is gone.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = log.Close() }()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(cmd.Path), err)
	}
	return c, nil
}

// exited reports whether the process has ended.
func (c *child) exited() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// stop sends the signals in turn, waits `patience` after each, then sends SIGKILL, and
// waits for the end of the process. When ctx ends it sends SIGKILL at once. Stopping a
// process that has ended is not an error.
func (c *child) stop(ctx context.Context, patience time.Duration, signals ...syscall.Signal) error {
	for _, s := range signals {
		if c.exited() {
			return nil
		}
		if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("sending %v: %w", s, err)
		}
		timer := time.NewTimer(patience)
		select {
		case <-c.done:
			timer.Stop()
			return nil
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return c.kill()
		}
	}
	return c.kill()
}

// kill ends the process at once and waits until it is reaped.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("sending SIGKILL: %w", err)
	}
	<-c.done
	return nil
}

// waitReady calls probe every `interval` until it returns nil. When ctx ends or the
// process dies it returns an error with the end of the process's log.
func (c *child) waitReady(ctx context.Context, interval time.Duration, logPath string, probe func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		select {
		case <-c.done:
			return &exitError{state: c.cmd.ProcessState.String(), logPath: logPath, tail: program.Tail(logPath, 4096)}
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for readiness: %w (log: %s)", ctx.Err(), logPath), last)
		case <-tick.C:
			if last = probe(ctx); last == nil {
				return nil
			}
		}
	}
}

// exitError is the error of a process that ended before it was ready.
type exitError struct{ state, logPath, tail string }

func (e *exitError) Error() string {
	return fmt.Sprintf("ended before it was ready: %s; end of %s:\n%s", e.state, e.logPath, e.tail)
}

// findPart looks for a fetched part, a path below a `.deps` folder: first in
// the folder that the environment variable names, then in `.deps` of the
// working directory and of every folder above it, then in the user's cache
// (`~/.cache/quittance`). has reports whether a folder is complete.
func findPart(override, envName, part string, has func(dir string) bool) (string, error) {
	if override == "" {
		override = os.Getenv(envName)
	}
	if override != "" {
		if dir, err := filepath.Abs(override); err == nil && has(dir) {
			return dir, nil
		}
		return "", fmt.Errorf("%s is not in %s, which the configuration or %s names", part, override, envName)
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if candidate := filepath.Join(dir, ".deps", part); has(candidate) {
			return candidate, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		if candidate := filepath.Join(cache, "quittance", part); has(candidate) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%s: %w in .deps of %s or of a folder above it, nor in the user's cache; %s may name the folder",
		part, os.ErrNotExist, wd, envName)
}
