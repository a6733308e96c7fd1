package link

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/citizens"
)

// withCodes opens the accounts of citizens for what concerns all link codes.
func withCodes(m *cli.Meta, do func(*citizens.Store) (citizens.CodeEpoch, error)) error {
	keys, err := m.OpenKeys()
	if err != nil {
		return err
	}
	reference, err := m.OpenReferenceKey()
	if err != nil {
		return err
	}
	store, err := citizens.New(citizens.Config{Pool: m.Pool, Keys: keys, Reference: reference, Now: func() time.Time { return m.Now }})
	if err != nil {
		return err
	}
	e, err := do(store)
	if err != nil {
		return err
	}
	return m.Show(render.Object{"epoch", e.Number, "began_at", e.BeganAt, "former_until", e.FormerUntil}, func(p *render.Page) {
		p.Say("Link codes have epoch %d, since %s. %s", e.Number, render.Moment(e.BeganAt), former(e))
	})
}

func former(e citizens.CodeEpoch) string {
	if e.FormerUntil.IsZero() {
		return "Codes of earlier epochs are not accepted."
	}
	return fmt.Sprintf("Codes of the epoch before are accepted until %s.", render.Moment(e.FormerUntil))
}

func overlapFlag(f *pflag.FlagSet, overlap *time.Duration, text string) {
	f.DurationVar(overlap, "overlap", 0, text+", such as 720h for 30 days; at most 4320h")
}

func renewAllCodes() cli.Command {
	var overlap time.Duration
	var yes bool
	return cli.Command{
		Use: "renew-all", Short: "Make new link codes for all references of all agencies, for instance because their key is known to others", JSON: "the epoch", Args: cobra.NoArgs,
		Long: `Make new link codes for all references of all agencies, in both modes, for instance because the reference key is known to others. Printed codes end at once, or after --overlap. Whoever knows the key can make old codes until then, so give no overlap if it leaked. Links that there are stay: ` + "`quittance links renew`" + ` ends those of a reference. References, session ids and everything else that follows from the reference key stay as they are.

Then let each agency print new notices with ` + "`quittance links codes`" + `. ` + "`quittance links accept-former`" + ` accepts the former codes again, or ends an overlap.`,
		Examples: []string{"links renew-all", "links renew-all --overlap 720h --yes"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			overlapFlag(f, &overlap, "how long the former codes are accepted, not at all unless set")
			cli.YesFlag(f, &yes)
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			if err := m.Agree(yes, "All link codes of all agencies become others; the printed ones end "+ending(overlap)+"."); err != nil {
				return err
			}
			return withCodes(m, func(s *citizens.Store) (citizens.CodeEpoch, error) { return s.RenewCodes(ctx, m.By, overlap) })
		},
	}
}

func ending(overlap time.Duration) string {
	if overlap == 0 {
		return "at once"
	}
	return "after " + overlap.String()
}

func acceptFormerCodes() cli.Command {
	var overlap time.Duration
	return cli.Command{
		Use: "accept-former", Short: "Accept the link codes of before the last renewal of all for a time from now, or no more", JSON: "the epoch", Args: cobra.NoArgs,
		Examples: []string{"links accept-former --overlap 720h", "links accept-former --overlap 0s"},
		Flags: func(f *pflag.FlagSet, _ *cli.Meta) {
			overlapFlag(f, &overlap, "how long from now the former codes are accepted; 0s ends it")
		},
		Check: func(m *cli.Meta) error {
			if !m.Changed("overlap") {
				return cli.Usage("say how long from now the former codes are accepted: --overlap DURATION, or --overlap 0s to end it")
			}
			return nil
		},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			return withCodes(m, func(s *citizens.Store) (citizens.CodeEpoch, error) { return s.AcceptFormer(ctx, m.By, overlap) })
		},
	}
}
