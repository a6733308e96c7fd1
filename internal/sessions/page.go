package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/keyset"
)

const (
	// CountedAtMost is the largest number of sessions that a page counts.
	CountedAtMost = 1000
	// ExaminedAtMost is the largest number of sessions that a page with a condition that has no
	// index reads.
	ExaminedAtMost = 5000
	// examinedAtOnce is the number of sessions that are read at once for it.
	examinedAtOnce = 500
	// SizeAtMost is the largest size of a page. People read 50 rows, a file has many.
	SizeAtMost = 500
)

// PageQuery selects sessions for a page that a person reads. An empty condition selects all; the
// others must all hold.
type PageQuery struct {
	// TenantIDs, ApplicationIDs and Live are the scope, as in Filter.
	TenantIDs      []string
	ApplicationIDs []string
	Live           bool

	// MadeFrom (inclusive) and MadeTo (exclusive) bound the time at which sessions were made, in
	// milliseconds. Zero: no bound.
	MadeFrom, MadeTo time.Time
	Status           checkout.Status
	OrderID          string
	// UndecidedBefore selects sessions that ended before it and whose operator has not decided
	// since. Zero: no condition.
	UndecidedBefore time.Time

	// The conditions below have no index: see Page.Examined.

	ServiceCode string
	// OfferID is the offer with which the citizen tried to pay last.
	OfferID string
	// AmountFrom and AmountTo bound the amount due without fees, in minor units, both inclusive.
	// Nil: no bound.
	AmountFrom, AmountTo *int64
	// Text is part of the order, the description, the note, the label of the service, the customer's
	// id or the operator's reference, in any case of letters.
	Text string

	// After is Next of the page before; empty for the first page.
	After string
	// Size is the largest number of sessions on the page, at most SizeAtMost; 50 when zero.
	Size int
}

// Page is a page of sessions.
type Page struct {
	// Items are the newest first, by id.
	Items []checkout.Session
	// Next is PageQuery.After of the next page; empty after the last one.
	Next string
	// Count is the number of sessions on all pages, at most CountedAtMost + 1, which means that there
	// are more than CountedAtMost. It is nil with a condition that has no index: then nobody knows
	// it without reading all.
	Count *int
	// Examined is the number of sessions that were read for a condition that has no index, at most
	// ExaminedAtMost. If the page ends there, LookedTo is the time at which the last of them was
	// made, and Next goes on after it; else it is zero.
	Examined int
	LookedTo time.Time
}

// Page returns a page of sessions. It shows everything that was acknowledged, like List. Errors are
// ErrBehind, those of ctx, and an *operation.Error for a cursor that is none of this list
// (keyset.List.Key).
func (r *Reader) Page(ctx context.Context, q PageQuery) (p Page, err error) {
	if q.Size = cmp.Or(q.Size, 50); q.Size < 1 || q.Size > SizeAtMost {
		return p, fmt.Errorf("paging sessions: the size must be 1 to %d", SizeAtMost)
	}
	after, err := q.after()
	if err != nil {
		return p, err
	}
	if len(q.ApplicationIDs) == 0 || strings.Contains(q.OrderID, "\x00") { // Postgres has no text with a zero byte
		return Page{Count: new(int)}, nil
	}
	if len(q.TenantIDs) == 0 {
		return p, errors.New("paging sessions: the query names applications without their agencies")
	}
	err = r.consistent(ctx, r.partitionsOf(q.TenantIDs), func(batch *pgx.Batch) {
		if !q.examines() {
			all := q.scan("")
			batch.Queue(all.count(CountedAtMost), all.args...).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Count) })
		}
	}, func(ctx context.Context, tx pgx.Tx) (err error) {
		if q.examines() {
			return r.examine(ctx, tx, q, after, &p)
		}
		p.Items, err = r.some(ctx, tx, q.scan(after), 0, int64(q.Size)+1)
		p.cut(q)
		return err
	})
	if err != nil {
		return Page{}, err
	}
	return p, nil
}

// examine fills a page by reading sessions until it is full or the bound is reached.
func (r *Reader) examine(ctx context.Context, tx pgx.Tx, q PageQuery, after string, p *Page) error {
	for {
		size := min(examinedAtOnce, ExaminedAtMost-p.Examined)
		items, err := r.some(ctx, tx, q.scan(after), 0, int64(size))
		if err != nil {
			return err
		}
		for _, s := range items {
			p.Examined++
			if q.fits(&s) {
				p.Items = append(p.Items, s)
			}
			if len(p.Items) > q.Size {
				p.cut(q)
				return nil
			}
		}
		if len(items) < size {
			return nil // no session is left
		}
		last := items[len(items)-1].ID
		if after = placeOf(last); p.Examined == ExaminedAtMost {
			p.Next = q.list().Cursor(after)
			p.LookedTo, err = checkout.SessionMade(last)
			return err
		}
	}
}

