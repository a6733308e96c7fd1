package journal

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/schemas/record"
)

// ofReconciliation returns the row of a record of reconciliation.events.
func (j *Journal) ofReconciliation(r *kgo.Record) (rows, error) {
	name, err := j.cfg.Codec.NameOf(r.Value)
	if err != nil {
		return nil, err
	}
	switch name {
	case (*record.DayTotal)(nil).Name():
		return rowOf(j, r, journal.DayTotalOf)
	case (*record.MatchRun)(nil).Name():
		return rowOf(j, r, journal.MatchRunOf)
	case (*record.Close)(nil).Name():
		return rowOf(j, r, journal.CloseOf)
	default:
		return rowOf(j, r, journal.FindingOf)
	}
}

// rowOf decodes a record and returns the row that of makes of it and of where it stands.
func rowOf[R any, P interface {
	*R
	record.Record
}, T journal.Row](j *Journal, r *kgo.Record, of func(P, int32, int64) (T, error)) (rows, error) {
	var value R
	if err := j.cfg.Codec.Decode(r.Value, P(&value)); err != nil {
		return nil, err
	}
	partition, offset, err := sourceOf(r)
	if err != nil {
		return nil, err
	}
	row, err := of(&value, partition, offset)
	return rows{row}, err
}
