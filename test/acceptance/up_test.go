package acceptance_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quittance/test/servers"
)

// Ports of an `up`, from the service's (developer-mode documentation of README).
const (
	atService    = 0
	atSimulators = 1
	atBroker     = 2
	atController = 3
	atClickHouse = 5
	atHealth     = 7
	upPorts      = 9
)

// soon bounds the wait for what happens by itself at once, on a machine that has
// other things to do.
const soon = 60 * time.Second

// up is a `quittance up` of a test, as a newcomer starts it.
type up struct {
	dir      string // of this test: data, output, registry
	port     int
	registry string
	args     []string
	client   *http.Client

	life   *life
	begun  bool // at least once
	banner string
}

// newUp makes an `up` that has not been started. Its folder goes with the test.
func newUp(t *testing.T, args ...string) *up {
	t.Helper()
	return &up{
		dir: servers.Dir(t), port: ports(t, upPorts)[0], registry: "deploy/dev/registry.yaml", args: args,
		client: &http.Client{
			Timeout:       15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (u *up) url(part int, path string) string { return "http://" + local(u.port+part) + path }

func (u *up) stderr() string { return filepath.Join(u.dir, "stderr.log") }

func (u *up) stdout() string { return filepath.Join(u.dir, "stdout.log") }

// data is the folder that --data names.
func (u *up) data() string { return filepath.Join(u.dir, "data") }

// start starts it and waits for the block that says it is ready.
func (u *up) start(t *testing.T) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := os.Create(u.stdout())
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.OpenFile(u.stderr(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"up", "--port", strconv.Itoa(u.port), "--data", u.data(), "--registry", u.registry}, u.args...)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = root, (&program{}).environment()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l := &life{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // as in process.startLocked
		defer runtime.UnlockOSThread()
		defer func() { _, _ = stdout.Close(), stderr.Close() }()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait()
		close(l.ended)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	u.life = l
	if !u.begun {
		u.begun = true
		t.Cleanup(func() {
			u.end(30 * time.Second)
			if t.Failed() {
				t.Logf("the end of what up said:\n%s", tail(u.stderr(), 8<<10))
			}
		})
	}
	for begun := time.Now(); ; {
		text, err := os.ReadFile(u.stdout())
		if err != nil {
			t.Fatal(err)
		}
		// The block ends with its curl line and an empty one.
		if u.banner = string(text); strings.HasSuffix(u.banner, "\n\n") && strings.Contains(u.banner, "\ncurl ") {
			return
		}
		select {
		case <-l.ended:
			t.Fatalf("up ended before it was ready: %s", tail(u.stderr(), 4<<10))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("up is not ready; it says:\n%s", tail(u.stderr(), 4<<10))
		}
	}
}

// end tells it to end, by force after patience, and says how long that took.
func (u *up) end(patience time.Duration) time.Duration {
	if u.life == nil {
		return 0
	}
	begun := time.Now()
	_ = u.life.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-u.life.ended:
	case <-time.After(patience):
		_ = u.life.cmd.Process.Kill()
		<-u.life.ended
	}
	u.life = nil
	return time.Since(begun)
}

// child is the process id of a child whose name has a prefix.
func (u *up) child(t *testing.T, prefix string) int {
	t.Helper()
	for _, pid := range childrenOf(t, u.life.cmd.Process.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(filepath.Base(strings.SplitN(string(name), "\x00", 2)[0]), prefix) {
			return pid
		}
	}
	t.Fatalf("up has no child %s…", prefix)
	return 0
}

// childrenOf are the processes that a process has started and that still run.
func childrenOf(t *testing.T, parent int) (out []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …, and a name may hold anything.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			out = append(out, pid)
		}
	}
	return out
}

// eventually tries until check is content.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		switch {
		case err == nil:
			return
		case time.Since(begun) > soon:
			t.Fatalf("%s: still not after %v: %v", what, soon, err)
		case t.Context().Err() != nil:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// atOnce does all of it at the same moment.
func atOnce(do ...func()) {
	var all sync.WaitGroup
	for _, f := range do {
		all.Go(f)
	}
	all.Wait()
}
