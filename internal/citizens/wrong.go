package citizens

import (
	"sync"
	"time"
)

// wrongMost is how many wrong codes of an address an instance takes in a day. The rows of Postgres refuse fewer:
// triesOfAddress of browsers that are not known, and of each of the knownBrowsers. So the count is reached only if
// somebody deletes or changes those rows to guess codes.
const wrongMost = triesOfAddress * (knownBrowsers + 1)

// wrongCodes counts wrong codes by address in memory, where whoever writes to Postgres cannot change it. The zero value
// is ready; it is safe for concurrent use.
type wrongCodes struct {
	mu       sync.Mutex
	now, old map[string]int // of this half of a day and of the half before
	since    time.Time
}

// turn begins another half of a day. The caller holds the lock.
func (w *wrongCodes) turn(now time.Time) {
	const half = 12 * time.Hour
	switch since := now.Sub(w.since); {
	case w.now == nil || since < 0 || since >= 2*half:
		w.now, w.old, w.since = map[string]int{}, nil, now
	case since >= half:
		w.now, w.old, w.since = map[string]int{}, w.now, now
	}
}

func (w *wrongCodes) add(address []byte, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	w.now[string(address)]++
}

func (w *wrongCodes) tooMany(address []byte, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	return w.now[string(address)]+w.old[string(address)] >= wrongMost
}
