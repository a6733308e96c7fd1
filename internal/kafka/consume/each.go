package consume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxPoll is the most records of one poll of Each. It bounds the time for which a poll
// blocks rebalances.
const maxPoll = 500

// Work processes a record and reports whether the record is done. The next member receives
// a record that is not done.
//
// ctx ends when the consumer stops or the partition moves to another member. Work must not
// start a call after that. calls ends later, after the drain: until then Work may finish
// and report a call that has begun.
type Work[T any] func(ctx, calls context.Context, item T) (done bool)

// claim is the ownership of a partition.
type claim struct {
	*Watermark
	ctx context.Context // ends with the claim
	end context.CancelFunc
}

func (c *claim) release() {
	c.end()
	c.Release()
}

// Each reads records and passes each to a call of work until ctx ends. At most
// Config.AtOnce calls run at the same time. Then it waits for the running calls, for
// Config.Drain at most, commits and leaves the group. It returns an error only if it could
// not start.
func Each[T any](ctx context.Context, c *Consumer, decode func(*kgo.Record) (T, error), work Work[T]) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var under sync.WaitGroup
	for c.room(ctx) {
		c.loop.Turn()
		for _, r := range c.poll(ctx, min(maxPoll, c.cfg.AtOnce-c.InHand())) {
			claim := c.claim(ctx, r)
			claim.Take(r.Offset, r.LeaderEpoch)
			c.taken(r)
			under.Go(func() {
				defer c.left(r)
				if do(claim.ctx, calls, c, r, decode, work) {
					claim.Done(r.Offset)
				}
			})
		}
		c.client.AllowRebalance()
	}
	c.drain(ctx, &under)
	stop()
	// A worker that waits for the broker ends when the client closes.
	c.close(ctx)
	under.Wait()
	return nil
}

// do decodes a record and calls work. It sets an undecodable record aside.
func do[T any](ctx, calls context.Context, c *Consumer, r *kgo.Record, decode func(*kgo.Record) (T, error), work Work[T]) bool {
	var item T
	var poison error
	switch ok := c.until(ctx, "decoding a record", func() (err error) {
		if item, err = decode(r); poisonous(err) {
			poison, err = err, nil
		}
		return err
	}); {
	case !ok:
		return false
	case poison != nil:
		return c.SetAside(calls, r, poison)
	}
	return work(ctx, calls, item)
}

// SetAside writes a record to the poison topic. It tries until it succeeds or ctx ends, and
// reports whether it succeeded.
func (c *Consumer) SetAside(ctx context.Context, r *kgo.Record, cause error) bool {
	return c.until(ctx, "writing a record to the poison topic", func() error { return c.setAside(ctx, r, cause) })
}

// First reports whether no other member has received the record before: it was written
// after this member received its partition. When that is uncertain, it is false.
func (c *Consumer) First(r *kgo.Record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.ends[partition{r.Topic, r.Partition}]
	return e != nil && e.known && r.Offset >= e.offset
}

// InHand returns the number of records that Each has in progress.
func (c *Consumer) InHand() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.working)
}

// taken notes that a record is in progress, until left.
func (c *Consumer) taken(r *kgo.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working[r] = struct{}{}
}

func (c *Consumer) left(r *kgo.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.working, r)
}

// room waits until fewer than Config.AtOnce records are in progress, and reports whether
// ctx is still alive. It does not block rebalances.
func (c *Consumer) room(ctx context.Context) bool {
	for c.InHand() >= c.cfg.AtOnce {
		if !Sleep(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return ctx.Err() == nil
}

// claim returns the claim of a record's partition, or creates it. Rebalances are blocked, so
// this member owns the partition.
func (c *Consumer) claim(ctx context.Context, r *kgo.Record) *claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := partition{r.Topic, r.Partition}
	if c.claims[p] == nil {
		ctx, end := context.WithCancel(ctx)
		w := NewWatermark(r.Offset)
		w.Moved = func(next int64, epoch int32) {
			c.client.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{p.topic: {p.id: {Epoch: epoch, Offset: next}}})
		}
		c.claims[p] = &claim{w, ctx, end}
	}
	return c.claims[p]
}

// drain waits for the running calls, for Config.Drain at most.
func (c *Consumer) drain(ctx context.Context, under *sync.WaitGroup) {
	drained := make(chan struct{})
	go func() { under.Wait(); close(drained) }()
	timer := time.NewTimer(c.cfg.Drain)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "some records are not done; the next member will read them", slog.String("group", c.cfg.Group), slog.Int("count", c.InHand()))
	}
}
