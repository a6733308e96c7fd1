package application

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/access"
	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/registry"
	"quittance/internal/secret"
)

// Origins returns the command `origins`.
func Origins() cli.Command {
	return cli.Command{
		Use: "origins", Short: "Say which sites may embed the checkout, without a registry file",
		Words: words,
		Commands: []cli.Command{
			changeOrigins(cli.Command{
				Use: "add ORIGIN...", Short: "Let the pages of origins embed an application's sessions, or those of platform keys",
				Examples: []string{`origins add https://guichet.example --application "Guichet fiscal"`, "origins add https://portal.example --platform"},
			}, registry.AddOrigins),
			listOrigins(),
			changeOrigins(cli.Command{
				Use: "remove ORIGIN...", Short: "Withdraw origins at once; a registry file does not add them again",
				Examples: []string{`origins remove https://guichet.example --application "Guichet fiscal"`},
			}, registry.RemoveOrigins),
		},
	}
}

// originsJSON are the origins of an owner as --json prints them.
func originsJSON(e registry.OriginsEntry) render.Object {
	return render.Object{
		"owner", e.Owner(), "application_id?", e.ApplicationID, "application_name?", e.Application, "agency?", e.Agency,
		"origins", append([]string{}, e.Origins...), "by_command", append([]string{}, e.ByCommand...),
	}
}

func listOrigins() cli.Command {
	return cli.Command{
		Use: "list", Short: "List all embed origins with their owners", JSON: "the list", Examples: []string{"origins list --json"},
		Operate: func(ctx context.Context, m *cli.Meta) error {
			list, err := registry.ListOrigins(ctx, m.Pool)
			if err != nil {
				return err
			}
			return m.Show(render.Mapped(list, originsJSON), func(p *render.Page) {
				p.Table("", "OWNER,ID,ORIGINS", render.Mapped(list, func(e registry.OriginsEntry) []any {
					all := "none: sessions of mode embedded are refused"
					if len(e.Origins) > 0 {
						all = strings.Join(e.Origins, " ")
					}
					return []any{e.Owner(), e.ApplicationID, all}
				}))
			})
		},
	}
}

// changeOrigins completes a command that adds or removes origins.
func changeOrigins(c cli.Command, do func(context.Context, *postgres.Pool, *secret.Keys, operation.Actor, string, []string, time.Time) (registry.OriginsEntry, bool, error)) cli.Command {
	var owner access.OwnerFlags
	c.JSON = "the origins of the owner"
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cli.Usage("say which origins: `%s`, such as https://guichet.example; `quittance origins list` shows all", cmd.UseLine())
		}
		return nil
	}
	c.Flags = func(f *pflag.FlagSet, _ *cli.Meta) { owner.Declare(f) }
	c.Check = owner.Check
	c.Keyed = true
	c.Operate = func(ctx context.Context, m *cli.Meta) error {
		e, changed, err := do(ctx, m.Pool, m.Keys, m.By, owner.Application, m.Args, m.Now)
		if err != nil {
			return err
		}
		return m.Show(originsJSON(e), func(p *render.Page) {
			if !changed {
				p.Say("Nothing changed: that was so before.")
			}
			if len(e.Origins) == 0 {
				p.Say("No site may embed sessions of %s any more: creations of mode embedded are answered embed.origins_required.", e.Owner())
				return
			}
			p.Say("Sites that may embed sessions of %s: %s.", e.Owner(), strings.Join(e.Origins, " "))
		})
	}
	return c
}
