package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quittance/cmd/internal/cli/render"
	"quittance/cmd/internal/roles"
	"quittance/internal/operation"
)

// Argument returns the only argument of a command that takes at most one.
func (m *Meta) Argument(otherwise string) string {
	if len(m.Args) == 0 {
		return otherwise
	}
	return m.Args[0]
}

// Flags returns the flags of the command.
func (m *Meta) Flags() *pflag.FlagSet { return m.cmd.Flags() }

// Changed reports whether a flag is on the command line.
func (m *Meta) Changed(flag string) bool { return m.cmd.Flags().Changed(flag) }

// In returns the command's input.
func (m *Meta) In() io.Reader { return m.cmd.InOrStdin() }

// Naming replaces `quittance …` in hints by the program's own name.
func (m *Meta) Naming(text string) string { return m.program.naming(text) }

// Quiet logs errors only, unless --log is given.
func Quiet(m *Meta) error {
	if !m.Changed("log") {
		m.LogLevel = "error"
	}
	return nil
}

// Agree says what a command will do and asks whether to do it.
func (m *Meta) Agree(yes bool, plan string) error {
	_, _ = fmt.Fprintln(m.Err, m.Naming(plan))
	if yes {
		return nil
	}
	_, _ = fmt.Fprint(m.Err, "Continue? Type yes: ")
	answer, _ := bufio.NewReader(m.In()).ReadString('\n') // no answer is not yes
	_, _ = fmt.Fprintln(m.Err)
	if strings.TrimSpace(answer) != "yes" {
		return Usage("nothing was done, because the answer was not yes; --yes does not ask")
	}
	return nil
}

// WithBase opens what every role needs, which logs to log, and calls do.
func (m *Meta) WithBase(ctx context.Context, log *slog.Logger, do func(context.Context, *roles.Base) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b, err := roles.Open(ctx, m.Settings, log)
	if err != nil {
		return err
	}
	err = do(ctx, b)
	cancel()
	_ = b.Wait() // the parts that ran meanwhile
	return err
}

// Root returns the tree of the program's commands.
func (m *Meta) Root() *cobra.Command { return m.cmd.Root() }

// Operator returns the user who runs the command, as the actor of its operations.
func Operator() operation.Actor {
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: cmp.Or(os.Getenv("USER"), "unknown")}
	if u, err := user.Current(); err == nil {
		a.Name = cmp.Or(u.Username, a.Name)
	}
	a.Origin, _ = os.Hostname()
	return a
}

// Progress returns a function that prints the progress of long work to out, at most once a second.
func Progress(out io.Writer) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			_, _ = fmt.Fprintf(out, "%d of %d\n", done, total)
		}
	}
}

// Show prints the result of a command: value as JSON with --json, otherwise text.
func (m *Meta) Show(value any, text func(p *render.Page)) error {
	if m.AsJSON {
		return render.Encode(m.Out, value, "  ")
	}
	var p render.Page
	text(&p)
	_, err := io.WriteString(m.Out, m.Naming(p.String()))
	return err
}
