package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxRestores is how many partitions are restored at the same time.
const maxRestores = 4

// session is one membership of the group, with one client. When its client comes
// into a state that it cannot leave, everything local goes with it and the
// Runtime makes another.
type session struct {
	cfg    *Config
	faults *faults
	met    *metrics
	log    *slog.Logger
	cache  *pebble.Cache

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
	refused   map[int32]bool          // said so
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
func (s *session) opts(more ...kgo.Opt) []kgo.Opt {
	opts := []kgo.Opt{kgo.SeedBrokers(s.cfg.Brokers...), kgo.WithLogger(clientLog{s.log})}
	opts = append(opts, s.cfg.ClientOpts...)
	return append(opts, more...)
}

// newSession makes a client that joins the group.
func newSession(ctx context.Context, cfg *Config, f *faults, met *metrics, cache *pebble.Cache, stateID kadm.TopicID) (*session, error) {
	s := &session{
		cfg: cfg, faults: f, met: met, log: cfg.Log, cache: cache, stateID: stateID,
		restores: make(chan struct{}, maxRestores),
		parts:    map[int32]*partition{}, closing: map[int32]chan struct{}{},
		committed: map[int32]int64{}, refused: map[int32]bool{},
	}
	id := cfg.TransactionalID
	if f.nonce {
		id += "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	partitioner := kgo.ManualPartitioner()
	if f.hashPartitioner {
		partitioner = kgo.StickyKeyPartitioner(nil)
	}
	s.background, s.endBackground = context.WithCancel(context.WithoutCancel(ctx))
	s.work = s.background

	gts, err := kgo.NewGroupTransactSession(s.opts(
		kgo.ConsumerGroup(cfg.Group),
		kgo.ConsumeTopics(cfg.InputTopic),
		kgo.TransactionalID(id),
		kgo.TransactionTimeout(cfg.TransactionTimeout),
		// Measured together with the broker's
		// add.partitions.to.txn.retry.backoff.ms=1: see the settings of the broker.
		kgo.ConcurrentTransactionsBackoff(time.Millisecond),
		kgo.MetadataMinAge(20*time.Millisecond),
		kgo.ProducerLinger(0),
		// Batches are small and the broker unpacks them to look inside: on two
		// cores it cost more than it saved.
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(cfg.MaxRecordBytes),
		kgo.RecordPartitioner(partitioner),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(cfg.SessionTimeout),
		kgo.HeartbeatInterval(cfg.HeartbeatInterval),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.AdjustFetchOffsetsFn(s.adjust),
		kgo.OnPartitionsAssigned(s.onAssigned),
		kgo.OnPartitionsRevoked(s.onRevoked),
		kgo.OnPartitionsLost(s.onRevoked),
		kgo.WithHooks(startHook{s}),
	)...)
	if err != nil {
		s.endBackground()
		return nil, fmt.Errorf("making the client: %w", err)
	}
	s.gts = gts
	return s, nil
}

// run is the loop: poll, decide, commit, until ctx ends or the session cannot go
// on. A transaction in hand is finished first.
func (s *session) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.wakeLocked()
		// What is in hand may take this long, for instance because the brokers
		// are gone.
		time.AfterFunc(s.cfg.ShutdownTimeout, s.endBackground)
	})
	defer stop()
	// Asking for the producer's id aborts what this instance left open when it
	// died. The client would ask with the first record that it sends, which the
	// restore of the changelog behind that transaction would wait for.
	if _, _, err := s.cl.ProducerID(ctx); err != nil {
		return fmt.Errorf("taking over the transactional id: %w", err)
	}
	for ctx.Err() == nil {
		fs := s.poll(ctx)
		if err := s.step(fs); err != nil {
			return err
		}
		s.held = false
		s.gts.AllowRebalance()
		if s.faults.betweenPolls != nil {
			s.faults.betweenPolls(s)
		}
	}
	return nil
}

// poll waits for records until there is something else to look at.
func (s *session) poll(ctx context.Context) kgo.Fetches {
	limit := s.cfg.MaxPollRecords
	if s.single > 0 {
		limit = 1
	}
	wait := time.Until(s.tickCheck)
	pctx, cancel := context.WithTimeout(ctx, max(0, wait))
	defer cancel()
	s.mu.Lock()
	if s.wake {
		s.wake, wait = false, 0
	} else {
		s.endPoll = cancel
	}
	s.mu.Unlock()
	if s.moreTicks || wait <= 0 {
		s.tickCheck = time.Time{}
		pctx = nil // does not wait; an ended context would even keep the records that are there
	}
	fs := s.gts.PollRecords(pctx, limit)
	s.mu.Lock()
	s.endPoll = nil
	if s.wake {
		s.wake, s.tickCheck = false, time.Time{}
	}
	s.mu.Unlock()
	return s.polled(fs)
}

