// Package journal writes the reconciliation journal: it reads checkout.events,
// cases.events, deliveries.attempts and collections.calls from Kafka and inserts them into
// ClickHouse in batches (internal/journal): an entry for each record, and for the money that
// an event tells of a receipt for each movement and the expected money of each collection. An
// operator may report money of no known session several times: the event that opens its case
// has the receipt and the expected money, and there is one. The lines of
// reconciliation.statements become rows of statement_lines; a line that comes again in an
// overlapping statement stays one row. What the matcher found (reconciliation.events) becomes rows of
// matches, breaks, day_totals and match_runs. It also copies the names of agencies and applications.
//
// # Guarantees
//
// Every committed record becomes one entry of the journal, also when a process dies, and
// so do its receipts and its expected money. Positions are rows of the same database, written after
// all inserts (journal.Store.Move), so that a database that was restored from a backup gets what it
// lacks. The offsets of the group follow; they say what a restored database once had. After a
// crash between two of the steps a batch is inserted twice. Its rows have the same ids and
// contents both times, so the tables show each once. For the same reason the replay of a whole
// topic changes nothing.
//
// While ClickHouse is unavailable the sink tries again with growing pauses and stays in
// its consumer group. Afterwards it catches up. No other part of the service waits for
// it.
//
// A record that cannot be decoded, or whose entry the journal cannot store, is counted
// and goes to journal.poison (internal/kafka/consume). The sink goes on with the next.
package journal
