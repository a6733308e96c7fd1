package sessions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"
)

// ErrBehind says that the read model cannot show now what has been acknowledged:
// it is behind, or Kafka or Postgres is away. Ask again (503).
var ErrBehind = errors.New("the read model is behind")

const (
	defaultTimeout = 2 * time.Second
	// positionEvery is how often positions are read while somebody waits.
	positionEvery = 4 * time.Millisecond
	// retryEvery is the pause after a question that failed.
	retryEvery = 50 * time.Millisecond
	// askTimeout bounds one question; a new one goes to a broker that is there.
	askTimeout = time.Second
)

// barrier makes reads wait until what they must show is in Postgres.
type barrier struct {
	client     *kgo.Client
	store      *Store
	topic      string
	partitions int32
	timeout    time.Duration
	metrics    *metrics

	mu      sync.Mutex
	next    *question // not yet sent: reads may still join it
	reached map[int32]int64
	waiting map[*waiter]struct{}

	ask, look chan struct{} // there is something to do
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

func newBarrier(client *kgo.Client, store *Store, topic string, partitions int32, timeout time.Duration, m *metrics) *barrier {
	return &barrier{
		client: client, store: store, topic: topic, partitions: partitions, timeout: timeout, metrics: m,
		reached: map[int32]int64{}, waiting: map[*waiter]struct{}{}, ask: make(chan struct{}, 1), look: make(chan struct{}, 1),
	}
}

// wait returns once Postgres holds everything that was acknowledged in the
// partitions before the call. Errors are ErrBehind and those of ctx.
//
// The positions must be compared with marks once more, in the database snapshot
// that the rows are read from: the read model may have been emptied since.
func (b *barrier) wait(ctx context.Context, partitions ...int32) (marks map[int32]int64, err error) {
	begun := time.Now()
	marks, err = b.pass(ctx, partitions)
	b.metrics.waited(time.Since(begun), err)
	return marks, err
}

func (b *barrier) pass(ctx context.Context, partitions []int32) (map[int32]int64, error) {
	bounded, cancel := context.WithTimeout(ctx, b.timeout)
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

// late tells a caller that has gone from a bound that is over.
func (b *barrier) late(ctx context.Context, why string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("waiting for the read model: %w", err)
	}
	return fmt.Errorf("%w: %s within %s", ErrBehind, why, b.timeout)
}

// join takes part in the next question.
func (b *barrier) join() *question {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = &question{answered: make(chan struct{})}
		signal(b.ask)
	}
	return b.next
}

// take is the question to send now: whoever joins from here on takes part in the
// next one.
func (b *barrier) take() *question {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.next
	b.next = nil
	return q
}

// enter is nil when the marks are reached already.
func (b *barrier) enter(marks map[int32]int64, partitions []int32) *waiter {
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

func (b *barrier) leave(w *waiter) {
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

// run asks and looks until ctx ends, and returns nil then.
func (b *barrier) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.asking(ctx) })
	group.Go(func() error { return b.looking(ctx) })
	return group.Wait()
}

func (b *barrier) asking(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.ask:
		}
		q := b.take()
		// Until its callers have given up.
		for begun := time.Now(); time.Since(begun) < b.timeout; {
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
			if !sleep(ctx, retryEvery) {
				return nil
			}
		}
	}
}

// marks are the high watermarks of all partitions, from their leaders: offsets
// are asked for as a reader of uncommitted records sees them.
func (b *barrier) marks(ctx context.Context) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = b.topic
	for p := range b.partitions {
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp = p, -1 // the end
		topic.Partitions = append(topic.Partitions, partition)
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 0
	req.Topics = append(req.Topics, topic)

	marks := make(map[int32]int64, b.partitions)
	for _, shard := range b.client.RequestSharded(ctx, req) {
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
	if len(marks) != int(b.partitions) {
		return nil, fmt.Errorf("asking for high watermarks: %d of %d partitions answered", len(marks), b.partitions)
	}
	return marks, nil
}

// looking reads positions while somebody waits for them.
func (b *barrier) looking(ctx context.Context) error {
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
			if b.anyWaiting() && !sleep(ctx, pause) {
				return nil
			}
		}
	}
}

func (b *barrier) lookOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	positions, err := b.store.Positions(ctx, b.topic)
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

func (b *barrier) anyWaiting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting) > 0
}

// sleep is false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
