package consume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxPoll bounds how long one poll of Each holds up a rebalance.
const maxPoll = 500

// Work does what a record asks for and says whether the record is done; one that
// is not is left to the next member.
//
// ctx ends when the consumer is to stop or the partition goes to another member:
// nothing new begins then. calls ends later, with the drain: what was begun may
// be finished, and reported, until then.
type Work[T any] func(ctx, calls context.Context, item T) (done bool)

// claim is a partition that belongs to this member.
type claim struct {
	*Watermark
	ctx context.Context // ends with the claim
	end context.CancelFunc
}

func (c *claim) release() {
	c.end()
	c.Release()
}

// Each hands single records to work until ctx ends, Config.AtOnce of them at
// once. Then it waits for those under way, Config.Drain at most, commits and leaves
// the group. It returns an error only when it could not begin.
func Each[T any](ctx context.Context, c *Consumer, decode func(*kgo.Record) (T, error), work Work[T]) error {
	if err := c.open(); err != nil {
		return err
	}
	calls, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var under sync.WaitGroup
	for c.room(ctx) {
		for _, r := range c.poll(ctx, min(maxPoll, c.cfg.AtOnce-c.InHand())) {
			claim := c.claim(ctx, r)
			claim.Take(r.Offset, r.LeaderEpoch)
			c.working.Add(1)
			under.Go(func() {
				defer c.working.Add(-1)
				if do(claim.ctx, calls, c, r, decode, work) {
					claim.Done(r.Offset)
				}
			})
		}
		c.client.AllowRebalance()
	}
	c.drain(ctx, &under)
	stop()
	// A report that the broker does not take holds its worker until the client goes.
	c.close(ctx)
	under.Wait()
	return nil
}

// do decodes a record and works it off. Poison is done when it is set aside.
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

// SetAside writes a record to the poison topic, tries until it stands there or ctx
// ends, and says whether it does.
func (c *Consumer) SetAside(ctx context.Context, r *kgo.Record, cause error) bool {
	return c.until(ctx, "setting a record aside", func() error { return c.setAside(ctx, r, cause) })
}

// InHand is how many records Each has read that are not done.
func (c *Consumer) InHand() int { return int(c.working.Load()) }

// room waits until a record may be taken and says whether ctx still lives. No
// rebalance waits for it.
func (c *Consumer) room(ctx context.Context) bool {
	for c.InHand() >= c.cfg.AtOnce {
		if !Sleep(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return ctx.Err() == nil
}

// claim is the claim of a record's partition. A rebalance is blocked: the
// partition belongs to this member.
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

// drain waits for what is under way.
func (c *Consumer) drain(ctx context.Context, under *sync.WaitGroup) {
	drained := make(chan struct{})
	go func() { under.Wait(); close(drained) }()
	timer := time.NewTimer(c.cfg.Drain)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
		c.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "records are left to the next member", slog.String("group", c.cfg.Group), slog.Int("count", c.InHand()))
	}
}
