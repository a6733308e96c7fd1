package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxRestores is how many partitions are restored at the same time.
const maxRestores = 4

// membership is one membership of the consumer group, with one client. When the
// client reaches a state that it cannot leave, the Runtime drops the membership with
// everything local and makes another.
type membership struct {
	cfg   *Config
	hooks *hooks
	met   *metrics
	log   *slog.Logger
	cache *pebble.Cache

	gts     *kgo.GroupTransactSession
	cl      *kgo.Client
	adm     *kadm.Client
	stateID kadm.TopicID

	// background ends what works beside the loop; work outlives the end of Run by
	// the time that a transaction in hand is given.
	background, work context.Context
	endBackground    context.CancelFunc
	wg               sync.WaitGroup
	restores         chan struct{} // limits restores

	mu        sync.Mutex
	parts     map[int32]*partition
	closing   map[int32]chan struct{} // closed when the store that a partition had is
	committed map[int32]int64         // offsets the group really had at the assignment
	refused   map[int32]bool          // refusal was logged
	joined    bool
	died      bool // of a test
	wake      bool // the loop has something to look at
	endPoll   context.CancelFunc

	// Of the loop.
	held      bool // rebalances wait for us
	tickCheck time.Time
	moreTicks bool
	tickFirst int
	single    int // so many records, or ticks, go one by one
	txn       *transaction
}

// opts are those of every client.
func (m *membership) opts(more ...kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(m.cfg.Brokers...), kgo.WithLogger(clientLog{m.log})}
	opts = append(opts, m.cfg.ClientOpts...)
	return append(opts, more...)
}

// newMembership makes a client that joins the group.
func newMembership(ctx context.Context, cfg *Config, h *hooks, met *metrics, cache *pebble.Cache, stateID kadm.TopicID) (*membership, error) {
	m := &membership{
		cfg: cfg, hooks: h, met: met, log: cfg.Log, cache: cache, stateID: stateID,
		restores: make(chan struct{}, maxRestores),
		parts:    map[int32]*partition{}, closing: map[int32]chan struct{}{},
		committed: map[int32]int64{}, refused: map[int32]bool{},
	}
	m.background, m.endBackground = context.WithCancel(context.WithoutCancel(ctx))
	m.work = m.background

	gts, err := kgo.NewGroupTransactSession(m.opts(
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.InputTopic),
		kgo.TransactionalID(cfg.TransactionalID),
		kgo.TransactionTimeout(cfg.TransactionTimeout),
		// Measured together with the broker's
		// add.partitions.to.txn.retry.backoff.ms=1: see the settings of the broker.
		kgo.ConcurrentTransactionsBackoff(time.Millisecond),
		kgo.MetadataMinAge(20*time.Millisecond),
		kgo.ProducerLinger(0),
		// Batches are small and the broker decompresses them: on two cores
		// compression cost more CPU time than it saved.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(cfg.MaxRecordBytes),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(cfg.SessionTimeout),
		kgo.HeartbeatInterval(cfg.HeartbeatInterval),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.AdjustFetchOffsetsFn(m.adjust),
		kgo.OnPartitionsAssigned(m.onAssigned),
		kgo.OnPartitionsRevoked(m.onRevoked),
		kgo.OnPartitionsLost(m.onRevoked),
		kgo.WithHooks(startHook{m}),
	)...)
	if err != nil {
		m.endBackground()
		return nil, fmt.Errorf("making the client: %w", err)
	}
	m.gts = gts
	return m, nil
}

// run is the loop: poll, decide, commit, until ctx ends or the membership cannot
// continue. A transaction in hand is finished first.
func (m *membership) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.wakeLocked()
		// What is in hand may take this long, for instance because the brokers
		// are gone.
		time.AfterFunc(m.cfg.ShutdownTimeout, m.endBackground)
	})
	defer stop()
	// Asking for the producer's id aborts what this instance left open when it
	// died. The client would ask with the first record that it sends, which the
	// restore of the changelog behind that transaction would wait for.
	if _, _, err := m.cl.ProducerID(ctx); err != nil {
		return fmt.Errorf("taking over the transactional id: %w", err)
	}
	for ctx.Err() == nil {
		fs := m.poll(ctx)
		if err := m.step(fs); err != nil {
			return err
		}
		m.held = false
		m.gts.AllowRebalance()
		if m.hooks.betweenPolls != nil {
			m.hooks.betweenPolls(m)
		}
	}
	return nil
}

