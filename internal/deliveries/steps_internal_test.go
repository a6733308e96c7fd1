package deliveries

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"quittance/internal/call"
)

// A delay is the step's delay ±20 %, or the requested delay between the step's and twice
// the step's. After 429 and time-outs it is at least a minute.
func TestRetryDelay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.IntRange(1, 40).Draw(t, "attempt")
		r := call.Result{
			Status:     rapid.SampledFrom([]int{0, 301, 404, 429, 500, 503}).Draw(t, "status"),
			RetryAfter: time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 30, 400, 1e6}).Draw(t, "after")) * time.Second,
		}
		if r.Status == 0 {
			r.Fault = rapid.SampledFrom([]string{call.FaultTimeout, call.FaultConnect}).Draw(t, "fault")
		}
		step := daily
		if attempt < LastStep {
			step = steps[attempt]
		}
		low, high := step-step/5, step+step/5
		if r.RetryAfter > 0 {
			low, high = step, 2*step
		}
		if r.Status == 429 || r.Fault == call.FaultTimeout {
			low, high = max(low, time.Minute), max(high, time.Minute)
		}
		if got := RetryDelay(attempt, r); got < low || got > high {
			t.Fatalf("attempt %d, %+v: %v, want %v to %v", attempt, r, got, low, high)
		}
	})
}
