package sessions_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"quittance/checkout"
	"quittance/internal/keyset"
	"quittance/internal/operation"
	readmodel "quittance/internal/sessions"
)

// walk reads all pages and returns the orders of their sessions.
func (w world) walk(t *testing.T, q readmodel.PageQuery) (orders []string, pages []readmodel.Page) {
	t.Helper()
	for {
		p, err := w.reader.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Items {
			orders = append(orders, s.OrderID)
		}
		if pages = append(pages, p); p.Next == "" {
			return orders, pages
		}
		if q.After = p.Next; len(pages) > 100 {
			t.Fatal("the pages do not end")
		}
	}
}

// The pages have each session of the scope that fits once, the newest first, although sessions come
// while somebody reads. Both ends of a day are exact to the millisecond.
func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	w.run(t)
	var all []checkout.Session
	for n := range 40 {
		s := session(n, []string{appA, appB}[n%3/2])
		s.Live = n >= 36
		if n%2 == 0 {
			s.Status, s.EndedAt = checkout.StatusExpired, s.ExpiresAt
		}
		if n == 10 || n == 20 {
			s.Status, s.EndedAt, s.Collection = checkout.StatusFailed, s.ExpiresAt, &checkout.Collection{Status: checkout.CollectionUndecided, Currency: "XAF"}
		}
		s.Amount, s.ServiceCode = int64(1000*n), []string{"tax", "fine"}[n%2]
		s.Description = fmt.Sprintf("Patente %d", n)
		if n%4 == 0 {
			s.Collection = &checkout.Collection{OfferID: "mtn", Status: checkout.CollectionPending, Amount: s.Amount, Currency: "XAF", OperatorRef: fmt.Sprintf("OP-%d", n)}
		}
		all = append(all, s)
	}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, all...), nil); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	at := func(n int) time.Time { return time.UnixMilli(1_790_000_000_000 + int64(n)) }
	amount := func(n int64) *int64 { return &n }
	own, both := readmodel.PageQuery{ApplicationIDs: []string{appA}, TenantIDs: []string{agency(appA)}}, readmodel.PageQuery{ApplicationIDs: []string{appB, appA, appB}, TenantIDs: []string{agency(appA), agency(appB)}}
	test := func(s checkout.Session) bool { return !s.Live }
	for name, c := range map[string]struct {
		q    readmodel.PageQuery
		set  func(*readmodel.PageQuery)
		keep func(checkout.Session) bool
	}{
		"own":     {own, func(*readmodel.PageQuery) {}, func(s checkout.Session) bool { return test(s) && s.ApplicationID == appA }},
		"several": {both, func(*readmodel.PageQuery) {}, test},
		"live":    {both, func(q *readmodel.PageQuery) { q.Live = true }, func(s checkout.Session) bool { return s.Live }},
		"day": {both, func(q *readmodel.PageQuery) { q.MadeFrom, q.MadeTo = at(7), at(21) }, func(s checkout.Session) bool {
			return test(s) && !s.CreatedAt.Before(at(7)) && s.CreatedAt.Before(at(21))
		}},
		"status": {both, func(q *readmodel.PageQuery) { q.Status = checkout.StatusExpired }, func(s checkout.Session) bool { return test(s) && s.Status == checkout.StatusExpired }},
		"order":  {both, func(q *readmodel.PageQuery) { q.OrderID = "order-9" }, func(s checkout.Session) bool { return s.OrderID == "order-9" }},
		"zero":   {both, func(q *readmodel.PageQuery) { q.OrderID = "order-9\x00" }, func(s checkout.Session) bool { return s.OrderID == "order-9\x00" }},
		"undecided": {both, func(q *readmodel.PageQuery) { q.UndecidedBefore = at(20).Add(time.Hour) }, func(s checkout.Session) bool {
			return test(s) && !s.UndecidedSince().IsZero() && s.UndecidedSince().Before(at(20).Add(time.Hour))
		}},
		"service": {both, func(q *readmodel.PageQuery) { q.ServiceCode = "fine" }, func(s checkout.Session) bool { return test(s) && s.ServiceCode == "fine" }},
		"offer":   {both, func(q *readmodel.PageQuery) { q.OfferID = "mtn" }, func(s checkout.Session) bool { return test(s) && s.Collection != nil && s.Collection.OfferID == "mtn" }},
		"amounts": {both, func(q *readmodel.PageQuery) { q.AmountFrom, q.AmountTo = amount(3000), amount(9000) }, func(s checkout.Session) bool {
			return test(s) && s.Amount >= 3000 && s.Amount <= 9000
		}},
		"text":      {both, func(q *readmodel.PageQuery) { q.Text = "pAtEnTe 1" }, func(s checkout.Session) bool { return test(s) && len(s.OrderID) > 6 && s.OrderID[6] == '1' }},
		"reference": {both, func(q *readmodel.PageQuery) { q.Text = "op-8" }, func(s checkout.Session) bool { return s.OrderID == "order-8" }},
		"together": {own, func(q *readmodel.PageQuery) { q.Status, q.ServiceCode = checkout.StatusExpired, "tax" }, func(s checkout.Session) bool {
			return test(s) && s.ApplicationID == appA && s.Status == checkout.StatusExpired
		}},
		"nobody": {readmodel.PageQuery{}, func(*readmodel.PageQuery) {}, func(checkout.Session) bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.Size = 7
			c.set(&c.q)
			var want []string
			for _, s := range all {
				if c.keep(s) {
					want = append(want, s.OrderID)
				}
			}
			got, pages := w.walk(t, c.q)
			if !slices.Equal(got, want) || len(pages) != max(1, (len(want)+6)/7) {
				t.Errorf("%d pages with %q\nwant %q", len(pages), got, want)
			}
			for _, p := range pages {
				if p.Count != nil && *p.Count != len(want) || !p.LookedTo.IsZero() {
					t.Errorf("counted %d, looked to %v", *p.Count, p.LookedTo)
				}
			}
		})
	}

	// A session that comes while somebody reads is on no later page, and moves none.
	both.Size = 20
	first, err := w.reader.Page(t.Context(), both)
	if err != nil {
		t.Fatal(err)
	}
	late := session(100, appA)
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, late), nil); err != nil {
		t.Fatal(err)
	}
	next := both
	next.After = first.Next
	if second, err := w.reader.Page(t.Context(), next); err != nil || len(second.Items) != 16 || second.Items[0].OrderID != "order-15" {
		t.Errorf("second page: %d sessions, %v", len(second.Items), err)
	}
	// The cursor names no session: it opens no page.
	if key, err := keyset.Of("x").Key(first.Next, 1); err == nil || key != nil {
		t.Errorf("%q, %v", key, err)
	}
	if id := first.Items[19].ID; len(id) < 40 || id[:29] == id {
		t.Fatal(id)
	}
	w.refusesCursors(t, both, next.After)
}

