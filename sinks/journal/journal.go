package journal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"

	"quittance/internal/deliveries"
	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/internal/kafka/consume"
	"quittance/schemas"
	"quittance/schemas/origin"
)

const (
	defaultBatchSize     = 10_000
	defaultBatchWait     = time.Second
	defaultInsertTimeout = time.Minute
	longestPause         = 10 * time.Second
	adoptAgain           = time.Second
)

// Config configures a Journal.
type Config struct {
	// Kafka is the broker and the installation on it; required.
	Kafka kafka.Config
	// Codec decodes records; required.
	Codec *schemas.Codec
	// Store writes entries; required.
	Store *journal.Store
	// Outcomes has the keys of the workers of all kinds of deliveries; required. With AcceptUnproven whoever may
	// write their topic can say in reports that a delivery was accepted. New sets what counts.
	Outcomes origin.Outcomes
	// Cases says who is believed in cases.events; required.
	Cases *origin.History
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

// Journal is the sink. Any number of them share the work.
type Journal struct {
	cfg             Config
	consumer        *consume.Consumer
	batch, duration prometheus.Histogram
	entries         *prometheus.CounterVec // type
	receipts        *prometheus.CounterVec // movement
	expected        *prometheus.CounterVec // kind
	decoder         journal.Decoder
	admin           *kadm.Client // while it runs
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*Journal, error) {
	if cfg.Codec == nil || cfg.Store == nil || cfg.Outcomes.Workers == nil || cfg.Cases == nil || cfg.Metrics == nil {
		return nil, errors.New("journal: Codec, Store, Outcomes, Cases and Metrics are required")
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
	dropped := with.NewCounter(prometheus.CounterOpts{
		Name: "quittance_journal_dates_dropped_total", Help: "Events of money whose operator's date is not plausible. They stand on the day on which they were recorded.",
	})
	deliveries.CountOutcomes(with, "quittance_journal", &cfg.Outcomes)
	journal.CountCaseEvents(with, "quittance_journal", cfg.Cases)
	j.decoder = journal.Decoder{Codec: cfg.Codec, Prefix: cfg.Kafka.Prefix, Outcomes: cfg.Outcomes, Cases: cfg.Cases, DateDropped: dropped.Inc}
	var err error
	j.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: Group, Topics: journal.Topics(), Poison: schemas.TopicPoisonJournal,
		AtOnce: cmp.Or(cfg.BatchSize, defaultBatchSize), Wait: cmp.Or(cfg.BatchWait, defaultBatchWait), Timeout: cmp.Or(cfg.InsertTimeout, defaultInsertTimeout),
		Pause: longestPause, Log: cfg.Log, Positions: j.positions,
		Poisoned: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_journal_poison_total", Help: "Records that cannot be decoded or kept, and outcomes of deliveries that nothing proves.",
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
	cl, err := j.cfg.Kafka.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	j.admin = kadm.NewClient(cl)
	for j.adopt(ctx) != nil {
		if !consume.Sleep(ctx, adoptAgain) {
			return nil
		}
	}
	return consume.Batch(ctx, j.consumer, j.decoder.Rows, j.insert)
}

// adopt gives a database of an earlier release its positions.
func (j *Journal) adopt(ctx context.Context) error {
	committed, err := kafka.Committed(ctx, j.admin, j.cfg.Kafka.Prefix+Group)
	if err == nil {
		err = j.cfg.Store.Adopt(ctx, committed)
	}
	if err != nil && ctx.Err() == nil {
		j.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "the journal cannot begin and tries again", slog.Any("error", err))
	}
	return err
}

// positions returns where the sink goes on in a topic (full name): at the positions of the database, so that one
// that was restored from a backup gets what it lacks.
func (j *Journal) positions(ctx context.Context, topic string) (map[int32]int64, error) {
	committed, err := kafka.Committed(ctx, j.admin, j.cfg.Kafka.Prefix+Group)
	if err != nil {
		return nil, err
	}
	return j.cfg.Store.Begin(ctx, topic, committed)
}

// rows are what a record adds to the journal (journal.Decoder).
type rows = []journal.Row

// insert writes the rows of records, and then how far the database has them.
func (j *Journal) insert(ctx context.Context, records []rows, moves []consume.Move) error {
	begun := time.Now()
	if err := j.write(ctx, records); err != nil {
		return err
	}
	if err := j.cfg.Store.Move(ctx, moves); err != nil {
		return err
	}
	if len(records) == 0 {
		return nil
	}
	j.duration.Observe(time.Since(begun).Seconds())
	j.batch.Observe(float64(len(records)))
	for _, r := range records {
		for _, row := range r {
			j.count(row)
		}
	}
	return nil
}

// count counts a row that was inserted.
func (j *Journal) count(row journal.Row) {
	switch row := row.(type) {
	case *journal.Entry:
		j.entries.WithLabelValues(row.Type).Inc()
	case *journal.Line:
		j.entries.WithLabelValues(journal.EntryTypeStatement).Inc()
	case *journal.Finding:
		j.entries.WithLabelValues(journal.EntryTypeFinding).Inc()
	case *journal.Receipt:
		j.receipts.WithLabelValues(row.Movement).Inc()
	case *journal.Expected:
		j.expected.WithLabelValues(row.Kind).Inc()
	}
}

// write inserts into the tables. After an error, or if the process dies between two inserts,
// the same rows are written again: each table shows a row once.
func (j *Journal) write(ctx context.Context, records []rows) error {
	return j.cfg.Store.Insert(ctx, slices.Concat(records...)...)
}
