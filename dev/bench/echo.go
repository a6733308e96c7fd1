package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"quittance/internal/kafka"
	"quittance/schemas"
)

// Topics of the echo: its input, and the two topics that each transaction writes. They
// have as many partitions as the topics of commands, events and replies.
const (
	topicEchoIn    = "bench.echo.in"
	topicEchoOut   = "bench.echo.out"
	topicEchoReply = "bench.echo.reply"
)

// echoTimeout is how long a client waits for its reply, the same as in ingress.
const echoTimeout = 2 * time.Second

// errNoReply means that a reply did not come in time.
var errNoReply = errors.New("no echo in time")

// echo is the least that a command and its reply cost on this broker.
type echo struct {
	cfg      kafka.Config
	log      *slog.Logger
	topology *kafka.Topology
	// values are sent in turn. They are commands of the service, so that they have the
	// same size and compress as well.
	values [][]byte

	producer, replies *kgo.Client
	processor         *kgo.GroupTransactSession
	n                 atomic.Int64

	records, transactions atomic.Int64 // committed

	mu      sync.Mutex
	waiting map[string]chan<- struct{}
}

// newEcho creates the topics and the clients. Run closes the clients.
func newEcho(ctx context.Context, cfg kafka.Config, topology *kafka.Topology, values [][]byte, log *slog.Logger) (*echo, error) {
	e := &echo{cfg: cfg, log: log, topology: topology, values: values, waiting: map[string]chan<- struct{}{}}
	var err error
	if e.producer, err = cfg.Producer(); err != nil {
		return nil, err
	}
	adm := kadm.NewClient(e.producer)
	for topic, partitions := range map[string]int32{
		topicEchoIn: topology.Count(schemas.TopicCommands), topicEchoOut: topology.Count(schemas.TopicEvents), topicEchoReply: topology.Count(schemas.TopicReplies),
	} {
		if _, err := adm.CreateTopic(ctx, partitions, -1, nil, cfg.Prefix+topic); err != nil {
			e.close()
			return nil, fmt.Errorf("creating topic %s: %w", cfg.Prefix+topic, err)
		}
		if err := kafka.AwaitTopics(ctx, adm, cfg.Prefix+topic); err != nil {
			e.close()
			return nil, err
		}
	}
	// Ingress reads replies in the same way: one partition, committed records only.
	e.replies, err = cfg.Client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{cfg.Prefix + topicEchoReply: {0: kgo.NewOffset().AtStart()}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if err != nil {
		e.close()
		return nil, err
	}
	// The settings of processors/runtime.
	e.processor, err = kgo.NewGroupTransactSession(append(cfg.Security.Options(),
		kgo.SeedBrokers(cfg.Brokers...), kgo.ClientID("quittance-bench"),
		kgo.ConsumerGroup(cfg.Prefix+"bench-echo"), kgo.ConsumeTopics(cfg.Prefix+topicEchoIn), kgo.TransactionalID(cfg.Prefix+"bench-echo"),
		kgo.TransactionTimeout(3*time.Second), kgo.ConcurrentTransactionsBackoff(time.Millisecond), kgo.MetadataMinAge(20*time.Millisecond),
		kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(time.Second),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)...)
	if err != nil {
		e.close()
		return nil, fmt.Errorf("making the echo's client: %w", err)
	}
	return e, nil
}

func (e *echo) close() {
	for _, cl := range []*kgo.Client{e.producer, e.replies} {
		if cl != nil {
			cl.Close()
		}
	}
	if e.processor != nil {
		e.processor.CloseAllowingRebalance()
	}
}

// Run echoes until ctx ends.
func (e *echo) Run(ctx context.Context) error {
	defer e.close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.process(ctx) })
	g.Go(func() error { return e.read(ctx) })
	return g.Wait()
}

// process is the loop of a processor without decisions.
func (e *echo) process(ctx context.Context) error {
	for {
		fetches := e.processor.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			e.log.Warn("reading the echo's input", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		})
		if fetches.NumRecords() > 0 {
			if err := e.transaction(context.WithoutCancel(ctx), fetches); err != nil {
				return err
			}
		}
		e.processor.AllowRebalance()
	}
}

func (e *echo) transaction(ctx context.Context, fetches kgo.Fetches) error {
	if err := e.processor.Begin(); err != nil {
		return fmt.Errorf("beginning an echo: %w", err)
	}
	failed := kgo.AbortingFirstErrPromise(e.processor.Client())
	fetches.EachRecord(func(r *kgo.Record) {
		e.processor.Produce(ctx, &kgo.Record{Topic: e.cfg.Prefix + topicEchoOut, Partition: r.Partition, Key: r.Key, Value: r.Value}, failed.Promise())
		e.processor.Produce(ctx, &kgo.Record{Topic: e.cfg.Prefix + topicEchoReply, Partition: 0, Key: r.Key, Value: r.Value}, failed.Promise())
	})
	committed, err := e.processor.End(ctx, kgo.TransactionEndTry(failed.Err() == nil))
	if err != nil {
		return fmt.Errorf("ending an echo: %w", err)
	}
	if !committed {
		e.log.Debug("a transaction of the echo was aborted") // it happens while the group forms
		return nil
	}
	e.records.Add(int64(fetches.NumRecords()))
	e.transactions.Add(1)
	return nil
}

// read wakes up the callers whose replies have come.
func (e *echo) read(ctx context.Context) error {
	for {
		fetches := e.replies.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachRecord(func(r *kgo.Record) {
			e.mu.Lock()
			ch := e.waiting[string(r.Key)]
			delete(e.waiting, string(r.Key))
			e.mu.Unlock()
			if ch != nil {
				close(ch)
			}
		})
	}
}

// echoCaller is one client of the echo.
type echoCaller struct{ *echo }

// call sends a record and waits until its reply is committed.
func (e echoCaller) call(ctx context.Context) error {
	n := e.n.Add(1)
	id := strconv.FormatInt(n, 36)
	ch := make(chan struct{})
	e.mu.Lock()
	e.waiting[id] = ch
	e.mu.Unlock()
	failed := make(chan error, 1)
	rec := &kgo.Record{
		Topic: e.cfg.Prefix + topicEchoIn, Partition: int32(n % int64(e.topology.Count(schemas.TopicCommands))), //nolint:gosec // a partition
		Key: []byte(id), Value: e.values[n%int64(len(e.values))],
	}
	e.producer.Produce(ctx, rec, func(_ *kgo.Record, err error) {
		if err != nil {
			failed <- err
		}
	})
	patience := time.NewTimer(echoTimeout)
	defer patience.Stop()
	var err error
	select {
	case <-ch:
		return nil
	case err = <-failed:
	case <-patience.C:
		err = errNoReply
	}
	e.mu.Lock()
	delete(e.waiting, id)
	e.mu.Unlock()
	return fmt.Errorf("echoing a record: %w", err)
}

func (echoCaller) hangUp() {}
