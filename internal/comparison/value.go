package comparison

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"time"
)

// seed is of this process, so that nobody can choose rows with the same hashes.
var seed = maphash.MakeSeed()

// HashText returns a hash of a text, such as the id of a row. It differs between processes.
func HashText(text string) uint64 { return maphash.String(seed, text) }

// HashBytes returns a hash of bytes, as HashText does.
func HashBytes(b []byte) uint64 { return maphash.Bytes(seed, b) }

// AppendValue appends the value of a column, so that different values are different bytes, and the value that a sink
// writes has the bytes of the one that Postgres returns. Times are in whole microseconds, as Postgres keeps them. JSON of
// Postgres has the bytes of its canonical text.
func AppendValue(buf []byte, value any) []byte {
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
			buf = AppendValue(buf, element)
		}
		return buf
	default: // such as a time of infinity, which no sink writes
		return text(7, fmt.Sprintf("%T %v", v, v))
	}
}

// present returns a value in the form in which Postgres returns it; nil for NULL.
func present(value any) any {
	switch v := value.(type) {
	case *string:
		return pointed(v)
	case *time.Time:
		return pointed(v)
	case *int64:
		return pointed(v)
	case *bool:
		return pointed(v)
	case int32:
		return int64(v)
	case []byte:
		if v == nil {
			return nil
		}
	case []string:
		return elements(v)
	case []time.Time:
		return elements(v)
	case map[string]any:
		text, _ := json.Marshal(v) // what JSON was made of; names are sorted
		return string(text)
	}
	return value
}

func pointed[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
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

// Same reports whether a column has the same value in two rows.
func Same(a, b any) bool { return bytes.Equal(AppendValue(nil, a), AppendValue(nil, b)) }

// Text returns a value for people. Bytes are told by their number and the beginning of their SHA-256.
func Text(value any) string {
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
			texts[i] = Text(element)
		}
		return strings.Join(texts, " ")
	default:
		return fmt.Sprint(v)
	}
}

// Made are values of some columns that a record makes.
type Made struct {
	hash   uint64
	values []any // kept to name differences; nil while rows are only compared
	place
}

// place is where a record is.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// Makes reports whether a row has the values.
func (m Made) Makes(row []any) bool { return m.hash == hashOf(row) }

func hashOf(values []any) uint64 {
	var buf []byte
	for _, v := range values {
		buf = AppendValue(buf, v)
	}
	return HashBytes(buf)
}

// Columns returns the columns in which a row differs. names are those of the values.
func (m Made) Columns(names []string, row []any) (out []Column) {
	for i := range m.values {
		if !Same(row[i], m.values[i]) {
			out = append(out, Column{names[i], Text(row[i]), Text(m.values[i])})
		}
	}
	return out
}
