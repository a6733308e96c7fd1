package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// MalformedError is a body that is not one JSON object, or has a field twice.
type MalformedError struct {
	// Detail is a sentence for who wrote the body. It quotes at most a byte of it and
	// the name of a field.
	Detail string
}

// Error is without what the body says.
func (e *MalformedError) Error() string { return "not one JSON object" }

func malformed(detail string) error { return &MalformedError{Detail: detail} }

// Decode reads exactly one JSON object (RFC 8259), its numbers as json.Number. Names
// are unique within an object, at any depth. The error is a *MalformedError.
func Decode(body []byte) (map[string]any, error) {
	if !utf8.Valid(body) {
		return nil, malformed("The body is not UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, malformed(fmt.Sprintf("The body is not JSON: %s at byte %d.", syntax.Error(), syntax.Offset))
		}
		return nil, malformed("The body is not JSON: it ends too early or is empty.")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed("The body holds more than one JSON value.")
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, malformed("The body must be a JSON object.")
	}
	if members(fields) != written(body) {
		name, _ := repeatedField(body)
		return nil, malformed("The body has the field " + strconv.Quote(shorten(name)) + " twice: which one counts nobody can tell.")
	}
	return fields, nil
}

// members counts the fields of all objects in a decoded value. Of two of a name
// the decoder has kept one.
func members(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = len(v)
		for _, e := range v {
			n += members(e)
		}
	case []any:
		for _, e := range v {
			n += members(e)
		}
	}
	return n
}

// written counts the fields of all objects in a JSON text: the colons outside
// its strings.
func written(body []byte) (n int) {
	inside := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			inside = !inside
		case '\\':
			i++ // only strings have them
		case ':':
			if !inside {
				n++
			}
		}
	}
	return n
}

// repeatedField is the name of the first field that an object of a JSON text has
// twice, if one has.
func repeatedField(body []byte) (name string, found bool) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	type level struct {
		names map[string]bool // nil: an array
		value bool            // the next token is a value
	}
	var levels []level
	for {
		token, err := dec.Token()
		if err != nil {
			return "", false
		}
		if name, ok := token.(string); ok && len(levels) > 0 {
			if top := &levels[len(levels)-1]; top.names != nil && !top.value {
				if top.names[name] {
					return name, true
				}
				top.names[name], top.value = true, true
				continue
			}
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if len(levels) > 0 {
			levels[len(levels)-1].value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{names: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
