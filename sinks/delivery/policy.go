package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"quittance/schemas/record"
)

// Kind of a delivery: which policy sends it.
type Kind string

// Kinds.
const (
	KindWebhook Kind = "webhook"
	KindERP     Kind = "erp"
)

// Outcome is what became of a delivery when its turn came.
type Outcome string

// Outcomes. Delivered is final: nothing that comes later reopens it.
const (
	// OutcomeDelivered: the destination accepted.
	OutcomeDelivered Outcome = "delivered"
	// OutcomeFailed: it was tried, and is tried again at NextAttemptAt.
	OutcomeFailed Outcome = "failed"
	// OutcomeDeferred: it was not tried now; that costs no attempt.
	OutcomeDeferred Outcome = "deferred"
	// OutcomeNeedsOperator: only a person can say whether to try again.
	OutcomeNeedsOperator Outcome = "needs_operator"
	// OutcomeExhausted: the last attempt of its schedule failed.
	OutcomeExhausted Outcome = "exhausted"
)

// Outcomes lists them all.
var Outcomes = []Outcome{OutcomeDelivered, OutcomeFailed, OutcomeDeferred, OutcomeNeedsOperator, OutcomeExhausted}

// Reasons of deferred outcomes.
const (
	ReasonMailboxFull   = "mailbox_full"
	ReasonRateLimited   = "rate_limited"
	ReasonBreakerOpen   = "breaker_open"
	ReasonSuspended     = "suspended"
	ReasonNoDestination = "destination_unknown"
	ReasonLocked        = "destination_locked"
)

// Reasons lists them all.
var Reasons = []string{ReasonMailboxFull, ReasonRateLimited, ReasonBreakerOpen, ReasonSuspended, ReasonNoDestination, ReasonLocked}

// Destination is what the engine knows of where deliveries go.
type Destination struct {
	// MaxInFlight calls at once; at least 1.
	MaxInFlight int
	// MaxPerSecond calls may begin; 0 is no limit.
	MaxPerSecond int
	// Locked destinations wait: their secrets cannot be read by this process.
	Locked bool
}

// Verdict is a policy's judgement of one call.
type Verdict struct {
	Outcome Outcome
	// NextAttemptAt is set with OutcomeFailed.
	NextAttemptAt time.Time
	// Unhealthy says that the destination, not the delivery, is at fault: it
	// counts for the breaker.
	Unhealthy bool
	// Gone says that the destination asked never to be called again.
	Gone bool
}

// Policy is what differs between kinds of deliveries. Safe for concurrent use.
type Policy interface {
	// Kind of the deliveries.
	Kind() Kind
	// Destination answers from memory; false when it is not known (any more).
	Destination(id string) (Destination, bool)
	// Send makes one call and reads the answer, within the call's time limit. It
	// returns ctx's error in the result when ctx ended first.
	Send(ctx context.Context, d *record.Delivery) Result
	// Judge says what the result means for the delivery, whose Attempt is the
	// attempt just made and whose FirstAttemptAt is set.
	Judge(d *record.Delivery, r Result, now time.Time) Verdict
}

// ID is the id of an event's delivery to a destination: the same for the same
// pair for ever, so that planning twice changes nothing.
func ID(kind Kind, eventID, destinationID string) string {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + eventID + "\x00" + destinationID))
	return "dlv_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// AgainID is the id of an event's delivery to a destination that has accepted it
// before: another one for another word.
func AgainID(kind Kind, eventID, destinationID, word string) string {
	return ID(kind, eventID, destinationID+"\x00"+word)
}

// Plan is the delivery of a notification to a destination.
func Plan(kind Kind, n *record.Notification, destinationID string) *record.Delivery {
	return &record.Delivery{
		DeliveryID: ID(kind, n.EventID, destinationID), Kind: string(kind), DestinationID: destinationID,
		EventID: n.EventID, Event: n.Event, ApplicationID: n.ApplicationID, TenantID: n.TenantID,
		SessionID: n.SessionID, Livemode: n.Livemode, OccurredAt: n.OccurredAt, Attempt: 1, Body: n.Body,
	}
}
