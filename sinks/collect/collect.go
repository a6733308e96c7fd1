package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"quittance/internal/connector"
	"quittance/internal/kafka"
	"quittance/schemas"
)

// Config of a Sink. Zero values of the numbers mean the defaults that their
// comments name.
type Config struct {
	Kafka kafka.Config
	Space *kafka.Topology
	Codec *schemas.Codec

	// Connectors by offer id.
	Connectors map[string]connector.Connector
	// Account is an agency's merchant account for an offer, of test or live mode;
	// false when there is none (any more). It is asked at every call.
	Account func(tenantID string, live bool, offerID string) (connector.Account, bool)
	// Signer signs callback addresses.
	Signer connector.Signer
	// PublicURL is where operators reach the service: callbacks go below it.
	PublicURL string
	// Sealer seals the redirects that operators answer with.
	Sealer connector.Sealer
	// CheckoutURL is where citizens reach the checkout pages: an operator's own
	// page sends them back there.
	CheckoutURL string

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// MaxCalls is how many requests for money, and apart from them how many
	// enquiries, are under way with one operator; 128.
	MaxCalls int
	// MaxAccountEnquiries is how many enquiries of one merchant account are under
	// way, so that a busy one leaves room for others; 16.
	MaxAccountEnquiries int
	// Backlog is how many records are in hand; beyond it none are fetched; 16,384.
	Backlog int
	// DrainTimeout bounds how long calls under way are waited for at the end; 8 s.
	DrainTimeout time.Duration
}

func (c *Config) validate() error {
	c.MaxCalls = cmp.Or(c.MaxCalls, 128)
	c.MaxAccountEnquiries = cmp.Or(c.MaxAccountEnquiries, 16)
	c.Backlog = cmp.Or(c.Backlog, 16384)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 8*time.Second)
	if c.Space == nil || c.Codec == nil || c.Account == nil || c.Signer == nil || c.Sealer == nil || c.Now == nil || c.Log == nil {
		return errors.New("collect: Space, Codec, Account, Signer, Sealer, Now and Log are required")
	}
	if len(c.Connectors) == 0 {
		return errors.New("collect: no connectors")
	}
	for _, address := range []string{c.PublicURL, c.CheckoutURL} {
		if u, err := url.Parse(address); err != nil || !u.IsAbs() || u.Host == "" {
			return errors.New("collect: PublicURL and CheckoutURL must be absolute URLs")
		}
	}
	if c.MaxCalls < 0 || c.MaxAccountEnquiries < 0 || c.Backlog < 0 || c.DrainTimeout < 0 {
		return errors.New("collect: limits must not be negative")
	}
	return nil
}

// Sink works off collections.requests. Make it with New and call Run once.
type Sink struct {
	cfg     Config
	client  *kgo.Client
	metrics metrics
	slots   *slots
	newest  newest
	// complain keeps an operator's outage from filling the log.
	complain rate.Sometimes
	backlog  chan struct{} // one element for each record in hand

	mu    sync.Mutex
	marks map[int32]*watermark
}

type metrics struct {
	requests *prometheus.CounterVec
	calls    *prometheus.HistogramVec
	poison   prometheus.Counter
	inHand   prometheus.GaugeFunc
}

const maxPoll = 500

// New checks the configuration and makes a Sink, a member of the group
// {prefix}sinks.collect.
func New(cfg Config) (*Sink, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Sink{
		cfg: cfg, slots: newSlots(cfg.MaxCalls, cfg.MaxAccountEnquiries), newest: newest{byID: map[string]enquiries{}},
		complain: rate.Sometimes{Interval: time.Second},
		backlog:  make(chan struct{}, cfg.Backlog), marks: map[int32]*watermark{},
	}
	with := promauto.With(cfg.Metrics)
	s.metrics = metrics{
		requests: with.NewCounterVec(prometheus.CounterOpts{
			Name: "quittance_collect_requests_total", Help: "Collection requests worked off, by what came of them.",
		}, []string{"operator", "kind", "outcome"}),
		calls: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quittance_collect_call_seconds", Help: "Calls to operators, the wait for a turn included.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40},
		}, []string{"operator", "call", "outcome"}),
		poison: with.NewCounter(prometheus.CounterOpts{
			Name: "quittance_collect_poison_total", Help: "Records of collections.requests that could not be understood.",
		}),
		inHand: with.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "quittance_collect_in_hand", Help: "Collection requests read and not done.",
		}, func() float64 { return float64(len(s.backlog)) }),
	}
	for _, c := range cfg.Connectors {
		for _, call := range []string{kindCollect, kindEnquire} {
			for _, fault := range []connector.FaultKind{
				connector.FaultNetwork, connector.FaultTimeout, connector.FaultServer, connector.FaultBusy, connector.FaultCredentials, connector.FaultMalformed,
			} {
				s.metrics.calls.WithLabelValues(c.Operator(), call, string(fault))
			}
		}
	}
	var err error
	s.client, err = cfg.Kafka.Client(
		kgo.ConsumerGroup(cfg.Kafka.Prefix+"sinks.collect"),
		kgo.ConsumeTopics(cfg.Space.Name(schemas.TopicCollections)),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// From the start where nothing was committed or the offset is gone: asking
		// twice is harmless, skipping is not.
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(time.Second),
		kgo.BlockRebalanceOnPoll(), kgo.AutoCommitMarks(), kgo.AutoCommitInterval(500*time.Millisecond),
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lost),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return s, nil
}

