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

// fromStatements returns the line of a record of reconciliation.statements; nil for a
// statement, whose lines say all that the journal keeps.
func (j *Journal) fromStatements(r *kgo.Record) (*journal.Line, error) {
	name, err := j.cfg.Codec.NameOf(r.Value)
	if err != nil {
		return nil, err
	}
	if name == (*record.Statement)(nil).Name() {
		var s record.Statement
		return nil, j.cfg.Codec.Decode(r.Value, &s)
	}
	var l record.StatementLine
	if err := j.cfg.Codec.Decode(r.Value, &l); err != nil {
		return nil, err
	}
	return fromLine(&l, r)
}

// fromLine returns the row of a line.
func fromLine(l *record.StatementLine, r *kgo.Record) (*journal.Line, error) {
	day, err := dayOf(l.Day)
	if err != nil {
		return nil, err
	}
	partition, offset, err := sourceOf(r)
	if err != nil {
		return nil, err
	}
	out := &journal.Line{
		ID: l.LineID, LocalDay: day, At: optional(l.At), TenantID: l.TenantID, Livemode: l.Livemode, Account: l.Account, StatementID: l.StatementID, ImportID: l.ImportID, ImportedAt: l.ImportedAt,
		Number: uint64(l.Number), Occurrence: uint32(l.Occurrence), SourceLine: uint32(l.SourceLine), SourceColumn: uint32(l.SourceColumn), //nolint:gosec // counts
		Kind: l.Kind, Currency: l.Currency, Amount: l.Amount, FeeAmount: l.Fee, NetAmount: l.Amount - l.Fee, Reversal: l.Reversal,
		OperatorRef: l.OperatorRef, PaymentRef: l.PaymentRef, NoticeRef: l.NoticeRef, Batch: l.Batch, DetailsUnused: uint32(l.DetailsUnused), //nolint:gosec // a count
		SourcePartition: partition, SourceOffset: offset, Version: journal.ExpectedVersion(offset),
	}
	out.Content = journal.ContentOf(out)
	return out, nil
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
