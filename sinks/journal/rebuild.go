package journal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/internal/tally"
	"quittance/schemas"
)

// rebuildPasses bounds the passes of a rebuild, and rebuildPause is the time between two.
// A pass after the first reads only what was written since. Another pass is needed if an
// event that occurred before the rebuild is written during it.
const (
	rebuildPasses = 5
	rebuildPause  = time.Second
)

// Rebuilt has the result of a rebuild.
type Rebuilt struct {
	// Events, Cases, Attempts and Calls are the numbers of entries that were written. Cases
	// are those of cases.events. Statements is the number of records of statements, lines
	// included, and Reconciliation that of reconciliation.events. Batches is the number of
	// events of batches, which make expected money alone.
	Events, Cases, Attempts, Calls, Statements, Reconciliation, Batches int64
	// Unreadable is the number of records that cannot be decoded or make no valid entry, and of outcomes of
	// deliveries that nothing proves.
	Unreadable int64
	// Lines compare the events in Kafka with those in the journal, for all that occurred
	// before the rebuild. Receipts compare the money of those events with the receipts, by
	// movement instead of status. Expected compares it with the expected money, by state.
	// StatementLines compare the lines of statements, by kind. Findings compare those of the
	// matcher and their ends.
	Lines, Receipts, Expected, StatementLines, Findings []tally.Line
}

// Equal reports whether all sums agree.
func (r Rebuilt) Equal() bool {
	return tally.Equal(r.Lines) && tally.Equal(r.Receipts) && tally.Equal(r.Expected) && tally.Equal(r.StatementLines) && tally.Equal(r.Findings)
}

// Rebuild writes the entries, receipts and expected money of all events, events of cases,
// attempts and calls that Kafka has, the lines of all statements and what the matcher found, and
// compares the sums of all but attempts and calls. It removes no entry: Kafka keeps
// attempts and calls for 90 days only, and the same record makes the same entry, which
// replaces the earlier one. Therefore it may run beside the sink, may be interrupted, and
// may be repeated. now is the service's time.
func (j *Journal) Rebuild(ctx context.Context, now time.Time, progress kafka.Progress) (out Rebuilt, err error) {
	err = j.cfg.Store.Rewriting(ctx, "rebuild", func() error {
		out, err = j.rebuild(ctx, now, progress)
		return err
	})
	return out, err
}

