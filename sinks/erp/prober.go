package erp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"quittance/internal/erp"
	"quittance/internal/registry"
)

// probeEvery is the interval between two questions for the health of the ERPs.
const probeEvery = 30 * time.Second

// ProberConfig configures a Prober. All fields are required.
type ProberConfig struct {
	Agencies erp.Agencies
	Client   *erp.Client
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// Prober asks each agency's ERP for its health and sets the gauges quittance_erp_up and
// quittance_erp_probe_seconds. Deliveries do not depend on the answers.
type Prober struct {
	cfg     ProberConfig
	up      *prometheus.GaugeVec
	seconds *prometheus.GaugeVec
}

// NewProber makes a prober.
func NewProber(cfg ProberConfig) (*Prober, error) {
	if cfg.Agencies == nil || cfg.Client == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("erp prober: Agencies, Client, Log and Metrics are required")
	}
	with, labels := promauto.With(cfg.Metrics), []string{"agency", "mode"}
	return &Prober{
		cfg:     cfg,
		up:      with.NewGaugeVec(prometheus.GaugeOpts{Name: "quittance_erp_up", Help: "Whether the agency's ERP answered GET /health with a 2xx: 1 or 0."}, labels),
		seconds: with.NewGaugeVec(prometheus.GaugeOpts{Name: "quittance_erp_probe_seconds", Help: "How long it took to answer."}, labels),
	}, nil
}

// Run probes until ctx ends, then returns nil.
func (p *Prober) Run(ctx context.Context) error {
	was := map[string]bool{} // by name, whether it was up
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		found := p.cfg.Client.Probe(ctx, p.cfg.Agencies)
		if ctx.Err() != nil {
			return nil
		}
		p.up.Reset() // the registry may have lost an ERP
		p.seconds.Reset()
		for _, h := range found {
			mode, up, value := registry.Mode(h.Live), h.Result.OK(), 0.0
			if up {
				value = 1
			}
			p.up.WithLabelValues(h.Agency, mode).Set(value)
			p.seconds.WithLabelValues(h.Agency, mode).Set(h.Result.Duration.Seconds())
			if before, known := was[h.Name()]; known && before != up || !known && !up {
				p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "an ERP's health has changed", slog.String("erp", h.Name()), slog.Bool("up", up), slog.String("reason", h.Result.Reason()))
			}
			was[h.Name()] = up
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
