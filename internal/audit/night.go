package audit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/nightly"
)

// named is how many findings the log names.
const named = 20

// NightConfig configures a Night. All fields but Every are required.
type NightConfig struct {
	Verify VerifyConfig
	// Every is the time between two looks at the clock; a minute when zero.
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Night verifies the audit table each night.
type Night struct {
	cfg        NightConfig
	comparison *nightly.Comparison[Fault]
}

// NewNight makes a Night.
func NewNight(cfg NightConfig) (*Night, error) {
	if cfg.Verify.Codec == nil || cfg.Verify.Pool == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("audit: Verify, Now, Log and Metrics are required")
	}
	return &Night{cfg, nightly.NewComparison(cfg.Metrics, prometheus.GaugeOpts{
		Name: "quittance_audit_differences", Help: "Rows of the audit table that are not as Kafka has them and that nobody has accepted, by the last verification.",
	}, prometheus.GaugeOpts{
		Name: "quittance_audit_verified_timestamp_seconds", Help: "When the audit table was last compared with Kafka, or this process began.",
	}, Faults()...)}, nil
}

// Run verifies each night until ctx ends, then returns nil.
func (n *Night) Run(ctx context.Context) error {
	return nightly.Job{
		Name: "comparing the audit table with Kafka", Every: n.cfg.Every, Now: n.cfg.Now, Log: n.cfg.Log, Do: n.once,
	}.Run(ctx)
}

func (n *Night) once(ctx context.Context) error {
	got, err := Verify(ctx, n.cfg.Verify)
	if err != nil {
		return err
	}
	n.comparison.Found(got.Count)
	about := []slog.Attr{slog.Int64("rows", got.Rows), slog.Int64("records", got.Records), slog.Int64("unreadable", got.Unreadable)}
	if got.Holds() {
		n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the audit table has what Kafka has", about...)
		return nil
	}
	n.cfg.Log.LogAttrs(ctx, slog.LevelError, "the audit table has not what Kafka has; `quittance audit verify` names the rows", about...)
	left := named
	for _, f := range got.Findings {
		if f.Accepted {
			continue
		}
		if left--; left < 0 {
			break
		}
		n.cfg.Log.LogAttrs(ctx, slog.LevelError, "a row of the audit table is not as it was recorded", slog.String("fault", string(f.Fault)), slog.Int64("record", f.Sequence), slog.Int64("row", f.RowID),
			slog.Time("at", f.At), slog.String("actor", f.Actor), slog.String("action", f.Action), slog.String("subject", f.Subject))
	}
	return nil
}
