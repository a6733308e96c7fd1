package simulator

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// timers holds values that are due at instants of the simulators' clock. The clock can
// jump, so run reads it at short intervals instead of sleeping until an instant.
type timers[T any] struct {
	mu   sync.Mutex
	heap timerHeap[T]
	seq  int64
	wake chan struct{}
}

type timer[T any] struct {
	at  time.Time
	seq int64 // orders the values of one instant as they were added
	v   T
}

func newTimers[T any]() *timers[T] {
	return &timers[T]{wake: make(chan struct{}, 1)}
}

// add makes run pass v to fire when the clock has reached at.
func (t *timers[T]) add(at time.Time, v T) {
	t.mu.Lock()
	t.seq++
	heap.Push(&t.heap, timer[T]{at: at, seq: t.seq, v: v})
	earliest := t.heap[0].seq == t.seq
	t.mu.Unlock()
	if earliest {
		t.nudge()
	}
}

// nudge makes run read the clock at once.
func (t *timers[T]) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *timers[T]) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.heap)
}

// pop removes the earliest due value. Without one it returns the time to wait before the
// next call, at most poll.
func (t *timers[T]) pop(now time.Time, poll time.Duration) (v T, wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.heap) == 0 {
		return v, poll, false
	}
	if d := t.heap[0].at.Sub(now); d > 0 {
		return v, min(d, poll), false
	}
	return heap.Pop(&t.heap).(timer[T]).v, 0, true
}

// run calls fire for each due value, one at a time, until ctx ends.
func (t *timers[T]) run(ctx context.Context, now func() time.Time, poll time.Duration, fire func(T)) {
	pause := time.NewTimer(poll)
	defer pause.Stop()
	for ctx.Err() == nil {
		v, wait, ok := t.pop(now(), poll)
		if ok {
			fire(v)
			continue
		}
		pause.Reset(wait)
		select {
		case <-ctx.Done():
		case <-t.wake:
		case <-pause.C:
		}
	}
}

type timerHeap[T any] []timer[T]

func (h timerHeap[T]) Len() int { return len(h) }
func (h timerHeap[T]) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap[T]) Push(x any)   { *h = append(*h, x.(timer[T])) }
func (h *timerHeap[T]) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = timer[T]{}
	*h = old[:len(old)-1]
	return last
}
