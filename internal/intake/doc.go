// Package intake imports statements of accounts: it validates a file, writes its lines to
// Kafka once, and keeps what the next file must continue. DESIGN.md has the protocol between
// Postgres and Kafka.
//
// Package statements reads the files, package registry has the accounts. The sink journal
// writes the lines of the topic reconciliation.statements to ClickHouse.
package intake
