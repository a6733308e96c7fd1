package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"quittance/money"
)

// Values of --format.
const (
	FormatTable = "table"
	FormatCSV   = "csv"
	FormatJSON  = "json"
)

// Page is the text output of a command.
type Page struct{ bytes.Buffer }

// Say adds a line.
func (p *Page) Say(format string, args ...any) { _, _ = fmt.Fprintf(p, format+"\n", args...) }

// Table adds a table. Commas separate the columns of heading. Without rows it adds the
// line none instead.
func (p *Page) Table(none, heading string, rows [][]any) {
	if len(rows) == 0 {
		p.Say("%s", none)
		return
	}
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, strings.ReplaceAll(heading, ",", "\t"))
	for _, row := range rows {
		_, _ = fmt.Fprintf(w, strings.Repeat("%v\t", len(row)-1)+"%v\n", row...)
	}
	_ = w.Flush() // writes to a buffer
}

// Facts adds one line for each name and value. It leaves out empty values.
func (p *Page) Facts(facts ...[][2]string) {
	w := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, f := range slices.Concat(facts...) {
		if f[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
		}
	}
	_ = w.Flush() // writes to a buffer
}

// Encode writes a value as JSON, with indent before each level; without one it is a single line.
func Encode(out io.Writer, value any, indent string) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(value)
}

// Object is what --json prints of one thing: names and values in turn. If a name ends in
// "?", it is left out when its value is empty. A zero time is null.
type Object []any

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
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
		if err := Encode(&b, value, ""); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// OrNull makes zero the JSON null.
func OrNull(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// Counted returns a number with its noun: "1 fault", "2 faults", "2 deliveries". The noun is in the singular, and ends in the word that counts.
func Counted[N int | int64](n N, noun string) string {
	stem, y := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
	case y && !strings.HasSuffix(stem, "e") && !strings.HasSuffix(stem, "a"): // not key, not day
		noun = stem + "ies"
	case strings.HasSuffix(noun, "s") || strings.HasSuffix(noun, "h"):
		noun += "es"
	default:
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}

// CountedIs is Counted with the verb: "1 record is", "2 records are".
func CountedIs[N int | int64](n N, noun string) string {
	if n == 1 {
		return Counted(n, noun) + " is"
	}
	return Counted(n, noun) + " are"
}

// Mapped applies f to each element. The result is never nil, so that its JSON is a list.
func Mapped[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}

// MomentOr returns the time as text, or none for the zero time.
func MomentOr(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return Moment(t)
}

// Moment returns the time as text, in UTC.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// OrDash returns the text, or - for an empty one.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// OrNone makes an empty text the JSON null.
func OrNone(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// Decimal returns an amount in minor units for people.
func Decimal(amount int64, currency string) string {
	if known, ok := money.Lookup(currency); ok {
		return known.Decimal(amount) + " " + currency
	}
	return fmt.Sprintf("%d %s", amount, currency)
}

// Some joins names for a sentence, at most ten of them.
func Some(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], "; ") + fmt.Sprintf("; and %d more", len(names)-most)
	}
	return strings.Join(names, "; ")
}

// Texts returns values as plain text.
func Texts[T ~string](list []T) []string { return Mapped(list, func(v T) string { return string(v) }) }
