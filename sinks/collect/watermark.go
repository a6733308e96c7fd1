package collect

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// watermark follows one partition, for as long as it is ours: records finish in
// any order, and only what is done without a gap from the front may be
// committed. Safe for concurrent use.
type watermark struct {
	// mark is told the last record of the done front. Calls come in order.
	mark func(*kgo.Record)

	mu    sync.Mutex
	gone  bool // the partition was taken away: its next owner commits
	queue []step
}

// step is a record that was taken, without its content.
type step struct {
	offset int64
	epoch  int32
	done   bool
}

// take notes a record in the order of its partition.
func (w *watermark) take(r *kgo.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, step{offset: r.Offset, epoch: r.LeaderEpoch})
}

// done notes that a record needs nothing any more.
func (w *watermark) done(r *kgo.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, found := slices.BinarySearchFunc(w.queue, r.Offset, func(s step, offset int64) int { return int(s.offset - offset) })
	if !found || w.gone {
		return
	}
	w.queue[i].done = true
	front := 0
	for front < len(w.queue) && w.queue[front].done {
		front++
	}
	if front == 0 {
		return
	}
	last := w.queue[front-1]
	w.queue = w.queue[front:]
	w.mark(&kgo.Record{Topic: r.Topic, Partition: r.Partition, Offset: last.offset, LeaderEpoch: last.epoch})
}

// released says whether it has ended.
func (w *watermark) released() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone
}

// release ends it: nothing is marked any more.
func (w *watermark) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = true
}
