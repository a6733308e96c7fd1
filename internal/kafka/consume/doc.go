// Package consume has the loop of every consumer that reads Kafka and writes to another
// system: poll, work, move the position. It has two forms.
//
// # Batch
//
// Batch passes the decoded records of one poll to the caller, with the moves of the
// positions that belong to them. The caller writes both in one transaction, or it writes
// the items only and leaves the positions to the consumer group.
//
//   - Stored positions (Config.Positions): reading starts at the stored positions, and the
//     offsets of the group have no effect. A move names the position from which it starts.
//     If two members own a partition for a moment, the second one finds that the position
//     has moved. It writes nothing and reads again from the stored position.
//   - Positions of the group: offsets are committed after the write. A crash between the
//     write and the commit repeats a batch.
//
// A failed write is repeated with growing pauses until it succeeds: the partitions are
// rewound to the last position and read again. The group may rebalance between two tries.
// ErrRefused says that a record caused the failure. The batch is then halved until the
// record is found and set aside.
//
// # Each
//
// Each passes single records to long calls, many at the same time. The calls finish in any
// order. A Watermark commits an offset only when all records before it are done.
//
// # Poison
//
// A record that cannot be decoded, or that is refused, is written to the poison topic
// before the position passes it (schemas.Poison). A repetition may write it twice. If the
// error of decoding wraps neither schemas.ErrUndecodable nor ErrRefused, another service
// caused it, for instance a schema registry that cannot be reached: decoding is repeated.
//
// The callers never receive records of aborted transactions.
package consume
