package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

var (
	// ErrFenced ends Run: another producer uses the same transactional id. Two instances
	// have the same configuration, or an old instance still runs.
	ErrFenced = errors.New("another instance uses the same transactional id: give each instance its own name and stop the old one")
	// ErrPartitions ends Run: input and changelog have different numbers of partitions.
	ErrPartitions = errors.New("the input topic and the state topic have different numbers of partitions")
	// ErrStoreInUse ends Run: another process has locked the folder of the local stores.
	ErrStoreInUse = errors.New("another process uses the local stores")
)

// Pauses after a membership that failed. Payments wait for the longest after the broker is
// back.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = time.Second
)

// Runtime runs a Processor over the partitions that the group assigns to this
// instance.
type Runtime struct {
	cfg        Config
	met        *metrics
	hooks      hooks
	membership atomic.Pointer[membership] // nil between two memberships
}

// New checks the configuration and registers the metrics. It opens no connection.
func New(cfg Config) (*Runtime, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Runtime{cfg: cfg, met: newMetrics(prometheus.WrapRegistererWith(prometheus.Labels{"processor": cfg.Name}, cfg.Metrics))}, nil
}

// Run decides input records until ctx ends. It then finishes the transaction that has
// begun, leaves the group, flushes the local stores and returns nil. This takes about
// shutdownTimeout at most.
//
// Run continues after restarts of brokers, failed fetches, failed commits and a removal
// from the group. It returns errors that wrap ErrFenced, ErrPartitions or ErrStoreInUse,
// and the error of creating the folder of the local stores.
func (r *Runtime) Run(ctx context.Context) error {
	if r.cfg.StoreDir != "" {
		if err := os.MkdirAll(r.cfg.StoreDir, 0o750); err != nil {
			return fmt.Errorf("creating the folder of the local stores: %w", err)
		}
		lock, err := pebble.LockDirectory(r.cfg.StoreDir, vfs.Default)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrStoreInUse, r.cfg.StoreDir, err)
		}
		defer lock.Close() //nolint:errcheck // the end of the process releases it as well
	}
	cache := pebble.NewCache(cacheSize)
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
		r.cfg.Log.Error("the membership in the processor group ended; starting another", slog.Any("error", err), slog.Duration("in", wait))
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// runMembership runs one membership until its end and returns its error.
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
	r.membership.Store(m)

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

	r.membership.Store(nil)
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	m.close(leave)
	return err
}

// inspect checks the topics and returns the id of the changelog. A topic that is deleted
// and created again has another id.
func (r *Runtime) inspect(ctx context.Context) (kadm.TopicID, error) {
	cl, err := kgo.NewClient(r.cfg.opts()...)
	if err != nil {
		return kadm.TopicID{}, fmt.Errorf("creating a client: %w", err)
	}
	defer cl.Close()
	md, err := kadm.NewClient(cl).Metadata(ctx, r.cfg.InputTopic, r.cfg.StateTopic, r.cfg.PoisonTopic)
	if err != nil {
		return kadm.TopicID{}, fmt.Errorf("asking for the topics: %w", err)
	}
	for _, name := range []string{r.cfg.InputTopic, r.cfg.StateTopic, r.cfg.PoisonTopic} {
		t, ok := md.Topics[name]
		if !ok || t.Err != nil || len(t.Partitions) == 0 {
			return kadm.TopicID{}, fmt.Errorf("topic %s does not exist: %w", name, cmp.Or(t.Err, error(kerr.UnknownTopicOrPartition)))
		}
	}
	in, state := len(md.Topics[r.cfg.InputTopic].Partitions), len(md.Topics[r.cfg.StateTopic].Partitions)
	if in != state {
		return kadm.TopicID{}, fmt.Errorf("%w: %s has %d, %s has %d", ErrPartitions, r.cfg.InputTopic, in, r.cfg.StateTopic, state)
	}
	return md.Topics[r.cfg.StateTopic].ID, nil
}

// Ready reports whether this instance is in the group and decides all its assigned
// partitions. An instance without partitions is ready. Safe for concurrent use.
func (r *Runtime) Ready() bool {
	m := r.membership.Load()
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
