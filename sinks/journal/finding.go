package journal

import (
	"fmt"
	"strconv"
	"time"

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
		day, err := dayOf(t.Day)
		out.total = &journal.DayTotal{
			Day: day, TenantID: t.TenantID, Livemode: t.Livemode, Account: t.Account, Currency: t.Currency,
			Sources: t.Sources, SourcesAmount: t.SourcesAmount, Lines: t.Lines, LinesAmount: t.LinesAmount, LinesFee: t.LinesFee,
			OpenSources: t.OpenSources, OpenSourcesAmount: t.OpenSourcesAmount, OpenLines: t.OpenLines, OpenLinesAmount: t.OpenLinesAmount,
			RunID: t.RunID, At: t.At, SourcePartition: partition, SourceOffset: offset,
		}
		return err
	case (*record.MatchRun)(nil).Name():
		var m record.MatchRun
		if err := j.cfg.Codec.Decode(r.Value, &m); err != nil {
			return err
		}
		out.run, err = fromRun(&m, partition, offset)
		return err
	case (*record.Close)(nil).Name():
		var c record.Close
		if err := j.cfg.Codec.Decode(r.Value, &c); err != nil {
			return err
		}
		out.close, err = fromClose(&c, partition, offset)
		return err
	default:
		var f record.Finding
		if err := j.cfg.Codec.Decode(r.Value, &f); err != nil {
			return err
		}
		day, err := dayOf(f.Day)
		out.finding = &journal.Finding{
			ID: f.FindingID, State: f.State, Type: f.Type, Hop: f.Hop, Stage: f.Stage, Kind: f.Kind, Reason: f.Reason, Action: f.Action, Key: f.Key, Day: day,
			TenantID: f.TenantID, Livemode: f.Livemode, Account: f.Account, Currency: f.Currency, Amount: f.Amount,
			Sources: f.Sources, Lines: f.Lines, NotTaken: f.NotTaken, Part: uint32(f.Part), Parts: uint32(f.Parts), Rule: uint32(f.Rule), //nolint:gosec // counts
			RunID: f.RunID, CaseID: f.CaseID, Resolution: f.Resolution, At: f.At, SourcePartition: partition, SourceOffset: offset,
		}
		return err
	}
}

func fromRun(m *record.MatchRun, partition int32, offset int64) (*journal.MatchRun, error) {
	out := &journal.MatchRun{
		ID: m.RunID, TenantID: m.TenantID, Livemode: m.Livemode, Account: m.Account, Rule: uint32(m.Rule), //nolint:gosec // a version
		Rows: m.Rows, Matches: m.Matches, Proposals: m.Proposals, Breaks: m.Breaks, Ended: m.Ended, MoneyOf: m.MoneyOf, At: m.At, SourcePartition: partition, SourceOffset: offset,
	}
	var err error
	if out.Watermarks, err = watermarksOf(m.RunID, m.Watermarks); err != nil {
		return nil, err
	}
	if out.Today, err = dayOf(m.Today); err != nil {
		return nil, err
	}
	out.Horizon, err = dayOf(m.Horizon)
	return out, err
}

func watermarksOf(id string, texts map[string]string) (map[string]int64, error) {
	out := make(map[string]int64, len(texts))
	for at, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %s has the watermark %q", journal.ErrInvalidEntry, id, text)
		}
		out[at] = n
	}
	return out, nil
}

func fromClose(c *record.Close, partition int32, offset int64) (*journal.Close, error) {
	out := &journal.Close{
		ID: c.CloseID, TenantID: c.TenantID, Livemode: c.Livemode, Account: c.Account, State: c.State, Reason: c.Reason, CaseID: c.CaseID, Digest: c.Digest, Previous: c.Previous,
		Rule: uint32(c.Rule), Statements: c.Statements, Currency: c.Currency, //nolint:gosec // a version
		SourcesStart:          c.SourcesStart,
		SourcesStartAmount:    c.SourcesStartAmount,
		SourcesNew:            c.SourcesNew,
		SourcesNewAmount:      c.SourcesNewAmount,
		SourcesMatched:        c.SourcesMatched,
		SourcesMatchedAmount:  c.SourcesMatchedAmount,
		SourcesResolved:       c.SourcesResolved,
		SourcesResolvedAmount: c.SourcesResolvedAmount,
		SourcesEnd:            c.SourcesEnd,
		SourcesEndAmount:      c.SourcesEndAmount,
		LinesStart:            c.LinesStart,
		LinesStartAmount:      c.LinesStartAmount,
		LinesNew:              c.LinesNew,
		LinesNewAmount:        c.LinesNewAmount,
		LinesMatched:          c.LinesMatched,
		LinesMatchedAmount:    c.LinesMatchedAmount,
		LinesResolved:         c.LinesResolved,
		LinesResolvedAmount:   c.LinesResolvedAmount,
		LinesEnd:              c.LinesEnd,
		LinesEndAmount:        c.LinesEndAmount,
		OpenBreaks:            c.OpenBreaks, OpenBreaksAmount: c.OpenBreaksAmount, OpenBreaksDigest: c.OpenBreaksDigest, Corrections: c.Corrections,
		At: c.At, SourcePartition: partition, SourceOffset: offset,
	}
	var err error
	if out.Watermarks, err = watermarksOf(c.CloseID, c.Watermarks); err != nil {
		return nil, err
	}
	if out.FromDay, err = dayOf(c.FromDay); err != nil {
		return nil, err
	}
	out.ToDay, err = dayOf(c.ToDay)
	return out, err
}

func dayOf(text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, fmt.Errorf("%w: the day %q", journal.ErrInvalidEntry, text)
	}
	return day, nil
}
