// Package reconciliation holds ClickHouse's schema for the journal that money is
// reconciled with: its table, its views and their migration.
//
// # Journal
//
// The table journal has one row (journal.Entry) for each event of a session and each
// outcome of a delivery, later also for each line of a statement. No row is ever
// updated. The id and the columns of an entry are derived from its Kafka record, so a
// second write, after a crash or by a replay, writes the same row. ReplacingMergeTree
// keeps one of them, and FINAL shows one before the merge has happened. Every read of
// money is FINAL. There is no summing table and no summing view: a duplicate in one
// could not be removed.
//
// # For analysts
//
// Views, all with session_id and with the columns of the integration contract:
//
//	sessions    one row a session: final state and times
//	payments    completed sessions: channel, operator reference, fees, state of the ERP's confirmation
//	deliveries  one row a webhook or confirmation: outcome, attempts, times
//	cases       one row an operator case: kind, money, age, resolution and who agreed on it
//
// For example, the day's takings of each agency:
//
//	SELECT tenant_id, currency, count() AS payments, sum(amount) AS due, sum(fee_amount) AS fees
//	FROM payments WHERE livemode AND toDate(completed_at) = today() GROUP BY tenant_id, currency
//
// A cash payment that a second clerk gave back has the time in reversed_at. The
// reversal is an entry of its own.
//
// Amounts are integers in minor units (XAF has no decimals, EUR two). Times are UTC.
// Phone numbers are masked.
//
// All functions work in the database of their connection.
package reconciliation
