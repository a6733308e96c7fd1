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
	return s.tally(ctx, `SELECT livemode, currency, movement, toInt64(count()), sum(total_amount)
		FROM receipt_rows FINAL WHERE occurred_at < fromUnixTimestamp64Milli(?) GROUP BY livemode, currency, movement
		SETTINGS do_not_merge_across_partitions_select_final = 1`, before)
}

// Tally returns the expected money's part of a sum. Its status is the state.
func (e *Expected) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: e.Livemode, Currency: e.Currency, Status: e.State}, tally.Count{Events: 1, Amount: e.Gross}
}

// TallyExpected returns the sums of all expected money that was recorded before a time.
func (s *Store) TallyExpected(ctx context.Context, before time.Time) (tally.Tally, error) {
	return s.tally(ctx, `SELECT livemode, currency, state, toInt64(count()), sum(gross)
		FROM expected_money FINAL WHERE occurred_at < fromUnixTimestamp64Milli(?) GROUP BY livemode, currency, state
		SETTINGS do_not_merge_across_partitions_select_final = 1`, before)
}

// Tally returns the line's part of a sum. Its status is the kind.
func (l *Line) Tally() (tally.Key, tally.Count) {
	return tally.Key{Live: l.Livemode, Currency: l.Currency, Status: l.Kind}, tally.Count{Events: 1, Amount: l.NetAmount}
}

// TallyLines returns the sums of all lines of statements that were imported before a time.
func (s *Store) TallyLines(ctx context.Context, before time.Time) (tally.Tally, error) {
	return s.tally(ctx, `SELECT livemode, currency, kind, toInt64(count()), sum(net_amount)
		FROM statement_lines FINAL WHERE imported_at < fromUnixTimestamp64Milli(?) GROUP BY livemode, currency, kind
		SETTINGS do_not_merge_across_partitions_select_final = 1`, before)
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
