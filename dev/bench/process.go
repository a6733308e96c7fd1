package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// roleProcess is a role that runs as a process of this binary. It dies with us.
type roleProcess struct {
	name   string
	cmd    *exec.Cmd
	log    string // file
	health string
	done   chan struct{} // closed when it has ended
}

// startRole starts `quittance args`, with what it writes going to the file log.
func startRole(args []string, log, health string) (*roleProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", args[0], err)
	}
	p := &roleProcess{name: args[0], cmd: exec.Command(self, args...), log: log, health: health, done: make(chan struct{})} //nolint:gosec,noctx // ourselves; stopped in order, see stop
	//nolint:forbidigo // what the role inherits, no configuration of ours
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "QUITTANCE_") { // the command line says it all
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	// A group of its own, so that Ctrl-C reaches us alone.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	// The death signal is sent when the thread that forked ends (golang/go#27505):
	// this goroutine keeps its own until the role is gone.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer func() { _ = file.Close() }()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in ProcessState
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	return p, nil
}

// ended is what there is to say of a role that ended by itself.
func (p *roleProcess) ended() error {
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s ended (%s):\n%s", p.name, p.cmd.ProcessState, text[max(0, len(text)-4096):])
}

// watch returns when the role ends, with an error, or ctx does.
func (p *roleProcess) watch(ctx context.Context) error {
	select {
	case <-p.done:
		return p.ended()
	case <-ctx.Done():
		return nil
	}
}

// ready waits until /readyz answers 200.
func (p *roleProcess) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		_, err := p.get(ctx, "/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", p.name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// transactions reads from the processor's metrics how many records it has
// decided, in how many transactions.
func (p *roleProcess) transactions(ctx context.Context) (records, transactions float64, err error) {
	text, err := p.get(ctx, "/metrics")
	if err != nil {
		return 0, 0, err
	}
	const name = "quittance_processor_transaction_records"
	for line := range strings.Lines(string(text)) {
		metric, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch metric {
		case name + "_sum":
			records, err = strconv.ParseFloat(value, 64)
		case name + "_count":
			transactions, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return 0, 0, fmt.Errorf("reading metrics of %s: %w", p.name, err)
		}
	}
	return records, transactions, nil
}

// get asks the role's health address; any answer but 200 is an error.
func (p *roleProcess) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+path, nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.name, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.name, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(body)))
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s for %s: %w", p.name, path, err)
	}
	return body, nil
}

// stop asks the role to end, and ends it when that takes long.
func (p *roleProcess) stop(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	<-p.done
	return nil
}
