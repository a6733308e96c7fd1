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

	"github.com/spf13/pflag"

	"quittance/cmd/internal/roles"
	"quittance/internal/operation"
)

// argument returns the only argument of a command that takes at most one.
func (m *Meta) argument(otherwise string) string {
	if len(m.args) == 0 {
		return otherwise
	}
	return m.args[0]
}

// flags returns the flags of the command.
func (m *Meta) flags() *pflag.FlagSet { return m.cmd.Flags() }

// changed reports whether a flag is on the command line.
func (m *Meta) changed(flag string) bool { return m.cmd.Flags().Changed(flag) }

// in returns the command's input.
func (m *Meta) in() io.Reader { return m.cmd.InOrStdin() }

// naming replaces `quittance …` in hints by the program's own name.
func (m *Meta) naming(text string) string { return m.program.naming(text) }

// quiet logs errors only, unless --log is given.
func quiet(m *Meta) error {
	if !m.changed("log") {
		m.LogLevel = "error"
	}
	return nil
}

// agree says what a command will do and asks whether to do it.
func (m *Meta) agree(yes bool, plan string) error {
	_, _ = fmt.Fprintln(m.Err, m.naming(plan))
	if yes {
		return nil
	}
	_, _ = fmt.Fprint(m.Err, "Continue? Type yes: ")
	answer, _ := bufio.NewReader(m.in()).ReadString('\n') // no answer is not yes
	_, _ = fmt.Fprintln(m.Err)
	if strings.TrimSpace(answer) != "yes" {
		return usage("nothing was done, because the answer was not yes; --yes does not ask")
	}
	return nil
}

// withBase opens what every role needs, which logs to log, and calls do.
func (m *Meta) withBase(ctx context.Context, log *slog.Logger, do func(context.Context, *roles.Base) error) error {
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

// operator returns the user who runs the command, as the actor of its operations.
func operator() operation.Actor {
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: cmp.Or(os.Getenv("USER"), "unknown")}
	if u, err := user.Current(); err == nil {
		a.Name = cmp.Or(u.Username, a.Name)
	}
	a.Origin, _ = os.Hostname()
	return a
}

// progress returns a function that prints the progress of long work to out, at most once a second.
func progress(out io.Writer) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			_, _ = fmt.Fprintf(out, "%d of %d\n", done, total)
		}
	}
}

// show prints the result of a command: value as JSON with --json, otherwise text.
func (m *Meta) show(value any, text func(p *page)) error {
	if m.asJSON {
		return encode(m.Out, value, "  ")
	}
	var p page
	text(&p)
	_, err := io.WriteString(m.Out, m.naming(p.String()))
	return err
}
