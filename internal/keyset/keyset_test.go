package keyset_test

import (
	"encoding/base64"
	"errors"
	"slices"
	"testing"

	"quittance/internal/keyset"
	"quittance/internal/operation"
)

// A cursor goes on in the list that made it. That of another list, of other conditions or of
// another scope is refused, and so is what no list has made.
func TestCursor(t *testing.T) {
	t.Parallel()
	own := keyset.Of("sessions", []string{"a", "b"}, "paid")
	cursor := own.Cursor("2026", "x\"y")
	if key, err := own.Key(cursor, 2); err != nil || !slices.Equal(key, []string{"2026", "x\"y"}) {
		t.Fatalf("own cursor: %q, %v", key, err)
	}
	if key, err := own.Key("", 2); err != nil || key != nil {
		t.Errorf("first page: %q, %v", key, err)
	}
	for name, c := range map[string]struct {
		list   keyset.List
		cursor string
		parts  int
		code   string
	}{
		"another list":        {keyset.Of("cases", []string{"a", "b"}, "paid"), cursor, 2, "list.cursor_foreign"},
		"another scope":       {keyset.Of("sessions", []string{"a"}, "paid"), cursor, 2, "list.cursor_foreign"},
		"other conditions":    {keyset.Of("sessions", []string{"a", "b"}, ""), cursor, 2, "list.cursor_foreign"},
		"moved boundary":      {keyset.Of("sessions", []string{"a", "b", "paid"}), cursor, 2, "list.cursor_foreign"},
		"other parts":         {own, cursor, 1, "list.cursor_malformed"},
		"a page number":       {own, "2", 2, "list.cursor_malformed"},
		"cut":                 {own, cursor[:len(cursor)-4], 2, "list.cursor_malformed"},
		"padded":              {own, cursor + "=", 2, "list.cursor_malformed"},
		"digest alone":        {own, base64.RawURLEncoding.EncodeToString(own[:]), 2, "list.cursor_malformed"},
		"other alphabet":      {own, "é" + cursor, 2, "list.cursor_malformed"},
		"null in place of it": {own, base64.RawURLEncoding.EncodeToString(append(own[:], "null"...)), 2, "list.cursor_malformed"},
	} {
		key, err := c.list.Key(c.cursor, c.parts)
		var refused *operation.Error
		if !errors.As(err, &refused) || refused.Code != c.code || refused.Field != "after" || key != nil {
			t.Errorf("%s: %q, %v", name, key, err)
		}
	}
}
