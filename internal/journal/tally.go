package journal

import (
	"context"
	"fmt"
	"time"

	"quittance/internal/tally"
)

// Tally returns the entry's part of a sum. Only events are summed.
func (e *Entry) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: e.Livemode, Currency: e.Currency, Status: e.Status}, tally.Count{Events: 1, Amount: e.Amount}
}

// Tally returns the sums of all events that occurred before a time.
func (s *Store) Tally(ctx context.Context, before time.Time) (tally.Tally, error) {
	return s.tally(ctx, `SELECT livemode, currency, status, toInt64(count()), sum(amount)
		FROM journal FINAL WHERE entry_type = 'event' AND occurred_at < fromUnixTimestamp64Milli(?) GROUP BY livemode, currency, status`, before)
}

// Tally returns the receipt's part of a sum. Its status is the movement.
func (r *Receipt) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: r.Livemode, Currency: r.Currency, Status: r.Movement}, tally.Count{Events: 1, Amount: r.TotalAmount}
}

// TallyReceipts returns the sums of all receipts of movements that occurred before a time.
func (s *Store) TallyReceipts(ctx context.Context, before time.Time) (tally.Tally, error) {
	return s.tallyRows(ctx, receiptTable, "movement", "total_amount", "occurred_at", before)
}

// Tally returns the expected money's part of a sum. Its status is the state.
func (e *Expected) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: e.Livemode, Currency: e.Currency, Status: e.State}, tally.Count{Events: 1, Amount: e.Gross}
}

// TallyExpected returns the sums of all expected money that was recorded before a time.
func (s *Store) TallyExpected(ctx context.Context, before time.Time) (tally.Tally, error) {
	return s.tallyRows(ctx, expectedTable, "state", "gross", "occurred_at", before)
}

// Tally returns the line's part of a sum. Its status is the kind.
func (l *Line) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: l.Livemode, Currency: l.Currency, Status: l.Kind}, tally.Count{Events: 1, Amount: l.NetAmount}
}

// TallyLines returns the sums of all lines of statements that were imported before a time.
func (s *Store) TallyLines(ctx context.Context, before time.Time) (tally.Tally, error) {
	return s.tallyRows(ctx, lineTable, "kind", "net_amount", "imported_at", before)
}

// tallyRows returns the sums of a table by a column, of the rows whose time is before another.
// The versions of a row of these tables are in one partition.
func (s *Store) tallyRows(ctx context.Context, t *table, status, amount, at string, before time.Time) (tally.Tally, error) {
	return s.tally(ctx, fmt.Sprintf(`SELECT livemode, currency, %[2]s, toInt64(count()), sum(%[3]s)
		FROM %[1]s FINAL WHERE %[4]s < fromUnixTimestamp64Milli(?) GROUP BY livemode, currency, %[2]s
		SETTINGS do_not_merge_across_partitions_select_final = 1`, t.name, status, amount, at), before)
}

func (s *Store) tally(ctx context.Context, query string, before time.Time) (tally.Tally, error) {
	rows, err := s.conn.Query(ctx, query, before.UnixMilli())
	if err != nil {
		return nil, fmt.Errorf("summing the journal: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := tally.Tally{}
	for rows.Next() {
		var k tally.Key
		var c tally.Count
		if err := rows.Scan(&k.Live, &k.Currency, &k.Status, &c.Events, &c.Amount); err != nil {
			return nil, fmt.Errorf("summing the journal: %w", err)
		}
		out.Add(k, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("summing the journal: %w", err)
	}
	return out, nil
}
