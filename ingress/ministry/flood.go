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

// tokenAsks is how often a minute one instance takes a session's secret, right
// or wrong, to a processor: whoever can read a page's address can send a secret.
const tokenAsks = 60

// flood counts requests by what they are charged to, in UTC minutes.
type flood struct {
	mu     sync.Mutex
	minute int64
	counts map[string]int
}

func newFlood() *flood { return &flood{counts: map[string]int{}} }

// admit counts a request. When it is beyond most, it is shed, and after is how
// long the minute still lasts.
func (f *flood) admit(chargedTo string, most int, now time.Time) (after time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if minute := now.Unix() / 60; minute != f.minute {
		f.minute = minute
		clear(f.counts)
	}
	f.counts[chargedTo]++
	if f.counts[chargedTo] <= most {
		return 0, true
	}
	return untilNextMinute(now), false
}

// commandsOf is how many commands of a kind an application may send to one
// instance in a minute.
func commandsOf(creationsPerMinute int) int { return max(floodFactor*creationsPerMinute, floodFloor) }

func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute).Sub(now)
}
