package delivery

import (
	"context"
	"time"

	"quittance/internal/call"
	"quittance/internal/deliveries"
	"quittance/schemas/record"
)

// Verdict is a policy's judgement of one call.
type Verdict struct {
	Outcome deliveries.Outcome
	// NextAttemptAt is set with OutcomeFailed.
	NextAttemptAt time.Time
	// Unhealthy: the destination is at fault, not the delivery. It counts for the
	// breaker.
	Unhealthy bool
	// Gone: the destination asked never to be called again.
	Gone bool
}

// Policy is how the deliveries of a kind are sent and what answers mean. Safe for
// concurrent use.
type Policy interface {
	// Send makes one call and reads the answer, within the call's time limit. The
	// result's fault is call.FaultInterrupted when ctx ended first.
	Send(ctx context.Context, d *record.Delivery) call.Result
	// Judge says what the result means for the delivery, whose Attempt is the
	// attempt just made and whose FirstAttemptAt is set.
	Judge(d *record.Delivery, r call.Result, now time.Time) Verdict
}
