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
	// Detail is a sentence for the author of the body. It quotes at most a byte of the body
	// and the name of a field.
	Detail string
}

// Error does not quote the body.
func (e *MalformedError) Error() string { return "not one JSON object" }

func malformed(detail string) error { return &MalformedError{Detail: detail} }

// Decode reads exactly one JSON object (RFC 8259) with numbers as json.Number. It refuses
// an object with a name twice, at any depth. The error is a *MalformedError.
func Decode(body []byte) (map[string]any, error) {
	s := scanner{text: body}
	value, ok := s.value()
	if s.space(); !ok || s.at != len(body) {
		return nil, refusal(body)
	}
	fields, ok := value.(map[string]any)
	switch {
	case !ok:
		return nil, malformed("The body must be a JSON object.")
	case s.twice:
		return nil, malformed("The body has the field " + strconv.Quote(shorten(s.repeated)) + " twice: its value is ambiguous.")
	}
	return fields, nil
}

// refusal says why a body is not one JSON value, in the terms of encoding/json.
func refusal(body []byte) error {
	if !utf8.Valid(body) {
		return malformed("The body is not UTF-8.")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return malformed(fmt.Sprintf("The body is not JSON: %s at byte %d.", syntax.Error(), syntax.Offset))
		}
		return malformed("The body is not JSON: it ends too early or is empty.")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return malformed("The body holds more than one JSON value.")
	}
	return malformed("The body is not JSON.")
}

// maxDepth of objects and arrays, as in encoding/json.
const maxDepth = 10_000

// scanner reads a JSON text in one pass. It accepts the same texts in valid UTF-8 as
// encoding/json, with the same values.
type scanner struct {
	text     []byte
	at       int
	depth    int
	repeated string // the first name that an object has twice
	twice    bool   // repeated is set; it may be empty
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// next skips white space and reads the byte b. It returns false if another byte follows.
func (s *scanner) next(b byte) bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == b {
		s.at++
		return true
	}
	return false
}

// value skips white space and reads a value. ok is false when there is none.
func (s *scanner) value() (v any, ok bool) {
	s.space()
	if s.at == len(s.text) {
		return nil, false
	}
	switch b := s.text[s.at]; {
	case b == '{':
		return nested(s, s.object)
	case b == '[':
		return nested(s, s.array)
	case b == '"':
		return boxed(s.string())
	case b == '-' || '0' <= b && b <= '9':
		return boxed(s.number())
	}
	for _, literal := range literals {
		if bytes.HasPrefix(s.text[s.at:], literal.word) {
			s.at += len(literal.word)
			return literal.value, true
		}
	}
	return nil, false
}

var literals = []struct {
	word  []byte
	value any
}{{[]byte("true"), true}, {[]byte("false"), false}, {[]byte("null"), nil}}

func boxed[T any](v T, ok bool) (any, bool) { return v, ok }

// nested reads an object or an array. Its first byte is the next one.
func nested[T any](s *scanner, read func() (T, bool)) (any, bool) {
	s.at++
	s.depth++
	v, ok := read()
	s.depth--
	return v, ok
}

func (s *scanner) object() (map[string]any, bool) {
	fields := map[string]any{}
	if s.depth > maxDepth || s.next('}') {
		return fields, s.depth <= maxDepth
	}
	for {
		s.space()
		if s.at == len(s.text) || s.text[s.at] != '"' {
			return nil, false
		}
		name, ok := s.string()
		if !ok || !s.next(':') {
			return nil, false
		}
		if _, known := fields[name]; known && !s.twice {
			s.repeated, s.twice = name, true
		}
		if fields[name], ok = s.value(); !ok {
			return nil, false
		}
		if s.next('}') {
			return fields, true
		}
		if !s.next(',') {
			return nil, false
		}
	}
}

func (s *scanner) array() ([]any, bool) {
	list := []any{}
	if s.depth > maxDepth || s.next(']') {
		return list, s.depth <= maxDepth
	}
	for {
		v, ok := s.value()
		if !ok {
			return nil, false
		}
		if list = append(list, v); s.next(']') {
			return list, true
		}
		if !s.next(',') {
			return nil, false
		}
	}
}

// string reads a string. Its quotation mark is the next byte.
func (s *scanner) string() (string, bool) {
	begin, escaped, ascii := s.at, false, true
	for s.at++; s.at < len(s.text); s.at++ {
		switch b := s.text[s.at]; {
		case b == '"':
			s.at++
			literal := s.text[begin:s.at]
			if !ascii && !utf8.Valid(literal) {
				return "", false
			}
			if !escaped {
				return string(literal[1 : len(literal)-1]), true
			}
			var text string
			err := json.Unmarshal(literal, &text)
			return text, err == nil
		case b == '\\':
			escaped = true
			s.at++
		case b < ' ':
			return "", false
		case b >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// number reads a number (RFC 8259, section 6).
func (s *scanner) number() (json.Number, bool) {
	begin := s.at
	if s.text[s.at] == '-' {
		s.at++
	}
	zero := s.at < len(s.text) && s.text[s.at] == '0'
	if n := s.digits(); n == 0 || zero && n > 1 {
		return "", false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		if s.at++; s.digits() == 0 {
			return "", false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		if s.at++; s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if s.digits() == 0 {
			return "", false
		}
	}
	return json.Number(s.text[begin:s.at]), true
}

// digits reads all digits that follow and returns their number.
func (s *scanner) digits() (n int) {
	for ; s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9'; s.at++ {
		n++
	}
	return n
}
