package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"quittance/checkout"
	"quittance/schemas"
)

// storable returns a text without the zero bytes that Postgres refuses.
func storable(s string) string { return strings.ReplaceAll(s, "\x00", "") }

// CashFilter selects movements of cash of one clerk, in one mode, on one local day.
type CashFilter struct {
	AgencyID string
	Live     bool
	Clerk    string
	// Day is a local date, such as 2026-11-22.
	Day string
	// Search selects movements that have the text in a reference, a receipt number, the
	// service or the amount. White space, hyphens and dots between digits do not matter.
	// Empty selects all.
	Search   string
	Page     int // from 1; 0 means 1
	PageSize int // 20 when 0
}

// CashEntry is a movement of cash in a list.
type CashEntry struct {
	checkout.CashMovement
	// ReturnedBy is the clerk who gave taken cash back later; empty if nobody did.
	ReturnedBy string
}

// CashSum is a number of movements and the sum of their amounts.
type CashSum struct{ Count, Amount int64 }

// CashDay is a page of a clerk's movements of a day.
type CashDay struct {
	// Entries of the page, the newest first.
	Entries []CashEntry
	// Found is the number of movements that the search selects, on all pages.
	Found int64
	// Taken and Returned are the sums of the whole day, whatever the search selects.
	Taken, Returned CashSum
}

const cashDay = ` FROM cash_movements m WHERE m.agency_id = $1 AND m.livemode = $2 AND m.clerk = $3 AND m.day = $4`

// Cash returns a page of a clerk's movements of cash of a day. It shows everything that
// was acknowledged before the call. Errors are ErrBehind and those of ctx.
func (r *Reader) Cash(ctx context.Context, f CashFilter) (out CashDay, err error) {
	day := []any{f.AgencyID, f.Live, f.Clerk, f.Day}
	where, found := "", append([]any{}, day...)
	if f.Search != "" {
		where = ` AND (strpos(lower(m.service_label || ' ' || m.receipt || ' ' || m.notice_refs), lower($5)) > 0
			OR $6 <> '' AND strpos(m.payment_ref || ' ' || m.amount::text, $6) > 0)`
		found = append(found, f.Search, squeezed(f.Search))
	}
	size := int64(cmp.Or(f.PageSize, defaultPageSize))
	page := append(append([]any{}, found...), size, int64(max(f.Page, 1)-1)*size)
	err = r.consistent(ctx, r.partitionsOf([]string{f.AgencyID}), func(batch *pgx.Batch) {
		batch.Queue(`SELECT count(*) FILTER (WHERE kind = 'taken'), coalesce(sum(amount) FILTER (WHERE kind = 'taken'), 0)::bigint,
			count(*) FILTER (WHERE kind = 'returned'), coalesce(sum(amount) FILTER (WHERE kind = 'returned'), 0)::bigint`+cashDay, day...).
			QueryRow(func(row pgx.Row) error {
				return row.Scan(&out.Taken.Count, &out.Taken.Amount, &out.Returned.Count, &out.Returned.Amount)
			})
		batch.Queue(`SELECT count(*)`+cashDay+where, found...).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Found) })
		batch.Queue(fmt.Sprintf(`SELECT session_id, collection_id, kind, at, amount, payment_ref, notice_refs, service_label, counter, receipt,
			coalesce((SELECT b.clerk FROM cash_movements b WHERE m.kind = 'taken' AND b.kind = 'returned'
				AND b.session_id = m.session_id AND b.collection_id = m.collection_id), '')%s%s
			ORDER BY at DESC, session_id DESC, collection_id, kind LIMIT $%d OFFSET $%d`, cashDay, where, len(page)-1, len(page)), page...).
			Query(func(rows pgx.Rows) (err error) {
				out.Entries, err = pgx.CollectRows(rows, f.entry)
				return err
			})
	}, nil)
	if err != nil {
		return CashDay{}, err
	}
	return out, nil
}

// entry reads a row of Cash.
func (f CashFilter) entry(row pgx.CollectableRow) (e CashEntry, err error) {
	var kind, notices string
	e.AgencyID, e.Live, e.Clerk = f.AgencyID, f.Live, f.Clerk
	err = row.Scan(&e.SessionID, &e.CollectionID, &kind, &e.At, &e.Amount, &e.PaymentRef, &notices, &e.ServiceLabel, &e.Counter, &e.Receipt, &e.ReturnedBy)
	e.Kind, e.NoticeRefs = checkout.CashKind(kind), strings.Fields(notices)
	return e, err
}

// squeezed returns the digits of a text that has only digits and what people write between
// them; empty for any other text.
func squeezed(s string) string {
	s = checkout.Ungrouped(s)
	if strings.Trim(s, "0123456789") != "" {
		return ""
	}
	return s
}

// transactTimeout is the time-out of Transact, maxAttempts how often it begins.
const (
	transactTimeout = 5 * time.Second
	maxAttempts     = 5
)

// Transact runs do in a transaction in which the read model has everything that was
// acknowledged for an agency before the call, so that do can count its movements of cash.
// Postgres may refuse a transaction because of another one at the same time; then do runs
// again. The error is that of do, ErrBehind or that of ctx.
func (r *Reader) Transact(ctx context.Context, agencyID string, do func(context.Context, pgx.Tx) error) error {
	partition := r.cfg.Topology.Partition(schemas.TopicEvents, agencyID)
	marks, err := r.barrier.Wait(ctx, partition)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, transactTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := pgx.BeginTxFunc(ctx, r.cfg.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			reached, err := positions.Read(ctx, tx, r.cfg.Topology.Name(schemas.TopicEvents))
			switch {
			case err != nil:
				return err
			case !r.prove(marks, reached, partition):
				return errRebuilt
			}
			return do(ctx, tx)
		})
		if refused := (*pgconn.PgError)(nil); errors.As(err, &refused) && (refused.Code == serializationFailure || refused.Code == uniqueViolation) && attempt < maxAttempts {
			continue // another transaction has changed the same rows: see what it did
		}
		return err
	}
}

// Codes of Postgres.
const (
	serializationFailure = "40001"
	uniqueViolation      = "23505"
)
