package harness

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	AtService    = 0
	AtSimulators = 1
	AtBroker     = 2
	AtController = 3
	AtClickHouse = 5
	AtHealth     = 7
	upPorts      = 9
)

// Soon bounds the wait for what happens by itself at once, on a machine that has
// other things to do.
const Soon = 60 * time.Second

// Up is a `quittance-dev up` of a test, as a newcomer starts it.
type Up struct {
	Dir      string // of this test: data, output, registry
	Port     int
	Registry string // file
	Client   *http.Client
	Banner   string // what Start has read from its standard output

	args  []string
	life  *life
	begun bool // at least once
}

// NewUp makes an `up` that has not been started. Its folder goes with the test.
func NewUp(t *testing.T, args ...string) *Up {
	t.Helper()
	return &Up{
		Dir: servers.Dir(t), Port: Ports(t, upPorts)[0], Registry: "deploy/dev/registry.yaml", args: args,
		Client: &http.Client{
			Timeout:       15 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// URL is the address of a path at one of the ports.
func (u *Up) URL(part int, path string) string { return "http://" + Local(u.Port+part) + path }

// Stderr is the file of the program's log.
func (u *Up) Stderr() string { return filepath.Join(u.Dir, "stderr.log") }

func (u *Up) stdout() string { return filepath.Join(u.Dir, "stdout.log") }

// Data is the folder that --data names.
func (u *Up) Data() string { return filepath.Join(u.Dir, "data") }

// Start starts it and waits for the block that says it is ready.
func (u *Up) Start(t *testing.T) {
	t.Helper()
	path, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := os.Create(u.stdout())
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.OpenFile(u.Stderr(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"up", "--port", strconv.Itoa(u.Port), "--data", u.Data(), "--registry", u.Registry}, u.args...)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = Root, (&Program{}).Environment()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	l, err := launch(cmd)
	_, _ = stdout.Close(), stderr.Close() // the program has its own
	if err != nil {
		t.Fatal(err)
	}
	u.life = l
	if !u.begun {
		u.begun = true
		t.Cleanup(func() {
			u.End(30 * time.Second)
			if t.Failed() {
				t.Logf("the end of what up said:\n%s", Tail(u.Stderr(), 8<<10))
			}
		})
	}
	for begun := time.Now(); ; {
		text, err := os.ReadFile(u.stdout())
		if err != nil {
			t.Fatal(err)
		}
		// The block ends with its curl line and an empty one.
		if u.Banner = string(text); strings.HasSuffix(u.Banner, "\n\n") && strings.Contains(u.Banner, "\ncurl ") {
			return
		}
		select {
		case <-l.ended:
			t.Fatalf("up ended before it was ready: %s", Tail(u.Stderr(), 4<<10))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(begun) > 2*time.Minute {
			t.Fatalf("up is not ready; it says:\n%s", Tail(u.Stderr(), 4<<10))
		}
	}
}

// End tells it to end, by force after patience, and says how long that took.
func (u *Up) End(patience time.Duration) time.Duration {
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

// Child is the process id of a child whose name has a prefix.
func (u *Up) Child(t *testing.T, prefix string) int {
	t.Helper()
	for _, pid := range ChildrenOf(t, u.life.cmd.Process.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(filepath.Base(strings.SplitN(string(name), "\x00", 2)[0]), prefix) {
			return pid
		}
	}
	t.Fatalf("up has no child %s…", prefix)
	return 0
}

// ChildrenOf are the processes that a process has started and that still run.
func ChildrenOf(t *testing.T, parent int) (out []int) {
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

// Eventually tries until check is content.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		switch {
		case err == nil:
			return
		case time.Since(begun) > Soon:
			t.Fatalf("%s: still not after %v: %v", what, Soon, err)
		case t.Context().Err() != nil:
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// AtOnce does all of it at the same moment.
func AtOnce(do ...func()) {
	var all sync.WaitGroup
	for _, f := range do {
		all.Go(f)
	}
	all.Wait()
}
