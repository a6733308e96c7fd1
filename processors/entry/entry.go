// Package entry declares the kinds of entries in the state of a processor. A processor declares
// each kind once, as an Entry: the letter and the parts of its keys, the record of its values and
// when its entries are forgotten. Its view and its writer use the declaration, and its Deadline
// and Tick derive from the Kinds that list all declarations.
//
// A key is the letter, a zero byte and the parts of the key joined with zero bytes. A value is
// the record as package schemas encodes it.
package entry

import (
	"strings"
	"time"

	"quittance/schemas"
	"quittance/schemas/record"
)

// Entry declares a kind of entries: values V under keys K. Letter, Key and Record are required.
// At most one of ForgetAt and WakeAt is set; without them the entries stay as they are.
type Entry[K comparable, V any] struct {
	// Letter is the first byte of the keys, which no other kind of the processor has. Never
	// change it: existing entries use it.
	Letter byte
	// Key returns a key as text. Parts joins several parts.
	Key func(K) string
	// Record converts values to records and back.
	Record Record[V]
	// Empty reports whether a value is the absence of an entry: Put deletes the entry then. nil:
	// no value is.
	Empty func(V) bool
	// ForgetAt returns when the entry is deleted.
	ForgetAt func(V) time.Time
	// WakeAt returns when the processor decides about the entry, or the zero time for never. The
	// processor is also woken, at once, for an entry that it cannot decode, so that its decision
	// reports the error.
	WakeAt func(V) time.Time
}

// Text is the Key of kinds whose key is one text.
func Text(id string) string { return id }

// Parts joins the parts of a key. Only the last may contain a zero byte.
func Parts(parts ...string) string { return strings.Join(parts, "\x00") }

// Record converts values V to records and back. Of makes one.
type Record[V any] interface {
	encode(c *schemas.Codec, v V) ([]byte, error)
	decode(c *schemas.Codec, b []byte) (V, error)
}

// Of returns the Record with a conversion to a record and one back.
func Of[V, R any, P interface {
	*R
	record.Record
}](from func(V) R, to func(*R) V) Record[V] {
	return conversion[V, R, P]{from, to}
}

type conversion[V, R any, P interface {
	*R
	record.Record
}] struct {
	from func(V) R
	to   func(*R) V
}

func (r conversion[V, R, P]) encode(c *schemas.Codec, v V) ([]byte, error) {
	rec := r.from(v)
	return c.Encode(P(&rec))
}

func (r conversion[V, R, P]) decode(c *schemas.Codec, b []byte) (v V, err error) {
	var rec R
	if err := c.Decode(b, P(&rec)); err != nil {
		return v, err
	}
	return r.to(&rec), nil
}

// Tx is the part of runtime.Tx that entries need.
type Tx interface {
	Get(key []byte) ([]byte, error)
	Put(key, value []byte, deadline time.Time)
	Delete(key []byte)
}

// State is the state of one partition in a transaction. It keeps the first error, after which it
// reads and writes nothing; the caller must then drop what it has decided.
type State struct {
	tx    Tx
	codec *schemas.Codec
	err   error
}

// NewState returns the state that tx sees.
func NewState(tx Tx, codec *schemas.Codec) *State { return &State{tx: tx, codec: codec} }

// Err returns the first error of a read or a write.
func (s *State) Err() error { return s.err }

// Get returns the value of a key, or the zero value and false if there is none.
func (e *Entry[K, V]) Get(s *State, k K) (v V, ok bool) {
	if s.err != nil {
		return v, false
	}
	var b []byte
	if b, s.err = s.tx.Get(e.key(k)); s.err != nil || b == nil {
		return v, false
	}
	v, s.err = e.Record.decode(s.codec, b)
	return v, s.err == nil
}

// Value returns the value of a key, or the zero value if there is none.
func (e *Entry[K, V]) Value(s *State, k K) V {
	v, _ := e.Get(s, k)
	return v
}

// Put writes values by their keys, with their deadlines.
func (e *Entry[K, V]) Put(s *State, values map[K]V) {
	for k, v := range values {
		if e.Empty != nil && e.Empty(v) {
			e.Delete(s, k)
			continue
		}
		var b []byte
		if s.err == nil {
			b, s.err = e.Record.encode(s.codec, v)
		}
		if s.err == nil {
			s.tx.Put(e.key(k), b, e.deadlineOf(v))
		}
	}
}

// Delete removes the entries of keys.
func (e *Entry[K, V]) Delete(s *State, keys ...K) {
	for _, k := range keys {
		if s.err == nil {
			s.tx.Delete(e.key(k))
		}
	}
}

func (e *Entry[K, V]) key(k K) []byte {
	text := e.Key(k)
	return append(append(make([]byte, 0, len(text)+2), e.Letter, 0), text...)
}

// deadlineOf returns when the entry of a value needs a tick. Put and a restore both use it, so
// that they find the same time.
func (e *Entry[K, V]) deadlineOf(v V) time.Time {
	switch {
	case e.WakeAt != nil:
		return e.WakeAt(v)
	case e.ForgetAt != nil:
		return e.ForgetAt(v)
	}
	return time.Time{}
}

func (e *Entry[K, V]) letter() byte  { return e.Letter }
func (e *Entry[K, V]) forgets() bool { return e.ForgetAt != nil }
func (e *Entry[K, V]) wakes() bool   { return e.WakeAt != nil }

func (e *Entry[K, V]) deadline(c *schemas.Codec, b []byte) time.Time {
	if e.WakeAt == nil && e.ForgetAt == nil {
		return time.Time{}
	}
	v, err := e.Record.decode(c, b)
	switch {
	case err == nil:
		return e.deadlineOf(v)
	case e.WakeAt != nil:
		return time.Unix(0, 0)
	}
	return time.Time{}
}
