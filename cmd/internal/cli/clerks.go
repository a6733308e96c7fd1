package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
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

func modeOf(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

func (p Program) addClerk() *cobra.Command {
	m := p.meta()
	var req identity.ClerkRequest
	var asJSON bool
	var mode string
	cmd := command("add", "Give a clerk, new or known, a key and show it, once", m, func(cmd *cobra.Command, _ []string) error {
		if mode != "test" && mode != "live" {
			return errors.New("--mode: must be test or live")
		}
		req.Live = mode == "live"
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			minted, err := identity.AddClerk(ctx, pool, operator(), req, now)
			if err != nil {
				return refusal(err, "KEY_ID")
			}
			out := cmd.OutOrStdout()
			if asJSON {
				j := toClerkJSON(minted.ClerkEntry)
				j.Secret = minted.Secret.Reveal()
				return printJSON(out, j)
			}
			showMintedClerkKey(out, minted)
			return nil
		})
	})
	cmd.Flags().StringVar(&req.Agency, "agency", "", "the agency, by slug or id")
	cmd.Flags().StringVar(&req.Code, "code", "", "tells the agency's clerks apart, in receipts and journals too, such as c01")
	cmd.Flags().StringVar(&req.Name, "name", "", "of a new clerk")
	cmd.Flags().StringVar(&req.Counter, "counter", "", "desk or place of a new clerk")
	cmd.Flags().StringVar(&mode, "mode", "", "test or live")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the clerk and the key as JSON")
	return cmd
}

// showMintedClerkKey is the one place where a person sees the key.
func showMintedClerkKey(out io.Writer, k identity.MintedClerkKey) {
	_, _ = fmt.Fprintf(out, "New key %s of %s (%s, %s), %s mode. It is shown once and stored nowhere:\n\n  %s\n\n",
		k.Key.ID, k.Ref(), k.Name, k.Counter, modeOf(k.Key.Live), k.Secret.Reveal())
	if !k.Active {
		_, _ = fmt.Fprint(out, "The clerk is not active: the key opens nothing until the registry file says active: true.\n")
	}
}

func (p Program) listClerks() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("list", "List all clerks with their keys, without secrets", m, func(cmd *cobra.Command, _ []string) error {
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			entries, err := identity.ListClerks(ctx, pool)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				list := make([]clerkJSON, len(entries))
				for i, c := range entries {
					list[i] = toClerkJSON(c)
				}
				return printJSON(out, list)
			}
			if len(entries) == 0 {
				_, err := fmt.Fprintln(out, "there are no clerks yet; add one with `quittance clerks add`")
				return err
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			_, _ = fmt.Fprintln(table, "CLERK\tNAME\tCOUNTER\tKEY\tMODE\tLAST USED\tSTATE")
			for _, c := range entries {
				if len(c.Keys) == 0 {
					_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t\t\t\tno keys\n", c.Ref(), c.Name, c.Counter)
				}
				for _, k := range c.Keys {
					used, state := "never", "active"
					if !k.LastUsedAt.IsZero() {
						used = moment(k.LastUsedAt)
					}
					switch {
					case !k.InForce(now):
						state = "revoked " + moment(k.RevokedAt)
					case !c.Active:
						state = "clerk not active"
					}
					_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Ref(), c.Name, c.Counter, k.ID, modeOf(k.Live), used, state)
				}
			}
			return table.Flush()
		})
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

func (p Program) revokeClerk() *cobra.Command {
	m := p.meta()
	var asJSON bool
	cmd := command("revoke AGENCY/CODE|KEY_ID", "End a clerk's keys, or one of them, at once and for good", m, func(cmd *cobra.Command, args []string) error {
		return m.onPostgres(cmd.Context(), func(ctx context.Context, pool *postgres.Pool, now time.Time) error {
			c, ended, err := identity.RevokeClerkKeys(ctx, pool, operator(), args[0], now)
			if err != nil {
				return refusal(err, "AGENCY/CODE or KEY_ID")
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return printJSON(out, toClerkJSON(c))
			}
			if len(ended) == 0 {
				_, err = fmt.Fprintf(out, "Nothing to revoke: %s has no such key in force.\n", c.Ref())
			}
			for _, k := range ended {
				if _, err = fmt.Fprintf(out, "Key %s of %s, %s mode, is revoked: it opens nothing from now on.\n", k.ID, c.Ref(), modeOf(k.Live)); err != nil {
					break
				}
			}
			return err
		})
	})
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("say whose keys, or which key: `%s AGENCY/CODE` or `%s KEY_ID`; `quittance clerks list` shows both", cmd.CommandPath(), cmd.CommandPath())
		}
		return nil
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the clerk as JSON")
	return cmd
}
