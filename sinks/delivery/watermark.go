package delivery

import (
	"sort"
	"sync"
)

// tracker knows which offsets of one partition, in one generation of the group,
// are settled. Only the contiguous low watermark may be committed: kafka-go
// commits the highest offset it is told, whatever lies open below.
//
// Its life: offsets are read and settled; stop ends the reading, so that what is
// not yet on its way never starts; revoke ends the committing, so that a call
// that is answered late settles nothing.
type tracker struct {
	mu      sync.Mutex
	pending []offsetState // ascending; the first is unsettled
	next    int64         // behind the last offset that was read
	open    int           // unsettled ones in pending
	stopped bool
	revoked bool
}

type offsetState struct {
	offset int64
	done   bool
}

// newTracker starts at the partition's committed offset.
func newTracker(start int64) *tracker { return &tracker{next: start} }

// read notes an offset as under way; offsets come ascending. It refuses after stop.
func (t *tracker) read(offset int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return false
	}
	t.pending = append(t.pending, offsetState{offset: offset})
	t.next = offset + 1
	t.open++
	return true
}

// settle marks an offset. After revoke it does nothing: flag and mark are under
// one lock, so that no mark falls between a revoke and the next owner's commits.
func (t *tracker) settle(offset int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.revoked {
		return
	}
	i := sort.Search(len(t.pending), func(i int) bool { return t.pending[i].offset >= offset })
	if i == len(t.pending) || t.pending[i].offset != offset || t.pending[i].done {
		return
	}
	t.pending[i].done = true
	t.open--
	n := 0
	for n < len(t.pending) && t.pending[n].done {
		n++
	}
	if n == len(t.pending) {
		t.pending = nil
	} else if n > 0 {
		t.pending = t.pending[n:]
	}
}

// watermark is the lowest offset that is not settled; false after revoke.
func (t *tracker) watermark() (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.revoked {
		return 0, false
	}
	if len(t.pending) > 0 {
		return t.pending[0].offset, true
	}
	return t.next, true
}

// forget takes back an offset that was read and will not be sent here: it stays
// unsettled, but nobody waits for it.
func (t *tracker) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// waiting is how many offsets are still to be settled.
func (t *tracker) waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

func (t *tracker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

func (t *tracker) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

func (t *tracker) revoke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped, t.revoked, t.pending, t.open = true, true, nil, 0
}
