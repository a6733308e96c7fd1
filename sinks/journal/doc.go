// Package journal writes the reconciliation journal: it reads checkout.events and
// deliveries.attempts from Kafka and inserts them into ClickHouse in batches
// (internal/journal).
//
// # What it promises
//
// Every committed record becomes one entry of the journal, whatever process dies
// on the way. Offsets are committed after the insert. A crash between the two
// inserts a batch twice; entries have the same id and content both times, and the
// journal shows one. For the same reason a replay of a whole topic does no harm.
//
// While ClickHouse is away the sink tries again with growing pauses, stays in its
// consumer group, and catches up afterwards. Nothing else of the service waits for
// it.
//
// A record that cannot be decoded, or whose entry the journal cannot keep, goes to
// journal.poison (internal/kafka/consume), is counted, and the sink goes on.
package journal
