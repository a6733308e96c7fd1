package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Program is a binary with the settings that all its processes share.
type Program struct {
	path string
	env  []string // QUITTANCE_… variables
	logs string   // folder of the processes' output
}

// New returns the program at path. Its processes get the QUITTANCE_… variables of env
// and write their output to files in the folder logs.
func New(path, logs string, env ...string) *Program {
	return &Program{path: path, env: env, logs: logs}
}

// With returns the program with further variables of its environment.
func (p *Program) With(env ...string) *Program {
	return New(p.path, p.logs, slices.Concat(p.env, env)...)
}

// Of returns the program as a role runs it: with the keys of that role, which the program derives from
// the master keys in its environment.
func (p *Program) Of(ctx context.Context, role string) (*Program, error) {
	cmd := exec.CommandContext(ctx, p.path, "secrets", "derive", role) //nolint:gosec // the caller's own program
	cmd.Env = p.Environment()
	keys, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("deriving the keys of %s: %w", role, err)
	}
	return p.With("QUITTANCE_MASTER_KEYS=" + string(keys)), nil
}

// Environment returns the environment of the program's processes. Roles refuse variables that are
// none of theirs, also the flags of Kafka's JVM.
func (p *Program) Environment() []string {
	return slices.DeleteFunc(Environment(p.env...), func(v string) bool { return strings.HasPrefix(v, "QUITTANCE_KAFKA_JVM=") })
}

// Run runs a command and waits until it has ended.
func (p *Program) Run(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, p.path, args...) //nolint:gosec // the program that the caller names
	cmd.Env = p.Environment()
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("quittance %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// Output runs a command, and returns what it prints and, once it has run, the time and memory that it took.
func (p *Program) Output(ctx context.Context, args ...string) ([]byte, *os.ProcessState, error) {
	cmd := exec.CommandContext(ctx, p.path, args...) //nolint:gosec // the program that the caller names
	cmd.Env = p.Environment()
	var faults bytes.Buffer
	cmd.Stderr = &faults
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("quittance %s: %w\n%s%s", strings.Join(args, " "), err, faults.Bytes(), text)
	}
	return text, cmd.ProcessState, err
}

// Process is a role that can be started, killed and started again with the same
// arguments. When it ends by itself it is started again after a second. Safe for
// concurrent use.
type Process struct {
	Name   string
	Health string // host:port of /readyz and /metrics
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

// Process returns a process of the program that is not started yet. health is the
// host:port of its /readyz and /metrics.
func (p *Program) Process(name, health string, args ...string) *Process {
	return &Process{program: p, Name: name, Health: health, args: append(args, "--health", health)}
}

// LogFile returns the file with the output of the process.
func (p *Process) LogFile() string { return filepath.Join(p.program.logs, p.Name+".log") }

// Start starts the process. It does nothing when the process runs.
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
	out, err := os.OpenFile(p.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	cmd := exec.Command(p.program.path, p.args...) //nolint:gosec,noctx // the program that the caller names; Signal ends it
	cmd.Env = p.program.Environment()
	cmd.Stdout, cmd.Stderr = out, out
	l := &life{cmd: cmd}
	l.ended, err = Launch(cmd)
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

// ended starts the process again when it has ended by itself.
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

// Signal sends the process a signal and waits until it has ended. After 20 s it kills
// the process. It returns false when the process did not run.
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

// Quit kills the process and waits until its goroutines have ended.
func (p *Process) Quit() {
	p.Kill()
	p.watchers.Wait()
}

// Pid returns the id of the process, or 0 when it does not run.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		return 0
	}
	return p.now.cmd.Process.Pid
}

// Kill kills the process. It returns false when the process did not run.
func (p *Process) Kill() bool { return p.Signal(syscall.SIGKILL) }

// ready returns nil when /readyz answers 200.
func (p *Process) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := p.Get(ctx, "/readyz")
	return err
}

// AwaitReady waits until all processes are ready.
func AwaitReady(ctx context.Context, processes ...*Process) error {
	for _, p := range processes {
		for {
			err := p.ready(ctx)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not ready: %w; the end of its output:\n%s", p.Name, errors.Join(err, ctx.Err()), Tail(p.LogFile(), 4<<10))
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return nil
}

// Get asks the process for a path of its health address. Any answer but 200 is an
// error.
func (p *Process) Get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Health+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.Name, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.Name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", p.Name, path, err)
	}
	return text, nil
}

// Metric returns a metric of the process, see SumMetric.
func (p *Process) Metric(ctx context.Context, name string) (float64, error) {
	text, err := p.Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	sum, err := SumMetric(text, name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	return sum, nil
}

// SumMetric returns the value of a metric in the answer of /metrics, the sum over its
// labels. A metric that is absent is 0.
func SumMetric(text []byte, name string) (sum float64, err error) {
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllSubmatch(text, -1) {
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the metric %s: %w", name, err)
		}
		sum += v
	}
	return sum, nil
}
