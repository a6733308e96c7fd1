package delivery

import (
	"time"

	"golang.org/x/time/rate"
)

const (
	paceBurst = 20              // one twentieth of the calls of a second may begin at once
	paceWait  = 5 * time.Second // a delivery that would wait longer is deferred
)

// pace limits the rate of the calls to a destination, by the machine's clock. The zero
// value has no limit. The caller holds the worker's lock.
type pace struct {
	limiter *rate.Limiter
	limit   int
}

// take returns zero when a call may begin now, otherwise the time to wait.
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

// backlog returns the time that the queued deliveries take, and whether one more may
// wait behind them.
func (p *pace) backlog(perSecond, queued int) (time.Duration, bool) {
	if perSecond <= 0 {
		return 0, true
	}
	turn := time.Duration(queued) * time.Second / time.Duration(perSecond)
	return turn, queued == 0 || turn < paceWait
}
