package stack_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/dev/stack"
	"quittance/test/servers"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// A server runs as `up` runs it, with fsync, also for root. Committed data is there after a
// restart, and an open connection does not delay the stop.
func TestPostgres(t *testing.T) {
	t.Parallel()
	cfg := stack.PostgresConfig{Dir: filepath.Join(servers.Dir(t), "postgres"), Port: freePort(t), Log: logger(t)}
	begun := time.Now()
	p, err := stack.StartPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, p.Stop)
	t.Logf("first start: %v", time.Since(begun))

	conn := connect(t, p.DSN("quittance"))
	var version, fsync, zone string
	err = conn.QueryRow(t.Context(), `SELECT current_setting('server_version'), current_setting('fsync'), current_setting('timezone')`).
		Scan(&version, &fsync, &zone)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version, "18.") || fsync != "on" || zone != "UTC" {
		t.Errorf("version %s, fsync %s, time zone %s; want 18, on, UTC", version, fsync, zone)
	}
	if _, err := conn.Exec(t.Context(), `CREATE TABLE kept AS SELECT 42 AS n`); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), strings.Replace(p.DSN("quittance"), "quittance:", "quittance:x", 1)); err == nil {
		t.Error("the server accepts a wrong password")
	}

	begun = time.Now()
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	begun = time.Now()
	again, err := stack.StartPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, again.Stop)
	t.Logf("second start: %v", time.Since(begun))
	var n int
	if err := connect(t, again.DSN("quittance")).QueryRow(t.Context(), `SELECT n FROM kept`).Scan(&n); err != nil || n != 42 {
		t.Errorf("after a restart: %d, %v", n, err)
	}

	// A kill writes no checkpoint: what was committed since the last one comes back from the log.
	if _, err := connect(t, again.DSN("quittance")).Exec(t.Context(), `INSERT INTO kept VALUES (43)`); err != nil {
		t.Fatal(err)
	}
	if err := again.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	third, err := stack.StartPostgres(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, third.Stop)
	if err := connect(t, third.DSN("quittance")).QueryRow(t.Context(), `SELECT sum(n) FROM kept`).Scan(&n); err != nil || n != 85 {
		t.Errorf("after a kill: %d, %v", n, err)
	}
	if text, err := os.ReadFile(filepath.Join(cfg.Dir, "postgres.log")); err != nil || !strings.Contains(string(text), "was not properly shut down") {
		t.Errorf("the server was stopped in order (%v)", err)
	}
}

// The server's user cannot enter root's own folders. The error must name the folder and the
// mend, not "permission denied".
func TestPostgresNamesTheFolderInTheWay(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	closed := filepath.Join(servers.Dir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := stack.StartPostgres(t.Context(), stack.PostgresConfig{
		Dir: filepath.Join(closed, "deep", "postgres"), Port: freePort(t), Log: logger(t),
	})
	if err == nil || !strings.Contains(err.Error(), "chmod o+x "+closed) {
		t.Errorf("got %v, want the mend for %s", err, closed)
	}
}

// The server's user may be unable to reach the programs, for instance in a clone in root's
// home. The server starts nevertheless.
func TestPostgresProgramsOutOfReach(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	programs, err := stack.FindPostgres("")
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(servers.Dir(t), "closed")
	if err := os.CopyFS(closed, os.DirFS(programs)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := stack.StartPostgres(t.Context(), stack.PostgresConfig{
		Dir: servers.Dir(t), Port: freePort(t), Binaries: closed, Volatile: true, Log: logger(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, p.Stop)
	connect(t, p.DSN("quittance"))
}
