package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/registry"
)

func origins() Command {
	return Command{
		Use: "origins", Short: "Say which sites may embed the checkout, without a registry file",
		Words: applicationWords,
		Commands: []Command{
			changeOrigins(Command{
				Use: "add ORIGIN...", Short: "Let the pages of origins embed an application's sessions, or those of platform keys",
				Examples: []string{`origins add https://guichet.example --application "Guichet fiscal"`, "origins add https://portal.example --platform"},
			}, registry.AddOrigins),
			listOrigins(),
			changeOrigins(Command{
				Use: "remove ORIGIN...", Short: "Withdraw origins at once; a registry file does not add them again",
				Examples: []string{`origins remove https://guichet.example --application "Guichet fiscal"`},
			}, registry.RemoveOrigins),
		},
	}
}

// originsJSON are the origins of an owner as --json prints them.
func originsJSON(e registry.OriginsEntry) object {
	return object{
		"owner", e.Owner(), "application_id?", e.ApplicationID, "application_name?", e.Application, "agency?", e.Agency,
		"origins", append([]string{}, e.Origins...), "by_command", append([]string{}, e.ByCommand...),
	}
}

func listOrigins() Command {
	return Command{
		Use: "list", Short: "List all embed origins with their owners", JSON: "the list", Examples: []string{"origins list --json"},
		Operate: func(ctx context.Context, m *Meta) error {
			list, err := registry.ListOrigins(ctx, m.pool)
			if err != nil {
				return err
			}
			return m.show(mapped(list, originsJSON), func(p *page) {
				p.table("", "OWNER,ID,ORIGINS", mapped(list, func(e registry.OriginsEntry) []any {
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
func changeOrigins(c Command, do func(context.Context, *postgres.Pool, operation.Actor, string, []string, time.Time) (registry.OriginsEntry, bool, error)) Command {
	var owner ownerFlags
	c.JSON = "the origins of the owner"
	c.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("say which origins: `%s`, such as https://guichet.example; `quittance origins list` shows all", cmd.UseLine())
		}
		return nil
	}
	c.Flags = func(f *pflag.FlagSet, _ *Meta) { owner.declare(f) }
	c.Check = owner.check
	c.Operate = func(ctx context.Context, m *Meta) error {
		e, changed, err := do(ctx, m.pool, operator(), owner.application, m.args, m.now)
		if err != nil {
			return err
		}
		return m.show(originsJSON(e), func(p *page) {
			if !changed {
				p.say("Nothing changed: that was so before.")
			}
			if len(e.Origins) == 0 {
				p.say("No site may embed sessions of %s any more: creations of mode embedded are answered embed.origins_required.", e.Owner())
				return
			}
			p.say("Sites that may embed sessions of %s: %s.", e.Owner(), strings.Join(e.Origins, " "))
		})
	}
	return c
}
