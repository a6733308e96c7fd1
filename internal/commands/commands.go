// Package commands sends commands to a processor and waits for the replies. Ingress, sinks
// and the command line use it. It decides nothing.
package commands

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/internal/kafka"
	"quittance/internal/pulse"
	"quittance/schemas"
)

// ErrUnavailable says that no reply came in time. The processor may still decide the
// command: send it again only if it is idempotent.
var ErrUnavailable = errors.New("the service cannot answer in time")

// DefaultTimeout is how long a request waits for its reply (architecture, "Write path").
const DefaultTimeout = 2 * time.Second

// pollWait is how long a poll for replies waits: the loop shows that it turns.
const pollWait = 30 * time.Second

// Outcomes of a command, in addition to the codes of answers.
const (
	outcomeOK          = "ok"
	outcomeTold        = "told"
	outcomeUnavailable = "unavailable"
	outcomeUndecodable = "undecodable"
)

// ReplyTo is the address of a reply: a partition of the family's replies, and the key of
// the record. Any producer may write the reply.
type ReplyTo struct {
	CorrelationID string
	Partition     int32
}

// Protocol encodes the commands and decodes the answers of one processor. Its methods must
// be safe for concurrent use.
type Protocol[C, A any] interface {
	// Encode returns the record of a command with Key, Partition and Value. The client sets
	// the topic. to is nil if the sender awaits no reply.
	Encode(cmd C, to *ReplyTo) (*kgo.Record, error)
	// Decode decodes the value of a reply.
	Decode(value []byte) (A, error)
	// Code returns the code of the answer, a label of metrics.
	Code(answer A) string
}

// Signer signs a command as one client of Kafka. *origin.Signer implements it.
type Signer interface{ Sign(r *kgo.Record) }

// Config of a Client. Every field but Timeout is required.
type Config[C, A any] struct {
	Kafka    kafka.Config
	Topology *kafka.Topology
	// Signer signs the commands. See As for a process of several senders.
	Signer Signer
	// Family holds the names of the processor's topics.
	Family   schemas.Family
	Protocol Protocol[C, A]
	// Timeout bounds the wait for a reply; DefaultTimeout when zero.
	Timeout time.Duration
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Client sends the commands C of one processor and receives its answers A. It is
// safe for concurrent use while Run runs.
type Client[C, A any] struct {
	*connection[C, A]
	signer Signer
}

// connection is what the clients of one process share.
type connection[C, A any] struct {
	cfg       Config[C, A]
	producer  *kgo.Client
	replies   *kgo.Client
	partition int32
	instance  string

	mu      sync.Mutex
	waiting map[string]chan<- A

	asked   *prometheus.CounterVec
	latency prometheus.Histogram
}

// New creates a client. It chooses the partition of replies that this instance reads. It
// starts at the current end of that partition, so that it reads the replies to all later
// commands.
func New[C, A any](ctx context.Context, cfg Config[C, A]) (*Client[C, A], error) {
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	if cfg.Signer == nil {
		return nil, errors.New("commands: Signer is required")
	}
	factory := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{"processor": cfg.Family.Processor}, cfg.Metrics))
	c := &connection[C, A]{
		cfg: cfg, instance: uuid.NewString(), waiting: map[string]chan<- A{},
		asked: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_hub_commands_total", Help: "Commands sent to the processors, by outcome: the code of the answer, told, unavailable, undecodable.",
		}, []string{"outcome"}),
		latency: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "quittance_hub_reply_seconds", Help: "Time from a command to its reply.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
	for _, outcome := range []string{outcomeOK, outcomeTold, outcomeUnavailable, outcomeUndecodable} {
		c.asked.WithLabelValues(outcome)
	}
	var b [4]byte
	_, _ = rand.Read(b[:])                                                                              // never fails
	c.partition = int32(binary.BigEndian.Uint32(b[:]) % uint32(cfg.Topology.Count(cfg.Family.Replies))) //nolint:gosec // a partition

	var err error
	if c.producer, err = cfg.Kafka.Producer(); err != nil {
		return nil, err
	}
	topic := cfg.Topology.Name(cfg.Family.Replies)
	ends, err := kafka.Offsets(kadm.NewClient(c.producer).ListEndOffsets(ctx, topic))
	if err != nil {
		c.producer.Close()
		return nil, fmt.Errorf("finding the end of %s: %w", topic, err)
	}
	c.replies, err = cfg.Kafka.Client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {c.partition: kgo.NewOffset().At(ends[c.partition])}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
	)
	if err != nil {
		c.producer.Close()
		return nil, err
	}
	return &Client[C, A]{c, cfg.Signer}, nil
}

// As returns a client that signs its commands as another sender and shares everything else, Run included.
func (c *Client[C, A]) As(signer Signer) *Client[C, A] { return &Client[C, A]{c.connection, signer} }

// Run passes replies to the requests that wait for them, until ctx ends. It then closes the
// connections of the client.
func (c *connection[C, A]) Run(ctx context.Context) error {
	defer c.producer.Close()
	defer c.replies.Close()
	loop := pulse.Begin(ctx, "replies of "+c.cfg.Family.Processor, "")
	defer loop.End()
	for {
		loop.Turn()
		bounded, cancel := context.WithTimeout(ctx, pollWait)
		fetches := c.replies.PollFetches(bounded)
		idle := bounded.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			if idle {
				return
			}
			c.cfg.Log.Warn("reading replies", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		})
		fetches.EachRecord(c.reply)
	}
}

