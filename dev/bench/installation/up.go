package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/internal/kafka"
)

// UpConfig is the `up` of a benchmark. All fields are required.
type UpConfig struct {
	// Broker is embedded, kafka, or host:port of a running Kafka.
	Broker string
	// Registry is the demo registry file.
	Registry string
	Log      *slog.Logger
}

// startWithin bounds the start of an `up`, stopWithin its end.
const (
	startWithin = 2 * time.Minute
	stopWithin  = 30 * time.Second
)

// Up starts an `up` of this program with the demo registry, without quotas and in a folder of
// its own, calls do with its port, and ends what it started. The context of do ends when the
// `up` does.
func Up(ctx context.Context, cfg UpConfig, do func(ctx context.Context, port int) error) (err error) {
	dir, err := os.MkdirTemp("", "quittance-bench-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Postgres passes through it as another user
		return fmt.Errorf("making a folder: %w", err)
	}
	args := []string{"--broker", cfg.Broker}
	if strings.Contains(cfg.Broker, ":") {
		topics := kafka.Config{Brokers: []string{cfg.Broker}, Prefix: "bench-" + uuid.NewString()[:8] + "."}
		args = append(args, "--topic-prefix", topics.Prefix)
		defer func() { err = errors.Join(err, Forget(ctx, topics)) }()
	}
	u, port, err := cfg.start(ctx, dir, args)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		err = errors.Join(err, u.Stop(ctx))
	}()
	g, ctx := errgroup.WithContext(ctx)
	ctx, done := context.WithCancel(ctx)
	g.Go(func() error {
		select {
		case <-u.Ended():
			return fmt.Errorf("up has ended; the end of its log:\n%s", program.Tail(u.Log(), 4<<10))
		case <-ctx.Done():
			return nil
		}
	})
	g.Go(func() error {
		defer done()
		return do(ctx, port)
	})
	return g.Wait()
}

// start starts the `up`.
func (c UpConfig) start(ctx context.Context, dir string, args []string) (*program.Up, int, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, 0, fmt.Errorf("finding this program: %w", err)
	}
	registry, err := program.WithoutQuota(c.Registry, dir)
	if err != nil {
		return nil, 0, fmt.Errorf("%w; name the demo registry with --registry, or run in the folder of the module", err)
	}
	ports, err := stack.FreePorts(program.UpPorts)
	if err != nil {
		return nil, 0, err
	}
	c.Log.Info("starting an installation", slog.String("folder", dir), slog.String("broker", c.Broker))
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	u, err := program.StartUp(ctx, program.UpConfig{Program: path, Root: ".", Dir: dir, Port: ports[0], Registry: registry, Args: args})
	return u, ports[0], err
}
