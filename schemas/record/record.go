// Package record holds the Avro records of all topics as Go structs. They are
// generated from schemas/avro; a nullable field is its Go zero value when null,
// and a field that an older writer did not know is zero as well.
//
// Times are UTC with millisecond precision, amounts are minor units (ISO 4217).
package record

import (
	"fmt"
	"time"
)

// Record is one of this package's types that stands in a topic on its own.
type Record interface {
	// Name is the full Avro name.
	Name() string
	// Schema is the Avro schema with every named type written out.
	Schema() string
	native() map[string]any
	fromNative(m map[string]any)
	appendTo(b []byte) []byte
	readFrom(d *reader)
}

// Native is r as goavro wants it.
func Native(r Record) map[string]any { return r.native() }

// FromNative sets r to what goavro decoded. A datum of another shape is an error.
func FromNative(r Record, native any) error {
	m, ok := native.(map[string]any)
	if !ok {
		return fmt.Errorf("decoding %s: got %T, want a record", r.Name(), native)
	}
	r.fromNative(m)
	return nil
}

// ptr is a pointer to a record type that maps itself.
type ptr[T any] interface {
	*T
	native() map[string]any
	fromNative(m map[string]any)
}

func nullable[T string | bool | int32 | int64 | time.Time](branch string, v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return map[string]any{branch: v}
}

func nullableBytes(v []byte) any {
	if len(v) == 0 {
		return nil
	}
	return map[string]any{"bytes": v}
}

func nullableRecord[T any, P ptr[T]](branch string, v P) any {
	if v == nil {
		return nil
	}
	return map[string]any{branch: v.native()}
}

func records[T any, P interface {
	*T
	native() map[string]any
}](v []T) any {
	out := make([]any, len(v))
	for i := range v {
		out[i] = P(&v[i]).native()
	}
	return out
}

func list[T any](v []T) any {
	out := make([]any, len(v))
	for i := range v {
		out[i] = v[i]
	}
	return out
}

func stringMap(v map[string]string) any {
	out := make(map[string]any, len(v))
	for k, s := range v {
		out[k] = s
	}
	return out
}

func notNil(v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
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
