// Package journaltest makes migrated databases for tests of the reconciliation journal, and
// asks the journal what the tests of its writers assert.
package journaltest

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"quittance/internal/journal"
)

// StatusSum is the number of sessions with a status and a currency, and the sums of
// their amounts.
type StatusSum struct {
	Status   string `ch:"status"`
	Currency string `ch:"currency"`
	// Sessions is their number.
	Sessions uint64 `ch:"sessions"`
	// Amount, FeeAmount and TotalAmount are sums in minor units of Currency.
	Amount      int64 `ch:"sum_amount"`
	FeeAmount   int64 `ch:"sum_fee_amount"`
	TotalAmount int64 `ch:"sum_total_amount"`
}

// SumsByStatus adds up all sessions of the journal by status and currency, in that
// order.
func SumsByStatus(ctx context.Context, conn driver.Conn) ([]StatusSum, error) {
	var out []StatusSum
	err := conn.Select(ctx, &out, `SELECT status, currency, count() AS sessions,
			sum(amount) AS sum_amount, sum(fee_amount) AS sum_fee_amount, sum(total_amount) AS sum_total_amount
		FROM sessions GROUP BY status, currency ORDER BY status, currency`)
	if err != nil {
		return nil, fmt.Errorf("adding up sessions by status: %w", err)
	}
	return out, nil
}

// SequenceFault is a session whose events are not numbered 1, 2, 3 … exactly once
// each.
type SequenceFault struct {
	SessionID string `ch:"session_id"`
	// Last is the highest sequence, Distinct how many different ones there are,
	// Entries how many events.
	Last     int64  `ch:"last"`
	Distinct uint64 `ch:"distinct_sequences"`
	Entries  uint64 `ch:"entries"`
}

// SequenceFaults lists at most limit sessions with a missing or a repeated sequence
// number. It should find none. An entry that was written twice counts once.
func SequenceFaults(ctx context.Context, conn driver.Conn, limit int) ([]SequenceFault, error) {
	var out []SequenceFault
	err := conn.Select(ctx, &out, `SELECT session_id, max(sequence) AS last, uniqExact(sequence) AS distinct_sequences, count() AS entries
		FROM journal FINAL WHERE entry_type = 'event' AND session_id != '' AND sequence > 0
		GROUP BY session_id HAVING last != distinct_sequences OR entries != distinct_sequences OR min(sequence) != 1
		ORDER BY session_id LIMIT ?`, limit)
	if err != nil {
		return nil, fmt.Errorf("looking for gaps in the journal: %w", err)
	}
	return out, nil
}

// CountEntries counts the entries of a type.
func CountEntries(ctx context.Context, conn driver.Conn, t journal.EntryType) (uint64, error) {
	var n uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM journal FINAL WHERE entry_type = ?", string(t)).Scan(&n); err != nil {
		return 0, fmt.Errorf("counting journal entries: %w", err)
	}
	return n, nil
}
