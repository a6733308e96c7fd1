package sessions

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"
)

// seed is of this process, so that nobody can choose rows with the same hashes.
var seed = maphash.MakeSeed()

// hashOf returns a hash of a session's id.
func hashOf(sessionID string) uint64 { return maphash.String(seed, sessionID) }

// hash returns a hash of a row with all its columns. buf is used for the bytes of the row and returned.
func (r row) hash(buf []byte) (uint64, []byte) {
	buf = append(buf[:0], r.table.name...)
	for _, value := range r.values {
		buf = appendValue(buf, value)
	}
	return maphash.Bytes(seed, buf), buf
}

// keyOf names a row among all tables.
func (r row) keyOf() string {
	buf := append([]byte(r.table.name), 0)
	for _, value := range r.values[:r.table.key] {
		buf = appendValue(buf, value)
	}
	return string(buf)
}

// sessionID returns the session of a row; empty if it has none.
func (r row) sessionID() string {
	id, _ := r.values[r.table.session].(string)
	return id
}

// appendValue appends the value of a column, so that different values are different bytes, and the value that
// Apply writes has the bytes of the one that Postgres returns. Times are in whole microseconds, as Postgres keeps
// them.
func appendValue(buf []byte, value any) []byte {
	text := func(kind byte, s string) []byte {
		return append(binary.AppendUvarint(append(buf, kind), uint64(len(s))), s...)
	}
	switch v := present(value).(type) {
	case nil:
		return append(buf, 0)
	case string:
		return text(1, v)
	case []byte:
		return text(2, string(v))
	case int64:
		return binary.AppendVarint(append(buf, 3), v)
	case bool:
		return strconv.AppendBool(append(buf, 4), v)
	case time.Time:
		return binary.AppendVarint(append(buf, 5), v.UnixMicro())
	case []any:
		buf = binary.AppendUvarint(append(buf, 6), uint64(len(v)))
		for _, element := range v {
			buf = appendValue(buf, element)
		}
		return buf
	default: // such as a time of infinity, which Apply never writes
		return text(7, fmt.Sprintf("%T %v", v, v))
	}
}

// present returns a value in the form in which Postgres returns it; nil for NULL.
func present(value any) any {
	switch v := value.(type) {
	case *string:
		if v == nil {
			return nil
		}
		return *v
	case *time.Time:
		if v == nil {
			return nil
		}
		return *v
	case []byte:
		if v == nil {
			return nil
		}
	case []string:
		return elements(v)
	case []time.Time:
		return elements(v)
	}
	return value
}

func elements[T any](list []T) any {
	if list == nil {
		return nil
	}
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// same reports whether a column has the same value in two rows.
func same(a, b any) bool { return bytes.Equal(appendValue(nil, a), appendValue(nil, b)) }

// textOf returns a value for people. Bytes are told by their number and the beginning of their SHA-256.
func textOf(value any) string {
	switch v := present(value).(type) {
	case nil:
		return ""
	case []byte:
		return fmt.Sprintf("%d bytes, SHA-256 %x", len(v), sha256.Sum256(v))[:len(fmt.Sprintf("%d bytes, SHA-256 ", len(v)))+12]
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []any:
		texts := make([]string, len(v))
		for i, element := range v {
			texts[i] = textOf(element)
		}
		return strings.Join(texts, " ")
	default:
		return fmt.Sprint(v)
	}
}
