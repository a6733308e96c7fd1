package account

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"quittance/checkout"
	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/registry"
)

// Accounts returns the command `accounts`.
func Accounts() cli.Command {
	return cli.Command{
		Use: "accounts", Short: "See the accounts whose statements are reconciled", Commands: []cli.Command{listAccounts()}, Words: words,
	}
}

// accountJSON is an account as --json prints it.
func accountJSON(e registry.StatementAccountEntry) render.Object {
	return render.Object{
		"agency", e.Agency, "agency_id", e.AgencyID, "mode", registry.Mode(e.Live), "code", e.Code, "kind", e.Kind, "offer", render.OrNone(e.Offer),
		"fingerprint", render.OrNone(e.Fingerprint), "iban", render.OrNone(e.IBAN), "number", render.OrNone(e.Number), "holder", render.OrNone(e.Holder), "bank", render.OrNone(e.Bank), "currency", e.Currency, "profile", e.Profile,
		"zone", e.Zone, "cutoff", e.CutoffText(), "grace_days", e.GraceDays, "keep_years", e.KeepYears, "settles_to", render.OrNone(e.SettlesTo), "batch_pattern", render.OrNone(e.BatchPattern),
		"columns", e.Columns,
	}
}

func listAccounts() cli.Command {
	return cli.Command{
		Use: "list [AGENCY]", Short: "List the accounts of an agency, or of all", JSON: "the list", Args: cobra.MaximumNArgs(1),
		Examples: []string{"accounts list impots", "accounts list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			list, err := registry.ListStatementAccounts(ctx, m.Pool, m.Argument(""))
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, accountJSON), func(p *render.Page) {
				p.Table("there are no accounts yet: add them to `accounts` of an agency's registry file, and apply it with `quittance seed FILE`",
					"AGENCY,MODE,CODE,KIND,OFFER,NUMBER,CURRENCY,PROFILE,ZONE,CUT-OFF,GRACE DAYS,SETTLES TO", render.Mapped(list, func(e registry.StatementAccountEntry) []any {
						offer := e.Offer
						if e.Fingerprint != "" {
							offer += " (merchant account " + e.Fingerprint + ")"
						}
						if e.Offer == checkout.OfferBankTransfer {
							offer += " (" + e.Holder + ", " + e.Bank + ")"
						}
						return []any{e.Agency, registry.Mode(e.Live), e.Code, string(e.Kind), offer, cmp.Or(e.IBAN, e.Number), e.Currency, e.Profile, e.Zone, e.CutoffText(), e.GraceDays, e.SettlesTo}
					}))
			})
		},
	}
}
