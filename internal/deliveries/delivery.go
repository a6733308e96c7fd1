package deliveries

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"quittance/schemas/record"
)

// Outcome is the result of one attempt, or the reason why no attempt was made.
type Outcome string

// Outcomes.
const (
	// OutcomeDelivered: the destination accepted the delivery. This is final: no later
	// outcome changes it.
	OutcomeDelivered Outcome = "delivered"
	// OutcomeFailed: the attempt failed. The next one is at NextAttemptAt.
	OutcomeFailed Outcome = "failed"
	// OutcomeDeferred: no call was made. The attempt is not counted.
	OutcomeDeferred Outcome = "deferred"
	// OutcomeNeedsOperator: a person decides whether to try again.
	OutcomeNeedsOperator Outcome = "needs_operator"
	// OutcomeExhausted: the last attempt of the schedule failed.
	OutcomeExhausted Outcome = "exhausted"
)

// Outcomes lists all outcomes.
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

// Reasons lists all reasons of deferred outcomes.
var Reasons = []string{ReasonMailboxFull, ReasonRateLimited, ReasonBreakerOpen, ReasonSuspended, ReasonNoDestination, ReasonLocked}

// Ref names a delivery in one round of the schedule.
type Ref struct {
	DeliveryID string
	// OccurredAt is the time of the event. Its day selects the table.
	OccurredAt time.Time
	Round      int32
}

// ID returns the id of an event's delivery to a destination. The same arguments
// always give the same id, so an event that is planned twice has one delivery.
func ID(kind Kind, eventID, destinationID string) string {
	sum := sha256.Sum256([]byte(string(kind) + "\x00" + eventID + "\x00" + destinationID))
	return "dlv_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// RedeliveryID returns the id under which an accepted delivery is sent once more.
// Each name of a redelivery gives another id.
func RedeliveryID(kind Kind, eventID, destinationID, redelivery string) string {
	return ID(kind, eventID, destinationID+"\x00"+redelivery)
}

// Plan returns the delivery of a notification to a destination.
func Plan(kind Kind, n *record.Notification, destinationID string) *record.Delivery {
	return &record.Delivery{
		DeliveryID: ID(kind, n.EventID, destinationID), Kind: string(kind), DestinationID: destinationID,
		EventID: n.EventID, Event: n.Event, ApplicationID: n.ApplicationID, TenantID: n.TenantID,
		SessionID: n.SessionID, Livemode: n.Livemode, OccurredAt: n.OccurredAt, Attempt: 1, Body: n.Body,
	}
}
