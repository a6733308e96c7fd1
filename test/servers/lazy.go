package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"quittance/test/httpclient"

	"golang.org/x/sync/errgroup"
)

// Variable names the environment variable with the address of a Handler, which starts the
// servers that test binaries share.
const Variable = "QUITTANCE_TEST_SERVERS"

// lazy is a server that starts when it is first asked for: by the process behind Variable,
// or without one by this process. It runs until the process that started it ends. An
// address in the environment has precedence.
type lazy struct {
	name  string // also the name of its folder, and of its variable
	start func(ctx context.Context, dir string, log *slog.Logger) (*server, error)

	mu      sync.Mutex
	at      string // the address, once it is known
	started *server
	err     error
}

var (
	kafka          = &lazy{name: "kafka", start: startKafka}
	postgres       = &lazy{name: "postgres", start: startPostgres}
	clickhouse     = &lazy{name: "clickhouse", start: startClickHouse}
	schemaRegistry = &lazy{name: "schema-registry", start: startSchemaRegistry}
	installation   = &lazy{name: "installation", start: startInstallation}
	production     = &lazy{name: "quittance", start: buildProduction}
	developer      = &lazy{name: "quittance-dev", start: buildDeveloper}
)

func servers() []*lazy {
	return []*lazy{kafka, postgres, clickhouse, schemaRegistry, installation, production, developer}
}

func (l *lazy) env() string {
	return "QUITTANCE_TEST_" + strings.ToUpper(strings.ReplaceAll(l.name, "-", "_"))
}

// get returns the address of the server. Its start does not end with ctx, because others
// use the server too.
func (l *lazy) get(ctx context.Context, log *slog.Logger) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != "" || l.err != nil {
		return l.at, l.err
	}
	if l.at = os.Getenv(l.env()); l.at != "" {
		return l.at, nil
	}
	if shared := os.Getenv(Variable); shared != "" {
		at, err := ask(ctx, shared+"/"+l.name)
		if err != nil {
			return "", err // ctx may have ended: the next caller asks again
		}
		l.at = at
		return at, nil
	}
	if l.err = l.startNow(ctx, log); l.err != nil {
		l.err = fmt.Errorf("starting %s: %w", l.name, l.err)
		return "", l.err
	}
	l.at = l.started.addr
	return l.at, nil
}

func (l *lazy) startNow(ctx context.Context, log *slog.Logger) error {
	base, err := Folder()
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	begun := time.Now()
	if l.started, err = l.start(ctx, filepath.Join(base, l.name), log); err != nil {
		return err
	}
	log.LogAttrs(ctx, slog.LevelInfo, "ready for tests", slog.String("server", l.name), slog.Duration("took", time.Since(begun).Round(time.Millisecond)))
	return nil
}

// ask returns what a Handler answers. It waits as long as a start takes.
func ask(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil) //nolint:gosec // the address comes from whoever runs the tests
	if err != nil {
		return "", fmt.Errorf("asking for a shared server: %w", err)
	}
	resp, err := httpclient.Default.Do(req) //nolint:gosec // the address comes from whoever runs the tests
	if err != nil {
		return "", fmt.Errorf("asking for a shared server: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(body))
	}
	if err != nil {
		return "", fmt.Errorf("asking for a shared server: %w", err)
	}
	return string(body), nil
}

// addr is get for a test.
func (l *lazy) addr(t testing.TB) string {
	t.Helper()
	// The server outlives the test, so it cannot write to the test's log.
	at, err := l.get(t.Context(), slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatalf("servers: %v", err)
	}
	return at
}

// known returns the address of the server; empty if no test of this package has asked for it.
func (l *lazy) known() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// StartAll starts the servers and builds the programs, side by side, before many tests that need
// most of them: a start beside tests makes those late that wait for something. The installation
// still starts when a test first asks for it. A test that asks for what could not start gets the error.
func StartAll(ctx context.Context, log *slog.Logger) {
	var group errgroup.Group
	for _, l := range servers() {
		if l != installation {
			group.Go(func() error { _, err := l.get(ctx, log); return err })
		}
	}
	if err := group.Wait(); err != nil {
		log.LogAttrs(ctx, slog.LevelError, "starting the servers of tests", slog.Any("error", err))
	}
}

// Handler answers GET /NAME with the address of a server, which starts at the first request
// and runs until Stop. Test binaries whose Variable has its address share the servers.
func Handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	for _, l := range servers() {
		mux.HandleFunc("GET /"+l.name, func(w http.ResponseWriter, r *http.Request) {
			at, err := l.get(r.Context(), log)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w, at)
		})
	}
	return mux
}

// Stop ends the servers that this process has started. It waits for those that start now.
func Stop(ctx context.Context) error {
	var group errgroup.Group
	for _, l := range servers() {
		group.Go(func() error {
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.started == nil || l.started.stop == nil {
				return nil
			}
			return l.started.stop(ctx)
		})
	}
	return group.Wait()
}
