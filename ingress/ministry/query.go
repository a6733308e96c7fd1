package ministry

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"quittance/ingress/problem"
	"quittance/internal/form"
)

// checkQuery checks the query against the operation's parameters. The generated code,
// which reads the query afterwards, would stop at the first fault and ignore
// parameters that are unknown or repeated.
func (o described) checkQuery(r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	f := form.Of(nil)
	if err != nil {
		f.Fault("query", "format", "string is malformed: percent-encode its names and values")
	}
	var known []string
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		known = append(known, p.Name)
		switch v := values[p.Name]; len(v) {
		case 0:
		case 1:
			if rule, message := p.Schema.check(v[0]); rule != "" {
				f.Fault(p.Name, rule, message)
			}
		default:
			f.Fault(p.Name, "repeated", "must be given once")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case slices.Contains(known, name):
		case len(known) == 0:
			f.Fault(name, "unknown", "is not a parameter of this request, which has none")
		default:
			f.Fault(name, "unknown", "is not a parameter of this request; the parameters are "+strings.Join(known, ", "))
		}
	}
	if faults := f.Faults(); len(faults) > 0 {
		return problem.New("generic.invalid_query").Naming(faults)
	}
	return nil
}

// check returns the rule of the schema that the value breaks and its message, or empty
// texts.
func (s schema) check(v string) (rule, message string) {
	if s.Type == "integer" {
		n, err := strconv.ParseInt(v, 10, 64)
		least, most := bound(s.Minimum, 0), bound(s.Maximum, 1<<31-1)
		if err != nil || n < least || n > most || strconv.FormatInt(n, 10) != v {
			return "range", fmt.Sprintf("must be an integer from %d to %d", least, most)
		}
		return "", ""
	}
	switch n := utf8.RuneCountInString(v); {
	case !utf8.ValidString(v) || strings.ContainsRune(v, 0):
		return "format", "must be UTF-8 without zero characters"
	case len(s.Enum) > 0:
		if !slices.Contains(s.Enum, any(v)) {
			return "enum", "must be one of " + strings.Trim(strings.ReplaceAll(fmt.Sprint(s.Enum), " ", ", "), "[]")
		}
	case s.Format == "uuid":
		if _, ok := form.CanonicalUUID(v); !ok {
			return "format", "must be a UUID"
		}
	case s.Format == "date-time":
		if _, err := instant(v); err != nil {
			return "format", "must be a date and time of RFC 3339, such as 2026-11-21T00:00:00Z; write + as %2B"
		}
	case n < s.MinLength || s.MaxLength > 0 && n > s.MaxLength:
		return "length", form.LengthRule(s.MinLength, s.MaxLength)
	}
	return "", ""
}

// instant reads a date and time of RFC 3339, which allows small letters.
func instant(v string) (time.Time, error) {
	return time.Parse(time.RFC3339, strings.ToUpper(v))
}

func bound(v any, otherwise int64) int64 {
	switch v := v.(type) {
	case uint64:
		return int64(v) //nolint:gosec // our own file
	case int64:
		return v
	}
	return otherwise
}
