// Package calls is the loop of the sinks that have an operator move money or ask it about a
// payment: one record is one request, calls are made until the operator has answered or it
// is too late, and the answer goes to the processor as a signed command. A sink adds what is
// its own: the form of its records, the call itself, and what an answer means (Request).
//
// The loop makes no decision about money and stores nothing. A request is done, and its
// offset may be committed, when the broker has the report or when there is nothing to
// report.
//
// # The one rule
//
// A request whose outcome is unknown is never taken for one that failed. Whoever cannot
// tell whether the operator has it asks by the same id:
//
//   - A record that was read before may have been sent by its earlier reader, which died
//     between the call and the commit, or lost the partition.
//   - After an uncertain error (connector.Uncertain) the loop enquires before it asks again,
//     and the answer ends the asking if Request.Settles.
//   - After Request.NotAfter nothing is sent. A request that may have been sent is enquired
//     about. Only the first reader of a record that was surely not sent, and that waited
//     until it is too late by every member's clock, reports that it never was.
//
// # Faults
//
//   - The request was not sent, the operator answers 5xx or does not answer: the loop tries
//     again with the same id after a pause, until NotAfter.
//   - The operator does not answer enquiries either: nothing is reported. The processor
//     enquires on its own schedule.
//   - Kafka is unavailable: reports wait, and offsets stay.
//
// # Bounds
//
// Requests for money and enquiries have separate slots, so that many enquiries, which wait
// for the operator's rate, never delay a payment (slots). When a later enquiry of the same
// payment arrives, earlier ones that still wait for their turn are dropped (newest).
//
// # Partitions that move
//
// When a partition moves to another member, calls under way are finished and reported. No
// further request for money begins: the new owner reads the record and decides by its own
// clock.
package calls
