// Package record holds the Avro records of all topics as Go structs, generated from
// schemas/avro. A null field is its Go zero value. A field that an older writer did not
// know is zero, too.
//
// Times are UTC with millisecond precision. Amounts are minor units (ISO 4217).
package record

import "fmt"

// Record is a type of this package that is the value of records of a topic.
type Record interface {
	// Name is the full Avro name.
	Name() string
	// Schema is the Avro schema with every named type expanded.
	Schema() string
	fromNative(m map[string]any)
	appendTo(b []byte) []byte
	readFrom(d *reader)
}

// FromNative sets r to a value that goavro decoded. A value that is no record is an error.
func FromNative(r Record, native any) error {
	m, ok := native.(map[string]any)
	if !ok {
		return fmt.Errorf("decoding %s: got a %T, not a record", r.Name(), native)
	}
	r.fromNative(m)
	return nil
}

// ptr is a pointer to a generated type.
type ptr[T any] interface {
	*T
	fromNative(m map[string]any)
}

func from[T any](v any) T {
	t, _ := v.(T)
	return t
}

func fromBytes(v any) []byte {
	b, _ := v.([]byte)
	if len(b) == 0 {
		return nil
	}
	return b
}

func fromNullable[T any](branch string, v any) T {
	var zero T
	m, ok := v.(map[string]any)
	if !ok {
		return zero
	}
	t, _ := m[branch].(T)
	return t
}

func fromRecord[T any, P ptr[T]](v any) T {
	var t T
	if m, ok := v.(map[string]any); ok {
		P(&t).fromNative(m)
	}
	return t
}

func fromNullableRecord[T any, P ptr[T]](branch string, v any) *T {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	inner, ok := m[branch].(map[string]any)
	if !ok {
		return nil
	}
	t := new(T)
	P(t).fromNative(inner)
	return t
}

func fromRecords[T any, P ptr[T]](v any) []T {
	l, _ := v.([]any)
	if len(l) == 0 {
		return nil
	}
	out := make([]T, len(l))
	for i, e := range l {
		if m, ok := e.(map[string]any); ok {
			P(&out[i]).fromNative(m)
		}
	}
	return out
}

func fromList[T any](v any) []T {
	l, _ := v.([]any)
	if len(l) == 0 {
		return nil
	}
	out := make([]T, 0, len(l))
	for _, e := range l {
		if t, ok := e.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

func fromStringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, e := range m {
		s, _ := e.(string)
		out[k] = s
	}
	return out
}
