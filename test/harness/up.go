package harness

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/dev/bench/client"
	"quittance/dev/stack/program"
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
)

// Soon bounds the wait for things that happen without further requests. It is long,
// since the machine may be busy.
const Soon = client.Soon

// Up is a `quittance-dev up` of a test, as a newcomer starts it.
type Up struct {
	Dir      string // of this test: data, output, registry
	Port     int
	Registry string // file
	Client   *http.Client
	Banner   string // what Start has read from its standard output

	args    []string
	running *program.Up
	begun   bool // at least once
}

// Shared is the `quittance-dev up` that all suites share which only read and create.
// QUITTANCE_TEST_INSTALLATION says where it is; without it each suite starts one. Its
// registry is that of WithoutQuota, and it logs everything. A test that moves the
// clock, controls the world outside for everybody or counts what all have done starts
// its own.
func Shared(t *testing.T) *Up {
	t.Helper()
	address, err := sharedAddress()
	if err != nil {
		t.Fatal(err)
	}
	first, dir, _ := strings.Cut(address, " ")
	port, err := strconv.Atoi(first)
	if err != nil {
		t.Fatalf("QUITTANCE_TEST_INSTALLATION is %q, want PORT DIR", address)
	}
	return &Up{Dir: dir, Port: port, Client: client.New(port).HTTP}
}

var sharedAddress = sync.OnceValues(func() (string, error) {
	if address := os.Getenv("QUITTANCE_TEST_INSTALLATION"); address != "" {
		return address, nil
	}
	path, err := Binary()
	if err != nil {
		return "", err
	}
	dir, err := servers.Folder()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	server, err := servers.StartInstallation(ctx, path, Root, filepath.Join(dir, "installation"), slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	return server.Addr, nil
})

// NewUp makes an `up` that has not been started. Its folder goes with the test.
func NewUp(t *testing.T, args ...string) *Up {
	t.Helper()
	port := Ports(t, program.UpPorts)[0]
	return &Up{Dir: servers.Dir(t), Port: port, Registry: program.DemoRegistry, args: args, Client: client.New(port).HTTP}
}

// URL is the address of a path at one of the ports.
func (u *Up) URL(part int, path string) string { return "http://" + program.Local(u.Port+part) + path }

// Stderr is the file of the program's log.
func (u *Up) Stderr() string { return filepath.Join(u.Dir, "stderr.log") }

// Data is the folder that --data names.
func (u *Up) Data() string { return filepath.Join(u.Dir, "data") }

// Start starts it and waits for the block that says it is ready.
func (u *Up) Start(t *testing.T) {
	t.Helper()
	path, err := Binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	u.running, err = program.StartUp(ctx, program.UpConfig{Program: path, Root: Root, Dir: u.Dir, Port: u.Port, Registry: u.Registry, Args: u.args})
	if err != nil {
		t.Fatal(err)
	}
	if !u.begun {
		u.begun = true
		t.Cleanup(func() {
			u.End(30 * time.Second)
			if t.Failed() {
				t.Logf("the end of what up said:\n%s", program.Tail(u.Stderr(), 8<<10))
			}
		})
	}
	u.Banner = u.running.Banner
}

// End tells it to end, by force after patience, and says how long that took.
func (u *Up) End(patience time.Duration) time.Duration {
	if u.running == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begun := time.Now()
	_ = u.running.Stop(ctx)
	u.running = nil
	return time.Since(begun)
}

// Child is the process id of a child whose name has a prefix.
func (u *Up) Child(t *testing.T, prefix string) int {
	t.Helper()
	for _, pid := range ChildrenOf(t, u.running.Pid) {
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

// Eventually repeats check until it returns nil, for up to Soon.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := client.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
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
