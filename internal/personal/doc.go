// Package personal seals citizens' contact data and payers' numbers, so that they can be
// erased from Kafka (docs/design/decisions.md § 15).
//
// Kafka cannot delete a single record. Each value is therefore sealed with a data key of its
// own, which lies in Postgres (table personal_keys), sealed with the master key. Whoever
// deletes the row erases the value from every topic, state, local store, read model and
// copy of them at once:
//
//	ingress ──seal──► checkout.commands ─► checkout.state, checkout.events, collections.requests
//	   │                                          │                  │
//	   └─ data key ─► personal_keys ◄─ open ──────┴ pages            └ sink collect
//	                       ▲
//	                       └─ deleted by: the sink readmodel, at checkout.archived and
//	                          checkout.erased; Erase; Sweep
//
// The address and the variables of a message to a person are sealed in the same way, with the
// message's id in place of the session's. sinks/notify deletes the key of a code when the code
// is sent or has lost its worth.
//
// The content of a disbursement line is sealed in the same way, under the id of the line. Its
// key is kept for 13 months after the end of its batch (LineKept).
//
// The processors neither open nor need the values. Because events delete the keys, a key
// that a restored database brings back is deleted again when the sink readmodel has caught
// up. A rebuild or a replay cannot bring a key back, because no topic has it.
package personal
