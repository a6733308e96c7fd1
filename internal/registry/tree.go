package registry

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// parseTree reads one YAML document into maps, lists and scalars. Errors name the
// line and never quote the file, which holds secrets.
func parseTree(text []byte) (any, error) {
	var root any
	err := yaml.UnmarshalWithOptions(text, &root, yaml.UseOrderedMap())
	if err == nil {
		return root, nil
	}
	var positioned yaml.Error
	if errors.As(err, &positioned) {
		if token := positioned.GetToken(); token != nil && token.Position != nil {
			return nil, fmt.Errorf("line %d, column %d: not valid YAML: %s", token.Position.Line, token.Position.Column, firstLine(positioned.GetMessage()))
		}
		return nil, fmt.Errorf("not valid YAML: %s", firstLine(positioned.GetMessage()))
	}
	return nil, errors.New("not valid YAML")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// object is a mapping of the file, read field by field. What nobody asked for
// when done is called is a fault.
type object struct {
	path   string
	fields yaml.MapSlice
	known  []string
	faults *Faults
}

// asObject is nil, with a fault, for anything but a mapping.
func asObject(value any, path string, faults *Faults) *object {
	m, ok := value.(yaml.MapSlice)
	if !ok {
		faults.add(path, "must be a mapping, not %s", kind(value))
		return nil
	}
	return &object{path: path, fields: m, faults: faults}
}

func (o *object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// fault is one of a field.
func (o *object) fault(name, format string, args ...any) {
	o.faults.add(o.at(name), format, args...)
}

// get is a field's value; absent and null are alike.
func (o *object) get(name string) any {
	o.known = append(o.known, name)
	for _, item := range o.fields {
		if key, ok := item.Key.(string); ok && key == name {
			return item.Value
		}
	}
	return nil
}

func (o *object) has(name string) bool { return o.get(name) != nil }

func (o *object) done() {
	for _, item := range o.fields {
		key, ok := item.Key.(string)
		if !ok {
			o.faults.add(o.path, "has a field whose name is no text")
			continue
		}
		if !slices.Contains(o.known, key) {
			o.fault(key, "is not a field of the registry file (here are: %s)", strings.Join(slices.Compact(slices.Sorted(slices.Values(o.known))), ", "))
		}
	}
}

// text is a field's text, nil when absent.
func (o *object) text(name string) *string {
	switch v := o.get(name).(type) {
	case nil:
		return nil
	case string:
		return &v
	default:
		o.fault(name, "must be text, not %s; put it in quotes", kind(v))
		return nil
	}
}

// require is a field's text; absent or empty is a fault.
func (o *object) require(name string) string {
	if o.has(name) {
		s := o.text(name)
		if s == nil {
			return "" // told
		}
		if *s == "" {
			o.fault(name, "must not be empty")
		}
		return *s
	}
	o.fault(name, "is required")
	return ""
}

func (o *object) boolean(name string) *bool {
	switch v := o.get(name).(type) {
	case nil:
		return nil
	case bool:
		return &v
	default:
		o.fault(name, "must be true or false, not %s", kind(v))
		return nil
	}
}

// integer is a field's whole number from low to high, nil when absent or wrong.
func (o *object) integer(name string, low, high int64) *int64 {
	var n int64
	switch v := o.get(name).(type) {
	case nil:
		return nil
	case uint64:
		if v > math.MaxInt64 {
			o.fault(name, "must be from %d to %d", low, high)
			return nil
		}
		n = int64(v)
	case int64:
		n = v
	default:
		o.fault(name, "must be a whole number, not %s", kind(v))
		return nil
	}
	if n < low || n > high {
		o.fault(name, "must be from %d to %d", low, high)
		return nil
	}
	return &n
}

// list is a field's list; each calls back with the path of an element.
func (o *object) list(name string, each func(path string, value any)) (present bool) {
	value := o.get(name)
	if value == nil {
		return false
	}
	items, ok := value.([]any)
	if !ok {
		o.fault(name, "must be a list, not %s", kind(value))
		return false
	}
	for i, item := range items {
		each(fmt.Sprintf("%s[%d]", o.at(name), i), item)
	}
	return true
}

// objects is a field's list of mappings.
func (o *object) objects(name string, each func(*object)) {
	o.list(name, func(path string, value any) {
		if item := asObject(value, path, o.faults); item != nil {
			each(item)
			item.done()
		}
	})
}

// object is a field's mapping.
func (o *object) object(name string, with func(*object)) {
	if value := o.get(name); value != nil {
		if inner := asObject(value, o.at(name), o.faults); inner != nil {
			with(inner)
			inner.done()
		}
	}
}

// texts is a field's list of texts without repetition, nil when absent. check
// says what is wrong with one.
func (o *object) texts(name string, check func(string) error) []string {
	out := []string{}
	present := o.list(name, func(path string, value any) {
		s, ok := value.(string)
		if !ok {
			o.faults.add(path, "must be text, not %s", kind(value))
			return
		}
		if err := check(s); err != nil {
			o.faults.add(path, "%s", err)
			return
		}
		if slices.Contains(out, s) {
			o.faults.add(path, "stands twice")
			return
		}
		out = append(out, s)
	})
	if !present {
		return nil
	}
	return out
}

// kind names a value's type without its content.
func kind(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case string:
		return "text"
	case bool:
		return "true or false"
	case uint64, int64, int:
		return "a number"
	case float64:
		return "a decimal number"
	case []any:
		return "a list"
	case yaml.MapSlice:
		return "a mapping"
	}
	return "something else"
}
