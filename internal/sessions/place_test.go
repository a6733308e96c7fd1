package sessions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	readmodel "quittance/internal/sessions"
)

// A page of staff names a session by its place. Nobody opens a citizen's page with it, and a session of another
// application is answered like one that does not exist.
func TestSessionAtPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	w.run(t)
	own, other := session(1, appA), session(2, appB)
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, own, other), nil); err != nil {
		t.Fatal(err)
	}
	place := readmodel.Place(own.ID)
	if strings.HasPrefix(place, checkout.PrefixSession) || len(own.ID)-len(checkout.PrefixSession)-len(place) < 10 {
		t.Errorf("the place of %s is %s", own.ID, place)
	}
	if s, err := w.reader.AtPlace(t.Context(), place, []string{appA}); err != nil || s.ID != own.ID {
		t.Errorf("at %s is %q, %v", place, s.ID, err)
	}
	for what, q := range map[string]struct {
		place string
		of    []string
	}{
		"of another application": {readmodel.Place(other.ID), []string{appA}}, "of no application": {place, nil},
		"a whole id": {strings.TrimPrefix(own.ID, checkout.PrefixSession), []string{appA}}, "a shorter place": {place[:10], []string{appA}},
		"unknown": {strings.Repeat("0", len(place)), []string{appA}}, "empty": {"", []string{appA}}, "a zero byte": {strings.Repeat("\x00", len(place)), []string{appA}},
	} {
		if s, err := w.reader.AtPlace(t.Context(), q.place, q.of); !errors.Is(err, readmodel.ErrNotFound) {
			t.Errorf("%s: %q, %v", what, s.ID, err)
		}
	}
}
