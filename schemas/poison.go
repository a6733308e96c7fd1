package schemas

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Headers of a poison record. They follow the headers of the original record.
const (
	HeaderTopic     = "quittance-topic"
	HeaderPartition = "quittance-partition"
	HeaderOffset    = "quittance-offset"
	HeaderError     = "quittance-error"
)

// maxErrorText bounds the text of the error in a header.
const maxErrorText = 4096

// Poison returns the record for a poison topic (full name) in place of r, which cannot be
// processed because of cause. Key, value and headers of r are kept. The headers above and
// then more are appended.
func Poison(topic string, r *kgo.Record, cause error, more ...kgo.RecordHeader) *kgo.Record {
	text := cause.Error()
	return &kgo.Record{
		Topic: topic, Partition: 0, Key: r.Key, Value: r.Value,
		Headers: append(append(slices.Clone(r.Headers),
			Header(HeaderTopic, r.Topic), Header(HeaderPartition, strconv.Itoa(int(r.Partition))),
			Header(HeaderOffset, strconv.FormatInt(r.Offset, 10)), Header(HeaderError, text[:min(len(text), maxErrorText)])), more...),
	}
}

// Header returns a header with a text value.
func Header(key, value string) kgo.RecordHeader {
	return kgo.RecordHeader{Key: key, Value: []byte(value)}
}
