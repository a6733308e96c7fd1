package ministry

import (
	"sync"
	"time"
)

// floodFactor is how many times its quota an application may offer to one
// instance in a minute before it is shed here. The exact count, which knows
// replays, is the processor's; this only keeps a flood out of Kafka.
const floodFactor = 4

// floodFloor leaves room for replays under a small quota.
const floodFloor = 120

type flood struct {
	mu     sync.Mutex
	minute int64
	counts map[string]int
}

func newFlood() *flood { return &flood{counts: map[string]int{}} }

// admit counts a creation of an application in the UTC minute of now. When it is
// shed, after is how long the minute still lasts.
func (f *flood) admit(applicationID string, quota int, now time.Time) (after time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if minute := now.Unix() / 60; minute != f.minute {
		f.minute = minute
		clear(f.counts)
	}
	f.counts[applicationID]++
	if f.counts[applicationID] <= max(floodFactor*quota, floodFloor) {
		return 0, true
	}
	return now.Truncate(time.Minute).Add(time.Minute).Sub(now), false
}