func (s *Sink) assigned(_ context.Context, cl *kgo.Client, assigned map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, partitions := range assigned {
		for _, p := range partitions {
			s.marks[p] = &watermark{mark: func(r *kgo.Record) { cl.MarkCommitRecords(r) }}
		}
	}
}

// revoked hands over what is done. Calls under way go on: the next owner asks
// about the same payments, and a report that comes twice changes nothing. But no
// further request for money begins: that is the next owner's, whose clock may
// say that it is too late for one.
func (s *Sink) revoked(ctx context.Context, cl *kgo.Client, revoked map[string][]int32) {
	if err := cl.CommitMarkedOffsets(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "committing offsets of revoked partitions", slog.Any("error", err))
	}
	s.lost(ctx, cl, revoked)
}

func (s *Sink) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, partitions := range lost {
		for _, p := range partitions {
			if w := s.marks[p]; w != nil {
				w.release()
				delete(s.marks, p)
			}
		}
	}
}

func (s *Sink) mark(partition int32) *watermark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks[partition]
}

// Run works until ctx ends, then finishes the calls under way, DrainTimeout at
// most, commits, and leaves the group. What waits is left to the next member.
// The error is nil after an orderly end.
func (s *Sink) Run(ctx context.Context) error {
	// Calls under way do not see the end of ctx, only that of the drain.
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var work, end errgroup.Group
	drained := make(chan struct{})
	s.poll(ctx, calls, &work)
	end.Go(func() error {
		defer close(drained)
		return work.Wait()
	})

	timer := time.NewTimer(s.cfg.DrainTimeout)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "collection requests left to the next member", slog.Int("count", len(s.backlog)))
	}
	commit, cancel := context.WithTimeout(calls, 2*time.Second)
	defer cancel()
	if err := s.client.CommitMarkedOffsets(commit); err != nil {
		s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "committing the last offsets", slog.Any("error", err))
	}
	stop()
	// A report that the broker does not take holds its worker until the client goes.
	s.client.CloseAllowingRebalance()
	return end.Wait()
}

// poll fetches until ctx ends and starts one worker for each record. It waits
// only for room in the backlog, and not while it holds a rebalance up.
func (s *Sink) poll(ctx, calls context.Context, work *errgroup.Group) {
	for s.room(ctx) {
		fetches := s.client.PollRecords(ctx, min(maxPoll, cap(s.backlog)-len(s.backlog)))
		if fetches.IsClientClosed() || ctx.Err() != nil {
			s.client.AllowRebalance()
			return
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			s.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "fetching collection requests",
				slog.String("topic", topic), slog.Int("partition", int(partition)), slog.Any("error", err))
		})
		fetches.EachRecord(func(r *kgo.Record) {
			w := s.mark(r.Partition)
			if w == nil {
				return // taken away since
			}
			w.take(r)
			s.backlog <- struct{}{} // there is room: only this loop adds
			work.Go(func() error {
				defer func() { <-s.backlog }()
				j := job{sink: s, record: r, partition: w, waiting: ctx, calls: calls}
				if j.do() {
					w.done(r)
				}
				return nil
			})
		})
		s.client.AllowRebalance()
	}
}

// room waits until the backlog has room and says whether ctx still lives.
func (s *Sink) room(ctx context.Context) bool {
	for len(s.backlog) == cap(s.backlog) {
		if !sleep(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return ctx.Err() == nil
}

// sleep lets d pass and says whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
