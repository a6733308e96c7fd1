// Package consume owns the loop of everything that reads Kafka and writes
// elsewhere: poll, work, move the position. It has two shapes.
//
// # Batch
//
// Batch hands over what one poll returned, decoded, with the moves of the
// positions that go with it. The caller writes both in one transaction, or writes
// the items alone and leaves the positions to the consumer group.
//
//   - Positions of a noun (Config.Positions): reading starts where the noun says,
//     whatever the group has committed. A move names the position that it starts
//     from. Of two members that both believe to own a partition for a moment, one
//     finds the position moved, writes nothing and reads again from where it is.
//   - Positions of the group: offsets are committed after the write. A crash
//     between the two repeats a batch.
//
// A write that fails is repeated with growing pauses until it succeeds: the
// partitions are rewound to the last position and read again. Between two tries
// the group may rebalance. A write that ends with ErrRefused failed because of a
// record: the batch is halved until that record is found and set aside.
//
// # Each
//
// Each hands over single records, many at once, to calls that take long. Records
// finish in any order; a Watermark commits only what is finished without a gap.
//
// # Poison
//
// A record that cannot be decoded, or that is refused, is written to the poison
// topic before the position passes it: key, value and headers as they were, and
// behind them its place and the error. It may stand there twice, never not at all.
// An error of decoding that does not wrap schemas.ErrUndecodable or ErrRefused is
// a fault of the surroundings, such as a schema registry that is away: the record
// is tried again.
//
// Records of aborted transactions are never seen.
package consume
