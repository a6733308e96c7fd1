package cli

import (
	"context"

	"github.com/spf13/pflag"

	"quittance/internal/cashin"
	"quittance/internal/registry"
)

func cashinCommand() Command {
	return Command{
		Use: "cashin", Short: "Give applications their credentials for the deprecated cash-in surface, and show who still calls it",
		Commands: []Command{createPair(), rotatePair(), revokePair(), listPairs(), usageOfCashin()},
		Words:    partnerWords,
	}
}

// pairJSON is a pair of credentials as --json prints it.
func pairJSON(e cashin.Entry) object {
	return object{
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

func mintedPairJSON(m cashin.Minted) object {
	return append(pairJSON(m.Entry), "api_key", m.APIKey.Reveal(), "secret_key", m.SecretKey.Reveal())
}

// mintedPair adds a new pair with its secrets. No other output shows them.
func (p *page) mintedPair(m cashin.Minted) {
	p.say("New credentials of %s (%s), %s mode. They are shown once and stored nowhere:\n\n  apiKey     %s\n  secretKey  %s\n", m.Application, m.Agency, registry.Mode(m.Live), m.APIKey.Reveal(), m.SecretKey.Reveal())
	if m.Inactive {
		p.say("The application is not active: the credentials open nothing until it is.")
	}
}

// whichApplication is the error when the argument APPLICATION is missing.
const whichApplication = "say which application: {usage}, its id or a unique name"

func createPair() Command {
	var mode string
	return Command{
		Use: "create APPLICATION", Short: "Make the apiKey and secretKey of an application and show them once", JSON: "the credentials", Missing: whichApplication,
		Examples: []string{`cashin create "Boutique" --mode test`},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { takesMode(f, &mode) },
		Check:    func(*Meta) error { return needsMode(mode) },
		Operate: func(ctx context.Context, m *Meta) error {
			minted, err := cashin.Create(ctx, m.pool, operator(), m.args[0], mode == "live", m.now)
			if err != nil {
				return err
			}
			return m.show(mintedPairJSON(minted), func(p *page) { p.mintedPair(minted) })
		},
	}
}

func rotatePair() Command {
	var mode string
	return Command{
		Use: "rotate APPLICATION", Short: "Replace the credentials of an application; the old ones and all their tokens end at once", JSON: "the new credentials", Missing: whichApplication,
		Examples: []string{`cashin rotate "Boutique"`, `cashin rotate "Boutique" --mode live`},
		Flags:    func(f *pflag.FlagSet, _ *Meta) { takesMode(f, &mode) },
		Operate: func(ctx context.Context, m *Meta) error {
			var live *bool // the same mode as before
			if mode != "" {
				is := mode == "live"
				live = &is
			}
			minted, err := cashin.Rotate(ctx, m.pool, operator(), m.args[0], live, m.now)
			if err != nil {
				return err
			}
			return m.show(mintedPairJSON(minted), func(p *page) {
				p.mintedPair(minted)
				p.say("The credentials before them and all their tokens open nothing from now on.")
			})
		},
	}
}

func revokePair() Command {
	return Command{
		Use: "revoke APPLICATION", Short: "End the credentials of an application and all their tokens at once", JSON: "the credentials, without their secrets", Missing: whichApplication,
		Examples: []string{`cashin revoke "Boutique"`},
		Operate: func(ctx context.Context, m *Meta) error {
			e, err := cashin.Revoke(ctx, m.pool, operator(), m.args[0], m.now)
			if err != nil {
				return err
			}
			return m.show(pairJSON(e), func(p *page) {
				p.say("The credentials of %s (%s), %s mode, and all their tokens open nothing from now on.", e.Application, e.Agency, registry.Mode(e.Live))
			})
		},
	}
}

func listPairs() Command {
	return Command{
		Use: "list", Short: "List all credentials, without their secrets", JSON: "the list", Examples: []string{"cashin list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			entries, err := cashin.List(ctx, m.pool)
			if err != nil {
				return err
			}
			return m.show(mapped(entries, pairJSON), func(p *page) {
				p.table("no application has credentials; make some with `quittance cashin create APPLICATION --mode test`", "ID,APPLICATION,MODE,CREATED,STATE", mapped(entries, func(e cashin.Entry) []any {
					state := pairState(e)
					if e.Inactive {
						state += ", application not active"
					}
					return []any{e.ID, e.Application + " (" + e.Agency + ")", registry.Mode(e.Live), moment(e.CreatedAt), state}
				}))
			})
		},
	}
}
