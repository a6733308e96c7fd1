package journal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/record"
)

const (
	defaultBatchSize     = 10_000
	defaultBatchWait     = time.Second
	defaultInsertTimeout = time.Minute
	longestPause         = 10 * time.Second
)

// Config configures a Journal.
type Config struct {
	// Kafka is the broker and the installation on it; required.
	Kafka kafka.Config
	// Codec decodes records; required.
	Codec *schemas.Codec
	// Store writes entries; required.
	Store *journal.Store
	// BatchSize is the largest number of records in a batch; 10,000 when zero.
	BatchSize int
	// BatchWait is the time that a batch waits for more records after its first; a
	// second when zero. Few big inserts suit ClickHouse.
	BatchWait time.Duration
	// InsertTimeout bounds one try to insert; a minute when zero.
	InsertTimeout time.Duration
	// Log and Metrics are required.
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Group is the consumer group of the sink.
const Group = "journal"

// Topics returns what the sink reads.
func Topics() []string {
	return []string{schemas.TopicEvents, schemas.TopicCases, schemas.TopicAttempts, schemas.TopicCalls, schemas.TopicStatements, schemas.TopicReconciliation}
}

// Journal is the sink. Any number of them share the work.
type Journal struct {
	cfg             Config
	consumer        *consume.Consumer
	batch, duration prometheus.Histogram
	entries         *prometheus.CounterVec // type
	receipts        *prometheus.CounterVec // movement
	expected        *prometheus.CounterVec // kind
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*Journal, error) {
	if cfg.Codec == nil || cfg.Store == nil || cfg.Metrics == nil {
		return nil, errors.New("journal: Codec, Store and Metrics are required")
	}
	with := promauto.With(cfg.Metrics)
	j := &Journal{
		cfg: cfg,
		batch: with.NewHistogram(prometheus.HistogramOpts{
			Name: "quittance_journal_batch_entries", Help: "Entries of a batch.",
			Buckets: []float64{1, 10, 100, 500, 1000, 2000, 5000, 10000, 20000},
		}),
		duration: with.NewHistogram(prometheus.HistogramOpts{
			Name: "quittance_journal_insert_duration_seconds", Help: "Duration of inserts that succeeded.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}),
		entries: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_journal_entries_total", Help: "Entries inserted. An entry that is inserted again is counted again.",
		}, []string{"type"}),
	}
	for _, t := range journal.EntryTypes {
		j.entries.WithLabelValues(t)
	}
	j.receipts = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_journal_receipts_total", Help: "Receipts inserted. A receipt that is inserted again is counted again.",
	}, []string{"movement"})
	for _, m := range journal.Movements {
		j.receipts.WithLabelValues(m)
	}
	j.expected = with.NewCounterVec(prometheus.CounterOpts{
		Name: "quittance_journal_expected_total", Help: "Rows of expected money inserted. A row that is inserted again is counted again.",
	}, []string{"kind"})
	for _, k := range journal.ExpectedKinds {
		j.expected.WithLabelValues(k)
	}
	var err error
	j.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: Group, Topics: Topics(), Poison: schemas.TopicPoisonJournal,
		AtOnce: cmp.Or(cfg.BatchSize, defaultBatchSize), Wait: cmp.Or(cfg.BatchWait, defaultBatchWait), Timeout: cmp.Or(cfg.InsertTimeout, defaultInsertTimeout),
		Pause: longestPause, Log: cfg.Log,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_journal_poison_total", Help: "Records that cannot be decoded or kept.",
		}),
		Failures: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_journal_insert_errors_total", Help: "Inserts that failed and were tried again.",
		}),
	})
	if err != nil {
		return nil, err
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quittance_journal_lag_seconds", Help: "Age of the oldest record read that is not in the journal yet; 0 when there is none.",
	}, j.consumer.Lag)
	return j, nil
}

// Run writes the journal until ctx ends, then returns nil. It first finishes an insert
// under way, within a few seconds. It returns an error only when it could not begin.
func (j *Journal) Run(ctx context.Context) error {
	return consume.Batch(ctx, j.consumer, j.decode, j.insert)
}

// item is what a record adds to the journal: an entry with its receipts and expected money, a
// line, a finding, the sums of a day, or a run. A statement adds nothing.
type item struct {
	entry    *journal.Entry
	receipts []journal.Receipt
	expected []journal.Expected
	line     *journal.Line
	finding  *journal.Finding
	total    *journal.DayTotal
	run      *journal.MatchRun
	close    *journal.Close
}

