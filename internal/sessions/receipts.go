package sessions

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"quittance/checkout"
)

// paidIn returns what the columns transactions, paid_at and reversed_at of a session have. paid_at is
// when its receipts were issued, which says whose key signs them.
// All are nil unless it completed.
func paidIn(s checkout.Session) (transactions []string, paidAt, reversedAt *time.Time) {
	if s.Status != checkout.StatusCompleted {
		return nil, nil, nil
	}
	for _, due := range s.Dues() {
		transactions = append(transactions, storable(due.TransactionID))
	}
	return transactions, optional(s.RecordedAt()), optional(s.ReversedAt)
}

// returnedIn returns what the columns returned and returned_at of a session have: the dues whose money
// was given back while others stayed paid, and when. Both are nil if there are none.
func returnedIn(s checkout.Session) (transactions []string, at []time.Time) {
	for _, due := range s.Dues() {
		if !due.ReversedAt.IsZero() {
			transactions, at = append(transactions, storable(due.TransactionID)), append(at, due.ReversedAt)
		}
	}
	return transactions, at
}

// ByTransaction returns the completed session of a transaction, for those who check a receipt.
// It shows everything that was acknowledged, like Session. Errors are ErrNotFound, ErrBehind and
// those of ctx.
func (r *Reader) ByTransaction(ctx context.Context, transactionID string) (checkout.Session, error) {
	const where = ` FROM sessions WHERE transactions IS NOT NULL AND transactions @> ARRAY[$1::text] ORDER BY id LIMIT 1`
	var id string
	err := r.query(ctx, func(ctx context.Context) error {
		found, err := r.cfg.Pool.Query(ctx, `SELECT id`+where, transactionID)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(found, pgx.RowTo[string])
		if len(ids) > 0 {
			id = ids[0]
		}
		return err
	})
	switch {
	case err != nil:
		return checkout.Session{}, err
	case id != "":
		return r.ByID(ctx, id)
	}
	// Perhaps the read model does not have it yet.
	found, err := r.read(ctx, r.allPartitions(), func(batch *pgx.Batch, values *[][]byte) {
		batch.Queue(`SELECT snapshot`+where, transactionID).Query(collect(values))
	})
	switch {
	case err != nil:
		return checkout.Session{}, err
	case len(found) == 0:
		return checkout.Session{}, ErrNotFound
	}
	return found[0], nil
}

// Reversal is a transaction whose money was given back.
type Reversal struct {
	TransactionID string
	At            time.Time
}

// Reversals returns the reversals of all payments of a mode that were recorded from a time on and
// before another; a zero time is no bound. It shows everything that was acknowledged, like
// Session. Errors are ErrBehind and those of ctx.
func (r *Reader) Reversals(ctx context.Context, live bool, from, until time.Time) (out []Reversal, err error) {
	_, err = r.read(ctx, r.allPartitions(), func(batch *pgx.Batch, _ *[][]byte) {
		out = nil
		batch.Queue(`
			WITH paid AS (SELECT transactions, reversed_at, returned, returned_at FROM sessions
				WHERE livemode = $1 AND transactions IS NOT NULL AND (reversed_at IS NOT NULL OR returned IS NOT NULL)
					AND paid_at >= coalesce($2::timestamptz, '-infinity') AND paid_at < coalesce($3::timestamptz, 'infinity'))
			SELECT transaction, at FROM (
				SELECT unnest(returned) AS transaction, unnest(returned_at) AS at FROM paid
				UNION ALL
				SELECT transaction, reversed_at FROM paid, unnest(transactions) AS transaction
				WHERE reversed_at IS NOT NULL AND NOT transaction = ANY(coalesce(returned, '{}'))
			) AS reversals ORDER BY at, transaction`, live, optional(from), optional(until)).Query(func(found pgx.Rows) (err error) {
			out, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (r Reversal, err error) {
				err = row.Scan(&r.TransactionID, &r.At)
				r.At = r.At.UTC()
				return r, err
			})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// allPartitions returns the partitions of checkout.events.
func (r *Reader) allPartitions() []int32 {
	out := make([]int32, len(r.proven))
	for p := range out {
		out[p] = int32(p)
	}
	return out
}
