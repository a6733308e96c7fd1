// Package journal writes the reconciliation journal: it reads what happened from
// Kafka (checkout.events, deliveries.attempts) and inserts it into ClickHouse
// (the table of package reconciliation) in batches.
//
// # What it promises
//
// Every committed record ends up in the journal as one entry, whatever dies on
// the way. Offsets are committed after the insert, so a crash between the two
// inserts a batch twice; entries have the same id and content both times, and
// the journal shows one. The same makes a replay of a whole topic harmless.
//
// While ClickHouse is away the sink keeps its batch, tries again with growing
// pauses, stays in its consumer group, and catches up afterwards. Nothing else
// of the service waits for it.
//
// A batch that ClickHouse refuses for what is in it goes in by halves until the
// culprits are found. Before one is set aside, ClickHouse has refused it twice and
// taken another entry in between: a server that refuses everything is waited for.
//
// A record that cannot be decoded, or whose entry the journal cannot keep, goes to
// journal.poison as it was, with its position and the reason as headers (topic,
// partition, offset, error), is counted, and the sink goes on.
package journal
