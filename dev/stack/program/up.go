package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// UpPorts is the number of ports that a `quittance-dev up` takes.
const UpPorts = 12

// UpConfig is the configuration of a `quittance-dev up`. All fields but Args are
// required.
type UpConfig struct {
	Program  string   // path of quittance-dev
	Root     string   // working directory: it or a folder above it has .deps
	Dir      string   // existing folder of its data (data) and output (stdout.log, stderr.log)
	Port     int      // the first of UpPorts ports
	Registry string   // registry file, seen from Root
	Args     []string // further arguments
}

// Up is a running `quittance-dev up`.
type Up struct {
	Banner string // its output when it was ready
	Pid    int    // its process id

	process *os.Process
	ended   <-chan struct{}
	log     string
}

// StartUp runs `quittance-dev up` and waits until it has printed that it is ready. ctx
// bounds the start only. When the start fails, the process has ended.
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
	cmd := exec.Command(cfg.Program, args...) //nolint:gosec,noctx // the program that the caller names; it outlives ctx, see Stop
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = cfg.Root, Environment(), stdout, stderr
	u := &Up{log: stderr.Name()}
	if u.ended, err = Launch(cmd); err != nil {
		return nil, fmt.Errorf("starting up: %w", err)
	}
	u.process, u.Pid = cmd.Process, cmd.Process.Pid
	if err := u.ready(ctx, stdout.Name()); err != nil {
		_ = u.process.Kill()
		<-u.ended
		return nil, err
	}
	return u, nil
}

// ready waits until the program has printed its whole banner.
func (u *Up) ready(ctx context.Context, stdout string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(stdout)
		if err != nil {
			return fmt.Errorf("starting up: %w", err)
		}
		// The banner ends with a line of curl and an empty line.
		if u.Banner = string(text); strings.HasSuffix(u.Banner, "\n\n") && strings.Contains(u.Banner, "\ncurl ") {
			return nil
		}
		select {
		case <-u.ended:
			return fmt.Errorf("up ended before it was ready: %s", Tail(u.log, 4<<10))
		case <-ctx.Done():
			return fmt.Errorf("up is not ready: %w; the end of its log:\n%s", ctx.Err(), Tail(u.log, 4<<10))
		case <-tick.C:
		}
	}
}

// Log returns the file of its standard error.
func (u *Up) Log() string { return u.log }

// Ended is closed when the program has ended.
func (u *Up) Ended() <-chan struct{} { return u.ended }

// Stop sends the program SIGTERM and waits until it has ended. When ctx ends first it
// kills the program. It returns nil.
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

// DemoRegistry is the demo registry, seen from the module's folder.
const DemoRegistry = "deploy/dev/registry.yaml"

// DemoKey is a test key of the demo registry. WithoutQuota raises its quotas.
const DemoKey = "sk_test_GuichetDemoKey00000000000"

// WithoutQuota writes a copy of the demo registry into dir, with quotas that no load
// reaches. It returns the file of the copy.
func WithoutQuota(demo, dir string) (string, error) {
	text, err := os.ReadFile(demo)
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
