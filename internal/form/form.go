package form

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// MaxAmount keeps amounts exact in every caller's language: JavaScript's largest
// safe integer, 2^53 - 1.
const MaxAmount = 1<<53 - 1

// Fault is one field at fault, as answers to callers name it (docs/design/decisions.md § 2).
type Fault struct {
	// Field is a dotted path such as metadata.case.
	Field string `json:"field"`
	// Rule names what was broken: required, type, range, length, format, enum, unknown…
	Rule string `json:"rule"`
	// Message is a sentence that begins with Field and says how to mend it.
	Message string `json:"message"`
}

// FaultsError reports an object with fields at fault. It holds all of them.
type FaultsError struct{ Faults []Fault }

// Error leaves out the values of the fields.
func (e *FaultsError) Error() string { return fmt.Sprintf("%d fields at fault", len(e.Faults)) }

// Form takes fields out of an object and collects what is wrong with them. A field
// that is null counts as absent; one at fault is returned as its zero value.
type Form struct {
	whole    string
	brackets bool // elements of lists are named items[0], not items.0
	prefix   string
	fields   map[string]any
	faults   []Fault
	known    []string
	chosen   bool // the caller chooses the names: none is unknown
}

// mostUnknown is how many unknown fields are told. A body may have thousands.
const mostUnknown = 100

// Of returns the form of an object that Decode read.
func Of(fields map[string]any) *Form { return &Form{whole: "this request", fields: fields} }

// OfWhole returns the form of an object that is no request, with values as Decode reads them. whole names
// the object in the message of a fault. Elements of its lists are named agencies[0], and those of a request items.0
// (docs/design/decisions.md § 2).
func OfWhole(whole string, fields map[string]any) *Form {
	return &Form{whole: whole, brackets: true, fields: fields}
}

// OfElement returns the form of an element of a list, with values as Decode reads them. path
// is its place, such as items[17]: the names of its fields begin with it.
func OfElement(path string, fields map[string]any) *Form {
	return &Form{whole: path, brackets: true, prefix: path + ".", fields: fields}
}

// Read returns the form of a JSON object. The error is a *MalformedError.
func Read(body []byte) (*Form, error) {
	fields, err := Decode(body)
	if err != nil {
		return nil, err
	}
	return Of(fields), nil
}

// Path returns the place of the object in the whole, such as agencies[0]. It is empty
// for the whole itself.
func (f *Form) Path() string { return strings.TrimSuffix(f.prefix, ".") }

// Fault adds a fault. The message continues a sentence that begins with the field's
// name, and has no full stop.
func (f *Form) Fault(field, rule, message string) {
	name := f.prefix + shorten(field)
	f.faults = append(f.faults, Fault{Field: name, Rule: rule, Message: name + " " + message + "."})
}

// Misplaced adds a fault if the object has a field that belongs elsewhere. The field is not among those that are named as
// the fields of the form. The message is one of Fault.
func (f *Form) Misplaced(field, message string) {
	if _, ok := f.fields[field]; ok {
		f.Fault(field, "unknown", message)
	}
}

// Faulty reports whether a field is at fault.
func (f *Form) Faulty(field string) bool {
	return slices.ContainsFunc(f.faults, func(p Fault) bool { return p.Field == f.prefix+shorten(field) })
}

// Take returns a field's value as Decode read it, and whether there is one.
func (f *Form) Take(field string, required bool) (any, bool) {
	f.known = append(f.known, field)
	value := f.fields[field]
	if value == nil {
		if required {
			f.Fault(field, "required", "is required")
		}
		return nil, false
	}
	return value, true
}

// take is Take for a value of one type. must says what a value of another type has
// to be.
func take[T any](f *Form, field string, required bool, must string) (v T, ok bool) {
	value, ok := f.Take(field, required)
	if !ok {
		return v, false
	}
	if v, ok = value.(T); !ok {
		f.Fault(field, "type", must)
	}
	return v, ok
}

// Text returns a string of shortest to longest characters. It refuses the zero
// character and U+FFFD, which replaces bytes that are no character.
func (f *Form) Text(field string, required bool, shortest, longest int) string {
	s := f.str(field, required, shortest, longest)
	if strings.ContainsFunc(s, func(r rune) bool { return r == 0 || r == utf8.RuneError }) {
		f.Fault(field, "format", "must not hold the zero character, U+FFFD or half a surrogate pair")
		return ""
	}
	return s
}

// str returns a string of shortest to longest characters.
func (f *Form) str(field string, required bool, shortest, longest int) string {
	s, ok := take[string](f, field, required, "must be a string")
	if !ok {
		return ""
	}
	if n := utf8.RuneCountInString(s); n < shortest || n > longest {
		f.Fault(field, "length", LengthRule(shortest, longest))
		return ""
	}
	return s
}

// LengthRule returns the message of a text with too few or too many characters.
func LengthRule(shortest, longest int) string {
	if shortest == longest {
		return fmt.Sprintf("must have %d characters", shortest)
	}
	return fmt.Sprintf("must have %d to %d characters", shortest, longest)
}

// Line returns text that fits a receipt: 1 to longest characters, all printable and not
// all spaces. U+FFFD, which replaces bytes that are no character, is accepted. An empty
// text counts as absent where the field is not required.
func (f *Form) Line(field string, required bool, longest int) string {
	shortest := 0
	if required {
		shortest = 1
	}
	s := f.str(field, required, shortest, longest)
	if s != "" && !IsLine(s, longest) {
		f.Fault(field, "format", "must be printable characters on one line")
		return ""
	}
	return s
}

