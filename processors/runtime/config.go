package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// cacheSize is the size of the cache that all local stores share. It includes their
	// memory tables (up to 16 MiB a partition).
	cacheSize = 256 << 20
	// storeMaxAge is how long a local store may be out of use; after that it is restored
	// in full. It must be well below delete.retention.ms of the changelog: the cleaner
	// may remove tombstones after that time.
	storeMaxAge = 12 * time.Hour
	// shutdownTimeout bounds the work that Run finishes after the end of its context.
	shutdownTimeout = 8 * time.Second
	// fetchWait is how long a fetch waits for records. A partition that is restored during a
	// fetch waits for the end of that fetch.
	fetchWait = 500 * time.Millisecond
)

// Config is what a Runtime needs. Name, Brokers, Group, TransactionalID, the three
// topics, Processor and Log are required.
type Config struct {
	// Name is the name of the processor. It is a label of the metrics, because several
	// processors may run in one process.
	Name string
	// Brokers are the host:port addresses of the first connections.
	Brokers []string
	// Options are further options of every client, such as those of TLS and SASL.
	Options []kgo.Opt
	// Group is the consumer group that shares the partitions of InputTopic.
	Group string
	// TransactionalID is unique to this instance and stays the same over restarts. A
	// restart then aborts at once the transaction that the instance left open when it
	// died.
	TransactionalID string
	// InputTopic holds the records to decide.
	InputTopic string
	// StateTopic is the compacted changelog. It has as many partitions as InputTopic.
	// Partition n holds the state of input partition n.
	StateTopic string
	// PoisonTopic receives the records and ticks that cannot be decided.
	PoisonTopic string
	// StoreDir is the folder of the local stores. No other instance may use it. When it
	// is empty, the stores are in memory and every start is a full restore.
	StoreDir string
	// FlushInterval is how often local stores are flushed, 10 s when zero. A restart
	// after a crash replays the changelog of one interval. At 3 s flushing takes a fifth
	// of a busy processor's CPU time, and more reads miss the cache.
	FlushInterval time.Duration
	// Processor is the application.
	Processor Processor
	// Now returns the time of the domain (UTC), which may jump forward. time.Now when
	// nil.
	Now func() time.Time
	// TransactionTimeout is how long the broker lets a transaction stay open, 3 s when
	// zero. With several brokers it should be above broker.session.timeout.ms.
	TransactionTimeout time.Duration
	// SessionTimeout of the consumer group is how long after a death its partitions move, and
	// how long the group waits for its former members after a restart of the broker. 6 s when
	// zero, which every broker allows.
	SessionTimeout time.Duration
	// HeartbeatInterval of the consumer group, 1 s when zero.
	HeartbeatInterval time.Duration
	// MaxPollRecords is the most input records of one transaction, 500 when zero. A
	// processor with large records, or with records that change many entries, needs fewer:
	// a transaction must end well before TransactionTimeout, and all partitions of the
	// instance wait for it.
	MaxPollRecords int
	// MaxTicks is the most ticks of one transaction, 200 when zero. It is chosen by the same
	// rule.
	MaxTicks int
	// TickInterval is how often the loop checks for due deadlines, in real time. 100 ms
	// when zero, 200 ms at most.
	TickInterval time.Duration
	// Log is required.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
}

func (c Config) withDefaults() Config {
	c.FlushInterval = cmp.Or(c.FlushInterval, 10*time.Second)
	c.TransactionTimeout = cmp.Or(c.TransactionTimeout, 3*time.Second)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 6*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	c.MaxPollRecords = cmp.Or(c.MaxPollRecords, 500)
	c.MaxTicks = cmp.Or(c.MaxTicks, 200)
	c.TickInterval = cmp.Or(c.TickInterval, 100*time.Millisecond)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(c.Name != "", "no name")
	need(len(c.Brokers) > 0, "no brokers")
	need(c.Group != "", "no consumer group")
	need(c.TransactionalID != "", "no transactional id")
	need(c.InputTopic != "" && c.StateTopic != "" && c.PoisonTopic != "", "a topic has no name")
	need(c.InputTopic != c.StateTopic && c.InputTopic != c.PoisonTopic && c.StateTopic != c.PoisonTopic, "two topics have the same name")
	need(c.Processor != nil, "no processor")
	need(c.Log != nil, "no logger")
	need(c.MaxPollRecords > 0, "the limit of polled records is negative")
	need(c.MaxTicks > 0, "the limit of ticks is negative")
	need(c.TickInterval > 0 && c.TickInterval <= 200*time.Millisecond, "the tick interval is not within 200 ms")
	need(c.TransactionTimeout > 0 && c.FlushInterval > 0, "a duration is negative")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("processor runtime configuration: %w", err)
	}
	return nil
}
