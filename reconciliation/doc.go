// Package reconciliation keeps the journal that money is reconciled on: tables
// and views in ClickHouse, the entries that are written to it, and the questions
// that are asked of it.
//
// # Journal
//
// The table journal has one row (journal.Entry) for each thing that happened: an event
// of a session, the outcome of a delivery, later a line of a statement. Nothing
// is ever updated. An entry's id and columns are derived from the record it was
// made of, so writing it again, after a crash or by a replay from Kafka, writes
// the same row: ReplacingMergeTree keeps one, and FINAL shows one before the
// merge has happened. Every read of money is FINAL. There is no summing table
// and no summing view on purpose: a duplicate in one could never be taken out.
//
// # For analysts
//
// Views, all with session_id and with the columns of the integration contract:
//
//	sessions    one row a session: final state and times
//	payments    completed sessions: channel, operator reference, fees, state of the ERP's confirmation
//	deliveries  one row a webhook or confirmation: outcome, attempts, times
//
// For example, the day's takings of each agency:
//
//	SELECT tenant_id, currency, count() AS payments, sum(amount) AS due, sum(fee_amount) AS fees
//	FROM payments WHERE livemode AND toDate(completed_at) = today() GROUP BY tenant_id, currency
//
// Cash that a second clerk gave back has reversed_at: the payment was made, and
// undone by an entry of its own.
//
// Amounts are integers in minor units (XAF has no decimals, EUR two), times are
// UTC. There are no phone numbers but masked ones.
//
// Everything here works in the database of the connection it is given.
package reconciliation
