package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"quittance/internal/identity"
	"quittance/internal/postgres"
)

func (p Program) clerks() *cobra.Command {
	return p.group("clerks", "Give the clerks of agencies' counters their keys", "add, list or revoke", p.addClerk(), p.listClerks(), p.revokeClerk())
}

// clerkJSON is a clerk as --json prints one.
type clerkJSON struct {
	Agency  string         `json:"agency"` // slug
	Code    string         `json:"code"`
	Name    string         `json:"name"`
	Counter string         `json:"counter"`
	Active  bool           `json:"active"`
	Keys    []clerkKeyJSON `json:"keys"`

	Secret string `json:"secret,omitempty"` // of a new key, the last of Keys
}

type clerkKeyJSON struct {
	ID         string     `json:"id"`
	Mode       string     `json:"mode"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
}

func toClerkJSON(c identity.ClerkEntry) clerkJSON {
	j := clerkJSON{Agency: c.Agency, Code: c.Code, Name: c.Name, Counter: c.Counter, Active: c.Active, Keys: []clerkKeyJSON{}}
	for _, k := range c.Keys {
		j.Keys = append(j.Keys, clerkKeyJSON{
			ID: k.ID, Mode: modeOf(k.Live), CreatedAt: k.CreatedAt, LastUsedAt: timeOrNull(k.LastUsedAt), RevokedAt: timeOrNull(k.RevokedAt),
		})
	}
	return j
}

func (p Program) addClerk() *cobra.Command {
	m := p.meta()
	var req identity.ClerkRequest
	var mode string
	cmd := command("add", "Give a clerk, new or known, a key and show it, once", m, func(cmd *cobra.Command, _ []string) error {
		if err := needsMode(mode); err != nil {
			return err
		}
		req.Live = mode == "live"
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			k, err := identity.AddClerk(ctx, pool, operator(), req, now)
			if err != nil {
				return err
			}
			j := toClerkJSON(k.ClerkEntry)
			j.Secret = k.Secret.Reveal()
			return m.show(cmd, j, func(p *page) {
				p.say("New key %s of %s (%s, %s), %s mode. It is shown once and stored nowhere:\n\n  %s\n",
					k.Key.ID, k.Ref(), k.Name, k.Counter, modeOf(k.Key.Live), k.Secret.Reveal())
				if !k.Active {
					p.say("The clerk is not active: the key opens nothing until the registry file says active: true.")
				}
			})
		})
	})
	cmd.Example = p.Name + " clerks add --agency impots --code c03 --name \"Guichet 3\" --counter Annexe --mode test"
	cmd.Flags().StringVar(&req.Agency, "agency", "", "the agency, by slug or id")
	cmd.Flags().StringVar(&req.Code, "code", "", "tells the agency's clerks apart, also in receipts and journals, such as c01")
	cmd.Flags().StringVar(&req.Name, "name", "", "of a new clerk")
	cmd.Flags().StringVar(&req.Counter, "counter", "", "desk or place of a new clerk")
	takesMode(cmd, &mode)
	m.takesJSON(cmd, "the clerk and the key")
	return cmd
}

func (p Program) listClerks() *cobra.Command {
	m := p.meta()
	cmd := command("list", "List all clerks with their keys, without secrets", m, func(cmd *cobra.Command, _ []string) error {
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			entries, err := identity.ListClerks(ctx, pool)
			if err != nil {
				return err
			}
			return m.show(cmd, mapped(entries, toClerkJSON), func(p *page) {
				if len(entries) == 0 {
					p.say("there are no clerks yet; add one with `quittance clerks add`")
					return
				}
				var rows [][]any
				for _, c := range entries {
					if len(c.Keys) == 0 {
						rows = append(rows, []any{c.Ref(), c.Name, c.Counter, "", "", "", "no keys"})
					}
					for _, k := range c.Keys {
						state := "active"
						switch {
						case !k.InForce(now):
							state = "revoked " + moment(k.RevokedAt)
						case !c.Active:
							state = "clerk not active"
						}
						rows = append(rows, []any{c.Ref(), c.Name, c.Counter, k.ID, modeOf(k.Live), momentOr(k.LastUsedAt, "never"), state})
					}
				}
				p.table([]string{"CLERK", "NAME", "COUNTER", "KEY", "MODE", "LAST USED", "STATE"}, rows)
			})
		})
	})
	cmd.Example = p.Name + " clerks list --json"
	m.takesJSON(cmd, "the list")
	return cmd
}

func (p Program) revokeClerk() *cobra.Command {
	m := p.meta()
	cmd := command("revoke AGENCY/CODE|KEY_ID", "End a clerk's keys, or one of them, at once and for good", m, func(cmd *cobra.Command, args []string) error {
		return m.operate(cmd, func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			c, ended, err := identity.RevokeClerkKeys(ctx, pool, operator(), args[0], now)
			if err != nil {
				return err
			}
			return m.show(cmd, toClerkJSON(c), func(p *page) {
				if len(ended) == 0 {
					p.say("Nothing to revoke: %s has no such key in force.", c.Ref())
				}
				for _, k := range ended {
					p.say("Key %s of %s, %s mode, is revoked: it opens nothing from now on.", k.ID, c.Ref(), modeOf(k.Live))
				}
			})
		})
	})
	cmd.Example = p.Name + " clerks revoke impots/c03"
	takesArgument(cmd, "say whose keys, or which key: `quittance clerks revoke AGENCY/CODE` or `quittance clerks revoke KEY_ID`; `quittance clerks list` shows both")
	m.takesJSON(cmd, "the clerk")
	return cmd
}
