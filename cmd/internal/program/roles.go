package program

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli"
	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
)

// roleCommands makes a command for each kind of role.
func roleCommands() []cli.Command {
	sinks, processors := roles.Names(roles.OfKind(roles.KindSink)), roles.Names(roles.OfKind(roles.KindProcessor))
	return []cli.Command{
		roleCommand(roles.KindIngress, cli.Command{
			Use: "ingress", Short: "Run " + roles.OfKind(roles.KindIngress)[0].Short,
			Examples: []string{"ingress --listen 127.0.0.1:8080 --health 127.0.0.1:9080 --checkout-url https://pay.example"},
		}),
		roleCommand(roles.KindProcessor, cli.Command{
			Use: "processor [NAME]", Short: "Run a processor: " + strings.Join(processors, ", ") + " (" + processors[0] + " when no name is given)",
			Args: cobra.MaximumNArgs(1), Examples: []string{"processor --instance 1 --health 127.0.0.1:9081"},
		}),
		roleCommand(roles.KindSink, cli.Command{
			Use: "sink NAME", Short: "Run a sink: " + strings.Join(sinks, ", "), Missing: "say which sink: " + strings.Join(sinks, ", "),
			Examples: []string{"sink webhook --health 127.0.0.1:9082"},
		}),
		roleCommand(roles.KindOffice, cli.Command{
			Use: "office", Short: "Run " + roles.OfKind(roles.KindOffice)[0].Short,
			Examples: []string{"office --listen 127.0.0.1:8091 --health 127.0.0.1:9091 --staff-url https://staff.example"},
		}),
	}
}

// roleCommand completes the command that runs roles of a kind.
func roleCommand(kind roles.Kind, c cli.Command) cli.Command {
	table := roles.OfKind(kind)
	if len(table) > 1 {
		c.Valid = render.Mapped(table, func(r roles.Role) cobra.Completion { return cobra.CompletionWithDesc(r.Name, r.Short) })
	}
	c.StrictEnvironment = true
	c.Flags = func(f *pflag.FlagSet, m *cli.Meta) { m.RunFlags(f, kind) }
	c.Run = func(ctx context.Context, m *cli.Meta) error {
		role := table[0]
		if len(m.Args) > 0 {
			i := slices.IndexFunc(table, func(r roles.Role) bool { return r.Name == m.Args[0] })
			if i < 0 {
				return cli.Usage("no %s is called %q; there are %s", kind, m.Args[0], strings.Join(roles.Names(table), ", "))
			}
			role = table[i]
		}
		role.TuneProcess()
		return roles.Run(ctx, m.Settings, m.Log, role)
	}
	return c
}
