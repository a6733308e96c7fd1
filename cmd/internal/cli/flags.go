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

// TakesChoice declares a flag that takes one of several values. Shells complete them.
func TakesChoice(f *pflag.FlagSet, to *string, name string, of []string, usage string) {
	f.Var(choice{to, of}, name, usage+oneOf(of))
}

// oneOf returns "a or b", or "one of a, b, c" for more than two values.
func oneOf(values []string) string {
	if len(values) > 2 {
		return "one of " + strings.Join(values, ", ")
	}
	return strings.Join(values, " or ")
}

// Modes are the values of --mode.
var Modes = []string{"test", "live"}

// TakesMode declares --mode. A command that requires it calls NeedsMode in its Check.
func TakesMode(f *pflag.FlagSet, to *string) {
	TakesChoice(f, to, "mode", Modes, "")
}

// NeedsMode refuses a command without --mode.
func NeedsMode(mode string) error {
	if mode == "" {
		return Usage("--mode: must be test or live")
	}
	return nil
}

// IfGiven returns the value of a flag that is on the command line, otherwise nil.
func IfGiven[T any](m *Meta, flag string, value *T) *T {
	if m.Changed(flag) {
		return value
	}
	return nil
}

// ListIfGiven returns the values of a flag that is on the command line, otherwise nil.
func ListIfGiven(m *Meta, flag string, values []string) []string {
	if m.Changed(flag) {
		return append([]string{}, values...)
	}
	return nil
}

// AnyGiven refuses a command without any of its own flags.
func AnyGiven(flags ...string) func(*Meta) error {
	return func(m *Meta) error {
		for _, flag := range flags {
			if m.Changed(flag) {
				return nil
			}
		}
		return Usage("say what to set: --%s", strings.Join(flags, ", --"))
	}
}

// YesFlag declares --yes, for commands that call Meta.Agree.
func YesFlag(f *pflag.FlagSet, yes *bool) { f.BoolVar(yes, "yes", false, "do not ask") }

// MomentForms describes the values that MomentOf accepts.
const MomentForms = "a time such as 2026-03-01T12:00:00Z, a day, or how long ago, such as 2h"

// MomentOf returns the time that a flag names: in the form of RFC 3339 or of the
// tables, as a UTC day, or as a duration before now. It is zero for an empty text.
func MomentOf(flag, text string, now time.Time) (time.Time, error) {
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
	return time.Time{}, Usage("--%s: must be a time such as 2026-03-01T12:00:00Z, a day such as 2026-03-01 (UTC), or how long ago, such as 2h or 3d", flag)
}

// Span returns the times of --since, which is required, and --until. An empty until
// means now.
func Span(since, until string, now time.Time) (from, to time.Time, err error) {
	if since == "" {
		return from, to, Usage("--since: give the start: %s", MomentForms)
	}
	if from, err = MomentOf("since", since, now); err != nil {
		return from, to, err
	}
	if to, err = MomentOf("until", until, now); err != nil {
		return from, to, err
	}
	if until == "" {
		to = now.UTC()
	}
	if !from.Before(to) {
		return from, to, Usage("--until: must be after --since")
	}
	return from, to, nil
}
