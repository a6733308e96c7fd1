package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"quittance/processors/runtime/store"
)

// maxRestores is how many partitions are restored at the same time.
const maxRestores = 4

// waitingInterval is how often postponed entries are counted.
const waitingInterval = 10 * time.Second

// membership is one membership of the consumer group, with one client. When the client
// reaches a state that it cannot leave, the Runtime drops the membership with all its
// partitions and creates another.
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

	// work is the context of everything that the membership does. It ends when the
	// membership closes, or shutdownTimeout after the end of Run's context: a
	// transaction that has begun may take that long.
	work     context.Context
	endWork  context.CancelFunc
	wg       sync.WaitGroup
	restores chan struct{} // limits concurrent restores

	mu        sync.Mutex
	parts     map[int32]*partition
	closing   map[int32]chan struct{} // closed when the partition's previous store is closed
	committed map[int32]int64         // offsets that the group had at the assignment; negative: none
	refused   map[int32]bool          // the refusal is already in the log
	joined    bool
	died      bool // a test ended this instance
	wake      bool // the next poll must not wait
	endPoll   context.CancelFunc

	// Only the loop uses these.
	held      bool      // rebalances are blocked
	tickCheck time.Time // next check for due deadlines
	moreTicks bool      // more ticks are due than one transaction takes
	tickFirst int       // rotates the first partition of a check
	// waitingCheck is when the postponed entries are counted again.
	waitingCheck time.Time
	single       int // this many records or ticks get a transaction each
	txn          *transaction
}

// opts returns the options of every client and then more.
func (c *Config) opts(more ...kgo.Opt) []kgo.Opt {
	return slices.Concat([]kgo.Opt{kgo.SeedBrokers(c.Brokers...), kgo.WithLogger(clientLog{c.Log})}, c.Options, more)
}

// newMembership creates a client that joins the group.
func newMembership(ctx context.Context, cfg *Config, h *hooks, met *metrics, cache *pebble.Cache, stateID kadm.TopicID) (*membership, error) {
	m := &membership{
		cfg: cfg, hooks: h, met: met, log: cfg.Log, cache: cache, stateID: stateID,
		restores: make(chan struct{}, maxRestores),
		parts:    map[int32]*partition{}, closing: map[int32]chan struct{}{},
		committed: map[int32]int64{}, refused: map[int32]bool{},
	}
	m.work, m.endWork = context.WithCancel(context.WithoutCancel(ctx))

	gts, err := kgo.NewGroupTransactSession(cfg.opts(
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.InputTopic),
		kgo.TransactionalID(cfg.TransactionalID),
		kgo.TransactionTimeout(cfg.TransactionTimeout),
		// Measured together with the broker's setting
		// add.partitions.to.txn.retry.backoff.ms=1.
		kgo.ConcurrentTransactionsBackoff(time.Millisecond),
		kgo.MetadataMinAge(20*time.Millisecond),
		kgo.ProducerLinger(0),
		// Batches are small and the broker decompresses them: on two cores
		// compression cost more CPU time than it saved.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(fetchWait),
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
		m.endWork()
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	m.gts = gts
	return m, nil
}

// run is the loop: poll, decide, commit. It returns when ctx ends or the membership
// cannot continue. It finishes a transaction that has begun.
func (m *membership) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.wakeLocked()
		// Without brokers the transaction would never end.
		time.AfterFunc(shutdownTimeout, m.endWork)
	})
	defer stop()
	// The request for the producer id aborts the transaction that this instance left open
	// when it died. The client would send the request with its first record. But the
	// restore waits for the end of that transaction, and no record is sent before it.
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

// poll returns records. It waits for them until the next check for due deadlines, or
// until wakeLocked ends the wait.
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
		pctx = nil // returns buffered records without waiting; a cancelled context would return none
	}
	fs := m.gts.PollRecords(pctx, limit)
	m.mu.Lock()
	m.endPoll = nil
	if m.wake {
		m.wake, m.tickCheck = false, time.Time{}
	}
	m.mu.Unlock()
	m.held = len(fs) > 0 // a poll that returns nothing does not block rebalances
	return fs
}

