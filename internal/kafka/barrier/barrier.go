// Package barrier makes reads of a copy linearizable. A processor writes events to a topic,
// and a sink copies them to a database together with its positions. A read asks the broker
// for the high watermarks of its partitions, waits until the positions have reached them,
// and then reads the copy. It sees every change that any client had an acknowledgement for
// before the read began.
//
// The high watermark is enough because a transaction flushes every record with acks
// from all replicas before it commits. The last stable offset is not enough: the
// markers of one transaction reach its partitions at different moments.
package barrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"quittance/internal/kafka/consume"
)

// ErrBehind says that the copy does not contain all acknowledged changes yet: it is behind,
// or Kafka or the database does not answer. The caller may try again (503).
var ErrBehind = errors.New("the read model is behind")

const (
	defaultTimeout = 2 * time.Second
	// positionEvery is the pause between two reads of the positions while reads wait.
	positionEvery = 4 * time.Millisecond
	// retryEvery is the pause after a question or a read of positions that failed.
	retryEvery = 50 * time.Millisecond
	// askTimeout bounds one question to the broker, and one read of the positions. The
	// next question may go to another broker.
	askTimeout = time.Second
)

// Config of a Barrier. Fields without a default are required.
type Config struct {
	// Client asks the broker. The barrier does not close it.
	Client *kgo.Client
	// Topic is the full name of the topic that the copy follows.
	Topic string
	// Partitions is the number of partitions of Topic.
	Partitions int32
	// Positions reads the positions of the copy: the next offset of each partition.
	Positions func(ctx context.Context, topic string) (map[int32]int64, error)
	// Timeout bounds a wait; 2 s when zero.
	Timeout time.Duration
	// Metrics registers the metrics of the waits.
	Metrics prometheus.Registerer
}

// Barrier makes reads wait until a copy of a topic contains all acknowledged changes. It is
// safe for concurrent use while Run runs.
type Barrier struct {
	cfg     Config
	metrics *metrics

	mu      sync.Mutex
	next    *question // not sent yet: reads may join it
	reached map[int32]int64
	waiting map[*waiter]struct{}

	ask, look chan struct{} // wake asking and looking
}

// question asks for the high watermarks of all partitions.
type question struct {
	answered chan struct{}
	marks    map[int32]int64 // set before answered is closed
}

// waiter waits until positions reach marks.
type waiter struct {
	marks map[int32]int64
	done  chan struct{}
}

// New creates a barrier.
func New(cfg Config) *Barrier {
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	return &Barrier{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), reached: map[int32]int64{}, waiting: map[*waiter]struct{}{},
		ask: make(chan struct{}, 1), look: make(chan struct{}, 1),
	}
}

// Wait returns when the copy contains all changes of the partitions that were acknowledged
// before the call. It returns ErrBehind or the error of ctx.
//
// The caller must compare the positions with marks again, in the database snapshot from
// which it reads the rows: the copy may have been emptied or restored since. If they are
// lower, it must call Forget and not use the rows.
func (b *Barrier) Wait(ctx context.Context, partitions ...int32) (marks map[int32]int64, err error) {
	begun := time.Now()
	marks, err = b.pass(ctx, partitions)
	b.metrics.waited(time.Since(begun), err)
	return marks, err
}

// Forget drops the remembered positions. The next Wait reads them again.
func (b *Barrier) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached = map[int32]int64{}
}

func (b *Barrier) pass(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	bounded, cancel := context.WithTimeout(ctx, b.cfg.Timeout)
	defer cancel()
	q := b.join()
	select {
	case <-q.answered:
	case <-bounded.Done():
		return nil, b.late(ctx, "no answer from the broker")
	}
	w := b.enter(q.marks, partitions)
	if w == nil {
		return q.marks, nil
	}
	select {
	case <-w.done:
		return q.marks, nil
	case <-bounded.Done():
		b.leave(w)
		return nil, b.late(ctx, "positions have not reached the broker's marks")
	}
}

