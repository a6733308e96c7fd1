package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/journal"
	"quittance/internal/nightly"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// NightConfig configures a Night. All fields but Every are required.
type NightConfig struct {
	Source Source
	// Agencies lists all agencies, and Accounts says which statement accounts one has in a mode: registry.Registry.
	Agencies func() []registry.Agency
	Accounts func(agencyID string, live bool) []registry.StatementAccount
	// Reports returns what the reports say of the days of a close now. They are ClickHouse's.
	Reports func(ctx context.Context, c *journal.Close) ([]string, error)
	// Keys verify the signatures.
	Keys []secret.PublicKey
	// Every is the time between two looks at the clock; a minute when zero.
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Night computes all closes of all agencies again each night, as `periods verify` does.
type Night struct {
	cfg      NightConfig
	failing  prometheus.Gauge
	verified prometheus.Gauge
}

// NewNight makes a Night.
func NewNight(cfg NightConfig) (*Night, error) {
	if cfg.Source.Topology == nil || cfg.Source.Codec == nil || cfg.Agencies == nil || cfg.Accounts == nil || cfg.Reports == nil || len(cfg.Keys) == 0 || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("closes of periods: Source, Agencies, Accounts, Reports, Keys, Now, Log and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	n := &Night{
		cfg: cfg,
		failing: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_closes_not_holding", Help: "Closes of periods that do not hold, by the last verification: Kafka has other rows under them, their signature does not verify, or reports say something else of their days.",
		}),
		verified: with.NewGauge(prometheus.GaugeOpts{
			Name: "quittance_closes_verified_timestamp_seconds", Help: "When the closes of periods were last verified, or this process began.",
		}),
	}
	n.verified.SetToCurrentTime()
	return n, nil
}

// Run verifies each night until ctx ends, then returns nil.
func (n *Night) Run(ctx context.Context) error {
	return nightly.Job{
		Name: "verifying the closes of periods", Every: n.cfg.Every, Now: n.cfg.Now, Log: n.cfg.Log,
		Do: func(ctx context.Context) error { _, err := n.Verify(ctx); return err },
	}.Run(ctx)
}

// Verify verifies the closes of all agencies once, and returns how many do not hold.
func (n *Night) Verify(ctx context.Context) (failing int, err error) {
	closes, compared := 0, true
	for _, a := range n.cfg.Agencies() {
		for _, live := range []bool{true, false} {
			if len(n.cfg.Accounts(a.ID, live)) == 0 {
				continue
			}
			all, bad, known, err := n.agency(ctx, a, live)
			if err != nil {
				return 0, fmt.Errorf("agency %s, %s: %w", a.Slug, registry.Mode(live), err)
			}
			closes, failing, compared = closes+all, failing+bad, compared && known
		}
	}
	n.failing.Set(float64(failing))
	if compared { // without the reports the closes are verified in half
		n.verified.SetToCurrentTime()
	}
	n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the closes of periods are verified", slog.Int("closes", closes), slog.Int("not_holding", failing))
	return failing, nil
}

// agency verifies the closes of an agency in a mode, and logs those that do not hold. compared is false if what they state
// of reports could not be compared.
func (n *Night) agency(ctx context.Context, a registry.Agency, live bool) (all, bad int, compared bool, err error) {
	b, err := Read(ctx, n.cfg.Source, a.ID, live)
	if err != nil {
		return 0, 0, false, err
	}
	b.Keys = n.cfg.Keys
	b.Reports = func(c *journal.Close) ([]string, error) { return n.cfg.Reports(ctx, c) }
	err = b.Each(func(c *Close) error {
		all++
		if len(c.Faults) > 0 {
			bad++
			n.cfg.Log.LogAttrs(ctx, slog.LevelError, "a close of a period does not hold; `quittance periods verify` says the same", slog.String("agency", a.Slug), slog.String("mode", registry.Mode(live)),
				slog.String("account", c.Account), slog.String("to", c.ToDay.Format(time.DateOnly)), slog.String("close_id", c.ID), slog.String("record", c.Evidence().String()), slog.String("faults", strings.Join(c.Faults, "; ")))
		}
		return ctx.Err()
	})
	if b.Unread != nil {
		n.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the closes are verified from Kafka; what they state of reports is not compared", slog.String("agency", a.Slug), slog.String("mode", registry.Mode(live)), slog.Any("error", b.Unread))
	}
	return all, bad, b.Unread == nil, errors.Join(err, b.Close())
}
