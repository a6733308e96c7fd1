package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"quittance/dev/stack"
)

// UpPorts is the number of ports that a `quittance-dev up` takes.
const UpPorts = 9

// UpConfig says how to run a `quittance-dev up`.
type UpConfig struct {
	Program  string // path of quittance-dev
	Root     string // folder of the module, in which it runs
	Dir      string // of its data (data) and output (stdout.log, stderr.log); it exists
	Port     int    // the first of UpPorts
	Registry string // file
	Args     []string
}

// Up is a `quittance-dev up` that runs.
type Up struct {
	Banner string // the block that it has printed when it was ready
	Pid    int

	process *os.Process
	ended   <-chan struct{}
}

// StartUp runs `quittance-dev up` and waits until it has printed that it is ready.
// The program dies with this process.
func StartUp(ctx context.Context, cfg UpConfig) (*Up, error) {
	stdout, err := os.Create(filepath.Join(cfg.Dir, "stdout.log"))
	if err != nil {
		return nil, fmt.Errorf("starting up: %w", err)
	}
	defer func() { _ = stdout.Close() }()
	stderr, err := os.OpenFile(filepath.Join(cfg.Dir, "stderr.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting up: %w", err)
	}
	defer func() { _ = stderr.Close() }()
	args := append([]string{"up", "--port", strconv.Itoa(cfg.Port), "--data", filepath.Join(cfg.Dir, "data"), "--registry", cfg.Registry}, cfg.Args...)
	cmd := exec.Command(cfg.Program, args...) //nolint:gosec,noctx // the program under test; it outlives ctx, which bounds the start alone
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cfg.Root, Environment(), stdout, stderr
	u := &Up{}
	if u.ended, err = Launch(cmd); err != nil {
		return nil, fmt.Errorf("starting up: %w", err)
	}
	u.process, u.Pid = cmd.Process, cmd.Process.Pid
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(stdout.Name())
		if err != nil {
			return u, fmt.Errorf("starting up: %w", err)
		}
		// The block ends with its curl line and an empty one.
		if u.Banner = string(text); strings.HasSuffix(u.Banner, "\n\n") && strings.Contains(u.Banner, "\ncurl ") {
			return u, nil
		}
		select {
		case <-u.ended:
			return u, fmt.Errorf("up ended before it was ready: %s", Tail(stderr.Name(), 4<<10))
		case <-ctx.Done():
			return u, fmt.Errorf("up is not ready: %w; it says:\n%s", ctx.Err(), Tail(stderr.Name(), 4<<10))
		case <-tick.C:
		}
	}
}

// Stop tells the program to end and waits for it, then ends it by force when ctx ends.
func (u *Up) Stop(ctx context.Context) error {
	_ = u.process.Signal(syscall.SIGTERM)
	select {
	case <-u.ended:
	case <-ctx.Done():
		_ = u.process.Kill()
		<-u.ended
	}
	return nil
}

// StartInstallation runs the `quittance-dev up` that suites share which only read and
// create: the demo registry with quotas that no suite reaches, everything logged. The
// address is "PORT DIR", with its output in DIR.
func StartInstallation(ctx context.Context, program, root, dir string, log *slog.Logger) (*Server, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user when we are root
		return nil, fmt.Errorf("starting the installation: %w", err)
	}
	registry, err := WithoutQuota(root, dir)
	if err != nil {
		return nil, err
	}
	ports, err := stack.FreePorts(UpPorts)
	if err != nil {
		return nil, err
	}
	u, err := StartUp(ctx, UpConfig{Program: program, Root: root, Dir: dir, Port: ports[0], Registry: registry, Args: []string{"--log", "debug"}})
	if err != nil {
		if u != nil {
			err = errors.Join(err, u.process.Kill())
		}
		return nil, err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "the shared installation is ready", slog.Int("port", ports[0]))
	return &Server{Env: "QUITTANCE_TEST_INSTALLATION", Addr: fmt.Sprintf("%d %s", ports[0], dir), Stop: u.Stop}, nil
}

// WithoutQuota writes the demo registry of the module at root, with quotas that no
// suite reaches, into dir and returns the file.
func WithoutQuota(root, dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "deploy/dev/registry.yaml"))
	if err != nil {
		return "", fmt.Errorf("reading the demo registry: %w", err)
	}
	const at = "        integrator: true\n"
	raised := strings.Replace(string(text), at, at+"        creations_per_minute: 1000000\n        reads_per_minute: 1000000\n", 1)
	if raised == string(text) {
		return "", errors.New("the demo registry has no integrator")
	}
	file := filepath.Join(dir, "registry.yaml")
	if err := os.WriteFile(file, []byte(raised), 0o600); err != nil {
		return "", fmt.Errorf("writing a registry: %w", err)
	}
	return file, nil
}

// Environment is the environment of this process without QUITTANCE_… variables, apart
// from the flags of Kafka's JVM, and with further ones.
func Environment(further ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "QUITTANCE_") && !strings.HasPrefix(v, "QUITTANCE_KAFKA_JVM=")
	}), further...)
}

// Launch starts a command that dies with this process. The channel is closed when the
// command has ended.
func Launch(cmd *exec.Cmd) (<-chan struct{}, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	ended := make(chan struct{})
	started := make(chan error, 1)
	go func() {
		// The kernel sends the death signal when the thread that forked ends
		// (golang/go#27505): this one lives as long as the child.
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

// Tail is the end of a file.
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
