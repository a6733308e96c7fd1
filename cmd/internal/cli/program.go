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

// Program is what sets one of our programs apart from the other. Production
// leaves all but Name empty.
type Program struct {
	// Name of the program, as it is typed.
	Name    string
	Options roles.Options
	// AddressHint ends the error about missing addresses.
	AddressHint string
	// Addresses adds flags that stand for the addresses of an installation. The
	// function that it returns fills in what they stand for.
	Addresses func(s *roles.Settings, f *pflag.FlagSet) (locate func() error)
	// Commands are further commands.
	Commands []*cobra.Command
	// Doctor adds roles that `doctor` can check. The first is the default.
	Doctor []DoctorRole
}

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // the command line is wrong: nothing was done
)

// Run parses the command line and runs a command. It returns the exit code of the
// process. Errors are written to stderr.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		// Roles keep little and allocate much: collecting at twice a heap of a few
		// megabytes took a tenth of their time.
		debug.SetGCPercent(400)
	}
	root := p.root()
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
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add(groupRoles, p.roleCommands()...)
	add(groupOperate, p.migrate(), p.seed(), p.doctor(), p.keys(), p.clerks(), p.endpoints(), p.deliveries(), p.replay())
	if len(p.Commands) > 0 {
		root.AddGroup(&cobra.Group{ID: groupDevelop, Title: "To develop with it:"})
		add(groupDevelop, p.Commands...)
	}
	root.AddCommand(p.version())
	return root
}

const (
	groupRoles   = "roles"
	groupOperate = "operate"
	groupDevelop = "develop"
)

// version shows what was built.
func (p Program) version() *cobra.Command {
	cmd := Command("version", "Show the version of the program", func(cmd *cobra.Command, _ []string) error {
		version, revision := "(unknown)", ""
		info, ok := debug.ReadBuildInfo()
		if ok {
			version = info.Main.Version
			for _, s := range info.Settings {
				if s.Key == "vcs.revision" {
					revision = ", commit " + s.Value
				}
			}
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s%s, %s %s/%s\n", p.Name, version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
	cmd.Example = p.Name + " version"
	return cmd
}

// roleCommands makes a command for each kind of role.
func (p Program) roleCommands() []*cobra.Command {
	sinks := roles.Names(roles.OfKind(roles.KindSink))
	ingress := p.roleCommand("ingress", "Run the HTTP edge: ministry API, citizen's pages, operators' callbacks", roles.KindIngress)
	ingress.Args = cobra.NoArgs
	ingress.Example = p.Name + " ingress --listen 127.0.0.1:8080 --health 127.0.0.1:9080 --checkout-url https://pay.example"
	processor := p.roleCommand("processor [NAME]", "Run a processor: "+strings.Join(roles.Names(roles.OfKind(roles.KindProcessor)), ", "), roles.KindProcessor)
	processor.Args = cobra.MaximumNArgs(1)
	processor.Example = p.Name + " processor --instance 1 --health 127.0.0.1:9081"
	sink := p.roleCommand("sink NAME", "Run a sink: "+strings.Join(sinks, ", "), roles.KindSink)
	sink.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New("say which sink: " + strings.Join(sinks, ", "))
		}
		return nil
	}
	sink.Example = p.Name + " sink webhook --health 127.0.0.1:9082"
	return []*cobra.Command{ingress, processor, sink}
}

func (p Program) roleCommand(use, short string, kind roles.Kind) *cobra.Command {
	m := p.meta()
	table := roles.OfKind(kind)
	cmd := command(use, short, m, func(cmd *cobra.Command, args []string) error {
		role := table[0]
		if len(args) > 0 {
			i := slices.IndexFunc(table, func(r roles.Role) bool { return r.Name == args[0] })
			if i < 0 {
				return usage("no %s is called %q; there are %s", kind, args[0], strings.Join(roles.Names(table), ", "))
			}
			role = table[i]
		}
		log, err := m.Logger(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		if err := m.locate(); err != nil {
			return err
		}
		b, err := roles.Open(cmd.Context(), m.Settings, log)
		if err != nil {
			return err
		}
		b.Start(role.Start, (*roles.Base).ServeHealth)
		return b.Wait()
	})
	for _, r := range table {
		if len(table) > 1 {
			cmd.ValidArgs = append(cmd.ValidArgs, cobra.CompletionWithDesc(r.Name, r.Short))
		}
	}
	m.RunFlags(cmd.Flags(), kind)
	return cmd
}
