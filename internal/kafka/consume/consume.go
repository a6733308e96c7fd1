package consume

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/pulse"
	"quittance/schemas"
)

const (
	defaultAtOnce  = 1000
	defaultTimeout = 10 * time.Second
	defaultDrain   = 5 * time.Second
	defaultPause   = time.Second
	firstPause     = 100 * time.Millisecond
	commitEvery    = 500 * time.Millisecond
	commitTimeout  = 2 * time.Second
	// fetchWait is how long a fetch waits for records. A partition that is assigned during a
	// fetch waits for the end of that fetch. Shorter waits cost more requests at rest.
	fetchWait = 500 * time.Millisecond
	// pollWait is how long a poll waits for records: the loop shows that it turns.
	pollWait = 30 * time.Second
)

// ErrRefused says that a record cannot be applied and that a retry gives the same result.
// The record goes to the poison topic.
var ErrRefused = errors.New("record cannot be applied")

// Config of a Consumer. Fields without a default are required.
type Config struct {
	Kafka kafka.Config
	// Group, Topics and Poison are names without the installation's prefix.
	Group  string
	Topics []string
	Poison string
	// Positions returns the stored positions of a topic (full name) by partition. If it is
	// nil, the consumer group holds the positions.
	Positions func(ctx context.Context, topic string) (map[int32]int64, error)
	// Control includes control records in the positions, as high watermarks do. The
	// callbacks do not receive them.
	Control bool
	// Assigned, which may be nil, is called for each partition that this member receives,
	// before its first record. The topic is its full name.
	Assigned func(topic string, partition int32)
	// AtOnce is the most records of one batch of Batch, or the most records that Each has
	// in progress. 1000 when zero.
	AtOnce int
	// Wait is how long a batch waits for more records after its first. No wait when zero.
	Wait time.Duration
	// Timeout bounds one write of a batch; 10 s when zero.
	Timeout time.Duration
	// Drain is how long work may continue after the end of the context; 5 s when zero.
	Drain time.Duration
	// Pause bounds the growing pauses between two tries; 1 s when zero.
	Pause time.Duration
	// Options are additional options of the client, for instance a partitioner for Produce.
	Options []kgo.Opt
	Log     *slog.Logger
	// Poisoned counts records that were set aside. Failures counts failed writes, which
	// are repeated; it may be nil.
	Poisoned, Failures prometheus.Counter
}

// Move is how a batch moves the position in a partition.
type Move struct {
	Topic     string // with the prefix
	Partition int32
	From      int64 // as stored, or None
	To        int64 // next offset to read
}

// None is the stored position of a partition that was never read.
const None int64 = -1

type partition struct {
	topic string
	id    int32
}

// Consumer is a member of a consumer group while Batch or Each runs. Call one of them,
// once.
type Consumer struct {
	cfg    Config
	client *kgo.Client
	loop   *pulse.Loop
	oldest atomic.Int64 // of Batch: time of the oldest record in progress, Unix milliseconds; 0 for none

	mu        sync.Mutex
	positions map[partition]int64 // of Batch: position before the records in progress
	claims    map[partition]*claim
	ends      map[partition]*end
	working   map[*kgo.Record]struct{} // of Each: records in progress
}

// end is the end of a partition after this member received it.
type end struct {
	offset int64
	known  bool
}

// New checks the configuration and creates a consumer. The consumer joins its group when
// Batch or Each runs.
func New(cfg Config) (*Consumer, error) {
	if len(cfg.Kafka.Brokers) == 0 || cfg.Group == "" || len(cfg.Topics) == 0 || cfg.Poison == "" || cfg.Log == nil || cfg.Poisoned == nil {
		return nil, errors.New("consumer: Kafka.Brokers, Group, Topics, Poison, Log and Poisoned are required")
	}
	cfg.AtOnce = cmp.Or(cfg.AtOnce, defaultAtOnce)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Drain = cmp.Or(cfg.Drain, defaultDrain)
	cfg.Pause = cmp.Or(cfg.Pause, defaultPause)
	return &Consumer{cfg: cfg, positions: map[partition]int64{}, claims: map[partition]*claim{}, ends: map[partition]*end{}, working: map[*kgo.Record]struct{}{}}, nil
}

