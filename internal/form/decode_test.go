package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Decode accepts and refuses the same bodies as a reference that uses encoding/json and
// counts the fields in several passes. Values and messages are the same.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"amount":1,"amount":2}`, `{"a":{"b":[{"c":1,"c":2}]}}`, `{"order_id":"a:\\\"b","metadata":{"x":"{\":\"}"}}`, `{"a":{"a":[{"a":":"}]}}`,
		creation, `{"a":-0.0e+10,"b":[],"c":{},"d":null,"e":[true,false]}`, `{"a":01}`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":.5}`, `{"a":tru}`, `{"a":truex}`,
		`{"a":"\ud83d\ude00\ud800\u00e9\n"}`, `{"a":"\x"}`, `{"a":"\u12"}`, "{\"a\":\"\x01\"}", "{\"a\":\"\x7f\"}", "{\"\xc3\":1}", "{\"a\":\"\xed\xa0\x80\"}", `{"a":1}}`, `{"a":1} x`,
		`{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{,}`, `{1:2}`, `[1,]`, `{"a":[1 2]}`, "\ufeff{}", " \t\r\n{ } ", "\v{}", `{"a":"`, `{"a":"\`, `{"":1,"":2}`, `{"a":1,"\u0061":2,"b":1,"b":2}`,
	} {
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, _ bool) { compare(t, body) })
}

// Decode accepts the same depth of nesting as encoding/json.
func TestDepth(t *testing.T) {
	t.Parallel()
	for depth := 9998; depth < 10003; depth++ {
		compare(t, []byte(strings.Repeat(`{"a":`, depth-1)+"{}"+strings.Repeat("}", depth-1)))
		compare(t, []byte(`{"a":`+strings.Repeat("[", depth-1)+strings.Repeat("]", depth-1)+"}"))
	}
}

// compare decodes with Decode and with the reference.
func compare(t *testing.T, body []byte) {
	t.Helper()
	got, err := Decode(body)
	want, refused := reference(body)
	if !reflect.DeepEqual(err, refused) || !reflect.DeepEqual(got, want) {
		t.Errorf("%.200q: %v, %+v; want %v, %+v", body, got, err, want, refused)
	}
}

// creation is a body of a typical size.
const creation = `{"order_id":"TAX-2026-000123","amount":150000,"currency":"XAF","service_code":"patente","description":"Contribution de la patente 2026",
	"customer":{"name":"Société Exemple \u0026 Fils","email":"compta@exemple.cg","phone":"+242066000001"},
	"metadata":{"erp_due_ref":"DUE-77","case":"2026/41","agent":"g.mabiala"},"success_url":"https://guichet.example/ok","cancel_url":"https://guichet.example/non"}`

func BenchmarkDecode(b *testing.B) {
	for name, decode := range map[string]func([]byte) (map[string]any, error){"one pass": Decode, "reference": reference} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(creation)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode([]byte(creation)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// reference decodes with encoding/json and compares the numbers of decoded and written
// fields.
func reference(body []byte) (map[string]any, error) {
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
		return nil, malformed("The body has the field " + strconv.Quote(shorten(name)) + " twice: its value is ambiguous.")
	}
	return fields, nil
}

// members counts the fields of all objects in a decoded value. The decoder keeps one of
// two fields with the same name.
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

// written counts the fields of all objects in a JSON text: the colons outside its strings.
func written(body []byte) (n int) {
	inside := false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			inside = !inside
		case '\\':
			i++ // only strings have backslashes
		case ':':
			if !inside {
				n++
			}
		}
	}
	return n
}

// repeatedField returns the first name that an object of a JSON text has twice.
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
