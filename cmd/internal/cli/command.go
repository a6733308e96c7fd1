package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/postgres"
)

// meta is what every command of a program has.
type meta struct {
	roles.Settings
	program Program
	locate  func() error
	asJSON  bool
}

func (p Program) meta() *meta {
	return &meta{
		Settings: roles.Settings{Options: p.Options, Program: p.Name, AddressHint: p.AddressHint},
		program:  p, locate: func() error { return nil },
	}
}

// command makes a command that finds the parts of an installation.
func command(use, short string, m *meta, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := Command(use, short, run)
	ConnectionFlags(cmd, func(f *pflag.FlagSet) {
		m.ConnectionFlags(f)
		if m.program.Addresses != nil {
			m.locate = m.program.Addresses(&m.Settings, f)
		}
	})
	return cmd
}

// Command makes a command whose flags come from the environment too. An error of
// run means that the command failed, unless it is a usage error; any other error of
// a command line is a usage error.
func Command(use, short string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return roles.FromEnvironment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, args []string) error {
			err := run(cmd, args)
			if wrong := (*usageError)(nil); err == nil || errors.As(err, &wrong) || errors.Is(err, roles.ErrSettings) {
				return err
			}
			return &failedError{err}
		},
	}
}

// onDatabase does something on the database of an installation, at the service's
// time.
func (m *meta) onDatabase(ctx context.Context, do func(context.Context, *postgres.Pool, time.Time) error) error {
	if err := m.locate(); err != nil {
		return err
	}
	pool, err := m.OpenPostgres(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	now, err := m.Time(ctx, pool)
	if err != nil {
		return err
	}
	return do(ctx, pool, now)
}

// operate is onDatabase for a command. The refusal of an operation names the flag or
// the argument that is at fault.
func (m *meta) operate(cmd *cobra.Command, do func(context.Context, *postgres.Pool, time.Time) error) error {
	_, argument, _ := strings.Cut(cmd.Use, " ")
	return refusal(m.onDatabase(cmd.Context(), do), argument)
}

// failedError is an error of a command that was given correctly.
type failedError struct{ error }

func (e *failedError) Unwrap() error { return e.error }

// usageError says what is wrong with a command line.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// group makes a command that has only subcommands.
func (p Program) group(noun, short, verbs string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: noun, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return usage("say what to do with %s: %s; `%s %s --help` tells more", noun, verbs, p.Name, noun)
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// unknownCommand suggests the commands that look like what was typed.
func unknownCommand(cmd *cobra.Command, typed string) error {
	cmd.SuggestionsMinimumDistance = 2
	text := fmt.Sprintf("unknown command %q for %q", typed, cmd.CommandPath())
	if like := cmd.SuggestionsFor(typed); len(like) > 0 {
		return usage("%s; did you mean %s?", text, strings.Join(like, " or "))
	}
	return usage("%s; `%s --help` shows the commands", text, cmd.CommandPath())
}
