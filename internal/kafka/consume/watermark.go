package consume

import (
	"slices"
	"sync"
)

// Watermark follows one partition for as long as it belongs to this member.
// Records finish in any order; only what is finished without a gap may be
// committed. Safe for concurrent use.
//
// Its life: offsets are taken and done; Stop ends the taking, so that what is not
// under way never starts; Release ends the committing, so that a call that is
// answered late commits nothing.
type Watermark struct {
	// Moved, when set, is told the offset to commit and the leader epoch of the
	// record before it, each time it rises. Calls come in order and end with
	// Release: a mark must not reach the next owner's commits.
	Moved func(next int64, epoch int32)

	mu       sync.Mutex
	queue    []step // ascending; the first is not done
	next     int64  // behind the last offset that was taken
	waiting  int
	stopped  bool
	released bool
}

// step is an offset that was taken.
type step struct {
	offset int64
	epoch  int32
	done   bool
}

// NewWatermark starts at the offset to read next.
func NewWatermark(start int64) *Watermark { return &Watermark{next: start} }

// Take notes an offset as under way; offsets come ascending. It refuses after
// Stop.
func (w *Watermark) Take(offset int64, epoch int32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.queue = append(w.queue, step{offset: offset, epoch: epoch})
	w.next = offset + 1
	w.waiting++
	return true
}

// Done notes that an offset needs nothing any more. After Release it does
// nothing: flag and mark are under one lock, so that no mark falls between a
// release and the next owner's commits.
func (w *Watermark) Done(offset int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i, found := slices.BinarySearchFunc(w.queue, offset, func(s step, offset int64) int { return int(s.offset - offset) })
	if !found || w.released || w.queue[i].done {
		return
	}
	w.queue[i].done = true
	w.waiting--
	front := 0
	for front < len(w.queue) && w.queue[front].done {
		front++
	}
	if front == 0 {
		return
	}
	last := w.queue[front-1]
	if w.queue = w.queue[front:]; len(w.queue) == 0 {
		w.queue = nil
	}
	if w.Moved != nil {
		w.Moved(last.offset+1, last.epoch)
	}
}

// Next is the lowest offset that is not done; false after Release.
func (w *Watermark) Next() (int64, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.released {
		return 0, false
	}
	if len(w.queue) > 0 {
		return w.queue[0].offset, true
	}
	return w.next, true
}

// Forget gives up an offset that was taken: it stays undone, but Waiting does not
// count it.
func (w *Watermark) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
}

// Waiting is how many offsets are still to be done.
func (w *Watermark) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// Stop ends the taking.
func (w *Watermark) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

// Stopped says whether the taking has ended.
func (w *Watermark) Stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// Release ends taking and committing: the partition belongs to somebody else.
func (w *Watermark) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped, w.released, w.queue, w.waiting = true, true, nil, 0
}
