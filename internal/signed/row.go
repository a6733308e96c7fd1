package signed

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// ID names a row.
type ID struct {
	Table string
	// Key has the values of the primary key, joined by slashes: <agency>/false/momo.
	Key string
}

// String returns for example `erp_settings 0190…/false`.
func (id ID) String() string { return id.Table + " " + id.Key }

// NewID names the row with the values of a primary key. They are texts, booleans, numbers or bytes.
func NewID(table string, key ...any) ID {
	parts := make([]string, len(key))
	for i, v := range key {
		parts[i] = text(v)
	}
	return ID{table, strings.Join(parts, "/")}
}

// Column is a column of a row with its value as people read it.
type Column struct{ Name, Value string }

// Row is a row of a table that decides.
type Row struct {
	ID
	// Signed means that the row has a signature, whether or not it verifies.
	Signed bool
	// Verified means that the signature is one of this row, by a master key that is not marked open.
	Verified bool

	signature []byte
	digest    [sha256.Size]byte
	columns   []value // without the signature, sorted by name
	keys      []any   // of the primary key, as Postgres gave them
}

type value struct {
	name string
	is   any
}

// Columns returns the content of the row, sorted by name, without the signature. Sealed values are
// shown as their length.
func (r Row) Columns() []Column {
	out := make([]Column, len(r.columns))
	for i, c := range r.columns {
		out[i] = Column{c.name, text(c.is)}
		if raw, ok := c.is.([]byte); ok && strings.HasSuffix(c.name, "sealed") {
			out[i].Value = fmt.Sprintf("%d sealed bytes", len(raw))
		}
	}
	return out
}

// scan takes the row that Postgres has just sent.
func (t *Table) scan(rows pgx.Rows) (Row, error) {
	values, err := rows.Values()
	if err != nil {
		return Row{}, err
	}
	var r Row
	raw := rows.RawValues()
	for i, f := range rows.FieldDescriptions() {
		is := values[i]
		if f.DataTypeOID == pgtype.JSONBOID && raw[i] != nil {
			is = string(bytes.TrimPrefix(raw[i], []byte{1})) // as Postgres writes it; the binary form begins with a version
		}
		if f.Name == column {
			r.signature, _ = is.([]byte)
			continue
		}
		r.columns = append(r.columns, value{f.Name, is})
	}
	r.Signed = len(r.signature) > 0
	slices.SortFunc(r.columns, func(a, b value) int { return cmp.Compare(a.name, b.name) })
	for _, name := range t.Key {
		i, ok := slices.BinarySearchFunc(r.columns, name, func(v value, name string) int { return cmp.Compare(v.name, name) })
		if !ok {
			return Row{}, fmt.Errorf("the table %s has no column %s", t.Name, name)
		}
		r.keys = append(r.keys, r.columns[i].is)
	}
	r.ID = NewID(t.Name, r.keys...)
	encoded, err := t.encode(r.columns)
	if err != nil {
		return Row{}, fmt.Errorf("the row %s: %w", r.ID, err)
	}
	r.digest = sha256.Sum256(encoded)
	return r, nil
}

// domain begins what is signed. Another encoding has another one.
const domain = "quittance row 1"

// encode returns the canonical bytes of a row: the table, and the name and value of each column that
// is neither NULL nor zero. So a column that a later migration adds, NULL or zero, changes nothing.
func (t *Table) encode(columns []value) ([]byte, error) {
	out := part(part(nil, []byte(domain)), []byte(t.Name))
	for _, c := range columns {
		if _, left := t.Left[c.name]; left {
			continue
		}
		encoded, zero, err := encode(c.is)
		switch {
		case err != nil:
			return nil, fmt.Errorf("column %s: %w", c.name, err)
		case c.is == nil || zero && !slices.Contains(t.NullDiffers, c.name):
			continue
		}
		out = part(part(out, []byte(c.name)), encoded)
	}
	return out, nil
}

// saysNothing reports whether a row of a table with EmptySaysNothing decides nothing.
func (t *Table) saysNothing(columns []value) bool {
	return t.EmptySaysNothing && !slices.ContainsFunc(columns, func(c value) bool {
		_, zero, err := encode(c.is)
		return c.is != nil && !zero && err == nil && !slices.Contains(t.Key, c.name)
	})
}

// unsigned reports whether the row has no signature although it decides something.
func (r Row) unsigned() bool { return !r.Signed && !find(r.Table).saysNothing(r.columns) }

// part appends a length and bytes, so that no other parts give the same bytes.
func part(out, bytes []byte) []byte {
	return append(binary.BigEndian.AppendUint32(out, uint32(len(bytes))), bytes...) //nolint:gosec // a row is smaller
}

// encode returns the canonical bytes of a value, with a letter for its type, and whether it is zero.
func encode(v any) (out []byte, zero bool, err error) {
	switch v := v.(type) {
	case nil:
		return nil, true, nil
	case bool:
		return strconv.AppendBool([]byte("b"), v), !v, nil
	case int16:
		return encode(int64(v))
	case int32:
		return encode(int64(v))
	case int64:
		return strconv.AppendInt([]byte("i"), v, 10), v == 0, nil
	case string:
		return append([]byte("s"), v...), v == "", nil
	case []byte:
		return append([]byte("x"), v...), len(v) == 0, nil
	case [16]byte:
		return append([]byte("u"), v[:]...), false, nil
	case time.Time:
		return strconv.AppendInt([]byte("t"), v.UnixMicro(), 10), false, nil // Postgres keeps microseconds
	case netip.Prefix:
		return append([]byte("n"), v.String()...), false, nil
	case []any:
		out = []byte("a")
		for _, element := range v {
			encoded, _, err := encode(element)
			if err != nil {
				return nil, false, err
			}
			out = part(out, encoded)
		}
		return out, len(v) == 0, nil
	}
	return nil, false, fmt.Errorf("values of type %T have no canonical form", v) // add one, and a test
}

// text returns a value as people read it.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return v
	case []byte:
		return hex.EncodeToString(v)
	case [16]byte:
		return uuid.UUID(v).String()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []any:
		parts := make([]string, len(v))
		for i, element := range v {
			parts[i] = text(element)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}
