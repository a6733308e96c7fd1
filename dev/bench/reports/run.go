// Package reports measures what reports on receipts cost: a day and a month of an agency, a
// month of all agencies, and the search for one payment.
package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"quittance/dev/bench/measure"
	"quittance/dev/stack/chdb"
	"quittance/internal/clickhouse"
	"quittance/reconciliation"
)

// Config of a measurement. Log is required.
type Config struct {
	// Rows of receipt_rows.
	Rows int
	// Folder of the engine's data, about 150 bytes for each row. It must not exist, and is removed
	// at the end. A temporary folder when empty.
	Folder string
	// Log receives progress.
	Log *slog.Logger
}

// The bars, at 10^8 rows on two cores.
const (
	maxDay, maxMonth, maxAll, maxLookup = 200 * time.Millisecond, time.Second, 3 * time.Second, 300 * time.Millisecond

	maxRSS    = 1024 // MB
	maxGrowth = 1.5
)

// minRows fill the months that are measured with a tenth of the rows.
const minRows = 100_000

// result is what is printed.
type result struct {
	rows                    int
	day, month, all, lookup time.Duration
	rss                     int // MB
	// growth is the time of a month with all rows, divided by the time with a tenth of them.
	growth float64
}

func (r result) String() string {
	return fmt.Sprintf("rows=%d day_ms=%.0f month_ms=%.0f all_ms=%.0f lookup_ms=%.0f rss_mb=%d growth=%.2f", r.rows,
		measure.Milliseconds(r.day), measure.Milliseconds(r.month), measure.Milliseconds(r.all), measure.Milliseconds(r.lookup), r.rss, r.growth)
}

// check returns an error that names the bars that were missed.
func (r result) check() error {
	var faults []error
	for _, bar := range []struct {
		name      string
		got, most time.Duration
	}{{"a day", r.day, maxDay}, {"a month", r.month, maxMonth}, {"a month of all agencies", r.all, maxAll}, {"a look-up", r.lookup, maxLookup}} {
		if bar.got > bar.most {
			faults = append(faults, fmt.Errorf("%s takes %v, more than %v", bar.name, bar.got.Round(time.Millisecond), bar.most))
		}
	}
	if r.rss > maxRSS {
		faults = append(faults, fmt.Errorf("the engine has %d MB, more than %d", r.rss, maxRSS))
	}
	if r.growth > maxGrowth {
		faults = append(faults, fmt.Errorf("ten times as many rows make a month take %.2f times as long, more than %.1f", r.growth, maxGrowth))
	}
	return errors.Join(faults...)
}

// Run starts an engine, makes the rows in it, measures with a tenth of them and with all,
// and writes the result to out as the last line. It returns an error when a bar is missed.
func Run(ctx context.Context, cfg Config, out io.Writer) (err error) {
	if cfg.Rows < minRows {
		return fmt.Errorf("--rows must be %d or more", minRows)
	}
	if cfg.Folder == "" {
		if cfg.Folder, err = os.MkdirTemp("", "quittance-bench-"); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	} else if err := os.Mkdir(cfg.Folder, 0o750); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.Folder)) }()
	r := result{rows: cfg.Rows}
	few, err := cfg.stage(ctx, 0, cfg.Rows/10, out)
	if err != nil {
		return err
	}
	if r, err = cfg.stage(ctx, cfg.Rows/10, cfg.Rows, out); err != nil {
		return err
	}
	r.growth = float64(r.month) / float64(few.month)
	if _, err := fmt.Fprintln(out, r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return r.check()
}

// stage adds the rows of the numbers from begin to end and measures in a new process, which
// holds nothing of the inserts.
func (c Config) stage(ctx context.Context, begin, end int, out io.Writer) (r result, err error) {
	err = c.engine(ctx, out, func(ctx context.Context, d *data) error {
		if begin == 0 {
			if err := reconciliation.Migrate(ctx, d.conn); err != nil {
				return err
			}
			if err := d.names(ctx); err != nil {
				return err
			}
		}
		return d.fill(ctx, begin, end)
	})
	if err != nil {
		return r, err
	}
	err = c.engine(ctx, out, func(ctx context.Context, d *data) error {
		r, err = d.measure(ctx)
		if err != nil {
			return err
		}
		r.rows = end
		r.rss, err = measure.PeakMB(d.pid)
		return err
	})
	return r, err
}

// engine starts an engine on the folder and calls do.
func (c Config) engine(ctx context.Context, out io.Writer, do func(ctx context.Context, d *data) error) (err error) {
	server, err := chdb.Start(ctx, chdb.Config{Dir: filepath.Join(c.Folder, "clickhouse"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	conn, err := clickhouse.Open(ctx, "http://"+server.Addr()+"/default?read_timeout=30m&max_threads=2")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return do(ctx, &data{conn: conn, pid: server.PID(), rows: c.Rows, log: c.Log, out: out})
}
