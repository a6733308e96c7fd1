package ministry

import (
	"sync"
	"time"
)

// floodFactor times its quota is how many requests of an application one instance
// accepts in a minute. The processor counts exactly and recognises replays; this count
// only keeps a flood out of Kafka.
const floodFactor = 4

// floodFloor leaves room for replays under a small quota.
const floodFloor = 120

// tokenAsks is how many requests with a session's secret, right or wrong, one instance
// sends to the processor in a minute. Anybody who knows a page's address can send one.
const tokenAsks = 60

// flood counts requests in UTC minutes, by what they are charged to.
type flood struct {
	mu     sync.Mutex
	minute int64
	counts map[string]int
}

func newFlood() *flood { return &flood{counts: map[string]int{}} }

// admit counts a request. When there are more than most in this minute it returns
// false and the time until the next minute.
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

// commandsOf returns how many commands of a kind an application may send to one
// instance in a minute.
func commandsOf(creationsPerMinute int) int { return max(floodFactor*creationsPerMinute, floodFloor) }

func untilNextMinute(now time.Time) time.Duration {
	return now.Truncate(time.Minute).Add(time.Minute).Sub(now)
}