// refusesCursors checks the cursors of other lists.
func (w world) refusesCursors(t *testing.T, q readmodel.PageQuery, cursor string) {
	t.Helper()
	for name, c := range map[string]struct {
		set  func(*readmodel.PageQuery)
		code string
	}{
		"of another viewer":  {func(q *readmodel.PageQuery) { q.ApplicationIDs = []string{appA} }, "list.cursor_foreign"},
		"of another mode":    {func(q *readmodel.PageQuery) { q.Live = true }, "list.cursor_foreign"},
		"of another status":  {func(q *readmodel.PageQuery) { q.Status = checkout.StatusOpen }, "list.cursor_foreign"},
		"of nobody":          {func(q *readmodel.PageQuery) { q.ApplicationIDs = nil }, "list.cursor_foreign"},
		"of other texts":     {func(q *readmodel.PageQuery) { q.Text = "x" }, "list.cursor_foreign"},
		"no cursor":          {func(q *readmodel.PageQuery) { q.After = "2" }, "list.cursor_malformed"},
		"an id":              {func(q *readmodel.PageQuery) { q.After = sessionID(1, appA, 2) }, "list.cursor_malformed"},
		"of the list, empty": {func(q *readmodel.PageQuery) { q.After = "" }, ""},
		"of another size":    {func(q *readmodel.PageQuery) { q.Size = 3 }, ""},
	} {
		q := q
		q.After = cursor
		c.set(&q)
		_, err := w.reader.Page(t.Context(), q)
		var refused *operation.Error
		if c.code == "" && err != nil || c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code || refused.Field != "after") {
			t.Errorf("%s: %v", name, err)
		}
	}
	q.Size = readmodel.SizeAtMost + 1
	if _, err := w.reader.Page(t.Context(), q); err == nil {
		t.Error("a page of too many sessions")
	}
}

// A condition that has no index reads 5,000 sessions at most, says how far it looked, and goes on
// there. A list of more than 1,000 is counted up to there.
func TestPageExaminesABoundedNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5*time.Second)
	w.run(t)
	const rows = 5200
	var all []checkout.Session
	for n := range rows {
		s := session(n, appA)
		if n == 5190 || n == 40 {
			s.Amount = 77
		}
		all = append(all, s)
	}
	if err := w.store.Apply(t.Context(), snapshots(t, w.codec, all...), nil); err != nil {
		t.Fatal(err)
	}
	only := int64(77)
	q := readmodel.PageQuery{ApplicationIDs: []string{appA}, TenantIDs: []string{agency(appA)}, AmountFrom: &only, AmountTo: &only}
	first, err := w.reader.Page(t.Context(), q)
	if err != nil || len(first.Items) != 1 || first.Items[0].OrderID != "order-5190" || first.Examined != 5000 || first.Next == "" || first.Count != nil || !first.LookedTo.Equal(all[200].CreatedAt) {
		t.Fatalf("first: %d sessions, examined %d to %v, %v", len(first.Items), first.Examined, first.LookedTo, err)
	}
	q.After = first.Next
	second, err := w.reader.Page(t.Context(), q)
	if err != nil || len(second.Items) != 1 || second.Items[0].OrderID != "order-40" || second.Examined != 200 || second.Next != "" || !second.LookedTo.IsZero() {
		t.Errorf("second: %d sessions, examined %d to %v, next %q, %v", len(second.Items), second.Examined, second.LookedTo, second.Next, err)
	}
	if p, err := w.reader.Page(t.Context(), readmodel.PageQuery{ApplicationIDs: q.ApplicationIDs, TenantIDs: q.TenantIDs}); err != nil || p.Count == nil || *p.Count != readmodel.CountedAtMost+1 {
		t.Errorf("count %v, %v", p.Count, err)
	}
}
