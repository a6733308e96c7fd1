package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
)

// Program describes one of our two programs. For production everything but Name is
// empty.
type Program struct {
	// Name is the name of the executable.
	Name    string
	Options roles.Options
	// AddressHint is appended to the error about missing addresses.
	AddressHint string
	// Addresses adds flags that stand for the addresses of an installation. The
	// function that it returns sets these addresses.
	Addresses func(s *roles.Settings, f *pflag.FlagSet) (locate func() error)
	// Commands are further commands.
	Commands []Command
	// Doctor adds roles that `doctor` can check. The first is the default.
	Doctor []DoctorRole
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // the command line is wrong; nothing was done
)

// Run parses the command line and runs a command. It returns the exit code of the
// process. Errors are written to stderr.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		// Roles have a small heap and allocate much: with the default of 100 they spent a
		// tenth of their time on garbage collection.
		debug.SetGCPercent(400)
	}
	root := p.root()
	completion(root)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.Name, p.naming(err.Error()))
	if failed := (*failedError)(nil); errors.As(err, &failed) {
		return exitFailed
	}
	return exitUsage
}

// root makes the tree of commands.
func (p Program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   p.Name,
		Short: "Payment orchestration for public agencies",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	setHelp(root)
	root.AddGroup(&cobra.Group{ID: groupRoles, Title: "Roles of the service:"}, &cobra.Group{ID: groupOperate, Title: "To set up and operate it:"})
	add := func(group string, commands ...Command) {
		for _, c := range commands {
			cmd := p.command(c)
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add(groupRoles, roleCommands()...)
	add(groupOperate, migrate(), seed(), p.doctor(), sessionsCommand(), keys(), cashinCommand(), clerks(), staff(), casesCommand(), apps(), origins(), mappings(), accounts(), statementsCommand(), periodsCommand(), chainCommand(), links(), endpoints(), erpCommand(), receiptsCommand(), deliveriesCommand(), replay(), rebuild(), reportCommand(), analystsCommand(), erase(), secrets(), acls())
	if len(p.Commands) > 0 {
		root.AddGroup(&cobra.Group{ID: groupDevelop, Title: "To develop with it:"})
		add(groupDevelop, p.Commands...)
	}
	add("", version())
	return root
}

// completion adds the command that writes completions for shells. By itself it takes an unknown shell for no error.
func completion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return usage("say for which shell; `%s --help` shows them", cmd.CommandPath())
	}
}

const (
	groupRoles   = "roles"
	groupOperate = "operate"
	groupDevelop = "develop"
)

// version prints version, commit and platform of the program.
func version() Command {
	return Command{
		Use: "version", Short: "Show the version of the program", Examples: []string{"version"}, Connection: ConnectionNone,
		Run: func(_ context.Context, m *Meta) error {
			version, revision := "(unknown)", ""
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = ", commit " + s.Value
					}
				}
			}
			_, err := fmt.Fprintf(m.Out, "%s %s%s, %s %s/%s\n", m.program.Name, version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// roleCommands makes a command for each kind of role.
func roleCommands() []Command {
	sinks, processors := roles.Names(roles.OfKind(roles.KindSink)), roles.Names(roles.OfKind(roles.KindProcessor))
	return []Command{
		roleCommand(roles.KindIngress, Command{
			Use: "ingress", Short: "Run " + roles.OfKind(roles.KindIngress)[0].Short,
			Examples: []string{"ingress --listen 127.0.0.1:8080 --health 127.0.0.1:9080 --checkout-url https://pay.example"},
		}),
		roleCommand(roles.KindProcessor, Command{
			Use: "processor [NAME]", Short: "Run a processor: " + strings.Join(processors, ", ") + " (" + processors[0] + " when no name is given)",
			Args: cobra.MaximumNArgs(1), Examples: []string{"processor --instance 1 --health 127.0.0.1:9081"},
		}),
		roleCommand(roles.KindSink, Command{
			Use: "sink NAME", Short: "Run a sink: " + strings.Join(sinks, ", "), Missing: "say which sink: " + strings.Join(sinks, ", "),
			Examples: []string{"sink webhook --health 127.0.0.1:9082"},
		}),
	}
}

// roleCommand completes the command that runs roles of a kind.
func roleCommand(kind roles.Kind, c Command) Command {
	table := roles.OfKind(kind)
	if len(table) > 1 {
		c.Valid = mapped(table, func(r roles.Role) cobra.Completion { return cobra.CompletionWithDesc(r.Name, r.Short) })
	}
	c.Flags = func(f *pflag.FlagSet, m *Meta) { m.RunFlags(f, kind) }
	c.Run = func(ctx context.Context, m *Meta) error {
		role := table[0]
		if len(m.args) > 0 {
			i := slices.IndexFunc(table, func(r roles.Role) bool { return r.Name == m.args[0] })
			if i < 0 {
				return usage("no %s is called %q; there are %s", kind, m.args[0], strings.Join(roles.Names(table), ", "))
			}
			role = table[i]
		}
		b, err := roles.Open(ctx, m.Settings, m.Log)
		if err != nil {
			return err
		}
		role.TuneProcess()
		b.Start(role.Start, (*roles.Base).ServeHealth)
		return b.Wait()
	}
	return c
}
