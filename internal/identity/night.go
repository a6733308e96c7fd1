package identity

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"quittance/internal/nightly"
	"quittance/internal/secret"
)

// proofsNamed is how many proofs the log of a night names.
const proofsNamed = 20

// ProofFaults returns the faults of stored proofs.
func ProofFaults() []ProofFault {
	return []ProofFault{ProofOtherStatement, ProofOtherPerson, ProofOutOfForce, ProofNotSigned}
}

// NightConfig configures a Night. All fields but Every are required.
type NightConfig struct {
	Pool *pgxpool.Pool
	Keys *secret.Keys // verify rows
	// Every is the time between two looks at the clock; a minute when zero.
	Every   time.Duration
	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Night verifies the decisions that passkeys have signed each night (VerifyProofs).
type Night struct {
	cfg        NightConfig
	comparison *nightly.Comparison[ProofFault]
}

// NewNight makes a Night.
func NewNight(cfg NightConfig) (*Night, error) {
	if cfg.Pool == nil || cfg.Keys == nil || cfg.Now == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("identity: Pool, Keys, Now, Log and Metrics are required")
	}
	return &Night{cfg, nightly.NewComparison(cfg.Metrics, prometheus.GaugeOpts{
		Name: "quittance_decisions_not_holding", Help: "Decisions that a passkey is said to have signed and that do not hold, by the last verification.",
	}, prometheus.GaugeOpts{
		Name: "quittance_decisions_verified_timestamp_seconds", Help: "When the decisions that passkeys have signed were last verified, or this process began.",
	}, ProofFaults()...)}, nil
}

// Run verifies each night until ctx ends, then returns nil.
func (n *Night) Run(ctx context.Context) error {
	return nightly.Job{Name: "verifying decisions of passkeys", Every: n.cfg.Every, Now: n.cfg.Now, Log: n.cfg.Log, Do: n.once}.Run(ctx)
}

func (n *Night) once(ctx context.Context) error {
	counts, all, wrong := map[ProofFault]int64{}, int64(0), int64(0)
	err := VerifyProofs(ctx, n.cfg.Pool, n.cfg.Keys, ProofFilter{}, func(p CheckedProof) error {
		if all++; p.Fault == "" {
			return nil
		}
		counts[p.Fault]++
		if wrong++; wrong <= proofsNamed {
			n.cfg.Log.LogAttrs(ctx, slog.LevelError, "a decision is not as a person has signed it", slog.String("fault", string(p.Fault)), slog.String("id", p.ID), slog.Time("at", p.At), slog.String("person", p.Person),
				slog.String("kind", p.Kind), slog.String("subject", p.Subject), slog.String("verdict", p.Verdict))
		}
		return nil
	})
	if err != nil {
		return err
	}
	n.comparison.Found(func(f ProofFault) int64 { return counts[f] })
	if wrong == 0 {
		n.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "the decisions of passkeys hold", slog.Int64("decisions", all))
		return nil
	}
	n.cfg.Log.LogAttrs(ctx, slog.LevelError, "not every decision is as a person has signed it; `quittance decisions verify` names them", slog.Int64("decisions", all), slog.Int64("wrong", wrong))
	return nil
}
