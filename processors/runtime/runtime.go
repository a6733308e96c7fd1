package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

var (
	// ErrFenced ends Run: another producer has the same transactional id. Two
	// instances are configured alike, or an old one still runs.
	ErrFenced = errors.New("another instance has the same transactional id")
	// ErrPartitions ends Run: input and changelog do not have the same number of
	// partitions.
	ErrPartitions = errors.New("input and state topics differ in their partitions")
	// ErrStoreInUse ends Run: another process has the folder of the local stores.
	ErrStoreInUse = errors.New("the local stores are in use by another process")
)

// Backoff between memberships that fail.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// Runtime runs a Processor over the partitions that the group assigns to this
// instance.
type Runtime struct {
	cfg   Config
	met   *metrics
	hooks hooks

	mu         sync.Mutex
	membership *membership
}

// New checks the configuration and registers the metrics. It connects nothing.
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Runtime{cfg: cfg, met: newMetrics(cfg.Metrics)}, nil
}

// Run decides until ctx ends. It then finishes the transaction in hand, leaves
// the group and flushes the local stores, within Config.ShutdownTimeout or so,
// and returns nil.
//
// Brokers that restart, fetches and commits that fail, a group that throws the
// instance out: all that is survived. ErrFenced, ErrPartitions and ErrStoreInUse
// are what it ends with.
func (r *Runtime) Run(ctx context.Context) error {
	if r.cfg.StoreDir != "" {
		if err := os.MkdirAll(r.cfg.StoreDir, 0o750); err != nil {
			return fmt.Errorf("making the folder of the local stores: %w", err)
		}
		lock, err := pebble.LockDirectory(r.cfg.StoreDir, vfs.Default)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrStoreInUse, r.cfg.StoreDir, err)
		}
		defer lock.Close() //nolint:errcheck // the end of the process releases it as well
	}
	cache := pebble.NewCache(r.cfg.CacheSize)
	defer cache.Unref()

	for wait := minBackoff; ; wait = min(2*wait, maxBackoff) {
		began := time.Now()
		err := r.runMembership(ctx, cache)
		switch {
		case ctx.Err() != nil && !errors.Is(err, errDied):
			return nil
		case errors.Is(err, ErrFenced), errors.Is(err, ErrPartitions), errors.Is(err, errDied):
			return err
		}
		if time.Since(began) > time.Minute {
			wait = minBackoff
		}
		r.cfg.Log.Error("processor session ended, starting another", slog.Any("error", err), slog.Duration("in", wait))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *Runtime) runMembership(ctx context.Context, cache *pebble.Cache) error {
	stateID, err := r.inspect(ctx)
	if err != nil {
		return err
	}
	m, err := newMembership(ctx, &r.cfg, &r.hooks, r.met, cache, stateID)
	if err != nil {
		return err
	}
	r.met.memberships.Inc()
	r.mu.Lock()
	r.membership = m
	r.mu.Unlock()

	g, loop := errgroup.WithContext(ctx)
	stopped := make(chan struct{})
	g.Go(func() error {
		defer close(stopped)
		return m.run(loop)
	})
	g.Go(func() error {
		every := time.NewTicker(r.cfg.FlushInterval)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				m.flush()
			case <-stopped:
				return nil
			}
		}
	})
	err = g.Wait()

	r.mu.Lock()
	r.membership = nil
	r.mu.Unlock()
	cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(r.cfg.ShutdownTimeout, 3*time.Second))
	defer cancel()
	m.close(cctx)
	return err
}

// inspect checks the topics and returns the id of the changelog, which tells it
// from another one of that name.
func (r *Runtime) inspect(ctx context.Context) (kadm.TopicID, error) {
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.cfg.Brokers...), kgo.WithLogger(clientLog{r.cfg.Log})}, r.cfg.ClientOpts...)...)
	if err != nil {
		return kadm.TopicID{}, fmt.Errorf("making a client: %w", err)
	}
	defer cl.Close()
	md, err := kadm.NewClient(cl).Metadata(ctx, r.cfg.InputTopic, r.cfg.StateTopic, r.cfg.PoisonTopic)
	if err != nil {
		return kadm.TopicID{}, fmt.Errorf("asking for the topics: %w", err)
	}
	for _, name := range []string{r.cfg.InputTopic, r.cfg.StateTopic, r.cfg.PoisonTopic} {
		t, ok := md.Topics[name]
		if !ok || t.Err != nil || len(t.Partitions) == 0 {
			return kadm.TopicID{}, fmt.Errorf("topic %s is not there: %w", name, errors.Join(t.Err))
		}
	}
	in, state := len(md.Topics[r.cfg.InputTopic].Partitions), len(md.Topics[r.cfg.StateTopic].Partitions)
	if in != state {
		return kadm.TopicID{}, fmt.Errorf("%w: %s has %d, %s has %d", ErrPartitions, r.cfg.InputTopic, in, r.cfg.StateTopic, state)
	}
	return md.Topics[r.cfg.StateTopic].ID, nil
}

// Ready tells whether this instance is in the group and decides every partition
// that it was assigned, which may be none. Safe for concurrent use.
func (r *Runtime) Ready() bool {
	r.mu.Lock()
	m := r.membership
	r.mu.Unlock()
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		if p.phase != active {
			return false
		}
	}
	return m.joined
}

// Assigned returns the partitions that this instance decides, by number; those
// that are still being restored are not among them. Safe for concurrent use.
func (r *Runtime) Assigned() []int32 {
	r.mu.Lock()
	m := r.membership
	r.mu.Unlock()
	if m == nil {
		return nil
	}
	var ids []int32
	for _, p := range m.actives() {
		ids = append(ids, p.id)
	}
	slices.Sort(ids)
	return ids
}
