package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// choice is the value of a flag that takes one of several values.
type choice struct {
	to *string
	of []string
}

func (c choice) String() string { return *c.to }

func (c choice) Type() string { return "string" }

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

// oneOf returns "a or b", or "one of a, b, c" for more than two values.
func oneOf(values []string) string {
	if len(values) > 2 {
		return "one of " + strings.Join(values, ", ")
	}
	return strings.Join(values, " or ")
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

// ifGiven returns the value of a flag that is on the command line, otherwise nil.
func ifGiven[T any](m *Meta, flag string, value *T) *T {
	if m.changed(flag) {
		return value
	}
	return nil
}

// listIfGiven returns the values of a flag that is on the command line, otherwise nil.
func listIfGiven(m *Meta, flag string, values []string) []string {
	if m.changed(flag) {
		return append([]string{}, values...)
	}
	return nil
}

// anyGiven refuses a command without any of its own flags.
func anyGiven(flags ...string) func(*Meta) error {
	return func(m *Meta) error {
		for _, flag := range flags {
			if m.changed(flag) {
				return nil
			}
		}
		return usage("say what to set: --%s", strings.Join(flags, ", --"))
	}
}

func yesFlag(f *pflag.FlagSet, yes *bool) { f.BoolVar(yes, "yes", false, "do not ask") }

// momentForms describes the values that momentOf accepts.
const momentForms = "a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h"

// momentOf returns the time that a flag names: in the form of RFC 3339 or of the
// tables, as a UTC day, or as a duration before now. It is zero for an empty text.
func momentOf(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 UTC", "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, usage("--%s: must be a time such as 2026-03-01T12:00:00Z, a day such as 2026-03-01 (UTC), or how long ago, such as 2h or 3d", flag)
}

// span returns the times of --since, which is required, and --until. An empty until
// means now.
func span(since, until string, now time.Time) (from, to time.Time, err error) {
	if since == "" {
		return from, to, usage("--since: give the start: %s", momentForms)
	}
	if from, err = momentOf("since", since, now); err != nil {
		return from, to, err
	}
	if to, err = momentOf("until", until, now); err != nil {
		return from, to, err
	}
	if until == "" {
		to = now.UTC()
	}
	if !from.Before(to) {
		return from, to, usage("--until: must be after --since")
	}
	return from, to, nil
}
