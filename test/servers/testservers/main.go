// Command testservers runs a command, such as go test, whose test binaries share servers,
// and ends with that command's exit code:
//
//	testservers [-all] -- go test ./...
//
// A server starts when a test first asks for it, and stops after the command: a command
// whose tests need none starts none. With -all the servers start before the command. See
// package servers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"quittance/test/servers"
)

func main() {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	all := flag.Bool("all", false, "start the servers before the command")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, log, *all, flag.Args())
	cancel()
	if err != nil {
		log.Error("test servers", slog.Any("error", err))
	}
	os.Exit(code)
}

// run returns the exit code of the command, or an error and a code that is not 0. With all it first
// starts all servers.
func run(ctx context.Context, log *slog.Logger, all bool, command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("usage: testservers [-all] -- COMMAND [ARGUMENT…]")
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 1, fmt.Errorf("listening for tests: %w", err)
	}
	server := &http.Server{Handler: servers.Handler(log), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		// An interrupted run also stops its servers, so the stop does not use ctx itself.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = server.Close()
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		err = errors.Join(err, servers.Stop(ctx))
	}()

	if all {
		servers.StartAll(ctx, log)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...) //nolint:gosec // the caller's own command
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), servers.Variable+"=http://"+listener.Addr().String())
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
