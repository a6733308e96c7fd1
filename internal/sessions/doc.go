// Package readmodel is the sessions as Postgres has them, derived from
// checkout.events: the tables, what writes them (Store, used by sinks/readmodel)
// and what reads them (Reader, used by ingress).
//
// # The barrier
//
// A read on any instance shows everything that was acknowledged to anybody before
// the read began. When a processor's transaction has ended, its events lie below
// the high watermark of their partition: they are flushed, with acks from all
// replicas, before the commit. So a read asks the broker for that mark, waits
// until the position that the sink stores with the rows has reached it, and then
// reads the rows. The last stable offset would not do: the commit markers of one
// transaction reach its partitions at different moments.
//
// Positions count control records, because the mark does: after an aborted
// transaction the last record of a partition is a marker that no reader is shown.
//
// One question to the broker serves many reads, but only those that began before
// it was sent: an answer that was under way already may be older than the read.
package sessions
