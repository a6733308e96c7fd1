// Package sessions is the read model: sessions as Postgres holds them, derived from
// checkout.events. Store writes the tables (sinks/readmodel uses it), Reader reads
// them (ingress uses it). References hands out the numbers of new sessions.
//
// A read on any instance shows everything that was acknowledged to anybody before
// the read began: package internal/kafka/barrier says how. Positions count control
// records, because the high watermark counts them: after an aborted transaction the
// last record of a partition is a marker that no reader receives.
package sessions
