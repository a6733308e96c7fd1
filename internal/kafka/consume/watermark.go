package consume

import (
	"slices"
	"sync"
)

// Watermark tracks the records of one partition while this member owns it. Records finish
// in any order. An offset may be committed only when all records before it are done. Safe
// for concurrent use.
//
// Take adds an offset and Done finishes it. After Stop, Take refuses: no more calls start.
// After Release, Done has no effect: a late result commits nothing.
type Watermark struct {
	// Moved, which may be nil, receives the offset to commit and the leader epoch of the
	// record before it, each time the offset rises. The calls are in order. There are none
	// after Release: the offset must not overwrite a commit of the next owner.
	Moved func(next int64, epoch int32)

	mu       sync.Mutex
	queue    []step // ascending offsets; the first is not done
	next     int64  // the offset after the last one taken
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

// NewWatermark creates a watermark. start is the next offset to read.
func NewWatermark(start int64) *Watermark { return &Watermark{next: start} }

// Take adds an offset in progress. Offsets must be ascending. It returns false after Stop.
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

// Done marks an offset as done. After Release it has no effect. One lock protects the flag
// and the call of Moved, so Moved cannot run after Release.
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

// Next returns the lowest offset that is not done. It returns false after Release.
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

// Forget removes one offset from the count of Waiting. The offset stays undone.
func (w *Watermark) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting--
}

// Waiting returns the number of offsets in progress.
func (w *Watermark) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// Stop makes Take refuse all further offsets.
func (w *Watermark) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

// Stopped reports whether Stop or Release was called.
func (w *Watermark) Stopped() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stopped
}

// Release ends the ownership of the partition: Take and Done have no effect any more.
func (w *Watermark) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped, w.released, w.queue, w.waiting = true, true, nil, 0
}
