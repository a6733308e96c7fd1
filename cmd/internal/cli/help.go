package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// connection is the annotation of flags that name the parts of an installation.
const connection = "quittance_connection"

// connectionFlags declares the connection flags. Help shows them under their own heading.
func (m *Meta) connectionFlags(which Connection) {
	if which == ConnectionNone {
		return
	}
	f := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	m.ConnectionFlags(f)
	if which == ConnectionFull && m.program.Addresses != nil {
		m.locate = m.program.Addresses(&m.Settings, f)
	}
	f.VisitAll(func(fl *pflag.Flag) {
		_ = f.SetAnnotation(fl.Name, connection, nil) // the flag exists
		m.cmd.Flags().AddFlag(fl)
	})
}

// setHelp sets the text of `--help` and the texts of errors in flags, for a command and
// its subcommands.
func setHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprint(cmd.OutOrStdout(), usageText(cmd))
		return err
	})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
			return Usage("%v; `%s --help` shows the flags", err, cmd.CommandPath())
		}
		if bad := (*pflag.InvalidValueError)(nil); errors.As(err, &bad) {
			switch bad.GetFlag().Value.Type() {
			case "int", "int16", "int32", "float64":
				return Usage("--%s: must be a number", bad.GetFlag().Name)
			case "duration":
				return Usage("--%s: must be a duration such as 90s, 10m or 24h", bad.GetFlag().Name)
			}
			return Usage("--%s: %v", bad.GetFlag().Name, bad.Unwrap())
		}
		return err
	})
}

// connectionText explains the connection flags for roles and for doctor, which checks them. Some thirty
// lines under every other command would hide its own flags.
func connectionText(cmd *cobra.Command, flags *pflag.FlagSet) string {
	if cmd.Name() == "doctor" || cmd.Flags().Lookup("health") != nil || !flags.HasFlags() {
		return flags.FlagUsages()
	}
	const width = 100
	lines := []string{" "}
	flags.VisitAll(func(f *pflag.Flag) {
		if last := len(lines) - 1; len(lines[last])+len(f.Name) > width {
			lines = append(lines, " ")
		}
		lines[len(lines)-1] += " --" + f.Name
	})
	return strings.Join(lines, "\n") + fmt.Sprintf("\n  `%s doctor --help` explains them.", cmd.Root().Name())
}

func usageText(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s\n%s\n", title, text)
		}
	}
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line = cmd.CommandPath() + " COMMAND"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", line)
	commands := func(group string) string {
		var list strings.Builder
		for _, c := range cmd.Commands() {
			if c.GroupID == group && (c.IsAvailableCommand() || c.Name() == "help") {
				fmt.Fprintf(&list, "  %-*s  %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
		return list.String()
	}
	for _, g := range cmd.Groups() {
		section(g.Title, commands(g.ID))
	}
	section("Commands:", commands(""))
	examples := strings.TrimSpace(cmd.Example)
	if examples != "" {
		examples = "  " + strings.ReplaceAll(examples, "\n", "\n  ")
	}
	section("Examples:", examples)
	own, connections := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[connection]; ok {
			connections.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	section("Flags:", own.FlagUsages())
	section("Connection flags (each also from the environment: --kafka is QUITTANCE_KAFKA):", connectionText(cmd, connections))
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n`%s COMMAND --help` tells more about a command.\n", cmd.CommandPath())
	}
	return b.String()
}