// late returns the error of a wait that ended too early: the error of ctx if the caller
// cancelled it, otherwise ErrBehind.
func (b *Barrier) late(ctx context.Context, why string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("waiting for the read model: %w", err)
	}
	return fmt.Errorf("%w: %s within %s", ErrBehind, why, b.cfg.Timeout)
}

// join returns the next question to be sent.
func (b *Barrier) join() *question {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = &question{answered: make(chan struct{})}
		signal(b.ask)
	}
	return b.next
}

// take returns the question to send now. Later reads join the following question.
func (b *Barrier) take() *question {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.next
	b.next = nil
	return q
}

// enter registers a wait for the marks. It returns nil if they are reached already.
func (b *Barrier) enter(marks map[int32]int64, partitions []int32) *waiter {
	w := &waiter{marks: map[int32]int64{}, done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range partitions {
		if marks[p] > b.reached[p] {
			w.marks[p] = marks[p]
		}
	}
	if len(w.marks) == 0 {
		return nil
	}
	b.waiting[w] = struct{}{}
	signal(b.look)
	return w
}

func (b *Barrier) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.waiting, w)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run asks the broker and reads the positions for the waits, until ctx ends. It then
// returns nil.
func (b *Barrier) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.asking(ctx) })
	group.Go(func() error { return b.looking(ctx) })
	return group.Wait()
}

func (b *Barrier) asking(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.ask:
		}
		q := b.take()
		// After the timeout no caller waits for this question any more.
		for begun := time.Now(); time.Since(begun) < b.cfg.Timeout; {
			marks, err := b.marks(ctx)
			if err == nil {
				q.marks = marks
				close(q.answered)
				break
			}
			if ctx.Err() != nil {
				return nil
			}
			b.metrics.failed("broker")
			if !consume.Sleep(ctx, retryEvery) {
				return nil
			}
		}
	}
}

// marks returns the high watermarks of all partitions, from their leaders. The isolation
// level is read_uncommitted, because read_committed returns the last stable offset.
func (b *Barrier) marks(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = b.cfg.Topic
	for p := range b.cfg.Partitions {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p, -1 // the end
		topic.Partitions = append(topic.Partitions, partition)
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 0
	req.Topics = append(req.Topics, topic)

	marks := make(map[int32]int64, b.cfg.Partitions)
	for _, shard := range b.cfg.Client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, fmt.Errorf("asking for high watermarks: %w", shard.Err)
		}
		answer, ok := shard.Resp.(*kmsg.ListOffsetsResponse)
		if !ok {
			return nil, fmt.Errorf("asking for high watermarks: got a %T", shard.Resp)
		}
		for _, t := range answer.Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, fmt.Errorf("asking for the high watermark of partition %d: %w", p.Partition, err)
				}
				marks[p.Partition] = p.Offset
			}
		}
	}
	if len(marks) != int(b.cfg.Partitions) {
		return nil, fmt.Errorf("asking for high watermarks: %d of %d partitions answered", len(marks), b.cfg.Partitions)
	}
	return marks, nil
}

// looking reads the positions while reads wait for them.
func (b *Barrier) looking(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.look:
		}
		for b.anyWaiting() {
			pause := positionEvery
			if err := b.lookOnce(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				b.metrics.failed("postgres")
				pause = retryEvery
			}
			if b.anyWaiting() && !consume.Sleep(ctx, pause) {
				return nil
			}
		}
	}
}

func (b *Barrier) lookOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	positions, err := b.cfg.Positions(ctx, b.cfg.Topic)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached = positions
	for w := range b.waiting {
		if w.passed(positions) {
			close(w.done)
			delete(b.waiting, w)
		}
	}
	return nil
}

func (w *waiter) passed(positions map[int32]int64) bool {
	for p, mark := range w.marks {
		if positions[p] < mark {
			return false
		}
	}
	return true
}

func (b *Barrier) anyWaiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}