// hold blocks rebalances until AllowRebalance.
func (m *membership) hold() {
	if m.held {
		return
	}
	ctx, cancel := context.WithCancel(m.work)
	cancel()
	m.gts.PollRecords(ctx, 1) // returns nothing and blocks rebalances
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
	if err := m.adopt(); err != nil {
		return err
	}
	m.tickCheck = time.Now().Add(m.cfg.TickInterval)
	if err := m.tick(); err != nil {
		return err
	}
	if err := m.countWaiting(); err != nil {
		return err
	}
	return m.touch()
}

// countWaiting sets the metric of the entries whose tick waits to be tried again.
func (m *membership) countWaiting() error {
	if time.Now().Before(m.waitingCheck) {
		return nil
	}
	m.waitingCheck = time.Now().Add(waitingInterval)
	waiting := 0
	for _, p := range m.actives() {
		n, err := p.store.Postponed()
		if err != nil {
			return err
		}
		waiting += n
	}
	m.met.ticksWaiting.Set(float64(waiting))
	return nil
}

// touch renews the age of stores without recent changes.
func (m *membership) touch() error {
	for _, p := range m.actives() {
		if time.Since(p.touched) < time.Minute {
			continue
		}
		p.touched = time.Now()
		if err := p.store.Live(); err != nil {
			return err
		}
	}
	return nil
}

// fetchError handles an error of a poll. It returns the error if the client is closed.
func (m *membership) fetchError(e kgo.FetchError) error {
	var group *kgo.ErrGroupSession
	switch {
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
	case errors.Is(e.Err, kgo.ErrClientClosed):
		return e.Err
	case errors.As(e.Err, &group):
		// The client loses its partitions and joins the group again.
		m.log.Warn("the group removed this instance; the client joins again", slog.Any("error", e.Err))
	case errors.Is(e.Err, kerr.OffsetOutOfRange) && e.Topic == m.cfg.InputTopic:
		if p := m.activePartition(e.Partition); p != nil {
			m.log.Error("the next offset does not exist in the input; restoring the partition again", slog.Int("partition", int(p.id)), slog.Any("error", e.Err))
			m.reload(p)
		}
	default:
		m.log.Warn("fetching the input", slog.String("topic", e.Topic), slog.Int("partition", int(e.Partition)), slog.Any("error", e.Err))
	}
	return nil
}

// close ends the membership and closes the stores. ctx bounds the leave request to the
// group.
func (m *membership) close(ctx context.Context) {
	m.gts.AllowRebalance()
	if !m.died {
		if err := m.cl.LeaveGroupContext(ctx); err != nil {
			m.log.Warn("leaving the group", slog.Any("error", err))
		}
	}
	m.endWork()
	m.mu.Lock()
	for _, p := range m.parts {
		m.drop(p)
	}
	m.gauges()
	m.met.ticksWaiting.Set(0)
	m.mu.Unlock()
	m.gts.CloseAllowingRebalance()
	m.wg.Wait()
}

// flush flushes the stores of all restored partitions.
func (m *membership) flush() {
	stores := map[int32]*store.Store{}
	m.mu.Lock()
	for id, p := range m.parts {
		if p.phase != restoring { // the restore may replace its store
			stores[id] = p.store
		}
	}
	m.mu.Unlock()
	for id, st := range stores {
		if err := st.Flush(); err != nil {
			m.log.Error("flushing a local store", slog.Int("partition", int(id)), slog.Any("error", err))
		}
	}
}

// startHook gives the client to the membership before the first callback.
type startHook struct{ m *membership }

// OnNewClient implements kgo.HookNewClient.
func (h startHook) OnNewClient(cl *kgo.Client) {
	h.m.cl, h.m.adm = cl, kadm.NewClient(cl)
}

// clientLog logs the warnings and errors of a client.
type clientLog struct{ log *slog.Logger }

func (clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if level == kgo.LogLevelError || level == kgo.LogLevelWarn {
		l.log.Warn("kafka client", append([]any{slog.String("message", msg)}, keyvals...)...)
	}
}
