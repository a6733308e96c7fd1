// Package store is the local copy of one partition's state: a Pebble database without a
// write-ahead log, restored from a changelog topic in Kafka.
//
// The changelog serves as the write-ahead log. Each batch contains the changelog position
// up to which the copy is complete, in the same atomic write. After a crash the copy is
// therefore a consistent prefix of the changelog, and a restore continues from its
// position. Apply only changes that are committed in Kafka: a copy must never be ahead of
// its changelog.
//
// The copy also holds an index of the entries' deadlines, written in the same batches.
// Opening a copy with millions of entries reads none of them.
//
// All data is derived from the changelog. Open discards a copy that does not fit (another
// format, another topic, damaged, too old) and reports the reason.
package store