// poll waits for records until there is something else to look at.
func (m *membership) poll(ctx context.Context) kgo.Fetches {
	limit := m.cfg.MaxPollRecords
	if m.single > 0 {
		limit = 1
	}
	wait := time.Until(m.tickCheck)
	pctx, cancel := context.WithTimeout(ctx, max(0, wait))
	defer cancel()
	m.mu.Lock()
	if m.wake {
		m.wake, wait = false, 0
	} else {
		m.endPoll = cancel
	}
	m.mu.Unlock()
	if m.moreTicks || wait <= 0 {
		m.tickCheck = time.Time{}
		pctx = nil // does not wait; an ended context would even keep the records that are there
	}
	fs := m.gts.PollRecords(pctx, limit)
	m.mu.Lock()
	m.endPoll = nil
	if m.wake {
		m.wake, m.tickCheck = false, time.Time{}
	}
	m.mu.Unlock()
	return m.polled(fs)
}

func (m *membership) polled(fs kgo.Fetches) kgo.Fetches {
	// A poll that returns nothing at all does not hold rebalances up.
	m.held = len(fs) > 0
	return fs
}

// hold sees to it that no partition comes or goes until AllowRebalance.
func (m *membership) hold() {
	if m.held {
		return
	}
	ctx, cancel := context.WithCancel(m.work)
	cancel()
	m.gts.PollRecords(ctx, 1) // returns nothing, but holds
	m.held = true
}

// step does one round of work.
func (m *membership) step(fs kgo.Fetches) error {
	for _, e := range fs.Errors() {
		if err := m.fetchError(e); err != nil {
			return err
		}
	}
	if fs.NumRecords() > 0 {
		if err := m.decide(fs); err != nil {
			return err
		}
	}
	if !m.moreTicks && time.Now().Before(m.tickCheck) {
		return nil
	}
	m.hold()
	m.adopt()
	m.tickCheck = time.Now().Add(m.cfg.TickInterval)
	if err := m.tick(); err != nil {
		return err
	}
	return m.touch()
}

// touch renews the age of stores to which nothing happens.
func (m *membership) touch() error {
	for _, p := range m.actives() {
		if time.Since(p.touched) < min(time.Minute, m.cfg.StoreMaxAge/4) {
			continue
		}
		p.touched = time.Now()
		if err := p.store.Live(); err != nil {
			return err
		}
	}
	return nil
}

func (m *membership) fetchError(e kgo.FetchError) error {
	var group *kgo.ErrGroupSession
	switch {
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
	case errors.Is(e.Err, kgo.ErrClientClosed):
		return e.Err
	case errors.As(e.Err, &group):
		// Its partitions are lost, it joins again by itself.
		m.log.Warn("group session ended", slog.Any("error", e.Err))
	case errors.Is(e.Err, kerr.OffsetOutOfRange) && e.Topic == m.cfg.InputTopic:
		if p := m.activePartition(e.Partition); p != nil {
			m.log.Error("the input does not have the next offset", slog.Int("partition", int(p.id)), slog.Any("error", e.Err))
			m.reload(p)
		}
	default:
		m.log.Warn("fetching input", slog.String("topic", e.Topic), slog.Int("partition", int(e.Partition)), slog.Any("error", e.Err))
	}
	return nil
}

// close ends the membership and closes the stores. It is quick when ctx has
// ended.
func (m *membership) close(ctx context.Context) {
	m.gts.AllowRebalance()
	if !m.died {
		if err := m.cl.LeaveGroupContext(ctx); err != nil {
			m.log.Warn("leaving the group", slog.Any("error", err))
		}
	}
	m.endBackground()
	m.mu.Lock()
	for _, p := range m.parts {
		m.drop(p)
	}
	m.gauges()
	m.mu.Unlock()
	m.gts.CloseAllowingRebalance()
	m.wg.Wait()
}

// flush flushes the stores that there are.
func (m *membership) flush() {
	m.mu.Lock()
	open := make([]*partition, 0, len(m.parts))
	for _, p := range m.parts {
		if p.phase != restoring { // a restoring partition may be changing its store
			open = append(open, p)
		}
	}
	stores := make(map[int32]interface{ Flush() error }, len(open))
	for _, p := range open {
		stores[p.id] = p.store
	}
	m.mu.Unlock()
	for id, st := range stores {
		if err := st.Flush(); err != nil {
			m.log.Error("flushing local store", slog.Int("partition", int(id)), slog.Any("error", err))
		}
	}
}

// startHook hands the client to the membership before anything can call back.
type startHook struct{ m *membership }

// OnNewClient implements kgo.HookNewClient.
func (h startHook) OnNewClient(cl *kgo.Client) {
	h.m.cl, h.m.adm = cl, kadm.NewClient(cl)
}

// clientLog passes on what the client warns of.
type clientLog struct{ log *slog.Logger }

func (clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if level == kgo.LogLevelError || level == kgo.LogLevelWarn {
		l.log.Warn("kafka client", append([]any{slog.String("message", msg)}, keyvals...)...)
	}
}
