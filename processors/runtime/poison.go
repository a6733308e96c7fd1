package runtime

import (
	"log/slog"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a poison record, behind those that it had. Key and value are as
// they were; a value that cannot be produced is missing, and HeaderOmitted says
// how many bytes it had.
const (
	HeaderTopic     = "quittance-topic"
	HeaderPartition = "quittance-partition"
	HeaderOffset    = "quittance-offset"
	HeaderError     = "quittance-error"
	HeaderAttempts  = "quittance-attempts"
	HeaderKind      = "quittance-kind"
	HeaderOmitted   = "quittance-value-omitted"
)

// Kinds of poison, the value of HeaderKind.
const (
	// poisonRecord: an input record.
	poisonRecord = "record"
	// poisonTick: the tick of an entry; topic, key and value are the entry's, the
	// offset is -1.
	poisonTick = "tick"
)

// maxErrorText bounds the text of the error in a header.
const maxErrorText = 4096

// toPoison has rec produced to the poison topic by the transaction, to partition
// 0: order matters there, numbers do not.
func (m *membership) toPoison(t *transaction, rec *kgo.Record, kind string, cause error, attempts int) {
	text := cause.Error()
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	p := &kgo.Record{Topic: m.cfg.PoisonTopic, Partition: 0, Key: rec.Key, Value: rec.Value}
	p.Headers = append(append(p.Headers, rec.Headers...),
		header(HeaderTopic, rec.Topic),
		header(HeaderPartition, strconv.Itoa(int(rec.Partition))),
		header(HeaderOffset, strconv.FormatInt(rec.Offset, 10)),
		header(HeaderError, text),
		header(HeaderAttempts, strconv.Itoa(attempts)),
		header(HeaderKind, kind),
	)
	if attempts >= bareFailures {
		p.Headers = append(p.Headers, header(HeaderOmitted, strconv.Itoa(len(rec.Value))))
		p.Value = nil
	}
	t.poison++
	t.out = append(t.out, p)
	m.log.Error("poison", slog.String("kind", kind), slog.String("topic", rec.Topic), slog.Int("partition", int(rec.Partition)),
		slog.Int64("offset", rec.Offset), slog.Int("attempts", attempts), slog.String("error", text))
}
