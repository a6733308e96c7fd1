package harness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/dev/bench/client"
	"quittance/dev/bench/measure"
	"quittance/dev/stack/program"
	"quittance/internal/secret"
	"quittance/test/servers"
)

// Ports of an `up`, counted from the port of the service; see docs/developing/simulators.md.
const (
	AtService    = 0
	AtSimulators = 1
	AtBroker     = 2
	AtController = 3
	AtClickHouse = 5
	AtRegistry   = 6 // of schemas
	AtHealth     = 7
)

// Soon bounds the wait for things that happen without further requests. It is long,
// since the machine may be busy.
const Soon = client.Soon

// Up is a `quittance-dev up` of a test.
type Up struct {
	Dir      string // of its data, output and registry
	Port     int
	Registry string // file
	Client   *http.Client
	Banner   string // standard output when it was ready

	args    []string
	running *program.Up
	begun   bool // at least once
}

// Shared returns the `quittance-dev up` of all suites that only read and create: the one of
// servers.Installation. It has the registry of WithoutQuota and logs everything. A test starts
// its own when it moves the clock, changes the simulators for other tests, or reads global counts.
func Shared(t *testing.T) *Up {
	t.Helper()
	port, dir := servers.Installation(t)
	return &Up{Dir: dir, Port: port, Client: client.New(port).HTTP}
}

// NewUp returns an `up` that is not started yet. Its folder is removed with the test.
func NewUp(t *testing.T, args ...string) *Up {
	t.Helper()
	port := Ports(t, program.UpPorts)[0]
	return &Up{Dir: servers.Dir(t), Port: port, Registry: program.DemoRegistry, args: args, Client: client.New(port).HTTP}
}

// URL returns the URL of a path at one of the ports.
func (u *Up) URL(part int, path string) string { return "http://" + program.Local(u.Port+part) + path }

// Stderr returns the file of the program's log.
func (u *Up) Stderr() string { return filepath.Join(u.Dir, "stderr.log") }

// Data returns the folder of --data.
func (u *Up) Data() string { return filepath.Join(u.Dir, "data") }

// Keys returns the master keys of the installation.
func (u *Up) Keys(t testing.TB) *secret.Keys {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(u.Data(), "master.keys"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := secret.ParseKeys(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// startPatience is how long an installation may take to start. Several of them start at once, beside whole suites.
const startPatience = 6 * time.Minute

// Start starts it and waits until it is ready.
func (u *Up) Start(t *testing.T) {
	t.Helper()
	path := servers.QuittanceDev(t)
	ctx, cancel := context.WithTimeout(t.Context(), startPatience)
	defer cancel()
	var err error
	u.running, err = program.StartUp(ctx, program.UpConfig{Program: path, Root: Root, Dir: u.Dir, Port: u.Port, Registry: u.Registry, Args: u.args})
	if err != nil {
		t.Fatal(err)
	}
	if !u.begun {
		u.begun = true
		t.Cleanup(func() {
			u.End(30 * time.Second)
			NamesNoSession(t, u.Stderr())
			if t.Failed() {
				t.Logf("the end of its log:\n%s", program.Tail(u.Stderr(), 8<<10))
			}
		})
	}
	u.Banner = u.running.Banner
	u.serves(t)
}

// addresses finds the addresses of the banner.
var addresses = regexp.MustCompile(`https?://((?:127\.0\.0\.1|localhost):\d+)`)

// serves checks that every address of the banner answers as soon as the banner is printed.
func (u *Up) serves(t *testing.T) {
	t.Helper()
	found := addresses.FindAllStringSubmatch(u.Banner, -1)
	if len(found) < 5 {
		t.Errorf("the banner has %d addresses: %s", len(found), u.Banner)
	}
	for _, m := range found {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", m[1])
		if err != nil {
			t.Errorf("up says ready before %s serves: %v", m[1], err)
			continue
		}
		_ = conn.Close()
	}
}

// End stops it, kills it after patience, and returns how long that took.
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

// Child returns the process id of a child whose name has a prefix.
func (u *Up) Child(t *testing.T, prefix string) int {
	t.Helper()
	for _, pid := range measure.Children(u.running.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.HasPrefix(filepath.Base(strings.SplitN(string(name), "\x00", 2)[0]), prefix) {
			return pid
		}
	}
	t.Fatalf("up has no child %s…", prefix)
	return 0
}

// Eventually repeats check until it returns nil, for up to Soon.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := client.Eventually(t.Context(), what, check); err != nil {
		t.Fatal(err)
	}
}

// AtOnce calls all functions at the same time and waits until all have returned.
func AtOnce(do ...func()) {
	var all sync.WaitGroup
	for _, f := range do {
		all.Go(f)
	}
	all.Wait()
}
