package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"quittance/cmd/internal/cli/render"
	"quittance/internal/operation"
	"quittance/internal/registry"
)

// Words has texts for codes of refused operations.
type Words map[string]func(operation.Args) string

// cursorWords has the texts for the cursors of lists (internal/keyset), which the commands of several nouns take.
var cursorWords = Words{
	"list.cursor_foreign":   Filled("the cursor is of a list with other conditions; repeat these, or leave the flag out to begin with the first page"),
	"list.cursor_malformed": Filled("this is no cursor of a list; leave the flag out to begin with the first page"),
}

// InWords returns the text for a refused operation. It leaves out what was being done,
// because the operator knows it. Other errors stay as they are.
func (w Words) InWords(err error) error {
	var refused *operation.Error
	if !errors.As(err, &refused) || w[refused.Code] == nil {
		return err
	}
	return errors.New(w[refused.Code](refused.Args))
}

// InWords returns the text for a refused operation, as Words.InWords does, in the words of the program.
func (m *Meta) InWords(err error) error { return m.program.words.InWords(err) }

// Refusal returns the text for a refused operation, after the name of the flag or
// argument at fault. argument is the command's name for the id that it takes. Other
// errors stay as they are.
func (w Words) Refusal(err error, argument string) error {
	var refused *operation.Error
	if !errors.As(err, &refused) {
		return err
	}
	text := w.InWords(err).Error()
	switch refused.Field {
	case "":
		return errors.New(text)
	case "id", strings.ToLower(argument):
		return errors.New(argument + ": " + text)
	}
	return errors.New("--" + refused.Field + ": " + text)
}

var placeholder = regexp.MustCompile(`\{\w+\}`)

// Filled returns a function that replaces {name} in a text by the value of that name, and
// {keys} by the number, mode and list of the keys.
func Filled(text string) func(operation.Args) string {
	return func(args operation.Args) string {
		return placeholder.ReplaceAllStringFunc(text, func(name string) string {
			switch value := args[strings.Trim(name, "{}")].(type) {
			case time.Time:
				return render.Moment(value)
			case []string:
				if name == "{keys}" {
					return fmt.Sprintf("%d %s keys (%s)", len(value), registry.Mode(args["live"] == true), strings.Join(value, ", "))
				}
				return render.Some(value)
			default:
				return fmt.Sprint(value)
			}
		})
	}
}

// IsRefused reports whether an error is a refused operation with this code, or with any
// code if it is empty.
func IsRefused(err error, code string) bool {
	var refused *operation.Error
	return errors.As(err, &refused) && (code == "" || refused.Code == code)
}

// AsArgument names the argument of a refusal whose field is no flag.
func (m *Meta) AsArgument(err error, field, argument string) error {
	var refused *operation.Error
	if errors.As(err, &refused) && refused.Field == field {
		return errors.New(argument + ": " + m.InWords(err).Error())
	}
	return err
}
