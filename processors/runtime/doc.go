// Package runtime runs a Processor over the partitions of a Kafka topic with
// local state: consume, decide, and in one Kafka transaction write the new state,
// the records that come of it and the position in the input. It knows nothing of
// payments.
//
// The effects of an input record appear once and completely, or not at all, whichever
// process fails at any moment. DESIGN.md explains how, and the rules for this.
package runtime
