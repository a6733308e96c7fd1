// Package commands sends commands to the processors and awaits their replies: the one
// way from the HTTP edge into the log. It decides nothing.
package commands

import (
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

	"quittance/checkout"
	"quittance/internal/kafka"
	"quittance/schemas"
	"quittance/schemas/mapping"
	"quittance/schemas/record"
)

// ErrUnavailable says that no reply came in time. The command may or may not be
// carried out: only an idempotent one is safe to send again.
var ErrUnavailable = errors.New("the service cannot answer in time")

// DefaultTimeout is how long a request waits for its reply (architecture, "Write path").
const DefaultTimeout = 2 * time.Second

// Config of a Client.
type Config struct {
	Kafka kafka.Config
	Space *kafka.Topology
	Codec *schemas.Codec
	// Timeout of a reply; DefaultTimeout when zero.
	Timeout time.Duration
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Client is safe for concurrent use once Run has made it ready.
type Client struct {
	cfg       Config
	producer  *kgo.Client
	replies   *kgo.Client
	partition int32
	instance  string

	mu      sync.Mutex
	waiting map[string]chan<- checkout.Answer

	asked   *prometheus.CounterVec
	latency prometheus.Histogram
}

// New makes a Client: it picks the partition of replies that this instance reads,
// and where in it reading begins, so that no reply to a later request is missed.
func New(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	factory := promauto.With(cfg.Metrics)
	c := &Client{
		cfg: cfg, instance: uuid.NewString(), waiting: map[string]chan<- checkout.Answer{},
		asked: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_hub_commands_total", Help: "Commands sent to the processors, by outcome: an answer's code, told, unavailable.",
		}, []string{"outcome"}),
		latency: factory.NewHistogram(prometheus.HistogramOpts{
			Name: "quittance_hub_reply_seconds", Help: "Time from a command to its reply.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
	}
	for _, outcome := range []string{string(checkout.CodeOK), "told", "unavailable", "undecodable"} {
		c.asked.WithLabelValues(outcome)
	}
	var b [4]byte
	_, _ = rand.Read(b[:])                                                                             // never fails
	c.partition = int32(binary.BigEndian.Uint32(b[:]) % uint32(cfg.Space.Count(schemas.TopicReplies))) //nolint:gosec // a partition

	var err error
	if c.producer, err = cfg.Kafka.Producer(); err != nil {
		return nil, err
	}
	topic := cfg.Space.Name(schemas.TopicReplies)
	ends, err := kadm.NewClient(c.producer).ListEndOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		c.producer.Close()
		return nil, fmt.Errorf("finding the end of %s: %w", topic, err)
	}
	end, _ := ends.Lookup(topic, c.partition)
	c.replies, err = cfg.Kafka.Client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {c.partition: kgo.NewOffset().At(end.Offset)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
	)
	if err != nil {
		c.producer.Close()
		return nil, err
	}
	return c, nil
}

// Run hands replies to the requests that wait for them, until ctx ends. Then it
// closes the connections.
func (c *Client) Run(ctx context.Context) error {
	defer c.producer.Close()
	defer c.replies.Close()
	for {
		fetches := c.replies.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			c.cfg.Log.Warn("reading replies", slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		})
		fetches.EachRecord(c.reply)
	}
}

func (c *Client) reply(rec *kgo.Record) {
	c.mu.Lock()
	ch, mine := c.waiting[string(rec.Key)]
	delete(c.waiting, string(rec.Key))
	c.mu.Unlock()
	if !mine {
		return // of another instance, or given up
	}
	var r record.Reply
	if err := c.cfg.Codec.Decode(rec.Value, &r); err != nil {
		c.cfg.Log.Error("decoding a reply", slog.Int64("offset", rec.Offset), slog.Any("error", err))
		close(ch)
		return
	}
	ch <- mapping.ToAnswer(&r)
}

// Ask sends a command and waits for its answer. The error wraps ErrUnavailable
// when none came in time, else it is ctx's or checkout.ErrMalformedID.
func (c *Client) Ask(ctx context.Context, cmd checkout.Command) (checkout.Answer, error) {
	begun := time.Now()
	id := c.instance + "/" + uuid.NewString()
	ch := make(chan checkout.Answer, 1)
	c.mu.Lock()
	c.waiting[id] = ch
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()

	cmd.ReplyTo = &checkout.ReplyTo{CorrelationID: id, Partition: c.partition}
	rec, err := c.record(cmd)
	if err != nil {
		return checkout.Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	failed := make(chan error, 1)
	// The record outlives a caller who goes away: half a command is none.
	c.producer.Produce(context.WithoutCancel(ctx), rec, func(_ *kgo.Record, err error) {
		if err != nil {
			failed <- err
		}
	})
	select {
	case a, ok := <-ch:
		if !ok {
			c.asked.WithLabelValues("undecodable").Inc()
			return checkout.Answer{}, fmt.Errorf("reply to %s: %w", id, ErrUnavailable)
		}
		c.latency.Observe(time.Since(begun).Seconds())
		c.asked.WithLabelValues(string(a.Code)).Inc()
		return a, nil
	case err := <-failed:
		c.asked.WithLabelValues("unavailable").Inc()
		return checkout.Answer{}, fmt.Errorf("sending a command: %w: %w", ErrUnavailable, err)
	case <-ctx.Done():
		c.asked.WithLabelValues("unavailable").Inc()
		return checkout.Answer{}, fmt.Errorf("awaiting a reply: %w: %w", ErrUnavailable, ctx.Err())
	}
}

// Tell sends a command that asks for no answer. It returns once the broker has
// it; the error wraps ErrUnavailable, and then the command may be sent again.
func (c *Client) Tell(ctx context.Context, cmd checkout.Command) error {
	cmd.ReplyTo = nil
	rec, err := c.record(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	if err := c.producer.ProduceSync(ctx, rec).FirstErr(); err != nil {
		c.asked.WithLabelValues("unavailable").Inc()
		return fmt.Errorf("sending a command: %w: %w", ErrUnavailable, err)
	}
	c.asked.WithLabelValues("told").Inc()
	return nil
}

// record is the command on its way to the partition of its agency, which a session
// id carries too.
func (c *Client) record(cmd checkout.Command) (*kgo.Record, error) {
	topic := schemas.TopicCommands
	key := cmd.TenantID
	var partition int32
	if key != "" {
		partition = c.cfg.Space.Partition(topic, key)
	} else {
		key = cmd.SessionID
		var err error
		if partition, err = checkout.SessionPartition(cmd.SessionID); err != nil || partition >= c.cfg.Space.Count(topic) {
			return nil, checkout.ErrMalformedID
		}
	}
	r, err := mapping.FromCommand(cmd)
	if err != nil {
		return nil, err
	}
	value, err := c.cfg.Codec.Encode(r)
	if err != nil {
		return nil, err
	}
	return &kgo.Record{Topic: c.cfg.Space.Name(topic), Partition: partition, Key: []byte(key), Value: value}, nil
}
