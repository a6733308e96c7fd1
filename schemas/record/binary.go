package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The records' own binary encoding, for the schema that this build writes. It is
// what goavro makes of the same record (a test compares the bytes), at about a
// tenth of its cost: goavro's maps took more than a core of the two that
// create 5,000 sessions a second. Whatever another schema wrote goes through
// goavro.

// ErrBinary is torn or malformed Avro.
var ErrBinary = errors.New("malformed Avro binary")

// Append appends r's Avro binary encoding to b.
func Append(b []byte, r Record) []byte { return r.appendTo(b) }

// Parse sets r to what b holds in the schema that r.Schema tells. It returns what
// follows in b. Errors wrap ErrBinary.
func Parse(b []byte, r Record) (rest []byte, err error) {
	d := &reader{b: b}
	r.readFrom(d)
	if d.bad {
		return nil, fmt.Errorf("%s: %w", r.Name(), ErrBinary)
	}
	return d.b, nil
}

func appendLong(b []byte, v int64) []byte { return binary.AppendVarint(b, v) } // zigzag, as Avro's

func appendInt(b []byte, v int32) []byte { return binary.AppendVarint(b, int64(v)) }

func appendTime(b []byte, t time.Time) []byte { return binary.AppendVarint(b, t.UnixMilli()) }

func appendBoolean(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendVarint(b, int64(len(s))), s...)
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendVarint(b, int64(len(v))), v...)
}

// appendMap writes keys in order, so that the same record has the same bytes.
func appendMap(b []byte, m map[string]string) []byte {
	if len(m) > 0 {
		b = binary.AppendVarint(b, int64(len(m)))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			b = appendString(appendString(b, k), m[k])
		}
	}
	return append(b, 0)
}

// reader takes Avro from the front of b. The first fault sticks; what is read
// after it is zero.
type reader struct {
	b    []byte
	left int64 // items of the block that is being read
	bad  bool
}

func (d *reader) fail() {
	d.bad, d.b, d.left = true, nil, 0
}

func (d *reader) readLong() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *reader) readInt() int32 {
	v := d.readLong()
	if v != int64(int32(v)) { //nolint:gosec // that is the question
		d.fail()
		return 0
	}
	return int32(v) //nolint:gosec // checked
}

func (d *reader) readTime() time.Time {
	v := d.readLong()
	if d.bad {
		return time.Time{}
	}
	return time.UnixMilli(v).UTC()
}

func (d *reader) readBoolean() bool {
	if len(d.b) == 0 || d.b[0] > 1 {
		d.fail()
		return false
	}
	v := d.b[0] == 1
	d.b = d.b[1:]
	return v
}

func (d *reader) take() []byte {
	n := d.readLong()
	if d.bad || n < 0 || n > int64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *reader) readString() string { return string(d.take()) }

// readBytes is nil for no bytes.
func (d *reader) readBytes() []byte { return append([]byte(nil), d.take()...) }

// present reads the branch of a union of null and another type.
func (d *reader) present() bool {
	switch d.readLong() {
	case 0:
		return false
	case 1:
		return !d.bad
	}
	d.fail()
	return false
}

// item says whether an array has another item, which the caller then reads. It
// keeps the place within a block, so arrays do not nest (the generator's records
// hold none in an array's items).
func (d *reader) item() bool {
	if d.bad {
		return false
	}
	if d.left == 0 {
		n := d.readLong()
		if n < 0 { // a block that tells its size in bytes, too
			n = -n
			d.readLong()
		}
		if d.bad || n < 0 || n > int64(len(d.b)) { // an item has a byte at least
			d.fail()
			return false
		}
		if n == 0 {
			return false
		}
		d.left = n
	}
	d.left--
	return true
}

func (d *reader) readMap() map[string]string {
	var m map[string]string
	for d.item() {
		k := d.readString()
		if m == nil {
			m = map[string]string{}
		}
		m[k] = d.readString()
	}
	return m
}
