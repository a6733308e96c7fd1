package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/secret"
)

// Command is a command of a program. Without Run and Operate it is a noun that only has
// subcommands.
type Command struct {
	Use, Short string
	// Long replaces Short in the command's own help; may be empty.
	Long string
	// Examples are command lines without the program's name.
	Examples []string
	// JSON describes what --json prints. Without it the command has no --json.
	JSON string
	// Missing is the error when the argument is missing; {usage} stands for the command
	// line. A command with Missing takes exactly one argument.
	Missing string
	// Args checks the arguments of a command without Missing. Nil allows none.
	Args cobra.PositionalArgs
	// Valid are arguments that shells complete.
	Valid []cobra.Completion
	// Connection chooses the connection flags.
	Connection Connection
	// Flags declares the command's own flags.
	Flags func(f *pflag.FlagSet, m *Meta)
	// StrictEnvironment refuses QUITTANCE_… variables of which no command knows anything, in production.
	StrictEnvironment bool
	// LocatesItself means that Run calls Meta.Locate. Otherwise it is called before Run.
	LocatesItself bool
	// Check refuses an invalid command line before anything is opened.
	Check func(m *Meta) error
	// Run runs the command.
	Run func(ctx context.Context, m *Meta) error
	// Operate replaces Run for a command that needs the installation's database. It is
	// called with Meta.Pool and Meta.Now set.
	Operate func(ctx context.Context, m *Meta) error
	// Keyed means that Operate changes rows that are signed, or believes some: Meta.Keys is set, and
	// without master keys the command is refused.
	Keyed bool
	// Commands are subcommands.
	Commands []Command
	// Words has texts for codes with which the command and its subcommands refuse.
	Words Words
}

// Connection selects the flags that name the parts of an installation.
type Connection int

// The choices of connection flags.
const (
	ConnectionFull  Connection = iota // the parts, and the program's Addresses
	ConnectionParts                   // the parts
	ConnectionNone                    // no flags
)

// Meta has the settings of a command and, while it runs, its arguments and outputs.
type Meta struct {
	roles.Settings
	Out, Err io.Writer
	Log      *slog.Logger // set for Run if the command has --log

	program Program
	cmd     *cobra.Command
	Args    []string
	locate  func() error
	AsJSON  bool
	keyed   bool              // of the command
	Pool    *postgres.Pool    // set for Operate
	Keys    *secret.Keys      // set for Operate of a Keyed command
	Now     time.Time         // set for Operate: the service's time
	Machine roles.MachineTime // set for Operate
	// By is who acts, set for Operate: the person of QUITTANCE_STAFF_KEY, or the user of the machine.
	By operation.Actor
}

// Locate sets the addresses for which a flag of the program's Addresses stands, and prepares
// the connections to them.
func (m *Meta) Locate() error {
	if err := m.locate(); err != nil {
		return err
	}
	if m.cmd.Flags().Lookup("allow-plaintext") == nil {
		return nil // the command connects to nothing
	}
	if err := m.Secure(); err != nil {
		return Usage("%v", err)
	}
	return nil
}

// command makes a command. Its flags can also be set in the environment. An error while
// the command runs means that it failed, unless it is a usage error or names missing
// settings. All other errors, such as those of parsing, are usage errors.
func (p Program) command(c Command) *cobra.Command {
	m := &Meta{
		Settings: roles.Settings{Options: p.Options, Program: p.Name, AddressHint: p.AddressHint},
		program:  p, locate: func() error { return nil },
	}
	m.cmd = &cobra.Command{
		Use: c.Use, Short: c.Short, Long: c.Long, Args: c.arguments(), ValidArgs: c.Valid,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !p.Options.Developer() {
				for _, name := range roles.SecretsInArguments(cmd.Flags()) {
					_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "warning: the secret in --%s can be read by every user of this machine; use --%s-file or %s\n", name, name, roles.Variable(name))
				}
			}
			if unknown := roles.UnknownVariables(os.Environ(), Known(cmd.Root())); c.StrictEnvironment && !p.Options.Developer() && len(unknown) > 0 {
				return Usage("%s", UnknownText(unknown))
			}
			return roles.FromEnvironment(cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Args, m.Out, m.Err = args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			err := c.run(cmd.Context(), m)
			if wrong := (*usageError)(nil); err == nil || errors.As(err, &wrong) || errors.Is(err, roles.ErrSettings) {
				return err
			}
			return &failedError{err}
		},
	}
	if c.Run == nil && c.Operate == nil {
		return p.noun(m.cmd, c.Commands)
	}
	for i, example := range c.Examples {
		m.cmd.Example += strings.Repeat("\n", min(i, 1)) + p.Name + " " + example
	}
	m.connectionFlags(c.Connection)
	if c.Flags != nil {
		c.Flags(m.cmd.Flags(), m)
	}
	if c.JSON != "" {
		m.cmd.Flags().BoolVar(&m.AsJSON, "json", false, "print "+c.JSON+" as JSON")
	}
	m.cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if one, ok := f.Value.(choice); ok {
			_ = m.cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(one.of, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
		}
	})
	for _, sub := range c.Commands {
		m.cmd.AddCommand(p.command(sub))
	}
	return m.cmd
}

