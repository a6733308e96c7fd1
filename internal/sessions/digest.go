package sessions

import "quittance/internal/comparison"

// hashOf returns a hash of a session's id.
func hashOf(sessionID string) uint64 { return comparison.HashText(sessionID) }

// hash returns a hash of a row with all its columns. buf is used for the bytes of the row and returned.
func (r row) hash(buf []byte) (uint64, []byte) {
	buf = append(buf[:0], r.table.name...)
	for _, value := range r.values {
		buf = comparison.AppendValue(buf, value)
	}
	return comparison.HashBytes(buf), buf
}

// keyOf names a row among all tables.
func (r row) keyOf() string {
	buf := append([]byte(r.table.name), 0)
	for _, value := range r.values[:r.table.key] {
		buf = comparison.AppendValue(buf, value)
	}
	return string(buf)
}

// sessionID returns the session of a row; empty if it has none.
func (r row) sessionID() string {
	id, _ := r.values[r.table.session].(string)
	return id
}
