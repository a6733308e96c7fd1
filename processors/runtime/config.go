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

// Config is what a Runtime needs. Name, Brokers, Group, TransactionalID, the three
// topics, Processor and Log are required.
type Config struct {
	// Name of the processor, a label of its metrics: several processors may run in
	// one process.
	Name string
	// Brokers are the addresses to begin with.
	Brokers []string
	// Group is the consumer group that shares the partitions of InputTopic.
	Group string
	// TransactionalID is this instance's own and stays the same over restarts: a
	// restart then aborts at once what the instance left open when it died.
	TransactionalID string
	// InputTopic holds the records to decide.
	InputTopic string
	// StateTopic is the changelog, compacted, with as many partitions as
	// InputTopic: partition n of the one belongs to partition n of the other.
	StateTopic string
	// PoisonTopic takes what cannot be decided.
	PoisonTopic string
	// StoreDir is the folder of the local stores, of this instance alone; empty
	// keeps them in memory, which makes every start a full restore.
	StoreDir string
	// StoreVersion is the application's: changed when Processor.Deadline means
	// something else for entries that exist, so that local stores are restored.
	StoreVersion string
	// StoreMaxAge is how long a local store may have been out of use before it
	// is restored in full; it must be well below delete.retention.ms of
	// StateTopic, after which the cleaner may take tombstones away. 12 h when
	// zero.
	StoreMaxAge time.Duration
	// FlushInterval is how often local stores are flushed, 10 s when zero. A restart
	// after a crash replays that much changelog. At 3 s flushing takes a fifth of a
	// busy processor's CPU time, and more reads miss the cache.
	FlushInterval time.Duration
	// CacheSize of all local stores together, in bytes. 256 MiB when zero. It includes
	// the memory tables (up to 16 MiB a partition): a cache that is not larger than
	// they are holds no blocks.
	CacheSize int64
	// Processor is the application.
	Processor Processor
	// Now is the domain's time (UTC), which may jump forward; time.Now when nil.
	Now func() time.Time
	// TransactionTimeout is how long the broker lets a transaction stay open, 3 s
	// when zero. It should be above broker.session.timeout.ms where brokers fail
	// over.
	TransactionTimeout time.Duration
	// SessionTimeout and HeartbeatInterval of the consumer group: 6 s and 1 s
	// when zero.
	SessionTimeout, HeartbeatInterval time.Duration
	// ShutdownTimeout bounds what Run still does once its context has ended. 8 s
	// when zero.
	ShutdownTimeout time.Duration
	// MaxPollRecords is the most records of one transaction, 500 when zero.
	MaxPollRecords int
	// MaxTicks is the most ticks of one transaction, 200 when zero.
	MaxTicks int
	// TickInterval is how often deadlines are looked at, in real time. 100 ms
	// when zero, 200 ms at most.
	TickInterval time.Duration
	// MaxRecordBytes is the largest batch of records that is sent; the broker's
	// message.max.bytes and each topic's max.message.bytes must not be below it.
	// 1 000 012, franz-go's default, when zero.
	MaxRecordBytes int32
	// Log is required.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// ClientOpts are added to those of every client, for instance TLS and SASL.
	ClientOpts []kgo.Opt
}

func (c Config) withDefaults() Config {
	c.StoreMaxAge = cmp.Or(c.StoreMaxAge, 12*time.Hour)
	c.FlushInterval = cmp.Or(c.FlushInterval, 10*time.Second)
	c.CacheSize = cmp.Or(c.CacheSize, 256<<20)
	c.TransactionTimeout = cmp.Or(c.TransactionTimeout, 3*time.Second)
	c.SessionTimeout = cmp.Or(c.SessionTimeout, 6*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Second)
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, 8*time.Second)
	c.MaxPollRecords = cmp.Or(c.MaxPollRecords, 500)
	c.MaxTicks = cmp.Or(c.MaxTicks, 200)
	c.TickInterval = cmp.Or(c.TickInterval, 100*time.Millisecond)
	c.MaxRecordBytes = cmp.Or(c.MaxRecordBytes, 1_000_012)
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
	need(c.MaxPollRecords > 0 && c.MaxTicks > 0, "a limit is negative")
	need(c.TickInterval > 0 && c.TickInterval <= 200*time.Millisecond, "the tick interval is not within 200 ms")
	need(c.TransactionTimeout > 0 && c.FlushInterval > 0 && c.ShutdownTimeout > 0, "a duration is negative")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("processor runtime configuration: %w", err)
	}
	return nil
}
