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

	"github.com/spf13/pflag"
)

// page is the text that a command prints.
type page struct{ bytes.Buffer }

// say adds a line.
func (p *page) say(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

// table adds rows below a heading, whose columns commas separate, or none when there
// are no rows.
func (p *page) table(none, heading string, rows [][]any) {
	if len(rows) == 0 {
		p.say("%s", none)
		return
	}
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.ReplaceAll(heading, ",", "\t"))
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
func (m *Meta) show(value any, text func(p *page)) error {
	if m.asJSON {
		e := json.NewEncoder(m.Out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(value)
	}
	var p page
	text(&p)
	_, err := io.WriteString(m.Out, m.program.naming(p.String()))
	return err
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

// takesChoice declares a flag that takes one of several values, which shells
// complete.
func takesChoice(f *pflag.FlagSet, to *string, name string, of []string, usage string) {
	f.Var(choice{to, of}, name, usage+oneOf(of))
}

// takesMode declares --mode, which the command needs: see needsMode.
func takesMode(f *pflag.FlagSet, to *string) {
	takesChoice(f, to, "mode", []string{"test", "live"}, "")
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

// momentOr is a time, or a word for none.
func momentOr(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return moment(t)
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
