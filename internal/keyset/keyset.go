// Package keyset pages lists by the key of the last row that was shown, in place of a number of
// rows to skip: a page costs the same wherever it is, and rows that come meanwhile move nothing.
package keyset

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"quittance/internal/operation"
)

// List is a list with its conditions and the scope of whoever reads it. Its cursors go on in this
// list only.
type List [digestSize]byte

// digestSize is enough to tell lists apart. It proves nothing: a made-up cursor shows no row that
// the list does not show, because scope and conditions are those of the query.
const digestSize = 9

// Of returns the list of a name, such as sessions, with its conditions and scope, which must be
// values of JSON.
func Of(name string, conditions ...any) List {
	text, err := json.Marshal(append([]any{name}, conditions...))
	if err != nil { // not a value of JSON: a fault of the caller's code
		panic(fmt.Sprintf("keyset: conditions of %s: %v", name, err))
	}
	sum := sha256.Sum256(text)
	return List(sum[:digestSize])
}

// Cursor returns a cursor that goes on after the row with a key. It has the key in clear.
func (l List) Cursor(key ...string) string {
	text, err := json.Marshal(key)
	if err != nil { // cannot happen: strings are values of JSON
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(append(l[:], text...))
}

// Key reads a cursor of this list, whose keys have a number of parts; nil for an empty cursor, which
// means the first page. The error is an *operation.Error with the field after:
// list.cursor_malformed, or list.cursor_foreign for a cursor of another list, of other conditions or
// of another scope.
func (l List) Key(cursor string, parts int) ([]string, error) {
	if cursor == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < digestSize {
		return nil, Malformed()
	}
	var key []string
	if err := json.Unmarshal(raw[digestSize:], &key); err != nil {
		return nil, Malformed()
	}
	if List(raw[:digestSize]) != l {
		return nil, operation.Refuse("list.cursor_foreign", "after", nil)
	}
	if len(key) != parts {
		return nil, Malformed()
	}
	return key, nil
}

// Malformed is the refusal of a cursor that no list has made, also for lists that find a fault in
// the parts of a key.
func Malformed() error { return operation.Refuse("list.cursor_malformed", "after", nil) }