// Produce writes records and waits for the acknowledgement of all replicas, at most until the
// context ends. After an error some of the records may be there all the same, and may still be
// written. Only the callbacks of Batch and Each may call it.
func (c *Consumer) Produce(ctx context.Context, records ...*kgo.Record) error {
	// ProduceSync does not end with its context while the broker may have the record: it waits for the answer, which does not
	// come while the partition has no leader.
	acknowledged := make(chan error, len(records))
	for _, r := range records {
		c.client.TryProduce(ctx, r, func(_ *kgo.Record, err error) { acknowledged <- err })
	}
	var first error
	for range records {
		select {
		case err := <-acknowledged:
			first = cmp.Or(first, err)
		case <-ctx.Done():
			return cmp.Or(first, ctx.Err())
		}
	}
	return first
}

// Ends returns the end offsets of a topic (full name) by partition. Only the callbacks of
// Batch and Each may call it.
func (c *Consumer) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	return kafka.Offsets(kadm.NewClient(c.client).ListEndOffsets(ctx, topic))
}

// Lag returns the age in seconds of the oldest record that Batch or Each has in progress,
// or 0 if they have none.
func (c *Consumer) Lag() float64 {
	at := c.oldest.Load()
	c.mu.Lock()
	for r := range c.working {
		if written := r.Timestamp.UnixMilli(); at == 0 || written < at {
			at = written
		}
	}
	c.mu.Unlock()
	if at == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMilli(at)).Seconds())
}

// SessionTimeout is kafka.GroupSession for a member that is about to join the group (its name
// without the prefix). It logs why the broker did not answer.
func SessionTimeout(ctx context.Context, cfg kafka.Config, group string, log *slog.Logger) time.Duration {
	session, err := kafka.GroupSession(ctx, cfg, group)
	if err != nil && ctx.Err() == nil {
		log.LogAttrs(ctx, slog.LevelWarn, "the group uses the long session timeout", slog.String("group", group), slog.Duration("timeout", session), slog.Any("error", err))
	}
	return session
}

// open creates the client, which joins the group.
func (c *Consumer) open(ctx context.Context, options ...kgo.Opt) error {
	session := SessionTimeout(ctx, c.cfg.Kafka, c.cfg.Group, c.cfg.Log)
	topics := make([]string, len(c.cfg.Topics))
	for i, t := range c.cfg.Topics {
		topics[i] = c.cfg.Kafka.Prefix + t
	}
	options = append(options,
		kgo.ConsumerGroup(c.cfg.Kafka.Prefix+c.cfg.Group), kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(fetchWait),
		// Without a committed offset, or if the offset does not exist, begin at the start:
		// consumers tolerate repeated records but no missing ones.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(session), kgo.HeartbeatInterval(kafka.Heartbeat(session)),
		// Rebalances are blocked while a batch is written.
		kgo.BlockRebalanceOnPoll(), kgo.RebalanceTimeout(max(time.Minute, 2*c.cfg.Timeout)),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(commitEvery),
		kgo.OnPartitionsAssigned(c.assigned), kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.lost),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
	)
	if c.cfg.Control {
		options = append(options, kgo.KeepControlRecords())
	}
	c.loop = pulse.Begin(ctx, "group "+c.cfg.Group, "it has not joined and read its positions")
	client, err := c.cfg.Kafka.Client(append(options, c.cfg.Options...)...)
	if err != nil {
		c.loop.End()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = client
	return nil
}

// close commits the offsets of finished records and leaves the group.
func (c *Consumer) close(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	c.loop.End()
	c.commit(bounded)
	c.client.CloseAllowingRebalance()
	c.oldest.Store(0)
}

func (c *Consumer) commit(ctx context.Context) {
	if err := c.client.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "committing offsets failed; the records will be read again", slog.String("group", c.cfg.Group), slog.Any("error", err))
	}
}

