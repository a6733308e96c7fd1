package journal

import (
	"fmt"
	"strconv"
	"time"

	"quittance/schemas/record"
)

// FindingOf returns the row of a part of a finding. A record with a wrong day is an error that wraps
// ErrInvalidEntry, here and below.
func FindingOf(f *record.Finding, partition int32, offset int64) (*Finding, error) {
	day, err := dayOf(f.Day)
	return &Finding{
		ID: f.FindingID, State: f.State, Type: f.Type, Hop: f.Hop, Stage: f.Stage, Kind: f.Kind, Reason: f.Reason, Action: f.Action, Key: f.Key, Day: day,
		TenantID: f.TenantID, Livemode: f.Livemode, Account: f.Account, Currency: f.Currency, Amount: f.Amount,
		Sources: f.Sources, Lines: f.Lines, NotTaken: f.NotTaken, Part: uint32(f.Part), Parts: uint32(f.Parts), Rule: uint32(f.Rule), //nolint:gosec // counts
		RunID: f.RunID, CaseID: f.CaseID, Resolution: f.Resolution, At: f.At, SourcePartition: partition, SourceOffset: offset,
	}, err
}

// DayTotalOf returns the row of the sums of a day.
func DayTotalOf(t *record.DayTotal, partition int32, offset int64) (*DayTotal, error) {
	day, err := dayOf(t.Day)
	return &DayTotal{
		Day: day, TenantID: t.TenantID, Livemode: t.Livemode, Account: t.Account, Currency: t.Currency,
		Sources: t.Sources, SourcesAmount: t.SourcesAmount, Lines: t.Lines, LinesAmount: t.LinesAmount, LinesFee: t.LinesFee,
		OpenSources: t.OpenSources, OpenSourcesAmount: t.OpenSourcesAmount, OpenLines: t.OpenLines, OpenLinesAmount: t.OpenLinesAmount,
		RunID: t.RunID, At: t.At, SourcePartition: partition, SourceOffset: offset,
	}, err
}

// LineOf returns the row of a line of a statement. That of a withdrawn line has the opposite amounts.
func LineOf(l *record.StatementLine, partition int32, offset int64) (*Line, error) {
	day, err := dayOf(l.Day)
	if err != nil {
		return nil, err
	}
	var at *time.Time
	if !l.At.IsZero() {
		at = &l.At
	}
	out := &Line{
		ID: l.LineID, LocalDay: day, At: at, TenantID: l.TenantID, Livemode: l.Livemode, Account: l.Account, StatementID: l.StatementID, ImportID: l.ImportID, ImportedAt: l.ImportedAt,
		Number: uint64(l.Number), Occurrence: uint32(l.Occurrence), SourceLine: uint32(l.SourceLine), SourceColumn: uint32(l.SourceColumn), //nolint:gosec // counts
		Kind: l.Kind, Currency: l.Currency, Amount: l.Amount, FeeAmount: l.Fee, NetAmount: l.Amount - l.Fee, Reversal: l.Reversal,
		OperatorRef: l.OperatorRef, PaymentRef: l.PaymentRef, NoticeRef: l.NoticeRef, Batch: l.Batch, DetailsUnused: uint32(l.DetailsUnused), //nolint:gosec // a count
		Life: uint32(l.Life), Withdrawn: l.Withdrawn, SourcePartition: partition, SourceOffset: offset, Version: ExpectedVersion(offset), //nolint:gosec // a count
	}
	if out.Content = ContentOf(out); out.Withdrawn {
		out.Amount, out.FeeAmount, out.NetAmount = -out.Amount, -out.FeeAmount, -out.NetAmount
	}
	return out, nil
}

// MatchRunOf returns the row of a run of the matcher. A record with a wrong day or watermark is an
// error that wraps ErrInvalidEntry.
func MatchRunOf(m *record.MatchRun, partition int32, offset int64) (*MatchRun, error) {
	out := &MatchRun{
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
			return nil, fmt.Errorf("%w: %s has the watermark %q", ErrInvalidEntry, id, text)
		}
		out[at] = n
	}
	return out, nil
}

// CloseOf returns the row of a close. A record with a wrong day or watermark is an error that wraps
// ErrInvalidEntry.
func CloseOf(c *record.Close, partition int32, offset int64) (*Close, error) {
	out := &Close{
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
		ChainVersion: uint32(c.ChainVersion), ChainRows: c.ChainRows, ChainRoot: c.ChainRoot, MoneyOf: c.MoneyOf, Settling: c.Settling, //nolint:gosec // a version
		Signature: c.Signature, SignedWith: c.SignedWith, Reports: c.Reports,
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
		return day, fmt.Errorf("%w: the day %q", ErrInvalidEntry, text)
	}
	return day, nil
}
