// Package runtime runs a Processor over the partitions of a Kafka topic with local
// state. It consumes input records and has the Processor decide them. One Kafka
// transaction then writes the new state, the emitted records and the input position.
// The package knows nothing about payments.
//
// The effects of an input record appear exactly once and completely, even if a process
// fails at any moment. DESIGN.md explains the rules behind this guarantee.
package runtime
