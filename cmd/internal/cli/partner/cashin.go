package partner

import (
	"context"

	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/cashin"
	"quittance/internal/registry"
)

// Command returns the command `cashin`.
func Command() cli.Command {
	return cli.Command{
		Use: "cashin", Short: "Give applications their credentials for the deprecated cash-in surface, and show who still calls it",
		Commands: []cli.Command{createPair(), rotatePair(), revokePair(), listPairs(), usageOfCashin()},
		Words:    words,
	}
}

// pairJSON is a pair of credentials as --json prints it.
func pairJSON(e cashin.Entry) render.Object {
	return render.Object{
		"id", e.ID, "application_id", e.ApplicationID, "application_name", e.Application, "agency", e.Agency, "mode", registry.Mode(e.Live), "state", pairState(e),
		"created_at", e.CreatedAt, "revoked_at", e.RevokedAt,
	}
}

func pairState(e cashin.Entry) string {
	if e.RevokedAt.IsZero() {
		return "active"
	}
	return "revoked"
}

func mintedPairJSON(m cashin.Minted) render.Object {
	return append(pairJSON(m.Entry), "api_key", m.APIKey.Reveal(), "secret_key", m.SecretKey.Reveal())
}

// sayMintedPair adds a new pair with its secrets. No other output shows them.
func sayMintedPair(p *render.Page, m cashin.Minted) {
	p.Say("New credentials of %s (%s), %s mode. They are shown once and stored nowhere:\n\n  apiKey     %s\n  secretKey  %s\n", m.Application, m.Agency, registry.Mode(m.Live), m.APIKey.Reveal(), m.SecretKey.Reveal())
	if m.Inactive {
		p.Say("The application is not active: the credentials open nothing until it is.")
	}
}

// whichApplication is the error when the argument APPLICATION is missing.
const whichApplication = "say which application: {usage}, its id or a unique name"

func createPair() cli.Command {
	var mode string
	return cli.Command{
		Use: "create APPLICATION", Short: "Make the apiKey and secretKey of an application and show them once", JSON: "the credentials", Missing: whichApplication,
		Examples: []string{`cashin create "Boutique" --mode test`},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { cli.TakesMode(f, &mode) },
		Check:    func(*cli.Meta) error { return cli.NeedsMode(mode) },
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			minted, err := cashin.Create(ctx, m.Pool, m.Keys, m.By, m.Args[0], mode == "live", m.Now)
			if err != nil {
				return err
			}
			return m.Show(mintedPairJSON(minted), func(p *render.Page) { sayMintedPair(p, minted) })
		},
	}
}

func rotatePair() cli.Command {
	var mode string
	return cli.Command{
		Use: "rotate APPLICATION", Short: "Replace the credentials of an application; the old ones and all their tokens end at once", JSON: "the new credentials", Missing: whichApplication,
		Examples: []string{`cashin rotate "Boutique"`, `cashin rotate "Boutique" --mode live`},
		Flags:    func(f *pflag.FlagSet, _ *cli.Meta) { cli.TakesMode(f, &mode) },
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			var live *bool // the same mode as before
			if mode != "" {
				is := mode == "live"
				live = &is
			}
			minted, err := cashin.Rotate(ctx, m.Pool, m.Keys, m.By, m.Args[0], live, m.Now)
			if err != nil {
				return err
			}
			return m.Show(mintedPairJSON(minted), func(p *render.Page) {
				sayMintedPair(p, minted)
				p.Say("The credentials before them and all their tokens open nothing from now on.")
			})
		},
	}
}

func revokePair() cli.Command {
	return cli.Command{
		Use: "revoke APPLICATION", Short: "End the credentials of an application and all their tokens at once", JSON: "the credentials, without their secrets", Missing: whichApplication,
		Examples: []string{`cashin revoke "Boutique"`},
		Keyed:    true,
		Operate: func(ctx context.Context, m *cli.Meta) error {
			e, err := cashin.Revoke(ctx, m.Pool, m.Keys, m.By, m.Args[0], m.Now)
			if err != nil {
				return err
			}
			return m.Show(pairJSON(e), func(p *render.Page) {
				p.Say("The credentials of %s (%s), %s mode, and all their tokens open nothing from now on.", e.Application, e.Agency, registry.Mode(e.Live))
			})
		},
	}
}

func listPairs() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all credentials, without their secrets", JSON: "the list", Examples: []string{"cashin list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			entries, err := cashin.List(ctx, m.Pool)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(entries, pairJSON), func(p *render.Page) {
				p.Table("no application has credentials; make some with `quittance cashin create APPLICATION --mode test`", "ID,APPLICATION,MODE,CREATED,STATE", render.Mapped(entries, func(e cashin.Entry) []any {
					state := pairState(e)
					if e.Inactive {
						state += ", application not active"
					}
					return []any{e.ID, e.Application + " (" + e.Agency + ")", registry.Mode(e.Live), render.Moment(e.CreatedAt), state}
				}))
			})
		},
	}
}
