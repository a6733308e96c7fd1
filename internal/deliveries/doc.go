// Package deliveries holds deliveries, their attempts and their destinations. It has
// the types that the sending engine (sinks/delivery), the schedule (sinks/schedule),
// the command line and the portals share, all SQL on their tables, and the
// operations retry, suspend, resume, recover and replay.
//
// A delivery is one event for one destination. Kafka moves deliveries. Postgres
// stores their outcomes and the time of the next attempt. sinks/delivery/DESIGN.md
// describes the whole path.
//
// A Kind of delivery is one Registration: its topics, its rules and the Directory of
// its destinations. This package contains no code for a particular kind.
package deliveries
