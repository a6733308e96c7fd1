// Package output writes the records of a decision into the transaction of a processor.
package output

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime"
	"quittance/schemas"
	"quittance/schemas/record"
)

// Topology gives the destination of records. *kafka.Topology of internal/kafka implements it.
type Topology interface {
	// Name returns a topic's name on the broker.
	Name(topic string) string
	// Partition returns the partition of a topic's records with the key.
	Partition(topic, key string) int32
}

// Tx is the part of runtime.Tx that a Writer needs.
type Tx interface {
	Partition() int32
	Emit(r *kgo.Record)
}

// Writer writes the records of one decision. It keeps the first error, after which it writes nothing; the caller must then
// drop what it has decided.
type Writer struct {
	codec    *schemas.Codec
	topology Topology
	tx       Tx
	err      error
}

// New returns the writer of a decision.
func New(codec *schemas.Codec, topology Topology, tx Tx) *Writer {
	return &Writer{codec: codec, topology: topology, tx: tx}
}

// Emit writes a record to the partition of its key.
func (w *Writer) Emit(topic, key string, r record.Record) {
	w.EmitTo(topic, w.topology.Partition(topic, key), key, r)
}

// EmitTo writes a record to a partition.
func (w *Writer) EmitTo(topic string, partition int32, key string, r record.Record) {
	if out := w.record(topic, partition, key, r); out != nil {
		w.tx.Emit(out)
	}
}

// record encodes a record; nil after an error.
func (w *Writer) record(topic string, partition int32, key string, r record.Record) *kgo.Record {
	if w.err != nil {
		return nil
	}
	b, err := w.codec.Encode(r)
	if err != nil {
		w.Fail(err)
		return nil
	}
	return &kgo.Record{Topic: w.topology.Name(topic), Partition: partition, Key: []byte(key), Value: b}
}

// EmitSigned is Emit for a record that its reader believes with a proof only: sign adds it.
func (w *Writer) EmitSigned(topic, key string, r record.Record, sign func(*kgo.Record)) {
	if out := w.record(topic, w.topology.Partition(topic, key), key, r); out != nil {
		sign(out)
		w.tx.Emit(out)
	}
}

// EmitHere writes a record to the partition of the command: what belongs to the same agencies stays in their order.
func (w *Writer) EmitHere(topic, key string, r record.Record) {
	w.EmitTo(topic, w.tx.Partition(), key, r)
}

// Fail keeps the first error, as one that a retry cannot mend: it is a fault of the program.
func (w *Writer) Fail(err error) {
	if err != nil && w.err == nil {
		w.err = runtime.Poison(err)
	}
}

// Err returns the first error.
func (w *Writer) Err() error { return w.err }
