package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/journal"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/record"
)

// group is the consumer group, before the installation's prefix.
const group = "journal"

const (
	defaultBatchSize     = 10_000
	defaultBatchWait     = time.Second
	defaultInsertTimeout = time.Minute
	// firstPause and longestPause bound the waiting between tries.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	// grace is what an insert under way gets when the sink is told to stop.
	grace = 5 * time.Second
)

// Config is how a journal sink is made.
type Config struct {
	// Kafka is the broker and the installation on it; required.
	Kafka kafka.Config
	// Codec decodes records; required.
	Codec *schemas.Codec
	// ClickHouse is a connection to the journal's database, migrated; required.
	// The sink does not close it.
	ClickHouse driver.Conn
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
	cfg     Config
	events  string // topic names with their prefix
	outcome string
	poison  string
	metrics *metrics
}

// New makes a sink. It connects when it runs.
func New(cfg Config) (*Journal, error) {
	if len(cfg.Kafka.Brokers) == 0 || cfg.Codec == nil || cfg.ClickHouse == nil || cfg.Log == nil || cfg.Metrics == nil {
		return nil, errors.New("journal: Kafka.Brokers, Codec, ClickHouse, Log and Metrics are required")
	}
	cfg.BatchSize = cmp.Or(cfg.BatchSize, defaultBatchSize)
	cfg.BatchWait = cmp.Or(cfg.BatchWait, defaultBatchWait)
	cfg.InsertTimeout = cmp.Or(cfg.InsertTimeout, defaultInsertTimeout)
	return &Journal{
		cfg:     cfg,
		events:  cfg.Kafka.Prefix + schemas.TopicEvents,
		outcome: cfg.Kafka.Prefix + schemas.TopicAttempts,
		poison:  cfg.Kafka.Prefix + schemas.TopicPoisonJournal,
		metrics: newMetrics(cfg.Metrics),
	}, nil
}

// Run journals until ctx ends, then returns nil; an insert under way is finished
// first, within a few seconds. It returns an error only when it could not begin.
func (j *Journal) Run(ctx context.Context) error {
	cl, err := j.cfg.Kafka.Client(
		kgo.ConsumerGroup(j.cfg.Kafka.Prefix+group), kgo.ConsumeTopics(j.events, j.outcome),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second), kgo.FetchMaxWait(500*time.Millisecond),
		// Only what is marked is ever committed, and a partition that moves to
		// another sink in the middle of a batch loses its marks: its records are
		// inserted there again, and that sink's offsets are not put back by us.
		kgo.AutoCommitMarks(),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
	)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer cl.Close()
	for {
		records := j.collect(ctx, cl)
		if ctx.Err() != nil {
			return nil // not committed: read again by whoever comes next
		}
		if err := j.write(ctx, cl, records); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// collect polls until a batch is full or its first record has waited long
// enough, or ctx ends.
func (j *Journal) collect(ctx context.Context, cl *kgo.Client) []*kgo.Record {
	var records []*kgo.Record
	waiting := ctx // without end until there is a first record
	for len(records) < j.cfg.BatchSize && waiting.Err() == nil {
		fetches := cl.PollRecords(waiting, j.cfg.BatchSize-len(records))
		fetches.EachError(func(topic string, partition int32, err error) {
			if waiting.Err() == nil {
				j.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading for the journal",
					slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
			}
		})
		first := len(records) == 0
		records = append(records, fetches.Records()...)
		if first && len(records) > 0 {
			var cancel context.CancelFunc
			waiting, cancel = context.WithTimeout(ctx, j.cfg.BatchWait)
			defer cancel() // once: records are there from now on
		}
	}
	return records
}

// write inserts the records' entries, sends what is poison to its topic, and
// then commits. It returns an error only when ctx has ended.
func (j *Journal) write(ctx context.Context, cl *kgo.Client, records []*kgo.Record) error {
	if len(records) == 0 {
		return nil
	}
	entries := make([]journal.Entry, 0, len(records))
	from := make([]*kgo.Record, 0, len(records)) // the entries' records
	var poison []*kgo.Record
	for _, r := range records {
		entry, err := j.decode(ctx, r)
		switch {
		case err == nil:
			entries, from = append(entries, entry), append(from, r)
		case errors.Is(err, schemas.ErrUndecodable), errors.Is(err, journal.ErrInvalidEntry):
			poison = append(poison, j.poisoned(ctx, r, err))
		default:
			return err
		}
	}
	j.metrics.oldest.Store(oldest(records).UnixMilli())
	refused, err := j.insert(ctx, entries, from)
	if err != nil {
		return err
	}
	poison = append(poison, refused...)
	if err := cl.ProduceSync(ctx, poison...).FirstErr(); err != nil {
		return fmt.Errorf("writing to the journal's poison topic: %w", err)
	}
	j.metrics.poison.Add(float64(len(poison)))
	j.metrics.oldest.Store(0)

	cl.MarkCommitRecords(records...)
	commit, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := cl.CommitMarkedOffsets(commit); err != nil {
		// A rebalance, or the broker is away. The marks stay for the next time;
		// at worst the batch is inserted again, which changes nothing.
		j.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "committing journalled offsets", slog.Any("error", err))
	}
	return nil
}

