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
	// NextAttemptAt is set with OutcomeFailed, and with OutcomeDeferred: no call was made, and
	// the attempt is not counted.
	NextAttemptAt time.Time
	// Unhealthy is true when the destination is at fault, not the delivery. The breaker
	// counts such calls as failures.
	Unhealthy bool
	// Refused is true when the destination refuses our credentials (401, 403). Outcome is
	// OutcomeDeferred then, and all its deliveries wait until NextAttemptAt. Park is set with it:
	// what the answer means if it turns out to be about this delivery alone.
	Refused bool
	Park    deliveries.Outcome
	// Gone is true when the destination asked never to be called again.
	Gone bool
	// OwnAddress is true when the delivery's own address was called, and not that of its
	// destination. Whatever came of it is no success and no failure of the destination.
	OwnAddress bool
}

// Policy sends the deliveries of a kind and judges the answers. Safe for concurrent
// use.
type Policy interface {
	// Send makes one call and reads the answer, within the call's time limit. The
	// result's fault is call.FaultInterrupted when ctx ended first.
	Send(ctx context.Context, d *record.Delivery) call.Result
	// Judge decides what the result means for the delivery. The delivery's Attempt is
	// the attempt just made, and its FirstAttemptAt is set.
	Judge(d *record.Delivery, r call.Result, now time.Time) Verdict
}
