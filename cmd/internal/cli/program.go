package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/build"
)

// Program describes a program.
type Program struct {
	// Name is the name of the executable.
	Name    string
	Options roles.Options
	// AddressHint is appended to the error about missing addresses.
	AddressHint string
	// Addresses adds flags that stand for the addresses of an installation. The
	// function that it returns sets these addresses.
	Addresses func(s *roles.Settings, f *pflag.FlagSet) (locate func() error)
	// Groups are the commands in the order of the help, without those that every program has.
	Groups []Group
	// Words has texts for codes that belong to no command. The commands add theirs.
	Words Words

	words Words // all of them
}

// Group is the commands that help shows under a title.
type Group struct {
	Title    string
	Commands []Command
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
	root := p.Root()
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

// AllWords returns the words of the program and of all its commands.
func (p Program) AllWords() Words {
	all := maps.Clone(cursorWords)
	maps.Copy(all, p.Words)
	for _, g := range p.Groups {
		for _, c := range g.Commands {
			maps.Copy(all, c.Words)
		}
	}
	return all
}

// Root makes the tree of commands.
func (p Program) Root() *cobra.Command {
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
	p.words = p.AllWords()
	for _, g := range p.Groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		for _, c := range g.Commands {
			cmd := p.command(c)
			cmd.GroupID = g.Title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(p.command(version()))
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
		return Usage("say for which shell; `%s --help` shows them", cmd.CommandPath())
	}
}

// version prints version, commit and platform of the program.
func version() Command {
	return Command{
		Use: "version", Short: "Show the version of the program", Examples: []string{"version"}, JSON: "it", Connection: ConnectionNone,
		Run: func(_ context.Context, m *Meta) error {
			is := build.Read()
			platform := runtime.GOOS + "/" + runtime.GOARCH
			j := render.Object{"program", m.program.Name, "version", is.Version(), "release", is.Release, "revision", render.OrNone(is.Revision), "modified", is.Modified, "go", is.Go, "platform", platform}
			return m.Show(j, func(p *render.Page) {
				p.Say("%s %s, %s %s", m.program.Name, is.Version(), is.Go, platform)
			})
		},
	}
}

// naming replaces `quittance …` in hints by the program's own name.
func (p Program) naming(text string) string {
	return strings.ReplaceAll(text, "`quittance ", "`"+p.Name+" ")
}
