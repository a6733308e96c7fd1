package sessions

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/comparison"
	"quittance/internal/nightly"
)

// named is how many rows the log of a night names.
const named = 20

// NightConfig configures a Night. All fields but Every are required.
type NightConfig struct {
	Store  *Store
	Verify VerifyConfig
	// Others compare further tables of Postgres with Kafka.
	Others []func(ctx context.Context) (comparison.Result, error)
	// Every is the time between two looks at the clock; a minute when zero.
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Night compares the read model and other tables with Kafka each night (Store.Verify).
type Night struct {
	cfg        NightConfig
	comparison *nightly.Comparison[Fault]
}

// NewNight makes a Night.
func NewNight(cfg NightConfig) (*Night, error) {
	if cfg.Store == nil || cfg.Verify.Codec == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("sessions: Store, Verify, Now, Log and Metrics are required")
	}
	return &Night{cfg, nightly.NewComparison(cfg.Metrics, prometheus.GaugeOpts{
		Name: "quittance_readmodel_differences", Help: "Rows of the read model in Postgres that are not as the events in Kafka make them, by the last comparison.",
	}, prometheus.GaugeOpts{
		Name: "quittance_readmodel_verified_timestamp_seconds", Help: "When the read model was last compared with Kafka, or this process began.",
	}, Faults()...)}, nil
}

// Run compares each night until ctx ends, then returns nil.
func (n *Night) Run(ctx context.Context) error {
	return nightly.Job{
		Name: "comparing the read model with Kafka", Every: n.cfg.Every, Now: n.cfg.Now, Log: n.cfg.Log, Do: n.once,
	}.Run(ctx)
}

func (n *Night) once(ctx context.Context) error {
	got, err := n.cfg.Store.Verify(ctx, n.cfg.Verify)
	if err != nil {
		return err
	}
	for _, compare := range n.cfg.Others {
		other, err := compare(ctx)
		if err != nil {
			return err
		}
		got.Add(other)
	}
	about := []slog.Attr{slog.Int64("sessions", got.Sessions), slog.Int64("rows", got.Rows), slog.Int64("records", got.Records), slog.Int64("unreadable", got.Unreadable)}
	for _, f := range Faults() {
		about = append(about, slog.Int64(string(f), got.Count(f)))
	}
	n.comparison.Found(got.Count)
	if got.Holds() {
		n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the read model has what Kafka has", about...)
		return nil
	}
	n.cfg.Log.LogAttrs(ctx, slog.LevelError, "the read model has not what Kafka has; `quittance readmodel verify` names the rows, and the runbook says how they are put right", about...)
	for _, d := range got.Differences[:min(named, len(got.Differences))] {
		// Neither the session's id, which opens the citizen's page, nor values, which may name people.
		columns := make([]string, len(d.Columns))
		for i, c := range d.Columns {
			columns[i] = c.Name
		}
		n.cfg.Log.LogAttrs(ctx, slog.LevelError, "a row of the read model is not as Kafka has it", slog.String("table", d.Table), slog.String("fault", string(d.Fault)), slog.String("place", d.Place), slog.String("row", d.OwnID()), slog.Time("at", d.At),
			slog.String("columns", strings.Join(columns, " ")), slog.String("record", d.Record()))
	}
	return nil
}
