package erp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/call"
	"quittance/internal/registry"
	"quittance/sinks/delivery"
)

// probeEvery is how often each ERP is asked how it is.
const probeEvery = 30 * time.Second

// Agencies is what the prober asks of the registry, which answers from memory.
// Safe for concurrent use.
type Agencies interface {
	ERPs
	// Agencies are all of them.
	Agencies() []registry.Agency
}

// ProberConfig is what a Prober needs; all fields are required.
type ProberConfig struct {
	Agencies Agencies
	// Policy makes the calls: with the same credentials, to the same networks, as
	// confirmations are sent.
	Policy  *Policy
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Prober asks each agency's ERP GET {base_url}/health (integration contract, "ERP
// REST") and keeps the gauges quittance_erp_up and
// quittance_erp_probe_seconds. What it finds holds nothing up.
type Prober struct {
	cfg     ProberConfig
	up      *prometheus.GaugeVec
	seconds *prometheus.GaugeVec
}

// Health is how an ERP answered.
type Health struct {
	// Agency by its slug.
	Agency string
	Live   bool
	Result call.Result
}

// Name is the agency and the mode, as impots/test.
func (h Health) Name() string { return DestinationID(h.Agency, h.Live) }

// NewProber makes a prober.
func NewProber(cfg ProberConfig) (*Prober, error) {
	if cfg.Agencies == nil || cfg.Policy == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("erp prober: Agencies, Policy, Log and Metrics are required")
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return delivery.Register(cfg.Metrics, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "quittance", Subsystem: "erp", Name: name, Help: help}, []string{"agency", "mode"}))
	}
	return &Prober{
		cfg: cfg, up: gauge("up", "Whether the agency's ERP answered GET /health with a 2xx: 1 or 0."),
		seconds: gauge("probe_seconds", "How long it took to answer."),
	}, nil
}

// Run probes until ctx ends, then returns nil.
func (p *Prober) Run(ctx context.Context) error {
	was := map[string]bool{} // by name, whether it was well
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		found := p.Probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		p.up.Reset() // an ERP may have gone from the registry
		p.seconds.Reset()
		for _, h := range found {
			mode, well := "test", h.Result.OK()
			if h.Live {
				mode = "live"
			}
			up := 0.0
			if well {
				up = 1
			}
			p.up.WithLabelValues(h.Agency, mode).Set(up)
			p.seconds.WithLabelValues(h.Agency, mode).Set(h.Result.Duration.Seconds())
			if before, known := was[h.Name()]; known && before != well || !known && !well {
				p.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "an ERP's health has changed", slog.String("erp", h.Name()), slog.Bool("up", well), slog.String("reason", h.Result.Reason()))
			}
			was[h.Name()] = well
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Probe asks every ERP once, all at the same time.
func (p *Prober) Probe(ctx context.Context) []Health {
	answers, n := make(chan Health), 0
	for _, a := range p.cfg.Agencies.Agencies() {
		for _, live := range []bool{false, true} {
			s, ok := p.cfg.Agencies.ERP(a.ID, live)
			if !ok {
				continue
			}
			n++
			go func() {
				answers <- Health{Agency: a.Slug, Live: live, Result: p.cfg.Policy.health(ctx, DestinationID(a.ID, live), s)}
			}()
		}
	}
	out := make([]Health, 0, n)
	for range n {
		out = append(out, <-answers)
	}
	return out
}

func (p *Policy) health(ctx context.Context, id string, s registry.ERPSettings) call.Result {
	h, ok := header(s)
	if !ok {
		return call.Result{Fault: call.FaultUnusable}
	}
	return p.client(id, s.Networks).Get(ctx, at(s, "/health"), h)
}
