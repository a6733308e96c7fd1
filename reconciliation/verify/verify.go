// Package verify compares the journal in ClickHouse with Kafka each night (journal.Store.Verify), so that rows that
// were changed by hand, lost or added are found before somebody reports them.
package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/nightly"
	"quittance/money/localtime"
)

const (
	// slack is how much earlier than the first day of a month the records of its rows may be: a statement may
	// have lines of the day after.
	slack = 72 * time.Hour
	// named is how many rows the log names.
	named = 20
)

// Config configures a Verifier. All fields but Everything and Every are required.
type Config struct {
	Kafka   kafka.Config
	Decoder journal.Decoder
	Store   *journal.Store
	// Everything reads all records of Kafka, whatever their time: the service's clock is not that of the records.
	Everything bool
	// Every is the time between two looks at the clock; a minute when zero.
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Verifier verifies the present and the previous month each night.
type Verifier struct {
	cfg        Config
	comparison *nightly.Comparison[journal.Fault]
}

// New makes a verifier.
func New(cfg Config) (*Verifier, error) {
	if cfg.Decoder.Codec == nil || cfg.Store == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("verify: Decoder, Store, Now, Log and Metrics are required")
	}
	return &Verifier{cfg, nightly.NewComparison(cfg.Metrics, prometheus.GaugeOpts{
		Name: "quittance_journal_differences", Help: "Rows of ClickHouse that are not as Kafka's records make them, by the last verification of the present and the previous month.",
	}, prometheus.GaugeOpts{
		Name: "quittance_journal_verified_timestamp_seconds", Help: "When ClickHouse was last compared with Kafka, or this process began.",
	}, journal.FaultMissing, journal.FaultDifferent, journal.FaultAdded)}, nil
}

// Run verifies each night until ctx ends, then returns nil.
func (v *Verifier) Run(ctx context.Context) error {
	return nightly.Job{
		Name: "comparing ClickHouse with Kafka", Every: v.cfg.Every, Now: v.cfg.Now, Log: v.cfg.Log,
		Do: func(ctx context.Context) error { _, err := v.Verify(ctx); return err },
	}.Run(ctx)
}

// Verify verifies the present and the previous month once.
func (v *Verifier) Verify(ctx context.Context) (journal.Verified, error) {
	local := localtime.In(v.cfg.Now())
	from := time.Date(local.Year(), local.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	got, err := v.cfg.Store.Verify(ctx, Request(v.cfg.Kafka, v.cfg.Decoder, from, time.Time{}, v.cfg.Everything))
	if err != nil {
		return got, err
	}
	v.comparison.Found(func(f journal.Fault) int64 {
		return map[journal.Fault]int64{journal.FaultMissing: got.Missing, journal.FaultDifferent: got.Different, journal.FaultAdded: got.Added}[f]
	})
	about := []slog.Attr{slog.String("from", from.Format(time.DateOnly)), slog.Int64("rows", got.Rows), slog.Int64("missing", got.Missing), slog.Int64("different", got.Different), slog.Int64("added", got.Added)}
	if got.Holds() {
		v.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "ClickHouse has what Kafka has", about...)
		return got, nil
	}
	v.cfg.Log.LogAttrs(ctx, slog.LevelError, "ClickHouse has not what Kafka has; `quittance journal verify` names the rows, and `quittance rebuild journal` writes them again", about...)
	for _, d := range got.Differences[:min(named, len(got.Differences))] {
		v.cfg.Log.LogAttrs(ctx, slog.LevelError, "a row is not as Kafka has it", slog.String("table", d.Table), slog.String("fault", d.Fault), slog.String("row", d.Row), slog.String("day", d.Day.Format(time.DateOnly)),
			slog.String("record", fmt.Sprintf("%s/%d/%d", d.Topic, d.Partition, d.Offset)))
	}
	return got, nil
}

// Request returns what compares the rows of days from from up to but not including before; zero for all. everything
// reads records of any time.
func Request(k kafka.Config, d journal.Decoder, from, before time.Time, everything bool) journal.VerifyConfig {
	out := journal.VerifyConfig{Kafka: k, Decoder: d, From: from, Before: before}
	if !everything && !from.IsZero() {
		out.Since = from.Add(-slack)
	}
	return out
}
