package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"quittance/internal/registry"
)

func accounts() Command {
	return Command{
		Use: "accounts", Short: "See the accounts whose statements are reconciled", Commands: []Command{listAccounts()}, Words: accountWords,
	}
}

// accountJSON is an account as --json prints it.
func accountJSON(e registry.StatementAccountEntry) object {
	return object{
		"agency", e.Agency, "agency_id", e.AgencyID, "mode", registry.Mode(e.Live), "code", e.Code, "kind", e.Kind, "offer", orNone(e.Offer),
		"fingerprint", orNone(e.Fingerprint), "iban", orNone(e.IBAN), "number", orNone(e.Number), "currency", e.Currency, "profile", e.Profile,
		"zone", e.Zone, "cutoff", e.CutoffText(), "grace_days", e.GraceDays, "keep_years", e.KeepYears, "settles_to", orNone(e.SettlesTo), "batch_pattern", orNone(e.BatchPattern),
		"columns", e.Columns,
	}
}

func listAccounts() Command {
	return Command{
		Use: "list [AGENCY]", Short: "List the accounts of an agency, or of all", JSON: "the list", Args: cobra.MaximumNArgs(1),
		Examples: []string{"accounts list impots", "accounts list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			list, err := registry.ListStatementAccounts(ctx, m.pool, m.argument(""))
			if err != nil {
				return err
			}
			return m.show(mapped(list, accountJSON), func(p *page) {
				p.table("there are no accounts yet: add them to `accounts` of an agency's registry file, and apply it with `quittance seed FILE`",
					"AGENCY,MODE,CODE,KIND,OFFER,NUMBER,CURRENCY,PROFILE,ZONE,CUT-OFF,GRACE DAYS,SETTLES TO", mapped(list, func(e registry.StatementAccountEntry) []any {
						offer := e.Offer
						if e.Fingerprint != "" {
							offer += " (merchant account " + e.Fingerprint + ")"
						}
						return []any{e.Agency, registry.Mode(e.Live), e.Code, string(e.Kind), offer, cmp.Or(e.IBAN, e.Number), e.Currency, e.Profile, e.Zone, e.CutoffText(), e.GraceDays, e.SettlesTo}
					}))
			})
		},
	}
}
