package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/jackc/pgx/v5"
)

// PostgresVersion is the version that FetchPostgres fetches and StartPostgres runs.
const PostgresVersion = string(embeddedpostgres.V18)

// nobody is the user and group that the server runs as when this process is root,
// because PostgreSQL refuses to run as root.
const nobody = 65534

// PostgresConfig is the configuration of a PostgreSQL server.
type PostgresConfig struct {
	// Dir holds the cluster (Dir/data), its password (Dir/password) and
	// postgres.log. It is created when absent. When this process is root the
	// server runs as user 65534, and every folder above Dir must let that user
	// pass.
	Dir string
	// Port on 127.0.0.1.
	Port int
	// Binaries is the folder with bin/postgres. When empty,
	// QUITTANCE_POSTGRES_BINARIES, then .deps/postgres/<PostgresVersion> of the
	// working directory or of a folder above it, then the user's cache.
	Binaries string
	// Volatile turns fsync off: faster, and not crash-safe. Only for tests.
	Volatile bool
	// Settings are further server settings, name to value.
	Settings map[string]string
	// Log receives the steps of start and stop. Required.
	Log *slog.Logger
}

// Postgres is a running PostgreSQL server, a child process. It is safe for
// concurrent use, except Stop.
type Postgres struct {
	cfg      PostgresConfig
	proc     *child
	password string
	binaries string
	runAs    *syscall.Credential // nil means the user of this process
}

// StartPostgres creates the cluster if there is none, starts the server and returns
// once it answers a query. The database `quittance` then exists and belongs to the
// superuser of the same name.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	if cfg.Dir == "" || cfg.Port == 0 || cfg.Log == nil {
		return nil, errors.New("starting PostgreSQL: Dir, Port and Log are required")
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	cfg.Dir = dir
	p := &Postgres{cfg: cfg}
	if p.binaries, err = FindPostgres(cfg.Binaries); err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the server's own user must pass; the cluster itself is 0700
		return nil, fmt.Errorf("starting PostgreSQL: making its folder: %w", err)
	}
	if os.Geteuid() == 0 {
		p.runAs = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := CheckPostgresDir(dir); err != nil {
			return nil, fmt.Errorf("starting PostgreSQL: %w", err)
		}
		// Only root may be able to read the programs (for instance in a clone below /root).
		// The copy lies beside the data, where the other user can read it.
		if CheckPostgresDir(p.binaries) != nil {
			if p.binaries, err = p.copyBinaries(); err != nil {
				return nil, fmt.Errorf("starting PostgreSQL: copying its programs: %w", err)
			}
		}
	}
	if err := p.initialize(ctx); err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	if err := p.start(ctx); err != nil {
		return nil, fmt.Errorf("starting PostgreSQL: %w", err)
	}
	return p, nil
}

// FindPostgres returns the folder of PostgreSQL's programs: override if it is not empty,
// else as described at PostgresConfig.Binaries.
func FindPostgres(override string) (string, error) {
	dir, err := findPart(override, "QUITTANCE_POSTGRES_BINARIES", filepath.Join("postgres", PostgresVersion), hasPostgres)
	if err != nil {
		return "", fmt.Errorf("finding PostgreSQL's programs: %w; run `make deps`", err)
	}
	return dir, nil
}

func hasPostgres(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "bin", "postgres"))
	return err == nil && info.Mode().IsRegular()
}

// CheckPostgresDir returns nil when the user that the server runs as can reach dir. It
// does nothing unless this process is root. The error names the first folder that denies
// access and how to mend it. A folder that does not exist yet is accepted, because
// StartPostgres would create it.
func CheckPostgresDir(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("checking the folder: %w", err)
	}
	var chain []string
	for d := dir; ; d = filepath.Dir(d) {
		chain = append(chain, d)
		if d == filepath.Dir(d) {
			break
		}
	}
	slices.Reverse(chain)
	for _, d := range chain {
		info, err := os.Stat(d)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("checking the folder: %w", err)
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			continue
		}
		pass := fs.FileMode(0o001)
		switch {
		case st.Uid == nobody:
			pass = 0o100
		case st.Gid == nobody:
			pass = 0o010
		}
		if info.Mode()&pass == 0 {
			return fmt.Errorf("PostgreSQL does not run as root, so it runs as user %d, which may not pass through %s (mode %v): run `chmod o+x %s`, or choose another data folder",
				nobody, d, info.Mode().Perm(), d)
		}
	}
	return nil
}

