package journal

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// mark is what a verification keeps of a row: hashes of what names it and of all its columns. Of the marks of
// one row those of the highest version count. Hashes are of this process.
type mark struct{ key, digest, version uint64 }

var seed = maphash.MakeSeed()

// markOf returns the mark of a row.
func markOf(r Row) mark {
	t, v := r.table(), reflect.ValueOf(r).Elem()
	buf := make([]byte, 0, 512)
	buf = append(buf, t.name...)
	buf = append(buf, v.Field(t.day).Interface().(time.Time).UTC().Format(time.DateOnly)...)
	for _, i := range t.identity {
		buf = appendValue(buf, v.Field(i).Interface())
	}
	m := mark{key: maphash.Bytes(seed, buf)}
	buf = buf[:0]
	for i := range v.NumField() {
		buf = appendValue(buf, v.Field(i).Interface())
	}
	m.digest = maphash.Bytes(seed, buf)
	switch row := r.(type) {
	case *Expected:
		m.version = row.Version
	case *Line:
		m.version = row.Version
	case *DayTotal:
		m.version = uint64(max(row.SourceOffset, 0))
	}
	return m
}

// partitionDay returns the day that selects the row's partition.
func partitionDay(r Row) time.Time {
	return reflect.ValueOf(r).Elem().Field(r.table().day).Interface().(time.Time)
}

// appendValue appends the value of a column, so that different values are different bytes. Absent lists and
// empty ones are the same, as they are in ClickHouse.
func appendValue(buf []byte, value any) []byte {
	text := func(s string) []byte { return append(binary.AppendUvarint(buf, uint64(len(s))), s...) }
	switch v := value.(type) {
	case string:
		return text(v)
	case time.Time:
		return binary.AppendVarint(buf, v.UnixMilli())
	case *time.Time:
		if v == nil {
			return append(buf, 0)
		}
		return binary.AppendVarint(append(buf, 1), v.UnixMilli())
	case uuid.UUID:
		return append(buf, v[:]...)
	case bool:
		if v {
			return append(buf, 1)
		}
		return append(buf, 0)
	}
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() == reflect.String:
		return text(v.String())
	case v.CanInt():
		return binary.AppendVarint(buf, v.Int())
	case v.CanUint():
		return binary.AppendUvarint(buf, v.Uint())
	case v.Kind() == reflect.Slice:
		buf = binary.AppendUvarint(buf, uint64(v.Len())) //nolint:gosec // not negative
		for i := range v.Len() {
			buf = appendValue(buf, v.Index(i).Interface())
		}
		return buf
	case v.Kind() == reflect.Map:
		buf = binary.AppendUvarint(buf, uint64(v.Len())) //nolint:gosec // not negative
		keys := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			buf = appendValue(appendValue(buf, k.Interface()), v.MapIndex(k).Interface())
		}
		return buf
	}
	panic(fmt.Sprintf("a column of type %T", value)) // of a row type of this package, which the tests verify
}
