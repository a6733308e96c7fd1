package deliveries

import (
	"math/rand/v2"
	"net/http"
	"time"

	"quittance/internal/call"
)

// steps are the delays before attempt 1, 2, … (docs/design/decisions.md § 5).
var steps = [...]time.Duration{
	0, 5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

const (
	jitter = 0.2
	daily  = 24 * time.Hour
	// slowRetry is the least delay after 429 or a time-out.
	slowRetry = time.Minute
)

// LastStep is the number of the schedule's last attempt; the first is 1. The policy of
// a kind decides what follows it.
const LastStep = len(steps)

// RetryDelay returns the delay after a failed attempt (from 1): the step's delay
// ±20 %. If the destination asked for a delay, RetryDelay returns that delay, but at
// least the step's delay and at most twice the step's delay. After 429 or a time-out
// the delay is at least a minute. After the last step it is a day.
func RetryDelay(attempt int, r call.Result) time.Duration {
	step := daily
	if attempt < LastStep {
		step = steps[max(attempt, 0)]
	}
	delay := step + time.Duration((2*rand.Float64()-1)*jitter*float64(step)) //nolint:gosec // spreads load, keeps no secret
	if r.RetryAfter > 0 {
		delay = min(max(r.RetryAfter, step), 2*step)
	}
	if r.Timeout() || r.Status == http.StatusTooManyRequests {
		delay = max(delay, slowRetry)
	}
	return delay
}