// decode returns the item of a record. The errors schemas.ErrUndecodable and
// journal.ErrInvalidEntry are permanent.
func (j *Journal) decode(r *kgo.Record) (out item, err error) {
	switch topic := strings.TrimPrefix(r.Topic, j.cfg.Kafka.Prefix); topic {
	case schemas.TopicEvents, schemas.TopicCases:
		var e record.Event
		if err := j.cfg.Codec.Decode(r.Value, &e); err != nil {
			return out, err
		}
		out.entry = new(fromEvent(&e))
		if topic == schemas.TopicEvents { // an event of cases.events may be written twice
			out.entry.SourcePartition, out.entry.SourceOffset = r.Partition, r.Offset
		}
		if out.receipts, err = journal.ReceiptsOf(&e); err != nil {
			return out, err
		}
		if out.expected, err = journal.ExpectedOf(&e); err != nil {
			return out, err
		}
		for i := range out.expected {
			x := &out.expected[i]
			x.SourceTopic, x.SourcePartition, x.SourceOffset, x.Version = topic, r.Partition, r.Offset, journal.ExpectedVersion(r.Offset)
		}
	case schemas.TopicCalls:
		var c record.Call
		if err := j.cfg.Codec.Decode(r.Value, &c); err != nil {
			return out, err
		}
		out.entry = new(fromCall(&c))
	case schemas.TopicStatements:
		if out.line, err = j.fromStatements(r); err != nil {
			return out, err
		}
	case schemas.TopicReconciliation:
		if err := j.fromReconciliation(r, &out); err != nil {
			return out, err
		}
	default:
		var a record.Attempt
		if err := j.cfg.Codec.Decode(r.Value, &a); err != nil {
			return out, err
		}
		out.entry = new(fromAttempt(&a))
	}
	return out, out.validate()
}

func (i *item) validate() error {
	for r := range i.receipts {
		if err := i.receipts[r].Validate(); err != nil {
			return err
		}
	}
	for x := range i.expected {
		if err := i.expected[x].Validate(); err != nil {
			return err
		}
	}
	switch {
	case i.line != nil:
		return i.line.Validate()
	case i.finding != nil:
		return i.finding.Validate()
	case i.total != nil:
		return i.total.Validate()
	case i.run != nil:
		return i.run.Validate()
	case i.close != nil:
		return i.close.Validate()
	case i.entry != nil:
		return i.entry.Validate()
	}
	return nil
}

// insert writes items. The consumer group stores the positions.
func (j *Journal) insert(ctx context.Context, items []item, _ []consume.Move) error {
	if len(items) == 0 {
		return nil
	}
	begun := time.Now()
	if err := j.write(ctx, items); err != nil {
		return err
	}
	j.duration.Observe(time.Since(begun).Seconds())
	j.batch.Observe(float64(len(items)))
	for i := range items {
		switch {
		case items[i].entry != nil:
			j.entries.WithLabelValues(items[i].entry.Type).Inc()
		case items[i].line != nil:
			j.entries.WithLabelValues(journal.EntryTypeStatement).Inc()
		case items[i].finding != nil:
			j.entries.WithLabelValues(journal.EntryTypeFinding).Inc()
		}
		for _, r := range items[i].receipts {
			j.receipts.WithLabelValues(r.Movement).Inc()
		}
		for _, x := range items[i].expected {
			j.expected.WithLabelValues(x.Kind).Inc()
		}
	}
	return nil
}

// write inserts into the tables. After an error, or if the process dies between two inserts,
// the same items are written again: each table shows a row once.
func (j *Journal) write(ctx context.Context, items []item) error {
	var entries []journal.Entry
	var receipts []journal.Receipt
	var expected []journal.Expected
	var lines []journal.Line
	var findings []journal.Finding
	var totals []journal.DayTotal
	var runs []journal.MatchRun
	var closes []journal.Close
	for i := range items {
		if items[i].entry != nil {
			entries = append(entries, *items[i].entry)
		}
		if items[i].line != nil {
			lines = append(lines, *items[i].line)
		}
		if items[i].finding != nil {
			findings = append(findings, *items[i].finding)
		}
		if items[i].total != nil {
			totals = append(totals, *items[i].total)
		}
		if items[i].run != nil {
			runs = append(runs, *items[i].run)
		}
		if items[i].close != nil {
			closes = append(closes, *items[i].close)
		}
		receipts = append(receipts, items[i].receipts...)
		expected = append(expected, items[i].expected...)
	}
	if err := j.cfg.Store.Insert(ctx, entries); err != nil {
		return err
	}
	if err := j.cfg.Store.InsertReceipts(ctx, receipts); err != nil {
		return err
	}
	if err := j.cfg.Store.InsertExpected(ctx, expected); err != nil {
		return err
	}
	if err := j.cfg.Store.InsertLines(ctx, lines); err != nil {
		return err
	}
	if err := j.cfg.Store.InsertFindings(ctx, findings); err != nil {
		return err
	}
	if err := j.cfg.Store.InsertDayTotals(ctx, totals); err != nil {
		return err
	}
	if err := j.cfg.Store.InsertMatchRuns(ctx, runs); err != nil {
		return err
	}
	return j.cfg.Store.InsertCloses(ctx, closes)
}
