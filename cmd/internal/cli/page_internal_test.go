package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"quittance/cmd/internal/cli/render"
)

// --json keeps the order of the fields, shows a zero time as null, leaves out optional
// values that are empty, and does not escape the characters of a URL.
func TestObject(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := Meta{Out: &out, AsJSON: true}
	if err := m.Show(render.Object{
		"z", "https://a.example/?b=1&c=<2>", "a",
		time.Time{},
		"b?", "", "c?", 0, "d?",
		[]string{},
		"e?",
		time.Time{},
		"f", 0, "g", render.Mapped([]int{}, render.OrNull),
		"h?",
		[]render.Object{{"at", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), "status", render.OrNull(0), "other", render.OrNull(410)}},
	}, nil); err != nil {
		t.Fatal(err)
	}
	want := `{"z":"https://a.example/?b=1&c=<2>","a":null,"f":0,"g":[],"h":[{"at":"2026-03-01T12:00:00Z","status":null,"other":410}]}`
	if got := strings.NewReplacer("\n", "", "  ", "", ": ", ":").Replace(out.String()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
