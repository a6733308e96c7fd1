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
	"quittance/internal/identity"
	"quittance/internal/operation"
	"quittance/internal/postgres"
	"quittance/internal/secret"
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

// staffKeyVariable is the environment variable with the key of the person who acts. No flag
// sets it, because other users of the machine can read a command line.
const staffKeyVariable = "QUITTANCE_STAFF_KEY"

// StaffKey returns the key of the person who acts; empty when none is set.
func StaffKey() string { return os.Getenv(staffKeyVariable) }

// Actor returns who runs the command, as the actor of its operations: the member of staff whose key is in
// QUITTANCE_STAFF_KEY, or without one the user of the machine. A key that is not in force is refused, and
// with master keys one whose row is not as it was signed.
func Actor(ctx context.Context, pool *postgres.Pool, keys *secret.Keys, now time.Time) (operation.Actor, error) {
	origin, _ := os.Hostname()
	if key := StaffKey(); key != "" {
		person, err := identity.AuthenticateStaff(ctx, pool, keys, key, now)
		return person.Actor(origin), err
	}
	a := operation.Actor{Kind: operation.ActorCommandLine, Name: cmp.Or(os.Getenv("USER"), "unknown"), Origin: origin}
	if u, err := user.Current(); err == nil {
		a.Name = cmp.Or(u.Username, a.Name)
	}
	return a, nil
}

// Audit records in the audit table what the command did or disclosed, by whom.
func (m *Meta) Audit(ctx context.Context, action, subject string, detail map[string]any) error {
	return operation.Record(ctx, m.Pool, m.By, m.Now, operation.Entry{Action: action, Subject: subject, Detail: detail})
}

// Progress returns a function that prints the progress of long work to out, at most once a second and not its end,
// which the result of the command says.
func Progress(out io.Writer) func(done, total int) {
	last := time.Now()
	return func(done, total int) {
		if done < total && time.Since(last) >= time.Second {
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
