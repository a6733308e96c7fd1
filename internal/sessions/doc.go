// Package sessions is the read model: sessions in Postgres, derived from
// checkout.events. Sink readmodel writes the tables with Store. Ingress reads them with
// Reader. References issues the reference numbers of new sessions.
//
// A read on any instance shows everything that was acknowledged to any caller before the
// read began (see internal/kafka/barrier). Positions count control records, because the
// high watermark counts them: after an aborted transaction the last record of a
// partition is a marker that no reader receives.
package sessions
