package sessions

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
	"quittance/internal/operation"
)

// Search asks for sessions of both modes, for support. It selects those of some applications that have
// one of the ids, the payment reference or the order. Empty fields select nothing.
type Search struct {
	IDs        []string
	PaymentRef string
	OrderID    string
	// ApplicationIDs are those of whoever asks: the sessions of others are not found. Nil finds those of
	// all by id and payment reference, and none by order.
	ApplicationIDs []string
}

// searchAtMost is the largest number of sessions of one mode with one reference or order.
const searchAtMost = 100

// queue adds the queries of the search. Each selects one column of the newest sessions by
// one index. The applications are in the query, so that the sessions of others, however many they are,
// take the place of none.
func (q Search) queue(batch *pgx.Batch, column string, each func(pgx.Rows) error) {
	add := func(where string, arg any) {
		args := []any{arg}
		if q.ApplicationIDs != nil {
			where, args = where+" AND application_id = ANY($2)", append(args, q.ApplicationIDs)
		}
		batch.Queue(fmt.Sprintf("SELECT %s FROM sessions WHERE %s ORDER BY id DESC LIMIT %d", column, where, searchAtMost), args...).Query(each)
	}
	if len(q.IDs) > 0 {
		add("id = ANY($1)", q.IDs)
	}
	if q.PaymentRef != "" {
		add("payment_ref = $1", q.PaymentRef)
	}
	if q.OrderID == "" || strings.Contains(q.OrderID, "\x00") { // Postgres has no text with a zero byte
		return
	}
	for _, live := range []bool{true, false} {
		s := newScan(q.ApplicationIDs, live)
		s.equal([2]string{"order_id", q.OrderID})
		batch.Queue(s.newest(column, searchAtMost), s.args...).Query(each)
	}
}

// Search returns sessions, the newest first. It shows everything that was acknowledged, like
// Session. Errors are ErrBehind and those of ctx.
func (r *Reader) Search(ctx context.Context, q Search) ([]checkout.Session, error) {
	var values [][]byte
	err := r.consistent(ctx, r.allPartitions(), func(batch *pgx.Batch) {
		q.queue(batch, "snapshot", func(found pgx.Rows) error {
			some, err := pgx.CollectRows(found, pgx.RowTo[[]byte])
			values = append(values, some...)
			return err
		})
	}, nil)
	if err != nil {
		return nil, err
	}
	found := map[string]checkout.Session{}
	for _, value := range values {
		s, err := r.decode(value)
		if err != nil {
			return nil, err
		}
		found[s.ID] = s
	}
	return slices.SortedFunc(maps.Values(found), func(a, b checkout.Session) int { return strings.Compare(b.ID, a.ID) }), nil
}

// ByPaymentRef returns the session of a payment reference, for people who know nothing else. It
// shows everything that was acknowledged, like Session. If several sessions have the
// reference, which must not be, the answer is as if none had it: money must never pay the wrong
// one. Errors are ErrNotFound, ErrBehind and those of ctx.
func (r *Reader) ByPaymentRef(ctx context.Context, ref string) (checkout.Session, error) {
	var ids []string
	err := r.query(ctx, func(ctx context.Context) error {
		found, err := r.cfg.Pool.Query(ctx, `SELECT id FROM sessions WHERE payment_ref = $1 LIMIT 2`, ref)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(found, pgx.RowTo[string])
		return err
	})
	if err != nil {
		return checkout.Session{}, err
	}
	if len(ids) == 0 { // perhaps the read model does not have it yet
		found, err := r.Search(ctx, Search{PaymentRef: ref})
		if err != nil {
			return checkout.Session{}, err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	if len(ids) != 1 {
		return checkout.Session{}, ErrNotFound
	}
	return r.ByID(ctx, ids[0])
}

// Codes of refusals of Named (operation.Error).
const (
	CodeOrderUnknown = "session.order_unknown"       // no session has this order
	CodeRefUnknown   = "session.payment_ref_unknown" // no session has this payment reference
)

// Named returns the ids of the sessions that a person names by an order or a payment reference. It
// refuses, with the field order or payment-ref, what no session has: an empty list would select the
// sessions of nobody, or of everybody. Like Find, it does not wait.
func (s *Store) Named(ctx context.Context, q Search) ([]string, error) {
	ids, err := s.Find(ctx, q)
	switch {
	case err != nil || len(ids) > 0:
		return ids, err
	case q.OrderID != "":
		return nil, operation.Refuse(CodeOrderUnknown, "order", nil)
	}
	return nil, operation.Refuse(CodeRefUnknown, "payment-ref", nil)
}

// Find returns the ids of sessions. Unlike Search it does not wait for what was acknowledged
// just now.
func (s *Store) Find(ctx context.Context, q Search) ([]string, error) {
	var ids []string
	batch := &pgx.Batch{}
	q.queue(batch, "id", func(found pgx.Rows) error {
		some, err := pgx.CollectRows(found, pgx.RowTo[string])
		ids = append(ids, some...)
		return err
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("finding sessions: %w", err)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