// Addr is the server's host:port.
func (p *Postgres) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.cfg.Port)) }

// DSN returns the address of a database of this server. It contains the password, so it
// must not be logged. The database need not exist.
func (p *Postgres) DSN(database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword("quittance", p.password), Host: p.Addr(), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}).String()
}

// Stop ends the server with a fast shutdown, which closes the connections and writes a
// checkpoint. After ten seconds, or when ctx ends, it kills the server.
func (p *Postgres) Stop(ctx context.Context) error {
	if err := p.proc.stop(ctx, 10*time.Second, syscall.SIGINT, syscall.SIGQUIT); err != nil {
		return fmt.Errorf("stopping PostgreSQL: %w", err)
	}
	p.cfg.Log.LogAttrs(ctx, slog.LevelDebug, "PostgreSQL stopped", slog.String("addr", p.Addr()))
	return nil
}

// Kill ends the server at once, without writing a checkpoint: the next start recovers from the log, as after a crash.
func (p *Postgres) Kill(ctx context.Context) error {
	if err := p.proc.stop(ctx, 10*time.Second, syscall.SIGQUIT); err != nil {
		return fmt.Errorf("killing PostgreSQL: %w", err)
	}
	return nil
}

func (p *Postgres) dataDir() string      { return filepath.Join(p.cfg.Dir, "data") }
func (p *Postgres) passwordFile() string { return filepath.Join(p.cfg.Dir, "password") }
func (p *Postgres) logPath() string      { return filepath.Join(p.cfg.Dir, "postgres.log") }

func (p *Postgres) program(name string) string { return filepath.Join(p.binaries, "bin", name) }

// prepare sets the user, the folder and the environment of one of the server's programs.
// The environment is this process's, without PG* variables, which would change the
// program's behaviour, and with a HOME that the user may read.
func (p *Postgres) prepare(cmd *exec.Cmd) {
	cmd.Dir = p.cfg.Dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "PG") || strings.HasPrefix(kv, "HOME=") || strings.HasPrefix(kv, "LC_") || strings.HasPrefix(kv, "LANG")
	})
	cmd.Env = append(cmd.Env, "HOME="+p.cfg.Dir, "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.runAs}
}

// initialize creates the cluster once. It works in a folder beside the final one and
// renames it at the end, so that an interrupted start leaves no incomplete cluster.
func (p *Postgres) initialize(ctx context.Context) error {
	if version, err := os.ReadFile(filepath.Join(p.dataDir(), "PG_VERSION")); err == nil {
		major, _, _ := strings.Cut(PostgresVersion, ".")
		if got := strings.TrimSpace(string(version)); got != major {
			return fmt.Errorf("%s was made by PostgreSQL %s, this is %s: dump and restore it, or choose another data folder", p.dataDir(), got, major)
		}
		password, err := os.ReadFile(p.passwordFile())
		if err != nil {
			return fmt.Errorf("reading the password: %w", err)
		}
		p.password = strings.TrimSpace(string(password))
		return nil
	}
	p.password = rand.Text()
	if err := os.WriteFile(p.passwordFile(), []byte(p.password), 0o600); err != nil {
		return fmt.Errorf("writing the password: %w", err)
	}

	scratch := filepath.Join(p.cfg.Dir, "init")
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("clearing an unfinished cluster: %w", err)
	}
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	pwfile := filepath.Join(scratch, "pwfile")
	if err := os.WriteFile(pwfile, []byte(p.password), 0o600); err != nil {
		return fmt.Errorf("writing the password: %w", err)
	}
	if p.runAs != nil {
		for _, name := range []string{scratch, pwfile} {
			if err := os.Chown(name, nobody, nobody); err != nil {
				return fmt.Errorf("handing the cluster to its user: %w", err)
			}
		}
	}
	fresh := filepath.Join(scratch, "data")
	args := []string{
		"--pgdata=" + fresh, "--username=quittance", "--pwfile=" + pwfile, "--auth=scram-sha-256",
		// Sort and fold case by code point, so that every machine gives the same results.
		"--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C",
		"--no-instructions",
	}
	if p.cfg.Volatile {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, p.program("initdb"), args...) //nolint:gosec // our own program, found by configuration
	p.prepare(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making the cluster: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, p.dataDir()); err != nil {
		return fmt.Errorf("placing the cluster: %w", err)
	}
	if err := os.RemoveAll(scratch); err != nil {
		return fmt.Errorf("clearing up: %w", err)
	}
	return nil
}