// decode makes a record's entry. It tries again while the schema registry cannot
// be reached; other errors are schemas.ErrUndecodable and
// journal.ErrInvalidEntry.
func (j *Journal) decode(ctx context.Context, r *kgo.Record) (journal.Entry, error) {
	for pause := firstPause; ; pause = longer(pause) {
		var entry journal.Entry
		var err error
		if r.Topic == j.events {
			var e record.Event
			if err = j.cfg.Codec.Decode(r.Value, &e); err == nil {
				entry = fromEvent(&e)
			}
		} else {
			var a record.Attempt
			if err = j.cfg.Codec.Decode(r.Value, &a); err == nil {
				entry = fromAttempt(&a)
			}
		}
		if err == nil {
			return entry, entry.Validate()
		}
		if errors.Is(err, schemas.ErrUndecodable) {
			return entry, err
		}
		j.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "decoding for the journal, trying again", slog.Any("error", err))
		if !sleep(ctx, pause) {
			return entry, ctx.Err()
		}
	}
}

// insert tries until the entries are in or ctx ends. An insert whose answer was
// lost may have happened; doing it again is what makes sure. A batch that is
// refused for what is in it goes in by halves, down to the culprits, whose
// records are returned for the poison topic; from are the entries' records.
func (j *Journal) insert(ctx context.Context, entries []journal.Entry, from []*kgo.Record) ([]*kgo.Record, error) {
	others := false // another entry was taken after this one was refused
	for pause, tries := firstPause, 1; ; tries++ {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		begun := time.Now()
		err := j.tryInsert(ctx, entries)
		if err == nil {
			if tries > 1 {
				j.cfg.Log.LogAttrs(ctx, slog.LevelInfo, "ClickHouse is back, the journal goes on", slog.Int("tries", tries))
			}
			j.metrics.duration.Observe(time.Since(begun).Seconds())
			j.metrics.batch.Observe(float64(len(entries)))
			for i := range entries {
				j.metrics.entries.WithLabelValues(string(entries[i].Type)).Inc()
			}
			return nil, nil
		}
		switch n := len(entries); {
		case !refuses(err):
			others = false
		case n > 1:
			first, err := j.insert(ctx, entries[:n/2], from[:n/2])
			if err != nil {
				return nil, err
			}
			second, err := j.insert(ctx, entries[n/2:], from[n/2:])
			return append(first, second...), err
		case others || errors.Is(err, journal.ErrInvalidEntry):
			return []*kgo.Record{j.poisoned(ctx, from[0], err)}, nil
		default:
			// A server that is wrong in itself refuses everything: setting the
			// whole journal aside would be no help.
			probe := j.probe(ctx)
			if others = probe == nil; others {
				continue // and once more: what was wrong may be over
			}
			err = fmt.Errorf("%w; nor is an entry taken that was taken before: %w", err, probe)
		}
		j.metrics.errors.Inc()
		var exc *clickhouse.Exception
		j.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "ClickHouse takes no journal entries, trying again",
			slog.Bool("answers", errors.As(err, &exc)), slog.Int("tries", tries), slog.Any("error", err))
		if !sleep(ctx, pause) {
			return nil, ctx.Err()
		}
		pause = longer(pause)
	}
}

