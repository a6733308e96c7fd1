// Command testservers starts the servers of the tests, passes their addresses to the
// command after "--" and ends with that command's exit code:
//
//	testservers [-without kafka,clickhouse] [-up QUITTANCE-DEV] -- go test ./...
//
// A server whose address is already in the environment is not started. With -up it also
// starts the installation that suites share, with that program. Package servers lists the
// variables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"quittance/test/servers"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	without := flag.String("without", "", "servers not to start: a list of kafka, postgres, clickhouse, schema-registry")
	up := flag.String("up", "", "path of quittance-dev, to start the installation that suites share")
	flag.Parse()
	if *up != "" {
		parts = append(parts, part{"installation", "QUITTANCE_TEST_INSTALLATION", func(ctx context.Context, dir string, log *slog.Logger) (*servers.Server, error) {
			return servers.StartInstallation(ctx, *up, ".", dir, log)
		}})
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, log, strings.Split(*without, ","), flag.Args())
	cancel()
	if err != nil {
		log.Error("test servers", slog.Any("error", err))
	}
	os.Exit(code)
}

// part is a server that can be started.
type part struct {
	name, env string
	start     func(context.Context, string, *slog.Logger) (*servers.Server, error)
}

// parts are all servers.
var parts = []part{
	{"kafka", "QUITTANCE_TEST_KAFKA", servers.StartKafka},
	{"postgres", "QUITTANCE_TEST_POSTGRES", servers.StartPostgres},
	{"clickhouse", "QUITTANCE_TEST_CLICKHOUSE", servers.StartClickHouse},
	{"schema-registry", "QUITTANCE_TEST_SCHEMA_REGISTRY", servers.StartSchemaRegistry},
}

// run returns the exit code of the command, or an error and a code that is not 0.
func run(ctx context.Context, log *slog.Logger, without, command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("usage: testservers [-without LIST] -- COMMAND [ARGUMENT…]")
	}
	dir, err := servers.Folder()
	if err != nil {
		return 1, fmt.Errorf("making a folder: %w", err)
	}

	begun := time.Now()
	started := make([]*servers.Server, len(parts))
	defer func() {
		// An interrupted run also stops its servers, so the stop does not use ctx itself.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		var group errgroup.Group
		for _, s := range started {
			if s != nil {
				group.Go(func() error { return s.Stop(ctx) })
			}
		}
		err = errors.Join(err, group.Wait())
	}()
	starting, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var group errgroup.Group
	for i, part := range parts {
		if slices.Contains(without, part.name) || os.Getenv(part.env) != "" {
			continue
		}
		group.Go(func() error {
			s, err := part.start(starting, filepath.Join(dir, part.name), log)
			if err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
			started[i] = s
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return 1, err
	}
	log.Info("test servers are ready", slog.Duration("took", time.Since(begun).Round(time.Millisecond)))

	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the caller's own command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	for _, s := range started {
		if s != nil {
			cmd.Env = append(cmd.Env, s.Env+"="+s.Addr)
		}
	}
	// A terminal sends Ctrl-C to the command itself; this is for other signals.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode(), nil // the command has printed the reason
		}
		return 1, fmt.Errorf("running %s: %w", command[0], err)
	}
	return 0, nil
}
