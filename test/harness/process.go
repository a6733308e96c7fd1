package harness

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

// Binary is the path of quittance-dev: what QUITTANCE_TEST_QUITTANCE_DEV names, else
// built once for the suite. Production is quittance in the same way, by
// QUITTANCE_TEST_QUITTANCE.
var (
	Binary     = Build("quittance-dev")
	Production = Build("quittance")
)

// Build builds one of the programs once, with further flags of go build. Without flags
// it takes the program that the environment names.
func Build(program string, flags ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		variable := "QUITTANCE_TEST_" + strings.ToUpper(strings.ReplaceAll(program, "-", "_"))
		if path := os.Getenv(variable); path != "" && len(flags) == 0 {
			return path, nil
		}
		dir, err := servers.Folder()
		if err != nil {
			return "", err
		}
		dir, err = os.MkdirTemp(dir, "program-")
		if err != nil {
			return "", err
		}
		out := filepath.Join(dir, program)
		cmd := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-o", out}, flags...), "quittance/cmd/"+program)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the program: %w\n%s", err, text)
		}
		return out, nil
	})
}

// Program is a binary with what all its processes share.
type Program struct {
	path string
	env  []string // QUITTANCE_… variables
	logs string   // folder of the processes' output
}

// NewProgram returns the program at path, which has QUITTANCE_… variables and writes
// the output of its processes to the folder logs.
func NewProgram(path, logs string, env ...string) *Program {
	return &Program{path: path, env: env, logs: logs}
}

// Environment is servers.Environment with the variables of the program.
func (p *Program) Environment() []string { return servers.Environment(p.env...) }

// Run runs a command to its end.
func (p *Program) Run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = p.Environment()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("quittance %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// Process is a role that is started, killed and started again with the same
// arguments. A process that ends by itself is started again after a second. Safe for
// concurrent use.
type Process struct {
	Name   string
	Health string // address of /readyz and /metrics
	// Unexpected counts how often the process has ended by itself.
	Unexpected atomic.Int64

	program  *Program
	args     []string
	watchers sync.WaitGroup

	mu     sync.Mutex
	wanted bool
	now    *life
}

// life is one run of a process.
type life struct {
	cmd   *exec.Cmd
	ended <-chan struct{}
}

// Process is a process of the program that has not been started.
func (p *Program) Process(name, health string, args ...string) *Process {
	return &Process{program: p, Name: name, Health: health, args: append(args, "--health", health)}
}

// LogFile is the file of everything that the process has printed.
func (p *Process) LogFile() string { return filepath.Join(p.program.logs, p.Name+".log") }

// Start starts the process unless it runs.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = true
	return p.startLocked()
}

func (p *Process) startLocked() error {
	if p.now != nil {
		return nil
	}
	out, err := os.OpenFile(p.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	cmd := exec.Command(p.program.path, p.args...)
	cmd.Env = p.program.Environment()
	cmd.Stdout, cmd.Stderr = out, out
	l := &life{cmd: cmd}
	l.ended, err = servers.Launch(cmd)
	_ = out.Close() // the process has its own
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.now = l
	p.watchers.Go(func() {
		<-l.ended
		p.ended(l)
	})
	return nil
}

// ended starts the process again when nobody asked it to end.
func (p *Process) ended(l *life) {
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
	p.Unexpected.Add(1)
	time.Sleep(time.Second)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted {
		_ = p.startLocked()
	}
}

// Signal ends the process and waits until it has; false when it did not run.
func (p *Process) Signal(s syscall.Signal) bool {
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

// Quit kills the process and waits until nothing of it is left.
func (p *Process) Quit() {
	p.Kill()
	p.watchers.Wait()
}

// Pid is the id of the process, 0 when it does not run.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return 0
	}
	return p.now.cmd.Process.Pid
}

// Kill kills the process; false when it did not run.
func (p *Process) Kill() bool { return p.Signal(syscall.SIGKILL) }

// ready is nil once /readyz says so.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Health+"/readyz", http.NoBody)
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

// AwaitReady waits until all processes are ready.
func AwaitReady(ctx context.Context, processes ...*Process) error {
	for _, p := range processes {
		for {
			err := p.ready(ctx)
			if err == nil {
				break
			}
			if !Pause(ctx, 200*time.Millisecond) {
				return fmt.Errorf("%s is not ready: %w; it says:\n%s", p.Name, errors.Join(err, ctx.Err()), servers.Tail(p.LogFile(), 4<<10))
			}
		}
	}
	return nil
}

// Pause lets d pass and says whether it did before ctx ended.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Ports are free ports. A process that is killed finds its port free when it comes
// back.
func Ports(t testing.TB, n int) []int {
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

// Local is the address of a port of this machine.
func Local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Root is the module's folder, seen from a suite. The program finds there what was
// fetched.
const Root = "../.."

// Absolute is the absolute path of a file of the module.
func Absolute(t testing.TB, path string) string {
	t.Helper()
	out, err := filepath.Abs(filepath.Join(Root, path))
	if err != nil {
		t.Fatal(err)
	}
	return out
}
