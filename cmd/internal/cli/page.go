package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
)

// page is the text output of a command.
type page struct{ bytes.Buffer }

// say adds a line.
func (p *page) say(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

// table adds a table. Commas separate the columns of heading. Without rows it adds the
// line none instead.
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

// facts adds one line for each name and value. It leaves out empty values.
func (p *page) facts(facts ...[][2]string) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, f := range slices.Concat(facts...) {
		if f[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
		}
	}
	_ = w.Flush() // writes to a buffer
}

// show prints the result of a command: value as JSON with --json, otherwise text.
func (m *Meta) show(value any, text func(p *page)) error {
	if m.asJSON {
		return encode(m.Out, value, "  ")
	}
	var p page
	text(&p)
	_, err := io.WriteString(m.Out, m.program.naming(p.String()))
	return err
}

func encode(out io.Writer, value any, indent string) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(value)
}

// object is what --json prints of one thing: names and values in turn. If a name ends in
// "?", it is left out when its value is empty. A zero time is null.
type object []any

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i+1 < len(o); i += 2 {
		name, optional := strings.CutSuffix(fmt.Sprint(o[i]), "?")
		value := o[i+1]
		if t, ok := value.(time.Time); ok && t.IsZero() {
			value = nil
		}
		if v := reflect.ValueOf(value); optional && (value == nil || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		_, _ = fmt.Fprintf(&b, "%q:", name) // names are ASCII
		if err := encode(&b, value, ""); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// orNull makes zero the JSON null.
func orNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// naming replaces `quittance …` in hints by the program's own name.
func (p Program) naming(text string) string {
	return strings.ReplaceAll(text, "`quittance ", "`"+p.Name+" ")
}

// mapped applies f to each element. The result is never nil, so that its JSON is a list.
func mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// choice is the value of a flag that takes one of several values.
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

// takesChoice declares a flag that takes one of several values. Shells complete them.
func takesChoice(f *pflag.FlagSet, to *string, name string, of []string, usage string) {
	f.Var(choice{to, of}, name, usage+oneOf(of))
}

// modes are the values of --mode.
var modes = []string{"test", "live"}

// takesMode declares --mode. A command that requires it calls needsMode in its Check.
func takesMode(f *pflag.FlagSet, to *string) {
	takesChoice(f, to, "mode", modes, "")
}

func needsMode(mode string) error {
	if mode == "" {
		return usage("--mode: must be test or live")
	}
	return nil
}

// oneOf returns "a or b", or "one of a, b, c" for more than two values.
func oneOf(values []string) string {
	if len(values) > 2 {
		return "one of " + strings.Join(values, ", ")
	}
	return strings.Join(values, " or ")
}

// momentOr returns the time as text, or none for the zero time.
func momentOr(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return moment(t)
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