// rowsOf is the query of the snapshots of some sessions, in the order of a list.
const rowsOf = `SELECT snapshot FROM sessions WHERE id = ANY($1) ORDER BY id DESC`

// some returns the sessions of a page of a scan.
func (r *Reader) some(ctx context.Context, tx pgx.Tx, of *scan, skip, size int64) ([]checkout.Session, error) {
	ids, err := of.page(ctx, tx, skip, size)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	found, _ := tx.Query(ctx, rowsOf, ids)
	values, err := pgx.CollectRows(found, pgx.RowTo[[]byte])
	if err != nil {
		return nil, err
	}
	return r.decoded(values)
}

// cut ends a page that has one session more than its size.
func (p *Page) cut(q PageQuery) {
	if len(p.Items) > q.Size {
		p.Items = p.Items[:q.Size]
		p.Next = q.list().Cursor(placeOf(p.Items[q.Size-1].ID))
	}
}

// placeLength is the number of characters of a session id that tell its place in a list: its time,
// its partition and 61 random bits. The others are not in a cursor, so that it opens no page of a
// citizen.
const placeLength = len(checkout.PrefixSession) + 25

func placeOf(id string) string { return id[:min(placeLength, len(id))] }

// list is the list of the query, whatever its page.
func (q PageQuery) list() keyset.List {
	apps := slices.Clone(q.ApplicationIDs)
	slices.Sort(apps)
	q.ApplicationIDs, q.TenantIDs, q.After, q.Size = slices.Compact(apps), nil, "", 0
	q.MadeFrom, q.MadeTo, q.UndecidedBefore = q.MadeFrom.UTC(), q.MadeTo.UTC(), q.UndecidedBefore.UTC() // one time has one text
	return keyset.Of("sessions", q)
}

// after returns the place after which the page begins; empty for the first page.
func (q PageQuery) after() (string, error) {
	key, err := q.list().Key(q.After, 1)
	if err != nil || key == nil {
		return "", err
	}
	if place, ok := strings.CutPrefix(key[0], checkout.PrefixSession); !ok || place == "" || len(key[0]) > placeLength || strings.Contains(place, "\x00") {
		return "", keyset.Malformed()
	}
	return key[0], nil
}

// scan returns the scan of the conditions that have indexes, after a place.
func (q PageQuery) scan(after string) *scan {
	s := newScan(q.ApplicationIDs, q.Live)
	s.equal([2]string{"status", string(q.Status)}, [2]string{"order_id", q.OrderID})
	if !q.MadeFrom.IsZero() {
		s.bound(">=", checkout.SessionsSince(q.MadeFrom))
	}
	if !q.MadeTo.IsZero() {
		s.bound("<", checkout.SessionsSince(q.MadeTo))
	}
	if !q.UndecidedBefore.IsZero() {
		s.and("undecided_since <", q.UndecidedBefore)
	}
	if after != "" {
		s.bound("<", after)
	}
	return s
}

// examines reports whether a condition has no index.
func (q PageQuery) examines() bool {
	return q.ServiceCode != "" || q.OfferID != "" || q.AmountFrom != nil || q.AmountTo != nil || q.Text != ""
}

// fits reports whether a session fits the conditions that have no index.
func (q PageQuery) fits(s *checkout.Session) bool {
	offer, ref := "", ""
	if s.Collection != nil {
		offer, ref = s.Collection.OfferID, s.Collection.OperatorRef
	}
	switch {
	case q.ServiceCode != "" && s.ServiceCode != q.ServiceCode && !slices.ContainsFunc(s.Items, func(i checkout.Item) bool { return i.ServiceCode == q.ServiceCode }),
		q.OfferID != "" && offer != q.OfferID,
		q.AmountFrom != nil && s.Amount < *q.AmountFrom,
		q.AmountTo != nil && s.Amount > *q.AmountTo:
		return false
	}
	text := strings.ToLower(q.Text)
	return text == "" || slices.ContainsFunc([]string{s.OrderID, s.Description, s.Note, s.ServiceLabel, s.CustomerID, ref}, func(field string) bool {
		return strings.Contains(strings.ToLower(field), text)
	})
}
