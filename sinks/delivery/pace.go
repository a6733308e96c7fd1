package delivery

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	paceBurst = 20              // a twentieth of a second's calls may begin at once
	paceWait  = 5 * time.Second // a delivery that would wait longer is deferred
)

// pace keeps the calls of a destination below its rate, by the machine's clock.
// The zero value has no limit. The caller holds the worker's lock.
type pace struct {
	limiter *rate.Limiter
	limit   int
}

// take returns 0 when a call may begin now, and otherwise how long to wait.
func (p *pace) take(now time.Time, perSecond int) time.Duration {
	if perSecond <= 0 {
		p.limiter, p.limit = nil, 0
		return 0
	}
	if p.limiter == nil || p.limit != perSecond {
		p.limiter, p.limit = rate.NewLimiter(rate.Limit(perSecond), max(1, perSecond/paceBurst)), perSecond
	}
	if p.limiter.AllowN(now, 1) {
		return 0
	}
	r := p.limiter.ReserveN(now, 1)
	defer r.CancelAt(now)
	return max(r.DelayFrom(now), time.Millisecond)
}

// backlog says whether one more delivery may wait behind the queued ones, and how
// long those take.
func (p *pace) backlog(perSecond, queued int) (time.Duration, bool) {
	if perSecond <= 0 {
		return 0, true
	}
	turn := time.Duration(queued) * time.Second / time.Duration(perSecond)
	return turn, queued == 0 || turn < paceWait
}
