// Package live measures how soon citizens who wait at their pages are told that their
// payment is made.
package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"quittance/dev/bench/client"
	"quittance/dev/bench/installation"
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

// Run starts an `up` of this program with the demo registry, measures, writes a line for
// each pace to out and ends what it started. It returns an error when a citizen is not
// told, or when more than 5 of 100 are told later than Limit.
func Run(ctx context.Context, cfg Config, out io.Writer) error {
	if cfg.Citizens < 1 {
		return errors.New("--citizens must be 1 or more")
	}
	up := installation.UpConfig{Broker: cfg.Broker, Registry: cfg.Registry, Log: cfg.Log}
	return installation.Up(ctx, up, func(ctx context.Context, port int) error { return cfg.measure(ctx, client.New(port), out) })
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
