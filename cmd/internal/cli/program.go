package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// Run parses the command line and runs a command. It returns the exit code of the
// process. Errors are written to stderr.
func (p Program) Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if os.Getenv("GOGC") == "" {
		// Roles keep little and allocate much: collecting at twice a heap of a few
		// megabytes took a tenth of their time.
		debug.SetGCPercent(400)
	}
	root := &cobra.Command{
		Use:           p.Name,
		Short:         "Payment orchestration for public agencies",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(p.roleCommands()...)
	root.AddCommand(p.migrate(), p.seed(), p.doctor(), p.keys(), p.clerks(), p.endpoints(), p.deliveries(), p.replay())
	root.AddCommand(p.Commands...)
	if err := root.ExecuteContext(ctx); err != nil {
		_, _ = fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
		return 1
	}
	return 0
}

// meta is what every command of a program has.
type meta struct {
	roles.Settings
	program Program
	locate  func() error
}

func (p Program) meta() *meta {
	return &meta{
		Settings: roles.Settings{Options: p.Options, Program: p.Name, AddressHint: p.AddressHint},
		program:  p, locate: func() error { return nil },
	}
}

// command makes a subcommand that finds the parts of an installation.
func command(use, short string, m *meta, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := Command(use, short, run)
	m.ConnectionFlags(cmd.Flags())
	if m.program.Addresses != nil {
		m.locate = m.program.Addresses(&m.Settings, cmd.Flags())
	}
	return cmd
}

// Command makes a subcommand whose flags come from the environment too.
func Command(use, short string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs, RunE: run,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return roles.FromEnvironment(cmd.Flags()) },
	}
}

// roleCommands makes a command for each kind of role.
func (p Program) roleCommands() []*cobra.Command {
	ingress := p.roleCommand("ingress", "Run the HTTP edge: ministry API, citizen's pages, operators' callbacks", roles.KindIngress)
	processor := p.roleCommand("processor", "Run the session processor", roles.KindProcessor)
	sink := p.roleCommand("sink NAME", "Run a sink: "+strings.Join(roles.Names(roles.OfKind(roles.KindSink)), ", "), roles.KindSink)
	sink.Args = cobra.ExactArgs(1)
	return []*cobra.Command{ingress, processor, sink}
}

func (p Program) roleCommand(use, short string, kind roles.Kind) *cobra.Command {
	m := p.meta()
	cmd := command(use, short, m, func(cmd *cobra.Command, args []string) error {
		table := roles.OfKind(kind)
		role := table[0]
		if len(args) > 0 {
			i := slices.IndexFunc(table, func(r roles.Role) bool { return r.Name == args[0] })
			if i < 0 {
				return fmt.Errorf("no %s is called %q; there are %s", kind, args[0], strings.Join(roles.Names(table), ", "))
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
	m.RunFlags(cmd.Flags(), kind)
	return cmd
}

// group makes a command that has only subcommands.
func (p Program) group(noun, short, verbs string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: noun, Short: short, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("say what to do with " + noun + ": " + verbs + "; `" + p.Name + " " + noun + " --help` tells more")
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}
