// Package runtime runs a Processor over the partitions of a Kafka topic with
// local state: consume, decide, and in one Kafka transaction write the new state,
// the records that come of it and the position in the input. It knows nothing of
// payments.
//
// What an input record did is there once and completely, or not at all, whatever
// dies when. DESIGN.md says how, and which rules that rests on.
package runtime
