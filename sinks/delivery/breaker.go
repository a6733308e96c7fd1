package delivery

import (
	"net/http"
	"time"

	"quittance/internal/call"
)

const (
	breakerWindow   = time.Minute
	breakerBuckets  = 6
	breakerMinimum  = 10 // calls in the window; with fewer the share of failures does not count
	breakerTimeouts = 3  // in a row
	breakerFirst    = 30 * time.Second
	breakerLongest  = 10 * time.Minute
)

// breakerState decides how a destination may be called.
type breakerState int

const (
	breakerClosed  breakerState = iota // called freely
	breakerOpen                        // not called until reopenAt
	breakerProbing                     // one call at a time until one succeeds
)

// breakerNames are the names of the states that the gauge counts.
var breakerNames = map[breakerState]string{breakerOpen: "open", breakerProbing: "probing"}

// breaker stops calls to a destination that fails. It opens when at least half of at
// least ten calls within a minute failed, or after three time-outs in a row. It stays
// open for 30 s, each further time for twice as long, at most ten minutes. Then it
// probes: one call at a time, until one succeeds. The zero value is closed. The caller
// holds the worker's lock.
type breaker struct {
	open     bool
	reopenAt time.Time
	hold     time.Duration
	timeouts int
	buckets  [breakerBuckets]struct {
		slot     int64
		ok, fail int
	}
}

// state returns the state at a time.
func (b *breaker) state(now time.Time) breakerState {
	switch {
	case !b.open:
		return breakerClosed
	case now.Before(b.reopenAt):
		return breakerOpen
	default:
		return breakerProbing
	}
}

// succeeded counts a successful call. Only a probe closes the breaker. A call that was
// under way when the breaker opened does not show that the destination has recovered.
func (b *breaker) succeeded(now time.Time) {
	if b.open && !now.Before(b.reopenAt) {
		*b = breaker{}
	}
	b.timeouts = 0
	b.bucket(now).ok++
}

// failed counts a failed call. A failed probe opens the breaker again. A call that was
// under way when the breaker opened changes nothing.
func (b *breaker) failed(now time.Time, timeout bool) {
	if b.open {
		if !now.Before(b.reopenAt) {
			b.trip(now)
		}
		return
	}
	b.bucket(now).fail++
	if timeout {
		b.timeouts++
	} else {
		b.timeouts = 0
	}
	ok, fail := b.window(now)
	if b.timeouts >= breakerTimeouts || (ok+fail >= breakerMinimum && 2*fail >= ok+fail) {
		b.trip(now)
	}
}

// wait opens the breaker for the time that the destination has asked for.
func (b *breaker) wait(now time.Time, d time.Duration) {
	if until := now.Add(min(d, breakerLongest)); !b.open || until.After(b.reopenAt) {
		b.open, b.reopenAt = true, until
	}
}

// shut opens the breaker until a time, which may be later than its own longest.
func (b *breaker) shut(until time.Time) {
	b.open, b.reopenAt = true, until
}

// asksToWait returns the time for which the destination asks for no calls at all, by
// RFC 6585 (429) or RFC 9110 (503). It returns zero when the destination does not ask.
func asksToWait(r call.Result) time.Duration {
	if r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable {
		return r.RetryAfter
	}
	return 0
}

func (b *breaker) trip(now time.Time) {
	b.hold = min(max(2*b.hold, breakerFirst), breakerLongest)
	b.open, b.reopenAt = true, now.Add(b.hold)
}

func slotOf(now time.Time) int64 { return now.UnixNano() / int64(breakerWindow/breakerBuckets) }

func (b *breaker) bucket(now time.Time) *struct {
	slot     int64
	ok, fail int
} {
	slot := slotOf(now)
	at := &b.buckets[slot%breakerBuckets]
	if at.slot != slot {
		at.slot, at.ok, at.fail = slot, 0, 0
	}
	return at
}

func (b *breaker) window(now time.Time) (ok, fail int) {
	oldest := slotOf(now) - breakerBuckets + 1
	for _, at := range b.buckets {
		if at.slot >= oldest {
			ok, fail = ok+at.ok, fail+at.fail
		}
	}
	return ok, fail
}

// idle reports whether the breaker behaves like a new one.
func (b *breaker) idle(now time.Time) bool {
	ok, fail := b.window(now)
	return !b.open && b.timeouts == 0 && ok+fail == 0
}
