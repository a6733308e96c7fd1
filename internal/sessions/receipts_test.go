package sessions_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"quittance/checkout"
	readmodel "quittance/internal/sessions"
	"quittance/schemas"
)

// A receipt's transaction leads to its session once that is paid. The reversals of a time are
// those of all payments of that time and mode, whenever the money was given back.
func TestReceiptsByTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Second)
	w.run(t)
	tenant := agency(appA)
	at := time.UnixMilli(1_790_000_000_000).UTC()
	session := func(n byte, status checkout.Status, change func(*checkout.Session)) checkout.Session {
		s := checkout.Session{
			ID: checkout.NewSessionID(at.Add(time.Duration(n)*time.Second), w.topology.Partition(schemas.TopicEvents, tenant), [16]byte{n}), ApplicationID: appA, TenantID: tenant, Live: true,
			OrderID: "o", Amount: 5, Currency: "XAF", Mode: checkout.ModeHosted, CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: status, Sequence: 1, ERP: true, CitizenID: "c1",
			Items:   []checkout.Item{{ERPDueRef: "A", Amount: 2, TransactionID: fmt.Sprintf("%d-a", n)}, {ERPDueRef: "B", Amount: 3, TransactionID: fmt.Sprintf("%d-b", n)}},
			EndedAt: at.Add(time.Duration(n) * time.Minute),
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	reversed := func(s *checkout.Session) { s.ReversedAt = at.Add(24 * time.Hour) }
	late := func(s *checkout.Session) {
		reversed(s)
		s.Late, s.Collection = true, &checkout.Collection{ID: "1", DecidedAt: at.Add(10 * time.Minute)}
	}
	all := []checkout.Session{
		session(1, checkout.StatusOpen, nil), session(2, checkout.StatusCompleted, nil), session(3, checkout.StatusCompleted, reversed),
		session(4, checkout.StatusCompleted, late), session(5, checkout.StatusCompleted, func(s *checkout.Session) { reversed(s); s.Live = false }),
		session(6, checkout.StatusCompleted, func(s *checkout.Session) { reversed(s); s.Items[0].ReversedAt = at.Add(24 * time.Hour) }),
		session(7, checkout.StatusCompleted, func(s *checkout.Session) { s.Items[1].ReversedAt = at.Add(24 * time.Hour) }),
	}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, all...), nil); err != nil {
		t.Fatal(err)
	}
	for transaction, want := range map[string]int{"2-a": 1, "2-b": 1, "3-b": 2, "5-a": 4} {
		if s, err := w.reader.ByTransaction(t.Context(), transaction); err != nil || s.ID != all[want].ID {
			t.Errorf("%s is of %s, %v", transaction, s.ID, err)
		}
	}
	for _, transaction := range []string{"1-a", "2", "", "2-a'"} {
		if s, err := w.reader.ByTransaction(t.Context(), transaction); !errors.Is(err, readmodel.ErrNotFound) {
			t.Errorf("%s is of %s, %v", transaction, s.ID, err)
		}
	}
	for _, c := range []struct {
		live        bool
		from, until time.Time
		want        string
	}{
		{true, time.Time{}, time.Time{}, "[3-a 3-b 4-a 4-b 6-a 6-b 7-b]"},
		{true, at.Add(3 * time.Minute), at.Add(4 * time.Minute), "[3-a 3-b]"},
		{true, at.Add(8 * time.Minute), time.Time{}, "[4-a 4-b]"}, // paid when the operator's answer was known
		{true, at, at.Add(3 * time.Minute), "[]"},
		{false, time.Time{}, time.Time{}, "[5-a 5-b]"},
		{true, at.Add(6 * time.Minute), time.Time{}, "[4-a 4-b 6-a 6-b 7-b]"}, // 6-a before the rest, 7-a stays paid
	} {
		found, err := w.reader.Reversals(t.Context(), c.live, c.from, c.until)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range found {
			got = append(got, r.TransactionID)
			if !r.At.Equal(at.Add(24 * time.Hour)) {
				t.Errorf("%s was reversed at %v", r.TransactionID, r.At)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("live %v from %v until %v: %v, want %s", c.live, c.from, c.until, got, c.want)
		}
	}
}