// passing are ClickHouse's codes for what waiting, or an operator, mends, for
// all entries alike.
var passing = map[int32]bool{
	16:  true, // NO_SUCH_COLUMN_IN_TABLE
	60:  true, // UNKNOWN_TABLE
	81:  true, // UNKNOWN_DATABASE
	159: true, // TIMEOUT_EXCEEDED
	160: true, // TOO_SLOW
	164: true, // READONLY
	192: true, // UNKNOWN_USER
	201: true, // QUOTA_EXCEEDED
	202: true, // TOO_MANY_SIMULTANEOUS_QUERIES
	203: true, // NO_FREE_CONNECTION
	209: true, // SOCKET_TIMEOUT
	210: true, // NETWORK_ERROR
	218: true, // TABLE_IS_DROPPED
	225: true, // NO_ZOOKEEPER
	236: true, // ABORTED
	241: true, // MEMORY_LIMIT_EXCEEDED
	242: true, // TABLE_IS_READ_ONLY
	243: true, // NOT_ENOUGH_SPACE
	252: true, // TOO_MANY_PARTS
	285: true, // TOO_FEW_LIVE_REPLICAS
	286: true, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
	319: true, // UNKNOWN_STATUS_OF_INSERT
	394: true, // QUERY_WAS_CANCELLED
	439: true, // CANNOT_SCHEDULE_TASK
	473: true, // DEADLOCK_AVOIDED
	497: true, // ACCESS_DENIED
	516: true, // AUTHENTICATION_FAILED
	999: true, // KEEPER_EXCEPTION
}

// refuses says whether an insert failed for what is in it, as far as its error
// tells: the same batch would fail again.
func refuses(err error) bool {
	if errors.Is(err, journal.ErrInvalidEntry) {
		return true
	}
	var exc *clickhouse.Exception
	if !errors.As(err, &exc) {
		return false // the network, a proxy, our own time limit
	}
	// The one code has two meanings. A batch of more than a hundred months has to
	// be cut up, whatever stamped it so.
	return !passing[exc.Code] || strings.Contains(exc.Message, "Too many partitions for single INSERT")
}

// probe inserts an entry that is in the journal again, which changes nothing.
func (j *Journal) probe(ctx context.Context) error {
	try, cancel := j.try(ctx)
	defer cancel()
	if err := j.cfg.ClickHouse.Exec(try, "INSERT INTO journal SELECT * FROM journal LIMIT 1"); err != nil {
		return fmt.Errorf("inserting a journal entry again: %w", err)
	}
	return nil
}

func (j *Journal) tryInsert(ctx context.Context, entries []journal.Entry) error {
	try, cancel := j.try(ctx)
	defer cancel()
	return journal.Insert(try, j.cfg.ClickHouse, entries)
}

// try bounds one statement. It does not see the end of ctx at once: an insert
// under way may finish.
func (j *Journal) try(ctx context.Context) (context.Context, context.CancelFunc) {
	try, cancel := context.WithTimeout(context.WithoutCancel(ctx), j.cfg.InsertTimeout)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return try, func() { stop(); cancel() }
}

// poisoned logs that a record is set aside and makes one for the poison topic:
// key and value as they were, with the position and the reason as headers.
func (j *Journal) poisoned(ctx context.Context, r *kgo.Record, why error) *kgo.Record {
	j.cfg.Log.LogAttrs(ctx, slog.LevelError, "record cannot be journalled, set aside", slog.String("topic", r.Topic),
		slog.Int("partition", int(r.Partition)), slog.Int64("offset", r.Offset), slog.Any("error", why))
	header := func(k, v string) kgo.RecordHeader { return kgo.RecordHeader{Key: k, Value: []byte(v)} }
	return &kgo.Record{
		Topic: j.poison, Key: r.Key, Value: r.Value,
		Headers: []kgo.RecordHeader{
			header("topic", r.Topic), header("partition", strconv.Itoa(int(r.Partition))),
			header("offset", strconv.FormatInt(r.Offset, 10)), header("error", why.Error()),
		},
	}
}

func oldest(records []*kgo.Record) time.Time {
	at := records[0].Timestamp
	for _, r := range records {
		if r.Timestamp.Before(at) {
			at = r.Timestamp
		}
	}
	return at
}

// longer doubles a pause, with a little chance in it so that sinks do not come
// back all at once.
func longer(d time.Duration) time.Duration {
	return min(2*d+rand.N(d/4+1), longestPause) //nolint:gosec // jitter, no secret
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
