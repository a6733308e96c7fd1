package servers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"syscall"

	"quittance/dev/stack"
	"quittance/dev/stack/chdb"
)

// server is a server for tests on free ports of this machine.
type server struct {
	addr string                      // in the form in which tests get it
	stop func(context.Context) error // ends it; may be nil
}

// startKafka starts a real Kafka with its data in dir. The broker's session is longer than the pauses
// of a busy machine: no topic can be created while it is over. Tests that kill a broker start their own.
func startKafka(ctx context.Context, dir string, log *slog.Logger) (*server, error) {
	return retry(func() (*server, error) {
		ports, err := stack.FreePorts(2)
		if err != nil {
			return nil, err
		}
		k, err := stack.StartKafka(ctx, stack.KafkaConfig{
			Dir: dir, Port: ports[0], ControllerPort: ports[1], Log: log, Properties: map[string]string{"broker.session.timeout.ms": "60000"},
		})
		if err != nil {
			return nil, err
		}
		return &server{addr: k.Addr(), stop: k.Stop}, nil
	})
}

// startPostgres starts a real PostgreSQL with its data in dir, which does not
// survive a crash of the machine.
func startPostgres(ctx context.Context, dir string, log *slog.Logger) (*server, error) {
	return retry(func() (*server, error) {
		ports, err := stack.FreePorts(1)
		if err != nil {
			return nil, err
		}
		p, err := stack.StartPostgres(ctx, stack.PostgresConfig{Dir: dir, Port: ports[0], Volatile: true, Log: log})
		if err != nil {
			return nil, err
		}
		return &server{addr: p.DSN("postgres"), stop: p.Stop}, nil
	})
}

// startClickHouse starts the real ClickHouse engine with its data in dir.
func startClickHouse(ctx context.Context, dir string, log *slog.Logger) (*server, error) {
	s, err := chdb.Start(ctx, chdb.Config{Dir: dir, Log: log})
	if err != nil {
		return nil, err
	}
	return &server{addr: s.Addr(), stop: s.Stop}, nil
}

// startSchemaRegistry starts a schema registry in this process, with its schemas in dir.
func startSchemaRegistry(ctx context.Context, dir string, log *slog.Logger) (*server, error) {
	r, err := stack.StartSchemaRegistry(ctx, stack.SchemaRegistryConfig{Dir: dir, Log: log})
	if err != nil {
		return nil, err
	}
	return &server{addr: r.URL(), stop: r.Stop}, nil
}

// retry starts a server again if another process has taken its port meanwhile.
func retry(start func() (*server, error)) (*server, error) {
	var err error
	for range 3 {
		var s *server
		if s, err = start(); err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return s, err
		}
	}
	return nil, err
}

// removeAfterUs removes a folder after the end of this process, also after a kill. A shell
// waits until a pipe closes that only this process holds open. The servers end at the same
// time and may still write, so the shell repeats the removal.
func removeAfterUs(dir string) error {
	cmd := exec.Command("/bin/sh", "-c", //nolint:gosec,noctx // the folder is ours; the shell must outlive this process
		`cat; n=0; until rm -rf -- "$0" 2>/dev/null || [ $n -ge 50 ]; do n=$((n+1)); sleep 0.2; done`, dir)
	// Ctrl-C must not end the shell.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("arranging the removal of %s: %w", dir, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("arranging the removal of %s: %w", dir, err)
	}
	keep = append(keep, pipe)
	return nil
}

// keep refers to the pipes until this process ends: a pipe that is collected as garbage
// closes.
var keep []any