func (s *session) polled(fs kgo.Fetches) kgo.Fetches {
	// A poll that returns nothing at all does not hold rebalances up.
	s.held = len(fs) > 0
	return fs
}

// hold sees to it that no partition comes or goes until AllowRebalance.
func (s *session) hold() {
	if s.held {
		return
	}
	ctx, cancel := context.WithCancel(s.work)
	cancel()
	s.gts.PollRecords(ctx, 1) // returns nothing, but holds
	s.held = true
}

// step does one round of work.
func (s *session) step(fs kgo.Fetches) error {
	for _, e := range fs.Errors() {
		if err := s.fetchError(e); err != nil {
			return err
		}
	}
	if fs.NumRecords() > 0 {
		if err := s.decide(fs); err != nil {
			return err
		}
	}
	if !s.moreTicks && time.Now().Before(s.tickCheck) {
		return nil
	}
	s.hold()
	s.adopt()
	s.tickCheck = time.Now().Add(s.cfg.TickInterval)
	if err := s.tick(); err != nil {
		return err
	}
	return s.touch()
}

// touch renews the age of stores to which nothing happens.
func (s *session) touch() error {
	for _, p := range s.actives() {
		if time.Since(p.touched) < min(time.Minute, s.cfg.StoreMaxAge/4) {
			continue
		}
		p.touched = time.Now()
		if err := p.store.Live(); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) fetchError(e kgo.FetchError) error {
	var group *kgo.ErrGroupSession
	switch {
	case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded):
	case errors.Is(e.Err, kgo.ErrClientClosed):
		return e.Err
	case errors.As(e.Err, &group):
		// Its partitions are lost, it joins again by itself.
		s.log.Warn("group session ended", slog.Any("error", e.Err))
	case errors.Is(e.Err, kerr.OffsetOutOfRange) && e.Topic == s.cfg.InputTopic:
		if p := s.activePartition(e.Partition); p != nil {
			s.log.Error("the input does not have the next offset", slog.Int("partition", int(p.id)), slog.Any("error", e.Err))
			s.reload(p)
		}
	default:
		s.log.Warn("fetching input", slog.String("topic", e.Topic), slog.Int("partition", int(e.Partition)), slog.Any("error", e.Err))
	}
	return nil
}

// close ends the membership and closes the stores. It is quick when ctx has
// ended.
func (s *session) close(ctx context.Context) {
	s.gts.AllowRebalance()
	if !s.died {
		if err := s.cl.LeaveGroupContext(ctx); err != nil {
			s.log.Warn("leaving the group", slog.Any("error", err))
		}
	}
	s.endBackground()
	s.mu.Lock()
	for _, p := range s.parts {
		s.drop(p)
	}
	s.gauges()
	s.mu.Unlock()
	s.gts.CloseAllowingRebalance()
	s.wg.Wait()
}

// flush flushes the stores that there are.
func (s *session) flush() {
	s.mu.Lock()
	open := make([]*partition, 0, len(s.parts))
	for _, p := range s.parts {
		if p.phase != restoring { // a restoring partition may be changing its store
			open = append(open, p)
		}
	}
	stores := make(map[int32]interface{ Flush() error }, len(open))
	for _, p := range open {
		stores[p.id] = p.store
	}
	s.mu.Unlock()
	for id, st := range stores {
		if err := st.Flush(); err != nil {
			s.log.Error("flushing local store", slog.Int("partition", int(id)), slog.Any("error", err))
		}
	}
}

// startHook hands the client to the session before anything can call back.
type startHook struct{ s *session }

// OnNewClient implements kgo.HookNewClient.
func (h startHook) OnNewClient(cl *kgo.Client) {
	h.s.cl, h.s.adm = cl, kadm.NewClient(cl)
}

// clientLog passes on what the client warns of.
type clientLog struct{ log *slog.Logger }

func (clientLog) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	if level == kgo.LogLevelError || level == kgo.LogLevelWarn {
		l.log.Warn("kafka client", append([]any{slog.String("message", msg)}, keyvals...)...)
	}
}
