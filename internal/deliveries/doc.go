// Package deliveries is the noun of deliveries, their attempts and their
// destinations: the types that the sending engine (sinks/delivery), the schedule
// (sinks/schedule), the command line and the portals share, all SQL on their
// tables, and the operations retry, suspend, resume, recover and replay.
//
// A Kind of delivery is one Registration: its topics, its rules and the
// Directory of its destinations. Nothing here knows a kind by its name.
//
// A delivery is one event for one destination. Kafka moves deliveries; Postgres
// stores their outcomes and when the next attempt is due. sinks/delivery/DESIGN.md
// describes the whole path.
package deliveries
