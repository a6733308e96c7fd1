package sessions_test

import (
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/operation"
	readmodel "quittance/internal/sessions"
	"quittance/schemas"
)

// A session is found by its dues while it claims them or has paid them, and by its citizen
// once it is paid.
func TestDuesAndPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 20*time.Second)
	w.run(t)
	tenant := agency(appA)
	at := time.UnixMilli(1_790_000_000_000).UTC()
	session := func(n byte, status checkout.Status, change func(*checkout.Session)) checkout.Session {
		s := checkout.Session{
			ID: checkout.NewSessionID(at.Add(time.Duration(n)*time.Second), w.topology.Partition(schemas.TopicEvents, tenant), [16]byte{n}), ApplicationID: appA, TenantID: tenant,
			OrderID: "o", Amount: 5, Currency: "XAF", Mode: checkout.ModeHosted, CreatedAt: at, ExpiresAt: at.Add(time.Hour), Status: status, Sequence: 1, ERP: true, CitizenID: "c1",
			Items: []checkout.Item{{ERPDueRef: "A", Amount: 2, TransactionID: "t1"}, {ERPDueRef: "B,{|", Amount: 3, TransactionID: "t2"}},
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	apply := func(s ...checkout.Session) {
		t.Helper()
		if err := w.store.Apply(t.Context(), snapshots(t, w.codec, s...), nil); err != nil {
			t.Fatal(err)
		}
	}
	claimants := func(want string, refs ...string) {
		t.Helper()
		got, err := w.reader.Claimants(t.Context(), tenant, false, refs)
		if err != nil {
			t.Fatal(err)
		}
		ids := ""
		for _, s := range got {
			ids += string(s.Status) + " "
		}
		if ids != want {
			t.Errorf("the claimants of %v are %q, want %q", refs, ids, want)
		}
	}
	open := session(1, checkout.StatusOpen, nil)
	apply(open, session(2, checkout.StatusOpen, func(s *checkout.Session) { s.Live = true }), session(3, checkout.StatusOpen, func(s *checkout.Session) { s.ERP = false }),
		session(4, checkout.StatusExpired, nil))
	claimants("open ", "A")
	claimants("open ", "B,{|", "A", "C")
	claimants("", "a", "C")
	claimants("")

	paid := func(n byte, change func(*checkout.Session)) checkout.Session {
		return session(n, checkout.StatusCompleted, func(s *checkout.Session) {
			s.EndedAt = at.Add(time.Minute)
			if change != nil {
				change(s)
			}
		})
	}
	done := paid(1, nil)
	done.Sequence = 2
	apply(done, paid(5, func(s *checkout.Session) { s.CitizenID = "c2" }), paid(6, func(s *checkout.Session) { s.Live = true }), paid(7, nil))
	apply(paid(8, func(s *checkout.Session) { s.ReversedAt = at.Add(time.Hour) }))
	claimants("completed completed completed completed ", "A")
	open.Sequence = 3
	open.Status = checkout.StatusCancelled
	apply(open)
	claimants("completed completed completed ", "A")

	items, total, err := w.reader.PaidBy(t.Context(), readmodel.CitizenFilter{CitizenID: "c1", PageSize: 1})
	if err != nil || total != 2 || len(items) != 1 || items[0].ID != paid(8, nil).ID {
		t.Errorf("the payments are %v of %d, %v", items, total, err)
	}
	if items, total, err := w.reader.PaidBy(t.Context(), readmodel.CitizenFilter{}); err != nil || total != 0 || len(items) != 0 {
		t.Errorf("nobody paid %v of %d, %v", items, total, err)
	}
	if err := w.store.Empty(t.Context(), operation.Actor{Kind: operation.ActorCommandLine, Name: "test"}, at, w.events, nil); err != nil {
		t.Fatal(err)
	}
	claimants("", "A")
}