func (j *Journal) rebuild(ctx context.Context, now time.Time, progress kafka.Progress) (out Rebuilt, err error) {
	cl, err := j.cfg.Kafka.Client()
	if err != nil {
		return out, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	sums := &sums{now: now, seen: map[string]bool{}, source: tally.Tally{}, money: tally.Tally{}, expected: tally.Tally{}, lines: tally.Tally{}, findings: tally.Tally{}}
	done := map[string]map[int32]int64{}
	for _, topic := range journal.Topics() {
		done[topic] = map[int32]int64{}
	}
	for pass := 1; ; pass++ {
		for _, topic := range journal.Topics() {
			if err := j.pass(ctx, adm, topic, done[topic], &out, progress, sums.add); err != nil {
				return out, err
			}
		}
		if err := j.compare(ctx, &out, sums); err != nil {
			return out, err
		}
		if out.Equal() || pass == rebuildPasses {
			return out, j.wholeAgain(ctx, adm, done)
		}
		if !consume.Sleep(ctx, rebuildPause) {
			return out, ctx.Err()
		}
	}
}

// wholeAgain moves the positions of a database that was restored from a backup to what was read: its rows are
// there again.
func (j *Journal) wholeAgain(ctx context.Context, adm *kadm.Client, done map[string]map[int32]int64) error {
	committed, err := kafka.Committed(ctx, adm, j.cfg.Kafka.Prefix+Group)
	if err != nil {
		return err
	}
	positions, err := j.cfg.Store.Positions(ctx)
	if err != nil {
		return err
	}
	var whole []journal.Position
	for _, p := range positions {
		o, _ := committed.Lookup(p.Topic, p.Partition)
		to := done[strings.TrimPrefix(p.Topic, j.cfg.Kafka.Prefix)][p.Partition]
		if p.Goal = max(p.Goal, o.At); p.Position < p.Goal && p.Position < to {
			p.Position, p.Goal = to, max(p.Goal, to)
			whole = append(whole, p)
		}
	}
	return j.cfg.Store.SetPositions(ctx, whole...)
}

// sums are the sums of what Kafka has from before now.
type sums struct {
	now                                      time.Time
	seen                                     map[string]bool // what was there before (repeated, repeatedLine)
	source, money, expected, lines, findings tally.Tally
}

// add adds the rows of a record.
func (s *sums) add(of rows) {
	for _, row := range of {
		switch row := row.(type) {
		case *journal.Line:
			if row.ImportedAt.Before(s.now) && !repeatedLine(s.seen, row) {
				s.lines.Add(row.Tally())
			}
		case *journal.Finding:
			if row.At.Before(s.now) {
				s.findings.Add(row.Tally())
			}
		case *journal.Entry:
			if row.Type != journal.EntryTypeEvent || !row.OccurredAt.Before(s.now) || repeated(s.seen, row) {
				return // neither does its money count
			}
			s.source.Add(row.Tally())
		case *journal.Receipt:
			s.money.Add(row.Tally())
		case *journal.Expected:
			if row.OccurredAt.Before(s.now) && !repeatedPayout(s.seen, row) { // that of a batch has no entry
				s.expected.Add(row.Tally())
			}
		}
	}
}

// compare sets the lines of a result to those of the sums in Kafka and in ClickHouse.
func (j *Journal) compare(ctx context.Context, out *Rebuilt, s *sums) error {
	store := j.cfg.Store
	for _, c := range []struct {
		lines *[]tally.Line
		kafka tally.Tally
		read  func(context.Context, time.Time) (tally.Tally, error)
	}{
		{&out.Lines, s.source, store.Tally},
		{&out.Receipts, s.money, store.TallyReceipts},
		{&out.Expected, s.expected, store.TallyExpected},
		{&out.StatementLines, s.lines, store.TallyLines},
		{&out.Findings, s.findings, store.TallyFindings},
	} {
		copied, err := c.read(ctx, s.now)
		if err != nil {
			return err
		}
		*c.lines = tally.Compare(c.kafka, copied)
	}
	return nil
}

// repeated reports whether an entry of the same id and day was there before, which the
// journal shows once. Only an event without a sequence is written several times: a report of
// no known session, or an event of cases.events.
func repeated(seen map[string]bool, e *journal.Entry) bool {
	if e.Sequence > 0 {
		return false
	}
	return again(seen, e.OccurredAt.UTC().Format(time.DateOnly)+e.ID)
}

// repeatedLine reports whether a line of the same content was there before, in an overlapping
// statement, or withdrawn before.
func repeatedLine(seen map[string]bool, l *journal.Line) bool {
	return again(seen, fmt.Sprintf("%s/%t/%s/%s/%d/%t", l.TenantID, l.Livemode, l.Account, l.ID, l.Content, l.Withdrawn))
}

// repeatedPayout reports whether an undecided attempt to pay a line was there before. Its case may be opened several times.
func repeatedPayout(seen map[string]bool, e *journal.Expected) bool {
	if e.Kind != journal.ExpectedUndecided || e.SourceTopic != schemas.Disbursement.Events {
		return false
	}
	return again(seen, fmt.Sprintf("%s/%t", e.Row(), e.Withdrawn))
}

// again notes a key, and reports whether it was there before.
func again(seen map[string]bool, key string) bool {
	before := seen[key]
	seen[key] = true
	return before
}

// pass writes the entries of the records of a topic that no earlier pass has read.
func (j *Journal) pass(ctx context.Context, adm *kadm.Client, topic string, done map[int32]int64, out *Rebuilt, progress kafka.Progress, each func(rows)) error {
	spans, err := kafka.Bounds(ctx, adm, j.cfg.Kafka.Prefix+topic)
	if err != nil {
		return err
	}
	for p, span := range spans {
		span.From = max(span.From, done[p])
		spans[p] = span
	}
	count := map[string]*int64{schemas.TopicEvents: &out.Events, schemas.TopicCases: &out.Cases, schemas.TopicAttempts: &out.Attempts, schemas.TopicCalls: &out.Calls, schemas.TopicStatements: &out.Statements, schemas.TopicReconciliation: &out.Reconciliation, schemas.Disbursement.Events: &out.Batches}[topic]
	written, unreadable, err := consume.ReplaySpans(ctx, j.consumer, topic, spans, false, progress, func(r *kgo.Record) ([]rows, error) {
		out, err := j.decoder.Rows(r)
		if err != nil {
			return nil, err
		}
		each(out)
		return []rows{out}, nil
	}, j.write)
	*count, out.Unreadable = *count+written, out.Unreadable+unreadable
	if err != nil {
		return err
	}
	for p, span := range spans {
		done[p] = max(span.From, span.To)
	}
	return nil
}