// reply passes a reply to the request that waits for it.
func (c *connection[C, A]) reply(rec *kgo.Record) {
	c.mu.Lock()
	ch, mine := c.waiting[string(rec.Key)]
	delete(c.waiting, string(rec.Key))
	c.mu.Unlock()
	if !mine {
		return // the reply to another instance, or to a request that has ended
	}
	answer, err := c.cfg.Protocol.Decode(rec.Value)
	if err != nil {
		c.cfg.Log.Error("decoding a reply", slog.Int64("offset", rec.Offset), slog.Any("error", err))
		close(ch)
		return
	}
	ch <- answer
}

// Ask sends a command and waits for its answer. The error wraps ErrUnavailable if no answer
// came in time, otherwise it is an error of the Protocol.
func (c *Client[C, A]) Ask(ctx context.Context, cmd C) (A, error) {
	return c.AskWithin(ctx, cmd, c.cfg.Timeout)
}

// AskWithin is Ask for a sender with a patience of its own.
func (c *Client[C, A]) AskWithin(ctx context.Context, cmd C, patience time.Duration) (answer A, err error) {
	begun := time.Now()
	id := c.instance + "/" + uuid.NewString()
	ch := c.await(id)
	defer c.forget(id)

	rec, err := c.record(cmd, &ReplyTo{CorrelationID: id, Partition: c.partition})
	if err != nil {
		return answer, err
	}
	// A timer costs less than a context with a deadline, which registers with its parent.
	timer := time.NewTimer(patience)
	defer timer.Stop()
	failed := make(chan error, 1)
	c.produce(ctx, rec, func(err error) {
		if err != nil {
			failed <- err
		}
	})
	select {
	case a, ok := <-ch:
		if !ok {
			c.asked.WithLabelValues(outcomeUndecodable).Inc()
			return answer, fmt.Errorf("reply to %s: %w", id, ErrUnavailable)
		}
		c.latency.Observe(time.Since(begun).Seconds())
		c.asked.WithLabelValues(c.cfg.Protocol.Code(a)).Inc()
		return a, nil
	case err := <-failed:
		c.asked.WithLabelValues(outcomeUnavailable).Inc()
		return answer, fmt.Errorf("sending a command: %w: %w", ErrUnavailable, err)
	case <-timer.C:
		err = context.DeadlineExceeded
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.asked.WithLabelValues(outcomeUnavailable).Inc()
	return answer, fmt.Errorf("awaiting a reply: %w: %w", ErrUnavailable, err)
}

// Expected is an address at which this instance waits for one further answer, besides that
// of Ask.
type Expected[A any] struct {
	to      ReplyTo
	answers <-chan A
	forget  func()
}

// Expect makes an address for a further answer. Call Close when nobody waits for it.
func (c *Client[C, A]) Expect() *Expected[A] {
	id := c.instance + "/" + uuid.NewString()
	return &Expected[A]{to: ReplyTo{CorrelationID: id, Partition: c.partition}, answers: c.await(id), forget: func() { c.forget(id) }}
}

// Address is where the answer is to be sent.
func (e *Expected[A]) Address() ReplyTo { return e.to }

// Await returns the answer. ok is false when none came before ctx ended, or when it could not
// be decoded.
func (e *Expected[A]) Await(ctx context.Context) (answer A, ok bool) {
	select {
	case answer, ok = <-e.answers:
	case <-ctx.Done():
	}
	return answer, ok
}

// Close ends the wait.
func (e *Expected[A]) Close() { e.forget() }

// await registers a request that waits for a reply.
func (c *connection[C, A]) await(id string) <-chan A {
	ch := make(chan A, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[id] = ch
	return ch
}

func (c *connection[C, A]) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// Tell sends a command without a reply. It returns when the broker has acknowledged the
// command. If the error wraps ErrUnavailable, the caller may send the command again.
func (c *Client[C, A]) Tell(ctx context.Context, cmd C) error {
	return c.TellAll(ctx, []C{cmd})
}

// TellAll is Tell for several commands, which it sends in order. If the error wraps
// ErrUnavailable, some of them may have been sent. After any other error none was sent.
func (c *Client[C, A]) TellAll(ctx context.Context, cmds []C) (unsent error) {
	records := make([]*kgo.Record, len(cmds))
	for i, cmd := range cmds {
		var err error
		if records[i], err = c.record(cmd, nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	acknowledged := make(chan error, len(records))
	for _, rec := range records {
		c.produce(ctx, rec, func(err error) { acknowledged <- err })
	}
	for range records {
		var err error
		select {
		case err = <-acknowledged:
		case <-ctx.Done():
			err = ctx.Err()
		}
		outcome := outcomeTold
		if err != nil {
			outcome = outcomeUnavailable
		}
		c.asked.WithLabelValues(outcome).Inc()
		if err != nil && unsent == nil {
			unsent = fmt.Errorf("sending a command: %w: %w", ErrUnavailable, err)
		}
	}
	return unsent
}

// produce sends a record and never waits. Both other ways wait for as long as the broker is
// away: Produce when the buffer is full, and ProduceSync, whatever its context, for a record
// that may already be on its way, as the producer is idempotent.
func (c *connection[C, A]) produce(ctx context.Context, rec *kgo.Record, done func(error)) {
	c.producer.TryProduce(context.WithoutCancel(ctx), rec, func(_ *kgo.Record, err error) { done(err) })
}

// record returns the signed record of a command.
func (c *Client[C, A]) record(cmd C, to *ReplyTo) (*kgo.Record, error) {
	rec, err := c.cfg.Protocol.Encode(cmd, to)
	if err != nil {
		return nil, err
	}
	rec.Topic = c.cfg.Topology.Name(c.cfg.Family.Commands)
	c.signer.Sign(rec)
	return rec, nil
}
