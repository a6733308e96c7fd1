package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// page is the text that a command prints.
type page struct{ bytes.Buffer }

// say adds a line.
func (p *page) say(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

// table adds rows below a heading.
func (p *page) table(heading []string, rows [][]any) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, row := range rows {
		_, _ = fmt.Fprintf(w, strings.Repeat("%v\t", len(row)-1)+"%v\n", row...)
	}
	_ = w.Flush() // writes to a buffer
}

// facts adds lines of a name and a value. A fact with an empty value is left out.
func (p *page) facts(facts ...[2]string) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		if f[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
		}
	}
	_ = w.Flush() // writes to a buffer
}

// show prints what a command has found or done: value as JSON with --json, else
// text.
func (m *meta) show(cmd *cobra.Command, value any, text func(p *page)) error {
	if m.asJSON {
		return printJSON(cmd.OutOrStdout(), value)
	}
	var p page
	text(&p)
	_, err := io.WriteString(cmd.OutOrStdout(), m.program.naming(p.String()))
	return err
}

// takesJSON declares --json.
func (m *meta) takesJSON(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&m.asJSON, "json", false, "print "+what+" as JSON")
}

// naming puts the program's name into hints, which say `quittance …`.
func (p Program) naming(text string) string {
	return strings.ReplaceAll(text, "`quittance ", "`"+p.Name+" ")
}

// mapped applies f to each element. The result is never nil: its JSON is a list.
func mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// choice is the value of a flag that takes one of several.
type choice struct {
	to *string
	of []string
}

func (c choice) String() string { return *c.to }
func (c choice) Type() string   { return "string" }

func (c choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return errors.New("must be " + oneOf(c.of))
	}
	*c.to = text
	return nil
}

// takesChoice declares a flag that takes one of several values, and completes them.
func takesChoice(cmd *cobra.Command, to *string, name string, of []string, usage string) {
	cmd.Flags().Var(choice{to, of}, name, usage+oneOf(of))
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// takesMode declares --mode, which the command needs: see needsMode.
func takesMode(cmd *cobra.Command, to *string) {
	takesChoice(cmd, to, "mode", []string{"test", "live"}, "")
}

func needsMode(mode string) error {
	if mode == "" {
		return usage("--mode: must be test or live")
	}
	return nil
}

// oneOf is "a or b" and "one of a, b, c".
func oneOf(values []string) string {
	if len(values) > 2 {
		return "one of " + strings.Join(values, ", ")
	}
	return strings.Join(values, " or ")
}

// takesArgument makes a command want one argument. missing says which.
func takesArgument(cmd *cobra.Command, missing string) {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s", missing)
		}
		return nil
	}
}

// momentOr is a time, or a word for none.
func momentOr(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return moment(t)
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func modeOf(live bool) string {
	if live {
		return "live"
	}
	return "test"
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
