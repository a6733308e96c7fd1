package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	devstack "quittance/dev/stack"
	"quittance/test/servers"
)

// binary builds the program once for all tests of a suite.
var binary = built("quittance")

// built builds the program under a name, with further flags of go build, once.
func built(name string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := servers.Folder()
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, name)
		cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", out}, flags...), "quittance/cmd/quittance-dev")...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the program: %w\n%s", err, text)
		}
		return out, nil
	})
}

// program is the binary with what all its processes share.
type program struct {
	path string
	env  []string // QUITTANCE_… variables
	logs string   // folder of the processes' output
}

// environment is ours without our variables, and with the program's.
func (p *program) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "QUITTANCE_") })
	return append(env, p.env...)
}

// run runs a command to its end.
func (p *program) run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = p.environment()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("quittance %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// process is a role that is started, killed and started again with the same
// arguments. One that ends without having been told to is started again after a
// second, as whoever runs a service does; unexpected counts those ends. Safe for
// concurrent use.
type process struct {
	program *program
	name    string
	args    []string
	health  string // address

	unexpected atomic.Int64
	watchers   sync.WaitGroup

	mu     sync.Mutex
	wanted bool
	now    *life
}

// life is one run of a process.
type life struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func (p *program) process(name, health string, args ...string) *process {
	return &process{program: p, name: name, health: health, args: append(args, "--health", health)}
}

func (p *process) log() string { return filepath.Join(p.program.logs, p.name+".log") }

// start starts the process unless it runs.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	return p.startLocked()
}

func (p *process) startLocked() error {
	if p.now != nil {
		return nil
	}
	out, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	cmd := exec.Command(p.program.path, p.args...)
	cmd.Env = p.program.environment()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	l := &life{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	p.watchers.Go(func() {
		// The kernel sends the death signal when the thread that forked ends
		// (golang/go#27505): this one lives as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = out.Close() }()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait()
		close(l.ended)
		p.ended(l)
	})
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	p.now = l
	return nil
}

// ended starts the process again when nobody asked it to end.
func (p *process) ended(l *life) {
	p.mu.Lock()
	mine := p.now == l
	if mine {
		p.now = nil
	}
	again := mine && p.wanted
	p.mu.Unlock()
	if !again {
		return
	}
	p.unexpected.Add(1)
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted {
		_ = p.startLocked()
	}
}

// signal ends the process and waits until it has; false when it did not run.
func (p *process) signal(s syscall.Signal) bool {
	p.mu.Lock()
	p.wanted = false
	l := p.now
	p.now = nil
	p.mu.Unlock()
	if l == nil {
		return false
	}
	_ = l.cmd.Process.Signal(s)
	select {
	case <-l.ended:
	case <-time.After(20 * time.Second):
		_ = l.cmd.Process.Kill()
		<-l.ended
	}
	return true
}

func (p *process) kill() bool { return p.signal(syscall.SIGKILL) }

// ready is nil once /readyz says so.
func (p *process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	return nil
}

// awaitReady waits until all processes are ready.
func awaitReady(ctx context.Context, processes ...*process) error {
	for _, p := range processes {
		for {
			err := p.ready(ctx)
			if err == nil {
				break
			}
			if !pause(ctx, 200*time.Millisecond) {
				return fmt.Errorf("%s is not ready: %w; it says:\n%s", p.name, errors.Join(err, ctx.Err()), tail(p.log(), 4<<10))
			}
		}
	}
	return nil
}

// tail is the end of a file.
func tail(path string, n int64) string {
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

// pause lets d pass and says whether it did before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// ports are free ports: whoever is killed finds its own free when it comes back.
func ports(t testing.TB, n int) []int {
	t.Helper()
	if n == 0 {
		return nil
	}
	out, err := devstack.FreePorts(n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
