// Package live measures how soon citizens who wait at their pages are told that their
// payment is made.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quittance/dev/bench/client"
	"quittance/dev/bench/installation"
	"quittance/dev/stack"
	"quittance/dev/stack/program"
	"quittance/internal/kafka"
)

// Config of a measurement. All fields are required.
type Config struct {
	// Broker of the `up`: embedded, kafka, or host:port of a running Kafka.
	Broker string
	// Registry is the demo registry file.
	Registry string
	// Citizens who wait at the same time.
	Citizens int
	// Log receives progress.
	Log *slog.Logger
}

// paces are the times between two approvals.
var paces = []time.Duration{20 * time.Millisecond, 0}

// warmup is the number of citizens before the measurement. They fill connection pools
// and caches.
const warmup = 20

// startWithin bounds the start of an `up`, stopWithin its end.
const (
	startWithin = 2 * time.Minute
	stopWithin  = 30 * time.Second
)

// Run starts an `up` of this program with the demo registry, measures, writes a line for
// each pace to out and ends what it started. It returns an error when a citizen is not
// told, or when more than 5 of 100 are told later than Limit.
func Run(ctx context.Context, cfg Config, out io.Writer) (err error) {
	if cfg.Citizens < 1 {
		return errors.New("--citizens must be 1 or more")
	}
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
		defer func() { err = errors.Join(err, installation.Forget(ctx, topics)) }()
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
		return cfg.measure(ctx, client.New(port), out)
	})
	return g.Wait()
}

// start starts the `up`.
func (c Config) start(ctx context.Context, dir string, args []string) (*program.Up, int, error) {
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

// measure measures all paces.
func (c Config) measure(ctx context.Context, to *client.Client, out io.Writer) error {
	c.Log.Info("warming up", slog.Int("citizens", warmup))
	if _, err := Measure(ctx, to, warmup, 0); err != nil {
		return err
	}
	var faults []error
	for _, pace := range paces {
		c.Log.Info("citizens pay and wait", slog.Int("citizens", c.Citizens), slog.Duration("pace", pace))
		r, err := Measure(ctx, to, c.Citizens, pace)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("live_citizens=%d every_ms=%d", c.Citizens, pace.Milliseconds())
		if _, err := fmt.Fprintln(out, what, r); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
		faults = append(faults, r.Lost...)
		if !r.Soon() {
			faults = append(faults, fmt.Errorf("%s: p95 is more than %v", what, Limit))
		}
	}
	return errors.Join(faults...)
}
