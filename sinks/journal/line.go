package journal

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/schemas"
	"quittance/schemas/record"
)

// ofStatement returns the line of a record of reconciliation.statements; nothing for a
// statement, whose lines say all that the journal keeps.
func (j *Journal) ofStatement(r *kgo.Record) (rows, error) {
	name, err := j.cfg.Codec.NameOf(r.Value)
	if err != nil {
		return nil, err
	}
	if name == (*record.Statement)(nil).Name() {
		var s record.Statement
		return nil, j.cfg.Codec.Decode(r.Value, &s)
	}
	return rowOf(j, r, journal.LineOf)
}

// sourceOf returns where a record stands in its topic. A poison record names the original.
func sourceOf(r *kgo.Record) (partition int32, offset int64, err error) {
	partition, offset = r.Partition, r.Offset
	for _, h := range r.Headers {
		switch h.Key {
		case schemas.HeaderOffset:
			var failed error
			offset, failed = strconv.ParseInt(string(h.Value), 10, 64)
			err = errors.Join(err, failed)
		case schemas.HeaderPartition:
			n, failed := strconv.ParseInt(string(h.Value), 10, 32)
			partition, err = int32(n), errors.Join(err, failed)
		}
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: its source: %w", journal.ErrInvalidEntry, err)
	}
	return partition, offset, nil
}
