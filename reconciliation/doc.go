// Package reconciliation holds ClickHouse's schema for the journal that money is
// reconciled with: its table, its views and their migration.
//
// # Journal
//
// The table journal has one row (journal.Entry) for each event of a session and each
// outcome of a delivery. No row is ever
// updated. The id and the columns of an entry are derived from its Kafka record, so a
// second write, after a crash or by a replay, writes the same row. ReplacingMergeTree
// keeps one of them, and FINAL shows one before the merge has happened. Every read of
// money is FINAL. There is no summing table and no summing view: a duplicate in one
// could not be removed.
//
// # Receipts
//
// The table receipt_rows has one row (journal.Receipt) for each movement of money:
//
//	checkout.completed     completed, a row for each item; if a case completed the session late,
//	                       none for late money; for a mismatch or an orphan the negative of
//	                       its row, and late, a row for each item
//	checkout.late_payment  late, a row for each item
//	checkout.reversed      reversal, a row for each item that was not given back before, negative
//	checkout.partially_reversed   reversal, a row for each item that was given back, negative
//	collection.mismatched  mismatch, a row; none for a report that contradicts an approval
//	collection.orphaned    orphan, a row; none for a report of no known session, which may
//	                       come several times
//	case.opened            orphan, a row, if the case is about such a report
//	case.resolved          reversal of a mismatch or an orphan that was given back or replaced
//
// Honouring moves no money: the rows of an honoured mismatch add up to nothing with that of
// its surplus, an orphan. They say which dues its money pays. The sink writes the rows with the entries of
// the same events. The partition is the month of the local date, which is part of the key:
// FINAL need not merge partitions with each other. Bloom filters find single payments; they
// may skip a granule without looking at others that hold the same key, because a row that is
// written twice has the same references. The view receipts has these settings.
//
// # Expected money
//
// The table expected_money has one entry (journal.Expected) for each collection whose money was
// received, whether completed, late, orphaned or mismatched, with its items and fee; for each
// sum that was given back, negative; and for each collection that its operator has not decided.
// It is what lines of statements must prove, so nothing is netted:
//
//	checkout.completed      received, completed; none if a case completed the session late
//	checkout.late_payment   received, late
//	collection.mismatched   received, mismatch, with the amount that was reported
//	collection.orphaned     received, orphan; none for the surplus of an honoured mismatch, which
//	                        is a part of its report, nor for a report of no known session
//	case.opened             received, orphan, if the case is about such a report
//	checkout.reversed       given_back
//	checkout.partially_reversed   given_back, an entry for each event
//	case.resolved           given_back of a mismatch, an orphan or a surplus; if the operator has
//	                        replaced its report, or is asked anew, the entry is withdrawn
//	checkout.failed, .expired, .cancelled   undecided, if the operator may still have the money;
//	                        withdrawn when it decides
//	collection.reopened     undecided, of an ended session; the entry before it is withdrawn
//
// An entry never changes. One that does not count any more gets a second row, withdrawn, with
// the negative amounts, in the same place of the key. So what a reader sees below an offset
// does not depend on what was written later, and the amounts of received and given_back add up
// to those of the receipts, for each agency, account and currency.
//
// The table case_rows has a row for each event of an operator case, with what the view cases
// shows. Such events are few: neither the view nor the report of open cases reads the journal.
// Store.Insert writes them with their entries.
//
// Names of agencies and applications, and slugs of agencies, are copied from the registry into
// the table names, so that all views show the present names beside the ids. The name of a service is that of the creation.
//
// # Matching
//
// The table statement_lines has a row (journal.Line) for each line of an accepted statement,
// from the topic reconciliation.statements, which internal/intake writes. Its key
// has the line's id and a hash of its content. Of several records of a key, from overlapping
// statements, the one with the lowest offset stays. So the rows below an offset never change:
// whoever reads up to a watermark finds the same rows in each run. A line that comes again with
// other content is a second row.
//
// Package match decides which line of a statement proves which expected money. It is pure. Package
// internal/statements reads the files. Package matcher runs match over the accounts and writes
// reconciliation.events. From these the sink journal writes the tables matches, breaks (with
// proposals), day_totals and match_runs. Each record of a match or a break is a row, also the one
// that ends it, so the rows below an offset never change. rewrites has the times at which a rebuild or
// a replay of the sink journal wrote rows of earlier records again, and journal_positions how far the tables
// have Kafka's records. Package verify compares them each night.
//
// Package chain has the canonical form of a payment's chain of ids, from the due to the line of
// the bank, the root over the rows of a closed period, and proofs that a row is one of them.
// Package matcher writes the closes (table closes) with their roots, and package audit computes them
// again from Kafka alone. For this the events of the journal have their offset, and expected_money has
// the dues of an entry: transaction_ids, due_refs and amounts.
//
// # For analysts
//
// Views, all with session_id and with the columns of the integration contract. Every
// column of every table and view has a comment.
//
//	receipts    one row a movement of money: build reports on it
//	sessions    one row a session: final state and times
//	payments    completed sessions: channel, operator reference, fees, state of the ERP's confirmation
//	deliveries  one row a webhook or confirmation: outcome, attempts, times
//	cases       one row an operator case: kind, money, age, resolution and who agreed on it
//	agencies    one row an agency: its id, slug and present name
//	open_breaks          one row a break or proposal in force
//	chain(from, until)   one row a payment: its dues, what the ERP accepted, the lines that prove it
//	reconciliation_days  one row an account and day: expected, found, open
//
// For example, the takings of each agency on a day:
//
//	SELECT agency, currency, count() AS movements, sum(amount) AS due, sum(fee_amount) AS fees
//	FROM receipts WHERE livemode AND local_date = '2026-11-22' GROUP BY agency, currency
//
// Sessions, payments and deliveries group the whole journal, also for one row, and are for
// support. Cases groups the events of cases only.
//
// An agency's analyst (package internal/analysts) reads the rows of the agency. A new table
// needs the column tenant_id and a place in analysts.Tables, a new view SQL SECURITY INVOKER and
// a place in analysts.Views.
//
// Package internal/report has the reports of a month, and docs/analysts.md is the guide for
// analysts.
//
// Amounts are integers in minor units (XAF has no decimals, EUR two). Times are UTC.
// Phone numbers are masked.
//
// All functions work in the database of their connection.
package reconciliation