// Known returns a function that reports whether a variable of the environment sets something of a
// command of the program. An installation has one file of variables for all of them.
func Known(root *cobra.Command) func(variable string) bool {
	known := map[string]bool{roles.Variable(staffKey): true}
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known[roles.Variable(f.Name)] = true })
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
	return func(variable string) bool { return known[variable] }
}

// staffKey is a setting without a flag: a person's key must not be an argument.
const staffKey = "staff-key"

// UnknownText says that variables are unknown.
func UnknownText(names []string) string {
	return fmt.Sprintf("no setting is called %s; docs/operating/configuration.md has all of them", strings.Join(names, ", "))
}

func (c Command) arguments() cobra.PositionalArgs {
	switch {
	case c.Missing != "":
		return func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				_, argument, _ := strings.Cut(c.Use, " ")
				return Usage("%s", strings.ReplaceAll(c.Missing, "{usage}", "`"+cmd.CommandPath()+" "+argument+"`"))
			}
			return nil
		}
	case c.Args != nil:
		return c.Args
	}
	return cobra.NoArgs
}

func (c Command) run(ctx context.Context, m *Meta) error {
	if c.Check != nil {
		if err := c.Check(m); err != nil {
			return err
		}
	}
	_, argument, _ := strings.Cut(c.Use, " ")
	if c.Operate != nil {
		m.keyed = c.Keyed
		return m.program.words.Refusal(m.OnDatabase(ctx, c.Operate), argument)
	}
	if m.cmd.Flags().Lookup("log") != nil {
		var err error
		if m.Log, err = m.Logger(m.Err); err != nil {
			return err
		}
	}
	if !c.LocatesItself {
		if err := m.Locate(); err != nil {
			return err
		}
	}
	return m.program.words.Refusal(c.Run(ctx, m), argument)
}

// OnDatabase opens the installation's database, for a Keyed command also its keys, and calls do.
func (m *Meta) OnDatabase(ctx context.Context, do func(context.Context, *Meta) error) (err error) {
	if err := m.Locate(); err != nil {
		return err
	}
	if m.Pool, err = m.OpenPostgres(ctx); err != nil {
		return err
	}
	defer m.Pool.Close()
	if m.Now, m.Machine, err = m.Time(ctx, m.Pool); err != nil {
		return err
	}
	if m.keyed { // where the keys are is known once the installation is
		if m.Keys, err = m.OpenKeys(); err != nil {
			return err
		}
	}
	if m.By, err = Actor(ctx, m.Pool, m.Keys, m.Now); err != nil {
		return err
	}
	return do(ctx, m)
}

// failedError is an error of a command whose command line was correct.
type failedError struct{ error }

func (e *failedError) Unwrap() error { return e.error }

// usageError describes what is wrong with a command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// Usage returns an error of the command line: nothing was done, and the exit code is 2.
func Usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// noun completes a command that has only subcommands.
func (p Program) noun(noun *cobra.Command, commands []Command) *cobra.Command {
	var verbs []string
	for _, c := range commands {
		cmd := p.command(c)
		noun.AddCommand(cmd)
		verbs = append(verbs, cmd.Name())
	}
	last := len(verbs) - 1
	actions := verbs[last]
	if last > 0 {
		actions = strings.Join(verbs[:last], ", ") + " or " + actions
	}
	noun.Args = cobra.ArbitraryArgs
	noun.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return Usage("say what to do with %s: %s; `%s --help` tells more", cmd.Name(), actions, cmd.CommandPath())
	}
	return noun
}

// developing are the commands that only quittance-dev has.
var developing = []string{"up", "simulate", "bench"}

// unknownCommand returns an error that suggests commands with a similar name.
func unknownCommand(cmd *cobra.Command, typed string) error {
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("unknown command %q for %q", typed, cmd.CommandPath())
	if !cmd.HasParent() && slices.Contains(developing, typed) {
		return Usage("%s; it is a command of quittance-dev", text)
	}
	if like := cmd.SuggestionsFor(typed); len(like) > 0 {
		return Usage("%s; did you mean %s?", text, strings.Join(like, " or "))
	}
	return Usage("%s; `%s --help` shows the commands", text, cmd.CommandPath())
}