// IsLine reports whether Line accepts the text as present.
func IsLine(s string, longest int) bool {
	return utf8.ValidString(s) && utf8.RuneCountInString(s) <= longest && strings.TrimSpace(s) != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// UUID returns a UUID in lower case. It accepts only the form with hyphens (RFC 9562).
func (f *Form) UUID(field string, required bool) string {
	s := f.Text(field, required, 1, 200)
	if s == "" {
		return ""
	}
	id, ok := CanonicalUUID(s)
	if !ok {
		f.Fault(field, "format", "must be a UUID")
	}
	return id
}

// CanonicalUUID returns a UUID in lower case, and whether UUID accepts it.
func CanonicalUUID(s string) (string, bool) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return "", false
	}
	return id.String(), true
}

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// Amount returns a required number of minor units, from 1 to MaxAmount.
func (f *Form) Amount(field string) int64 {
	n, ok := take[json.Number](f, field, true, "must be an integer in minor units of the currency")
	if !ok {
		return 0
	}
	if !integer.MatchString(n.String()) {
		f.Fault(field, "type", "must be an integer in minor units of the currency, without fraction or exponent")
		return 0
	}
	v, err := n.Int64()
	if err != nil {
		v = math.MaxInt64
	}
	if strings.HasPrefix(n.String(), "-") || v <= 0 || v > MaxAmount {
		f.Fault(field, "range", fmt.Sprintf("must be greater than 0 and at most %d", int64(MaxAmount)))
		return 0
	}
	return v
}

// Integer returns an optional integer within bounds, nil when it is absent or at fault.
func (f *Form) Integer(field string, low, high int64) *int64 {
	value, ok := f.Take(field, false)
	if !ok {
		return nil
	}
	n, ok := value.(json.Number)
	if !ok || !integer.MatchString(n.String()) {
		f.Fault(field, "type", "must be a whole number")
		return nil
	}
	v, err := n.Int64()
	if err != nil || v < low || v > high {
		f.Fault(field, "range", fmt.Sprintf("must be from %d to %d", low, high))
		return nil
	}
	return &v
}

// Bool returns an optional true or false, nil when it is absent or at fault.
func (f *Form) Bool(field string) *bool {
	b, ok := take[bool](f, field, false, "must be true or false")
	if !ok {
		return nil
	}
	return &b
}

// Object calls read with the form of an optional object and adds its faults. Fields
// that read does not take are unknown.
func (f *Form) Object(field string, read func(*Form)) {
	if value, ok := f.Take(field, false); ok {
		f.object(field, value, read)
	}
}

func (f *Form) object(field string, value any, read func(*Form)) {
	fields, ok := value.(map[string]any)
	if !ok {
		f.Fault(field, "type", "must be an object")
		return
	}
	inner := &Form{whole: f.whole, brackets: f.brackets, prefix: f.prefix + field + ".", fields: fields}
	read(inner)
	f.faults = append(f.faults, inner.Faults()...)
}

// List calls each with every element of an optional list and the element's name for a
// fault. It reports whether there is a list.
func (f *Form) List(field string, each func(element string, value any)) bool {
	list, ok := take[[]any](f, field, false, "must be a list")
	name := "%s.%d"
	if f.brackets {
		name = "%s[%d]"
	}
	for i, v := range list {
		each(fmt.Sprintf(name, field, i), v)
	}
	return ok
}

// Objects is Object for each element of an optional list.
func (f *Form) Objects(field string, read func(*Form)) {
	f.List(field, func(element string, value any) { f.object(element, value, read) })
}

// Texts returns an optional list of strings without repetitions, nil when it is absent.
// The error of check is the message of a fault with the rule format.
func (f *Form) Texts(field string, check func(string) error) []string {
	out := []string{}
	if !f.List(field, func(element string, value any) {
		s, ok := value.(string)
		if !ok {
			f.Fault(element, "type", "must be a string")
		} else if err := check(s); err != nil {
			f.Fault(element, "format", err.Error())
		} else if slices.Contains(out, s) {
			f.Fault(element, "duplicate", "occurs twice")
		} else {
			out = append(out, s)
		}
	}) {
		return nil
	}
	return out
}

// Names returns the names of the object's fields, sorted. It is for objects whose names
// the caller chooses: none of them is unknown then.
func (f *Form) Names() []string {
	f.chosen = true
	return slices.Sorted(maps.Keys(f.fields))
}

// Faults ends the form after every field was taken. It returns the faults of the taken
// fields in the order of taking, then those of the first 100 unknown fields.
func (f *Form) Faults() []Fault {
	var unknown []string
	for name := range f.fields {
		if !f.chosen && !slices.Contains(f.known, name) && !f.Faulty(name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown[:min(len(unknown), mostUnknown)] {
		f.Fault(name, "unknown", "is not a field of "+f.whole+"; the fields are "+strings.Join(f.known, ", "))
	}
	return f.faults
}

// Err returns the Faults as a *FaultsError, nil when there are none.
func (f *Form) Err() error {
	if faults := f.Faults(); len(faults) > 0 {
		return &FaultsError{Faults: faults}
	}
	return nil
}

// shorten returns a name that the caller chose as a message repeats it.
func shorten(s string) string {
	switch {
	case s == "":
		return `""`
	case utf8.RuneCountInString(s) <= 64:
		return s
	}
	return string([]rune(s)[:64]) + "…"
}
