package journal

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/schemas/record"
)

// fromReconciliation sets what a record of reconciliation.events adds to the journal.
func (j *Journal) fromReconciliation(r *kgo.Record, out *item) error {
	name, err := j.cfg.Codec.NameOf(r.Value)
	if err != nil {
		return err
	}
	partition, offset, err := sourceOf(r)
	if err != nil {
		return err
	}
	switch name {
	case (*record.DayTotal)(nil).Name():
		var t record.DayTotal
		if err := j.cfg.Codec.Decode(r.Value, &t); err != nil {
			return err
		}
		out.total, err = journal.DayTotalOf(&t, partition, offset)
		return err
	case (*record.MatchRun)(nil).Name():
		var m record.MatchRun
		if err := j.cfg.Codec.Decode(r.Value, &m); err != nil {
			return err
		}
		out.run, err = journal.MatchRunOf(&m, partition, offset)
		return err
	case (*record.Close)(nil).Name():
		var c record.Close
		if err := j.cfg.Codec.Decode(r.Value, &c); err != nil {
			return err
		}
		out.close, err = journal.CloseOf(&c, partition, offset)
		return err
	default:
		var f record.Finding
		if err := j.cfg.Codec.Decode(r.Value, &f); err != nil {
			return err
		}
		out.finding, err = journal.FindingOf(&f, partition, offset)
		return err
	}
}
