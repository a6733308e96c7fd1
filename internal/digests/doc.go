// Package digests remembers what members of staff are told by e-mail: proposals that wait for
// their approval, ERPs and operators that do not answer. sinks/notify finds these things and
// sends the messages; this package decides what is said when.
//
//	window begins ──► Make: one transaction ──► digests ──► Tell ──► notify.Sender
//	                        │                                 │
//	                        └─ digest_windows, digest_items   └─ sent_at
//
// A window is 15 minutes of the service's clock, aligned to the hour. The instance that inserts
// the window makes all digests of it, and records in the same transaction what they say. Others
// find the window and do nothing. A window during which no instance ran is not made up for: the
// next one says what is still there.
//
// A digest that is made waits in its row until Kafka has the message. An instance that ends
// between the two leaves it to the next one, which sends the same message: its id is that of the
// member of staff and the window, and an accepted message is not sent again.
//
// # What is said
//
// An Item is said in the first window that finds it, and again when it is still there Repeat
// after that. An outage that ends and begins again is another item. Nobody gets more than PerDay
// digests in 24 hours: what is not said then stays new, and a later digest has it.
//
// # Operators
//
// Nothing in Postgres said whether an operator answers: the sink collect stores nothing, and the
// journal is in ClickHouse, which the sink notify does not need. Note therefore keeps a row for
// each operator and mode, made of collections.calls, and another one made of disbursements.calls: the
// last answer, and the first and the last call without one since. An answer that says no is an answer.
package digests
