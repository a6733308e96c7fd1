// Package store is the local copy of one partition's state: a Pebble database
// without a write-ahead log behind a changelog topic in Kafka.
//
// The changelog is the write-ahead log. Every batch carries the position in the
// changelog up to which the copy is complete, in the same atomic write, so what
// survives a crash is a consistent prefix of the changelog and a restore goes on
// from there. Nothing may be applied that is not committed in Kafka: a copy is
// then behind its changelog or level with it, never ahead.
//
// Beside the entries it keeps an index of their deadlines, in the same batches:
// opening a copy of millions of entries reads none of them.
//
// Everything in it is derived. A copy that does not fit (another format, another
// topic, damaged, too old) is discarded by Open, which says so.
package store
