package consume

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
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
)

// ErrRefused says that a record cannot be applied: trying again gives the same
// answer. The record goes to the poison topic.
var ErrRefused = errors.New("record cannot be applied")

// Config of a Consumer. Fields without a default are required.
type Config struct {
	Kafka kafka.Config
	// Group, Topics and Poison are names without the installation's prefix.
	Group  string
	Topics []string
	Poison string
	// Positions are the stored positions of a topic (full name) by partition. Nil
	// leaves the positions to the consumer group.
	Positions func(ctx context.Context, topic string) (map[int32]int64, error)
	// Control counts control records in the positions, as high watermarks do. They
	// are not handed over.
	Control bool
	// Assigned, which may be nil, is told of each partition (of the topic's full
	// name) that comes to this member, before its first record.
	Assigned func(topic string, partition int32)
	// AtOnce is how many records one batch has at most; 1000 when zero. For Each it
	// is how many records are in hand at most.
	AtOnce int
	// Wait is how long a batch waits for more records after its first; not at all
	// when zero.
	Wait time.Duration
	// Timeout bounds one write of a batch; 10 s when zero.
	Timeout time.Duration
	// Drain bounds how long work under way may go on after the end; 5 s when zero.
	Drain time.Duration
	// Pause bounds the growing pauses between two tries; 1 s when zero.
	Pause time.Duration
	// Options of the client, such as another partitioner for what is produced.
	Options []kgo.Opt
	Log     *slog.Logger
	// Poisoned counts records that were set aside, Failures counts writes that
	// failed and were repeated. Failures may be nil.
	Poisoned, Failures prometheus.Counter
}

// Move is how a batch moves the position in a partition.
type Move struct {
	Topic     string // with the prefix
	Partition int32
	From      int64 // as stored, or None
	To        int64 // offset to read next
}

// None is the stored position of a partition that was never read.
const None int64 = -1

type partition struct {
	topic string
	id    int32
}

// Consumer is a member of a consumer group. It works while Batch or Each runs,
// once.
type Consumer struct {
	cfg     Config
	client  *kgo.Client
	oldest  atomic.Int64 // of the records in hand, Unix milliseconds; 0 when there are none
	working atomic.Int64 // records that Each has in hand

	mu        sync.Mutex
	positions map[partition]int64 // to read next, of what Batch has in hand
	claims    map[partition]*claim
}

// New checks the configuration and makes a consumer. It joins its group when
// Batch or Each runs.
func New(cfg Config) (*Consumer, error) {
	if len(cfg.Kafka.Brokers) == 0 || cfg.Group == "" || len(cfg.Topics) == 0 || cfg.Poison == "" || cfg.Log == nil || cfg.Poisoned == nil {
		return nil, errors.New("consumer: Kafka.Brokers, Group, Topics, Poison, Log and Poisoned are required")
	}
	cfg.AtOnce = cmp.Or(cfg.AtOnce, defaultAtOnce)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	cfg.Drain = cmp.Or(cfg.Drain, defaultDrain)
	cfg.Pause = cmp.Or(cfg.Pause, defaultPause)
	return &Consumer{cfg: cfg, positions: map[partition]int64{}, claims: map[partition]*claim{}}, nil
}

// Produce writes records with acknowledgement of all replicas. It serves the
// callbacks of Batch and Each.
func (c *Consumer) Produce(ctx context.Context, records ...*kgo.Record) error {
	return c.client.ProduceSync(ctx, records...).FirstErr()
}

// Ends are the offsets behind the last records of a topic (full name), by
// partition. It serves the callbacks of Batch and Each.
func (c *Consumer) Ends(ctx context.Context, topic string) (map[int32]int64, error) {
	return kafka.Offsets(kadm.NewClient(c.client).ListEndOffsets(ctx, topic))
}

// Lag is the age in seconds of the oldest record that Batch has in hand; 0 when
// it has none.
func (c *Consumer) Lag() float64 {
	at := c.oldest.Load()
	if at == 0 {
		return 0
	}
	return max(0, time.Since(time.UnixMilli(at)).Seconds())
}

// open joins the group.
func (c *Consumer) open(options ...kgo.Opt) error {
	topics := make([]string, len(c.cfg.Topics))
	for i, t := range c.cfg.Topics {
		topics[i] = c.cfg.Kafka.Prefix + t
	}
	options = append(options,
		kgo.ConsumerGroup(c.cfg.Kafka.Prefix+c.cfg.Group), kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(500*time.Millisecond),
		// From the start where nothing was committed or the offset is gone: every
		// consumer bears a repetition, none bears a gap.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second),
		// A rebalance waits while a batch is written.
		kgo.BlockRebalanceOnPoll(), kgo.RebalanceTimeout(max(time.Minute, 2*c.cfg.Timeout)),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(commitEvery),
		kgo.OnPartitionsAssigned(c.assigned), kgo.OnPartitionsRevoked(c.revoked), kgo.OnPartitionsLost(c.lost),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0),
	)
	if c.cfg.Control {
		options = append(options, kgo.KeepControlRecords())
	}
	client, err := c.cfg.Kafka.Client(append(options, c.cfg.Options...)...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.client = client
	return nil
}

// close commits what is done and leaves the group.
func (c *Consumer) close(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	c.commit(bounded)
	c.client.CloseAllowingRebalance()
	c.oldest.Store(0)
}

func (c *Consumer) commit(ctx context.Context) {
	if err := c.client.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "committing offsets; these records are read again", slog.String("group", c.cfg.Group), slog.Any("error", err))
	}
}

// poll returns what there is, at most n records. From then on a rebalance waits
// until AllowRebalance.
func (c *Consumer) poll(ctx context.Context, n int) []*kgo.Record {
	fetches := c.client.PollRecords(ctx, n)
	fetches.EachError(func(topic string, partition int32, err error) {
		if ctx.Err() == nil {
			c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "reading records", slog.String("group", c.cfg.Group), slog.String("topic", topic),
				slog.Int("partition", int(partition)), slog.Any("error", err))
		}
	})
	return fetches.Records()
}

func (c *Consumer) assigned(ctx context.Context, _ *kgo.Client, assigned map[string][]int32) {
	each(assigned, func(p partition) {
		if c.cfg.Assigned != nil {
			c.cfg.Assigned(p.topic, p.id)
		}
	})
}

// revoked hands over what is done.
func (c *Consumer) revoked(ctx context.Context, client *kgo.Client, revoked map[string][]int32) {
	bounded, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	c.commit(bounded)
	c.lost(ctx, client, revoked)
}

// lost ends the claims. The next member has the records in hand now.
func (c *Consumer) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	c.oldest.Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	each(lost, func(p partition) {
		delete(c.positions, p)
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

// backoff doubles with each try, with some chance in it, so that what failed
// together does not come back together.
func (c *Consumer) backoff(tries int) time.Duration {
	d := min(firstPause<<min(tries, 10), c.cfg.Pause)
	return d*3/4 + rand.N(d/4+1) //nolint:gosec // no secret
}

// until tries until it succeeds or ctx ends, and says whether it succeeded. doing is
// the text of the log.
func (c *Consumer) until(ctx context.Context, doing string, try func() error) bool {
	for tries := 0; ; tries++ {
		err := try()
		if err == nil {
			return true
		}
		if ctx.Err() == nil {
			c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "a step of a consumer failed; it is tried again", slog.String("doing", doing), slog.String("group", c.cfg.Group), slog.Any("error", err))
		}
		if !Sleep(ctx, c.backoff(tries)) {
			return false
		}
	}
}

// Sleep waits and says whether ctx still lives.
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