func (p *Postgres) start(ctx context.Context) error {
	if err := portFree(p.cfg.Port); err != nil {
		return err
	}
	begun := time.Now()
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "port": strconv.Itoa(p.cfg.Port),
		// No socket file: its path is limited to 107 bytes, and a data folder may be longer.
		"unix_socket_directories": "",
		"max_connections":         "200", "shared_buffers": "64MB", "timezone": "UTC", "log_timezone": "UTC",
	}
	if p.cfg.Volatile {
		maps.Copy(settings, map[string]string{
			"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "400",
		})
	}
	maps.Copy(settings, p.cfg.Settings)
	args := []string{"-D", p.dataDir()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}

	// A server whose parent was killed still writes its checkpoint and locks the folder
	// until it has finished.
	const lockHeld = `lock file "postmaster.pid" already exists`
	for deadline := time.Now().Add(10 * time.Second); ; {
		cmd := exec.Command(p.program("postgres"), args...) //nolint:gosec,noctx // our own program; it outlives ctx, which bounds the start alone
		p.prepare(cmd)
		var err error
		if p.proc, err = startChild(cmd, p.logPath(), syscall.SIGINT); err != nil {
			return err
		}
		err = p.proc.waitReady(ctx, 20*time.Millisecond, p.logPath(), p.probe)
		if err == nil {
			break
		}
		err = errors.Join(err, p.proc.kill())
		var exit *exitError
		if !errors.As(err, &exit) || !strings.Contains(exit.tail, lockHeld) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
	p.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "PostgreSQL is ready",
		slog.String("addr", p.Addr()), slog.Duration("took", time.Since(begun).Round(time.Millisecond)))
	return nil
}

// probe succeeds once the server answers queries. It creates our database when it is
// missing.
func (p *Postgres) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = 'quittance')`).Scan(&exists); err != nil {
		return fmt.Errorf("looking for the database: %w", err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE quittance`); err != nil {
		return fmt.Errorf("creating the database: %w", err)
	}
	return nil
}

// copyBinaries copies the programs into the data folder, once for each version.
func (p *Postgres) copyBinaries() (string, error) {
	target := filepath.Join(p.cfg.Dir, "programs-"+PostgresVersion)
	if hasPostgres(target) {
		return target, nil
	}
	scratch := target + ".tmp"
	if err := os.RemoveAll(scratch); err != nil {
		return "", err
	}
	if err := os.CopyFS(scratch, os.DirFS(p.binaries)); err != nil {
		return "", err
	}
	if err := os.Rename(scratch, target); err != nil {
		return "", err
	}
	return target, nil
}

// openToAll lets everybody read the files of a tree, and run its programs: the archive's modes and
// our umask may deny access to the user who runs them.
func openToAll(tree string) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if d.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode) //nolint:gosec // a tree that we alone just made
	})
}
