package sessions_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/operation"
	readmodel "quittance/internal/sessions"
	"quittance/schemas/mapping"
)

// An integrator whose receiver was broken asks for the events of a session: those that it is told
// of, in order, with the bytes of the webhook, however often and in whatever order the records are
// applied. Erasure takes the bodies of what came before it, also when an earlier record comes once
// more, and those of later events stay. Others see nothing.
func TestEventsOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Second)
	w.run(t)
	of := func(s checkout.Session, sequence int64, kind checkout.EventType) (checkout.Event, readmodel.Snapshot) {
		s.Sequence = sequence
		if kind == checkout.EventArchived || sequence > 5 {
			s.Archived = true
		}
		e := checkout.Event{ID: fmt.Sprintf("evt_%s_%d", s.ID, sequence), Type: kind, SessionID: s.ID, Sequence: sequence, OccurredAt: s.CreatedAt.Add(time.Duration(sequence) * time.Minute), Session: s}
		value, err := w.codec.Encode(mapping.FromEvent(e))
		if err != nil {
			t.Fatal(err)
		}
		_, snapshot, err := readmodel.Read(w.codec, value)
		if err != nil {
			t.Fatal(err)
		}
		return e, *snapshot
	}
	s, other := session(1, appA), session(2, appA)
	s.Metadata = map[string]string{"case": "4"}
	created, first := of(s, 1, checkout.EventCreated)
	expired, second := of(s, 2, checkout.EventExpired)
	_, third := of(s, 3, checkout.EventCollectionEnquired)
	reversed, fourth := of(s, 4, checkout.EventReversed)
	_, archived := of(s, 5, checkout.EventArchived)
	again, sixth := of(s, 6, checkout.EventCancelled)
	_, foreign := of(other, 2, checkout.EventExpired)
	body := func(e checkout.Event) string {
		n, err := mapping.ToWebhook(e)
		if err != nil {
			t.Fatal(err)
		}
		return string(n.Body)
	}
	state := func() string {
		t.Helper()
		found, events, err := w.reader.Events(t.Context(), readmodel.Query{ID: s.ID, ApplicationIDs: []string{appB, appA}})
		if err != nil || found.ID != s.ID {
			t.Fatalf("%s, %v", found.ID, err)
		}
		var lines []string
		for _, e := range events {
			lines = append(lines, fmt.Sprint(e.ID, " ", e.Type, " ", e.Sequence, " ", e.OccurredAt.Format(time.RFC3339Nano), " ", string(e.Body)))
		}
		return strings.Join(lines, "\n")
	}
	line := func(e checkout.Event, body string) string {
		return fmt.Sprint(e.ID, " ", e.Type, " ", e.Sequence, " ", e.OccurredAt.Format(time.RFC3339Nano), " ", body)
	}
	apply := func(all ...readmodel.Snapshot) {
		t.Helper()
		if err := w.store.Apply(t.Context(), all, nil); err != nil {
			t.Fatal(err)
		}
	}
	apply(first)
	if got := state(); got != "" {
		t.Errorf("an open session has %s", got)
	}
	apply(foreign, fourth, third, second)
	apply(second, third)
	whole := line(expired, body(expired)) + "\n" + line(reversed, body(reversed))
	if got := state(); got != whole || !strings.Contains(got, `"case":"4"`) {
		t.Errorf("the events are\n%s\nwant\n%s", got, whole)
	}
	apply(sixth, archived)
	apply(second)
	if got, want := state(), line(expired, "")+"\n"+line(reversed, "")+"\n"+line(again, body(again)); got != want {
		t.Errorf("after the erasure they are\n%s\nwant\n%s", got, want)
	}
	for name, q := range map[string]readmodel.Query{
		"another application": {ID: s.ID, ApplicationIDs: []string{appB}}, "the other mode": {ID: s.ID, ApplicationIDs: []string{appA}, Live: true},
		"an unknown session": {ID: session(9, appA).ID, ApplicationIDs: []string{appA}}, "no id": {ID: "x", ApplicationIDs: []string{appA}},
	} {
		if _, events, err := w.reader.Events(t.Context(), q); !errors.Is(err, readmodel.ErrNotFound) || len(events) > 0 {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
	if created.Type.Webhook() {
		t.Error("a creation is told")
	}
	// A rebuild begins with nothing.
	if err := w.store.Empty(t.Context(), operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, time.Now(), w.events, map[int32]int64{0: 0, 1: 0}); err != nil {
		t.Fatal(err)
	}
	var left int
	if err := w.pool.QueryRow(t.Context(), `SELECT count(*) FROM session_events`).Scan(&left); err != nil || left != 0 {
		t.Errorf("an empty read model has %d events, %v", left, err)
	}
}

// Accounts are closed by the time at which sessions were completed, which is not that at which they
// were created or their money was approved. The bounds are inclusive and exclusive.
func TestListByCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Second)
	w.run(t)
	at := time.UnixMilli(1_790_000_000_000).UTC()
	completed := func(n int, minutes int) checkout.Session {
		s := session(n, appA)
		s.Status, s.EndedAt = checkout.StatusCompleted, at.Add(time.Duration(minutes)*time.Minute)
		return s
	}
	late := completed(3, 1)
	late.Late, late.Collection = true, &checkout.Collection{ID: "1", DecidedAt: at.Add(time.Hour)}
	expired := session(4, appA)
	expired.Status, expired.EndedAt = checkout.StatusExpired, at.Add(time.Minute)
	all := []checkout.Session{session(0, appA), completed(1, 0), completed(2, 2), late, expired}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, all...), nil); err != nil {
		t.Fatal(err)
	}
	minute := func(n int) *time.Time { m := at.Add(time.Duration(n) * time.Minute); return &m }
	for _, c := range []struct {
		from, to *time.Time
		want     string
	}{
		{nil, nil, "[4 3 2 1 0]"},
		{minute(0), nil, "[3 2 1]"},
		{nil, minute(2), "[3 1]"},
		{minute(1), minute(2), "[3]"},
		{minute(2), minute(3), "[2]"},
		{minute(3), nil, "[]"},
		{minute(2), minute(1), "[]"},
		{&time.Time{}, nil, "[3 2 1]"},
	} {
		found, total, err := w.reader.List(t.Context(), readmodel.Filter{TenantIDs: []string{agency(appA)}, ApplicationIDs: []string{appA}, CompletedFrom: c.from, CompletedTo: c.to})
		got := []int{}
		for _, s := range found {
			for n := range all {
				if all[n].ID == s.ID {
					got = append(got, n)
				}
			}
		}
		if err != nil || int(total) != len(got) || fmt.Sprint(got) != c.want {
			t.Errorf("from %v to %v: %v of %d, %v; want %s", c.from, c.to, got, total, err, c.want)
		}
	}
}