// poll returns at most n records. Rebalances are then blocked until AllowRebalance.
func (c *Consumer) poll(ctx context.Context, n int) []*kgo.Record {
	bounded, cancel := context.WithTimeout(ctx, pollWait)
	defer cancel()
	fetches := c.client.PollRecords(bounded, n)
	fetches.EachError(func(topic string, partition int32, err error) {
		if bounded.Err() == nil {
			c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading records", slog.String("group", c.cfg.Group), slog.String("topic", topic),
				slog.Int("partition", int(partition)), slog.Any("error", err))
		}
	})
	return fetches.Records()
}

func (c *Consumer) assigned(ctx context.Context, client *kgo.Client, assigned map[string][]int32) {
	received := map[partition]*end{}
	if len(assigned) == 0 || c.cfg.Positions == nil { // others are ready when their positions are read
		c.loop.Ready()
	}
	each(assigned, func(p partition) {
		if c.cfg.Assigned != nil {
			c.cfg.Assigned(p.topic, p.id)
		}
		received[p] = &end{}
	})
	if len(received) == 0 {
		return
	}
	c.mu.Lock()
	maps.Copy(c.ends, received)
	c.mu.Unlock()
	go c.findEnds(ctx, client, received)
}

// findEnds asks for the ends of partitions that this member has received. They remain
// unknown if the broker does not answer.
func (c *Consumer) findEnds(ctx context.Context, client *kgo.Client, received map[partition]*end) {
	topics := map[string]bool{}
	for p := range received {
		topics[p.topic] = true
	}
	listed, err := kadm.NewClient(client).ListEndOffsets(ctx, slices.Collect(maps.Keys(topics))...)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for p, e := range received {
		if o, ok := listed.Lookup(p.topic, p.id); ok && o.Err == nil {
			e.offset, e.known = o.Offset, true
		}
	}
}

// revoked commits the offsets of finished records before the partitions move.
func (c *Consumer) revoked(ctx context.Context, client *kgo.Client, revoked map[string][]int32) {
	bounded, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	c.commit(bounded)
	c.lost(ctx, client, revoked)
}

// lost ends the claims. The next member owns the records in progress.
func (c *Consumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	c.oldest.Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	each(lost, func(p partition) {
		delete(c.positions, p)
		delete(c.ends, p)
		if claim := c.claims[p]; claim != nil {
			claim.release()
			delete(c.claims, p)
		}
	})
}

func each(partitions map[string][]int32, do func(partition)) {
	for topic, ids := range partitions {
		for _, id := range ids {
			do(partition{topic, id})
		}
	}
}

func poisonous(err error) bool {
	return errors.Is(err, schemas.ErrUndecodable) || errors.Is(err, ErrRefused)
}

// backoff returns the pause before the next try. It doubles with each try. A random part
// spreads the tries of several consumers.
func (c *Consumer) backoff(tries int) time.Duration {
	d := min(firstPause<<min(tries, 10), c.cfg.Pause)
	return d*3/4 + rand.N(d/4+1) //nolint:gosec // not a secret
}

// until repeats try until it succeeds or ctx ends, and reports whether it succeeded. doing
// describes the step in the log.
func (c *Consumer) until(ctx context.Context, doing string, try func() error) bool {
	for tries := 0; ; tries++ {
		c.loop.Turn()
		err := try()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a step of the consumer failed; trying again", slog.String("doing", doing), slog.String("group", c.cfg.Group), slog.Any("error", err))
		}
		if !Sleep(ctx, c.backoff(tries)) {
			return false
		}
	}
}

// Every repeats do, with a pause after each time, until ctx ends, and then returns nil. It
// calls failed with the first of several errors in a row, but not with one that the end of
// ctx may have caused.
func Every(ctx context.Context, pause time.Duration, do func(context.Context) error, failed func(error)) error {
	for failing := false; ; {
		err := do(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			failed(err)
		}
		failing = err != nil
		if !Sleep(ctx, pause) {
			return nil
		}
	}
}

// Sleep waits and reports whether ctx is still alive.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
