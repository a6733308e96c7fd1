package journal

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
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

// Config is how a journal sink is made.
type Config struct {
	// Kafka is the broker and the installation on it; required.
	Kafka kafka.Config
	// Codec decodes records; required.
	Codec *schemas.Codec
	// Store writes entries; required.
	Store *journal.Store
	// BatchSize is how many records a batch has at most; 10,000 when zero.
	BatchSize int
	// BatchWait is how long a batch waits for more after its first record; a
	// second when zero. ClickHouse wants few big inserts.
	BatchWait time.Duration
	// InsertTimeout bounds one try to insert; a minute when zero.
	InsertTimeout time.Duration
	// Log and Metrics are required.
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Journal is the sink. Any number of them share the work.
type Journal struct {
	cfg      Config
	consumer *consume.Consumer
	metrics  *metrics
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*Journal, error) {
	if cfg.Codec == nil || cfg.Store == nil || cfg.Metrics == nil {
		return nil, errors.New("journal: Codec, Store and Metrics are required")
	}
	j := &Journal{cfg: cfg, metrics: newMetrics(cfg.Metrics)}
	var err error
	j.consumer, err = consume.New(consume.Config{
		Kafka: cfg.Kafka, Group: "journal", Topics: []string{schemas.TopicEvents, schemas.TopicAttempts}, Poison: schemas.TopicPoisonJournal,
		AtOnce: cmp.Or(cfg.BatchSize, defaultBatchSize), Wait: cmp.Or(cfg.BatchWait, defaultBatchWait), Timeout: cmp.Or(cfg.InsertTimeout, defaultInsertTimeout),
		Pause: longestPause, Log: cfg.Log, Poisoned: j.metrics.poison, Failures: j.metrics.errors,
	})
	if err != nil {
		return nil, err
	}
	j.metrics.exposeLag(cfg.Metrics, j.consumer.Lag)
	return j, nil
}

// Run journals until ctx ends, then returns nil; an insert under way is finished
// first, within a few seconds. It returns an error only when it could not begin.
func (j *Journal) Run(ctx context.Context) error {
	return consume.Batch(ctx, j.consumer, j.decode, j.insert)
}

// decode makes a record's entry. Errors that come back each time are
// schemas.ErrUndecodable and journal.ErrInvalidEntry.
func (j *Journal) decode(r *kgo.Record) (journal.Entry, error) {
	var entry journal.Entry
	if r.Topic == j.cfg.Kafka.Prefix+schemas.TopicEvents {
		var e record.Event
		if err := j.cfg.Codec.Decode(r.Value, &e); err != nil {
			return entry, err
		}
		entry = fromEvent(&e)
	} else {
		var a record.Attempt
		if err := j.cfg.Codec.Decode(r.Value, &a); err != nil {
			return entry, err
		}
		entry = fromAttempt(&a)
	}
	return entry, entry.Validate()
}

// insert writes entries. The consumer group has the positions.
func (j *Journal) insert(ctx context.Context, entries []journal.Entry, _ []consume.Move) error {
	begun := time.Now()
	if err := j.cfg.Store.Insert(ctx, entries); err != nil || len(entries) == 0 {
		return err
	}
	j.metrics.duration.Observe(time.Since(begun).Seconds())
	j.metrics.batch.Observe(float64(len(entries)))
	for i := range entries {
		j.metrics.entries.WithLabelValues(entries[i].Type).Inc()
	}
	return nil
}
