// Package digest has the bytes that approvers of a batch sign: the leaf of a line, the root over all lines, the digest of
// the batch and the statement of a step.
//
// The forms are of version 1 and never change: signatures over them stay in events for ever. testdata/vectors.json has
// inputs and bytes by which another program can check itself.
package digest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxInteger is the largest integer of the signed forms, 2^53 − 1: JSON readers keep it exactly.
const MaxInteger = 1<<53 - 1

// ErrText says that a text has another character than printable ASCII, or that an integer is out of range.
var ErrText = errors.New("the signed form has printable ASCII and integers up to 2^53-1 only")

// canonical returns the JSON of a value in the form of RFC 8785. The values are texts of printable ASCII, integers, lists
// and objects. For them the encoder of the standard library writes that form: names sorted by bytes, which for ASCII is
// the order of UTF-16, no spaces, only the quotation mark and the backslash escaped. So no library of RFC 8785 is needed,
// whose other half is the form of floating-point numbers.
func canonical(v any) ([]byte, error) {
	if err := check(v); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

type (
	object = map[string]any
	list   = []any
)

// check reports what canonical cannot write.
func check(v any) error {
	switch v := v.(type) {
	case string:
		for i := range len(v) {
			if v[i] < ' ' || v[i] > '~' {
				return fmt.Errorf("character %d of a text: %w", i+1, ErrText)
			}
		}
	case int64:
		if v < -MaxInteger || v > MaxInteger {
			return fmt.Errorf("integer %d: %w", v, ErrText)
		}
	case list:
		for _, x := range v {
			if err := check(x); err != nil {
				return err
			}
		}
	case object:
		for name, x := range v {
			if err := check(x); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	default:
		return fmt.Errorf("%T: %w", v, ErrText)
	}
	return nil
}

// without returns the object without its empty texts: absent members are left out.
func without(o object) object {
	for name, v := range o {
		if v == "" {
			delete(o, name)
		}
	}
	return o
}
